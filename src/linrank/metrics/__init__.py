"""Ranking measures: values that parse from their names, under the field's conventions."""

from linrank.metrics.evaluate import evaluate as evaluate  # which is the name of a module, too
from linrank.system.names import names_of

__all__, __getattr__, __dir__ = names_of(__name__)
