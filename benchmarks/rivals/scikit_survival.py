"""scikit-survival's FastSurvivalSVM as a ranker of one query.

Its objective is ½‖w‖² + (alpha/2) Σ max(0, 1 - w·(x_i - x_j))², so alpha = 2C. Times are the
labels, all of them events; labels must differ, for it breaks ties at random.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from linrank.data.dataset import Dataset


def fit(data: Dataset, C: float) -> Any:
    """Its minimiser ``w``, with its default solver (AVL tree) and enough iterations to converge."""
    from sksurv.svm import FastSurvivalSVM

    y = np.empty(data.n_rows, dtype=[("event", bool), ("time", float)])
    y["event"], y["time"] = True, data.y + 1 - data.y.min()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = FastSurvivalSVM(alpha=2 * C, max_iter=100, random_state=0).fit(data.X, y)
    return np.asarray(model.coef_, dtype=np.float64)
