"""What can be done with tasks. Knows the domain and the ports, and nothing of git, OpenCode, SQLite or any protocol."""
