"""Products with a kernel matrix, stored and in blocks; predictions against scikit-learn's.

RBF kernel, γ = 1/number of features, normal rows; one thread, processor time, the least of several.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank.data.rows import DenseRows
from linrank.kernels.functions import Kernel
from linrank.kernels.matrices import BlockedMatrix, StoredMatrix
from linrank.models.kernel import KernelModel
from report import Table, main, ratio, seconds

Array = NDArray[Any]

WIDTHS = (6, 12, 136)
N_ROWS, N_SUPPORT, N_PREDICTED = 6000, 2000, 4000
DTYPES = (np.float32, np.float64)


def measure(quick: bool) -> list[Table]:
    shrink = 10 if quick else 1
    return [products(N_ROWS // shrink), predictions(N_SUPPORT // shrink, N_PREDICTED // shrink)]


def least(call: Callable[[], object], repeat: int = 5) -> float:
    call()
    return min(seconds(call, repeat, time.process_time))


def products(n: int) -> Table:
    table = Table(
        f"Products Qv of {n} rows",
        [
            *("features", "dtype", "stored, ms", "GB/s of what is read", "GB/s of Q"),
            *("NumPy's Q @ v, ms", "NumPy / stored", "in blocks, ms", "ns an entry of Q"),
            *("blocks / stored", "making Q, ns an entry"),
        ],
        notes=[
            "a stored product reads the entries on and above the diagonal, one in blocks computes "
            "those; ns are of all n² entries; making Q: with the pages of fresh memory",
        ],
    )
    rng = np.random.default_rng(0)
    v = rng.standard_normal(n)
    for width in WIDTHS:
        for dtype in DTYPES:
            rows = DenseRows(rng.standard_normal((n, width)).astype(dtype))
            add_product(table, rows, Kernel.of("rbf", gamma=1.0 / width), v)
    return table


def add_product(table: Table, rows: DenseRows, kernel: Kernel, v: Array) -> None:
    Q = kernel.matrix(rows, rows)
    matrix, blocked = StoredMatrix(Q), BlockedMatrix(kernel, rows)
    np.testing.assert_allclose(blocked.product(v), matrix.product(v), atol=1e-9)
    stored, plain = least(lambda: matrix.product(v), 15), least(lambda: Q @ v, 15)
    tiles, made = least(lambda: blocked.product(v)), least(lambda: kernel.matrix(rows, rows), 3)
    table.add(
        rows.shape[1], np.dtype(rows.dtype).name, 1e3 * stored, 0.5 * Q.nbytes / stored / 1e9,
        Q.nbytes / stored / 1e9, 1e3 * plain, ratio(plain / stored), 1e3 * tiles,
        1e9 * tiles / Q.size, ratio(tiles / stored), 1e9 * made / Q.size,
    )  # fmt: skip


def predictions(n_support: int, n: int) -> Table:
    table = Table(
        f"Predictions with {n_support} support rows: rows a second",
        [
            *("features", "dtype", "linrank", "SVC.decision_function", "linrank / SVC"),
            *("KernelRidge.predict", "linrank / KernelRidge", "largest difference"),
        ],
        notes=[
            "the same support rows and coefficients in all three; the difference is of scores, "
            "to either, by the largest score; SVC computes in double, KernelRidge in the dtype",
        ],
    )
    rng = np.random.default_rng(0)
    for width in WIDTHS:
        for dtype in DTYPES:
            support = rng.standard_normal((n_support, width)).astype(dtype)
            add_prediction(table, support, rng.standard_normal((n, width)).astype(dtype), rng)
    return table


def add_prediction(table: Table, support: Array, X: Array, rng: np.random.Generator) -> None:
    svc, ridge, rows, coef = rivals(support, rng)
    model = KernelModel(rows, coef, Kernel.of("rbf", gamma=1.0 / X.shape[1]))
    calls: list[Callable[[], Array]] = [
        lambda: model.predict(X, n_jobs=1),
        lambda: svc.decision_function(X),
        lambda: ridge.predict(X),
    ]
    ours, *theirs = (np.asarray(call(), dtype=np.float64) for call in calls)
    theirs[0] = theirs[0] - svc.intercept_[0]
    worst = max(float(np.abs(ours - other).max()) for other in theirs) / float(np.abs(ours).max())
    mine, libsvm, plain = (len(X) / least(call, 3) for call in calls)
    table.add(
        X.shape[1], X.dtype.name, mine, libsvm, ratio(mine / libsvm), plain, ratio(mine / plain),
        f"{worst:.1e}",
    )  # fmt: skip


def rivals(support: Array, rng: np.random.Generator) -> tuple[Any, Any, Array, Array]:
    """SVC with random labels, of which nearly every row supports it, and KernelRidge of its rows.

    And those rows and their coefficients.
    """
    from sklearn.kernel_ridge import KernelRidge
    from sklearn.svm import SVC

    gamma, n = 1.0 / support.shape[1], len(support)
    svc = SVC(C=1e-3, gamma=gamma).fit(support, np.arange(n) % 2)
    rows, coef = support[svc.support_], svc.dual_coef_[0].copy()
    ridge = KernelRidge(kernel="rbf", gamma=gamma).fit(rows, rng.standard_normal(len(rows)))
    ridge.dual_coef_ = coef.astype(support.dtype)
    return svc, ridge, rows, coef


if __name__ == "__main__":
    main(measure, __doc__)
