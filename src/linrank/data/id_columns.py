"""Columns of query ids among the features: a leak that no score would show."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from linrank.data.frames import all_column_names, is_frame

__all__ = ["check_no_query_ids"]

# As tables spell them, in any case. A column `group` or `query` may well be a feature.
_NAMES = frozenset({"qid", "query_id", "queryid", "group_id", "groupid"})


def check_no_query_ids(X: Any, known: Iterable[str] | None = None) -> None:
    """Raise ValueError for a table that holds query ids beside its features.

    Trained on as one query, the rows would be told apart by the query they belong to, and at
    scoring a column of ids would stand where another feature stood.

    Parameters
    ----------
    X : Any
        Features; what is no table has no names and passes.
    known : iterable of str or None
        Features of a model that is to score `X`: it was trained on these columns, whatever they
        are called. None while training.
    """
    if not is_frame(X):
        return
    trained_on = () if known is None else tuple(known)
    for name in all_column_names(X):
        if not isinstance(name, str) or name.lower() not in _NAMES or name in trained_on:
            continue
        if known is None:
            raise ValueError(
                f"X has a column named {name!r} but qid is None; pass it as qid=X[{name!r}] and "
                "drop the column from X (rename it if it is a feature)"
            )
        raise ValueError(
            f"X has a column named {name!r}, which the model was not trained on; drop it from X "
            f"(pass it as qid=X[{name!r}] where a method takes qid)"
        )
