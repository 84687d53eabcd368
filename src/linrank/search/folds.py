"""How models are judged on rows that they have not seen: the folds and the measure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank import _core
from linrank.choices import N_FOLDS
from linrank.data.dataset import Dataset
from linrank.data.queries import query_folds, row_folds
from linrank.data.rows import Design, StreamedRows
from linrank.data.scaling import Scaling
from linrank.metrics import Evaluation, parse
from linrank.metrics import convention as named_convention
from linrank.metrics.evaluate import evaluate_queries
from linrank.metrics.measures import Metric
from linrank.search.monitor import validation_sets
from linrank.system.resources import resolve

Array = NDArray[Any]

_BLOCK_BYTES = 1 << 20  # of rows that stay in cache while every model scores them


def evaluations(
    coefs: Array,
    scores: Array,
    data: Dataset,
    scoring: Metric,
    *,
    convention: str = "linrank",
    n_jobs: int | None = None,
) -> Iterator[Evaluation]:
    """The evaluation of each model by the scores (n_models, n_rows) that it gives to the rows."""
    rules = named_convention(convention)
    for coef, by_row in zip(coefs, scores, strict=True):
        # A model of zeros ranks nothing: in input order, rows sorted by label would be perfect.
        chosen = rules if coef.any() else replace(rules, ties="average")
        yield evaluate_queries(
            data.queries, data.labels, by_row, metrics=scoring, convention=chosen, n_jobs=n_jobs
        )


def score_matrix(coefs: Array, data: Dataset, scaling: Scaling, n_jobs: int | None) -> Array:
    """``(n_models, n_rows)``: the scores of models of the same features on the rows."""
    rows = scaling.transform(data.rows, data.queries, n_jobs=n_jobs)
    return _score_matrix(rows, coefs, resolve(n_jobs))


def resized_models(coefs: Array, n_features: int) -> Array:
    """The models for rows of ``n_features``: a feature that the training rows lack counts 0."""
    if coefs.shape[1] == n_features:
        return coefs
    resized = np.zeros((len(coefs), n_features))
    n_known = min(n_features, coefs.shape[1])
    resized[:, :n_known] = coefs[:, :n_known]
    return resized


def _score_matrix(rows: Design, coefs: Array, n_threads: int, index: Array | None = None) -> Array:
    """``(n_models, n_rows)`` scores; a block of rows is read once and scored by all models.

    With ``index`` of these rows, of which a block at a time is copied.
    """
    if isinstance(rows, StreamedRows):
        return rows.score_matrix(coefs, n_threads)
    n_rows = rows.shape[0] if index is None else len(index)
    scores = np.empty((len(coefs), n_rows))
    step = max(1, _BLOCK_BYTES * n_threads * rows.shape[0] // max(1, rows.nbytes))
    for begin in range(0, n_rows, step):
        part = slice(begin, begin + step)
        block = rows.take(part if index is None else index[part]).core
        for k, coef in enumerate(coefs):
            scores[k, begin : begin + step] = _core.scores(block, coef, None, n_threads)
    return scores


_COPY_BYTES = 2 << 30  # of the copies of training rows that may exist at a time


@dataclass(frozen=True, eq=False)
class Fold:
    """What models are trained on, and what they are measured on."""

    train: Any  # numbers of rows, or of data in parts masks by query for each part; None for all
    valid: Any  # the same, or another data set


def deal(data: Dataset, n_folds: int) -> list[Fold]:
    """Folds of whole queries; without query ids, of the rows of the one query there is."""
    if n_folds < 2:
        raise ValueError(f"there must be at least 2 folds, got {n_folds}")
    if data.qid is None:
        fold = row_folds(data.labels, n_folds)
    else:
        fold = query_folds(data.queries, n_folds)
    return [Fold(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(n_folds)]


def as_folds(cv: Any, data: Dataset, X: Any) -> list[Fold]:
    """The folds of an estimator's parameter ``cv``; `N_FOLDS` if it is None."""
    cv = N_FOLDS if cv is None else cv
    if isinstance(cv, tuple):
        if len(cv) not in (2, 3):
            raise ValueError(
                f"cv is a tuple of {len(cv)}; validation data is (X_val, y_val, qid_val), and "
                "pairs of row numbers go into a list"
            )
        return [Fold(None, held_out) for held_out in validation_sets(data, *_three(cv))]
    if isinstance(cv, (int, np.integer)) and not isinstance(cv, bool):
        return deal(data, int(cv))
    if isinstance(cv, (str, bytes, bool)):
        raise _wrong_cv(cv)
    if hasattr(cv, "split"):
        cv = cv.split(X, data.labels, data.qid)
    elif not hasattr(cv, "__iter__"):
        raise _wrong_cv(cv)
    folds = [_fold(data, pair, k) for k, pair in enumerate(cv)]
    if not folds:
        raise ValueError("cv has no folds; an iterator serves one fit only, so pass a list")
    return folds


def _three(cv: tuple[Any, ...]) -> tuple[Any, ...]:
    """The six arguments of ``validation_sets`` from (X_val, y_val[, qid_val])."""
    return (*cv, *(None,) * (6 - len(cv)))


def _fold(data: Dataset, pair: Any, k: int) -> Fold:
    """A split that keeps queries whole, or an error."""
    try:
        first, second = pair
    except (TypeError, ValueError):
        raise ValueError(
            f"cv[{k}] must be a pair (train, test) of row numbers, got {pair!r}"
        ) from None
    train, valid = (_row_numbers(part, data.n_rows, k) for part in (first, second))
    if min(train.size, valid.size) == 0:
        raise ValueError(f"fold {k + 1} of cv has {train.size} training and {valid.size} test rows")
    if data.qid is not None:
        queries = data.queries
        of_row = queries.query_of_rows()
        shared = np.intersect1d(of_row[train], of_row[valid])
        if shared.size:
            name = queries.ids.tolist()[shared[0]] if queries.ids is not None else shared[0]
            raise ValueError(
                f"fold {k + 1} of cv trains and tests on query {name!r} ({shared.size} such "
                "queries); split by query, as QueryKFold does"
            )
    return Fold(train, valid)


def _row_numbers(rows: Any, n_rows: int, k: int) -> NDArray[Any]:
    """Row numbers of a fold, from themselves or from a mask of all rows."""
    part = np.asarray(rows)
    if part.dtype == bool and part.shape == (n_rows,):
        return np.flatnonzero(part)
    if part.ndim != 1 or (part.size and part.dtype.kind not in "iu"):
        raise ValueError(
            f"fold {k + 1} of cv must hold row numbers, got {part.dtype} of shape {part.shape}"
        )
    is_bad = (part < 0) | (part >= n_rows)
    if is_bad.any():
        raise ValueError(
            f"fold {k + 1} of cv has the row {part[is_bad][0]}; those of X are 0 to {n_rows - 1}"
        )
    return part.astype(np.int64)


def _wrong_cv(cv: Any) -> TypeError:
    return TypeError(
        "cv must be a number of folds, a splitter such as QueryKFold(5), a list of pairs "
        f"(train, test), or a tuple (X_val, y_val, qid_val); got {cv!r}"
    )


def affordable_folds(data: Dataset) -> int:
    """Folds at a time where each copies its training rows: the copies must not fill the memory.

    Of rows that lie elsewhere, one: it is elsewhere that the work is done, and it is all for one.
    """
    if isinstance(data.rows, StreamedRows):
        return 1
    return max(1, _COPY_BYTES // max(1, data.rows.nbytes))


def judge(
    coefs: Array,
    data: Dataset,
    fold: Fold,
    k: int,
    scaling: Scaling,
    scoring: Metric,
    **how: Any,
) -> Array:
    """The measure of every row of ``coefs`` on the validation part of fold k, higher is better.

    ``how`` are the convention and the threads, as `evaluations` has them.
    """
    is_elsewhere = isinstance(data.rows, StreamedRows)
    if isinstance(fold.valid, Dataset) or scaling.needs_queries or is_elsewhere:
        valid = fold.valid if isinstance(fold.valid, Dataset) else data.select(fold.valid)
        coefs = resized_models(coefs, valid.n_features)
        scores = score_matrix(coefs, valid, scaling, how.get("n_jobs"))
    else:
        scores = _score_matrix(data.rows, coefs, resolve(how.get("n_jobs")), fold.valid)
        qid = None if data.qid is None else data.qid[fold.valid]
        valid = Dataset(data.rows.take(slice(0, 0)), data.labels[fold.valid], qid)  # without rows
    return judge_scores(coefs, scores, valid, k, scoring, **how)


def judge_scores(
    coefs: Array, scores: Array, valid: Dataset, k: int, scoring: Metric, **how: Any
) -> Array:
    """The same by the ``scores`` (n_models, n_rows) that the models give to the validation rows.

    An error has a minus sign, as the scores of scikit-learn's scorers have. ``coefs`` are those of
    features or of kernels.
    """
    found = evaluations(coefs, scores, valid, scoring, **how)
    values = np.array([next(iter(result.values())) for result in found])
    if np.isnan(values).any():
        raise ValueError(
            f"{scoring} is undefined on the validation part of fold {k + 1}: none of its "
            f"{valid.queries.n_queries} queries can be judged; use fewer folds or another measure"
        )
    return values if parse(scoring).higher_is_better else 0.0 - values


def weight_of_part(
    query_weight: Array | None, data: Dataset, part: Dataset, rows: Array | None
) -> Array | None:
    """The factors c_q in the order of the queries of a part, the ``rows``, of the data."""
    if query_weight is None or rows is None:
        return query_weight
    whole, queries = data.queries, part.queries
    by_row = whole.scatter(np.repeat(query_weight, np.diff(whole.offsets)))
    return queries.gather(by_row[rows])[queries.offsets[:-1]]
