"""LIBLINEAR's model file: ``load_model`` and ``predict_values``.

Rules: words apart by white space; ``solver_type``, ``nr_class``, ``label``, ``nr_feature`` and
``bias`` in any order but labels after the number of classes; ``w`` ends the header, and as many
doubles follow as there are features, and one more for a bias >= 0. Two classes have one vector,
whose positive side is the first label. Rows are sparse: what is not there is 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from engines.rules import Refused, require

_CLASSIFIERS = (
    *("L2R_LR", "L2R_L2LOSS_SVC_DUAL", "L2R_L2LOSS_SVC", "L2R_L1LOSS_SVC_DUAL"),
    *("MCSVM_CS", "L1R_L2LOSS_SVC", "L1R_LR", "L2R_LR_DUAL"),
)
_REGRESSORS = ("L2R_L2LOSS_SVR", "L2R_L2LOSS_SVR_DUAL", "L2R_L1LOSS_SVR_DUAL")


@dataclass(frozen=True)
class Model:
    solver_type: str
    labels: tuple[int, ...]
    weights: np.ndarray
    bias: float

    def score(self, rows: np.ndarray) -> np.ndarray:
        """Decision values of dense rows, higher for the first label; NaN is not stored, so 0."""
        values = np.nan_to_num(rows.astype(np.float64), nan=0.0)
        total = np.zeros(len(rows))
        n_features = len(self.weights) - (self.bias >= 0)
        for j in range(min(rows.shape[1], n_features)):
            total += self.weights[j] * values[:, j]
        return total + self.weights[-1] * self.bias if self.bias >= 0 else total


def load(text: str) -> Model:
    words = iter(text.split())
    header: dict[str, str] = {}
    labels: tuple[int, ...] = ()
    for key in words:
        if key == "w":
            break
        require(key not in header, f"{key} comes twice")
        if key == "label":
            require("nr_class" in header, "labels before the number of classes")
            labels = tuple(int(_next(words)) for _ in range(int(header["nr_class"])))
            header[key] = ""
            continue
        known = ("solver_type", "nr_class", "nr_feature", "bias")
        require(key in known, f"unknown text in model file: [{key}]")
        header[key] = _next(words)
    lacking = {"solver_type", "nr_class", "nr_feature", "bias"} - header.keys()
    require(not lacking, f"the header lacks {sorted(lacking)}")
    return _model(header, labels, [float(word) for word in words])


def _model(header: dict[str, str], labels: tuple[int, ...], weights: list[float]) -> Model:
    kind = header["solver_type"]
    require(kind in _CLASSIFIERS + _REGRESSORS, f"unknown solver type {kind}")
    require(kind != "MCSVM_CS" and header["nr_class"] == "2", "more than one vector of weights")
    require(labels or kind in _REGRESSORS, "a classifier without labels")
    if labels:
        require(labels[0] > labels[1], "higher scores are those of the first label")
    bias = float(header["bias"])
    size = int(header["nr_feature"]) + (bias >= 0)
    require(len(weights) == size, f"{len(weights)} weights for {size}")
    require(np.isfinite(weights).all(), "an infinite weight")
    return Model(kind, labels, np.array(weights), bias)


def _next(words: Iterator[str]) -> str:
    try:
        return next(words)
    except StopIteration:
        raise Refused("fscanf failed to read the model") from None
