"""Several results made one: which may go together, where they meet, how they are merged, and which of them break the checks."""
