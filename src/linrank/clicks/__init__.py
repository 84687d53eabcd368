"""From clicks to preferences: what was shown where, what was clicked, and how far to trust it."""

from linrank.system.names import names_of

__all__, __getattr__, __dir__ = names_of(__name__)
