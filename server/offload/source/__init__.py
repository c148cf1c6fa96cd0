"""Blocks of source code, found by parsing. Knows tree-sitter and the domain's `Block`, and nothing of tasks or editors."""
