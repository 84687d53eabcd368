"""What models of every kind check and say: names, summary, and the rows that they score."""

from __future__ import annotations

import math
import numbers
from typing import TYPE_CHECKING, Any

import numpy as np

from linrank.data.dataset import Dataset, check_no_query_ids
from linrank.data.frames import check_names, column_names
from linrank.data.queries import Queries
from linrank.data.rows import as_rows, check_values
from linrank.pairs import chosen_sizes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from linrank.data.rows import Rows

Scalar = str | int | float | bool | None


def checked_names(names: Any, n_features: int) -> tuple[str, ...] | None:
    """Feature names as a tuple, one for each feature."""
    if names is None:
        return None
    checked = tuple(names)
    for name in checked:
        if not isinstance(name, str):
            raise TypeError(f"feature names must be strings, got {name!r}")
    check_names(checked)
    if len(checked) != n_features:
        raise ValueError(f"{len(checked)} feature names for {n_features} features")
    return checked


def checked_training(training: Mapping[Any, Any]) -> dict[str, Scalar]:
    """The summary of a training run as plain Python values."""
    return {str(key): _scalar(key, value) for key, value in training.items()}


def _scalar(key: Any, value: Any) -> Scalar:
    """A plain Python value; None for a number that JSON cannot hold."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, np.bool_):
        return bool(value)
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, numbers.Real):
        return float(value) if math.isfinite(value) else None
    raise TypeError(f"training[{key!r}] must be a number, a string or None, got {value!r}")


def raw_rows(
    X: Any, feature_names: Sequence[str] | None, n_jobs: int | None = None, check: str = "finite"
) -> Rows:
    """The rows of what a model is to score, whose names, if it has any, are those of the model."""
    if isinstance(X, Dataset):
        check_same_names(X.feature_names, feature_names)
        if check == "finite":  # it may have been read with missing="keep"
            check_values(X.rows, feature_names, n_jobs=n_jobs)
        return X.rows
    check_no_query_ids(X, feature_names or ())
    check_same_names(column_names(X), feature_names)
    return as_rows(X, n_jobs=n_jobs, check=check)


def check_same_names(names: Sequence[str] | None, expected: Sequence[str] | None) -> None:
    """Refuse columns in another order than those that a model was trained on."""
    if names is None or expected is None or names == expected:
        return
    for j, (got, known) in enumerate(zip(names, expected, strict=False)):
        if got != known:
            raise ValueError(
                f"feature {j} is {got!r}, the model was trained with {known!r} there; "
                "select the columns in the order of model.feature_names"
            )


def has_non_finite(scores: NDArray[np.float64]) -> bool:
    """Whether any of the scores is NaN or infinite."""
    with np.errstate(over="ignore", invalid="ignore"):
        total = scores.sum()  # a finite sum has finite terms, and needs no array of answers
    return not (math.isfinite(total) or bool(np.isfinite(scores).all()))


def check_scores(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """The scores of finite rows; those that are none, which nothing can be ranked by, are refused.

    Finite values and coefficients may have products, or sums of them, beyond float64.
    """
    if has_non_finite(scores):
        is_bad = ~np.isfinite(scores)
        row = int(np.argmax(is_bad))
        raise ValueError(
            f"the score of row {row} is {scores[row]} ({int(is_bad.sum())} such rows): its values "
            "times the coefficients are beyond the largest float64, 1.8e308; divide such features "
            "by their size before training and scoring, or drop these rows"
        )
    return scores


def queries_of(X: Any, n_rows: int, qid: Any) -> Queries:
    """How rows are grouped, for a model that scales within queries."""
    if isinstance(X, Dataset):
        return X.queries
    if qid is None:
        raise ValueError(
            "this model scales every feature within its query (scale='query'), so scoring "
            "needs qid: one query id per row"
        )
    return Queries.of(np.zeros(n_rows), qid=qid)


def sizes_of_pairs(queries: Queries, training: Mapping[str, Scalar]) -> dict[str, Scalar]:
    """How many pairs were compared, of each kind where there are kinds; None for other kinds."""
    asked: Any = {name: training.get(name, "auto") for name in ("n_closest", "n_random")}
    none: dict[str, Scalar] = {name: None for name in asked if name in training}
    return none | chosen_sizes(queries, str(training.get("pairs", "all")), **asked)
