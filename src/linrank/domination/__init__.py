"""The domination loss: layers, margins, and the training of models by it."""

from linrank.system.names import names_of

__all__, __getattr__, __dir__ = names_of(__name__)
