"""Dual variables as functions of the cells of a query: α is made where it is looked at."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank.data.queries import Queries
from linrank.duals.cells import Cells

__all__ = [
    "BandEntries",
    "Entries",
    "FactorEntries",
    "HuberEntries",
    "RectangleEntries",
    "SquaredHingeEntries",
]

Array = NDArray[Any]
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
