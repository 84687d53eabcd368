"""The measure of several models, in one pass over the rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank import _core
from linrank.data.dataset import Dataset
from linrank.data.rows import Design, StreamedRows
from linrank.data.scaling import Scaling
from linrank.metrics import Evaluation, Measure
from linrank.metrics import convention as named_convention
from linrank.metrics.evaluate import evaluate_queries
from linrank.system.resources import resolve

Array = NDArray[Any]

_BLOCK_BYTES = 1 << 20  # of rows that stay in cache while every model scores them


def model_scores(
    coefs: Array,
    data: Dataset,
    scaling: Scaling,
    scoring: str,
    *,
    convention: str = "linrank",
    n_jobs: int | None = None,
) -> Array:
    """The measure of every row of ``coefs``, folded already, on the rows of ``data``."""
    coefs = resized_models(coefs, data.n_features)
    scores = score_matrix(coefs, data, scaling, n_jobs)
    return measured(coefs, scores, data, scoring, convention=convention, n_jobs=n_jobs)


def measured(
    coefs: Array,
    scores: Array,
    data: Dataset,
    scoring: str,
    *,
    convention: str = "linrank",
    n_jobs: int | None = None,
) -> Array:
    """The measure of models by the ``scores`` (n_models, n_rows) that they give to the rows.

    ``coefs`` are their coefficients, of features or of kernels.
    """
    found = evaluations(coefs, scores, data, scoring, convention=convention, n_jobs=n_jobs)
    return np.array([next(iter(result.values())) for result in found])


def evaluations(
    coefs: Array,
    scores: Array,
    data: Dataset,
    scoring: str | Measure,
    *,
    convention: str = "linrank",
    n_jobs: int | None = None,
) -> Iterator[Evaluation]:
    """The evaluation of each model by the scores that it gives to the rows, as of `measured`."""
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


def _score_matrix(rows: Design, coefs: Array, n_threads: int) -> Array:
    """``(n_models, n_rows)`` scores; a block of rows is read once and scored by all models."""
    if isinstance(rows, StreamedRows):
        return rows.score_matrix(coefs, n_threads)
    n_rows = rows.shape[0]
    scores = np.empty((len(coefs), n_rows))
    step = max(1, _BLOCK_BYTES * n_threads * n_rows // max(1, rows.nbytes))
    for begin in range(0, n_rows, step):
        block = rows.take(slice(begin, begin + step)).core
        for k, coef in enumerate(coefs):
            scores[k, begin : begin + step] = _core.scores(block, coef, None, n_threads)
    return scores
