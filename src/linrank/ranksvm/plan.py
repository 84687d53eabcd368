"""Start and preconditioner for the regime of a problem."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from linrank import _core
from linrank.data.preferences import Preferences
from linrank.data.queries import Queries
from linrank.data.rows import StreamedRows
from linrank.objective import Sum
from linrank.solvers.newton import Sharpen, newton
from linrank.solvers.preconditioner import (
    Carried,
    Diagonal,
    Explicit,
    Plain,
    Preconditioner,
    Sampled,
)

Array = NDArray[Any]

CERTIFIED = 1 << 20  # entries up to which fits go on to a proof: a step more takes a millisecond
MOST_FACTORED = 4000  # features up to which a matrix of their size is formed
_ROUGH = 1e-2  # tolerance on the sample that gives the start
_WIDE = 0.5  # band of the smoothed hinge in the Hessian of a sample


class Extent(Protocol):
    """How large a matrix is and how it is stored."""

    @property
    def shape(self) -> tuple[int, int]: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def is_sparse(self) -> bool: ...


class Plannable(Protocol):
    """What `plan` asks of a problem."""

    @property
    def rows(self) -> Extent:
        """The matrix, or what there is to say of one that is elsewhere."""

    @property
    def loss(self) -> str: ...
    @property
    def n_rows(self) -> int:
        """Rows that are compared with others, at most."""

    @property
    def longest_query(self) -> int: ...
    @property
    def capacity(self) -> int:
        """Rows that a sample may have."""

    @property
    def largest_matrix(self) -> int:
        """Features up to which the whole Hessian may be formed."""

    def objective(self, epsilon: float = 1.0) -> Sum: ...
    def sharpening(self, tol: float) -> Sharpen | None: ...
    def sample(self, n_rows: int) -> Plannable: ...


def plan(problem: Plannable, w0: Array | None) -> tuple[Array, Preconditioner]:
    """Start and preconditioner for the regime of the data.

    While the explicit Hessian costs no more than some tens of products it is the safest choice and
    needs no tuning; beyond, the Hessian of a sample of 50 rows a feature; where even a Cholesky
    factor, ``n³/6``, is out of proportion, the diagonal, or nothing if rows are few. Where a
    twentieth of the rows still determines the features, the optimum on them is a first guess that
    saves outer iterations, and their Hessian comes before all others but the diagonal.

    Where rows are computed for every product, a sample is all that can be stored, and worth it.
    """
    n_rows, n = problem.n_rows, problem.rows.shape[1]
    start = np.zeros(n) if w0 is None else np.array(w0, dtype=np.float64)
    price = _hessian_price(problem.rows)
    patience, guess = price // 2 + 2, None
    n_sample = min(n_rows // 20, problem.capacity)
    if problem.loss == "hinge":
        patience = 2  # the Hessian of a narrow band ages within a step
    if isinstance(problem.rows, StreamedRows):
        if not problem.rows.has_matrix:
            return start, Plain()
        n_sample = min(max(50 * n, n_rows // 20), n_rows, problem.capacity)
        return _from_sample(problem, n_sample, w0, patience)
    cheap = _without_matrix(problem)
    if cheap is not None:
        return start, cheap
    if n_sample >= 30 * n:
        start, guess = _from_sample(problem, n_sample, w0, patience)
    if guess is not None and problem.longest_query >= _core.LONG_QUERY:
        return start, guess  # the core builds the Hessian of a query on one thread
    if n <= problem.largest_matrix and (price <= 30 or n_rows < 100 * n):
        return start, Explicit(patience, guess)
    return start, guess or Sampled(lambda m: problem.sample(m).objective(_WIDE), 50 * n, start)


def is_small(problem: Plannable) -> bool:
    """Whether a proof of the optimum costs so little that an estimate will not do."""
    return _entries(problem.rows) * problem.n_rows <= CERTIFIED


def _from_sample(
    problem: Plannable, n_sample: int, w0: Array | None, patience: int
) -> tuple[Array, Sampled]:
    """The optimum on a sample, unless w0 is given, and the preconditioner of that sample."""
    part = problem.sample(n_sample)
    if w0 is not None:
        start = np.array(w0, dtype=np.float64)
    else:
        start = newton(
            part.objective(),
            np.zeros(problem.rows.shape[1]),
            preconditioner=Explicit(patience),
            tol=_ROUGH,
            sharpen=part.sharpening(_ROUGH),
        ).w
    sample = part.objective(_WIDE)
    guess = Sampled(
        lambda m: sample if m == n_sample else problem.sample(m).objective(_WIDE),
        n_sample,
        start,
        sees_all=not isinstance(problem.rows, StreamedRows),
    )
    return start, guess


class Weighable(Plannable, Protocol):
    """What `carried` asks of a problem, and of its samples, which are dataclasses."""

    @property
    def C(self) -> float: ...


def carried(problem: Weighable) -> Preconditioner:
    """The preconditioner of a path.

    One Hessian serves some fifty products, so the whole one is taken up to a price of ten; beyond,
    that of a sample, four times as large each time it disappoints.
    """
    n_rows, n = problem.n_rows, problem.rows.shape[1]
    price, n_sample = _hessian_price(problem.rows), max(50 * n, n_rows // 20)
    if isinstance(problem.rows, StreamedRows):
        if not problem.rows.has_matrix:
            return Plain()
    else:
        cheap = _without_matrix(problem)
        if cheap is not None:
            return cheap
        is_long = problem.longest_query >= _core.LONG_QUERY
        is_cheap = 2 * n_sample > n_rows or (price <= 10 and not is_long)
        if is_cheap and n <= problem.largest_matrix:
            return Carried(lambda point, _: point, patience=price // 2 + 1)

    def on_sample(point: Any, k: int) -> Any:
        sample: Any = problem.sample(min(n_sample * 4**k, n_rows))
        factor = point.parts[1].risk.C / problem.C
        return replace(sample, C=factor * sample.C).objective().at(point.w)

    return Carried(on_sample, patience=8)


def _without_matrix(problem: Plannable) -> Preconditioner | None:
    """A preconditioner for more features than a Cholesky factor is worth; None below that."""
    n_rows, n = problem.n_rows, problem.rows.shape[1]
    if n <= MOST_FACTORED and (n <= 300 or n_rows >= 2 * n):
        return None
    if 2 * n_rows < n:
        return Plain()
    return Diagonal(memory=min(24, int(_entries(problem.rows) * n_rows / n) + 1))


def _hessian_price(rows: Extent) -> int:
    """Cost of the explicit Hessian in Hessian products; the ns a row were fitted to timings."""
    n = rows.shape[1]
    entries = _entries(rows)
    product = 12 + (1.5 if rows.is_sparse else 0.35) * entries
    return max(1, round((100 + n * n / 60) / product))


def _entries(rows: Extent) -> float:
    """Entries of a row, of float32 and an index of 32 bits; wider ones count more."""
    return rows.nbytes / (8 if rows.is_sparse else 4) / max(1, rows.shape[0])


_ROWS_OF_A_QUERY = 128  # more rows of one query tell less than rows of another one


def sample_queries(queries: Queries, n_rows: int, seed: int) -> tuple[Queries, Array, Array]:
    """About ``n_rows`` rows of randomly chosen queries that have pairs.

    Of a long query the same number of rows is drawn from each level, so that the few relevant rows
    among many others are all kept; without levels to speak of, any rows. The weights make up for
    the rows left out: by the product rule the pairs of two levels keep their weight.

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
    return draw_rows(queries, chosen, limit, seed)


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
    queries: Queries, chosen: Array, limit: int, seed: int, first: int = 0
) -> tuple[Queries, Array, Array]:
    """Rows of the chosen queries, at most ``limit`` of each, as `sample_queries` returns them.

    ``first`` is the number of the first query in the whole that ``queries`` are a part of: what is
    drawn from a query does not depend on how the whole is cut into parts.
    """
    parts, weights = [np.zeros(0, dtype=np.int64)], [np.zeros(0)]
    for q in chosen.tolist():
        begin, end = int(queries.offsets[q]), int(queries.offsets[q + 1])
        if end - begin <= limit:
            kept, weight = np.arange(end - begin), np.ones(end - begin)
        else:
            rng = np.random.default_rng((seed, first + q))
            kept, weight = _draw(queries.levels[begin:end], int(queries.n_levels[q]), limit, rng)
        parts.append(begin + kept)
        weights.append(weight)
    positions = np.concatenate(parts)
    offsets = np.concatenate([[0], np.cumsum([len(part) for part in parts[1:]], dtype=np.int64)])
    # Ranked anew: the trees of the kernels are as large as the number of levels, and a few rows of
    # a query with a million labels have few levels.
    labels = queries.levels[positions].astype(np.float64)
    levels, n_levels = _core.rank_levels(labels, offsets, None)
    order = positions if queries.order is None else queries.order[positions]
    sample = Queries(offsets=offsets, order=order, levels=levels, n_levels=n_levels)
    return sample, positions, np.concatenate(weights)


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


def _draw(
    levels: Array, n_levels: int, limit: int, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Rows of one query to keep, ascending, and how many rows each stands for."""
    n = len(levels)
    if 8 * n_levels > limit:
        # Evenly from a random start: each row with the same chance, at a tenth of a choice's cost.
        kept = ((np.arange(limit) + rng.random()) * (n / limit)).astype(np.int64)
        return kept, np.full(limit, n / limit)
    if n >= _core.LONG_QUERY:
        return _draw_evenly(levels, n_levels, limit // n_levels, rng)
    shuffled = rng.permutation(n)
    by_level = shuffled[np.argsort(levels[shuffled], kind="stable")]
    sizes = np.bincount(levels, minlength=n_levels)
    place = np.arange(n) - np.repeat(np.cumsum(sizes) - sizes, sizes)  # within its level
    quota = limit // n_levels
    kept = by_level[place < quota]
    weight = np.maximum(sizes / quota, 1.0)[levels[kept]]
    ascending = np.argsort(kept)
    return kept[ascending], weight[ascending]


def _draw_evenly(
    levels: Array, n_levels: int, quota: int, rng: np.random.Generator
) -> tuple[Array, Array]:
    """The same for a query so long that a shuffle, out of cache, would cost as much as a product.

    The rows of a level are taken at equal distances from a random start: each with the same chance.
    """
    narrow = np.uint16 if n_levels <= 1 << 16 else np.uint32  # 16 bits: numpy sorts by counting
    by_level = np.argsort(levels.astype(narrow), kind="stable")
    sizes = np.bincount(levels, minlength=n_levels)
    share = np.maximum(sizes / quota, 1.0)  # rows that each row drawn stands for
    drawn = np.minimum(sizes, quota)
    level = np.repeat(np.arange(n_levels), drawn)
    place = np.arange(len(level)) - np.repeat(np.cumsum(drawn) - drawn, drawn)
    shift = np.where(share > 1.0, rng.random(n_levels), 0.0)[level]
    within = np.minimum(((place + shift) * share[level]).astype(np.int64), sizes[level] - 1)
    kept = by_level[(np.cumsum(sizes) - sizes)[level] + within]
    ascending = np.argsort(kept)
    return kept[ascending], share[level][ascending]
