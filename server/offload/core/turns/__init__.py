"""One turn of a task, from its place in the line to its checked result. Nothing here answers a front."""
