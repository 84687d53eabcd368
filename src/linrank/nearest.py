"""The known name that a wrong one is nearest to, for messages."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["did_you_mean", "nearest"]


def nearest(name: object, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """The most similar of the known names; None where none is alike by at least ``cutoff``."""
    import difflib  # needed only to say what is wrong

    near = difflib.get_close_matches(str(name), list(known), n=1, cutoff=cutoff)
    return near[0] if near else None


def did_you_mean(name: object, known: Iterable[str], cutoff: float = 0.6) -> str:
    """The end of a sentence on an unknown name; empty where no known one is like it.

    Examples
    --------
    >>> "unknown format 'parkett'" + did_you_mean("parkett", ["csv", "parquet"])
    "unknown format 'parkett'; did you mean 'parquet'?"
    """
    near = nearest(name, known, cutoff)
    return "" if near is None else f"; did you mean {near!r}?"
