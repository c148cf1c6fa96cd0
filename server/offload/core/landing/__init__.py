"""How a result comes into the user's files, and out of them again: what is chosen, who may, where it goes, what was given before."""
