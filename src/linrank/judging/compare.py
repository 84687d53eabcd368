"""Comparison of rankers by their scores, or by evaluations that are there already."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from linrank.errors import check_natural, check_one_of
from linrank.judging import significance
from linrank.judging.significance import EQUAL, Correction, Terms, correct_p_values
from linrank.metrics import DEFAULT_METRICS, Convention, Evaluation, evaluate
from linrank.metrics.evaluate import measures_of
from linrank.metrics.measures import Metric, parse
from linrank.system import Column, Table, Tabled, count, seed_of


def check_methods(methods: Any, what: str) -> None:
    """Raise unless ``methods`` maps names to something."""
    if not isinstance(methods, Mapping):
        raise TypeError(
            f"{what} must map the name of each method to what it gave, as in "
            f"{{'old': ..., 'new': ...}}; got {type(methods).__name__}"
        )
    if not methods:
        raise ValueError(f"{what} is empty; give at least one method")
    for name in methods:
        if not isinstance(name, str):
            raise TypeError(f"the name of a method must be a string, got {name!r}")


def common_metrics(
    evaluations: Mapping[str, Evaluation], metrics: Metric | Iterable[Metric] | None
) -> tuple[str, ...]:
    """The names of the metrics to compare, each evaluated for all methods."""
    first, evaluation = next(iter(evaluations.items()))
    names = tuple(evaluation) if metrics is None else tuple(map(str, measures_of(metrics)))
    for method, evaluation in evaluations.items():
        missing = [name for name in names if name not in evaluation.means]
        if missing:
            beside = "" if method == first or metrics is not None else f", but {first!r} was"
            raise ValueError(
                f"{method!r} was not evaluated by {missing[0]}{beside} (it has "
                f"{', '.join(evaluation)}); evaluate all methods with the same metrics"
            )
    return names


def align_queries(evaluations: Mapping[str, Evaluation]) -> list[Evaluation]:
    """The evaluations with their queries in the order of the first; of the same queries only."""
    (first, reference), *others = evaluations.items()
    result = [reference]
    for method, evaluation in others:
        if evaluation.convention != reference.convention:
            raise ValueError(
                f"{method!r} was evaluated under the convention {evaluation.convention.name!r} but "
                f"{first!r} under {reference.convention.name!r}; their numbers cannot be compared"
            )
        ids, theirs = (
            [None] if one.query_ids is None else one.query_ids.tolist()
            for one in (reference, evaluation)
        )
        place, known = {query: k for k, query in enumerate(theirs)}, set(ids)
        absent = [query for query in ids if query not in place]
        extra = [query for query in theirs if query not in known]
        if absent or extra:
            example = (absent or extra)[0]
            has, lacks = (first, method) if absent else (method, first)
            raise ValueError(
                f"{first!r} has {len(ids)} queries and {method!r} {len(theirs)}, of which "
                f"{len(ids) - len(absent)} are the same; query {example!r} of {has!r} is missing "
                f"in {lacks!r}. Evaluate both on the same queries"
            )
        result.append(evaluation.take_queries([place[query] for query in ids]))
    return result


Test = Literal["randomization", "t"]
Verdict = Literal["baseline", "better", "worse", "unclear"]


@dataclass(frozen=True)
class Cell:
    """One method under one metric, beside the baseline. Undefined numbers are NaN.

    Attributes
    ----------
    mean, low, high : float
        The metric, and the bootstrap interval for it.
    difference, difference_low, difference_high : float
        Mean of the method less that of the baseline, with the interval for this difference; 0 for
        the baseline itself. Negative is better where lower is better.
    p, p_corrected : float
        Chance of a difference at least as large if the methods were alike; NaN for the baseline.
    wins, ties, losses : int
        Queries on which the method is better than the baseline, equal (to 1e-9) and worse.
    effect_size : float
        The difference in standard deviations of it over queries (Cohen's d of paired values).
    n_queries : int
        Queries that take part in the mean.
    """

    mean: float
    low: float
    high: float
    difference: float
    difference_low: float
    difference_high: float
    p: float
    p_corrected: float
    wins: int
    ties: int
    losses: int
    effect_size: float
    n_queries: int


@dataclass(frozen=True, eq=False)
class Comparison(Tabled):
    """Methods compared with a baseline over the same queries.

    ``print(comparison)`` shows it with a legend; a notebook shows it as HTML.

    Attributes
    ----------
    methods, metrics : tuple of str
        In the order given.
    baseline : str
        The method that all others are compared with.
    cells : dict of (method, metric) to Cell
    n_queries : int
        Queries in all; a metric may leave some of them out.
    test : {"randomization", "t"}
    correction : {"holm", "bonferroni", "bh"} or None
        Of the p-values under each metric.
    confidence : float
        Of the intervals; a corrected p below ``1 - confidence`` counts as a difference.
    n_resamples, seed : int
    convention : Convention
        The choices behind the metrics.
    """

    methods: tuple[str, ...]
    metrics: tuple[str, ...]
    baseline: str
    cells: dict[tuple[str, str], Cell]
    n_queries: int
    test: Test
    correction: Correction | None
    confidence: float
    n_resamples: int
    seed: int
    convention: Convention

    def higher_is_better(self, metric: str) -> bool:
        """Whether a larger mean of the metric is the better one."""
        return parse(metric).higher_is_better

    def verdict(self, method: str, metric: str) -> Verdict:
        """Return "better" or "worse" if the corrected p is below ``1 - confidence``."""
        if method == self.baseline:
            return "baseline"
        cell = self.cells[method, metric]
        # 1 - 0.95 is 0.050000000000000044: rounding must not make p = 0.05 pass.
        if not cell.p_corrected < round(1.0 - self.confidence, 12) or cell.difference == 0.0:
            return "unclear"
        return "better" if (cell.difference > 0.0) == self.higher_is_better(metric) else "worse"

    def tables(self) -> list[Table]:
        """All metrics, then each by itself."""
        first = [overview(self, self.methods)] if len(self.metrics) > 1 else []
        return first + [details(self, metric) for metric in self.metrics]

    def legend(self) -> list[str]:
        """What stands in each column, how it came about, and what it does not say."""
        percent = f"{100 * self.confidence:g}%"
        lines = [
            f"interval: where the mean over all queries of this kind lies, with {percent} "
            f"confidence; bootstrap over queries, {self.n_resamples:,} resamples, seed {self.seed}."
        ]
        if len(self.methods) > 1:
            lines += _notes_on_tests(self)
        if any(math.isnan(cell.mean) or math.isnan(cell.low) for cell in self.cells.values()):
            lines.append(
                "undefined: the metric can judge no query, or a single one, which has no interval."
            )
        lines.append(f"convention: {self.convention.describe()}.")
        return [" ".join(line.split()) for line in lines]  # a name may hold a line break

    def to_dict(self) -> dict[str, Any]:
        """Return plain Python values, ready for JSON; None for what is undefined."""
        apart = ("methods", "metrics", "cells", "convention")
        return {
            **{name: value for name, value in vars(self).items() if name not in apart},
            "convention": self.convention.describe(),
            "metrics": {
                metric: {
                    "higher_is_better": self.higher_is_better(metric),
                    "methods": {m: self._row(m, metric) for m in self.methods},
                }
                for metric in self.metrics
            },
        }

    def _row(self, method: str, metric: str) -> dict[str, Any]:
        values = dataclasses.asdict(self.cells[method, metric])
        plain = {name: value if math.isfinite(value) else None for name, value in values.items()}
        return {**plain, "verdict": self.verdict(method, metric)}

    def __repr__(self) -> str:
        return (
            f"<Comparison of {', '.join(self.methods)} on {', '.join(self.metrics)}, "
            f"{self.n_queries} queries, baseline {self.baseline}>"
        )


_BLANK = "\u2003"  # an em space: as wide as a mark, and kept by HTML
_MARKS = {"better": "▲", "worse": "▼", "unclear": _BLANK, "baseline": _BLANK}


def overview(comparison: Comparison, methods: Sequence[str]) -> Table:
    """Means of all metrics, one row per method."""
    lower = [m for m in comparison.metrics if not comparison.higher_is_better(m)]
    columns = [Column(f"{m} ↓" if m in lower else m) for m in comparison.metrics]
    rows = []
    for method in methods:
        rows.append([_name(comparison, method)])
        for metric in comparison.metrics:
            mark = _MARKS[comparison.verdict(method, metric)]
            rows[-1].append(f"{_number(comparison.cells[method, metric].mean)} {mark}")
    title = f"Means over {count(comparison.n_queries, 'query', 'queries')}"
    if len(comparison.methods) > 1:
        title += f"; ▲ better, ▼ worse than {comparison.baseline}, no mark: unclear"
    if lower:
        title += "; ↓ lower is better"
    return Table([Column("method", "left"), *columns], rows, title)


def details(comparison: Comparison, metric: str) -> Table:
    """Everything on one metric, the best method first."""
    percent = f"{100 * comparison.confidence:g}%"
    columns = [Column("method", "left"), Column("mean"), Column(f"{percent} interval")]
    if len(comparison.methods) > 1:
        p = "p" if comparison.correction is None else "corrected p"
        columns += [Column("difference"), Column(f"its {percent} interval"), Column(p)]
        columns += [Column("won/tied/lost"), Column("verdict", "left")]
    rows = []
    for method in best_first(comparison, metric):
        cell = comparison.cells[method, metric]
        row = [_name(comparison, method), _number(cell.mean), _range(cell.low, cell.high)]
        if method != comparison.baseline:
            row += [_number(cell.difference, "+")]
            row += [_range(cell.difference_low, cell.difference_high, "+"), _p(cell.p_corrected)]
            row += [f"{cell.wins}/{cell.ties}/{cell.losses}", comparison.verdict(method, metric)]
        rows.append(row + [""] * (len(columns) - len(row)))
    judged = max(comparison.cells[m, metric].n_queries for m in comparison.methods)
    direction = "higher" if comparison.higher_is_better(metric) else "lower"
    queries = count(judged, "query", "queries")
    return Table(columns, rows, f"{metric}: {direction} is better; {queries}")


def _notes_on_tests(comparison: Comparison) -> list[str]:
    base, resamples = comparison.baseline, f"{comparison.n_resamples:,}"
    test = {
        "randomization": f"randomization test, {resamples} random exchanges of the two methods by "
        f"query (all exchanges where at most {significance.EXACT_UP_TO} queries differ)",
        "t": "paired t-test over queries",
    }[comparison.test]
    correction = "Not corrected for several comparisons."
    if comparison.correction is not None:
        name = {"holm": "Holm", "bonferroni": "Bonferroni", "bh": "Benjamini and Hochberg"}
        correction = f"Corrected after {name[comparison.correction]} for "
        correction += f"{count(len(comparison.methods) - 1, 'comparison')} under each metric."
    return [
        f"difference: mean of the method less that of {base}, over the same queries.",
        f"p: chance of a difference at least this large, in either direction, if the method and "
        f"{base} were equally good; {test}. {correction}",
        f"won/tied/lost: queries on which the method is better than {base}, as good, and worse.",
        f"verdict: better or worse where this p is below {1 - comparison.confidence:.4g}. Unclear "
        "does not mean equally good: these queries do not tell.",
    ]


def best_first(comparison: Comparison, metric: str) -> list[str]:
    """The methods by a metric, those without a value last."""
    sign = -1.0 if comparison.higher_is_better(metric) else 1.0
    means = {method: sign * comparison.cells[method, metric].mean for method in comparison.methods}
    return sorted(means, key=lambda method: (math.isnan(means[method]), means[method]))


def _name(comparison: Comparison, method: str) -> str:
    alone = len(comparison.methods) == 1
    return method if alone or method != comparison.baseline else f"{method} (baseline)"


def _number(value: float, sign: str = "") -> str:
    shown = f"{value:{sign}.4f}"
    return "undefined" if math.isnan(value) else "0.0000" if float(shown) == 0.0 else shown


def _range(low: float, high: float, sign: str = "") -> str:
    if math.isnan(low) or math.isnan(high):
        return "undefined"
    return f"{_number(low, sign)} to {_number(high, sign)}"


def _p(value: float) -> str:
    if math.isnan(value):
        return "undefined"
    return "< 0.0001" if value < 0.0001 else f"{value:.4f}"


def cells(
    plan: Comparison, evaluations: Sequence[Evaluation], n_jobs: int | None
) -> dict[tuple[str, str], Cell]:
    """The cells of a comparison that has none yet; evaluations are of the same queries."""
    terms = Terms.of(evaluations, plan.metrics)
    baseline = plan.methods.index(plan.baseline)
    p = np.full(terms.numerator.shape, np.nan)
    others = [(j, i, baseline) for i, j in np.ndindex(p.shape) if i != baseline]
    if plan.test == "t":
        found = []
        for j, i, _ in others:
            T = float(terms.difference(terms.sums, i, j, baseline))
            spread = significance.influence_deviation(terms, j, i, baseline)
            found.append(significance.t_p(T, *spread))
    else:
        found = significance.randomization_p(terms, others, plan.n_resamples, plan.seed, n_jobs)
    for (j, i, _), value in zip(others, found, strict=True):
        p[i, j] = value
    corrected = np.stack([correct_p_values(column, plan.correction) for column in p.T], axis=1)
    sums = significance.bootstrap_sums(terms.columns, plan.n_resamples, plan.seed, n_jobs)
    result = {}
    for i, j in np.ndindex(p.shape):
        metric = plan.metrics[j]
        n_queries = int(np.count_nonzero(terms.takes_part(j, i)))
        ends = significance.interval(terms.ratio(sums, i, j), n_queries, plan.confidence)
        difference = float(terms.difference(terms.sums, i, j, baseline))
        deviation, n_both = significance.influence_deviation(terms, j, i, baseline)
        draws = terms.difference(sums, i, j, baseline)
        reach = significance.interval(draws, n_both, plan.confidence)
        if deviation == 0.0:
            effect = math.copysign(math.inf, difference) if abs(difference) > EQUAL else 0.0
        else:
            effect = difference / deviation
        # Queries won, tied and lost, of those that count for both.
        gain = evaluations[i].per_query[metric] - evaluations[baseline].per_query[metric]
        gain = gain[~np.isnan(gain)] * (1.0 if parse(metric).higher_is_better else -1.0)
        wins, losses = (int(np.count_nonzero(side > EQUAL)) for side in (gain, -gain))
        tests = difference, *reach, float(p[i, j]), float(corrected[i, j])
        counts = wins, len(gain) - wins - losses, losses
        mean = evaluations[i].means[metric]
        result[plan.methods[i], metric] = Cell(mean, *ends, *tests, *counts, effect, n_queries)
    return result


def compare(
    y: Any,
    scores: Mapping[str, Any],
    *,
    qid: Any = None,
    group: Any = None,
    metrics: Metric | Iterable[Metric] = DEFAULT_METRICS,
    convention: str | Convention = "linrank",
    docid: Any = None,
    baseline: str | None = None,
    test: Test = "randomization",
    correction: Correction | None = "holm",
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
    test : {"randomization", "t"}, default="randomization"
        Two-sided, of ``T = 0``:

        - ``"randomization"``: share of the ways to exchange the results of the two methods on any
          of the queries that give at least ``|T|``. All ways, an exact test, if at most 16 queries
          differ; else N random ones, with ``p = (1 + #)/(1 + N)``.
        - ``"t"``: the paired t-test, ``t = T·√n / s`` with n - 1 degrees of freedom, s being the
          standard deviation of the queries' differences (for pooled metrics, of their influence on
          T, by which this is the delta method).
    correction : {"holm", "bonferroni", "bh"} or None, default="holm"
        For several methods under one metric; see `linrank.judging.significance.correct_p_values`.
    confidence : float, default=0.95
        Of the intervals, inside (0, 1). A corrected p below ``1 - confidence`` is a verdict.
    n_resamples : int, default=10,000
        N: resamples of the queries for the intervals, and exchanges of the test.
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
    randomization test gives 1, the t-test NaN. Where no query differs p is 1. A metric in which
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
    given: Any = {"qid": qid, "group": group, "metrics": measures_of(metrics), "docid": docid}
    evaluations = {}
    for name, values in scores.items():
        try:
            evaluations[name] = evaluate(y, values, convention=convention, n_jobs=n_jobs, **given)
        except ValueError as error:
            raise ValueError(f"method {name!r}: {error}") from None
    return compare_evaluations(
        evaluations,
        baseline=baseline,
        test=test,
        correction=correction,
        confidence=confidence,
        n_resamples=n_resamples,
        random_state=random_state,
        n_jobs=n_jobs,
    )


def compare_evaluations(
    evaluations: Mapping[str, Evaluation],
    *,
    metrics: Metric | Iterable[Metric] | None = None,
    baseline: str | None = None,
    test: Test = "randomization",
    correction: Correction | None = "holm",
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
    baseline, test, correction, confidence, n_resamples, random_state, n_jobs
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
    check_one_of("test", test, get_args(Test))
    check_one_of("correction", correction, (*significance.CORRECTIONS, None))
    check_natural("n_resamples", n_resamples)
    if isinstance(confidence, bool) or not 0.0 < confidence < 1.0:
        raise ValueError(f"confidence must be between 0 and 1, as 0.95 for 95%; got {confidence!r}")
    methods = tuple(evaluations)
    chosen = methods[0] if baseline is None else baseline
    if chosen not in methods:
        known = ", ".join(map(repr, methods))
        raise ValueError(f"baseline must be one of {known}; got {chosen!r}")
    names, parts = common_metrics(evaluations, metrics), align_queries(evaluations)
    rules = test, correction, confidence, n_resamples, seed_of(random_state), parts[0].convention
    plan = Comparison(methods, names, chosen, {}, parts[0].n_queries, *rules)
    return dataclasses.replace(plan, cells=cells(plan, parts, n_jobs))
