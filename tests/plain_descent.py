"""The steps of the stochastic learners as the formulas say, with w itself: a twin for tests."""

import math

import numpy as np


class PlainDescent:
    """One model; differences of rows are taken in the type of the rows, as the core does."""

    def __init__(self, n_features, algorithm, strength, first_step=0.0):
        self.w = np.zeros(n_features)
        self.algorithm, self.strength, self.t = algorithm, strength, first_step
        self.loss = 0.0
        self.iterates = []

    def step(self, x):
        x = x.astype(np.float64)
        margin = float(self.w @ x)
        self.t += 1
        self.w = getattr(self, "_" + self.algorithm.replace("-", "_"))(x, margin)
        self.iterates.append(self.w.copy())

    def run(self, X, winners, losers):
        for i, j in zip(winners, losers, strict=True):
            self.step(X[i] - X[j])

    def averaged(self, kind):
        weights = None if kind == "uniform" else np.arange(1.0, len(self.iterates) + 1)
        return np.average(self.iterates, axis=0, weights=weights)

    def _sgd_svm(self, x, margin):
        self.loss += max(0.0, 1 - margin)
        step = 1 / (self.strength * self.t)
        return (1 - 1 / self.t) * self.w + (step * x if margin < 1 else 0)

    def _pegasos(self, x, margin):
        w = self._sgd_svm(x, margin)
        norm = np.linalg.norm(w)
        return w if norm == 0 else min(1.0, 1 / (math.sqrt(self.strength) * norm)) * w

    def _logistic(self, x, margin):
        self.loss += np.logaddexp(0, -margin)
        step = 1 / (self.strength * self.t)
        return (1 - 1 / self.t) * self.w + step * math.exp(-np.logaddexp(0, margin)) * x

    def _pa(self, x, margin):
        slack = max(0.0, 1 - margin)
        self.loss += slack
        square = float(x @ x)
        return self.w if square == 0 else self.w + min(self.strength, slack / square) * x

    def _romma(self, x, margin):
        self.loss += max(0.0, 1 - margin)
        a, b, n = float(x @ x), margin, float(self.w @ self.w)
        if b >= 1 or a == 0:
            return self.w
        if n == 0 or b >= a * n or a * n - b * b <= 1e-12 * a * n:
            return x / a
        rest = a * n - b * b
        return (a * n - b) / rest * self.w + n * (1 - b) / rest * x
