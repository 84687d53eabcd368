"""Random Fourier features: rows by cosines and sines of random frequencies."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank.data.rows import DenseRows, Rows
from linrank.kernels.functions import Kernel

__all__ = ["FourierMap"]

Array = NDArray[Any]

_PRODUCTS = Kernel("linear")


@dataclass(frozen=True, eq=False)
class FourierMap:
    """``z(x) = D^-½ (cos ω_1·x, ..., cos ω_D·x, sin ω_1·x, ..., sin ω_D·x)``, ``ω ~ N(0, 2γ)``.

    ``z(a)·z(b) = Σ cos ω_k·(a - b) / D``, whose expectation is ``exp(-γ‖a - b‖²)``, with an error
    of about ``1/√(2D)`` at any distance. A ranker ``w·z(x)`` is ``Σ A_k cos(ω_k·x - δ_k)``.

    Attributes
    ----------
    rows : DenseRows
        The frequencies, (D, n_features).
    """

    rows: DenseRows
    support = None

    @classmethod
    def of(cls, kernel: Kernel, n_features: int, n_components: int, *, seed: int = 0) -> FourierMap:
        """Frequencies for ``n_components`` features, an even number."""
        rng = np.random.default_rng(seed)
        frequencies = rng.standard_normal((n_components // 2, n_features))
        frequencies *= math.sqrt(2.0 * kernel.gamma)
        return cls(DenseRows(frequencies))

    @property
    def n_components(self) -> int:
        return 2 * self.rows.shape[0]

    def features(self, block: Rows, out: Array) -> None:
        """``z`` of a block of rows, into float32 ``out``."""
        turns = _PRODUCTS.matrix(block, self.rows)
        turns *= 0.5 / math.pi
        turns -= np.rint(turns)  # whole turns go in double: what is left has the digits of float32
        turns *= 2.0 * math.pi
        angles = turns.astype(np.float32)
        D = self.rows.shape[0]
        np.cos(angles, out=out[:, :D])
        np.sin(angles, out=out[:, D:])
        out *= np.float32(1.0 / math.sqrt(D))

    def scores(self, block: Rows, w: Array) -> Array:
        """``z(x)·w`` of a block of rows."""
        return self._stored(block).scores(w, None, 1)

    def gradient(self, block: Rows, r: Array) -> Array:
        """``Σ r_i z(x_i)`` over a block of rows."""
        return self._stored(block).gradient(r, None, 1)

    def _stored(self, block: Rows) -> DenseRows:
        out = np.empty((block.shape[0], self.n_components), dtype=np.float32)
        self.features(block, out)
        return DenseRows(out)

    def coef(self, w: Array) -> Array:
        """The amplitudes A."""
        cosines, sines = w.reshape(2, -1)
        amplitudes: Array = np.hypot(cosines, sines) / math.sqrt(self.rows.shape[0])
        return amplitudes

    def phases(self, w: Array) -> Array:
        """The phases δ."""
        cosines, sines = w.reshape(2, -1)
        phases: Array = np.arctan2(sines, cosines)
        return phases
