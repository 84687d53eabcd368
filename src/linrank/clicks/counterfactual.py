"""What a ranking would have earned, estimated from clicks on another one."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank.clicks.discounts import rank_discounts, row_discounts
from linrank.clicks.exposure import ListedClicks, RowWeights
from linrank.clicks.impressions import Impressions
from linrank.clicks.propensity import as_propensity
from linrank.data.frames import as_array, as_float
from linrank.data.queries import Queries
from linrank.inner_product import dot

__all__ = ["ESTIMATORS", "CounterfactualValue", "counterfactual_value"]

Array = NDArray[Any]

ESTIMATORS = ("ips", "snips")


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
    if estimator not in ESTIMATORS:
        raise ValueError(f"estimator must be one of {', '.join(ESTIMATORS)}; got {estimator!r}")
    s = _scores(scores)
    queries = Queries.of(np.zeros(len(s)), qid)
    p = as_propensity(propensity)
    longest = int(np.diff(queries.offsets).max())
    discount = row_discounts(s, queries, rank_discounts(metric, p, longest))
    model = np.zeros(len(s)) if attractiveness is None else _model(attractiveness, len(s))
    log = ListedClicks.of(impressions, queries)
    rows = RowWeights.of(log, p, math.inf if max_weight is None else _bound(max_weight), model)
    contributions = rows.contributions(log, p, discount)
    if estimator == "snips":
        attractive = rows.contributions(log, p, np.ones(len(s)))
        contributions = _ratio(contributions, attractive, log.count)
    value, std_error = _mean(contributions, log.count)
    n_effective, clipped = rows.trust(log)
    return CounterfactualValue(
        value=value,
        std_error=std_error,
        n_lists=float(log.count.sum()),
        n_effective=n_effective,
        clipped=clipped,
        coverage=log.coverage(discount, rows.exposure > 0),
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
    contributions: Array = ratio + (upper - ratio * lower) * (count.sum() / total)
    return contributions


def _scores(scores: Any) -> Array:
    a = as_array(scores, "scores")
    if a.ndim != 1 or a.size == 0:
        raise ValueError(f"scores must hold a number for each row, got shape {a.shape}")
    a = as_float(a, "scores").astype(np.float64)
    if not np.isfinite(a).all():
        i = int(np.argmin(np.isfinite(a)))
        raise ValueError(f"score of row {i} is {a[i]:g}; scores must be finite to rank by them")
    return a


def _model(values: Any, n_rows: int) -> Array:
    a = as_float(as_array(values, "attractiveness"), "attractiveness").astype(np.float64)
    if a.shape != (n_rows,):
        raise ValueError(f"attractiveness must have shape ({n_rows},), as scores; got {a.shape}")
    is_bad = ~((a >= 0) & (a <= 1))
    if is_bad.any():
        i = int(np.argmax(is_bad))
        raise ValueError(f"attractiveness of row {i} is {a[i]:g}; it must lie in [0, 1]")
    return a


def _bound(max_weight: float) -> float:
    if not max_weight >= 1.0:
        raise ValueError(f"max_weight must be >= 1, the weight of a sure look, got {max_weight}")
    return float(max_weight)
