"""The numbers of a comparison: from the terms by query to one cell a method and metric."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank.comparison.comparison import Cell, Family, Test
from linrank.comparison.corrections import Correction, corrected
from linrank.comparison.resampling import bootstrap_sums
from linrank.comparison.significance import (
    EQUAL,
    bootstrap_p,
    interval,
    randomisation_p,
    spread,
    t_p,
)
from linrank.comparison.terms import Terms
from linrank.metrics.evaluation import Evaluation
from linrank.metrics.parsing import parse

__all__ = ["Plan", "cells"]

Array = NDArray[Any]


@dataclass(frozen=True)
class Plan:
    """How methods are compared; see `linrank.compare`."""

    test: Test
    correction: Correction | None
    family: Family
    confidence: float
    n_resamples: int
    seed: int
    n_jobs: int | None


def cells(
    evaluations: Sequence[Evaluation], metrics: Sequence[str], baseline: int, plan: Plan
) -> list[list[Cell]]:
    """Return the cells of each method, one a metric; evaluations are of the same queries."""
    terms = Terms.of(evaluations, metrics)
    sums = bootstrap_sums(terms.columns, plan.n_resamples, plan.seed, plan.n_jobs)
    p = _p_values(terms, sums, baseline, plan)
    p_corrected = _corrected(p, plan)
    result = []
    for i, evaluation in enumerate(evaluations):
        row = []
        for j, metric in enumerate(metrics):
            numbers = _interval(terms, sums, i, j, plan.confidence)
            numbers |= _difference(terms, sums, (i, j, baseline), plan.confidence)
            numbers |= _outcomes(metric, evaluation, evaluations[baseline])
            numbers |= {"p": float(p[i, j]), "p_corrected": float(p_corrected[i, j])}
            row.append(Cell(mean=evaluation.means[metric], **numbers))
        result.append(row)
    return result


def _interval(terms: Terms, sums: Array, i: int, j: int, confidence: float) -> dict[str, Any]:
    n_queries = int(np.count_nonzero(terms.judged(j, i)))
    low, high = interval(terms.ratio(sums, i, j), n_queries, confidence)
    return {"low": low, "high": high, "n_queries": n_queries}


def _difference(
    terms: Terms, sums: Array, place: tuple[int, int, int], confidence: float
) -> dict[str, Any]:
    """Difference to the baseline, its interval, and its size in standard deviations."""
    i, j, baseline = place
    difference = terms.difference(terms.sums, *place)
    deviation, n_queries = spread(terms, j, i, baseline)
    low, high = interval(terms.difference(sums, *place), n_queries, confidence)
    if deviation == 0.0:
        effect = math.copysign(math.inf, difference) if abs(difference) > EQUAL else 0.0
    else:
        effect = float(difference / deviation)
    return {
        "difference": float(difference),
        "difference_low": low,
        "difference_high": high,
        "effect_size": effect,
    }


def _outcomes(metric: str, ours: Evaluation, theirs: Evaluation) -> dict[str, Any]:
    """Queries won, tied and lost, of those that count for both."""
    gain = ours.per_query[metric] - theirs.per_query[metric]
    gain = gain[~np.isnan(gain)] * (1.0 if parse(metric).higher_is_better else -1.0)
    wins, losses = (int(np.count_nonzero(side > EQUAL)) for side in (gain, -gain))
    return {"wins": wins, "ties": len(gain) - wins - losses, "losses": losses}


def _p_values(terms: Terms, sums: Array, baseline: int, plan: Plan) -> Array:
    """p of each method and metric, NaN for the baseline."""
    p = np.full(terms.numerator.shape, np.nan)
    places = [(j, i, baseline) for i, j in np.ndindex(p.shape) if i != baseline]
    if plan.test == "randomisation":
        found = randomisation_p(terms, places, plan.n_resamples, plan.seed, plan.n_jobs)
        for (j, i, _), value in zip(places, found, strict=True):
            p[i, j] = value
        return p
    for j, i, _ in places:
        difference = float(terms.difference(terms.sums, i, j, baseline))
        deviation, n_queries = spread(terms, j, i, baseline)
        if plan.test == "t":
            p[i, j] = t_p(difference, deviation, n_queries)
        else:
            draws = terms.difference(sums, i, j, baseline)
            p[i, j] = bootstrap_p(draws, difference, n_queries)
    return p


def _corrected(p: Array, plan: Plan) -> Array:
    if plan.family == "table":
        return corrected(p.ravel(), plan.correction).reshape(p.shape)
    return np.stack([corrected(column, plan.correction) for column in p.T], axis=1)
