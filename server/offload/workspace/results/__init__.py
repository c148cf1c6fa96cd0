"""What a result is made of, and what can be made of it: its parts, a choice of them, a merge with another commit."""
