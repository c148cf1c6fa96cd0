"""The command line: commands for people and scripts, made from the operations table. It decides nothing about a task."""
