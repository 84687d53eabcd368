"""SciPy's L-BFGS-B on the domination loss, as a user of SciPy would write it.

``F(w) = L(Xw) + alpha‖w‖²``, or with the l1 penalty ``w = u - v``, ``u, v >= 0`` and
``F = L + alpha Σ(u + v)``. The loss comes either from NumPy, whole arrays at a time with running
sums over the layers of all queries at once, or from linrank's kernel, so that only the solvers
differ.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.sparse import csr_array
from scipy.special import expit

from linrank.data.dataset import Dataset
from linrank.domination.layering import Layering
from linrank.domination.problem import DominationLoss
from linrank.objective import Risk

Array = NDArray[Any]
Oracle = Callable[[Array], tuple[float, Array]]  # a value and its gradient
LIMIT = 100_000  # evaluations


def by_numpy(data: Dataset) -> Oracle:
    """Sums of exponentials by query and layer, added up over the layers below."""
    levels = np.empty(data.n_rows, dtype=np.int64)
    query = np.empty(data.n_rows, dtype=np.int64)
    queries = data.queries
    order = slice(None) if queries.order is None else queries.order
    levels[order] = queries.levels
    query[order] = np.repeat(np.arange(queries.n_queries), np.diff(queries.offsets))
    shape = (queries.n_queries, int(queries.n_levels.max()))
    cell = query * shape[1] + levels
    is_above = levels > 0
    above, starts = cell[is_above], queries.offsets[:-1]
    is_sparse = hasattr(data.X, "indptr")
    X = csr_array(data.X, dtype=np.float64) if is_sparse else np.asarray(data.X, dtype=np.float64)
    Xt = X.T.tocsr() if is_sparse else X.T

    def value_and_gradient(w: Array) -> tuple[float, Array]:
        z = X @ w
        top = np.maximum.reduceat(z[order], starts)
        e = np.exp(z - top[query])
        sums = np.bincount(cell, e, minlength=shape[0] * shape[1]).reshape(shape)
        Z = np.zeros(shape)
        np.cumsum(sums[:, :-1], axis=1, out=Z[:, 1:])
        a = np.log(Z.reshape(-1)[above]) + (top[query] - z)[is_above]
        value = float(np.logaddexp(0.0, a).sum())
        rho = np.zeros(len(z))
        rho[is_above] = expit(a)
        R = np.bincount(cell, rho, minlength=shape[0] * shape[1]).reshape(shape)
        share = np.divide(R, Z, out=np.zeros(shape), where=Z > 0)
        # T_κ = Σ_{k>κ} R_k/Z_k
        T = np.zeros(shape)
        T[:, :-1] = np.cumsum(share[:, :0:-1], axis=1)[:, ::-1]
        return value, Xt @ (e * T.reshape(-1)[cell] - rho)

    return value_and_gradient


def by_linrank(data: Dataset) -> Oracle:
    """The same from linrank's kernel, on one thread."""
    risk = Risk(data.rows, DominationLoss(Layering.of(data), 1), 1.0)

    def value_and_gradient(w: Array) -> tuple[float, Array]:
        point = risk.at(w)
        return point.value, point.gradient

    return value_and_gradient


def minimize_until(
    function: Oracle, n: int, goal: float, limit: float, bound: float | None = None
) -> tuple[float, float, str]:
    """CPU seconds from 0 until ``F <= goal`` or the limit, the last F, and the evaluations.

    ``function`` gives F and its gradient; ``bound`` is the least value of every weight.
    """
    start = time.process_time()
    last = {"value": np.inf}

    def watch(intermediate_result: Any) -> None:
        last["value"] = float(intermediate_result.fun)
        if last["value"] <= goal or time.process_time() - start > limit:
            raise StopIteration

    found = minimize(
        function,
        np.zeros(n),
        jac=True,
        method="L-BFGS-B",
        bounds=None if bound is None else [(bound, None)] * n,
        callback=watch,
        options={"maxiter": LIMIT, "maxfun": LIMIT, "ftol": 0.0, "gtol": 0.0},
    )
    return time.process_time() - start, last["value"], f"{found.nfev} evaluations"


def fit(
    oracle: Oracle, n_features: int, penalty: str, alpha: float, goal: float, limit: float
) -> tuple[float, float, str]:
    """The same for ``L + alpha‖w‖²``, or ``L + alpha Σ(u + v)`` with ``w = u - v``.

    The oracle gives L and its gradient.
    """

    def ridge(w: Array) -> tuple[float, Array]:
        value, gradient = oracle(w)
        return value + alpha * float(w @ w), gradient + 2 * alpha * w

    def lasso(uv: Array) -> tuple[float, Array]:
        value, gradient = oracle(uv[:n_features] - uv[n_features:])
        return value + alpha * float(uv.sum()), np.concatenate([alpha + gradient, alpha - gradient])

    if penalty == "l1":
        return minimize_until(lasso, 2 * n_features, goal, limit, bound=0.0)
    return minimize_until(ridge, n_features, goal, limit)
