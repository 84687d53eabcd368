"""Curves: functions of one feature each, linear between knots, and the maps that are made of them.

An additive ranker has a score ``Σ_j f_j(x_j)``. It is trained as a linear one on columns that are
such functions themselves (`fit_curves`), whose weighted sums, feature by feature, are the f_j.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from linrank import _core
from linrank.data.rows import Array, CsrRows, DenseRows, Extents, Rows, StreamedRows, rounding_of
from linrank.data.scaling import Scaling
from linrank.system.resources import PickledFields, cached_property, resolve

Function = tuple[int, Array, Array, Array]  # feature, knots, and value and slope of every piece

MAX_KNOTS = 200
SAMPLE = 10_000  # rows that knots and variances are taken from
_BLOCK_BYTES = 1 << 24  # of sparse rows that are made dense at a time
_NO_KNOTS = np.empty(0)


@dataclass(frozen=True, eq=False)
class Curves(PickledFields):
    """Functions ``g_c`` of one feature each.

    Function c has the ascending knots ``t = knots[offsets[c]:offsets[c + 1]]``, and one piece more
    than knots: those from ``offsets[c] + c`` on. With p the number of knots below x,
    ``g_c(x) = values[p] + slopes[p]·(x - t[max(p - 1, 0)])``, t being 0 where there is no knot.
    A step has pieces of slope 0; any other function of this kind is continuous.

    Attributes
    ----------
    feature : int64 array (n_functions,)
        What each function looks at.
    offsets : int64 array (n_functions + 1,)
        Where its knots are.
    knots : float64 array (n_knots,)
        Of all functions, those of a function ascending and at most 200.
    values, slopes : float64 array (n_knots + n_functions,)
        Of all pieces.

    Examples
    --------
    >>> ramp = Curves.of([(0, *map(np.array, ([1.0, 3.0], [0.0, 0.0, 1.0], [0.0, 0.5, 0.0])))])
    >>> ramp.columns(DenseRows(np.array([[0.0], [2.0], [9.0]]))).values.T
    array([[0. , 0.5, 1. ]])
    """

    feature: Array
    offsets: Array
    knots: Array
    values: Array
    slopes: Array

    def __post_init__(self) -> None:
        for name in ("feature", "offsets", "knots", "values", "slopes"):
            kind = np.int64 if name in ("feature", "offsets") else np.float64
            array = np.array(getattr(self, name), dtype=kind)
            if array.ndim != 1 or not np.isfinite(array).all():
                raise ValueError(f"the {name} of curves must be a vector of finite numbers")
            array.flags.writeable = False
            object.__setattr__(self, name, array)
        n, n_knots = len(self.feature), len(self.knots)
        sizes = np.diff(self.offsets)
        if len(self.offsets) != n + 1 or self.offsets[0] != 0 or self.offsets[-1] != n_knots:
            raise ValueError(f"the offsets of {n} curves do not fit their {n_knots} knots")
        if n and (sizes.min() < 0 or sizes.max() > MAX_KNOTS):
            raise ValueError(f"a curve has from 0 to {MAX_KNOTS} knots")
        if len(self.values) != n_knots + n or len(self.slopes) != n_knots + n:
            raise ValueError(f"{n} curves with {n_knots} knots have {n_knots + n} pieces")
        is_first = np.zeros(n_knots + 1, dtype=bool)
        is_first[self.offsets] = True
        if (~(self.knots[1:] > self.knots[:-1]) & ~is_first[1:-1]).any():
            raise ValueError("the knots of a curve must ascend")

    @classmethod
    def of(cls, functions: Iterable[Function]) -> Curves:
        """The functions, one after another."""
        listed = list(functions)
        sizes = [len(knots) for _, knots, _, _ in listed]
        arrays = ([part[k] for part in listed] for k in (1, 2, 3))
        joined = (np.concatenate([_NO_KNOTS, *parts]) for parts in arrays)
        feature = np.array([part[0] for part in listed], dtype=np.int64)
        return cls(feature, np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)]), *joined)

    def __len__(self) -> int:
        return len(self.feature)

    def __getitem__(self, c: int) -> Function:
        begin, end = self.offsets[c : c + 2]
        pieces = slice(begin + c, end + c + 1)
        return int(self.feature[c]), self.knots[begin:end], self.values[pieces], self.slopes[pieces]

    def __iter__(self) -> Iterator[Function]:
        return (self[c] for c in range(len(self)))

    @property
    def first_pieces(self) -> Array:
        """Where the pieces of each function begin."""
        return self.offsets[:-1] + np.arange(len(self))

    @cached_property
    def core(self) -> Any:
        """What the core takes."""
        return _core.Curves(self.feature, self.offsets, self.knots, self.values, self.slopes)

    def columns(self, rows: DenseRows, n_jobs: int | None = 1) -> DenseRows:
        """All functions of dense rows, in their type."""
        flat = self.core.columns(rows.core, resolve(n_jobs))
        return DenseRows(np.asarray(flat).reshape(rows.shape[0], len(self)))

    def sums(self, rows: DenseRows, n_jobs: int | None = 1) -> Array:
        """``Σ_c g_c(x)`` of dense rows."""
        return np.asarray(self.core.sums(rows.core, resolve(n_jobs)))

    def polyline(self, c: int, low: float, high: float) -> tuple[Array, Array]:
        """The points that function c goes through from ``low`` to ``high``, two at every knot."""
        _, t, values, slopes = self[c]
        first, last = np.searchsorted(t, [low, high])
        inner = np.arange(first, last)
        pieces = np.concatenate([[first], np.stack([inner, inner + 1], axis=1).ravel(), [last]])
        x = np.concatenate([[low], np.repeat(t[inner], 2), [high]])
        return x, values[pieces] + slopes[pieces] * (x - _origins(t)[pieces])

    def scale(self, factors: Array) -> Curves:
        """Every function times its factor; without those whose factor is 0."""
        parts = zip(self, factors.tolist(), strict=True)
        return Curves.of((j, t, v * a, s * a) for (j, t, v, s), a in parts if a != 0.0)

    def combine(self, weights: Array, n_features: int) -> Curves:
        """``f_j = Σ w_c g_c`` over the functions of each feature j, for all features in order."""
        members: list[list[int]] = [[] for _ in range(n_features)]
        for c in np.flatnonzero(weights).tolist():
            members[self.feature[c]].append(c)
        return Curves.of(self._sum(j, own, weights) for j, own in enumerate(members))

    def _sum(self, j: int, members: list[int], weights: Array) -> Function:
        parts = [self[c] for c in members]
        knots = np.unique(np.concatenate([_NO_KNOTS, *(t for _, t, _, _ in parts)]))
        values, slopes = np.zeros((2, len(knots) + 1))
        for c in members:
            own, rising = self.refine(c, knots)
            values += weights[c] * own
            slopes += weights[c] * rising
        return j, knots, values, slopes

    def refine(self, c: int, knots: Array) -> tuple[Array, Array]:
        """Values and slopes of function c on the pieces of more knots than its own."""
        _, t, v, s = self[c]
        # The piece of g_c that holds right of each knot; the first one holds left of all.
        piece = np.concatenate([[0], np.searchsorted(t, knots, side="right")])
        return v[piece] + s[piece] * (_origins(knots) - _origins(t)[piece]), s[piece]


def _origins(knots: Array) -> Array:
    """Where the pieces of a function begin, the first but for its left end."""
    return np.concatenate([knots[:1], knots]) if len(knots) else np.zeros(1)


class CurveRows(StreamedRows):
    """The columns of curves of dense rows, of which one byte for each value of a row is stored.

    That is the piece that the value lies in, between the knots of all functions of its feature. On
    a piece every function is a line, so that ``Z w`` is one line for each value, and ``Zᵀ r`` takes
    the sums ``Σ r`` and ``Σ r (x - t)`` over the values of each piece: no more than a product with
    the rows themselves, however many columns there are.

    Parameters
    ----------
    rows : DenseRows
        The rows, which are not copied.
    curves : Curves
        As `fit_curves` makes them: lines through 0, and at least one function that rises from 0 or
        more and is constant beyond its knots.
    n_threads : int
        Threads that look for the pieces.
    """

    def __init__(self, rows: DenseRows, curves: Curves, n_threads: int = 1) -> None:
        self.rows, self.curves = rows, curves
        sizes = np.diff(curves.offsets)
        self._lines, self._curved = np.flatnonzero(sizes == 0), np.flatnonzero(sizes)
        self._line_slopes = curves.slopes[curves.first_pieces[self._lines]]
        grid = curves.combine(np.ones(len(curves)), rows.shape[1])
        self._n_pieces = len(grid.values)
        self._pieces = _core.Pieces(grid.core, rows.core, n_threads)
        # Function by function, the pieces of its feature and what it is on them.
        own = [curves.refine(c, grid[curves.feature[c]][1]) for c in self._curved.tolist()]
        self._values, self._slopes = (np.concatenate([part[k] for part in own]) for k in (0, 1))
        self._sizes = np.array([len(values) for values, _ in own], dtype=np.int64)
        first = grid.first_pieces[curves.feature[self._curved]]
        self._starts = np.cumsum(self._sizes) - self._sizes
        self._place = np.arange(self._sizes.sum()) + np.repeat(first - self._starts, self._sizes)
        self._extents: Extents | None = None

    @property
    def shape(self) -> tuple[int, int]:
        return (self.rows.shape[0], len(self.curves))

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.rows.dtype

    @property
    def capacity(self) -> int:
        """A sixteenth of the rows, or what a Hessian of all columns needs."""
        return max(self.shape[0] // 16, 50 * self.shape[1])

    def scores(self, w: Array, order: Array | None, n_threads: int) -> Array:
        by_piece: Array = np.repeat(w[self._curved], self._sizes)
        of_w = (by_piece * part for part in (self._values, self._slopes))
        values: Any
        slopes: Any
        values, slopes = (np.bincount(self._place, part, self._n_pieces) for part in of_w)
        lines = np.zeros(self.rows.shape[1])
        lines[self.curves.feature[self._lines]] = w[self._lines] * self._line_slopes
        return np.asarray(self._pieces.scores(values, slopes, lines, order, n_threads))

    def gradient(self, r: Array, order: Array | None, n_threads: int) -> Array:
        found = np.asarray(self._pieces.slopes(r, order, n_threads))
        sums, moments, lines = np.split(found, [self._n_pieces, 2 * self._n_pieces])
        total = np.empty(self.shape[1])
        total[self._lines] = lines[self.curves.feature[self._lines]] * self._line_slopes
        by_piece = self._values * sums[self._place] + self._slopes * moments[self._place]
        total[self._curved] = np.add.reduceat(by_piece, self._starts)
        return total

    def extents(self, n_threads: int = 1) -> Extents:
        """As of stored rows, but for norms of curves that may be too large."""
        if self._extents is None:
            n_rows = self.shape[0]
            raw, a, lines = self.rows.extents(n_threads), self._line_slopes, self._lines
            of_lines = self.curves.feature[lines]
            largest = self.curves.values[self.curves.first_pieces + np.diff(self.curves.offsets)]
            largest[lines] = a * raw.largest[of_lines]
            # Σ g² <= max g Σ g where g is not below 0.
            norms = np.sqrt(largest * self.gradient(np.ones(n_rows), None, n_threads).clip(0.0))
            norms[lines] = a * raw.norms[of_lines]
            widest = int(np.bincount(self.curves.feature).max()) + 4 * self.rows.shape[1]
            longest = n_rows // 16 + 1024 + MAX_KNOTS  # a task has 512 to 1023 rows, or a 16th
            self._extents = Extents(norms, largest, rounding_of(widest), rounding_of(longest))
        return self._extents

    def stored(self, index: Array | slice, n_threads: int) -> DenseRows:
        return self.curves.columns(self.rows.take(index), n_threads)

    def describe(self) -> str:
        return f"curves of rows, {self.dtype}, {self.shape[0]} × {self.shape[1]}"


def line_through(knots: Array, heights: Array) -> tuple[Array, Array]:
    """Values and slopes of the pieces that go through these points, and are constant beyond."""
    inner = np.diff(heights) / np.diff(knots)
    return np.concatenate([heights[:1], heights]), np.concatenate([[0.0], inner, [0.0]])


def choose_knots(ordered: Array, n_knots: int) -> Array:
    """Up to ``n_knots`` different values at quantiles of a sorted sample, both ends among them.

    A value that makes up more than the share of a knot, such as the 0 of a feature that is mostly
    0, gets a knot of its own; the others are spread over the rest of the sample.

    Examples
    --------
    >>> choose_knots(np.array([0.0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5]), 4)
    array([0., 1., 3., 5.])
    """
    first = np.concatenate([[0], np.flatnonzero(ordered[1:] != ordered[:-1]) + 1])
    values, counts = ordered[first], np.diff(first, append=len(ordered))
    if len(values) <= n_knots:
        return _drop_close_knots(values)
    is_heavy = counts * (n_knots - 1) >= len(ordered)
    rest = ordered[~np.repeat(is_heavy, counts)]
    n_rest = max(2, n_knots - int(is_heavy.sum()))
    at_quantiles = rest[np.linspace(0, len(rest) - 1, n_rest).round().astype(np.int64)]
    return _drop_close_knots(np.unique(np.concatenate([at_quantiles, values[is_heavy]])))


def _drop_close_knots(knots: Array) -> Array:
    """Knots without those that no slope in double precision can lead to."""
    knots = knots.astype(np.float64)
    with np.errstate(over="ignore", divide="ignore"):
        is_far: Array = np.concatenate([[True], np.isfinite(1.0 / np.diff(knots))])
    return knots[is_far]


def dense_sample(rows: DenseRows, weight: Array | None = None) -> DenseRows:
    """At most 10,000 rows, evenly spaced among those of positive weight."""
    index = np.arange(rows.shape[0]) if weight is None else np.flatnonzero(weight > 0.0)
    n_sampled = min(SAMPLE, len(index))
    return DenseRows(rows.values[index[np.arange(n_sampled) * len(index) // max(1, n_sampled)]])


def level_curves(ordered: Array, n_levels: int) -> list[Function]:
    """``clip(n_levels·F(x) - b, 0, 1)`` for b = 0, ..., n_levels - 1 and every feature that varies.

    F is its distribution function, moved and stretched to go from 0 to 1; ``ordered`` has a sorted
    sample of a feature in each row.
    """
    found: list[Function] = []
    for j, own in enumerate(ordered):
        knots = choose_knots(own, MAX_KNOTS)
        if len(knots) < 2:
            continue
        heights = _distribution(j, own, knots)[2][1:]
        u = n_levels * ((heights - heights[0]) / (heights[-1] - heights[0]))
        for b in range(n_levels):
            # From the last knot where the level is empty to the first where it is full.
            begin = np.searchsorted(u, b, side="right") - 1
            part = slice(begin, np.searchsorted(u, b + 1) + 1)
            found.append((j, knots[part], *line_through(knots[part], np.clip(u[part] - b, 0, 1))))
    return found


def _distribution(j: int, ordered: Array, knots: Array) -> Function:
    """At a knot, the share of the sample below it and half of that at it."""
    below, upto = (np.searchsorted(ordered, knots, side=side) for side in ("left", "right"))
    return (j, knots, *line_through(knots, (below + upto) / (2.0 * len(ordered))))


def _ramps(j: int, ordered: Array, knots: Array) -> list[Function]:
    """``clip((x - t_b) / (t_{b+1} - t_b), 0, 1)`` between neighboring knots."""
    ends = (knots[b : b + 2] for b in range(len(knots) - 1))
    return [(j, t, *line_through(t, np.array([0.0, 1.0]))) for t in ends]


def _steps(j: int, ordered: Array, knots: Array) -> list[Function]:
    """``1[x > t_b]`` for all knots but the largest, above which nothing is."""
    return [(j, knots[b : b + 1], np.array([0.0, 1.0]), np.zeros(2)) for b in range(len(knots) - 1)]


_SHAPES = {"quantile": lambda *given: [_distribution(*given)], "spline": _ramps, "step": _steps}
DEFAULT_KNOTS = {"quantile": MAX_KNOTS, "spline": 8, "step": 8}


def fit_curves(
    kind: str | None,
    rows: DenseRows,
    n_features: int,
    *,
    n_knots: int | None = None,
    weight: Array | None = None,
    statistics: Any = None,
    n_jobs: int | None = None,
) -> Curves:
    """The columns of an additive ranker for these rows, each of variance 1.

    Parameters
    ----------
    kind : {None, "quantile", "spline", "step"}
        Beside the features themselves the distribution function of each, or ramps between knots;
        or steps at knots alone. None: the features only.
    rows : DenseRows
        Training rows.
    n_features : int
        Columns behind these, the indicators of missing values, are taken as they are.
    n_knots : int or None
        Of each feature; 200 for "quantile", else 8.
    weight : float64 array (n_rows,) or None
        Variances of features count it; knots and other variances are of a sample of the rows that
        have any, whatever it is.
    statistics : ColumnStatistics or None
        Of all training rows, where ``rows`` are a sample of them.
    n_jobs : int or None
        Threads.
    """
    if statistics is None:
        whole = Scaling.fit("standard", rows, weight=weight, n_jobs=n_jobs).factors
    else:
        whole = Scaling.of_statistics("standard", statistics).factors
    assert whole is not None
    n_lines = n_features if kind != "step" else 0
    taken = [*range(n_lines), *range(n_features, rows.shape[1])]
    lines = Curves.of((j, _NO_KNOTS, np.zeros(1), whole[j : j + 1]) for j in taken if whole[j])
    if kind is None:
        return lines
    sample = dense_sample(rows, weight)
    ordered = np.sort(np.ascontiguousarray(sample.values[:, :n_features].T), axis=1)
    n_knots = DEFAULT_KNOTS[kind] if n_knots is None else n_knots
    shape, found = _SHAPES[kind], []
    for j in np.flatnonzero(whole[:n_features]).tolist():
        found += shape(j, ordered[j], choose_knots(ordered[j], n_knots))
    return Curves.of([*lines, *unit_variance(Curves.of(found), sample, n_jobs)])


def unit_variance(curves: Curves, sample: DenseRows, n_jobs: int | None = 1) -> Curves:
    """The functions divided by their deviation; without those that are constant on the sample."""
    if len(curves) == 0:
        return curves
    scaling = Scaling.fit("standard", curves.columns(sample, n_jobs), n_jobs=n_jobs)
    assert scaling.factors is not None
    return curves.scale(scaling.factors)


def dense_blocks(rows: Rows) -> Iterator[tuple[slice, DenseRows]]:
    """Rows as dense ones: themselves, or sparse ones block by block."""
    n_rows, n_columns = rows.shape
    step = n_rows
    if isinstance(rows, CsrRows):
        step = max(1, _BLOCK_BYTES // max(1, n_columns * rows.dtype.itemsize))
    for begin in range(0, n_rows, max(1, step)):
        part = slice(begin, min(begin + step, n_rows))
        if isinstance(rows, DenseRows):
            yield part, rows
        else:
            yield part, DenseRows(rows.take(part).to_user().toarray())
