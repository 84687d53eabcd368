"""Comparison of rankers by their scores, or by evaluations that are there already."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from linrank.comparison import significance
from linrank.comparison.comparison import Cell, Comparison, Family, Test
from linrank.comparison.corrections import CORRECTIONS, Correction, corrected
from linrank.comparison.resampling import bootstrap_sums
from linrank.comparison.terms import Terms
from linrank.metrics import DEFAULT_METRICS, Convention, Evaluation, Measure, evaluate, parse
from linrank.seeds import seed_of

__all__ = ["compare", "compare_evaluations"]

Array = NDArray[Any]
_EQUAL = 1e-9  # values of a query that differ by less are tied


def compare(
    y: Any,
    scores: Mapping[str, Any],
    *,
    qid: Any = None,
    group: Any = None,
    metrics: str | Measure | Iterable[str | Measure] = DEFAULT_METRICS,
    convention: str | Convention = "linrank",
    docid: Any = None,
    baseline: str | None = None,
    test: Test = "randomisation",
    correction: Correction | None = "holm",
    family: Family = "metric",
    confidence: float = 0.95,
    n_resamples: int = 10_000,
    random_state: Any = 0,
    n_jobs: int | None = None,
) -> Comparison:
    """Compare methods."""
    if not isinstance(scores, Mapping):
        raise TypeError(
            "scores must map the name of each method to its scores, as in "
            f"{{'old': s, 'new': t}}; got {type(scores).__name__}"
        )
    evaluations = {
        name: evaluate(
            y,
            values,
            qid=qid,
            group=group,
            metrics=metrics,
            convention=convention,
            docid=docid,
            n_jobs=n_jobs,
        )
        for name, values in scores.items()
    }
    return compare_evaluations(
        evaluations,
        baseline=baseline,
        test=test,
        correction=correction,
        family=family,
        confidence=confidence,
        n_resamples=n_resamples,
        random_state=random_state,
        n_jobs=n_jobs,
    )


def compare_evaluations(
    evaluations: Mapping[str, Evaluation],
    *,
    metrics: Iterable[str | Measure] | str | Measure | None = None,
    baseline: str | None = None,
    test: Test = "randomisation",
    correction: Correction | None = "holm",
    family: Family = "metric",
    confidence: float = 0.95,
    n_resamples: int = 10_000,
    random_state: Any = 0,
    n_jobs: int | None = None,
) -> Comparison:
    """Compare methods that were evaluated on the same queries."""
    methods = tuple(evaluations)
    parts = list(evaluations.values())
    names = tuple(parts[0]) if metrics is None else tuple(str(parse(m)) for m in metrics)
    base = methods[0] if baseline is None else baseline
    seed = seed_of(random_state)
    terms = Terms.of(parts, names)
    resampled = bootstrap_sums(terms.columns, n_resamples, seed, n_jobs)
    b = methods.index(base)
    grid = [(j, i, b) for j in range(len(names)) for i in range(len(methods)) if i != b]
    draws = {
        (i, j): terms.ratio(resampled, i, j) for i in range(len(methods)) for j in range(len(names))
    }
    if test == "randomisation":
        ps = significance.randomisation_p(terms, grid, n_resamples, seed, n_jobs)
    p = dict(zip([(i, j) for j, i, _ in grid], ps, strict=True))
    cells = {}
    for j, metric in enumerate(names):
        own = [p.get((i, j), math.nan) for i in range(len(methods))]
        adjusted = corrected(own, correction)
        for i, method in enumerate(methods):
            cells[method, metric] = _cell(
                terms, draws, parts, (i, j, b), metric, own[i], adjusted[i], confidence
            )
    return Comparison(
        methods, names, base, cells, parts[0].n_queries, test, correction, family, confidence,
        n_resamples, seed, parts[0].convention,
    )


def _cell(terms, draws, parts, place, metric, p, p_corrected, confidence):
    i, j, b = place
    n = int(np.count_nonzero(terms.judged(j, i)))
    low, high = significance.interval(draws[i, j], n, confidence)
    values, against = parts[i].per_query[metric], parts[b].per_query[metric]
    both = ~(np.isnan(values) | np.isnan(against))
    gain = (values - against)[both]
    sign = 1 if parse(metric).higher_is_better else -1
    wins = int(np.count_nonzero(sign * gain > _EQUAL))
    losses = int(np.count_nonzero(sign * gain < -_EQUAL))
    mean = parts[i].means[metric]
    difference = mean - parts[b].means[metric]
    deviation, m = significance.spread(terms, j, i, b)
    dl, dh = significance.interval(draws[i, j] - draws[b, j], m, confidence)
    effect = difference / deviation if deviation else (0.0 if difference == 0 else math.nan)
    return Cell(mean, low, high, difference, dl, dh, p, p_corrected, wins, len(gain) - wins - losses,
                losses, effect, n)
