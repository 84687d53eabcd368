"""What all models of a path share, and the grid of their alphas."""

from __future__ import annotations

import numbers
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank.checks import check_natural
from linrank.data.dataset import Dataset
from linrank.domination.parameters import check_parameters
from linrank.domination.path_result import DominationPathResult
from linrank.domination.pathwise import follow, geometric_alphas
from linrank.domination.problem import DominationProblem
from linrank.domination.training import TOLERANCE, make_problem
from linrank.grids import as_grid
from linrank.memory import check_fits
from linrank.scaling import Scaling
from linrank.solvers.result import Callback, Result

__all__ = ["PathProblem", "as_alphas", "check_path"]

Array = NDArray[Any]


def check_path(
    *, penalty: str, n_alphas: int, eps: float | None, max_features: int | None = None
) -> None:
    """Raise ValueError for what no path can be made of."""
    if penalty == "none":
        raise ValueError(
            "penalty='none' has no alpha to follow a path of; use 'l1' or 'l2', or a single "
            "DominationRanker"
        )
    check_natural("n_alphas", n_alphas)
    if max_features is not None:
        check_natural("max_features", max_features, ", or None")
    if eps is not None and not (isinstance(eps, numbers.Real) and 0.0 < eps < 1.0):
        raise ValueError(f"eps must be a number > 0 and < 1, or None, got {eps!r}")


def as_alphas(
    alphas: Any, problem: DominationProblem, n_alphas: int, eps: float | None
) -> NDArray[np.float64]:
    """The grid as a descending array, each value once; ``"auto"`` is made for the problem."""
    is_auto = isinstance(alphas, str) and alphas == "auto"
    auto = geometric_alphas(problem, n_alphas, eps).tolist() if is_auto else ()
    return np.ascontiguousarray(as_grid("alphas", alphas, auto)[::-1])


@dataclass(frozen=True, eq=False)
class PathProblem:
    """What all alphas of a path share: the data, their scaling and the options of the solver."""

    problem: DominationProblem
    scaling: Scaling
    options: dict[str, Any] = field(repr=False)

    @classmethod
    def of(
        cls,
        data: Dataset,
        *,
        penalty: str = "l1",
        solver: str = "auto",
        curvature: str = "local",
        order: str = "sequential",
        tol: float | None = None,
        max_iter: int | None = None,
        negative_sampling: float | None = None,
        scale: str = "none",
        seed: int = 0,
        n_jobs: int | None = None,
        **layering: Any,
    ) -> PathProblem:
        """Of a dataset; ``layering`` are layers, margin, pooled and query_weight."""
        solving: dict[str, Any] = {
            "solver": solver,
            "curvature": curvature,
            "order": order,
            "max_iter": max_iter,
        }
        check_parameters(penalty=penalty, negative_sampling=negative_sampling, tol=tol, **solving)
        scaling = Scaling.fit(scale, data.rows, weight=data.weight, n_jobs=n_jobs)
        problem = make_problem(
            scaling.transformed(data, n_jobs=n_jobs),
            penalty=penalty,
            alpha=1.0,
            scale=scaling.factors,
            negative_sampling=negative_sampling,
            seed=seed,
            n_jobs=n_jobs,
            **layering,
        )
        tol = TOLERANCE if tol is None else tol
        return cls(problem, scaling, {**solving, "tol": tol, "seed": seed})

    def solve(
        self,
        alphas: Array,
        *,
        max_features: int | None = None,
        callback: Callback | None = None,
        progress: Callable[[Result], None] | None = None,
    ) -> DominationPathResult:
        """The path of the descending ``alphas``; ``progress`` is called with each result."""
        n_features = self.problem.n_features
        check_fits(
            len(alphas) * n_features * 8,
            f"a path of {len(alphas)} models of {n_features} features",
            "use fewer alphas, or max_features with a larger eps",
        )
        found = follow(
            self.problem, alphas, max_features=max_features, callback=callback, **self.options
        )
        results = []
        for result in found:
            if progress is not None:
                progress(result)
            results.append(result)
        return DominationPathResult.of(alphas, results, self.scaling, n_features)
