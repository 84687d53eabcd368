"""Propensities: the chance that a position is looked at, and clicks weighted to make up for it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from linrank.clicks.impressions import Impressions, as_numbers
from linrank.data import Array, Preferences, Queries, as_array, check_each, first_true
from linrank.errors import NoPairsError, check_natural, check_one_of, check_positive


def power_law(n_positions: int, eta: float = 1.0) -> Array:
    """Propensities ``1 / rank^η`` of the positions 1 to ``n_positions``.

    Parameters
    ----------
    n_positions : int
        Positions, >= 1.
    eta : float, default=1.0
        η >= 0: 0 for no bias, about 1 in many logs of web search.

    Returns
    -------
    float64 array (n_positions,)
        Of position 1 first, which is 1.

    Examples
    --------
    >>> power_law(4).round(2).tolist()
    [1.0, 0.5, 0.33, 0.25]
    """
    check_natural("n_positions", n_positions)
    if not (math.isfinite(eta) and eta >= 0):
        raise ValueError(f"eta must be finite and >= 0, got {eta}")
    propensity: Array = np.arange(1.0, n_positions + 1) ** -float(eta)
    if propensity[-1] == 0.0:
        raise ValueError(
            f"eta={eta:g} leaves position {n_positions} a propensity below what a number can hold; "
            "lower eta or n_positions"
        )
    return propensity


def ips_weights(position: Any, propensity: Any, *, max_weight: float | None = None) -> Array:
    """Inverse propensities ``min(1 / p(position), max_weight)``, one for each position given.

    A click at a position that is looked at once in ten times stands for ten: weighted like this,
    the clicks have the expectation that they would have if everything were looked at. A bound on
    the weights trades some of that for less variance.

    Parameters
    ----------
    position : integers
        Ranks, from 1.
    propensity : array (n_positions,)
        Propensity of each rank, in (0, 1]; of rank 1 first.
    max_weight : float, optional
        Bound of the weights, >= 1; none if None.

    Returns
    -------
    float64 array, of the shape of `position`
        The weights.

    Examples
    --------
    >>> ips_weights([1, 3, 3], [1.0, 0.5, 0.1], max_weight=5).tolist()
    [1.0, 5.0, 5.0]
    """
    p = propensity_at(position, as_propensity(propensity))
    return np.minimum(1.0 / p, as_bound(max_weight))


def propensity_at(position: Any, p: Array) -> Array:
    """The propensity of each position given; an error if one has none."""
    ranks = as_array(position, "position")
    if ranks.size and (ranks.dtype.kind not in "iu" or ranks.min() < 1):
        raise ValueError("position must hold integers >= 1")
    if ranks.size and ranks.max() > len(p):
        raise ValueError(
            f"position {ranks.max()} occurs, but propensity has {len(p)} elements; give one for "
            "each position"
        )
    return np.asarray(p[ranks.astype(np.int64) - 1])


def as_bound(max_weight: float | None) -> float:
    """The bound of weights, infinite if there is none."""
    if max_weight is not None and not max_weight >= 1.0:
        raise ValueError(f"max_weight must be >= 1, the weight of a sure look, got {max_weight}")
    return math.inf if max_weight is None else float(max_weight)


def ips_relevance(
    impressions: Impressions, propensity: Any, *, n_rows: int, max_weight: float | None = None
) -> tuple[Array, Array]:
    """The inverse-propensity estimate of each row's chance of a click when looked at.

    ``r_i = Σ count·clicked / p(position) / Σ count`` over the showings of row i: without bias where
    the chance of a click is propensity times r_i.

    Parameters
    ----------
    impressions : Impressions
        With rows.
    propensity : array (n_positions,)
        Propensity of each rank, in (0, 1].
    n_rows : int
        Rows of the feature matrix.
    max_weight : float, optional
        Bound of ``1 / p``, >= 1.

    Returns
    -------
    relevance : float64 array (n_rows,)
        r; 0 for a row that was never shown. Usable as labels.
    n_shown : float64 array (n_rows,)
        Showings of each row.

    Examples
    --------
    >>> from linrank.clicks import Impressions
    >>> log = Impressions.of(position=[1, 2, 2], clicked=[1, 1, 0], row=[0, 1, 1])
    >>> relevance, n_shown = ips_relevance(log, [1.0, 0.5], n_rows=3)
    >>> relevance.tolist(), n_shown.tolist()
    ([1.0, 1.0, 0.0], [1.0, 2.0, 0.0])
    """
    row = impressions.rows_needed("ips_relevance")
    if row.max() >= n_rows:
        raise ValueError(f"row {row.max()} was shown, but n_rows is {n_rows}")
    weight = ips_weights(impressions.position, propensity, max_weight=max_weight)
    clicks = np.bincount(row, impressions.count * impressions.clicked * weight, minlength=n_rows)
    n_shown = np.bincount(row, impressions.count, minlength=n_rows)
    return np.divide(clicks, n_shown, out=np.zeros(n_rows), where=n_shown > 0), n_shown


def as_propensity(propensity: Any) -> Array:
    """Propensities as a float64 vector in (0, 1]."""
    p = as_numbers(propensity, "propensity")
    is_good = (p > 0) & (p <= 1)
    check_each(p, is_good, "propensity of position", "it must lie in (0, 1]", first=1)
    return p


class Cells:
    """Showings and clicks of each row at each position, in ascending order of row, then position.

    Attributes
    ----------
    row, position : int64 arrays (n_cells,)
        Rows numbered 0..n_rows-1, in ascending order of ``rows``; positions from 0.
    n_shown, n_clicked : float64 arrays (n_cells,)
        Totals of the counts.
    rows : int64 array
        The rows of the feature matrix that were shown.
    n_positions : int
        Positions; all of them were shown.
    """

    def __init__(self, impressions: Impressions, what: str) -> None:
        self.rows, code = np.unique(impressions.rows_needed(what), return_inverse=True)
        self.n_positions = _count_positions(impressions)
        key = code * self.n_positions + impressions.position - 1
        cells, of_cell = np.unique(key, return_inverse=True)
        self.row, self.position = np.divmod(cells, self.n_positions)
        self.n_shown = np.bincount(of_cell, impressions.count)
        self.n_clicked = np.bincount(of_cell, impressions.count * impressions.clicked)


def click_rates(impressions: Impressions) -> Array:
    """Propensities from results in random order: the click rate of each position.

    Where chance decides what is shown where, every position holds the same mixture of rows, and
    click rates differ by propensity only. A log of results ranked by relevance will not do: there
    the top is clicked because it is good.

    Parameters
    ----------
    impressions : Impressions
        Shown in random order, or at least the lists in which the order was random.

    Returns
    -------
    float64 array (n_positions,)
        Relative to the largest, which is 1: a log says no more.

    Examples
    --------
    >>> log = Impressions.of([1, 1, 2, 2], [1, 0, 1, 0], count=[40, 60, 10, 90])
    >>> click_rates(log).tolist()
    [1.0, 0.25]
    """
    n_positions = _count_positions(impressions)
    at = impressions.position - 1
    n_shown = np.bincount(at, impressions.count, minlength=n_positions)
    clicks = np.bincount(at, impressions.count * impressions.clicked, minlength=n_positions)
    if (k := first_true(clicks == 0)) is not None:
        raise ValueError(
            f"position {k + 1} was not clicked in {n_shown[k]:g} showings, and a propensity of 0 "
            "has no inverse; leave out such positions or gather more clicks"
        )
    rate = clicks / n_shown
    return np.asarray(rate / rate.max())


def harvest(impressions: Impressions) -> Array:
    """Propensities from rows that were shown at neighboring positions, whatever the reason.

    A row that was shown at both positions k and k+1, because results were swapped or rankers
    changed, is as relevant here as there: ``p_(k+1) / p_k = Σ h c_(k+1) / Σ h c_k`` over
    such rows, with c the click rate of the row at the position and ``h = n n' / (n + n')`` its
    evidence from n and n' showings. The ratios are chained from position to position. After the
    intervention harvesting of Agarwal and others (2019).

    Parameters
    ----------
    impressions : Impressions
        With rows.

    Returns
    -------
    float64 array (n_positions,)
        Relative to the largest, which is 1.

    Examples
    --------
    >>> shown = {"position": [1, 1, 2, 2], "clicked": [1, 0, 1, 0], "row": [7, 7, 7, 7]}
    >>> harvest(Impressions.of(**shown, count=[60, 40, 30, 70])).tolist()
    [1.0, 0.5]
    """
    cells = Cells(impressions, "harvest")
    is_next = (cells.row[1:] == cells.row[:-1]) & (cells.position[1:] == cells.position[:-1] + 1)
    here = np.flatnonzero(is_next)
    n, m = cells.n_shown[here], cells.n_shown[here + 1]
    evidence, at = n * m / (n + m), cells.position[here]
    size = cells.n_positions - 1
    upper = np.bincount(at, evidence * cells.n_clicked[here] / n, minlength=size)
    lower = np.bincount(at, evidence * cells.n_clicked[here + 1] / m, minlength=size)
    if (k := first_true((upper == 0) | (lower == 0))) is not None:
        n_rows = int(np.count_nonzero(at == k))
        raise ValueError(
            f"{n_rows} rows were shown at both positions {k + 1} and {k + 2}, and not clicked at "
            "both; the ratio of their propensities cannot be estimated"
        )
    chain = np.concatenate([[1.0], np.cumprod(lower / upper)])
    return np.asarray(chain / chain.max())


def _count_positions(impressions: Impressions) -> int:
    """The number of positions; an error if one of them was never shown."""
    n = impressions.n_positions
    is_shown = np.zeros(min(n, len(impressions) + 1), dtype=bool)  # more cannot all be shown
    is_shown[impressions.position[impressions.position <= len(is_shown)] - 1] = True
    if (k := first_true(~is_shown)) is not None:
        raise ValueError(f"nothing was shown at position {k + 1}, but at {n}; number ranks from 1")
    return n


_LEAST = 1e-9  # of a probability: at 0 or 1 the algorithm could not leave it again


@dataclass(frozen=True, eq=False)
class PositionModel:
    """``P(click) = p(position) · a(row)``, fitted to a log.

    Attributes
    ----------
    propensity : float64 array (n_positions,)
        p, relative to the largest, which is 1.
    attractiveness : float64 array (n,)
        a, in [0, 1], of the rows that were shown.
    rows : int64 array (n,)
        Those rows, ascending.
    log_likelihood : float
        Of the log under the model.
    n_iter : int
        Iterations.
    converged : bool
        Whether the tolerance was reached.
    """

    propensity: Array
    attractiveness: Array
    rows: Array
    log_likelihood: float
    n_iter: int
    converged: bool


def fit_position_model(
    impressions: Impressions, *, tol: float = 1e-6, max_iter: int = 2000
) -> PositionModel:
    """Fit propensities and attractiveness by expectation-maximization.

    A log determines the propensities relative to each other only, and only as far as rows were
    shown at several positions: positions that no row connects with the others are an error.

    Parameters
    ----------
    impressions : Impressions
        With rows.
    tol : float, default=1e-6
        Stop when no propensity, relative to the largest, changes by more in an iteration.
    max_iter : int, default=2000
        Iterations at most.

    Returns
    -------
    PositionModel

    Examples
    --------
    >>> shown = {"position": [1, 1, 2, 2] * 2, "clicked": [1, 0] * 4, "row": [0] * 4 + [1] * 4}
    >>> log = Impressions.of(**shown, count=[80, 20, 40, 60, 40, 60, 20, 80])
    >>> fit_position_model(log).propensity.round(3).tolist()
    [1.0, 0.5]
    """
    check_positive("tol", tol)
    check_natural("max_iter", max_iter)
    cells = Cells(impressions, "fit_position_model")
    _check_connected(cells)
    if not cells.n_clicked.any():
        raise ValueError("there is no click in the impressions")
    p, a = _start(cells)
    change, n_iter = np.inf, 0
    while change > tol and n_iter < max_iter:
        last = p / p.max()
        p, a = _iterate(cells, p, a)
        change = float(np.abs(p / p.max() - last).max())
        n_iter += 1
    chance = p[cells.position] * a[cells.row]
    misses = cells.n_shown - cells.n_clicked
    likelihood = cells.n_clicked @ np.log(chance) + misses @ np.log1p(-chance)
    attractive, converged = np.minimum(a * p.max(), 1.0), change <= tol
    return PositionModel(p / p.max(), attractive, cells.rows, float(likelihood), n_iter, converged)


def _start(cells: Cells) -> tuple[Array, Array]:
    """Click rates by position, and of the rows given those, both well inside (0, 1)."""
    shown = np.bincount(cells.position, cells.n_shown)
    rate = np.bincount(cells.position, cells.n_clicked) / shown
    p = np.clip(0.9 * rate / rate.max(), 0.01, 0.9)
    expected = np.bincount(cells.row, cells.n_shown * p[cells.position])
    a = np.clip(np.bincount(cells.row, cells.n_clicked) / expected, 0.01, 0.99)
    return p, a


def _iterate(cells: Cells, p: Array, a: Array) -> tuple[Array, Array]:
    """One step of expectation-maximization.

    Without a click, either nobody looked or the result did not attract: it was looked at with the
    probability ``p(1-a) / (1-pa)``, and attractive with ``a(1-p) / (1-pa)``. The new p and a are
    the means of the two over what was shown at the position, or of the row; 1 for a click.
    """
    pk, ai = p[cells.position], a[cells.row]
    missed = (cells.n_shown - cells.n_clicked) / (1.0 - pk * ai)
    looked = cells.n_clicked + missed * pk * (1.0 - ai)
    attractive = cells.n_clicked + missed * ai * (1.0 - pk)
    new_p = np.bincount(cells.position, looked) / np.bincount(cells.position, cells.n_shown)
    new_a = np.bincount(cells.row, attractive) / np.bincount(cells.row, cells.n_shown)
    return np.clip(new_p, _LEAST, 1.0 - _LEAST), np.clip(new_a, _LEAST, 1.0 - _LEAST)


def _check_connected(cells: Cells) -> None:
    """Raise if the positions fall into groups that no row links."""
    follows = cells.row[1:] == cells.row[:-1]
    n = cells.n_positions
    links = np.unique(cells.position[:-1][follows] * n + cells.position[1:][follows])
    group = np.arange(n)
    for first, second in zip(*np.divmod(links, n), strict=True):
        group[group == group[second]] = group[first]
    if (k := first_true(group != group[0])) is not None:
        raise ValueError(
            f"no row links position {k + 1} with position 1: without rows shown at several "
            "positions the propensities cannot be told from the relevance of what was shown; use a "
            "log with swaps or changes of the ranking, or give the propensities"
        )


# ---- preferences that clicks express: what was clicked over what was passed by -------------------

STRATEGIES = (
    "clicked_over_skipped",
    "clicked_over_others",
    "clicked_over_next_skipped",
    "clicked_over_skipped_above",
    "last_clicked_over_skipped_above",
)


def click_preferences(
    impressions: Impressions,
    strategy: str = "clicked_over_skipped",
    *,
    propensity: Any = None,
    max_weight: float | None = None,
) -> Preferences:
    """Preferences between rows of the same list, for `RankSVM.fit_pairs`.

    Each pair weighs ``count / p(position of the click)``; weights of a pair of rows that comes up
    in several lists are added.

    Parameters
    ----------
    impressions : Impressions
        With rows and lists.
    strategy : str
        Which pairs a list makes; "skipped" means shown and not clicked:

        - ``"clicked_over_skipped"`` (default): over everything skipped, above and below;
        - ``"clicked_over_others"``: over everything else in the list. Between two clicks both
          directions count. With propensities this is the unbiased estimate of Joachims,
          Swaminathan and Schnabel (2017);
        - ``"clicked_over_next_skipped"``: over what comes right after the click, if skipped;
        - ``"clicked_over_skipped_above"``: over everything skipped at a higher rank, which was
          surely looked at, since people read downwards (Joachims 2002);
        - ``"last_clicked_over_skipped_above"``: the same, of the lowest click only.

        The last two never agree with the ranking that was shown: trained on them alone, a ranker
        learns to turn a good ranking upside down. Use them beside labels or other preferences.
    propensity : array (n_positions,), optional
        Chance in (0, 1] that each rank is looked at. None: every click weighs the same, and what
        was shown on top wins by being seen. For the first two strategies.
    max_weight : float, optional
        Bound of ``1 / p``, >= 1.

    Returns
    -------
    Preferences
        Every pair of rows once.

    Examples
    --------
    >>> from linrank.clicks import Impressions, click_preferences
    >>> log = Impressions.of([1, 2, 3], [0, 0, 1], row=[4, 7, 5], session=["s", "s", "s"])
    >>> found = click_preferences(log, propensity=[1.0, 0.5, 0.25])
    >>> found.pairs.tolist(), found.weight.tolist()
    ([[5, 4], [5, 7]], [4.0, 4.0])
    """
    check_one_of("strategy", strategy, STRATEGIES)
    row = impressions.rows_needed("click_preferences")
    offsets = impressions.lists_needed("click_preferences")
    if max_weight is not None and propensity is None:
        raise ValueError("max_weight bounds the inverse propensities; pass propensity")
    click, other = _pairs(impressions, offsets, strategy)
    if len(click) == 0:
        raise NoPairsError(
            f"the {int(impressions.clicked.sum())} clicks in {len(offsets) - 1} lists "
            f"express no preference by {strategy!r}"
        )
    if (t := first_true(row[click] == row[other])) is not None:
        a, b = sorted(impressions.position[[click[t], other[t]]].tolist())
        raise ValueError(
            f"row {row[click[t]]} was shown at positions {a} and {b} of one list; a row is one "
            "item for one query, shown once in a list"
        )
    weight = impressions.count[click]
    if propensity is not None:
        position = impressions.position[click]
        weight = weight * ips_weights(position, propensity, max_weight=max_weight)
    return Preferences(row[click], row[other], weight).merged()


def _pairs(impressions: Impressions, offsets: Array, strategy: str) -> tuple[Array, Array]:
    """Records (clicked, passed by) of the pairs that a strategy makes."""
    clicked = impressions.clicked
    click = np.flatnonzero(clicked)
    list_of = np.searchsorted(offsets, click, side="right") - 1
    begin, end = offsets[list_of], offsets[list_of + 1]
    if strategy == "clicked_over_next_skipped":
        begin, end = click + 1, np.minimum(click + 2, end)
    elif strategy.endswith("skipped_above"):
        end = click
    if strategy.startswith("last"):
        is_last = np.append(list_of[1:] != list_of[:-1], True)[: len(click)]
        click, begin, end = click[is_last], begin[is_last], end[is_last]
    # Record begin[k] + 0, 1, ... of each click k, in one vector.
    n = end - begin
    winner = np.repeat(click, n)
    other = np.arange(n.sum()) + np.repeat(begin - (np.cumsum(n) - n), n)
    is_pair = other != winner if strategy == "clicked_over_others" else ~clicked[other]
    return winner[is_pair], other[is_pair]


# ---- simulated clicks, to see what an estimate or a ranker makes of a known truth ---------------


def simulate_clicks(
    attractiveness: Any,
    qid: Any,
    scores: Any,
    propensity: Any,
    *,
    n_lists: int,
    noise: float = 0.0,
    random_state: int | None = None,
) -> Impressions:
    """Show rankings to readers who click by the position-based model.

    Each list is of a random query: its rows by descending ``score + noise·N(0, 1)``, cut behind the
    last position that has a propensity. A result is clicked with the probability
    ``propensity(position) · attractiveness(row)``.

    Parameters
    ----------
    attractiveness : array (n_rows,)
        Chance of a click when looked at, in [0, 1].
    qid : array (n_rows,)
        Query of each row.
    scores : array (n_rows,)
        What the ranker shown to the readers goes by.
    propensity : array (n_positions,)
        Chance in (0, 1] that each rank is looked at.
    n_lists : int
        Lists to show, >= 1.
    noise : float, default=0.0
        Disorder of the rankings; ``inf`` for a random order.
    random_state : int, optional
        Seed.

    Returns
    -------
    Impressions
        With rows and lists.

    Examples
    --------
    >>> log = simulate_clicks([1, 0, 0], ["q"] * 3, [3, 2, 1], [1, 0.5], n_lists=4, random_state=0)
    >>> log.row.tolist(), log.clicked.tolist()
    ([0, 1, 0, 1, 0, 1, 0, 1], [True, False, True, False, True, False, True, False])
    """
    p = as_propensity(propensity)
    attractive = as_array(attractiveness, "attractiveness").astype(np.float64)
    if not ((attractive >= 0) & (attractive <= 1)).all():
        raise ValueError("attractiveness must lie in [0, 1]")
    check_natural("n_lists", n_lists)
    if not noise >= 0.0:
        raise ValueError(f"noise must be >= 0, got {noise}")
    rng = np.random.default_rng(random_state)
    queries = Queries.of(np.zeros(len(attractive)), qid)
    by_position = queries.gather(as_array(scores, "scores").astype(np.float64))
    times = rng.multinomial(n_lists, np.full(queries.n_queries, 1.0 / queries.n_queries))
    rows, ranks, lengths = [], [], []
    for q in np.flatnonzero(times).tolist():
        begin, end = int(queries.offsets[q]), int(queries.offsets[q + 1])
        n = min(end - begin, len(p))
        disorder = rng.standard_normal((int(times[q]), end - begin))
        keys = disorder if np.isinf(noise) else by_position[begin:end] + noise * disorder
        top = np.argsort(-keys, axis=1, kind="stable")[:, :n]
        rows.append(begin + top.ravel())
        ranks.append(np.tile(np.arange(1, n + 1), int(times[q])))
        lengths.append(np.full(int(times[q]), n))
    positions = np.concatenate(rows)
    row = positions if queries.order is None else queries.order[positions]
    rank = np.concatenate(ranks)
    clicked = rng.random(len(row)) < p[rank - 1] * attractive[row]
    size = np.concatenate(lengths)
    return Impressions.of(rank, clicked, row=row, session=np.repeat(np.arange(len(size)), size))
