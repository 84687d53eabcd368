"""Which pairs a training compares, by name: swept where they can be, listed where they must."""

from __future__ import annotations

import numbers
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from linrank import _core
from linrank.choices import PAIR_WEIGHTINGS, SELECTED_PAIRS
from linrank.data import Array, Dataset, Preferences, Queries
from linrank.errors import NoPairsError, TooFewPairsError
from linrank.system.resources import PickledFields, cached_property, check_fits


@dataclass(frozen=True, eq=False)
class Pairs(PickledFields):
    """All (i, j) of one query with level_i > level_j, weighing ``ω_ij = c_q u_i u_j (g_i - g_j)``.

    Attributes
    ----------
    queries : Queries
        The rows by query and the levels of their labels.
    row_weight : float64 array by position, or None
        The factors u; None for ones.
    query_weight : float64 array by query, or None
        The factors c; None for ones.
    gain : float64 array by position, or None
        g, a function of the level that increases with it inside each query; None drops the factor.
    adjacent : bool
        Compare neighboring levels only: level_i = level_j + 1.
    """

    queries: Queries
    row_weight: Array | None = None
    query_weight: Array | None = None
    gain: Array | None = None
    adjacent: bool = False

    @cached_property
    def problem(self) -> _core.PairProblem:
        """The same for the core; its arrays are shared."""
        weights = self.row_weight, self.query_weight, self.gain
        return _core.pair_problem(*self.queries.ranked, *weights, self.adjacent)

    @cached_property
    def n_pairs(self) -> int:
        """Number of pairs, whatever their weight."""
        if self.adjacent:
            return round(Pairs(self.queries, adjacent=True).total_weight())
        return self.queries.n_pairs

    def on(self, sample: Queries, positions: Array, row_weight: Array) -> Pairs:
        """The pairs of a sample of the rows, as `linrank.ranksvm.train.draw_rows` returns it."""
        if self.row_weight is not None:
            row_weight = row_weight * self.row_weight[positions]
        query_weight = None
        if self.query_weight is not None:
            query = np.searchsorted(self.queries.offsets, positions, side="right") - 1
            query_weight = self.query_weight[query[sample.offsets[:-1]]]
        gain = None if self.gain is None else self.gain[positions]
        return Pairs(sample, row_weight, query_weight, gain, self.adjacent)

    @cached_property
    def weight_by_query(self) -> Array:
        """``Σ ω_ij / c_q`` over the pairs of each query.

        With ``U_r`` and ``G_r`` the sums of u and of u g over the rows of level r, it is
        ``Σ_(r > s) (G_r U_s - U_r G_s)``, or ``Σ_(r > s) U_r U_s`` without gains.
        """
        queries = self.queries
        if self.row_weight is None and self.gain is None and not self.adjacent:
            return queries.pairs_per_query.astype(np.float64)
        cell = layer_numbers(queries)
        u = np.ones(queries.n_rows) if self.row_weight is None else self.row_weight
        n_cells = int(queries.n_levels.sum())
        U = np.bincount(cell, weights=u, minlength=n_cells)
        head = np.repeat(np.cumsum(queries.n_levels) - queries.n_levels, queries.n_levels)
        with np.errstate(over="ignore", invalid="ignore"):  # `check_total` refuses such weights
            per_cell = U * self._below(U, head)
            if self.gain is not None:
                G = np.bincount(cell, weights=u * self.gain, minlength=n_cells)
                per_cell = G * self._below(U, head) - U * self._below(G, head)
        of_query = np.repeat(np.arange(queries.n_queries), queries.n_levels)
        by_query = np.bincount(of_query, weights=per_cell, minlength=queries.n_queries)
        return np.maximum(by_query, 0.0)

    def _below(self, a: Array, head: Array) -> Array:
        """Sum of ``a`` over the levels that each is preferred to; ``head``: first of its query.

        Sums run over all queries and are subtracted: exact to ``1e-16`` of the total.
        """
        before = np.concatenate([[0.0], a[:-1]])
        if self.adjacent:
            return np.where(np.arange(len(a)) == head, 0.0, before)
        running: Array = np.cumsum(before)
        return running - running[head]

    def total_weight(self) -> float:
        """``Σ ω_ij`` over all pairs."""
        return self._total_weight

    @cached_property
    def _total_weight(self) -> float:
        by_query = self.weight_by_query
        with np.errstate(over="ignore", invalid="ignore"):
            total = by_query.sum() if self.query_weight is None else by_query @ self.query_weight
        return float(total)


def layer_numbers(queries: Queries) -> Array:
    """Number of the level of each position, levels counted query by query."""
    first = np.cumsum(queries.n_levels, dtype=np.int64) - queries.n_levels
    return np.repeat(first, np.diff(queries.offsets)) + queries.levels


def choose_pairs(data: Dataset, **weighing: Any) -> Pairs:
    """The swept pairs of `select_pairs`, whose options these are, where ``pairs`` lists none."""
    swept, _ = select_pairs(data, **weighing)
    assert swept is not None
    return swept


def _pairs_of_labels(data: Dataset, pair_weighting: str) -> Pairs:
    """All pairs of the labels with ``ω_ij = u_i u_j (g_i - g_j)``: without factors of queries."""
    if pair_weighting not in PAIR_WEIGHTINGS:
        raise ValueError(
            f"pair_weighting={pair_weighting!r} depends on a ranking, and here only labels are "
            f"known; use one of {', '.join(map(repr, PAIR_WEIGHTINGS))}"
        )
    queries = data.queries
    row_weight = None if data.weight is None else np.ascontiguousarray(queries.gather(data.weight))
    gain = None if pair_weighting == "uniform" else _gain(data, pair_weighting)
    return Pairs(queries, row_weight, None, gain)


def check_total(total: float, pair_weighting: str) -> None:
    """Refuse weights of pairs that sum to nothing, or to more than a double holds."""
    if total <= 0:
        labels = (
            ""
            if pair_weighting == "uniform"
            else f", and that labels are not too small for pair_weighting={pair_weighting!r}"
        )
        raise NoPairsError(
            f"all pairs have weight zero; check sample_weight and query_weight{labels}"
        )
    if not total < np.inf:
        raise ValueError(
            f"the weights of the pairs, products of those of two rows, sum to {total:g}: they "
            "leave the range of double precision; divide sample_weight or query_weight by a common "
            "factor"
        )


def _gain(data: Dataset, pair_weighting: str) -> Array:
    """g by position, counted from the lowest label of each query: only differences matter."""
    queries = data.queries
    grade = queries.gather(data.labels)
    if pair_weighting == "gain_diff":
        if grade.max() > 500:
            raise ValueError(
                f"pair_weighting='gain_diff' takes 2^label, and the label {grade.max():g} is too "
                "large for it; use pair_weighting='grade_diff', or labels up to 500"
            )
        grade = np.exp2(grade)
    lowest = np.minimum.reduceat(grade, queries.offsets[:-1])
    return grade - np.repeat(lowest, np.diff(queries.offsets))


def no_pairs_message(queries: Queries) -> str:
    """What to say of labels that make no pair."""
    if queries.n_queries == 1:
        return (
            f"all {queries.n_rows} rows have the same label, so no pair can be formed; "
            "check the labels"
        )
    if 0 < queries.n_queries == queries.n_rows:
        return (
            f"each of the {queries.n_queries} query ids occurs once, so no row can be compared "
            "with another; check that qid is not a row id"
        )
    return (
        f"none of the {queries.n_queries} queries has two different labels; "
        "check that qid is not a row id and that labels vary inside a query"
    )


@dataclass(frozen=True, eq=False)
class Blocks:
    """Sets of pairs, each all of a run of winners times all of a run of losers.

    Attributes
    ----------
    winners, losers : int64 arrays
        Where the two runs of each block begin.
    n_winners, n_losers : int64 arrays
        How long they are, >= 1.
    """

    winners: Array
    n_winners: Array
    losers: Array
    n_losers: Array

    @cached_property
    def ends(self) -> Array:
        """Pairs of the blocks up to each, itself included."""
        return np.cumsum(self.n_winners * self.n_losers)

    @property
    def n_pairs(self) -> int:
        """Pairs of all blocks."""
        return int(self.ends[-1]) if len(self.ends) else 0

    def pairs(self, numbers: Array) -> tuple[Array, Array]:
        """Winner and loser of the pairs of these numbers: block by block, winner by winner."""
        block = np.searchsorted(self.ends, numbers, side="right")
        width = self.n_losers[block]
        within = numbers - (self.ends[block] - self.n_winners[block] * width)
        row, column = np.divmod(within, width)
        return self.winners[block] + row, self.losers[block] + column


@dataclass(frozen=True, eq=False)
class Cells:
    """The rows sorted by query and level: a cell is a run of rows of one level of one query.

    Attributes
    ----------
    rows : int64 array (n_rows,)
        Row at each place of the sorted order.
    start : int64 array (n_cells + 1,)
        Where each cell begins in that order.
    level : int64 array (n_cells,)
        Level of each cell within its query.
    """

    rows: Array
    start: Array
    level: Array

    @classmethod
    def of(cls, queries: Queries) -> Cells:
        """The cells of these queries; levels are dense, so that none is empty."""
        cell = layer_numbers(queries)
        order = np.argsort(cell, kind="stable")
        start = np.concatenate([[0], np.cumsum(np.bincount(cell))])
        level = queries.levels[order[start[:-1]]].astype(np.int64)
        return cls(order if queries.order is None else queries.order[order], start, level)

    @cached_property
    def size(self) -> Array:
        """Rows of each cell."""
        return np.diff(self.start)

    def at(self, difference: int, winner: Array | None = None) -> Blocks:
        """The pairs whose levels differ by exactly this much, >= 1; of these cells, or of all."""
        if winner is None:
            winner = np.flatnonzero(self.level >= difference)
        loser, size = winner - difference, self.size
        return Blocks(self.start[winner], size[winner], self.start[loser], size[loser])

    def by_difference(self) -> Iterator[Blocks]:
        """The pairs whose levels differ by 1, by 2, and so on; a step costs no more than its pairs.

        Queries without such pairs are dropped on the way: one long query among many short ones
        does not pay for them.
        """
        winner, difference = np.flatnonzero(self.level >= 1), 1
        while len(winner):
            yield self.at(difference, winner)
            difference += 1
            winner = winner[self.level[winner] >= difference]

    def beyond(self, difference: int) -> Blocks:
        """The pairs whose levels differ by more; all pairs for 0.

        The losers of a row are a prefix of its query's sorted rows, and the close ones among them
        the end of that prefix.
        """
        winner = np.flatnonzero(self.level > difference)
        first = self.start[winner - self.level[winner]]
        n_losers = self.start[winner - difference] - first
        return Blocks(self.start[winner], self.size[winner], first, n_losers)


def distinct(end: int, n: int, rng: np.random.Generator) -> Array:
    """``n`` different integers below ``end``, ascending; every set of ``n`` has the same chance.

    Examples
    --------
    >>> distinct(10**12, 3, np.random.default_rng(0)).size
    3
    """
    if 2 * n > end:  # at most 2n numbers in all: draw those that are left out
        is_kept = np.ones(end, dtype=bool)
        is_kept[distinct(end, end - n, rng)] = False
        return np.flatnonzero(is_kept)
    # The different values among independent draws are, given how many they are, a uniform set;
    # so is a uniform part of it. At most half of the draws are repeats.
    found = np.zeros(0, dtype=np.int64)
    while len(found) < n:
        more = int((1 + n / end) * (n - len(found))) + 8
        found = np.sort(np.concatenate([found, rng.integers(end, size=more)]))
        found = found[np.diff(found, prepend=-1) > 0]  # as np.unique, which hashes and is slower
    excess = len(found) - n
    if excess:
        is_kept = np.ones(len(found), dtype=bool)
        is_kept[rng.choice(len(found), excess, replace=False, shuffle=False)] = False
        found = found[is_kept]
    return found


def without(taken: Array, numbers: Array) -> Array:
    """The ``numbers``-th of the integers from 0 that are not in ``taken``, which ascends.

    ``taken[t] - t`` of them lie below ``taken[t]``, so the k-th is k plus the number of t with
    ``taken[t] - t <= k``.

    Examples
    --------
    >>> without(np.array([0, 2, 3]), np.arange(4)).tolist()
    [1, 4, 5, 6]
    """
    gaps = taken - np.arange(len(taken))
    return numbers + np.searchsorted(gaps, numbers, side="right")


Count = int | str  # a number of pairs, or "auto"
Asked = tuple[str, Any]  # the name of a number of pairs, and what was given for it

_BYTES_OF_A_PAIR = 96  # its rows and weight, here and in the loss, and what finding it takes


def closest(y: Any, qid: Any = None, n: Count = "auto", *, seed: int = 0) -> Preferences:
    """The ``n`` pairs of a query whose labels are closest, in order of closeness.

    The closeness of a pair (i above j) is the difference r of the dense ranks of its labels within
    the query, so that equal labels count as one. First come all pairs with r = 1 of all queries,
    then those with r = 2, and so on; of the last r, as many as are left are drawn at random.

    Parameters
    ----------
    y : array of shape (n_rows,)
        Real labels.
    qid : array of shape (n_rows,)
        Query of each row; None: all rows are one query.
    n : int or "auto", default="auto"
        Pairs, from 1 to the number of all pairs. ``"auto"`` is all pairs with r = 1:
        ``S = Σ_q Σ_r n_qr n_q,r+1`` with ``n_qr`` rows of query q at level r.
    seed : int, default=0
        Of the draw from the last r.

    Returns
    -------
    Preferences
        Winners and losers by row of `y`, each pair once, without weights.

    Examples
    --------
    >>> from linrank.pairs import closest
    >>> closest([10.0, 30.0, 20.0, 20.0]).pairs.tolist()
    [[2, 0], [3, 0], [1, 2], [1, 3]]
    """
    return Selection.of(Queries.of(y, qid), closest=("n", n), seed=seed).list_pairs()


def random(y: Any, qid: Any = None, n: Count = "auto", *, seed: int = 0) -> Preferences:
    """``n`` different pairs of all; every set of ``n`` pairs has the same chance.

    The pairs of all queries are numbered, not listed: memory is that of the ``n`` pairs.

    Parameters
    ----------
    y : array of shape (n_rows,)
        Real labels.
    qid : array of shape (n_rows,)
        Query of each row; None: all rows are one query.
    n : int or "auto", default="auto"
        Pairs, from 1 to the number of all pairs. ``"auto"`` is as many as have neighboring
        labels, as in :func:`closest`.
    seed : int, default=0
        Of the draw.

    Returns
    -------
    Preferences
        Winners and losers by row of `y`, each pair once, without weights.

    Examples
    --------
    >>> from linrank.pairs import random
    >>> len(random(range(100_000), n=5)), len(random([0, 1, 2], n=3))
    (5, 3)
    """
    return Selection.of(Queries.of(y, qid), drawn=("n", n), seed=seed).list_pairs()


def pruned(
    y: Any, qid: Any = None, n_closest: Count = "auto", n_random: Count = "auto", *, seed: int = 0
) -> Preferences:
    """The ``n_closest`` closest pairs, then ``n_random`` of all others drawn uniformly.

    Parameters
    ----------
    y : array of shape (n_rows,)
        Real labels.
    qid : array of shape (n_rows,)
        Query of each row; None: all rows are one query.
    n_closest : int or "auto", default="auto"
        Closest pairs, as in :func:`closest`.
    n_random : int or "auto", default="auto"
        Pairs drawn from the rest, whatever their query, none twice. ``"auto"`` is as many as the
        closest. Where the rest has no more than that, it is taken whole.
    seed : int, default=0
        Of both draws.

    Returns
    -------
    Preferences
        Winners and losers by row of `y`, each pair once, without weights.

    Examples
    --------
    >>> from linrank.pairs import pruned
    >>> chosen = pruned(range(1000), n_random=10)
    >>> len(chosen), chosen.pairs[:2].tolist()
    (1009, [[1, 0], [2, 1]])
    """
    closest, drawn = ("n_closest", n_closest), ("n_random", n_random)
    return Selection.of(Queries.of(y, qid), closest=closest, drawn=drawn, seed=seed).list_pairs()


@dataclass(frozen=True, eq=False)
class Selection:
    """How many pairs of which closeness: the sizes are known, the pairs are not listed yet.

    Attributes
    ----------
    cells : Cells
        The rows by query and level.
    n_pairs, n_adjacent : int
        All pairs, and those of neighboring levels.
    n_closest, n_random : int
        Closest pairs and random ones of the rest that are chosen.
    seed : int
        Of the random ones, and of the cut among the closest.
    """

    cells: Cells
    n_pairs: int
    n_adjacent: int
    n_closest: int
    n_random: int
    seed: int

    @classmethod
    def of(
        cls,
        queries: Queries,
        *,
        closest: Asked | None = None,
        drawn: Asked | None = None,
        seed: int = 0,
    ) -> Selection:
        """Check the sizes, each given with its name; None chooses none of that kind."""
        if queries.n_pairs == 0:
            raise NoPairsError(no_pairs_message(queries))
        cells = Cells.of(queries)
        total, adjacent = queries.n_pairs, cells.at(1).n_pairs
        n_closest = 0 if closest is None else _size(*closest, adjacent, total)
        n_random = 0 if drawn is None else _size(*drawn, n_closest or adjacent, total)
        return cls(cells, total, adjacent, n_closest, min(n_random, total - n_closest), seed)

    @property
    def n_chosen(self) -> int:
        """Pairs chosen in all."""
        return self.n_closest + self.n_random

    @property
    def is_all(self) -> bool:
        """Whether every pair is chosen."""
        return self.n_chosen == self.n_pairs

    def list_pairs(self, only_random: bool = False) -> Preferences:
        """The pairs chosen, the closest first.

        ``only_random``: the random ones alone, where the closest are all those of neighboring
        levels.
        """
        n = self.n_random if only_random else self.n_chosen
        check_fits(
            n * _BYTES_OF_A_PAIR,
            f"a list of {n} pairs",
            "choose fewer of them, or use pairs='all' or 'adjacent', which list none",
        )
        rng, cut = np.random.default_rng(self.seed), np.zeros(0, dtype=np.int64)
        parts, difference, left = [], int(only_random), self.n_closest
        for blocks in () if only_random or not left else self.cells.by_difference():
            difference += 1
            if blocks.n_pairs <= left:
                taken = np.arange(blocks.n_pairs)
            else:
                taken = cut = distinct(blocks.n_pairs, left, rng)
            parts.append(blocks.pairs(taken))
            left -= len(taken)
            if left == 0:
                break
        if self.n_random:
            parts += self._others(difference, cut, rng)
        winners, losers = (
            self.cells.rows[np.concatenate(side)] for side in zip(*parts, strict=True)
        )
        return Preferences(winners, losers)

    def _others(
        self, difference: int, cut: Array, rng: np.random.Generator
    ) -> list[tuple[Array, Array]]:
        """Places of the random pairs.

        They are drawn from the pairs beyond ``difference`` and, where that one was cut, from what
        was left of it.
        """
        far, near = self.cells.beyond(difference), self.cells.at(max(difference, 1))
        n_near = near.n_pairs - len(cut) if len(cut) else 0
        drawn = distinct(far.n_pairs + n_near, self.n_random, rng)
        n_far = int(np.searchsorted(drawn, far.n_pairs))
        more = without(cut, drawn[n_far:] - far.n_pairs)
        return [far.pairs(drawn[:n_far]), near.pairs(more)]


def _size(name: str, n: Any, auto: int, total: int) -> int:
    """A number of pairs, checked against that of all."""
    if isinstance(n, str) and n == "auto":
        return auto
    if not isinstance(n, numbers.Integral) or isinstance(n, bool):
        raise TypeError(f"{name} must be an integer or 'auto', got {n!r}")
    size = int(n)
    if size < 1:
        raise ValueError(f"{name} must be >= 1, got {n}")
    if size > total:
        raise TooFewPairsError(
            f"{name} is {n}, but the labels make only {total} pairs; lower it, or use all pairs"
        )
    return size


def select_pairs(
    data: Dataset,
    *,
    pairs: str = "all",
    n_closest: Count = "auto",
    n_random: Count = "auto",
    seed: int = 0,
    pair_weighting: str = "uniform",
    query_weight: Array | None = None,
    query_normalization: str | None = None,
) -> tuple[Pairs | None, Preferences | None]:
    """The pairs to learn from, with their weights: those to sweep and those that are listed.

    Parameters
    ----------
    data : Dataset
        Labels and queries, and the row weights u of ``ω_ij = c_q u_i u_j (g_i - g_j)``.
    pairs : {"all", "adjacent", "closest", "pruned"}
        ``"closest"``: the `n_closest` pairs of the closest labels; ``"pruned"``: `n_random` of the
        others beside them. All pairs and those of neighboring labels are swept, not listed.
    n_closest, n_random : int or "auto"
        As in :func:`linrank.pairs.pruned`.
    seed : int
        Of the pairs drawn at random.
    pair_weighting, query_weight, query_normalization
        The factors g and c, as in :func:`linrank.pairs.choose_pairs`; ``"pairs"`` divides c_q by
        the weights of the pairs chosen, swept and listed together.

    Returns
    -------
    swept : Pairs or None
    listed : Preferences or None
        At least one of the two; no pair is in both.
    """
    if n_closest != "auto" and pairs not in SELECTED_PAIRS:
        raise ValueError(
            f"n_closest={n_closest} belongs to pairs='closest' and 'pruned', got pairs={pairs!r}"
        )
    if n_random != "auto" and pairs != "pruned":
        raise ValueError(f"n_random={n_random} belongs to pairs='pruned', got pairs={pairs!r}")
    queries = data.queries
    if queries.n_pairs == 0:
        raise NoPairsError(no_pairs_message(queries))
    every = _pairs_of_labels(data, pair_weighting)
    swept: Pairs | None = replace(every, adjacent=pairs == "adjacent")
    listed: Preferences | None = None
    if pairs in SELECTED_PAIRS:
        selection = _selection(queries, pairs, n_closest, n_random, seed)
        is_split = selection.n_closest == selection.n_adjacent  # what is closest can be swept
        if not selection.is_all:
            swept = replace(every, adjacent=True) if is_split else None
            if selection.n_random or not is_split:
                listed = weigh_as(every, selection.list_pairs(only_random=is_split))
    c = None if query_weight is None else np.ascontiguousarray(query_weight, dtype=np.float64)
    if query_normalization == "pairs":
        total = np.zeros(queries.n_queries) if swept is None else swept.weight_by_query
        if listed is not None:
            query = listed.queries_of(queries)[0]
            total = total + np.bincount(query, listed.weight, queries.n_queries)
        inverse = np.divide(1.0, total, out=np.zeros_like(total), where=total > 0)
        c = inverse if c is None else c * inverse
    if swept is not None:
        swept = replace(swept, query_weight=c)
    if listed is not None:
        listed = _weigh_by_query(listed, queries, c)
    parts = (part.total_weight() for part in (swept, listed) if part is not None)
    check_total(sum(parts), pair_weighting)
    return swept, listed


def chosen_sizes(
    queries: Queries, pairs: str = "all", n_closest: Count = "auto", n_random: Count = "auto"
) -> dict[str, int]:
    """How many pairs `select_pairs` takes, ``n_pairs``, and how many of each kind; finds none.

    Examples
    --------
    >>> chosen_sizes(Queries.of([0, 1, 2, 3, 4, 5]), "pruned", n_random=2)
    {'n_closest': 5, 'n_random': 2, 'n_pairs': 7}
    """
    if pairs not in SELECTED_PAIRS or queries.n_pairs == 0:
        return {"n_pairs": Pairs(queries, adjacent=pairs == "adjacent").n_pairs}
    found = _selection(queries, pairs, n_closest, n_random)
    drawn = {"n_random": found.n_random} if pairs == "pruned" else {}
    return {"n_closest": found.n_closest, **drawn, "n_pairs": found.n_chosen}


def _selection(
    queries: Queries, pairs: str, n_closest: Count, n_random: Count, seed: int = 0
) -> Selection:
    """What is chosen where ``pairs`` is closest or pruned."""
    drawn = ("n_random", n_random) if pairs == "pruned" else None
    return Selection.of(queries, closest=("n_closest", n_closest), drawn=drawn, seed=seed)


def weigh_as(pairs: Pairs, listed: Preferences) -> Preferences:
    """The listed pairs with the weights ``c_q u_i u_j (g_i - g_j)`` of ``pairs``."""
    queries = pairs.queries
    if pairs.row_weight is not None:
        u = queries.scatter(pairs.row_weight)
        with np.errstate(over="ignore"):  # `check_total` refuses such weights
            listed = _times(listed, u[listed.winners] * u[listed.losers])
    if pairs.gain is not None:
        g = queries.scatter(pairs.gain)
        listed = _times(listed, g[listed.winners] - g[listed.losers])
    return _weigh_by_query(listed, queries, pairs.query_weight)


def _weigh_by_query(listed: Preferences, queries: Queries, c: Array | None) -> Preferences:
    """The listed pairs, their weights times c of their query."""
    return listed if c is None else _times(listed, c[listed.queries_of(queries)[0]])


def _times(listed: Preferences, factor: Array) -> Preferences:
    weight = factor if listed.weight is None else listed.weight * factor
    return replace(listed, weight=weight)
