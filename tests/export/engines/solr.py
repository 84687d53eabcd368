"""Solr's learning to rank: the feature store and LinearModel, without normalizers.

Rules: features need a name and a class; ``defaultValue`` of a feature (a number or a string)
stands in where it has no value, and is 0 otherwise. A model lists features of its store, each
once, and has a weight for every one of them. Everything is a Java float.
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
    features: list[str]
    weights: dict[str, np.float32]

    def score(self, columns: Columns) -> np.ndarray:
        return float32_sum(self._terms(columns), n_rows(columns))

    def _terms(self, columns: Columns) -> Iterator[tuple[np.float32, np.ndarray]]:
        for name in self.features:
            values = column(columns, name).astype(np.float32)
            values = np.where(np.isnan(values), self.store[name], values)
            yield self.weights[name], values


def _default(params: dict[str, Any], name: str) -> np.float32:
    value = params.get("defaultValue", 0)
    return _parse_float(value) if isinstance(value, str) else single(value, f"{name}.defaultValue")


def _listed(entries: Any, store: dict[str, np.float32]) -> list[str]:
    require(isinstance(entries, list) and entries, "no features declared for the model")
    features: list[str] = []
    for entry in entries:
        name = known_keys(entry, ("name",), "a feature of the model").get("name")
        require(name in store, f"Feature: {name} not found in store")
        require(name not in features, f"duplicated feature {name}")
        features.append(name)
    return features


def _weights(params: Any, features: list[str]) -> dict[str, np.float32]:
    weights = known_keys(params, ("weights",), "params").get("weights")
    require(isinstance(weights, dict) and weights, "the model doesn't contain any weights")
    lacking = [name for name in features if name not in weights]
    require(not lacking, f"the model lacks weight(s) for {lacking}")
    extra = [name for name in weights if name not in features]
    require(not extra, f"weights of features that are not listed are ignored: {extra}")
    return {name: single(weights[name], f"the weight of {name}") for name in features}


def _parse_float(text: Any) -> np.float32:
    """Java's ``Float.parseFloat``; NaN and what is infinite would make scores that rank nothing."""
    require(isinstance(text, str), f"{text!r} is no string")
    try:
        value = float(text.strip().rstrip("fFdD"))
    except ValueError:
        require(False, f"NumberFormatException: {text!r}")
    return single(value, text)
