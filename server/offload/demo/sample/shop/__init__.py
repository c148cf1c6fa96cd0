"""Small helpers of a corner shop."""
