"""The fused Hessian product against the read bandwidth of the machine, in the same run.

The product needs the matrix once; its bytes by the time of a product are set against the fastest
plain read that NumPy and BLAS manage on the same matrix with as many threads.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

import problems
from linrank import LinearModel
from linrank.losses.base import SquaredHinge
from linrank.objective import Ridge, Risk, Sum
from linrank.pairs import Pairs
from linrank.ranksvm.train import train
from report import Table, main, ratio, seconds, spread

SETS = ("b", "c", "y20")


def measure(quick: bool) -> list[Table]:
    return [products(quick), *scoring(quick)]


def products(quick: bool) -> Table:
    table = Table(
        "Fused Hessian product against the read peak, GB/s of the float32 matrix",
        ["set", "matrix, MB", "threads", "product, ms", "product", "read peak", "share"],
        notes=["read peak: the best of sum, dot and matrix-vector product; target on b: 60%"],
    )
    for name in SETS:
        data = problems.load(name, 0.05 if quick else 1.0)
        w = train(data, tol=1e-2).w
        for n_threads in (1, 2):
            _add_product(table, name, data, w, n_threads)
    return table


def _add_product(table: Table, name: str, data: Any, w: Any, n_threads: int) -> None:
    nbytes = data.rows.nbytes
    times, peak = [], 0.0
    for _ in range(3):  # in turn, so that a slow moment hits both
        times += _product_times(data, w, n_threads)
        peak = max(peak, nbytes / read_time(data.rows.values, n_threads))
    rate = nbytes / statistics.median(times)
    table.add(
        name, round(nbytes / 1e6), n_threads, spread(times, 1e-3),
        f"{rate / 1e9:.1f}", f"{peak / 1e9:.1f}", f"{100 * rate / peak:.0f}%",
    )  # fmt: skip


def _product_times(data: Any, w: Any, n_threads: int) -> list[float]:
    loss = SquaredHinge(Pairs(data.queries), n_threads)
    point = Sum(Ridge(), Risk(data.rows, loss, 1.0)).at(w)
    v = np.random.default_rng(0).standard_normal(data.n_features)
    point.hvp(v)  # sorts the scores, once for all products at this point
    return seconds(lambda: point.hvp(v), 7)


def read_time(X: Any, n_threads: int) -> float:
    """The shortest time in which one of three plain reads passes over the rows."""
    parts = np.array_split(X, n_threads)
    ones = np.ones(X.shape[1], dtype=X.dtype)
    reads = (
        lambda part: part.sum(),
        lambda part: np.dot(part.reshape(-1), part.reshape(-1)),
        lambda part: part @ ones,
    )
    with ThreadPoolExecutor(n_threads) as pool:
        return min(min(seconds(lambda r=r: list(pool.map(r, parts)), 3)) for r in reads)


# ---- scoring -------------------------------------------------------------------

FEATURES = (8, 12, 16, 24, 46, 64, 136, 300, 700, 1000)
BATCH = 1 << 16  # rows
TARGET = 60  # percent


def scoring(quick: bool) -> list[Table]:
    speed = Table(
        "Scoring on one core, GB/s of the float32 rows",
        ["features", "rows", "read peak", "in batches", "share", "whole", "share "],
        notes=[
            f"batches of {BATCH:,} rows; target: {TARGET}% of the read peak",
            "read peak: the best of sum, dot and matrix-vector product",
        ],
    )
    others = Table(
        "Scores of a whole matrix: times of others by that of LinearModel.predict",
        ["features", "predict, ms", "LinearSVC.decision_function", "Ridge.predict", "onnxruntime"],
        notes=["one thread each; onnxruntime: one MatMul in float32"],
    )
    size = 64_000_000 if quick else 512_000_000
    for n_features in FEATURES:
        _add_scores(speed, others, n_features, size // (4 * n_features))
    return [speed, others]


def _add_scores(speed: Table, others: Table, n_features: int, n_rows: int) -> None:
    rng = np.random.default_rng(n_features)
    X = rng.random((n_rows, n_features), dtype=np.float32)
    coef = rng.standard_normal(n_features)
    model = LinearModel(coef)
    calls: dict[str, Callable[[], object]] = {
        "batches": lambda: _in_batches(model, X),
        "whole": lambda: model.predict(X, n_jobs=1),
        **_others(coef, X),
    }
    times: dict[str, list[float]] = {name: [] for name in calls}
    peak = 0.0
    for _ in range(5):  # in turn, so that a slow moment hits all
        peak = max(peak, X.nbytes / read_time(X, 1))
        for name, call in calls.items():
            times[name] += seconds(call, 1)
    best = {name: statistics.median(found) for name, found in times.items()}
    batches, whole = (X.nbytes / best[name] for name in ("batches", "whole"))
    speed.add(
        n_features, n_rows, f"{peak / 1e9:.1f}",
        f"{batches / 1e9:.1f}", _share(batches / peak),
        f"{whole / 1e9:.1f}", _share(whole / peak),
    )  # fmt: skip
    rivals = [ratio(best[name] / best["whole"]) for name in _others(coef, X[:1])]
    others.add(n_features, f"{1e3 * best['whole']:.3g}", *rivals)


def _share(value: float) -> str:
    return f"{100 * value:.0f}%{'' if 100 * value >= TARGET else ' (MISSED)'}"


def _in_batches(model: LinearModel, X: Any) -> None:
    for begin in range(0, len(X), BATCH):
        model.predict(X[begin : begin + BATCH], n_jobs=1)


def _others(coef: Any, X: Any) -> dict[str, Callable[[], object]]:
    """Linear scores by other libraries, of models that need no training to have weights."""
    from sklearn.linear_model import Ridge
    from sklearn.svm import LinearSVC

    classifier, regressor = LinearSVC(), Ridge()
    weights = coef.astype(np.float32)
    classifier.coef_, classifier.intercept_ = weights[None], np.zeros(1, np.float32)
    classifier.classes_ = np.array([0, 1])
    regressor.coef_, regressor.intercept_ = weights, 0.0
    session = _session(weights)
    return {
        "LinearSVC": lambda: classifier.decision_function(X),
        "Ridge": lambda: regressor.predict(X),
        "onnxruntime": lambda: session.run(None, {"X": X}),
    }


def _session(weights: Any) -> Any:
    """``X w`` as an ONNX graph, on one thread."""
    import onnxruntime
    from onnx import TensorProto, helper, numpy_helper

    graph = helper.make_graph(
        [helper.make_node("MatMul", ["X", "w"], ["score"])],
        "linear",
        [helper.make_tensor_value_info("X", TensorProto.FLOAT, [None, len(weights)])],
        [helper.make_tensor_value_info("score", TensorProto.FLOAT, [None, 1])],
        [numpy_helper.from_array(weights[:, None], "w")],
    )
    opset = [helper.make_opsetid("", 17)]
    built = helper.make_model(graph, opset_imports=opset, ir_version=9)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(
        built.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )


if __name__ == "__main__":
    main(measure, __doc__)
