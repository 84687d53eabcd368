"""Threads, memory, durable files, scratch, seeds and text tables."""

from linrank.system.names import names_of

__all__, __getattr__, __dir__ = names_of(__name__)
