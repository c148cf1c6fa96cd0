"""The one process behind all fronts: how it is found, started, spoken to and ended.

`address`, `hello`, `lock`, `reach` and `forward` are what a front needs; they import the standard library only, because an
editor waits for them.
"""
