"""Batch scoring against the read bandwidth of one core, scikit-learn and onnxruntime, in one run.

Dense float32 rows, far more than the caches hold. A score needs its row once: the bytes of the rows
by the time of a call are set against the fastest plain read that NumPy and BLAS manage on the same
matrix. Scores of a whole matrix are new memory, which the system hands out in zeroed pages, and of
short rows that is a good part of the work; in batches, as a server scores, memory is used again.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import Any

import numpy as np

from bandwidth import read_time
from linrank import LinearModel
from report import Table, main, ratio, seconds

FEATURES = (8, 12, 16, 24, 46, 64, 136, 300, 700, 1000)
BATCH = 1 << 16  # rows
TARGET = 60  # per cent


def measure(quick: bool) -> list[Table]:
    speed = Table(
        "Scoring on one core, GB/s of the float32 rows",
        ["features", "rows", "read peak", "in batches", "share", "whole", "share "],
        notes=[
            f"batches of {BATCH:,} rows; target: {TARGET} % of the read peak",
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
        _add(speed, others, n_features, size // (4 * n_features))
    return [speed, others]


def _add(speed: Table, others: Table, n_features: int, n_rows: int) -> None:
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
    return f"{100 * value:.0f} %{'' if 100 * value >= TARGET else ' (MISSED)'}"


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
