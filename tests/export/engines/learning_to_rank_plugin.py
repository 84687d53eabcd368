"""The learning-to-rank plugin of Elasticsearch and OpenSearch: ``model/linear``.

Rules: the body of ``_createmodel`` holds ``model.name`` and ``model.model``, which has a ``type``
and a ``definition`` (JSON in a string, or an object); unknown fields are errors, and so would be
normalizers, which linrank does not write. The definition maps features of the set to JSON numbers,
all others have the weight 0. Vectors are dense and start as zeros, so a feature without a value is
0. Everything is a Java float.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from engines.rules import (
    Columns,
    column,
    float32_sum,
    known_keys,
    n_rows,
    require,
    single,
    strict_json,
)


@dataclass(frozen=True)
class LinearRanker:
    name: str
    features: tuple[str, ...]
    weights: np.ndarray

    def score(self, columns: Columns) -> np.ndarray:
        """Scores of documents; a feature that does not match stays at the 0 of its vector."""
        return float32_sum(self._terms(columns), n_rows(columns))

    def _terms(self, columns: Columns) -> Any:
        for name, weight in zip(self.features, self.weights, strict=True):
            values = np.nan_to_num(column(columns, name).astype(np.float32), nan=0.0)
            yield weight, values


def create_model(body: bytes, feature_set: Sequence[str]) -> LinearRanker:
    """``POST _ltr/_featureset/<feature_set>/_createmodel``."""
    request = known_keys(strict_json(body), ("model", "validation"), "the request")
    outer = known_keys(request.get("model"), ("name", "model"), "model")
    name = outer.get("name")
    require(isinstance(name, str) and name, f"the name of the model is {name!r}")
    model = known_keys(outer.get("model"), ("type", "definition"), "model.model")
    require(model.get("type") == "model/linear", f"unknown type {model.get('type')!r}")
    require(len(set(feature_set)) == len(feature_set), "a feature set has each feature once")
    weights = _definition(model.get("definition"), feature_set)
    return LinearRanker(name, tuple(feature_set), weights)


def _definition(definition: Any, feature_set: Sequence[str]) -> np.ndarray:
    if isinstance(definition, str):
        definition = strict_json(definition)
    require(isinstance(definition, dict), "Expected start object")
    ordinals = {feature: i for i, feature in enumerate(feature_set)}
    weights = np.zeros(len(ordinals), np.float32)
    for feature, value in definition.items():
        require(feature in ordinals, f"Feature [{feature}] is unknown.")
        weights[ordinals[feature]] = single(value, f"the weight of {feature}")
    return weights
