"""Comparison of rankers by their scores, or by evaluations that are there already."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, get_args

from linrank.comparison.cells import Plan, cells
from linrank.comparison.comparison import Comparison, Family, Test
from linrank.comparison.corrections import CORRECTIONS, Correction
from linrank.comparison.inputs import (
    aligned,
    check_choice,
    check_methods,
    check_numbers,
    chosen_metrics,
)
from linrank.metrics import DEFAULT_METRICS, Convention, Evaluation, Measure, evaluate
from linrank.seeds import seed_of

__all__ = ["compare", "compare_evaluations"]


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
    """Return means, intervals and tests of several methods over the same queries.

    Queries are the sample: another set of queries like these would give other means, and intervals
    and p-values say how far. Every metric is a ratio of sums over queries, ``R = Σ_q num_q / Σ_q
    den_q`` (see `Evaluation.terms`), so that what pools all pairs is treated right too. The
    difference of a method to the baseline is ``T = R_method - R_baseline``.

    Parameters
    ----------
    y : array (n_rows,)
        Labels; higher is better.
    scores : mapping from str to array (n_rows,)
        Scores of each method by its name. One method alone has intervals and no tests.
    qid, group, metrics, convention, docid
        As in `evaluate`. Metrics of which lower is better are compared that way.
    baseline : str, optional
        The method that the others are compared with; the first by default.
    test : {"randomisation", "t", "bootstrap"}, default="randomisation"
        Two-sided, of ``T = 0``:

        - ``"randomisation"``: share of the ways to exchange the results of the two methods on any
          of the queries that give at least ``|T|``. All ways, an exact test, if at most 16 queries
          differ; else N random ones, with ``p = (1 + #)/(1 + N)``.
        - ``"t"``: the paired t-test, ``t = T·√n / s`` with n - 1 degrees of freedom, s being the
          standard deviation of the queries' differences (for pooled metrics, of their influence on
          T, by which this is the delta method).
        - ``"bootstrap"``: ``(1 + #{|T* - T| >= |T|}) / (1 + N)`` over resampled queries.
    correction : {"holm", "bonferroni", "bh"} or None, default="holm"
        For several comparisons; see `linrank.comparison.corrected`.
    family : {"metric", "table"}, default="metric"
        The p-values corrected together: those of the methods under one metric, for who decides by
        one metric and reads the others beside it; or all of the table.
    confidence : float, default=0.95
        Of the intervals, inside (0, 1). A corrected p below ``1 - confidence`` is a verdict.
    n_resamples : int, default=10,000
        N: resamples of the queries for the intervals, and of the test.
    random_state : int, Generator, RandomState or None, default=0
        Seed. Results depend on it, not on ``n_jobs``.
    n_jobs : int, optional
        Threads; None uses all cores.

    Returns
    -------
    Comparison
        ``print`` shows it with a legend; ``cells[method, metric]`` has the numbers.

    Notes
    -----
    The interval is the percentile bootstrap with its level widened for few queries: ends at
    ``Φ(√(n/(n-1))·t_{n-1}(α/2))`` instead of ``α/2``. With a single query there is none (NaN), the
    randomisation test gives 1, the others NaN. Where no query differs p is 1. A metric in which
    no query takes part is NaN throughout.

    Examples
    --------
    >>> y, qid = [1, 0, 0] * 6, [q for q in range(6) for _ in range(3)]
    >>> old = [2, 3, 1] * 5 + [3, 2, 1]
    >>> new = [3, 2, 1] * 6
    >>> result = compare(y, {"old": old, "new": new}, qid=qid, metrics="mrr")
    >>> cell = result.cells["new", "mrr"]
    >>> round(cell.difference, 4), cell.p, (cell.wins, cell.ties, cell.losses)
    (0.4167, 0.0625, (5, 1, 0))
    """
    check_methods(scores, "scores")
    metrics = metrics if isinstance(metrics, (str, Measure)) else list(metrics)
    evaluations = {}
    for name, values in scores.items():
        try:
            evaluations[name] = evaluate(
                y,
                values,
                qid=qid,
                group=group,
                metrics=metrics,
                convention=convention,
                docid=docid,
                n_jobs=n_jobs,
            )
        except ValueError as error:
            raise ValueError(f"method {name!r}: {error}") from None
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
    metrics: str | Measure | Iterable[str | Measure] | None = None,
    baseline: str | None = None,
    test: Test = "randomisation",
    correction: Correction | None = "holm",
    family: Family = "metric",
    confidence: float = 0.95,
    n_resamples: int = 10_000,
    random_state: Any = 0,
    n_jobs: int | None = None,
) -> Comparison:
    """Return what `compare` does, of methods that were evaluated already.

    Test sets of several folds become one evaluation by `Evaluation.joined`.

    Parameters
    ----------
    evaluations : mapping from str to Evaluation
        By the name of the method. All are of the same queries, in any order, and follow the same
        convention; otherwise ValueError says what differs.
    metrics : names or measures, optional
        Those to compare; by default all that the first method was evaluated by.
    baseline, test, correction, family, confidence, n_resamples, random_state, n_jobs
        As in `compare`.

    Examples
    --------
    >>> from linrank import evaluate
    >>> folds = [([1, 0, 1, 0], [2, 1, 3, 4]), ([0, 1, 1, 0], [1, 2, 3, 4])]
    >>> parts = [evaluate(y, s, qid=[1, 1, 2, 2], metrics="mrr") for y, s in folds]
    >>> whole = Evaluation.joined(parts)
    >>> whole.query_ids.tolist(), whole["mrr"]
    (['1:1', '1:2', '2:1', '2:2'], 0.75)
    >>> compare_evaluations({"mine": whole})
    <Comparison of mine on mrr, 4 queries, baseline mine>
    """
    check_methods(evaluations, "evaluations")
    check_choice("test", test, get_args(Test))
    check_choice("correction", correction, (*CORRECTIONS, None))
    check_choice("family", family, get_args(Family))
    check_numbers(confidence, n_resamples)
    methods = tuple(evaluations)
    chosen = methods[0] if baseline is None else baseline
    check_choice("baseline", chosen, methods)
    names = chosen_metrics(evaluations, metrics)
    parts = aligned(evaluations)
    plan = Plan(test, correction, family, confidence, n_resamples, seed_of(random_state), n_jobs)
    rows = cells(parts, names, methods.index(chosen), plan)
    return Comparison(
        methods,
        names,
        chosen,
        {(m, n): rows[i][j] for i, m in enumerate(methods) for j, n in enumerate(names)},
        parts[0].n_queries,
        test,
        correction,
        family,
        confidence,
        n_resamples,
        plan.seed,
        parts[0].convention,
    )
