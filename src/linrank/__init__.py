"""linrank: learning to rank from preferences, at any scale."""

__version__ = "0.1.0"
