"""Artefacts put into the twins of their engines, and rows scored there.

A twin gets what its engine would get: the files of the artefact, and features by name (or by
number). Where the artefact says that features need default values, whoever defines the features
sets them, and so does the twin.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

import numpy as np
import pytest
from engines import (
    learning_to_rank_plugin,
    liblinear,
    plain_json,
    ranklib,
    solr,
    vespa,
)

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
        name: np.where(np.isnan(values), np.float32(defaults.get(name, np.nan)), values)
        for name, values in columns.items()
    }
    return ranker.score({"unrelated": np.full_like(next(iter(served.values())), 9e9), **served})


def in_solr(artefact: Artefact, columns: Columns) -> np.ndarray:
    """The features as their owner has them, with the patch of the artefact applied."""
    store = json.loads(artefact.content).get("store", "_DEFAULT_")
    kind = "org.apache.solr.ltr.feature.FieldValueFeature"
    features = {
        name: {"store": store, "name": name, "class": kind, "params": {"field": "x"}}
        for name in ["unrelated", *reversed(columns)]
    }
    for patch in json.loads(artefact.files.get("features.json", b"[]")):
        assert patch["store"] == store
        features[patch["name"]]["params"] |= patch["params"]
    server = solr.Server()
    server.put_features(json.dumps(list(features.values())))
    return server.put_model(artefact.content).score(columns)


def in_vespa(artefact: Artefact, columns: Columns) -> np.ndarray:
    return vespa.parse_rank_profile(artefact.text).score(columns)


def in_ranklib(artefact: Artefact, columns: Columns) -> np.ndarray:
    return ranklib.load(artefact.text).score(np.stack(list(columns.values()), axis=1))


def in_liblinear(artefact: Artefact, columns: Columns) -> np.ndarray:
    return liblinear.load(artefact.text).score(np.stack(list(columns.values()), axis=1))


def in_json(artefact: Artefact, columns: Columns) -> np.ndarray:
    return plain_json.load(artefact.content).score(columns)


def in_onnx(artefact: Artefact, columns: Columns) -> np.ndarray:
    """onnxruntime itself; the order of the inputs is a property of the file."""
    onnxruntime = pytest.importorskip("onnxruntime", reason="pip install onnx")
    session = onnxruntime.InferenceSession(artefact.content)
    names = json.loads(session.get_modelmeta().custom_metadata_map["feature_names"])
    (given,) = session.get_inputs()
    kind = {"tensor(float)": np.float32, "tensor(double)": np.float64}[given.type]
    rows = np.stack([columns[name] for name in names], axis=1).astype(kind)
    return session.run(["score"], {"X": rows})[0][:, 0]


def in_sql(artefact: Artefact, columns: Columns) -> np.ndarray:
    """DuckDB itself, over a table in which what is missing is NULL."""
    duckdb = pytest.importorskip("duckdb")
    pyarrow = pytest.importorskip("pyarrow", reason="pip install pyarrow")
    table = pyarrow.table(
        {
            name: pyarrow.array(np.asarray(values, np.float64), from_pandas=True)
            for name, values in columns.items()
        }
    )
    with duckdb.connect() as database:
        database.register("documents", table)
        result = database.execute(f"SELECT {artefact.text} AS score FROM documents").fetchnumpy()
    return np.ma.filled(result["score"], np.nan)


SCORERS: dict[str, Scorer] = {
    "elasticsearch": plugin,
    "opensearch": plugin,
    "solr": in_solr,
    "vespa": in_vespa,
    "ranklib": in_ranklib,
    "liblinear": in_liblinear,
    "onnx": in_onnx,
    "sql": in_sql,
    "json": in_json,
}
PRECISION = {
    **dict.fromkeys(SCORERS, "float64"),
    **dict.fromkeys(("elasticsearch", "opensearch", "solr", "onnx"), "float32"),
}
# Engines that take 0 for a missing value, whatever the model says: the artefact has to warn.
FILLS_ZERO = ("ranklib", "liblinear")
