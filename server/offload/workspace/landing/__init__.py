"""A result merged with what the user has now, in editors and on disk: worked out and checked whole, then written, all or nothing."""
