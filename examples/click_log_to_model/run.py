"""From a click log with queries and URLs to a model: with the library and with one command.

A shop has two tables: what its search engine showed (one line per result: session, query, url,
position, clicked) and the features of each product for each query. Both are generated here, with
text queries, URLs and records of products that have left the catalog.

    python examples/click_log_to_model/run.py [FOLDER]
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import parquet

import linrank
from linrank import RankSVM, clicks, evaluate
from linrank.cli.main import main as linrank_command

Array = NDArray[Any]

WORDS = (
    *("red", "blue", "wool", "linen", "warm", "light", "summer", "winter", "kids", "vintage"),
    *("shoes", "jacket", "scarf", "dress", "shirt", "boots", "hat", "gloves", "coat", "socks"),
)
FEATURES = ("bm25_title", "bm25_body", "query_idf", "freshness", "popularity", "price")
TASTE = np.array([1.0, 0.6, 0.0, 0.5, 0.1, -0.4])  # what buyers prefer; query_idf orders nothing
PRODUCTION = np.array([0.4, 0.2, 0.0, 0.0, 1.0, 0.0])  # weights of the ranker that made the log
ATTRACTIVENESS = np.array([0.05, 0.25, 0.55, 0.85])  # chance of a click when seen, by grade
SEEN = clicks.power_law(10)  # chance that a position is seen: the truth, which the log hides


def make_catalog(seed: int, n_queries: int, n_products: int = 14) -> tuple[pa.Table, Array]:
    """A row for each query and product; and the true grades."""
    rng = np.random.default_rng(seed)
    chosen = rng.choice(len(WORDS) ** 2, n_queries, replace=False)
    queries = [f"{WORDS[k // len(WORDS)]} {WORDS[k % len(WORDS)]} {k}" for k in chosen]
    X = rng.gamma(4.0, 0.5, (n_queries * n_products, len(FEATURES)))
    X[:, 4] = rng.lognormal(size=len(X))  # a long tail
    X[:, 2] = np.repeat(rng.gamma(2.0, 2.0, n_queries), n_products)  # the same within a query
    utility = (X - X.mean(axis=0)) @ TASTE + 0.6 * rng.normal(size=len(X))
    query = [text for text in queries for _ in range(n_products)]
    url = [f"https://shop.example/p/{text.replace(' ', '-')}/{i}" for i, text in enumerate(query)]
    columns = {"query": query, "url": url, **dict(zip(FEATURES, X.T, strict=True))}
    return pa.table(columns), np.digitize(utility, [0.3, 1.3, 2.3])


def click_log(rows: pa.Table, grade: Array, seed: int, n_lists: int) -> pa.Table:
    """What was shown and clicked, by name; a twentieth are products that no longer exist."""
    X = features_of(rows)
    _, query = np.unique(rows["query"].to_numpy(), return_inverse=True)
    shown = clicks.simulate_clicks(
        ATTRACTIVENESS[grade], query, X @ PRODUCTION, SEEN,
        n_lists=n_lists, noise=0.4, random_state=seed,
    )  # fmt: skip
    row, offsets = shown.rows_needed("log"), shown.offsets
    assert offsets is not None
    visit = np.repeat(np.arange(n_lists), np.diff(offsets))
    gone = np.random.default_rng(seed).random(len(row)) < 0.05
    url = np.where(gone, "https://shop.example/p/gone", rows["url"].to_numpy()[row])
    return pa.table(
        {
            "session_id": [f"{k:08x}" for k in visit.tolist()],
            "query": rows["query"].to_numpy()[row],
            "url": url,
            "position": shown.position,
            "clicked": shown.clicked,
        }
    )


def features_of(rows: pa.Table) -> Array:
    return np.column_stack([rows[name].to_numpy() for name in FEATURES])


def ndcg(model: Any, rows: pa.Table, grade: Array) -> float:
    scores = model if isinstance(model, np.ndarray) else model.predict(features_of(rows))
    found = evaluate(grade, scores, qid=rows["query"].to_numpy(), metrics=["ndcg@10"])
    return float(found["ndcg@10"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", nargs="?", type=Path, default=Path("click-log-to-model"))
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    rows, grade = make_catalog(seed=1, n_queries=200)
    unseen, true_grade = make_catalog(seed=2, n_queries=200)
    log = click_log(rows, grade, seed=3, n_lists=20_000)
    parquet.write_table(log, folder / "log.parquet")
    parquet.write_table(rows, folder / "features.parquet")

    # In Python: load the features, join the log by query and URL, then fit the preferences.
    data = linrank.load(rows, label=False, qid="query", docid="url")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        shown = clicks.Impressions.from_frame(log, data)
    print("warning:", caught[0].message)
    propensity = clicks.harvest(shown)
    print("propensities, true     ", *(f"{p:.2f}" for p in SEEN))
    print("propensities, estimated", *(f"{p:.2f}" for p in propensity))
    weighted = clicks.click_preferences(shown, propensity=propensity, max_weight=20)
    rankers = {
        "clicks as they are": clicks.click_preferences(shown),
        "clicks by inverse propensities": weighted,
    }
    print(f"ndcg@10 production: {ndcg(features_of(unseen) @ PRODUCTION, unseen, true_grade):.4f}")
    for name, preferences in rankers.items():
        ranker = RankSVM(C="auto", scale="standard").fit_pairs(data, preferences)
        print(f"ndcg@10 {name}: {ndcg(ranker.model_, unseen, true_grade):.4f}")
    print("weight of query_idf, the same within each query:", ranker.coef_[2])

    # The same from the command line.
    command = [
        "clicks", str(folder / "log.parquet"), "--features", str(folder / "features.parquet"),
        "--qid", "query", "--docid", "url", "-o", str(folder / "model.json"), "-q",
        "--write-propensities", str(folder / "propensities.txt"),
    ]  # fmt: skip
    print("linrank", *command)
    assert linrank_command(command) == 0
    model = linrank.load_model(folder / "model.json")
    print(f"ndcg@10 of the command: {ndcg(model, unseen, true_grade):.4f}")


if __name__ == "__main__":
    main()
