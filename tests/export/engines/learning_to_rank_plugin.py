"""The learning-to-rank plugin of Elasticsearch and OpenSearch: ``model/linear``.

Rules: the body of ``_createmodel`` holds ``model.name`` and ``model.model``, which has a ``type``,
a ``definition`` (JSON in a string, or an object) and perhaps ``feature_normalizers``; unknown
fields are errors. The definition maps features of the set to JSON numbers, all others have the
weight 0. Vectors are dense and start as zeros, so a feature without a value is 0, and that 0 is
normalised like any other value. Everything is a Java float.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from engines.rules import (
    Columns,
    Refused,
    column,
    float32_sum,
    known_keys,
    n_rows,
    require,
    single,
    strict_json,
)

_SMALLEST = np.float32(1e-45)  # Float.MIN_VALUE, where the parser of min_max starts its minimum
_LARGEST = np.finfo(np.float32).max


@dataclass(frozen=True)
class Normalizer:
    """``(x - shift) / width`` in single precision."""

    shift: np.float32
    width: np.float32

    def __call__(self, values: np.ndarray) -> np.ndarray:
        return (values - self.shift) / self.width


@dataclass(frozen=True)
class LinearRanker:
    name: str
    features: tuple[str, ...]
    weights: np.ndarray
    normalizers: dict[str, Normalizer]

    def score(self, columns: Columns) -> np.ndarray:
        """Scores of documents; a feature that does not match stays at the 0 of its vector."""
        return float32_sum(self._terms(columns), n_rows(columns))

    def _terms(self, columns: Columns) -> Any:
        for name, weight in zip(self.features, self.weights, strict=True):
            values = np.nan_to_num(column(columns, name).astype(np.float32), nan=0.0)
            normalizer = self.normalizers.get(name)
            yield weight, values if normalizer is None else normalizer(values)


def create_model(body: bytes, feature_set: Sequence[str]) -> LinearRanker:
    """``POST _ltr/_featureset/<feature_set>/_createmodel``."""
    request = known_keys(strict_json(body), ("model", "validation"), "the request")
    outer = known_keys(request.get("model"), ("name", "model"), "model")
    name = outer.get("name")
    require(isinstance(name, str) and name, f"the name of the model is {name!r}")
    keys = ("type", "definition", "feature_normalizers")
    model = known_keys(outer.get("model"), keys, "model.model")
    require(model.get("type") == "model/linear", f"unknown type {model.get('type')!r}")
    require(len(set(feature_set)) == len(feature_set), "a feature set has each feature once")
    weights = _definition(model.get("definition"), feature_set)
    normalizers = model.get("feature_normalizers", {})
    require(isinstance(normalizers, dict), "feature_normalizers is no object")
    for feature in normalizers:
        require(feature in feature_set, f"Feature {feature} not found in feature set")
    made = {feature: _normalizer(entry) for feature, entry in normalizers.items()}
    return LinearRanker(name, tuple(feature_set), weights, made)


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


def _normalizer(entry: Any) -> Normalizer:
    kinds = known_keys(entry, ("standard", "min_max"), "a normalizer")
    require(len(kinds) == 1, f"one normalizer for a feature, got {sorted(kinds)}")
    ((kind, parameters),) = kinds.items()
    return _standard(parameters) if kind == "standard" else _min_max(parameters)


def _standard(parameters: Any) -> Normalizer:
    known_keys(parameters, ("mean", "standard_deviation"), "standard")
    deviation = single(parameters.get("standard_deviation", 0), "standard_deviation")
    require(deviation > 0, f"Standard Deviation Must Be Positive. You passed: {deviation}")
    return Normalizer(single(parameters.get("mean", 0), "mean"), deviation)


def _min_max(parameters: Any) -> Normalizer:
    """The setters run in the order of the keys, each compared with what the other is by then."""
    known_keys(parameters, ("minimum", "maximum"), "min_max")
    low, high = _SMALLEST, _LARGEST
    for key, value in parameters.items():
        if key == "minimum":
            low = single(value, key)
            if low >= high:
                raise Refused(f"Minimum {low} must be smaller than maximum")
        else:
            high = single(value, key)
            if high <= low:
                raise Refused(f"Maximum {high} must be larger than minimum")
    width = high - low
    require(np.isfinite(width) and width > 0, f"the range from {low} to {high} is {width}")
    return Normalizer(low, width)
