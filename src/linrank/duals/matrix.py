"""The dual variables of a trained model, arranged as one matrix for each query."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank import _core
from linrank.duals.cells import Cells
from linrank.duals.entries import Entries
from linrank.lazy import cached_property
from linrank.pairs import Pairs
from linrank.problem import Problem

__all__ = ["RANK_TOL", "Block", "DualMatrix", "singular_rank"]

Array = NDArray[Any]

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
        if pairs is None:
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
