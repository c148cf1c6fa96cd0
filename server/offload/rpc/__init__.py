"""The edge for the command line and scripts: JSON lines, straight from the operations table."""
