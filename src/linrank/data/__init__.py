"""Data: rows, their queries and labels, what is said of their columns, and pairs of them."""

from linrank.system.names import names_of

__all__, __getattr__, __dir__ = names_of(__name__)
