"""Training a linear RankSVM: puts data, loss, solver and preconditioner together."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from linrank import _core, published
from linrank import choices as of
from linrank.data.bounds import Box
from linrank.data.dataset import Dataset
from linrank.data.preferences import Preferences
from linrank.data.queries import Queries
from linrank.data.rows import (
    Array,
    DenseRows,
    Design,
    Stored,
    StreamedRows,
    entries_of,
    without_offsets,
)
from linrank.errors import NoPairsError, check_natural, check_numbers, check_one_of
from linrank.losses.base import ScoreLoss, loss_of_pairs
from linrank.losses.swaps import Swaps, check_longest, swap_measure
from linrank.objective import Ridge, Risk, Sum
from linrank.pairs import Pairs, check_total, select_pairs
from linrank.solvers import conjugate
from linrank.solvers.bundle import bundle
from linrank.solvers.continuation import Sharpening
from linrank.solvers.newton import newton
from linrank.solvers.result import Callback, Result
from linrank.system.resources import cached_property, resolve, useful_threads

CERTIFIED = 1 << 20  # entries up to which fits go on to a proof: a step more takes a millisecond
PROOF = 1e-3  # beyond, the share of F that is to be certified once an estimate is within tol
MOST_FACTORED = 4000  # features up to which a matrix of their size is formed
_SPANNED = 1 << 31  # products that a basis of the rows may take: a fifth of a second
_AGED = 3  # products that a small Hessian is kept for
_STEEP, _GROWTH = 2e2, 4.0  # steepness that asks for a basis; from C to C on the way there
_ROUGH = 1e-2  # tolerance on the sample that gives the start
_WIDE = 0.5  # band of the smoothed hinge in the Hessian of a sample


Plannable = Any  # a problem that `plan` may be asked for


def plan(problem: Plannable, w0: Array | None) -> tuple[Array, conjugate.Preconditioner]:
    """Start and preconditioner for the regime of the data.

    A problem has ``rows`` with shape, nbytes and is_sparse (the matrix, or the `Extent` of one that
    is elsewhere), the ``loss``, ``n_rows`` that are compared with others at most, ``longest_query``
    (rows), ``capacity`` (rows that a sample may have), ``largest_matrix`` (features up to which the
    whole Hessian may be formed), and makes ``objective(epsilon)``, ``sharpening(tol)`` and
    ``sample(n_rows)``, a problem too.

    While the explicit Hessian costs no more than a dozen products, or thirty where a narrow band of
    the hinge makes each solve long, it is the safest choice and needs no tuning; beyond, the
    Hessian of a sample of 50 rows per feature; where even a Cholesky factor, ``n³/6``, is out of
    proportion, the diagonal, or nothing if rows are few. Where a twentieth of the rows still
    determines the features, the optimum on them is a first guess that saves outer iterations, and
    their Hessian comes before all others but the diagonal.

    Where rows are computed for every product, a sample is all that can be stored, and worth it.
    """
    n_rows, n = problem.n_rows, problem.rows.shape[1]
    start = np.zeros(n) if w0 is None else np.array(w0, dtype=np.float64)
    price = problem.rows.hessian_price
    patience, guess, most = price // 2 + 2, None, 12
    n_sample = min(n_rows // 20, problem.capacity)
    if problem.loss == "hinge":
        patience, most = 2, 30  # the Hessian of a narrow band ages within a step
    if _is_streamed(problem):
        if not problem.rows.has_matrix:
            return start, conjugate.Plain()
        n_sample = min(max(50 * n, n_rows // 20), n_rows, problem.capacity)
        return _from_sample(problem, n_sample, w0, patience)
    if isinstance(problem, Problem) and problem.is_steep:
        return _for_few_rows(problem, w0)
    cheap = _without_matrix(problem)
    if cheap is not None:
        return start, cheap
    if n_sample >= 30 * n:
        start, guess = _from_sample(problem, n_sample, w0, patience)
    if guess is not None and problem.longest_query >= _core.LONG_QUERY:
        return start, guess  # the core builds the Hessian of a query on one thread
    if n <= problem.largest_matrix and (price <= most or n_rows < 100 * n):
        return start, conjugate.Explicit(patience, guess)
    return start, guess or conjugate.Sampled(
        lambda m: problem.sample(m).objective(_WIDE), 50 * n, start
    )


def is_small(problem: Plannable) -> bool:
    """Whether a proof of the optimum costs so little that an estimate will not do."""
    return entries_of(problem.rows) * problem.n_rows <= CERTIFIED


def _is_streamed(problem: Plannable) -> bool:
    """Whether its losses cannot look at its rows, but for a sample that is stored."""
    return isinstance(problem.rows, StreamedRows) and not getattr(problem, "is_on_device", False)


def _from_sample(
    problem: Plannable, n_sample: int, w0: Array | None, patience: int
) -> tuple[Array, conjugate.Sampled]:
    """The optimum on a sample, unless w0 is given, and the preconditioner of that sample."""
    part = problem.sample(n_sample)
    if w0 is not None:
        start = np.array(w0, dtype=np.float64)
    else:
        start = newton(
            part.objective(),
            np.zeros(problem.rows.shape[1]),
            preconditioner=conjugate.Explicit(patience),
            tol=_ROUGH,
            sharpen=part.sharpening(_ROUGH),
        ).w
    first = [part]  # which is not held any longer than it is needed: its rows may be a copy

    def sample(n_rows: int) -> Sum:
        return (first.pop() if first else problem.sample(n_rows)).objective(_WIDE)

    del part
    guess = conjugate.Sampled(
        sample,
        n_sample,
        start,
        sees_all=not _is_streamed(problem),
    )
    return start, guess


def _for_few_rows(problem: Problem, w0: Array | None) -> tuple[Array, conjugate.Preconditioner]:
    """Start and preconditioner for a large C and fewer rows than features.

    Nearly all such data are separable, and Newton's method from 0 creeps: at first all pairs are
    violated, at the optimum as many as there are rows. So the start follows the optimum from a
    small C on, where the losses are hardly more curved than ``½‖w‖²``: in the span of the rows,
    where a basis of it costs next to nothing.
    """
    n_rows, n = problem.rows.shape
    if not isinstance(problem.rows, DenseRows) or n * n_rows**2 > _SPANNED:
        cheap = _without_matrix(problem) or conjugate.Explicit(_AGED)
        start = _follow(problem, cheap) if w0 is None else np.array(w0, dtype=np.float64)
        return start, cheap
    values = problem.rows.values.astype(np.float64)
    scaled = values if problem.scale is None else values * problem.scale
    basis, triangle = np.linalg.qr(scaled.T)
    rows = DenseRows(np.ascontiguousarray(triangle.T))
    if w0 is None:
        within = replace(problem, rows=rows, scale=None)
        start = basis @ _follow(within, conjugate.Explicit(_AGED))
    else:
        start = np.array(w0, dtype=np.float64)
    return start, conjugate.Spanned(basis, rows, _AGED)


def _follow(problem: Problem, preconditioner: conjugate.Preconditioner) -> Array:
    """A rough optimum for a little less than C, from one where the losses hardly count on."""
    w, C = np.zeros(problem.rows.shape[1]), problem.C / problem.steepness
    while C < problem.C:
        part = replace(problem, C=C)
        w = newton(
            part.objective(),
            w,
            preconditioner=preconditioner,
            tol=_ROUGH,
            sharpen=part.sharpening(_ROUGH),
            certified=True,
        ).w
        C *= _GROWTH
    return w


def path_preconditioner(problem: Any) -> conjugate.Preconditioner:
    """The preconditioner of a path; the problem is `Plannable`, and has a C.

    One Hessian serves some fifty products, so the whole one is taken up to a price of ten; beyond,
    that of a sample, four times as large each time it disappoints.
    """
    n_rows, n = problem.n_rows, problem.rows.shape[1]
    price, n_sample = problem.rows.hessian_price, max(50 * n, n_rows // 20)
    if _is_streamed(problem):
        if not problem.rows.has_matrix:
            return conjugate.Plain()
    else:
        cheap = _without_matrix(problem)
        if cheap is not None:
            return cheap
        is_long = problem.longest_query >= _core.LONG_QUERY
        is_cheap = 2 * n_sample > n_rows or (price <= 10 and not is_long)
        if is_cheap and n <= problem.largest_matrix:
            return conjugate.Carried(lambda point, _: point, patience=price // 2 + 1)

    def on_sample(point: Any, k: int) -> Any:
        sample: Any = problem.sample(min(n_sample * 4**k, n_rows))
        factor = point.parts[1].risk.C / problem.C
        return replace(sample, C=factor * sample.C).objective().at(point.w)

    return conjugate.Carried(on_sample, patience=8)


def _without_matrix(problem: Plannable) -> conjugate.Preconditioner | None:
    """A preconditioner for more features than a Cholesky factor is worth; None below that."""
    n_rows, n = problem.n_rows, problem.rows.shape[1]
    if n <= MOST_FACTORED and (n <= 300 or n_rows >= 2 * n):
        return None
    if 2 * n_rows < n:
        return conjugate.Plain()
    return conjugate.Diagonal(memory=min(24, int(entries_of(problem.rows) * n_rows / n) + 1))


_ROWS_OF_A_QUERY = 128  # more rows of one query tell less than rows of another one


def sample_queries(
    queries: Queries, n_rows: int, seed: int, n_first: Array | None = None
) -> tuple[Queries, Array, Array]:
    """About ``n_rows`` rows of randomly chosen queries that have pairs.

    Of a long query the same number of rows is drawn from each level, so that the few relevant rows
    among many others are all kept; without levels to speak of, any rows. The weights make up for
    the rows left out: by the product rule the pairs of two levels keep their weight. Of each query
    the ``n_first`` first rows are kept.

    Returns
    -------
    sample : Queries
        The chosen queries, over the same matrix.
    positions : int64 array
        Position in ``queries`` of each position of the sample.
    weight : float64 array
        Rows that each row of the sample stands for.
    """
    chosen, limit = choose_queries(np.diff(queries.offsets), queries.n_levels, n_rows, seed)
    return draw_rows(queries, chosen, limit, seed, n_first=n_first)


def choose_queries(lengths: Array, n_levels: Array, n_rows: int, seed: int) -> tuple[Array, int]:
    """The queries of a sample of about ``n_rows`` rows, ascending, and the most rows of each.

    It looks at numbers of rows and levels only: the queries themselves may be elsewhere.
    """
    rng = np.random.default_rng(seed)
    useful = np.flatnonzero(n_levels > 1)
    limit = max(_ROWS_OF_A_QUERY, n_rows // max(1, len(useful)))
    chosen = rng.permutation(useful)
    n_chosen = int(np.searchsorted(np.cumsum(np.minimum(lengths[chosen], limit)), n_rows)) + 1
    return np.sort(chosen[:n_chosen]), limit


def draw_rows(
    queries: Queries,
    chosen: Array,
    limit: int,
    seed: int,
    first: int = 0,
    n_first: Array | None = None,
) -> tuple[Queries, Array, Array]:
    """Rows of the chosen queries, at most ``limit`` of each, as `sample_queries` returns them.

    ``first`` is the number of the first query in the whole that ``queries`` are a part of: what is
    drawn from a query does not depend on how the whole is cut into parts.
    """
    begins, sizes = queries.offsets[chosen], np.diff(queries.offsets)[chosen]
    heads = np.zeros_like(sizes) if n_first is None else np.minimum(n_first[chosen], sizes)
    is_long = sizes > limit
    heads[~is_long] = sizes[~is_long]
    n_drawn, n_levels = np.maximum(limit - heads, limit // 2), queries.n_levels[chosen]
    has_runs = is_long & (8 * n_levels <= n_drawn)  # many levels are spread enough as they are
    drawn = [(_ranges(begins, heads), np.ones(heads.sum()))]
    for some in (np.flatnonzero(is_long & ~has_runs), *_batches(has_runs, n_levels)):
        runs = np.where(has_runs, n_levels, 1)[some]
        level = _ranges(np.zeros_like(runs), runs)
        shift = _uniform(seed, np.repeat(first + chosen[some], runs), level)
        rows, first_row, n_rows = None, (begins + heads)[some], (sizes - heads)[some]
        if len(runs) < len(shift):
            rows, first_row, n_rows = _by_level(queries.levels, first_row, n_rows, runs)
        quota = np.repeat(n_drawn[some] // runs, runs)
        place, weight = _spaced(first_row, n_rows, quota, shift)
        drawn.append((place if rows is None else rows[place], weight))
    positions, weight = (np.concatenate(each) for each in zip(*drawn, strict=True))
    ascending = np.argsort(positions)
    positions, weight = positions[ascending], weight[ascending]
    ends = queries.offsets[chosen + 1]
    offsets = np.concatenate([[0], np.searchsorted(positions, ends)])
    # Ranked anew: the trees of the kernels are as large as the number of levels, and a few rows of
    # a query with a million labels have few levels.
    labels = queries.levels[positions].astype(np.float64)
    levels, n_levels = _core.rank_levels(labels, offsets, None)
    order = positions if queries.order is None else queries.order[positions]
    sample = Queries(offsets=offsets, order=order, levels=levels, n_levels=n_levels)
    return sample, positions, weight


def sample_preferences(
    preferences: Preferences, share: float, seed: int, factor: float = 1.0
) -> Preferences:
    """About ``share`` of the preferences, weighing together ``factor`` times as much as all."""
    n = len(preferences)
    n_kept = min(n, int(share * n) + 1)
    kept = np.sort(np.random.default_rng(seed).choice(n, n_kept, replace=False, shuffle=False))
    weight = np.ones(n_kept) if preferences.weight is None else preferences.weight[kept]
    total = float(weight.sum())
    if total > 0:
        weight = weight * (factor * preferences.total_weight() / total)
    return Preferences(preferences.winners[kept], preferences.losers[kept], weight)


def _ranges(begins: Array, sizes: Array) -> Array:
    """The numbers from each begin on, so many of them, one range after the other."""
    ends = np.cumsum(sizes)
    found: Array = np.arange(ends[-1] if len(ends) else 0) + np.repeat(begins - ends + sizes, sizes)
    return found


def _batches(has_runs: Array, n_levels: Array) -> Iterator[Array]:
    """Queries with so many levels together that 16 bits number them: NumPy sorts these by counting.

    A query with more is alone.
    """
    left = np.flatnonzero(has_runs)
    while len(left):
        n = int(np.searchsorted(np.cumsum(n_levels[left]), 1 << 16, "right"))
        yield left[: max(1, n)]
        left = left[max(1, n) :]


def _by_level(
    levels: Array, begins: Array, sizes: Array, n_levels: Array
) -> tuple[Array, Array, Array]:
    """The positions of some queries by level, and where the rows of each level begin and how many.

    Narrow numbers, and rows that keep their order: a shuffle would be out of cache.
    """
    rows, n_runs = _ranges(begins, sizes), int(n_levels.sum())
    run = np.repeat(np.cumsum(n_levels) - n_levels, sizes) + levels[rows]
    order = np.argsort(run.astype(np.uint16 if n_runs <= 1 << 16 else np.uint32), kind="stable")
    counts = np.bincount(run, minlength=n_runs)
    return rows[order], np.cumsum(counts) - counts, counts


def _spaced(first: Array, sizes: Array, quotas: Array, shift: Array) -> tuple[Array, Array]:
    """Places at equal distances in runs of rows, and how many rows each of them stands for."""
    share, drawn = np.maximum(sizes / quotas, 1.0), np.minimum(sizes, quotas)
    run, k = np.repeat(np.arange(len(sizes)), drawn), _ranges(np.zeros_like(drawn), drawn)
    within = (k + np.where(share > 1.0, shift, 0.0)[run]) * share[run]
    return first[run] + np.minimum(within.astype(np.int64), sizes[run] - 1), share[run]


def _uniform(seed: int, *numbers: Array) -> Array:
    """A number in [0, 1) for each key, the same wherever it is asked for (SplitMix64)."""
    x = np.full(len(numbers[0]), seed, dtype=np.uint64)
    for number in numbers:
        x = (x ^ number.astype(np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1)):
            x = (x ^ (x >> np.uint64(shift))) * np.uint64(factor)
    return (x >> np.uint64(11)) * 2.0**-53


class Balance(float):
    """A weight of all losses together, ``C Σω``, in place of C."""


SAMPLE_SEED = 20140401  # of the preconditioner only: the optimum does not depend on it


@dataclass(frozen=True, eq=False)
class Problem:
    """The RankSVM objective and what it takes to make a smaller one of it."""

    rows: Design
    pairs: Pairs | Swaps | None  # of the labels; None if there are none
    C: float
    scale: Array | None
    n_threads: int
    loss: str = "squared_hinge"
    preferences: Preferences | None = None
    box: Box | None = None

    @classmethod
    def of(
        cls,
        data: Dataset,
        C: float,
        *,
        loss: str = "squared_hinge",
        preferences: Any = None,
        bounds: tuple[Array, Array] | None = None,
        scale: Array | None = None,
        n_jobs: int | None = None,
        swaps: Swaps | None = None,
        **weighing: Any,
    ) -> Problem:
        """The problem of these data; ``weighing`` are the options of `linrank.pairs.select_pairs`.

        With ``swaps`` the pairs of the labels are these.
        """
        if preferences is not None:
            preferences = Preferences.of(preferences, n_rows=data.n_rows)
        pairs: Pairs | Swaps | None = swaps
        if swaps is None:
            pairs, listed = _graded_pairs(data, preferences is None, **weighing)
            if listed is not None:
                preferences = listed if preferences is None else listed.joined(preferences)
        if isinstance(C, Balance):
            every = (part for part in (pairs, preferences) if part is not None)
            C = C / sum(part.total_weight() for part in every)
        n_threads = useful_threads(data.rows.nbytes, resolve(n_jobs))
        box = None if bounds is None else Box(*bounds)
        rows: Design = data.rows
        if isinstance(rows, Stored):
            rows = without_offsets(rows)
        return cls(rows, pairs, float(C), scale, n_threads, loss, preferences, box)

    @property
    def is_on_device(self) -> bool:
        """Whether the losses are on the device of the rows: those of all pairs of labels are."""
        is_there = isinstance(self.rows, StreamedRows) and self.rows.device is not None
        return is_there and isinstance(self.pairs, Pairs) and self.preferences is None

    @property
    def n_rows(self) -> int:
        """Rows that are compared with others, at most."""
        if self.pairs is not None:
            return self.pairs.queries.n_rows
        return min(self.rows.shape[0], 2 * len(self.preferences or ()))

    @property
    def longest_query(self) -> int:
        """Rows of the longest query with pairs to find; 0 if all are listed."""
        return 0 if self.pairs is None else int(np.diff(self.pairs.queries.offsets).max())

    @property
    def capacity(self) -> int:
        """Rows that a sample may have."""
        rows: Any = self.rows
        return rows.capacity if _is_streamed(self) else self.n_rows

    @property
    def largest_matrix(self) -> int:
        """Features up to which the whole Hessian may be formed: all that its factor is worth."""
        return self.rows.shape[1]

    @cached_property
    def steepness(self) -> float:
        """Curvature of the losses at 0, where all pairs are violated, per row; that of ½‖w‖² is 1.

        Of ``trace(∇²F - 1)``.
        """
        diagonal = self.objective().at(np.zeros(self.rows.shape[1])).hessian_diagonal()
        return float(np.sum(diagonal - 1.0)) / self.n_rows

    @property
    def is_steep(self) -> bool:
        """Whether C is large, and rows are fewer than features."""
        return (
            self.rows.shape[0] < self.rows.shape[1] and self.box is None and self.steepness > _STEEP
        )

    def objective(self, epsilon: float = 1.0) -> Sum:
        """``F``, with the hinge smoothed within ``epsilon`` of its kink."""
        return self._sum(self.losses(epsilon))

    def losses(self, epsilon: float | None = 1.0) -> list[ScoreLoss]:
        """The losses that ``F`` is made of: of the pairs of labels, of the preferences.

        They are smoothed as in `objective`, or not at all if ``epsilon`` is None.
        """
        if self.is_on_device:
            from linrank.losses.device_pairs import loss_on_device  # few have a device

            pairs: Any = self.pairs
            device = self.rows.device
            return [loss_on_device(self.loss, pairs, device, epsilon, self.n_threads)]
        how: dict[str, Any] = {"epsilon": epsilon, "n_rows": self.rows.shape[0]}
        parts = (part for part in (self.pairs, self.preferences) if part is not None)
        return [loss_of_pairs(self.loss, part, self.n_threads, **how) for part in parts]

    def unsmoothed(self) -> Sum:
        """``F`` with its kinks, for a method that does not need curvature."""
        return self._sum(self.losses(None))

    def published(self, method: str, counting: str | None) -> Sum:
        """``F`` as a published method computes it: sparse rows in double, one thread."""
        if isinstance(self.rows, StreamedRows):
            raise ValueError(
                f"solver={method!r} is a published method and reads stored rows, but these are "
                f"{self.rows.describe()}; use solver='newton', or allow more memory"
            )
        alone = replace(self, rows=published.sparse_doubles(self.rows), n_threads=1)
        losses = alone.losses(None)
        if self.pairs is not None:
            losses[0] = published.published_loss(self.pairs, self.loss, method, counting)
        return alone._sum(losses)

    def _sum(self, losses: list[ScoreLoss]) -> Sum:
        """``½‖w‖²`` and the risks of the pairs of labels and of the preferences, if there are."""
        return Sum(Ridge(self.box), *(Risk(self.rows, loss, self.C, self.scale) for loss in losses))

    def sharpening(self, tol: float) -> Sharpening | None:
        """From the smoothed hinge to the hinge; None where nothing is smoothed."""
        return Sharpening(self.objective, tol) if self.loss == "hinge" else None

    def sample(self, n_rows: int) -> Problem:
        """The same problem on about ``n_rows`` rows, its loss scaled up to the whole.

        Of rows that are computed block by block those of the sample are stored.
        """
        if not _is_streamed(self):
            return self._sample(n_rows)
        rows: Any = self.rows
        return self._sample(min(n_rows, rows.capacity))._store_rows(rows)

    def _store_rows(self, rows: StreamedRows) -> Problem:
        """The same problem on the rows that it names, stored; ``rows`` are all of them."""
        pairs, listed = self.pairs, self.preferences
        named = [np.zeros(0, dtype=np.int64)]
        if pairs is not None:
            order = pairs.queries.order
            named.append(np.arange(rows.shape[0]) if order is None else order)
        if listed is not None:
            named += [listed.winners, listed.losers]
        kept = np.unique(np.concatenate(named))
        if pairs is not None:
            pairs = replace(pairs, queries=replace(pairs.queries, order=_place(kept, named[1])))
        if listed is not None:
            ends = _place(kept, listed.winners), _place(kept, listed.losers)
            listed = Preferences(*ends, listed.weight)
        return replace(
            self, rows=rows.stored(kept, self.n_threads), pairs=pairs, preferences=listed
        )

    def _sample(self, n_rows: int) -> Problem:
        whole = self.pairs
        if whole is None:
            return self._with_preferences_of(self, n_rows / self.n_rows)
        n_first = whole.depth if isinstance(whole, Swaps) else None
        queries, positions, row_weight = sample_queries(whole.queries, n_rows, SAMPLE_SEED, n_first)
        pairs = whole.on(queries, positions, row_weight)
        n_bytes = self.rows.nbytes * queries.n_rows / whole.queries.n_rows
        weight = pairs.total_weight()
        sample = replace(
            self,
            pairs=pairs,
            C=self.C * whole.total_weight() / weight if weight > 0 else self.C,
            n_threads=useful_threads(n_bytes, self.n_threads),
        )
        return sample._with_preferences_of(self, n_rows / self.n_rows)

    def _with_preferences_of(self, whole: Problem, share: float) -> Problem:
        """The same problem with a share of the preferences, which keep their weight in all."""
        if whole.preferences is None:
            return self
        some = sample_preferences(whole.preferences, share, SAMPLE_SEED, whole.C / self.C)
        n_threads = useful_threads(share * self.rows.nbytes, self.n_threads)
        return replace(self, preferences=some, n_threads=n_threads)


def _place(kept: Array, rows: Array) -> Array:
    """Where the rows are among those kept, which ascend."""
    return np.searchsorted(kept, rows).astype(np.int64, copy=False)


def _graded_pairs(
    data: Dataset, is_needed: bool, **options: Any
) -> tuple[Pairs | None, Preferences | None]:
    """The pairs of the labels, swept and listed; None where there are none and none are needed."""
    try:
        return select_pairs(data, **options)
    except NoPairsError:
        if is_needed:
            raise
        return None, None


def swapped_pairs(
    data: Dataset, measure: str, n_rounds: int = 1, **options: Any
) -> tuple[Swaps, Array]:
    """The pairs of the last round of weighting by a measure, and where its training may begin.

    The first round takes the ranking of a model of all pairs, every query of the same weight; each
    further one that of the round before. These models have ``C = 10 / Σω``: the last problem alone
    has a C of its own, so that the weights are the same along a path. They begin at 0, so that the
    problem does not depend on where its solver starts. ``options`` are further ones of `train`, of
    which those that choose or weigh pairs of the labels mean nothing to the pairs of a ranking.
    """
    wanted = swap_measure(measure)
    check_longest(wanted, int(np.diff(data.queries.offsets).max()))
    normalization = options.get("query_normalization")
    options = {name: value for name, value in options.items() if name not in _OF_LABELS}
    n_threads = useful_threads(data.rows.nbytes, resolve(options.get("n_jobs")))
    found = train(data, C=FIRST, query_normalization="pairs", tol=START, **options)
    for k in range(n_rounds):
        w = found.w if options.get("scale") is None else options["scale"] * found.w
        swaps = Swaps.of(
            data.queries,
            data.labels,
            data.rows.scores(w, None, n_threads),
            wanted,
            row_weight=data.weight,
            query_weight=options.get("query_weight"),
            query_normalization=normalization,
            n_threads=n_threads,
        )
        if options.get("preferences") is None:
            check_total(swaps.total_weight(), measure)
        if k + 1 < n_rounds:
            found = train(data, C=FIRST, tol=START, swaps=swaps, w0=found.w, **options)
    return swaps, found.w


# Which pairs of the labels are compared, and how heavily.
_OF_LABELS = ("pairs", "n_closest", "n_random", "seed", "pair_weighting", "query_normalization")
FIRST, START = Balance(10.0), 1e-3  # C Σω and tolerance of the models whose rankings weigh pairs
_NARROW = 1e-5  # tolerance of the hinge below which bands get so steep that products need doubles


def train(
    data: Dataset,
    *,
    C: float = 1.0,
    solver: str = of.SOLVERS[0],
    counting: str | None = None,
    n_rounds: int = 1,
    tol: float | None = None,
    max_iter: int | None = None,
    w0: Array | None = None,
    callback: Callback | None = None,
    swaps: Swaps | None = None,
    **losses: Any,
) -> Result:
    """Minimize ``F(w) = ½‖w‖² + C Σ ω_ij l(1 - w·D(x_i - x_j))`` over pairs (i above j).

    Parameters
    ----------
    data : Dataset
        Rows, labels, queries; its row weights u enter ``ω_ij = c_q u_i u_j``.
    C : float, default=1.0
        Weight of the pair losses, > 0; a `Balance` is divided by ``Σ ω_ij``.
    loss : {"squared_hinge", "hinge"}
        ``l(ξ) = max(0, ξ)²`` or ``max(0, ξ)``.
    pairs : {"all", "adjacent", "closest", "pruned"}
        ``"adjacent"`` compares neighboring levels of a query only, ``"closest"`` the `n_closest`
        pairs of the closest levels, ``"pruned"`` also `n_random` of the others.
    n_closest, n_random : int or "auto"
        As in :func:`linrank.pairs.pruned`; ``"auto"`` closest pairs are those of ``"adjacent"``.
    seed : int, default=0
        Of the pairs drawn at random.
    pair_weighting : {"uniform", "grade_diff", "gain_diff"} or a measure
        Further factor of ``ω_ij``: 1, ``y_i - y_j`` or ``2^y_i - 2^y_j``. Of a measure, as in
        ``"ndcg@20"``: what swapping i and j changes in it, see `swapped_pairs`.
    n_rounds : int, default=1
        Rankings that weigh pairs by a measure, each by the model of the last.
    solver : {"newton", "bundle", "tron", "prsvm", "prsvm+"}
        ``"bundle"`` cuts planes; the last three are published methods, on one thread: ``"tron"``
        is the baseline, ``"prsvm"`` lists the pairs, ``"prsvm+"`` takes the levels one by one.
    counting : str, optional
        How tron and bundle count violated pairs: one of `linrank.published.COUNTINGS`. None is
        ``"selection-tree"`` for tron, and newton's own way for bundle.
    tol : float, optional
        newton: stop when the estimate of ``F - F*`` is at most ``tol·F`` (1e-4 if None) and the
        certified gap small, see `PROOF`; for the hinge, when the gap is (1e-3 if None).
        bundle: when the certified gap is, for both losses (1e-3 if None).
        Published methods: stop when ``‖∇F(w)‖ <= tol·‖∇F(0)‖`` (1e-3 if None).
    max_iter : int, optional
        Outer iterations; if None 100, of the bundle, whose iterations are cheap, 2000.
    scale : float64 array (n_features,), optional
        The diagonal of D; columns are multiplied on the fly.
    query_weight : float64 array (n_queries,), optional
        The factors c_q, in the order of ``data.queries``.
    query_normalization : {None, "pairs"}
        ``"pairs"`` divides c_q by ``Σ ω_ij`` of the query's pairs: each query counts once.
    preferences : Preferences, optional
        Pairs of rows of ``data``, with weights ω of their own; their losses are added. Labels that
        make no pair are no error then.
    bounds : (lower, upper), float64 arrays (n_features,), optional
        ``lower <= w <= upper``, ±inf where an end is open; newton only. They bind w, not ``D w``.
    w0 : float64 array, optional
        Start; zero if None. Clipped to the bounds.
    n_jobs : int, optional
        Threads; None for all cores. The result does not depend on it.
    callback : callable, optional
        Called with the state of each iterate; stops the solver by returning True.
    swaps : Swaps, optional
        The pairs of the labels, where a measure has weighted them already.

    Returns
    -------
    Result
    """
    check_numbers(C, tol, max_iter)
    check_natural("n_rounds", n_rounds)
    check_choices(solver=solver, **losses)
    if losses.get("bounds") is not None and solver != "newton":
        raise ValueError(f"solver={solver!r} cannot keep bounds; use solver='newton'")
    if counting is not None:
        published.check_counting(solver, counting, losses.get("pairs"))
    started = time.perf_counter()
    weighting = losses.get("pair_weighting", of.PAIR_WEIGHTINGS[0])
    if weighting not in of.PAIR_WEIGHTINGS and swaps is None:
        swaps, start = swapped_pairs(data, weighting, n_rounds, **losses)
        w0 = start if w0 is None else w0
    problem = Problem.of(data, C, swaps=swaps, **losses)
    if solver != "newton":
        is_ours = solver == "bundle" and counting is None
        found = (bundle if solver == "bundle" else published.tron)(
            problem.unsmoothed() if is_ours else problem.published(solver, counting),
            np.zeros(data.n_features) if w0 is None else np.array(w0, dtype=np.float64),
            tol=tol or default_tol(problem.loss, solver),
            max_iter=(2000 if solver == "bundle" else 100) if max_iter is None else max_iter,
            callback=callback,
            started=started,
        )
        return replace(found, C=problem.C)
    is_narrow = problem.loss == "hinge" and tol is not None and tol < _NARROW
    if is_narrow and isinstance(problem.rows, DenseRows):
        problem = replace(problem, rows=_doubles(problem.rows))
    how: dict[str, Any] = {"max_iter": max_iter, "callback": callback, "started": started}
    return replace(by_newton(problem, w0, tol=tol, **how), C=problem.C)


def by_newton(
    problem: Plannable,
    w0: Array | None,
    *,
    tol: float | None,
    max_iter: int | None,
    callback: Callback | None,
    started: float,
) -> Result:
    """The minimizer of a problem wherever its rows are; the rest as in `train`."""
    tol = tol or default_tol(problem.loss)
    start, preconditioner = plan(problem, w0)
    return newton(
        problem.objective(),
        start,
        preconditioner=preconditioner,
        tol=tol,
        max_iter=100 if max_iter is None else max_iter,
        callback=callback,
        started=started,
        sharpen=problem.sharpening(tol),
        proven=is_small(problem),
        proof=PROOF,
    )


def default_tol(loss: str, solver: str = of.SOLVERS[0]) -> float:
    """The tolerance where none is given."""
    return 1e-3 if loss == "hinge" or solver != of.SOLVERS[0] else 1e-4


def _doubles(rows: DenseRows) -> DenseRows:
    """The same rows in double, where a copy is cheap: Hessian products then are exact to double."""
    if rows.dtype == np.float64 or rows.nbytes > 1 << 28:
        return rows
    return DenseRows(rows.values.astype(np.float64))


def check_choices(
    loss: str = of.LOSSES[0],
    pairs: str = of.PAIRS[0],
    pair_weighting: str = of.PAIR_WEIGHTINGS[0],
    solver: str = of.SOLVERS[0],
    query_normalization: str | None = None,
    **_: Any,
) -> None:
    """Raise ValueError for a name that `train` does not know; its other options do not matter."""
    check_one_of("loss", loss, of.LOSSES)
    check_one_of("pairs", pairs, of.PAIRS)
    if pair_weighting not in of.PAIR_WEIGHTINGS:
        swap_measure(pair_weighting)
        if pairs != of.PAIRS[0]:
            raise ValueError(
                f"pair_weighting={pair_weighting!r} weighs all pairs of a ranking, got "
                f"pairs={pairs!r}; leave pairs out"
            )
    check_one_of("solver", solver, of.SOLVERS)
    check_one_of("query_normalization", query_normalization, of.QUERY_NORMALIZATIONS)
    given = (loss, pairs, pair_weighting)
    if solver in of.PUBLISHED and given != (of.LOSSES[0], of.PAIRS[0], of.PAIR_WEIGHTINGS[0]):
        raise ValueError(
            f"solver={solver!r} is a published method: loss='squared_hinge', pairs='all', "
            f"pair_weighting='uniform'; got {given}. Use solver='newton'"
        )
