"""Solr's learning to rank: the feature store, LinearModel, and the two normalizers.

Rules: features need a name and a class; ``defaultValue`` of a feature (a number or a string)
stands in where it has no value, and is 0 otherwise. A model lists features of its store, each
once, perhaps with a norm, and has a weight for every one of them. The parameters of norms are
strings, as in all of Solr's examples: its reflection finds ``setAvg(float)`` for no other type.
Everything is a Java float; defaults are filled in before the norm is applied.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
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

_PACKAGE = "org.apache.solr.ltr."
_DEFAULT_STORE = "_DEFAULT_"


@dataclass
class Server:
    """The two stores of a collection; feature stores by name, then features with their default."""

    features: dict[str, dict[str, np.float32]] = field(default_factory=dict)
    models: dict[str, LinearModel] = field(default_factory=dict)

    def put_features(self, body: bytes | str) -> None:
        """``PUT schema/feature-store``."""
        updates = strict_json(body)
        for entry in updates if isinstance(updates, list) else [updates]:
            known_keys(entry, ("name", "class", "store", "params"), "a feature")
            name, kind = entry.get("name"), entry.get("class")
            require(isinstance(name, str) and name, f"the name of a feature is {name!r}")
            require(isinstance(kind, str) and "." in kind, f"the class of {name} is {kind!r}")
            store = self.features.setdefault(entry.get("store", _DEFAULT_STORE), {})
            require(name not in store, f"{name} already contained in the store")
            store[name] = _default(entry.get("params") or {}, name)

    def put_model(self, body: bytes | str) -> LinearModel:
        """``PUT schema/model-store``."""
        keys = ("class", "name", "store", "features", "params")
        entry = known_keys(strict_json(body), keys, "a model")
        kind, name = entry.get("class"), entry.get("name")
        require(kind == _PACKAGE + "model.LinearModel", f"unknown class {kind!r}")
        require(isinstance(name, str) and name, f"the name of the model is {name!r}")
        require(name not in self.models, f"model {name!r} already exists")
        store = self.features.get(entry.get("store", _DEFAULT_STORE), {})
        require(store, f"Missing or empty feature store: {entry.get('store')}")
        features = _listed(entry.get("features"), store)
        model = LinearModel(name, store, features, _weights(entry.get("params"), features))
        self.models[name] = model
        return model


@dataclass(frozen=True)
class LinearModel:
    name: str
    store: dict[str, np.float32]
    features: dict[str, Norm | None]
    weights: dict[str, np.float32]

    def score(self, columns: Columns) -> np.ndarray:
        return float32_sum(self._terms(columns), n_rows(columns))

    def _terms(self, columns: Columns) -> Iterator[tuple[np.float32, np.ndarray]]:
        for name, norm in self.features.items():
            values = column(columns, name).astype(np.float32)
            values = np.where(np.isnan(values), self.store[name], values)
            yield self.weights[name], values if norm is None else norm(values)


@dataclass(frozen=True)
class Norm:
    shift: np.float32
    width: np.float32

    def __call__(self, values: np.ndarray) -> np.ndarray:
        return (values - self.shift) / self.width


def _default(params: dict[str, Any], name: str) -> np.float32:
    value = params.get("defaultValue", 0)
    return _parse_float(value) if isinstance(value, str) else single(value, f"{name}.defaultValue")


def _listed(entries: Any, store: dict[str, np.float32]) -> dict[str, Norm | None]:
    require(isinstance(entries, list) and entries, "no features declared for the model")
    features: dict[str, Norm | None] = {}
    for entry in entries:
        known_keys(entry, ("name", "norm"), "a feature of the model")
        name = entry.get("name")
        require(name in store, f"Feature: {name} not found in store")
        require(name not in features, f"duplicated feature {name}")
        features[name] = _norm(entry["norm"]) if "norm" in entry else None
    return features


def _weights(params: Any, features: dict[str, Norm | None]) -> dict[str, np.float32]:
    weights = known_keys(params, ("weights",), "params").get("weights")
    require(isinstance(weights, dict) and weights, "the model doesn't contain any weights")
    lacking = [name for name in features if name not in weights]
    require(not lacking, f"the model lacks weight(s) for {lacking}")
    extra = [name for name in weights if name not in features]
    require(not extra, f"weights of features that are not listed are ignored: {extra}")
    return {name: single(weights[name], f"the weight of {name}") for name in features}


def _norm(entry: Any) -> Norm | None:
    known_keys(entry, ("class", "params"), "a norm")
    kind, params = entry.get("class"), entry.get("params", {})
    if kind == _PACKAGE + "norm.IdentityNormalizer":
        return None
    if kind == _PACKAGE + "norm.StandardNormalizer":
        known_keys(params, ("avg", "std"), kind)
        deviation = _parse_float(params.get("std", "1"))
        require(deviation > 0, f"Standard Normalizer standard deviation must be positive: {params}")
        return Norm(_parse_float(params.get("avg", "0")), deviation)
    require(kind == _PACKAGE + "norm.MinMaxNormalizer", f"unknown class {kind!r}")
    require(known_keys(params, ("min", "max"), kind).keys() >= {"min", "max"}, "an infinite range")
    low, high = _parse_float(params["min"]), _parse_float(params["max"])
    require(high - low != 0, f"MinMax Normalizer delta must not be zero: {params}")
    require(high - low > 0 and np.isfinite(high - low), f"a range that turns the order: {params}")
    return Norm(low, high - low)


def _parse_float(text: Any) -> np.float32:
    """Java's ``Float.parseFloat``; NaN and what is infinite would make scores that rank nothing."""
    require(isinstance(text, str), f"{text!r} is no string")
    try:
        value = float(text.strip().rstrip("fFdD"))
    except ValueError:
        require(False, f"NumberFormatException: {text!r}")
    return single(value, text)
