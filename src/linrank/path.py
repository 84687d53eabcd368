"""Regularisation paths: the models of a whole grid of C for the price of a few fits."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank import _core
from linrank.bounds import weight_bounds
from linrank.data.dataset import Dataset
from linrank.errors import ConvergenceWarning
from linrank.grids import as_grid
from linrank.pathwise import train_path
from linrank.scaling import Scaling
from linrank.solvers.result import Callback, Result

__all__ = [
    "AUTO_CS",
    "PathResult",
    "as_Cs",
    "reporting",
    "solve_path",
    "warn_unless_certified",
]

Array = NDArray[Any]

AUTO_CS = tuple(2.0**k for k in range(-15, 11))


@dataclass(frozen=True, eq=False)
class PathResult:
    """The models for a grid of C, in ascending order of C.

    Attributes
    ----------
    Cs : float64 array (n_C,)
        The weights of the pair losses, ascending.
    coefs : float64 array (n_C, n_features)
        Coefficients of the raw features; row k is what ``RankSVM(C=Cs[k])`` has as ``coef_``, to
        within its gap.
    objectives : float64 array (n_C,)
        ``F(w) = ½‖w‖² + C·L(w)`` of each.
    gaps : float64 array (n_C,)
        Certified: ``F(w) - min F <= gap``.
    norms : float64 array (n_C,)
        ``‖w‖``, of the scaled features where there is a scaling: what the objective sees.
    n_iter, n_hvp : int64 arrays (n_C,)
        Newton steps and Hessian products spent on each; 0 where the model of the C before was
        certified for this one too.
    converged : bool array (n_C,)
        Whether the gap is at most ``tol·F``.
    messages : tuple of str
        Why each ended.
    history : tuple of dicts
        The iterates of each, as in ``RankSVM.history_``; seconds since the start of that C.
    results : tuple of Result
        What the solver returned, in the scaled space.
    """

    Cs: Array
    coefs: Array
    objectives: Array
    gaps: Array
    norms: Array
    n_iter: Array
    n_hvp: Array
    converged: Array
    messages: tuple[str, ...] = field(repr=False)
    history: tuple[dict[str, list[float]], ...] = field(repr=False)
    results: tuple[Result, ...] = field(repr=False)

    @classmethod
    def of(cls, Cs: Array, results: Sequence[Result], scaling: Scaling) -> PathResult:
        """The results of a solver with their weights folded back to the raw features."""
        return cls(
            Cs=Cs[: len(results)],
            coefs=np.array([scaling.fold(r.w) for r in results]),
            objectives=np.array([r.value for r in results]),
            gaps=np.array([r.gap for r in results]),
            norms=np.array([np.sqrt(_core.dot(r.w, r.w)) for r in results]),
            n_iter=np.array([r.n_iter for r in results], dtype=np.int64),
            n_hvp=np.array([r.n_hvp for r in results], dtype=np.int64),
            converged=np.array([r.converged for r in results], dtype=bool),
            messages=tuple(r.message for r in results),
            history=tuple(r.history for r in results),
            results=tuple(results),
        )

    @property
    def n_nonzero(self) -> Array:
        """Coefficients other than 0 of each model."""
        count: Array = np.count_nonzero(self.coefs, axis=1)
        return count

    @property
    def seconds(self) -> Array:
        """Wall time spent on each C."""
        return np.array([history["seconds"][-1] for history in self.history])

    def __len__(self) -> int:
        return len(self.Cs)


def as_Cs(Cs: Any) -> Array:
    """The grid as an ascending float64 array, each value once."""
    return as_grid("Cs", Cs, AUTO_CS)


def warn_unless_certified(path: PathResult) -> None:
    """Warn of the values of C whose gap stayed above the tolerance."""
    open_ = np.flatnonzero(~path.converged)
    if open_.size and path.results[open_[-1]].stopped != "callback":
        k = int(open_[0])
        warnings.warn(
            f"the gap of {open_.size} of {len(path)} values of C is above the tolerance, "
            f"C={path.Cs[k]:g} the first of them: {path.messages[k]}",
            ConvergenceWarning,
            stacklevel=3,
        )


def solve_path(
    data: Dataset,
    Cs: Array,
    *,
    scale: str = "none",
    positive: bool = False,
    coef_bounds: Any = None,
    query_weight: Array | None = None,
    n_jobs: int | None = None,
    callback: Callback | None = None,
    progress: Callable[[Result], None] | None = None,
    **options: Any,
) -> tuple[PathResult, Scaling]:
    """The path of a dataset and the scaling that went with it; ``Cs`` as `as_Cs` returns them.

    ``progress`` is called with the result of each C; ``options`` are those of `train_path`.
    """
    scaling = Scaling.fit(scale, data.rows, weight=data.weight, n_jobs=n_jobs)
    found = train_path(
        scaling.transformed(data, n_jobs=n_jobs),
        Cs.tolist(),
        scale=scaling.factors,
        bounds=weight_bounds(positive, coef_bounds, data, scaling.factors),
        query_weight=query_weight,
        n_jobs=n_jobs,
        callback=callback,
        **options,
    )
    results = list(reporting(found, progress))
    return PathResult.of(Cs, results, scaling), scaling


def reporting(
    results: Iterable[Result], progress: Callable[[Result], None] | None
) -> Iterator[Result]:
    """The results, each told to ``progress`` as it comes."""
    for result in results:
        if progress is not None:
            progress(result)
        yield result
