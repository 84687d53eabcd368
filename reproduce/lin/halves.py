"""The regression sets of Lin et al. (2013) in halves, and rankers tuned on a part of one half.

Half of the rows train, the other half tests. C and γ are chosen on a quarter of the training half
by pairwise accuracy, with models of the other three quarters; the chosen one is then trained on the
whole half. The paper does not say how it chose them here.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

import problems
from linrank import pairs
from linrank.data.dataset import Dataset
from linrank.data.preferences import Preferences
from linrank.data.rows import DenseRows
from linrank.kernels.functions import Kernel
from linrank.kernels.matrices import StoredMatrix
from linrank.kernels.train import train_kernel
from linrank.metrics import evaluate
from linrank.ranksvm.train import train

Array = NDArray[Any]
Choose = Callable[[Array], Preferences | None]  # pairs of labels, None for all

CONCORDANT = "pairwise_accuracy(ties=skip)"
CS = tuple(2.0**k for k in range(-5, 16, 2))
GAMMAS = tuple(2.0**k for k in range(-9, 4, 2))
TOL = {"linear": 1e-4, "rbf": 1e-3}
SLACK = 1.0  # points below the best so far at which a path over C ends
STEPS = 40  # Newton steps of a kernel fit at most: those of a C far too large end there


@dataclass(frozen=True, eq=False)
class Split:
    """Rows and labels: those that train, of which the last quarter validates, and the others."""

    X: Array
    y: Array
    X_test: Array
    y_test: Array

    @property
    def n_fit(self) -> int:
        """Training rows that do not validate."""
        return 3 * len(self.y) // 4


@cache
def table(name: str) -> tuple[Array, Array]:
    """Features in [-1, 1], and the target."""
    data = problems._read(f"regression/{name}_scale.svm.xz")
    X = data.X if isinstance(data.X, np.ndarray) else data.X.toarray()
    return np.asarray(X, dtype=np.float64), data.labels


def split(name: str, round_: int) -> Split:
    X, y = table(name)
    order = np.random.default_rng(round_).permutation(len(y))
    half, rest = order[: len(y) // 2], order[len(y) // 2 :]
    return Split(X[half], y[half], X[rest], y[rest])


def accuracy(y: Array, scores: Array) -> float:
    """``n_c/(n_c + n_d)`` in percent, as the paper has it; 50 if all scores tie."""
    found = evaluate(y, scores, metrics=[CONCORDANT])[CONCORDANT]
    return 50.0 if np.isnan(found) else 100.0 * float(found)


# ---- how a ranker is trained ------------------------------------------------


class Linear:
    """RankSVM on the rows as they are, one model after the other for growing C."""

    gammas: tuple[float, ...] = (1.0,)

    def __init__(self, halves: Split, choose: Choose, loss: str) -> None:
        self.halves, self.choose, self.loss = halves, choose, loss

    def path(self, _: float, n_fit: int) -> Callable[[float], Array]:
        """C -> scores of the rows beyond the first ``n_fit``, and of the test rows."""
        halves = self.halves
        X, y = halves.X[:n_fit], halves.y[:n_fit]
        listed = self.choose(y)
        data = Dataset.of(X, y if listed is None else np.zeros(n_fit))
        others = np.concatenate([halves.X[n_fit:], halves.X_test])
        start: dict[str, Any] = {"preferences": listed, "tol": TOL["linear"], "n_jobs": 1}

        def scores(C: float) -> Array:
            start["w0"] = train(data, C=C, loss=self.loss, **start).w
            return np.asarray(others @ start["w0"])

        return scores


class Rbf:
    """The kernel of all rows is computed once for each γ; parts of it serve all fits."""

    gammas = GAMMAS

    def __init__(self, halves: Split, choose: Choose, loss: str) -> None:
        self.halves, self.choose, self.loss = halves, choose, loss
        self._rows = DenseRows(np.concatenate([halves.X, halves.X_test]))
        self._kernels: dict[float, Array] = {}

    def matrix(self, gamma: float) -> Array:
        """K(all rows, training half)."""
        if gamma not in self._kernels:
            half = self._rows.take(slice(0, len(self.halves.y)))
            self._kernels[gamma] = Kernel.of("rbf", gamma=gamma).matrix(self._rows, half, 1)
        return self._kernels[gamma]

    def path(self, gamma: float, n_fit: int) -> Callable[[float], Array]:
        halves = self.halves
        y = halves.y[:n_fit]
        listed = self.choose(y)
        data = Dataset.of(halves.X[:n_fit], y if listed is None else np.zeros(n_fit))
        K = self.matrix(gamma)[:, :n_fit]
        start: dict[str, Any] = {
            "kernel": Kernel.of("rbf", gamma=gamma),
            "matrix": StoredMatrix(np.ascontiguousarray(K[:n_fit])),
            "preferences": listed,
            "tol": TOL["rbf"],
            "max_iter": STEPS,
            "settle": False,
            "n_jobs": 1,
        }

        def scores(C: float) -> Array:
            start["beta0"] = train_kernel(data, C=C, loss=self.loss, **start).w
            return np.asarray(K[n_fit:] @ start["beta0"])

        return scores


class Regression:
    """SVR by LIBSVM: the target in units of its deviation, ε = 0.1."""

    def __init__(self, halves: Split, kernel: str) -> None:
        self.halves, self.kernel = halves, kernel
        self.gammas = GAMMAS if kernel == "rbf" else (1.0,)

    def path(self, gamma: float, n_fit: int) -> Callable[[float], Array]:
        from sklearn.svm import SVR

        halves = self.halves
        X, y = halves.X[:n_fit], halves.y[:n_fit]
        target = (y - y.mean()) / y.std()
        others = np.concatenate([halves.X[n_fit:], halves.X_test])

        def scores(C: float) -> Array:
            solver = SVR(kernel=self.kernel, gamma=gamma, C=C, epsilon=0.1, max_iter=100_000)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of the limit of iterations
                return np.asarray(y.mean() + y.std() * solver.fit(X, target).predict(others))

        return scores


# ---- choosing C and γ -------------------------------------------------------


@dataclass(frozen=True)
class Outcome:
    """Test accuracy of the chosen model, what was chosen, and how many models were tried."""

    accuracy: float
    C: float
    gamma: float
    n_tried: int


def r_squared(y: Array, scores: Array) -> float:
    """How SVR is chosen: percent of the variance explained."""
    return 100.0 * (1.0 - float(np.square(y - scores).sum() / np.square(y - y.mean()).sum()))


def tune(ranker: Any, halves: Split, measure: Callable[[Array, Array], float]) -> Outcome:
    """The model that is best on the validation quarter, trained on the half and tested.

    Of two parameters every second value is tried first, then the neighbors of the best. A path
    over C ends where it has fallen well below its best: beyond are models that fit noise.
    """
    n_fit, n_half = halves.n_fit, len(halves.y)
    tried: dict[tuple[float, float], float] = {}

    def follow(gamma: float, Cs: Sequence[float]) -> None:
        scores, best = ranker.path(gamma, n_fit), -np.inf
        for C in Cs:
            if (C, gamma) not in tried:
                found = scores(C)[: n_half - n_fit]
                tried[C, gamma] = measure(halves.y[n_fit:], found)
            best = max(best, tried[C, gamma])
            if tried[C, gamma] < best - SLACK:
                break

    step = 1 if len(ranker.gammas) == 1 else 2
    for gamma in ranker.gammas[::step]:
        follow(gamma, CS[::step])
    if step > 1:
        C, gamma = max(tried, key=lambda one: tried[one])
        for near in _around(ranker.gammas, gamma):
            follow(near, _around(CS, C))
    C, gamma = max(tried, key=lambda one: tried[one])
    scores = ranker.path(gamma, n_half)(C)
    return Outcome(accuracy(halves.y_test, scores), C, gamma, len(tried))


def _around(values: Sequence[float], middle: float) -> Sequence[float]:
    k = values.index(middle)
    return values[max(0, k - 1) : k + 2]


def multiples(k: int, seed: int) -> Choose:
    """The closest kS pairs and kS random ones, S being the number of 1-closest ones."""

    def choose(y: Array) -> Preferences:
        size = k * len(pairs.closest(y))
        return pairs.pruned(y, None, size, size, seed=seed)

    return choose


def every_pair(_: Array) -> None:
    """All pairs, swept and not listed."""
