"""Validation data in the spelling of the tree libraries: eval_set, eval_qid, eval_group."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from linrank.data.queries import as_sizes

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["entries", "folds_or_validation"]


def entries(eval_set: Any, eval_qid: Any, eval_group: Any) -> list[tuple[Any, Any, Any, Any]]:
    """``(X, y, qid, group)`` of every validation set, as given."""
    pairs = [eval_set] if isinstance(eval_set, tuple) and len(eval_set) == 2 else list(eval_set)
    qids, groups = (
        _one_each("eval_qid", eval_qid, pairs),
        _one_each("eval_group", eval_group, pairs),
    )
    return [(X, y, q, g) for (X, y), q, g in zip(pairs, qids, groups, strict=True)]


def folds_or_validation(
    cv: Any, eval_set: Any = None, eval_qid: Any = None, eval_group: Any = None
) -> Any:
    """The parameter ``cv``, or the validation data of ``fit`` as ``(X, y, qid)`` in its place.

    Of several pairs in ``eval_set`` the last one decides, as it does for `early_stopping`.
    """
    if eval_set is None:
        for name, value in (("eval_qid", eval_qid), ("eval_group", eval_group)):
            if value is not None:
                raise ValueError(f"{name} is given without eval_set")
        return cv
    if cv is not None:
        raise ValueError(
            f"eval_set is there to choose by, and cv={cv!r} too; leave one of them out"
        )
    sets = entries(eval_set, eval_qid, eval_group)
    if not sets:
        raise ValueError("eval_set is empty; give a pair (X, y), or leave it out")
    X, y, qid, group = sets[-1]
    if group is None:
        return X, y, qid
    if qid is not None:
        raise ValueError("give eval_qid (one id per row) or eval_group (sizes), not both")
    sizes = as_sizes(group, len(y))
    return X, y, np.repeat(np.arange(len(sizes)), sizes)


def _one_each(name: str, values: Any, pairs: Sequence[Any]) -> list[Any]:
    if values is None:
        return [None] * len(pairs)
    each = list(values)
    # A single validation set may come without the list around it.
    if len(pairs) == 1 and (len(each) != 1 or np.ndim(each[0]) == 0):
        return [values]
    if len(each) != len(pairs):
        raise ValueError(f"{name} has {len(each)} entries for {len(pairs)} pairs in eval_set")
    return each
