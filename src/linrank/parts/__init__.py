"""Training over data in parts, wherever these lie."""

from linrank.system.names import names_of

__all__, __getattr__, __dir__ = names_of(__name__)
