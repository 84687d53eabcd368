"""Artefacts put into the twins of their engines, and rows scored there.

A twin gets what its engine would get: the files of the artefact, and features by name (or by
number). Where the artefact says that features need default values, whoever defines the features
sets them, and so does the twin.
"""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Callable, Mapping

import engines
import numpy as np
import pytest

from linrank.errors import ExportWarning
from linrank.export.artefact import Artefact

Columns = Mapping[str, np.ndarray]
Scorer = Callable[[Artefact, Columns], np.ndarray]


def exported(model, target, **options) -> Artefact:
    """The artefact, whose warnings are no concern."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExportWarning)
        return model.export(target, **options)


def columns_of(model, rows: np.ndarray) -> dict[str, np.ndarray]:
    """The columns of rows under the names of the features, or the names that stand in for them."""
    names = model.feature_names or [f"f{j}" for j in range(model.n_features)]
    return dict(zip(names, rows.T, strict=True))


def scores_in(target: str, model, rows: np.ndarray, **options) -> np.ndarray:
    """The scores of rows that an engine computes of a model, in double precision."""
    scores = SCORERS[target](exported(model, target, **options), columns_of(model, rows))
    return np.asarray(scores).astype(np.float64)


def told_error(artefact: Artefact) -> float:
    """The largest error of a score of steps, as the warnings tell it."""
    found = [re.search(r"a score is at most (\S+) off", text) for text in artefact.warnings]
    return max((float(match[1]) for match in found if match), default=0.0)


def code_in(instructions: str) -> str:
    """The indented lines of a text: the code that it shows."""
    lines = (line for line in instructions.splitlines() if line.startswith("    ") or not line)
    return "\n".join(line[4:] for line in lines)


def in_plugin(artefact: Artefact, columns: Columns) -> np.ndarray:
    """Elasticsearch and OpenSearch: queries of features answer with the defaults where told to."""
    score = engines.plugin(artefact.content, ["unrelated", *reversed(columns)])
    defaults = json.loads(artefact.files.get("defaults.json", b"{}"))
    served = {
        name: np.where(np.isnan(values), np.float32(defaults.get(name, np.nan)), values)
        for name, values in columns.items()
    }
    return score({"unrelated": np.full_like(next(iter(served.values())), 9e9), **served})


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
    return engines.solr(json.dumps(list(features.values())), artefact.content)(columns)


def in_onnx(artefact: Artefact, columns: Columns) -> np.ndarray:
    """onnxruntime itself; the order of the inputs is a property of the file."""
    onnxruntime = pytest.importorskip("onnxruntime", reason="pip install onnx")
    session = onnxruntime.InferenceSession(artefact.content)
    names = json.loads(session.get_modelmeta().custom_metadata_map["feature_names"])
    (given,) = session.get_inputs()
    kind = {"tensor(float)": np.float32, "tensor(double)": np.float64}[given.type]
    rows = np.stack([columns[name] for name in names], axis=1).astype(kind)
    (scores,) = session.run(["score"], {"X": rows})
    assert (scores.shape, scores.dtype) == ((len(rows), 1), kind)
    return scores[:, 0]


def in_sql(artefact: Artefact, columns: Columns) -> np.ndarray:
    """DuckDB itself, over a table in which what is missing is NULL."""
    duckdb = pytest.importorskip("duckdb")
    pyarrow = pytest.importorskip("pyarrow", reason="pip install pyarrow")
    arrays = {
        name: pyarrow.array(np.asarray(values, np.float64), from_pandas=True)
        for name, values in columns.items()
    }
    with duckdb.connect() as database:
        database.register("documents", pyarrow.table(arrays))
        result = database.execute(f"SELECT {artefact.text} AS score FROM documents").fetchnumpy()
    return np.ma.filled(result["score"], np.nan)


SCORERS: dict[str, Scorer] = {
    "elasticsearch": in_plugin,
    "opensearch": in_plugin,
    "solr": in_solr,
    "vespa": lambda artefact, columns: engines.vespa(artefact.text)(columns),
    "ranklib": lambda artefact, columns: engines.ranklib(artefact.text)(columns),
    "liblinear": lambda artefact, columns: engines.liblinear(artefact.text)(columns),
    "onnx": in_onnx,
    "sql": in_sql,
    "json": lambda artefact, columns: engines.plain_json(artefact.content)(columns),
}
STEPS = ("elasticsearch", "opensearch", "solr")  # of curves; and missing values are defaults there
PRECISION = {target: "float32" if target in (*STEPS, "onnx") else "float64" for target in SCORERS}
# Engines that take 0 for a missing value, whatever the model says: the artefact has to warn.
FILLS_ZERO = ("ranklib", "liblinear")
