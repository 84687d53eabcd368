"""Folds of whole queries, wherever these lie, and the measure of models on those held out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from linrank.choices import N_FOLDS
from linrank.data import Array, Dataset, fold_of_queries
from linrank.metrics import Measure, parse
from linrank.parts.parts import Extent, Parts, only_queries
from linrank.parts.train import with_highest_label
from linrank.search import Judging, folds


def folds_of(cv: Any, place: Parts, X: Any = None) -> list[folds.Fold]:
    """The folds of an estimator's parameter ``cv``: the same, wherever the rows are.

    In memory their parts are numbers of rows, and a splitter sees ``X``; elsewhere they are masks
    by query, part by part.

    A number of folds looks at the sizes of the queries only. A splitter, or a list of row numbers,
    sees the rows in the order of the queries' first appearance: 8 bytes a row here.
    """
    if place.dataset is not None:
        return folds.as_folds(cv, place.dataset, X)
    cv = N_FOLDS if cv is None else cv
    numbers, lengths = place.query_numbers, place.lengths
    has_ids = place.columns.qid is not None
    sizes = np.empty(place.n_queries, dtype=np.int64)
    sizes[np.concatenate(numbers)] = np.concatenate(lengths)
    if isinstance(cv, int | np.integer) and not isinstance(cv, bool):
        if cv < 2:
            raise ValueError(f"there must be at least 2 folds, got {cv}")
        if not has_ids:
            raise ValueError(
                f"cv={cv} deals out queries, and without qid all rows of {place.where} are one; "
                "give qid, or validation data: cv=(X_val, y_val)"
            )
        fold = fold_of_queries(sizes, int(cv))
        return [_of_queries(numbers, fold != k, fold == k) for k in range(int(cv))]
    query = np.repeat(np.arange(len(sizes)), sizes)
    rows = Extent((len(query), place.columns.n_features))
    stand_in = Dataset(rows, np.zeros(len(query)), query if has_ids else None)  # type: ignore[arg-type]
    return [
        _from_rows(fold, query, numbers, len(sizes))
        for fold in folds.as_folds(cv, stand_in, np.empty((len(query), 0)))
    ]


def _from_rows(
    fold: folds.Fold, query: Array, numbers: Sequence[Array], n_queries: int
) -> folds.Fold:
    """The same fold by query."""
    if isinstance(fold.valid, Dataset):
        return folds.Fold(None, fold.valid)
    is_in = np.zeros((2, n_queries), dtype=bool)
    for k, rows in enumerate((fold.train, fold.valid)):
        if rows is None:
            is_in[k] = True
            continue
        is_in[k, query[rows]] = True
        if is_in[k, query].sum() != len(np.unique(rows)):
            raise ValueError(
                "a fold of cv holds some of the rows of a query and not the others; queries are "
                "trained on, or tested on, whole here"
            )
    return _of_queries(numbers, *is_in)


def _of_queries(numbers: Sequence[Array], train: Array, valid: Array) -> folds.Fold:
    return folds.Fold([train[part] for part in numbers], [valid[part] for part in numbers])


def measure_parts(
    parts: Parts, valid: Sequence[Array], models: folds.Models, k: int, judging: Judging
) -> Array:
    """The measure of the models on the queries that fold k holds out; higher is better."""
    scoring = judging.scoring
    measure = with_highest_label(parse(scoring), parts.select(valid))
    own = [(np.flatnonzero(mask),) if mask.any() else None for mask in valid]
    with parts.opened(None) as data:
        args = (models, measure, judging.convention)
        measured = data.each(measure_queries, *args, per_chunk=own)
    found = [part for part in measured if part is not None]
    numerator = np.concatenate([part[0] for part in found], axis=1)
    denominator = np.concatenate([part[1] for part in found], axis=1).sum(axis=1)
    sums = np.array([math.fsum(row) for row in numerator.tolist()])
    values = np.divide(sums, denominator, out=np.full(len(sums), np.nan), where=denominator > 0.0)
    return folds.sign_scores(values, scoring, k, numerator.shape[1])


def measure_queries(
    data: Dataset,
    kept: Array,
    models: folds.Models,
    measure: Measure,
    convention: str,
    *,
    n_threads: int = 1,
) -> tuple[Array, Array]:
    """Numerators and denominators (n_models, n_kept) whose sums' ratio is the mean of a measure."""
    part = only_queries(data, kept)
    part = part if models.design is None else models.design.dataset(part, n_threads)
    coefs = folds.resize_models(models.coefs, part.n_features)
    scores = folds.score_matrix(coefs, part, models.scaling, n_threads)
    found = folds.evaluations(coefs, scores, part, measure, convention=convention, n_jobs=n_threads)
    terms = [result.terms(next(iter(result))) for result in found]
    return np.array([t[0] for t in terms]), np.array([t[1] for t in terms])
