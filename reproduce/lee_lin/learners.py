"""The methods of Tables 5 to 7: linear ones with C chosen on validation rows, trees with none."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank.data.dataset import Dataset
from linrank.ranksvm.train import train
from reproduce.lee_lin.sets import ndcg, pairwise_accuracy
from reproduce.official import Parts

Array = NDArray[np.float64]

GRID = tuple(2.0**k for k in range(-15, 11))
QUICK_GRID = (2.0**-7, 2.0**7)
MEASURES = ("pairwise accuracy", "NDCG")
# Points of pairwise accuracy within which two methods are even, or a difference is as printed:
# half of the half point by which SVR is said to be behind RankSVM.
EVEN = 0.25


@dataclass(frozen=True)
class Outcome:
    """One method on the test part: the measure in question, and what it took to train."""

    value: float
    seconds: float
    C: float = np.nan
    remark: str = ""


def measure(parts: Parts, which: str, data: Dataset, scores: Array) -> float:
    if which == "NDCG":
        return ndcg(parts.name, data, scores)
    return pairwise_accuracy(data, scores)


# ---- linear, by C -----------------------------------------------------------


def ranksvm(data: Dataset, C: float) -> tuple[Array, str]:
    return np.asarray(train(data, C=C, n_jobs=1).w), ""


def svr(loss: str) -> Callable[[Dataset, float], tuple[Array, str]]:
    """LIBLINEAR's linear SVR through scikit-learn: no bias, ε = 0, LIBLINEAR's own tolerances.

    The l2 loss in the primal by trust-region Newton (its ``-s 11``), the l1 loss by dual
    coordinate descent (``-s 13``) with at most 1,000 passes.
    """
    is_primal = loss == "squared_epsilon_insensitive"

    def fit(data: Dataset, C: float) -> tuple[Array, str]:
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.svm import LinearSVR

        model = LinearSVR(
            epsilon=0.0,
            C=C,
            loss=loss,
            dual=not is_primal,
            fit_intercept=False,
            tol=1e-3 if is_primal else 0.1,
            max_iter=1000,
            random_state=0,
        )
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", ConvergenceWarning)
            model.fit(np.asarray(data.X, dtype=np.float64), data.y)
        return np.asarray(model.coef_).ravel(), "*" if caught else ""

    return fit


LINEAR: dict[str, Callable[[Dataset, float], tuple[Array, str]]] = {
    "L2-loss RankSVM": ranksvm,
    "L1-loss SVR": svr("epsilon_insensitive"),
    "L2-loss SVR": svr("squared_epsilon_insensitive"),
}


def linear(method: str, parts: Parts, grid: tuple[float, ...]) -> dict[str, Outcome]:
    """By measure: test value and processor time of one fit at the C best on validation rows."""
    fit = LINEAR[method]
    fitted = []
    for C in grid:
        start = time.process_time()
        w, remark = fit(parts.train, C)
        fitted.append((C, w, remark, time.process_time() - start))
    found = {}
    for which in MEASURES:
        judged = [measure(parts, which, parts.vali, parts.vali.X @ w) for _, w, _, _ in fitted]
        C, w, remark, taken = fitted[int(np.argmax(judged))]
        value = measure(parts, which, parts.test, parts.test.X @ w)
        found[which] = Outcome(value, taken, C, remark)
    return found


# ---- trees ------------------------------------------------------------------


def forest(n_trees: int, seed: int) -> Any:
    """Unlimited depth, ⌊√n⌋ features tried in each node."""
    from sklearn.ensemble import RandomForestRegressor

    return RandomForestRegressor(n_trees, max_features="sqrt", random_state=seed, n_jobs=1)


def boosted_trees(n_trees: int, seed: int) -> Any:
    """Least squares from zero, learning rate 0.1, every split looked for exactly, as in pGBRT.

    The depth 4 of pGBRT counts layers of nodes, the root among them: three splits to a leaf.
    The seed decides between equally good splits only.
    """
    from sklearn.ensemble import GradientBoostingRegressor

    return GradientBoostingRegressor(
        learning_rate=0.1, n_estimators=n_trees, max_depth=3, init="zero", random_state=seed
    )


TREES: dict[str, Callable[[int, int], Any]] = {"Random forests": forest, "GBDT": boosted_trees}


def trees(method: str, n_trees: int, parts: Parts, seeds: tuple[int, ...]) -> dict[str, Outcome]:
    """By measure: the mean over the seeds, and their range."""
    X, y = np.asarray(parts.train.X, dtype=np.float64), parts.train.y
    values: dict[str, list[float]] = {which: [] for which in MEASURES}
    taken = []
    for seed in seeds:
        start = time.process_time()
        model = TREES[method](n_trees, seed).fit(X, y)
        taken.append(time.process_time() - start)
        scores = model.predict(np.asarray(parts.test.X, dtype=np.float64))
        for which in MEASURES:
            values[which].append(measure(parts, which, parts.test, scores))
    seconds = float(np.median(taken))
    return {
        which: Outcome(float(np.mean(v)), seconds, remark=_range(which, v))
        for which, v in values.items()
    }


def _range(which: str, values: list[float]) -> str:
    if len(set(values)) == 1:
        return ""
    digits = 4 if which == "NDCG" else 2
    return f"{min(values):.{digits}f}–{max(values):.{digits}f}"
