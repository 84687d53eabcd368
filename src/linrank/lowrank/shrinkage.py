"""Shrinkage: what an iteration of the splitting does to singular values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Shrinkage"]

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Shrinkage:
    """What becomes of the singular values σ of M in each block, in A and in ``y = A - Z/ρ``.

    Up to ``threshold``, A has ``kappa σ``; above it, ``σ - shift``. In matrices:
    ``A = mixture_0 M + mixture_1 S`` and ``y = mixture_2 M + mixture_3 S``, where S has the
    singular values ``slope σ - intercept`` in place of those above the threshold, and no others.
    """

    threshold: Array
    kappa: Array
    shift: Array
    slope: Array
    intercept: Array
    mixture: Array

    def gains(self, k: int, values: Array) -> Array:
        """The singular values of S."""
        gains: Array = self.slope[k] * values - self.intercept[k]
        return gains

    @classmethod
    def of(cls, gamma: float, lam: float, rho: Array) -> Shrinkage:
        """A minimises ``H(A) + ρ/2 ‖A - M‖²``, and ``Z = ρ(M - A)``.

        The minimiser of ``h(s) + ρ/2 (s - σ)²`` is κσ while that is at most ``γ/2λ``, and then
        ``σ - γ/ρ``.
        """
        one, zero = np.ones_like(rho), np.zeros_like(rho)
        if gamma == 0.0:  # H = 0
            mixture = np.stack([one, zero, one, zero], axis=1)
            return cls(np.full_like(rho, np.inf), one, zero, zero, zero, mixture)
        with np.errstate(over="ignore"):  # of a γ that no singular value can reach
            kappa, shift = rho / (rho + 2.0 * lam), gamma / rho
        mixture = np.stack([kappa, one, 2.0 * kappa - 1.0, 2.0 * one], axis=1)
        return cls(gamma / (2.0 * lam) / kappa, kappa, shift, 1.0 - kappa, shift, mixture)

    @classmethod
    def to_prices(cls, gamma: float, lam: float, rho: Array) -> Shrinkage:
        """``A = M`` and ``Z = ∇H(M) = 2λ(M - SVT(M))``; S is ``SVT(M)``."""
        one, zero = np.ones_like(rho), np.zeros_like(rho)
        if gamma == 0.0:
            return cls.of(gamma, lam, rho)
        share, threshold = 2.0 * lam / rho, np.full_like(rho, gamma / (2.0 * lam))
        mixture = np.stack([one, zero, 1.0 - share, share], axis=1)
        return cls(threshold, one, zero, one, threshold, mixture)
