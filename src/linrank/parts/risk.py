"""The problem of chunks as `ranksvm.plan` wants it: objectives, and samples held in memory."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from linrank.data import Array, Box, Extents, dot, varying_columns, without_rounding
from linrank.errors import NoPairsError
from linrank.losses.base import Dual
from linrank.objective import Ridge, Sum
from linrank.parts.parts import Extent, Gathering
from linrank.parts.recipes import Chunk, Piece, Recipe, Sizes
from linrank.ranksvm.train import Plannable, choose_queries
from linrank.solvers.continuation import Sharpening
from linrank.solvers.result import Result
from linrank.system.resources import cached_property


@dataclass(eq=False)
class Whole:
    """What is said of the loss of all chunks, and of their rows."""

    mean_weight: float
    has_kink: bool
    n_threads: ClassVar[int] = 1  # for vectors of weights
    # Of all columns, known from the first point on: how large they are, which vary in a query.
    extents: Extents | None = None
    varies: Array | None = None


@dataclass(frozen=True, eq=False)
class ChunkedRisk:
    """``C Σ_chunks L(X D w)``, with ``D = diag(scale)``; smoothed within ``epsilon`` of a kink."""

    gathering: Gathering
    C: float
    loss: Whole
    scale: Array | None = None
    epsilon: float = 1.0

    def stretch(self, v: Array) -> Array:
        """``D v``."""
        return v if self.scale is None else self.scale * v

    def at(self, w: Array) -> ChunkedPoint:
        return ChunkedPoint(self, w)

    def resume(self, point: ChunkedPoint) -> ChunkedPoint:
        """The same ``w`` with this risk's smoothing: a pass."""
        return ChunkedPoint(self, point.w)


@dataclass(frozen=True, eq=False)
class ChunkedPoint:
    """`ChunkedRisk` at ``w``."""

    risk: ChunkedRisk
    w: Array
    with_hessian: bool = False

    @cached_property
    def loss(self) -> Totals:
        """The losses at ``w`` for ``C = 1``, in raw columns."""
        risk, whole = self.risk, self.risk.loss
        args = (risk.stretch(self.w), risk.epsilon, self.with_hessian, whole.extents is None)
        totals: Totals = risk.gathering.total(evaluate, *args)
        if totals.extents is not None:
            whole.extents, whole.varies = totals.extents, totals.varies
        return totals

    @property
    def value(self) -> float:
        return self.risk.C * self.loss.value

    @property
    def rounding(self) -> float:
        return self.risk.C * self.loss.rounding

    @property
    def _extents(self) -> Extents:
        _ = self.loss  # from the first point on, the extents are known
        extents = self.risk.loss.extents
        assert extents is not None
        return extents

    def primal_error(self, size: Array) -> float:
        """As of `linrank.objective.RiskPoint`."""
        risk, totals = self.risk, self.loss
        steepness = None if risk.loss.has_kink else math.sqrt(totals.slope_square)
        moved = self._extents.loss_error(risk.stretch(size), totals.total_weight, steepness)
        return risk.C * (totals.primal_error + moved)

    @property
    def gradient_error(self) -> Array:
        steepness, error = math.sqrt(self.loss.slope_square), math.sqrt(self.loss.error_square)
        found = self._extents.slope_error(steepness, error)
        return self.risk.C * self.risk.stretch(found)

    @cached_property
    def gradient(self) -> Array:
        return self.risk.C * self.risk.stretch(self.loss.gradient)

    @property
    def primal(self) -> float:
        return self.risk.C * self.loss.primal

    @property
    def dual(self) -> Dual:
        return self.risk.C * self.loss.dual

    def image(self, v: Array) -> None:
        """Scores of a direction stay with the rows."""

    def hvp(self, v: Array) -> tuple[Array, None]:
        found = self._curvature("hessian_product", self.risk.stretch(v))
        return self.risk.C * self.risk.stretch(found), None

    def _curvature(self, name: str, *args: Any) -> Array:
        """`curvature` of all chunks, for ``C = 1`` and in raw columns."""
        at = (self.risk.stretch(self.w), self.risk.epsilon)
        return self.risk.gathering.total(curvature, *at, name, *args)

    def hessian_matrix(self) -> Array:
        risk, found = self.risk, self.loss.hessian
        matrix: Array = risk.C * (self._curvature("hessian_matrix") if found is None else found)
        if risk.scale is not None:
            matrix *= risk.scale
            matrix *= risk.scale[:, np.newaxis]
        return matrix

    def hessian_diagonal(self) -> Array:
        found, scale = self.risk.C * self._curvature("hessian_diagonal"), self.risk.scale
        return found if scale is None else scale**2 * found

    def slope(self, d: Array, image: None) -> float:
        return dot(self.gradient, d)

    def moved(self, t: float, d: Array, image: None) -> ChunkedPoint:
        return ChunkedPoint(self.risk, self.w + t * d)

    def afresh(self) -> ChunkedPoint:
        return self

    def expecting_hessian(self) -> ChunkedPoint:
        """One pass gives the Hessian beside value and gradient, unless that pass is over."""
        return self if "loss" in self.__dict__ else ChunkedPoint(self.risk, self.w, True)

    def reweighted(self, factor: float) -> ChunkedPoint:
        point = ChunkedPoint(replace(self.risk, C=factor * self.risk.C), self.w)
        point.__dict__["loss"] = self.loss  # it does not depend on C
        return point


@dataclass(frozen=True, eq=False)
class Totals:
    """The losses at one ``w``, for ``C = 1``: all that a solver and a certificate ask for."""

    value: float
    rounding: float
    primal: float
    primal_error: float
    dual: Dual
    total_curvature: float
    gradient: Array
    slope_square: float  # ‖a‖², a the slopes of the scores
    error_square: float  # of their rounding
    total_weight: float
    extents: Extents | None = None
    varies: Array | None = None
    hessian: Array | None = None

    def __add__(self, other: Totals) -> Totals:
        return Totals(*map(_sum, vars(self).values(), vars(other).values()))


def _sum(a: Any, b: Any) -> Any:
    return None if a is None or b is None else a + b


def sizes(chunk: Chunk, n_threads: int = 1) -> Sizes:
    """What the whole has to know of the chunk."""
    return chunk.sizes


def evaluate(
    chunk: Chunk,
    w: Array,
    epsilon: float,
    with_hessian: bool = False,
    with_extents: bool = False,
    n_threads: int = 1,
) -> Totals:
    """Value, gradient and the sums of the certificate, in one pass over the rows.

    With ``with_hessian`` the Hessian too, with ``with_extents`` how large the columns are and
    which of them vary within a query, while the rows are there.
    """
    n = chunk.sizes.n_features
    if chunk.terms is None:
        hessian = np.zeros((n, n)) if with_hessian else None
        dual, none = Dual(largest=math.inf), np.zeros(n)
        extents = Extents(none, none, 0.0, 0.0) if with_extents else None
        varies = none != 0.0 if with_extents else None
        return Totals(0.0, 0.0, 0.0, 0.0, dual, 0.0, none, 0.0, 0.0, 0.0, extents, varies, hessian)
    state = chunk.at(w, epsilon, n_threads)
    loss, point = state.loss, state.point
    errors = loss.errors(point, None)
    return Totals(
        float(point.value),
        errors.value,
        loss.primal(point),
        errors.primal,
        loss.dual(point, errors),
        float(point.total_curvature),
        chunk.rows.gradient(point.gradient, loss.order, n_threads),
        dot(point.gradient, point.gradient),
        errors.gradient**2,
        loss.total_weight,
        chunk.rows.extents(n_threads) if with_extents else None,
        varying_columns(chunk.rows, chunk.terms.compared.queries) if with_extents else None,
        loss.hessian_matrix(chunk.rows, point) if with_hessian else None,
    )


def curvature(
    chunk: Chunk, w: Array, epsilon: float, name: str, *args: Any, n_threads: int = 1
) -> Array:
    """``Xᵀ∇²L(z)X`` at the scores z of ``w``, in full, as a product or by its diagonal.

    ``name`` is that of the loss's function: hessian_matrix, hessian_product, hessian_diagonal.
    """
    n = chunk.sizes.n_features
    if chunk.terms is None:
        return np.zeros((n, n) if name == "hessian_matrix" else n)
    state = chunk.at(w, epsilon, n_threads)
    found: Any = getattr(state.loss, name)(chunk.rows, state.point, *args)
    return found[0] if isinstance(found, tuple) else found  # a product has its image


LARGEST_MATRIX = 1024  # features up to which chunks may send their Hessians


@dataclass(frozen=True, eq=False)
class ChunkedProblem:
    """``½‖w‖² + C Σ_chunks L(X D w)`` and samples of it: `linrank.ranksvm.train.Plannable`.

    Attributes
    ----------
    gathering : Gathering
        The chunks.
    recipe : Recipe
        What they were made by.
    sizes : sequence of Sizes
        Of each of them.
    C : float
    scale : float64 array (n_features,) or None
        The diagonal of D.
    box : Box or None
        Where ``w`` has to be.
    capacity : int
        Rows that a sample may have.
    n_threads : int
        Of the work on samples.
    """

    gathering: Gathering
    recipe: Recipe
    sizes: Sequence[Sizes]
    C: float
    scale: Array | None = None
    box: Box | None = None
    capacity: int = 1 << 62
    n_threads: int = 1
    largest_matrix = LARGEST_MATRIX

    @property
    def loss(self) -> str:
        return self.recipe.loss

    @cached_property
    def rows(self) -> Extent:
        first = self.sizes[0]
        n_bytes = sum(size.n_bytes for size in self.sizes)
        return Extent((self.n_rows, first.n_features), n_bytes, first.is_sparse)

    @cached_property
    def n_rows(self) -> int:
        return sum(size.n_rows for size in self.sizes)

    @cached_property
    def n_pairs(self) -> int:
        return sum(size.n_pairs for size in self.sizes)

    @cached_property
    def weight(self) -> float:
        """What the losses of all chunks weigh."""
        return float(sum(size.weight for size in self.sizes))

    @property
    def longest_query(self) -> int:
        return max(int(size.lengths.max(initial=0)) for size in self.sizes)

    @cached_property
    def _whole(self) -> Whole:
        mean_weight = self.weight / max(1, self.n_pairs)
        return Whole(mean_weight, self.recipe.loss == "hinge")

    def objective(self, epsilon: float = 1.0) -> Sum:
        """``F``, with the hinge smoothed within ``epsilon`` of its kink."""
        risk = ChunkedRisk(self.gathering, self.C, self._whole, self.scale, epsilon)
        return Sum(Ridge(self.box), risk)

    def conclude(self, result: Result) -> Result:
        """The result of a solver with exact weights of columns that no pair sees."""
        bounds = None if self.box is None else (self.box.lower, self.box.upper)
        varies = self._whole.varies
        assert varies is not None  # a solver has asked for a point
        return replace(result, w=without_rounding(result.w, varies, bounds))

    def sharpening(self, tol: float) -> Sharpening | None:
        """From the smoothed hinge to the hinge; None where nothing is smoothed."""
        return Sharpening(self.objective, tol) if self.loss == "hinge" else None

    def check(self) -> None:
        """Raise NoPairsError where there is nothing to learn from."""
        if self.n_pairs == 0 or not self.weight > 0.0:
            n_queries = sum(size.n_queries for size in self.sizes)
            raise NoPairsError(
                f"none of the {n_queries} queries in {len(self.sizes)} chunks has two different "
                "labels whose rows have a weight; check that qid is not a row id, that labels vary "
                "inside a query, and the weights"
            )

    def sample(self, n_rows: int) -> Plannable:
        """The same problem on about ``n_rows`` rows, `capacity` at most, held in memory.

        The rows are those that a sample of the whole in memory would have.
        """
        pieces = self.draw_pieces(min(n_rows, self.capacity), self.recipe.seed)
        return self.recipe.problem(pieces, self)

    def draw_pieces(self, n_rows: int, seed: int) -> list[Piece]:
        """Rows of queries chosen at random, by chunk."""
        lengths = np.concatenate([size.lengths for size in self.sizes])
        n_levels = np.concatenate(
            [size.n_levels if size.n_pairs else np.zeros_like(size.n_levels) for size in self.sizes]
        )
        queries, limit = choose_queries(lengths, n_levels, n_rows, seed)
        ends = np.cumsum([size.n_queries for size in self.sizes])
        per_chunk: list[tuple[Array, int] | None] = []
        for begin, end in zip([0, *ends[:-1].tolist()], ends.tolist(), strict=True):
            mine = queries[np.searchsorted(queries, begin) : np.searchsorted(queries, end)] - begin
            per_chunk.append((mine, begin) if len(mine) else None)
        found = self.gathering.each(self.recipe.sample, limit, seed, per_chunk=per_chunk)
        return [piece for piece in found if piece is not None]


def sizes_of(gathering: Gathering) -> list[Sizes]:
    """The sizes of all chunks."""
    return gathering.each(sizes)
