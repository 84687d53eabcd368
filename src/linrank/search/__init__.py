"""How models are judged on rows that they have not seen, and chosen."""

from linrank.system.names import names_of

__all__, __getattr__, __dir__ = names_of(__name__)
