"""The dual variables of a trained model, arranged as one matrix for each query."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank import _core
from linrank.data.queries import Queries
from linrank.pairs import Pairs
from linrank.ranksvm.train import Problem
from linrank.system.resources import cached_property, check_fits

Array = NDArray[Any]
_ARRAYS = 4  # of 8 bytes a cell that are alive while a block is made and decomposed


@dataclass(frozen=True, eq=False)
class Cells:
    """The rectangle of one query: rows above its lowest level × rows below its highest level.

    All pairs (i above j) lie in it, and with two levels they fill it. Both sides are sorted by
    ascending level, so that the pairs of a row are a prefix of its columns (or, of
    ``pairs="adjacent"``, a range of them): the layout of `linrank.lowrank.rectangles`, one query at
    a time and for any choice and weighting of pairs.

    Attributes
    ----------
    query : int
        Number of the query.
    top, bottom : int64 arrays (m,) and (n,)
        Positions of the rows of the rectangle, and of its columns.
    is_pair : bool array (m, n)
        Which cells are pairs.
    weight : float64 array (m, n)
        ω of the pairs, 0 elsewhere.
    """

    query: int
    top: Array
    bottom: Array
    is_pair: Array
    weight: Array

    @classmethod
    def of(cls, pairs: Pairs, query: int) -> Cells:
        """The rectangle of query number ``query``, refused if it does not fit the memory."""
        queries = pairs.queries
        begin, end = int(queries.offsets[query]), int(queries.offsets[query + 1])
        level = queries.levels[begin:end]
        ascending = begin + np.argsort(level, kind="stable")
        highest = int(queries.n_levels[query]) - 1
        top = ascending[queries.levels[ascending] > 0]
        bottom = ascending[queries.levels[ascending] < highest]
        check_fits(
            _ARRAYS * 8 * len(top) * len(bottom),
            f"the dual matrix of a query of {end - begin} rows, {len(top)} × {len(bottom)},",
            "analyse a sample of its rows",
        )
        above = queries.levels[top][:, np.newaxis] - queries.levels[bottom]
        is_pair = above == 1 if pairs.adjacent else above > 0
        weight = pair_weight(pairs, query, top[:, np.newaxis], bottom)
        return cls(query, top, bottom, is_pair, np.where(is_pair, weight, 0.0))


def pair_weight(pairs: Pairs, query: int, i: Array, j: Array) -> Array:
    """``ω_ij = c_q u_i u_j (g_i - g_j)`` of positions of one query, which broadcast."""
    weight: Array = np.ones(np.broadcast_shapes(i.shape, j.shape))
    if pairs.query_weight is not None:
        weight *= pairs.query_weight[query]
    if pairs.row_weight is not None:
        weight *= pairs.row_weight[i] * pairs.row_weight[j]
    if pairs.gain is not None:
        weight *= pairs.gain[i] - pairs.gain[j]
    return weight


Entries = Callable[[Cells], Array]  # α by cell, 0 where there is no pair


def slacks(z: Array, cells: Cells) -> Array:
    """``ξ_ij = 1 - z_i + z_j`` by cell, from the scores by position."""
    found: Array = (1.0 - z[cells.top])[:, np.newaxis] + z[cells.bottom]
    return found


@dataclass(frozen=True, eq=False)
class SquaredHingeEntries:
    """``α = 2Cω max(0, ξ)``, the slope of the squared hinge at the scores z."""

    z: Array
    C: float

    def __call__(self, cells: Cells) -> Array:
        alpha: Array = np.maximum(slacks(self.z, cells), 0.0)
        alpha *= 2.0 * self.C * cells.weight
        return alpha


@dataclass(frozen=True, eq=False)
class HuberEntries:
    """``α = t Cω clip(ξ/ε, 0, 1)``, a feasible point of the dual of the hinge."""

    z: Array
    C: float
    epsilon: float
    length: float = 1.0  # t

    def __call__(self, cells: Cells) -> Array:
        alpha: Array = np.clip(slacks(self.z, cells) / self.epsilon, 0.0, 1.0)
        alpha *= self.length * self.C * cells.weight
        return alpha


@dataclass(frozen=True, eq=False)
class BandEntries:
    """``α = Cω`` for ``ξ > 0``, 0 for ``ξ <= 0``, but for the listed pairs of a band around 0.

    ``winner``, ``loser`` (positions) and ``alpha`` are the listed pairs, query by query;
    those of query q are ``first[q]:first[q + 1]``.
    """

    z: Array
    C: float
    first: Array
    winner: Array
    loser: Array
    alpha: Array

    def __call__(self, cells: Cells) -> Array:
        alpha = np.where(slacks(self.z, cells) > 0.0, self.C * cells.weight, 0.0)
        listed = slice(*self.first[cells.query : cells.query + 2])
        i, j = _places(cells.top, self.winner[listed]), _places(cells.bottom, self.loser[listed])
        alpha[i, j] = self.alpha[listed]
        return alpha


def _places(positions: Array, wanted: Array) -> Array:
    """Where in ``positions`` the ``wanted`` ones stand, all of which are there."""
    order = np.argsort(positions)
    found: Array = order[np.searchsorted(positions, wanted, sorter=order)]
    return found


@dataclass(frozen=True, eq=False)
class FactorEntries:
    """``α_ij = <v_i, v_j>`` on pairs; ``factors`` are v by position."""

    factors: Array

    def __call__(self, cells: Cells) -> Array:
        product = self.factors[cells.top] @ self.factors[cells.bottom].T
        return np.where(cells.is_pair, product, 0.0)

    def net(self, queries: Queries) -> Array:
        """``<v_i, Σ_below v_j - Σ_above v_j>`` by position: ``β = Σ net_i x_i``, without a pair."""
        first = np.concatenate([[0], np.cumsum(queries.n_levels)])
        cell = queries.levels + np.repeat(first[:-1], np.diff(queries.offsets))
        sums = np.stack([np.bincount(cell, v, first[-1]) for v in self.factors.T], axis=1)
        until = np.concatenate([np.zeros((1, sums.shape[1])), np.cumsum(sums, axis=0)])
        begin, end = (np.repeat(until[part], queries.n_levels, axis=0) for part in _ends(first))
        difference = (until[:-1] - begin) - (end - until[1:])
        net: Array = np.einsum("ik,ik->i", self.factors, difference[cell])
        return net


def _ends(first: Array) -> tuple[Array, Array]:
    """Begin and end of each range of ``first``."""
    return first[:-1], first[1:]


@dataclass(frozen=True, eq=False)
class RectangleEntries:
    """α that the training of a RegularizedRankSVM has kept, one matrix for each query.

    ``duals``, the `Rectangles` of the same queries, lays its blocks out as `Cells` does. A query
    without a block, all of whose pairs have weight 0, has α = 0.
    """

    duals: Any

    def __call__(self, cells: Cells) -> Array:
        k = int(np.searchsorted(self.duals.query, cells.query))
        if k == len(self.duals.query) or self.duals.query[k] != cells.query:
            return np.zeros(cells.weight.shape)
        alpha: Array = self.duals.block(k).copy()
        return alpha

    def net(self, queries: Queries) -> Array:
        """What the pairs of each row make of it, by position: ``β = Σ net_i x_i``."""
        net = np.zeros(queries.n_rows)  # by row
        for k in range(len(self.duals.query)):
            block = self.duals.block(k)
            net[self.duals.rows(k)] += block.sum(axis=1)
            net[self.duals.columns(k)] -= block.sum(axis=0)
        return queries.gather(net)


# Singular values up to this share of the largest count as 0. It is above what the rounding of α
# and the accuracy to which fractions are found leave behind (about 1e-9), and far below what a
# single dual variable makes in a query of thousands of rows.
RANK_TOL = 1e-6


@dataclass(frozen=True, eq=False)
class Block:
    """The dual variables of one query: ``values[a, b]`` is α of ``rows[a]`` and ``columns[b]``.

    Attributes
    ----------
    query : query id
        None where there were no ids.
    rows, columns : int64 arrays (m,) and (n,)
        Row numbers in X: those above the lowest level, and those below the highest, both by
        ascending level.
    values : float64 array (m, n)
        α, 0 where the labels make no pair.
    is_pair : bool array (m, n)
        Where they make one.
    members : int64 array (l_q,)
        All rows of the query, in the order of X.
    """

    query: Any
    rows: Array
    columns: Array
    values: Array
    is_pair: Array
    members: Array

    @property
    def n_rows(self) -> int:
        """Rows of the query, the size of its square matrix."""
        return len(self.members)

    @property
    def n_pairs(self) -> int:
        """Pairs of the query."""
        return int(self.is_pair.sum())

    @cached_property
    def singular_values(self) -> Array:
        """Singular values, descending: those of the square matrix but for zeros."""
        found: Array = np.linalg.svd(self.values, compute_uv=False)
        return found

    def rank(self, tol: float = RANK_TOL) -> int:
        """Number of singular values above ``tol`` times the largest."""
        return singular_rank(self.singular_values, tol)

    def full(self) -> Array:
        """The square matrix of the query, its rows and columns in the order of `members`."""
        matrix = np.zeros((self.n_rows, self.n_rows))
        rows, columns = (np.searchsorted(self.members, part) for part in (self.rows, self.columns))
        matrix[np.ix_(rows, columns)] = self.values
        return matrix


def singular_rank(singular: Array, tol: float) -> int:
    """Number of ``singular`` values, descending, above ``tol`` times the first."""
    return int((singular > tol * singular[0]).sum()) if len(singular) else 0


class DualMatrix:
    """The dual variables α of a model as one matrix for each query, made when looked at.

    ``A_q[i, j] = α_ij`` where row i is above row j in query q, 0 elsewhere. Only the rectangle
    of rows above the lowest level × rows below the highest can be other than 0: that is a `Block`,
    and the rank of the matrix cannot exceed its shorter side. Iterating gives the blocks of the
    queries with pairs, one at a time; nothing is kept of them.

    Made by :func:`linrank.dual_matrix`.

    Attributes
    ----------
    query_ids : list
        Ids of the queries that have pairs, by first appearance.
    loss : {"hinge", "squared_hinge"}
        Whose dual it is.
    kind : {"ranksvm", "factorized", "regularized"}
        What the model was trained by.
    C : float
        Weight of the losses: ``α <= C ω`` for the hinge.
    entries : callable
        α of the cells of a query.
    """

    def __init__(
        self,
        problem: Problem,
        w: Array,
        entries: Entries,
        *,
        kind: str = "ranksvm",
        threshold: Callable[[Array], Array] | None = None,
    ) -> None:
        self._problem, self._w, self.entries = problem, w, entries
        self._threshold = threshold
        self.kind, self.loss, self.C = kind, problem.loss, problem.C

    # ---- blocks ----------------------------------------------------------------------------------

    @property
    def pairs(self) -> Pairs:
        """The pairs that have dual variables, with their weights."""
        pairs = self._problem.pairs
        if not isinstance(pairs, Pairs):
            raise ValueError("the labels make no pair, so there is no matrix")
        return pairs

    @cached_property
    def _numbers(self) -> list[int]:
        """Numbers of the queries with pairs."""
        return [int(q) for q in np.flatnonzero(self.pairs.queries.n_levels > 1)]

    @cached_property
    def query_ids(self) -> list[Any]:
        """Ids of the queries with pairs; ``[None]`` without ids."""
        ids = self.pairs.queries.ids
        return [None if ids is None else ids[q].item() for q in self._numbers]

    @cached_property
    def _number_of(self) -> dict[Hashable, int]:
        return dict(zip(self.query_ids, self._numbers, strict=True))

    def __len__(self) -> int:
        return len(self._numbers)

    def __iter__(self) -> Iterator[Block]:
        return (self._block(q) for q in self._numbers)

    def block(self, query: Any = None) -> Block:
        """The block of a query, by its id; without ids, or of a single query, by none.

        Parameters
        ----------
        query : query id, optional
            As given in ``qid``; with ``group``, the number of the query from 0.
        """
        if query is None and len(self) == 1:
            return self._block(self._numbers[0])
        if query not in self._number_of:
            raise KeyError(
                f"no query {query!r} with pairs among {len(self)}: a query has a block if its rows "
                "have at least two different labels; see query_ids"
            )
        return self._block(self._number_of[query])

    def full(self, query: Any = None) -> Array:
        """The square matrix of a query, its rows and columns in the order of X."""
        return self.block(query).full()

    def _block(self, q: int) -> Block:
        queries = self.pairs.queries
        cells = Cells.of(self.pairs, q)
        alpha = self.entries(cells)
        values = alpha if self._threshold is None else self._threshold(alpha)
        order = np.arange(queries.n_rows) if queries.order is None else queries.order
        members = order[queries.offsets[q] : queries.offsets[q + 1]]
        id_ = None if queries.ids is None else queries.ids[q].item()
        rows, columns = order[cells.top], order[cells.bottom]
        return Block(id_, rows, columns, values, cells.is_pair, members)

    # ---- spectra ---------------------------------------------------------------------------------

    def singular_values(self) -> list[Array]:
        """The singular values of each block, descending, in the order of `query_ids`."""
        return [block.singular_values for block in self]

    def ranks(self, tol: float = RANK_TOL) -> Array:
        """The rank of each block: singular values above ``tol`` times the largest, as int64."""
        return np.array([block.rank(tol) for block in self], dtype=np.int64)

    # ---- certificate -----------------------------------------------------------------------------

    @cached_property
    def _sums(self) -> tuple[float, float, Array]:
        """``(e'α, Σ α²/4Cω, β)`` by a pass over the blocks; β in the scaled space."""
        pairs, problem = self.pairs, self._problem
        linear = quadratic = 0.0
        net = np.zeros(pairs.queries.n_rows)  # β = Σ_i net_i x_i
        for q in self._numbers:
            cells = Cells.of(pairs, q)
            alpha = self.entries(cells)
            linear += float(alpha.sum())
            if self.loss == "squared_hinge":
                used = cells.weight > 0.0
                quadratic += float((alpha[used] ** 2 / cells.weight[used]).sum()) / (4.0 * self.C)
            net[cells.top] += alpha.sum(axis=1)
            net[cells.bottom] -= alpha.sum(axis=0)
        beta = _core.gradient(problem.rows.core, net, pairs.queries.order, problem.n_threads)
        return linear, quadratic, beta if problem.scale is None else problem.scale * beta

    @property
    def beta(self) -> Array:
        """``β = Σ α_ij (x_i - x_j)`` of the scaled rows: at the optimum the weights themselves."""
        return self._sums[2]

    @property
    def value(self) -> float:
        """The dual objective, a lower bound of the optimum of RankSVM with this loss.

        ``e'α - ½‖β‖²``, for the squared hinge less ``Σ α²/4Cω``. It is that of α also where the
        blocks are thresholded.
        """
        linear, quadratic, beta = self._sums
        return linear - 0.5 * float(beta @ beta) - quadratic

    @cached_property
    def primal(self) -> float:
        """``½‖w‖² + C Σ ω l(1 - w·(x_i - x_j))`` at the weights of the model."""
        return float(self._problem.unsmoothed().at(self._w).primal)

    @property
    def gap(self) -> float:
        """`primal` - `value` >= 0, which holds both the model's error and that of α.

        Of low-rank models it does not go to 0: their α are not those of the RankSVM optimum.
        """
        return max(0.0, self.primal - self.value)

    def __repr__(self) -> str:
        """What it is of, and how large; the certificate is not computed for it."""
        of = self.kind + (", thresholded" if self._threshold is not None else "")
        return f"<DualMatrix of {of}: {self.loss}, C={self.C:g}, {len(self)} queries with pairs>"
