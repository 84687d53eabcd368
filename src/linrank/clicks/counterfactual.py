"""What a ranking would have earned, estimated from clicks on another one."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import Any

import numpy as np

from linrank.clicks.impressions import Impressions, as_numbers
from linrank.clicks.propensity import as_bound, as_propensity, propensity_at
from linrank.data import Array, Queries, as_vector, check_each, dot, first_true
from linrank.errors import check_one_of

_NAME = re.compile(r"(clicks|dcg|precision)(?:@([1-9]\d{0,8}))?")


def rank_discounts(metric: Any, propensity: Array, n_ranks: int) -> Array:
    """λ of the ranks 1 to ``n_ranks``, of a metric given by name or by its own discounts.

    Parameters
    ----------
    metric : str or array
        ``"clicks"``: λ(k) = p(k); ``"dcg"``: 1 / log2(1 + k); ``"precision@K"``: 1/K. With ``@K``,
        0 below rank K. An array holds λ(1), λ(2), ...; 0 behind its end.
    propensity : float64 array (n_positions,)
        p, 0 behind its end.
    n_ranks : int
        The longest query.
    """
    if not isinstance(metric, str):
        given = as_numbers(metric, "metric")
        is_good = np.isfinite(given) & (given >= 0)
        check_each(given, is_good, "discount of rank", "it must be finite and >= 0", first=1)
        return _pad(given, n_ranks)
    found = _NAME.fullmatch(metric)
    if found is None or metric == "precision":
        raise ValueError(
            f"metric must be 'clicks', 'dcg', 'dcg@K', 'precision@K' or an array of discounts, "
            f"rank 1 first; got {metric!r}"
        )
    ranks = np.arange(1, n_ranks + 1)
    cut = int(found[2]) if found[2] else n_ranks
    if found[1] == "clicks":
        discount = _pad(propensity, n_ranks)
    elif found[1] == "dcg":
        discount = 1.0 / np.log2(1.0 + ranks)
    else:
        discount = np.full(n_ranks, 1.0 / cut)
    return np.where(ranks <= cut, discount, 0.0)


def row_discounts(scores: Array, queries: Queries, discount: Array) -> Array:
    """λ of each row's rank by descending score; rows of equal score share the mean of their ranks.

    That mean is what a random order of the equal ones would give on average.
    """
    offsets = queries.offsets
    query = np.repeat(np.arange(queries.n_queries), np.diff(offsets))
    by_position = queries.gather(scores)
    order = np.lexsort((-by_position, query))
    rank = np.arange(len(order)) - offsets[query]  # `order` keeps the queries where they are
    descending = by_position[order]
    is_new = np.ones(len(order), dtype=bool)
    is_new[1:] = (descending[1:] != descending[:-1]) | (query[1:] != query[:-1])
    tie = np.cumsum(is_new) - 1
    mean = np.bincount(tie, discount[rank]) / np.bincount(tie)
    shared = np.empty(len(order))
    shared[order] = mean[tie]
    return queries.scatter(shared)


def _pad(a: Array, n: int) -> Array:
    padded = np.zeros(n)
    padded[: len(a)] = a[:n]
    return padded


class WeighedClicks:
    """Records by list, lists by query, and what the log says of each row.

    row, look : of each record, its row and propensity; query, count : of each list;
    query_of_row, is_shown, weight, is_bounded, model : of each row, weight being ω, and model a as
    the clicks or the model say; n_lists : of each query.
    """

    def __init__(
        self, impressions: Impressions, queries: Queries, p: Array, bound: float, model: Array
    ) -> None:
        self.row = row = impressions.rows_needed("counterfactual_value")
        offsets = impressions.lists_needed("counterfactual_value")
        if row.max() >= queries.n_rows:
            raise ValueError(f"row {row.max()} was shown, but there are {queries.n_rows} scores")
        self.query_of_row = query_of_row = queries.query_of_rows()
        self._begins = begins = offsets[:-1]
        self.query = query_of_row[row[begins]]
        is_other = query_of_row[row] != np.repeat(self.query, np.diff(offsets))
        if (i := first_true(is_other)) is not None and impressions.lists is not None:
            at = int(np.searchsorted(begins, i, side="right")) - 1
            raise ValueError(
                f"list {impressions.lists[at : at + 1].tolist()[0]!r} shows row {row[i]}, which is "
                "of another query than the row on top; a list answers one query"
            )
        self.clicked, self._times = impressions.clicked, impressions.count
        self.count = impressions.count[begins]
        self.n_lists = np.bincount(self.query, self.count, minlength=queries.n_queries)
        self.look = propensity_at(impressions.position, p)
        looks = self.per_row(self.look)
        self.is_shown = looks > 0
        n_lists = self.n_lists[query_of_row]
        exposure = np.divide(looks, n_lists, out=np.zeros(len(looks)), where=self.is_shown)
        free = np.divide(1.0, exposure, out=np.zeros(len(looks)), where=self.is_shown)
        self.weight, self.is_bounded = np.minimum(free, bound), free > bound
        # With a free weight, Σ_showings ω p a = N_q a, whatever a: it leaves the estimate
        # alone, but the spread of the lists, its error, is least for the right one.
        # Rows shown once must not explain their own click, so that one look is added.
        self.clicks, is_free = self.per_row(self.clicked), self.is_shown & (free <= bound)
        self.model = np.divide(self.clicks, looks + p.max(), out=model.copy(), where=is_free)

    def per_query(self, of_row: Array) -> Array:
        """Sums over the rows of each query."""
        return np.bincount(self.query_of_row, of_row, minlength=len(self.n_lists))

    def per_row(self, of_record: Array) -> Array:
        """Sums over the showings of each row, counts included."""
        return np.bincount(self.row, self._times * of_record, minlength=len(self.query_of_row))

    def coverage(self, discount: Array) -> float:
        """Share of the discounts, list by list, that falls to rows which were shown."""
        possible = dot(self.n_lists, self.per_query(discount))
        shown = dot(self.n_lists, self.per_query(discount * self.is_shown))
        return shown / possible if possible else 1.0

    def contributions(self, discount: Array) -> Array:
        """``Σ_i λ a_i + Σ ω λ (c - p a_i)`` of each list: over its query, and over its records."""
        surprise = self.clicked - self.look * self.model[self.row]
        known = self.per_query(discount * self.model)[self.query]
        earned = (self.weight * discount)[self.row] * surprise
        return np.asarray(known + np.add.reduceat(earned, self._begins))

    def trust(self) -> tuple[float, float]:
        """How many clicks the estimate rests on, and the share that was bounded."""
        clicks = self.clicks
        if not clicks.any():
            return 0.0, 0.0
        n_effective = dot(clicks, self.weight) ** 2 / dot(clicks, self.weight**2)
        return n_effective, float(clicks[self.is_bounded].sum() / clicks.sum())


@dataclass(frozen=True, eq=False)
class CounterfactualValue:
    """The estimated value of a ranking, and how far to trust it.

    Attributes
    ----------
    value : float
        The estimate, for a list.
    std_error : float
        Its standard error, lists being independent of each other and propensities exact; NaN for
        a single list.
    n_lists : float
        Lists, counts included.
    n_effective : float
        Clicks that would tell as much if all weighed the same: ``(Σ ω)² / Σ ω²`` over clicks.
    clipped : float
        Share of the clicks whose weight was bounded.
    coverage : float
        Share of the discounts that falls to rows which the log has shown. What was never shown
        counts as never clicked, unless a model says otherwise: below 1, ``"ips"`` underestimates.
    contributions : float64 array (n_lists,)
        What each list adds: the value is their mean.
    count : float64 array (n_lists,)
        How often each list was shown.
    """

    value: float
    std_error: float
    n_lists: float
    n_effective: float
    clipped: float
    coverage: float
    contributions: Array = field(repr=False)
    count: Array = field(repr=False)

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Bounds ``value ∓ z · std_error``, by the normal approximation."""
        if not 0.0 < confidence < 1.0:
            raise ValueError(f"confidence must lie between 0 and 1, got {confidence}")
        half = NormalDist().inv_cdf(0.5 + confidence / 2.0) * self.std_error
        return self.value - half, self.value + half

    def minus(self, other: CounterfactualValue) -> tuple[float, float]:
        """Difference to another ranking on the same log, and its standard error.

        Both rankings are judged by the same clicks, so most of the noise cancels: the error of the
        difference is that of the differences list by list, far below those of the two values.
        """
        if not np.array_equal(self.count, other.count):
            raise ValueError(
                f"values of different logs, of {len(self.count)} and {len(other.count)} records "
                "of lists, cannot be compared list by list; estimate both from one log"
            )
        return _mean(self.contributions - other.contributions, self.count)


def counterfactual_value(
    impressions: Impressions,
    scores: Any,
    *,
    qid: Any,
    propensity: Any,
    metric: Any = "dcg@10",
    estimator: str = "ips",
    max_weight: float | None = None,
    attractiveness: Any = None,
) -> CounterfactualValue:
    """Estimate what a ranking would earn from the clicks that another one got.

    The value of a ranking is ``V = E_q Σ_i λ(rank_i) a_i``, over the rows of a query drawn as in
    the log, with a the chance of a click when looked at and λ the discount of a rank: for λ = p,
    the propensities themselves, V is the number of clicks on a list.

    Parameters
    ----------
    impressions : Impressions
        With rows and lists, shown by whatever ranking; the rows of a list are of one query.
    scores : array (n_rows,)
        Of the ranking to judge, for every row of the feature matrix; high scores on top. Equal
        scores share the mean of their discounts.
    qid : array (n_rows,)
        Query of each row.
    propensity : array (n_positions,)
        p, chance in (0, 1] that each rank is looked at. Where only ratios are known, as from
        `harvest`, ``"clicks"`` and ``"snips"`` are right as they are: a factor cancels out.
    metric : str or array, default="dcg@10"
        λ: ``"clicks"``, ``"dcg"`` or ``"dcg@K"`` (gain a, discount ``1 / log2(1 + rank)``),
        ``"precision@K"``, or an array, rank 1 first.
    estimator : {"ips", "snips"}, default="ips"
        With c = 1 for a click, ``ω_i = N_q / Σ p(position)`` over the showings of row i in the N_q
        lists of its query (``1 / p`` where it never moves), and sums over all records of N lists:

        - ``"ips"``: ``Σ c ω λ / N``, without bias, of high variance;
        - ``"snips"``: ``Σ c ω λ / Σ c ω``, which estimates ``E Σ λ a / E Σ a``, the discount at
          which an attractive row is found. In the range of λ, mostly of less variance.
    max_weight : float, optional
        Bound of ω, >= 1: less variance, and an estimate by ``"ips"`` that is too low.
    attractiveness : array (n_rows,), optional
        A model a' in [0, 1] of a, for every row: say, a regression on the features. It stands for
        rows that were never shown and for what `max_weight` takes away, ``λ a'_i (1 - ω_i / ω_i')``
        with ω' the weight without the bound: the doubly robust estimate. Zeros if None.

    Returns
    -------
    CounterfactualValue

    Examples
    --------
    A ranking that would put the second row on top, where it is looked at twice as often:

    >>> log = Impressions.of([1, 2], [0, 1], row=[0, 1], session=["s", "s"], count=[10, 10])
    >>> counterfactual_value(
    ...     log, [1.0, 2.0], qid=["q", "q"], propensity=[1.0, 0.5], metric="clicks"
    ... ).value
    2.0
    """
    check_one_of("estimator", estimator, ("ips", "snips"))
    s = as_numbers(scores, "scores")
    check_each(s, np.isfinite(s), "score of row", "scores must be finite to rank by them")
    queries = Queries.of(np.zeros(len(s)), qid)
    p = as_propensity(propensity)
    longest = int(np.diff(queries.offsets).max())
    discount = row_discounts(s, queries, rank_discounts(metric, p, longest))
    model = np.zeros(len(s))
    if attractiveness is not None:
        model = as_vector(attractiveness, "attractiveness", len(s), like="scores")
        is_good = (model >= 0) & (model <= 1)
        check_each(model, is_good, "attractiveness of row", "it must lie in [0, 1]")
    log = WeighedClicks(impressions, queries, p, as_bound(max_weight), model)
    contributions = log.contributions(discount)
    if estimator == "snips":
        contributions = _ratio(contributions, log.contributions(np.ones(len(s))), log.count)
    value, std_error = _mean(contributions, log.count)
    n_effective, clipped = log.trust()
    return CounterfactualValue(
        value=value,
        std_error=std_error,
        n_lists=float(log.count.sum()),
        n_effective=n_effective,
        clipped=clipped,
        coverage=log.coverage(discount),
        contributions=contributions,
        count=log.count,
    )


def _mean(values: Array, count: Array) -> tuple[float, float]:
    """Mean, and its standard error ``sqrt(Σ n (v - mean)² / (N (N - 1)))``."""
    n = count.sum()
    mean = dot(count, values) / n
    variance = dot(count, (values - mean) ** 2) / (n * (n - 1.0)) if n > 1 else np.nan
    return float(mean), float(np.sqrt(variance))


def _ratio(upper: Array, lower: Array, count: Array) -> Array:
    """Contributions to ``R = Σ upper / Σ lower``, to first order: ``R + (u - R l) / mean l``."""
    total = dot(count, lower)
    if not total > 0:
        raise ValueError("there is no click in the impressions, and 'snips' divides by them")
    ratio = dot(count, upper) / total
    return np.asarray(ratio + (upper - ratio * lower) * (count.sum() / total))
