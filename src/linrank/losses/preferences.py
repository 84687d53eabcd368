"""Losses over preferences that are listed pair by pair."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank import _core
from linrank.data.preferences import Preferences
from linrank.data.rows import Design
from linrank.losses.base import HingeKind, HuberKind, ScoreLoss, SquaredHingeKind

Array = NDArray[Any]


class PreferenceLoss(ScoreLoss):
    """``L(z) = Σ_t ω_t l(1 - z_win + z_lose)``: O(p) for p preferences, a point or a product.

    Only rows that some preference names have a position: the others are never touched.

    Parameters
    ----------
    preferences : Preferences
        Winners, losers and weights ω, by row.
    n_rows : int
        Rows of the matrix.
    n_threads : int
        Threads of every sweep; the result does not depend on it.
    """

    name: str

    def __init__(self, preferences: Preferences, n_rows: int, n_threads: int = 1) -> None:
        is_named = np.zeros(n_rows, dtype=bool)
        is_named[preferences.winners] = is_named[preferences.losers] = True
        order = None if is_named.all() else np.flatnonzero(is_named)
        super().__init__(order, n_rows if order is None else len(order), n_threads)
        self.preferences = preferences
        position = np.cumsum(is_named) - 1
        self._list = _core.preference_list(
            position[preferences.winners],
            position[preferences.losers],
            preferences.weight,
            self.n_positions,
        )

    @property
    def mean_weight(self) -> float:
        return self.total_weight / max(1, len(self.preferences))

    @property
    def total_weight(self) -> float:
        return self.preferences.total_weight()

    def at(self, z: Array, near: Any = None) -> _core.PreferencePoint:
        return _core.preference_point(self._list, self.name, self.epsilon, z, self.n_threads)

    def curvature(self, point: _core.PreferencePoint, v: Array) -> Array:
        return point.multiply(v, self.n_threads)

    def hessian_matrix(self, rows: Design, point: _core.PreferencePoint) -> Array:
        """``XᵀΛX`` in full, Λ the Laplacian of the curved preferences."""
        n = rows.shape[1]
        flat = _core.preference_hessian_matrix(rows.core, self.order, point, self.n_threads)
        return flat.reshape(n, n)

    def hessian_diagonal(self, rows: Design, point: _core.PreferencePoint) -> Array:
        """The diagonal of ``XᵀΛX``, exact up to rounding."""
        return _core.preference_hessian_diagonal(rows.core, self.order, point, self.n_threads)


class PreferenceSquaredHinge(SquaredHingeKind, PreferenceLoss):
    """``l(ξ) = max(0, ξ)²``."""


class PreferenceHinge(HingeKind, PreferenceLoss):
    """``l(ξ) = max(0, ξ)``."""


class PreferenceHuber(HuberKind, PreferenceLoss):
    """``l(ξ) = [max(0, ξ)² - max(0, ξ - ε)²] / 2ε``.

    Parameters
    ----------
    preferences : Preferences
        Winners, losers and weights ω, by row.
    n_rows : int
        Rows of the matrix.
    epsilon : float
        ε, in (0, 1].
    n_threads : int
        Threads of every sweep; the result does not depend on it.
    """

    def __init__(
        self, preferences: Preferences, n_rows: int, epsilon: float, n_threads: int = 1
    ) -> None:
        super().__init__(preferences, n_rows, n_threads)
        self.epsilon = epsilon
