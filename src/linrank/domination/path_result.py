"""The models of a path of the domination loss."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank import _core
from linrank.errors import ConvergenceWarning
from linrank.scaling import Scaling
from linrank.solvers.result import Result

__all__ = ["DominationPathResult", "warn_unless_certified"]

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class DominationPathResult:
    """The models for a grid of alpha, in descending order of alpha: the sparsest first.

    Attributes
    ----------
    alphas : float64 array (n_alphas,)
        The weights of the penalty, descending.
    coefs : float64 array (n_alphas, n_features)
        Coefficients of the raw features; row k is what ``DominationRanker(alpha=alphas[k])`` has
        as ``coef_``, to within its gap. Dense, zeros included: 50 models of 60,000 features take
        24 MB. A path that would not fit the memory is refused.
    objectives : float64 array (n_alphas,)
        ``F(w) = L(w) + alpha·pen(w)`` of each.
    gaps : float64 array (n_alphas,)
        Certified: ``F(w) - min F <= gap``.
    norms : float64 array (n_alphas,)
        ``‖w‖``, of the scaled features where there is a scaling.
    n_nonzero : int64 array (n_alphas,)
        Coefficients other than 0.
    n_iter : int64 array (n_alphas,)
        Sweeps of coordinate descent, or Newton steps, spent on each.
    converged : bool array (n_alphas,)
        Whether the gap is at most ``tol·F``.
    seconds : float64 array (n_alphas,)
        Wall time spent on each.
    messages : tuple of str
        Why each ended.
    history : tuple of dicts
        The iterates of each, as in ``DominationRanker.history_``; seconds since the start of that
        alpha.
    results : tuple of Result
        What the solver returned, in the scaled space.
    """

    alphas: Array
    coefs: Array
    objectives: Array
    gaps: Array
    norms: Array
    n_nonzero: Array
    n_iter: Array
    converged: Array
    seconds: Array
    messages: tuple[str, ...] = field(repr=False)
    history: tuple[dict[str, list[float]], ...] = field(repr=False)
    results: tuple[Result, ...] = field(repr=False)

    @classmethod
    def of(
        cls, alphas: Array, results: Sequence[Result], scaling: Scaling, n_features: int
    ) -> DominationPathResult:
        """The results of a solver with their weights folded back to the raw features."""
        coefs = np.zeros((len(results), n_features))
        for coef, result in zip(coefs, results, strict=True):
            coef[:] = scaling.fold(result.w)
        if scaling.factors is None:  # the same numbers need no second copy
            results = [replace(r, w=coef) for r, coef in zip(results, coefs, strict=True)]
        return cls(
            alphas=alphas[: len(results)],
            coefs=coefs,
            objectives=np.array([r.value for r in results]),
            gaps=np.array([r.gap for r in results]),
            norms=np.array([np.sqrt(_core.dot(r.w, r.w)) for r in results]),
            n_nonzero=np.array([np.count_nonzero(coef) for coef in coefs], dtype=np.int64),
            n_iter=np.array([r.n_iter for r in results], dtype=np.int64),
            converged=np.array([r.converged for r in results], dtype=bool),
            seconds=np.array([r.history["seconds"][-1] for r in results]),
            messages=tuple(r.message for r in results),
            history=tuple(r.history for r in results),
            results=tuple(results),
        )

    @property
    def sparse_coefs(self) -> Any:
        """``coefs`` as a ``scipy.sparse.csr_array``."""
        from scipy.sparse import csr_array

        return csr_array(self.coefs)

    def __len__(self) -> int:
        return len(self.alphas)


def warn_unless_certified(path: DominationPathResult) -> None:
    """Warn of the alphas whose gap stayed above the tolerance."""
    open_ = np.flatnonzero(~path.converged)
    if open_.size:
        k = int(open_[0])
        warnings.warn(
            f"the gap of {open_.size} of {len(path)} values of alpha is above the tolerance, "
            f"alpha={path.alphas[k]:g} the first of them: {path.messages[k]}",
            ConvergenceWarning,
            stacklevel=3,
        )
