"""From a linear model to what a search engine, a database or another program reads."""

from linrank.export.targets import ALIASES, TARGETS, export

__all__ = ["ALIASES", "TARGETS", "export"]
