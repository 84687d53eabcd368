"""scikit-survival's FastSurvivalSVM and FastKernelSurvivalSVM as rankers of one query.

Its objective is ½‖w‖² + (alpha/2) Σ max(0, 1 - w·(x_i - x_j))², so alpha = 2C. Times are the
labels, all of them events; labels must differ, for it breaks ties at random. The kernel one has
½β'Kβ in place of ½‖w‖² and Kβ in place of Xw, and the same alpha.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from linrank.data.dataset import Dataset


def warm_up() -> None:
    """Import what the clock is not to see."""
    import sksurv.svm  # noqa: F401


def fit(data: Dataset, C: float) -> Any:
    """Its minimizer ``w``, with its default solver (AVL tree) and enough iterations to converge."""
    from sksurv.svm import FastSurvivalSVM

    y = _events(data)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = FastSurvivalSVM(alpha=2 * C, max_iter=100, random_state=0).fit(data.X, y)
    return np.asarray(model.coef_, dtype=np.float64)


def fit_kernel(data: Dataset, C: float, gamma: float, max_iter: int, tol: float | None) -> Any:
    """Its β for the kernel "rbf", and its own value of the objective there."""
    from sksurv.svm import FastKernelSurvivalSVM

    model = FastKernelSurvivalSVM(
        alpha=2 * C, kernel="rbf", gamma=gamma, max_iter=max_iter, tol=tol, random_state=0
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(np.asarray(data.X, dtype=np.float64), _events(data))
    return np.asarray(model.coef_, dtype=np.float64), float(model.optimizer_result_.fun)


def _events(data: Dataset) -> Any:
    y = np.empty(data.n_rows, dtype=[("event", bool), ("time", float)])
    y["event"], y["time"] = True, data.y + 1 - data.y.min()
    return y
