"""Layering: which rows of a query are to dominate which others, by how much and how heavily."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from numpy.typing import NDArray

from linrank import _core
from linrank.data.queries import Queries

__all__ = ["Layering"]

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Layering:
    """Layers of every query, with margins and weights.

    With ``m = z - s``, ``D(i)`` the rows of lower layers in i's query and ``k(i)`` the layer of i,
    the domination loss of scores z is
    ``Σ_q c_q Σ_i u_i log(1 + Σ_(j in D(i)) u_j exp(m_j - m_i + Δ(k(i), k(j))))``.

    Attributes
    ----------
    queries : Queries
        Its levels are the layers.
    shift : float64 array (n_rows,) or None
        The separable margins s, by position: ``Δ(i, j) = s(i) - s(j)``.
    row_weight : float64 array (n_rows,) or None
        u, by position; a weight of 2 equals repeating the row.
    query_weight : float64 array (n_queries,) or None
        c.
    table : float64 array (n_grades, n_grades) or None
        Margins ``Δ[a, b]`` of layer a over layer b, layers counted over all queries.
    grades : int32 array or None
        Row and column in `table` of each layer of each query, query by query; needed with `table`.
    """

    queries: Queries
    shift: Array | None = None
    row_weight: Array | None = None
    query_weight: Array | None = None
    table: Array | None = None
    grades: Array | None = None

    @cached_property
    def core(self) -> _core.Layering:
        """The same for the core, which copies the arrays."""
        queries, table = self.queries, self.table
        return _core.layering(
            queries.offsets,
            queries.levels,
            queries.n_levels,
            self.shift,
            self.row_weight,
            self.query_weight,
            None if table is None else table.reshape(-1),
            0 if table is None else len(table),
            self.grades,
        )
