"""offload: hand a block of code to a cheaper agent and keep typing."""

__version__ = "0.1.0"
