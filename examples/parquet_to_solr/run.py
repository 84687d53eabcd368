"""From judgments in Parquet to a model in Solr, including missing values.

    python examples/parquet_to_solr/run.py [FOLDER]

Needs pyarrow: pip install pyarrow. The table is generated: a query and document id, a grade,
text that no model can use, and features that are null where a document lacks the field.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import linrank

FEATURES = ("bm25_title", "bm25_body", "popularity", "age_days", "rating", "price")
TASTE = np.array([0.8, 0.6, 0.5, -0.002, 0.4, 0.0])


def write_judgments(path: Path, seed: int, n_queries: int = 150, n_rows: int = 12) -> None:
    """A table as in a data warehouse: ids are strings, ratings and prices may be unknown."""
    rng = np.random.default_rng(seed)
    n = n_queries * n_rows
    columns = dict(zip(FEATURES, rng.gamma(3.0, 1.0, size=(len(FEATURES), n)), strict=True))
    columns["age_days"] *= 100.0
    utility = np.column_stack([columns[name] for name in FEATURES]) @ TASTE
    grade = np.digitize(utility + rng.normal(size=n), np.quantile(utility, [0.5, 0.8, 0.95]))
    known = {name: rng.random(n) < 0.7 for name in ("rating", "price")}
    table = {
        "query_id": [f"q{seed}-{i // n_rows}" for i in range(n)],
        "doc_id": [f"d{i}" for i in range(n)],
        "title": [f"document {i}" for i in range(n)],
        "grade": grade,
    }
    for name, values in columns.items():
        mask = ~known[name] if name in known else None
        table[name] = pa.array(values.astype(np.float32), mask=mask)
    pq.write_table(pa.table(table), path)


def train(path: Path) -> linrank.RankSVMCV:
    """A ranker that replaces missing values by the means of the training data.

    The roles of the columns follow from their names; load(label=..., qid=..., features=...) sets
    them explicitly. Text is left out.
    """
    data = linrank.load(path, missing="mean")
    return linrank.RankSVMCV(scale="standard", scoring="ndcg@10").fit(data)


def solr_scores(folder: Path, table: pa.Table) -> np.ndarray:
    """What Solr computes with the two files: weights times features or their defaultValue."""
    model = json.loads((folder / "model.json").read_text())
    patch = json.loads((folder / "features.json").read_text())
    defaults = {feature["name"]: float(feature["params"]["defaultValue"]) for feature in patch}
    scores = np.zeros(len(table), dtype=np.float32)
    for feature in model["features"]:
        name = feature["name"]
        values = table[name].fill_null(defaults.get(name, 0.0)).to_numpy().astype(np.float32)
        scores += np.float32(model["params"]["weights"][name]) * values
    return scores


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", nargs="?", type=Path, default=Path("parquet-to-solr"))
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    for seed, name in enumerate(("train", "test")):
        write_judgments(folder / f"{name}.parquet", seed)

    ranker = train(folder / "train.parquet")
    written = ranker.export("solr", name="judgments").save(folder / "solr")

    features = ranker.feature_names_in_.tolist()
    test = linrank.load(folder / "test.parquet", features=features, missing="keep")
    scores = ranker.predict(test)
    metrics = ["ndcg@10", "pairwise_accuracy"]
    found = linrank.evaluate(test.y, scores, qid=test.qid, metrics=metrics)
    print("features:", ", ".join(features))
    print("test:    ", ", ".join(f"{name} {found[name]:.4f}" for name in metrics))
    in_solr = solr_scores(folder / "solr", pq.read_table(folder / "test.parquet"))
    found = linrank.evaluate(test.y, in_solr, qid=test.qid, metrics=metrics)
    print("in Solr: ", ", ".join(f"{name} {found[name]:.4f}" for name in metrics))
    print("\n".join(f"wrote {path}" for path in written))


if __name__ == "__main__":
    main()
