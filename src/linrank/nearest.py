"""The known name that a wrong one is nearest to, for messages."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["did_you_mean", "nearest"]

_LONGEST = 100  # characters; comparing two names takes the product of their lengths
_MOST = 50_000  # a second


def nearest(name: object, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """The most similar of the known names; None where none is alike by at least ``cutoff``.

    A message must not take longer than the work that it is about: long names, which nobody
    misspells, are not compared, nor is any where there are very many.
    """
    import difflib  # needed only to say what is wrong

    wrong, names = str(name), [one for one in known if len(one) <= _LONGEST]
    if len(wrong) > _LONGEST or len(names) > _MOST:
        return None
    near = difflib.get_close_matches(wrong, names, n=1, cutoff=cutoff)
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
