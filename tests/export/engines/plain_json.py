"""Weights as plain JSON: what the guide says of the format, and the sum that it defines.

Rules: ``format`` and ``version`` say what it is; ``features`` lists objects of ``name``,
``column``, ``weight`` and ``missing``; the score is the sum of ``weight`` times the value over the
features that the row has, and of ``missing`` over those that it lacks. Where ``missing`` is null
there is no score for a row that lacks the feature.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from engines.rules import Columns, column, known_keys, n_rows, require, strict_json

_KEYS = ("format", "version", "name", "linrank", "factor", "missing", "scaling", "features")


@dataclass(frozen=True)
class Weights:
    features: dict[str, tuple[int, float, float]]  # column, weight, missing

    def score(self, columns: Columns) -> np.ndarray:
        total = np.zeros(n_rows(columns))
        for name, (_, weight, missing) in self.features.items():
            values = column(columns, name).astype(np.float64)
            total += np.where(np.isnan(values), missing, weight * values)
        return total


def load(document: bytes) -> Weights:
    content = known_keys(strict_json(document), _KEYS, "the document")
    require(content.get("format") == "linrank-weights", "the format")
    require(content.get("version") == 1, "the version")
    require(content.get("factor", 0) > 0, "a factor that keeps the order")
    features: dict[str, tuple[int, float, float]] = {}
    for entry in content["features"]:
        known_keys(entry, ("name", "column", "weight", "missing"), "a feature")
        require(entry["name"] not in features, f"{entry['name']} comes twice")
        missing = np.nan if entry["missing"] is None else entry["missing"]
        numbers = (entry["weight"], missing)
        require(all(type(number) in (int, float) for number in numbers), "numbers")
        require(not np.isinf(numbers).any() and not np.isnan(numbers[0]), "finite numbers")
        features[entry["name"]] = (entry["column"], *numbers)
    return Weights(features)
