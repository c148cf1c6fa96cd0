"""Agents that do the work. Each kind is a folder; each agent is one data file in `agents/`, read by `registry`."""
