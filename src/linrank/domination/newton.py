"""The domination loss with an l2 penalty, by the Newton method that RankSVM uses."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank.data.rows import Rows
from linrank.domination.problem import DominationProblem
from linrank.losses.domination import DominationLoss
from linrank.objective import Ridge, Risk, Sum
from linrank.pairs.layering import Layering
from linrank.ranksvm.train import Plannable, plan, sample_queries
from linrank.solvers.newton import newton
from linrank.solvers.result import Callback, Result

Array = NDArray[Any]

SAMPLE_SEED = 20100501  # of the preconditioner only: the optimum does not depend on it
# What is measured in units of the objective or of its gradient.
_UNITS = ("value", "objective", "gap", "decrement", "gradient_norm", "kkt_residual")


@dataclass(frozen=True, eq=False)
class RidgeProblem:
    """``½‖w‖² + C·L(X D w)`` and smaller copies of it: `linrank.ranksvm.train.Plannable`."""

    rows: Rows
    layering: Layering
    C: float
    scale: Array | None = None
    n_threads: int = 1
    loss: str = "domination"

    @property
    def n_rows(self) -> int:
        return self.layering.queries.n_rows

    @property
    def longest_query(self) -> int:
        """Rows of the longest query."""
        return int(np.diff(self.layering.queries.offsets).max())

    @property
    def capacity(self) -> int:
        """Rows that a sample may have."""
        return self.n_rows

    @property
    def largest_matrix(self) -> int:
        """Features up to which the whole Hessian may be formed."""
        return self.rows.shape[1]

    def objective(self, epsilon: float = 1.0) -> Sum:
        """The objective; nothing is smoothed, whatever ``epsilon``."""
        loss = DominationLoss(self.layering, self.n_threads)
        return Sum(Ridge(), Risk(self.rows, loss, self.C, self.scale))

    def sharpening(self, tol: float) -> None:
        """Nothing is smoothed."""

    def sample(self, n_rows: int) -> RidgeProblem:
        """The same problem on about ``n_rows`` rows, its loss at 0 scaled up to the whole."""
        layering = sample_layering(self.layering, n_rows, SAMPLE_SEED)
        part, whole = (
            DominationLoss(some).at(np.zeros(some.queries.n_rows)).value
            for some in (layering, self.layering)
        )
        factor = whole / part if part > 0.0 else 1.0
        return replace(self, layering=layering, C=factor * self.C, n_threads=1)


def sample_layering(layering: Layering, n_rows: int, seed: int) -> Layering:
    """The layering on about ``n_rows`` rows: whole queries, and some rows of long ones.

    Weights make up for the rows left out of a query, inside the sums over lower layers as outside.
    """
    whole = layering.queries
    queries, positions, row_weight = sample_queries(whole, n_rows, seed)
    return layering.on(queries, positions, row_weight)


def by_newton(problem: DominationProblem, **options: Any) -> Result:
    """Minimise ``F(w) = L(X D w) + alpha‖w‖²``, the penalty being l2; options as in `minimise`."""
    p, C = problem, 1.0 / (2.0 * problem.alpha)
    return minimise(RidgeProblem(p.rows, p.layering, C, p.scale, p.n_threads), p.alpha, **options)


def minimise(
    problem: Plannable,
    alpha: float,
    *,
    w0: Array | None = None,
    tol: float = 1e-6,
    max_iter: int = 100,
    callback: Callback | None = None,
) -> Result:
    """Minimise ``F(w) = L(X D w) + alpha‖w‖²``; stop when the certified gap is at most ``tol·F``.

    The solver minimises ``F/(2 alpha) = ½‖w‖² + C·L`` with ``C = 1/(2 alpha)``; everything that is
    reported is in the units of F. The gap is at most ``‖∇F‖²/(4 alpha)``.

    Parameters
    ----------
    problem : Plannable
        With this C, wherever its rows are.
    alpha : float
        Weight of the penalty, > 0.
    w0 : float64 array (n_features,), optional
        Where to start; otherwise 0, or the optimum on a sample of many rows.
    tol : float
        Largest gap, relative to F.
    max_iter : int
        Largest number of Newton steps.
    callback : callable, optional
        Called with a dict of the history's entries, "w" and "n_iter" after every iteration; a true
        value stops the solver.
    """
    started = time.perf_counter()
    start, preconditioner = plan(problem, w0)

    def in_units(found: dict[str, Any]) -> dict[str, Any]:
        return {k: 2.0 * alpha * v if k in _UNITS else v for k, v in found.items()}

    result = newton(
        problem.objective(),
        start,
        preconditioner=preconditioner,
        tol=tol,
        max_iter=max_iter,
        callback=None if callback is None else lambda entry: callback(in_units(entry)),
        started=started,
        certified=True,
    )
    arrays = {key: np.array(values) for key, values in result.history.items()}
    history = {key: values.tolist() for key, values in in_units(arrays).items()}
    return replace(result, **in_units(vars(result)) | {"history": history})
