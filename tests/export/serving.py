"""Artefacts put into the twins of their engines, and rows scored there.

A twin gets what its engine would get: the files of the artefact, and features by name (or by
number). Where the artefact says that features need default values, whoever defines the features
sets them, and so does the twin.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

import numpy as np
from engines import learning_to_rank_plugin

from linrank import LinearModel
from linrank.export.artefact import Artefact

Columns = Mapping[str, np.ndarray]
Scorer = Callable[[Artefact, Columns], np.ndarray]


def columns_of(model: LinearModel, rows: np.ndarray) -> dict[str, np.ndarray]:
    """The columns of rows under the names of the features, or the names that stand in for them."""
    names = model.feature_names or [f"f{j}" for j in range(model.n_features)]
    return dict(zip(names, rows.T, strict=True))


def plugin(artefact: Artefact, columns: Columns) -> np.ndarray:
    """Elasticsearch and OpenSearch: queries of features answer with the defaults where told to."""
    feature_set = ["unrelated", *reversed(columns)]
    ranker = learning_to_rank_plugin.create_model(artefact.content, feature_set)
    defaults = json.loads(artefact.files.get("defaults.json", b"{}"))
    served = {
        name: np.where(np.isnan(values), defaults.get(name, np.nan), values)
        for name, values in columns.items()
    }
    return ranker.score({"unrelated": np.full_like(next(iter(served.values())), 9e9), **served})


SCORERS: dict[str, Scorer] = {"elasticsearch": plugin, "opensearch": plugin}
PRECISION = {"elasticsearch": "float32", "opensearch": "float32"}
