"""Kernel models for tests, of every kind that a file can hold, and their scores by the formula."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from scipy import sparse

from linrank import KernelModel
from linrank.data.scaling import Scaling
from linrank.kernels.functions import Kernel

numbers = st.floats(-1e6, 1e6)
SCALES = ("none", "standard", "minmax", "query")


def kernel_values(kernel: Kernel, a: np.ndarray, b: np.ndarray) -> float:
    """``k(a, b)`` of two rows, straight from the formula."""
    if kernel.name == "rbf":
        return float(np.exp(-kernel.gamma * ((a - b) ** 2).sum()))
    if kernel.name == "linear":
        return float(a @ b)
    inner = kernel.gamma * (a @ b) + kernel.coef0
    return float(inner**kernel.degree if kernel.name == "poly" else np.tanh(inner))


def scores_by_definition(model: KernelModel, X: np.ndarray) -> np.ndarray:
    """``Σ_i coef_i k(x_i, x)`` of rows that are scaled already, one term after the other."""
    rows = model.rows.to_user()
    rows = np.asarray(rows.todense() if sparse.issparse(rows) else rows, dtype=np.float64)
    scores = np.zeros(len(X))
    for t, x in enumerate(np.asarray(X, dtype=np.float64)):
        for row, c in zip(rows, model.coef, strict=True):
            scores[t] += c * kernel_values(model.kernel, row, x)
    return scores


@st.composite
def kernels(draw, names=("rbf", "poly", "sigmoid", "linear", "precomputed")):
    gamma = draw(st.floats(1e-3, 10.0))
    return Kernel(draw(st.sampled_from(names)), gamma, draw(st.integers(1, 4)), draw(numbers))


@st.composite
def kernel_models(draw):
    """Dense and sparse rows of both types, none of them too; every kernel and scaling."""
    n, n_features = draw(st.integers(0, 5)), draw(st.integers(1, 4))
    kernel = draw(kernels())
    vector = st.lists(numbers, min_size=n, max_size=n).map(np.array)
    n_train = n + draw(st.integers(1, 3))
    support = draw(st.permutations(range(n_train)))[:n]
    training = draw(st.dictionaries(st.text(), st.none() | st.booleans() | numbers | st.text()))
    options = {"support": support, "n_train": n_train, "training": training}
    if kernel.name == "precomputed":
        return KernelModel(None, draw(vector), kernel, **options)
    values = draw(st.lists(numbers, min_size=n * n_features, max_size=n * n_features))
    X = np.array(values, dtype=draw(st.sampled_from([np.float32, np.float64])))
    X = X.reshape(n, n_features)
    kind = draw(st.sampled_from(SCALES))
    factors = np.linspace(0, 2, n_features) if kind in ("standard", "minmax") else None
    options["scaling"] = Scaling(kind, factors)
    if draw(st.booleans()):
        options["feature_names"] = [f"ü{j}" for j in range(n_features)]
    if draw(st.booleans()):
        options |= {"support": None, "n_train": draw(st.none() | st.just(n_train))}
    rows = sparse.csr_array(X) if n and draw(st.booleans()) else X
    return KernelModel(rows, draw(vector), kernel, **options)
