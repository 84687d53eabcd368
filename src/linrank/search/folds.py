"""How models are judged on rows that they have not seen: validation data, folds, the measure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from linrank import _core
from linrank.choices import N_FOLDS
from linrank.data import Dataset, Scaling, as_sizes, query_folds, row_folds
from linrank.data.rows import Array, Design, StreamedRows
from linrank.metrics import Evaluation, parse
from linrank.metrics import convention as named_convention
from linrank.metrics.evaluate import evaluate_queries
from linrank.metrics.measures import Metric
from linrank.system.resources import resolve

_BLOCK_BYTES = 1 << 20  # of rows that stay in cache while every model scores them


def evaluations(
    coefs: Array,
    scores: Iterable[Any],
    data: Dataset,
    scoring: Metric,
    *,
    convention: str = "linrank",
    n_jobs: int | None = None,
) -> Iterator[Evaluation]:
    """The evaluation of each model by the scores (n_models, n_rows) that it gives to the rows.

    Scores of rows on a device are there, and so are their measures.
    """
    rules = named_convention(convention)
    for coef, by_row in zip(coefs, scores, strict=True):
        # A model of zeros ranks nothing: in input order, rows sorted by label would be perfect.
        chosen = rules if coef.any() else replace(rules, ties="average")
        yield evaluate_queries(
            data.queries, data.labels, by_row, metrics=scoring, convention=chosen, n_jobs=n_jobs
        )


def score_matrix(coefs: Array, data: Dataset, scaling: Scaling, n_jobs: int | None) -> Any:
    """``(n_models, n_rows)``: the scores of models of the same features on the rows.

    Of rows on a device, one vector after the other, which lie there too.
    """
    rows = scaling.transform(data.rows, data.queries, n_jobs=n_jobs)
    return _score_matrix(rows, coefs, resolve(n_jobs))


def resize_models(coefs: Array, n_features: int) -> Array:
    """The models for rows of ``n_features``: a feature that the training rows lack counts 0."""
    if coefs.shape[1] == n_features:
        return coefs
    resized = np.zeros((len(coefs), n_features))
    n_known = min(n_features, coefs.shape[1])
    resized[:, :n_known] = coefs[:, :n_known]
    return resized


def _score_matrix(rows: Design, coefs: Array, n_threads: int, index: Array | None = None) -> Any:
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
        _check_alone(eval_qid, eval_group)
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


def _check_alone(eval_qid: Any, eval_group: Any) -> None:
    for name, value in (("eval_qid", eval_qid), ("eval_group", eval_group)):
        if value is not None:
            raise ValueError(f"{name} is given without eval_set")


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


def validation_sets(
    data: Dataset, X: Any, y: Any, qid: Any, eval_set: Any, eval_qid: Any, eval_group: Any
) -> list[Dataset]:
    """The validation data of ``fit``, in the spelling of scikit-learn or of the tree libraries.

    ``eval_set`` is a list of pairs ``(X, y)``, or one such pair; ``eval_qid`` (ids per row) or
    ``eval_group`` (sizes) has one entry for each. All must match the training `data`.
    """
    filling = data.filling
    n_features = data.n_raw_features
    missing = "error" if filling is None else "keep"
    if eval_set is None:
        _check_alone(eval_qid, eval_group)
        if (X is None) != (y is None) or (X is None and qid is not None):
            raise ValueError("X_val, y_val and qid_val belong together; pass the missing ones")
        listed = [] if X is None else [(X, y, qid, None)]
    elif any(part is not None for part in (X, y, qid)):
        raise ValueError("give X_val, y_val and qid_val, or eval_set, not both")
    else:
        listed = entries(eval_set, eval_qid, eval_group)
    sets = [Dataset.of(X, y, qid=qid, group=group, missing=missing) for X, y, qid, group in listed]
    for held_out in sets:
        if (held_out.qid is None) != (data.qid is None):
            lacking = "validation" if held_out.qid is None else "training"
            remedy = "qid_val (with eval_set: eval_qid or eval_group)"
            remedy = remedy if held_out.qid is None else "qid or group"
            raise ValueError(
                f"the {lacking} data has no query ids, the other has; pass {remedy} too"
            )
        if held_out.n_features != n_features:
            raise ValueError(
                f"the validation rows have {held_out.n_features} features, "
                f"the training rows {n_features}"
            )
    return sets if filling is None else [filling.dataset(held_out) for held_out in sets]


_COPY_BYTES = 2 << 30  # of the copies of training rows that may exist at a time


@dataclass(frozen=True, eq=False)
class Fold:
    """What models are trained on, and what they are measured on."""

    train: Any  # numbers of rows, or of data in parts masks by query for each part; None for all
    valid: Any  # the same, or another data set


@dataclass(frozen=True, eq=False)
class Models:
    """Several models: weights of the columns that a scaling, and a design, make of raw rows."""

    coefs: Array
    scaling: Scaling
    design: Any = None


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
        return [
            Fold(None, held_out)
            for held_out in validation_sets(data, *cv, *(None,) * (6 - len(cv)))
        ]
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


def _row_numbers(rows: Any, n_rows: int, k: int) -> Array:
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
    coefs: Array, data: Dataset, fold: Fold, k: int, scaling: Scaling, scoring: Metric, **how: Any
) -> Array:
    """The measure of every row of ``coefs`` on the validation part of fold k, higher is better.

    ``how`` are the convention and the threads, as `evaluations` has them.
    """
    is_elsewhere = isinstance(data.rows, StreamedRows)
    if isinstance(fold.valid, Dataset) or scaling.needs_queries or is_elsewhere:
        valid = fold.valid if isinstance(fold.valid, Dataset) else data.select(fold.valid)
        coefs = resize_models(coefs, valid.n_features)
        scores = score_matrix(coefs, valid, scaling, how.get("n_jobs"))
    else:
        scores = _score_matrix(data.rows, coefs, resolve(how.get("n_jobs")), fold.valid)
        qid = None if data.qid is None else data.qid[fold.valid]
        valid = Dataset(data.rows.take(slice(0, 0)), data.labels[fold.valid], qid)  # without rows
    return judge_scores(coefs, scores, valid, k, scoring, **how)


def judge_scores(
    coefs: Array, scores: Iterable[Any], valid: Dataset, k: int, scoring: Metric, **how: Any
) -> Array:
    """The same by the ``scores`` (n_models, n_rows) that the models give to the validation rows.

    An error has a minus sign, as the scores of scikit-learn's scorers have. ``coefs`` are those of
    features or of kernels.
    """
    found = evaluations(coefs, scores, valid, scoring, **how)
    values = np.array([next(iter(result.values())) for result in found])
    return sign_scores(values, scoring, k, valid.queries.n_queries)


def sign_scores(values: Array, scoring: Metric, k: int, n_queries: int) -> Array:
    """The measures of models on fold k, an error with a minus sign; ValueError for NaN."""
    if np.isnan(values).any():
        raise ValueError(
            f"{scoring} is undefined on the validation part of fold {k + 1}: none of its "
            f"{n_queries} queries can be judged; use fewer folds or another measure"
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
