"""Linear, additive and automatic rankers against boosted trees: ``rankers.py [--folder F]``.

Prints the tables of docs/guide/better-rankers.md. Needs LightGBM and XGBoost, and the data that
reproduce/README.md lists. What is measured is kept in the folder, so that a run that is stopped
goes on where it was.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.append(str(Path(__file__).resolve().parent.parent / "benchmarks"))

import problems
from linrank import AutoRanker, RankSVM, compare_evaluations, evaluate
from linrank.choices import PAPERS
from linrank.io.load import load as read_svmlight
from linrank.metrics import Evaluation
from linrank.system.tables import Column, Table

Array = NDArray[Any]
Rows = tuple[Any, Array, Array]  # X, y, qid, the rows of a query together
Fit = Callable[[Any, Array, Array], Any]

THREADS = 2
AUTO = "AutoRanker"


@dataclass(frozen=True)
class Set:
    """Rows, how they are cut into folds, and the metric.

    ``fold_rows``: there is one query, and its rows are cut.
    """

    name: str
    load: Callable[[], Rows]
    n_folds: int = 5
    metric: str = "ndcg@10"
    fold_rows: bool = False

    def folds(self) -> Iterator[Array]:
        """Which rows are tested, for each fold."""
        _, y, qid = rows_of(self)
        units = np.arange(len(y)) if self.fold_rows else qid
        ids = np.unique(units)
        np.random.default_rng(0).shuffle(ids)
        for k in range(self.n_folds):
            yield np.isin(units, ids[k :: self.n_folds])


@cache
def rows_of(chosen: Set) -> Rows:
    X, y, qid = chosen.load()
    order = np.argsort(qid, kind="stable")
    return X[order], y[order], qid[order]


# ---- data -------------------------------------------------------------------


def letor(*paths: str) -> Callable[[], Rows]:
    def load() -> Rows:
        data = read_svmlight(io.BytesIO(problems.text_of(*paths)))
        _, qid = np.unique(data.qid, return_inverse=True)
        X = data.X if isinstance(data.X, np.ndarray) else data.X.tocsr()
        return X, np.asarray(data.y, dtype=float), qid

    return load


def dense(load: Callable[[], Rows]) -> Callable[[], Rows]:
    def loaded() -> Rows:
        X, y, qid = load()
        return X if isinstance(X, np.ndarray) else X.toarray(), y, qid

    return loaded


def lightgbm_example() -> Rows:
    parts = []
    for part in ("train", "test"):
        text = problems.text_of(f"lightgbm_rank/rank.{part}.xz")
        sizes = np.array(problems.text_of(f"lightgbm_rank/rank.{part}.query.xz").split(), dtype=int)
        data = read_svmlight(io.BytesIO(text), n_features=301)
        X = data.X if isinstance(data.X, np.ndarray) else data.X.toarray()
        parts.append((X, np.asarray(data.y, dtype=float), sizes))
    X, y, sizes = (np.concatenate(column) for column in zip(*parts, strict=True))
    return X[:, X.any(axis=0)], y, np.repeat(np.arange(len(sizes)), sizes)


def one_query(name: str) -> Callable[[], Rows]:
    def load() -> Rows:
        data = read_svmlight(io.BytesIO(problems.text_of(f"regression/{name}.svm.xz")))
        X = data.X if isinstance(data.X, np.ndarray) else data.X.toarray()
        return X, np.asarray(data.y, dtype=float), np.zeros(len(X), dtype=int)

    return load


def some_queries(load: Callable[[], Rows], n: int) -> Callable[[], Rows]:
    """The rows of n queries, drawn."""

    def drawn() -> Rows:
        X, y, qid = load()
        is_kept = np.isin(qid, np.random.default_rng(0).permutation(np.unique(qid))[:n])
        return X[is_kept], y[is_kept], qid[is_kept]

    return drawn


def some_rows(load: Callable[[], Rows], n: int) -> Callable[[], Rows]:
    """n rows, drawn."""

    def drawn() -> Rows:
        X, y, qid = load()
        kept = np.sort(np.random.default_rng(0).permutation(len(y))[:n])
        return X[kept], y[kept], qid[kept]

    return drawn


SETS = (
    Set(
        "MSLR sample",
        dense(letor("mslr_sample/train.txt.xz", "mslr_sample/test.txt.xz")),
    ),
    Set("MQ2008", dense(letor(*(f"mq2008/S{k}.txt.xz" for k in range(1, 6))))),
    Set("OHSUMED", dense(letor(*(f"ohsumed_letor2/S{k}.txt.xz" for k in range(1, 6))))),
    Set("LightGBM's example", lightgbm_example),
)
HARDER = (
    Set("KDD04, 30 queries", some_queries(letor("bio_kdd04/train.txt.xz"), 30), 3),
    Set("housing", one_query("housing_scale"), 3, "pairwise_accuracy", True),
    Set("abalone", one_query("abalone_scale"), 3, "pairwise_accuracy", True),
    Set(
        "reviews, 1,500 rows",
        some_rows(letor("text_graded/womens_clothing_tfidf.txt.xz"), 1500),
        3,
    ),
    Set("MovieLens, 60 users", some_queries(letor("ml_latest_small/ratings_letor.txt.xz"), 60), 3),
)

# ---- methods ----------------------------------------------------------------


def linrank(weight: float | None = None, **options: Any) -> Fit:
    """RankSVM; ``weight`` is C times the weights of all pairs, where those sum to the queries."""

    def fit(X: Any, y: Array, qid: Array) -> Any:
        if weight is not None:
            options["C"] = weight / sum(len(np.unique(y[qid == q])) > 1 for q in np.unique(qid))
        return RankSVM(n_jobs=THREADS, random_state=0, **options).fit(X, y, qid=qid)

    return fit


def choose_C(X: Any, y: Array, qid: Array) -> Any:
    return AutoRanker("ndcg@10", random_state=0, n_jobs=THREADS).fit(X, y, qid=qid)


def sklearn_boosting(X: Any, y: Array, qid: Array) -> Any:
    """Trees on the labels, without queries: what scikit-learn has for ranking."""
    from sklearn.ensemble import HistGradientBoostingRegressor

    return HistGradientBoostingRegressor(random_state=0).fit(X, y)


def lightgbm(**options: Any) -> Fit:
    def fit(X: Any, y: Array, qid: Array) -> Any:
        from lightgbm import LGBMRanker

        sizes = np.unique(qid, return_counts=True)[1]
        ranker = LGBMRanker(n_jobs=THREADS, random_state=0, verbose=-1, **options)
        return ranker.fit(X, y.astype(int), group=sizes)

    return fit


def xgboost(**options: Any) -> Fit:
    def fit(X: Any, y: Array, qid: Array) -> Any:
        from xgboost import XGBRanker

        ranker = XGBRanker(objective="rank:ndcg", n_jobs=THREADS, random_state=0, **options)
        return ranker.fit(X, y, qid=qid)

    return fit


SCALED = {**PAPERS, "scale": "standard"}
EQUAL = {**SCALED, "query_normalization": "pairs"}
BY_NDCG = {**SCALED, "pair_weighting": "ndcg@20"}
SLOW = {"n_estimators": 300, "learning_rate": 0.02}
METHODS: dict[str, Fit] = {
    "C = 1, raw features": linrank(**PAPERS),
    "equal queries": linrank(10.0, **EQUAL),
    "RankSVM()": linrank(),
    "curves": linrank(curves="quantile"),
    "interactions": linrank(curves="quantile", interactions=300),
    "LightGBM": lightgbm(),
    "LightGBM, regularized": lightgbm(
        **SLOW,
        num_leaves=7,
        min_child_samples=100,
        feature_fraction=0.5,
        bagging_fraction=0.7,
        bagging_freq=1,
    ),
    "XGBoost": xgboost(),
    "XGBoost, regularized": xgboost(**SLOW, max_depth=3, colsample_bytree=0.5, subsample=0.7),
    AUTO: choose_C,
}
LINEAR: dict[str, Fit] = {
    "C = 1, raw features": linrank(**PAPERS),
    "C = 1, scaled": linrank(**SCALED),
    "equal queries": linrank(10.0, **EQUAL),
    "ndcg@20": linrank(3.0, **BY_NDCG),
    "RankSVM()": linrank(),
}

ON_LABELS: dict[str, Fit] = {"scikit-learn": sklearn_boosting}  # measured, not tested

# ---- measuring --------------------------------------------------------------


def measure(folder: Path, one: Set, methods: dict[str, Fit], name: str) -> dict[str, Any] | None:
    """The scores of all rows while tested, and seconds; None where the method does not apply."""
    parts = []
    for k, is_test in enumerate(one.folds()):
        file = folder / f"{one.name} {name} {k}.json".replace(" ", "-")
        if not file.exists():
            file.write_text(json.dumps(_fold(one, methods[name], is_test)))
        parts.append(json.loads(file.read_text()))
        print(one.name, name, k, parts[-1].get("seconds"), file=sys.stderr, flush=True)
        if "refused" in parts[-1]:
            return None
    _, y, qid = rows_of(one)
    whole = []
    for is_test, part in zip(one.folds(), parts, strict=True):
        whole.append(evaluate(y[is_test], part["scores"], qid=qid[is_test], metrics=one.metric))
    return {
        "folds": [float(part[one.metric]) for part in whole],
        "seconds": float(np.mean([part["seconds"] for part in parts])),
        "joined": Evaluation.joined(whole),
        "kinds": [part["kind"] for part in parts],
    }


def _fold(one: Set, fit: Fit, is_test: Array) -> dict[str, Any]:
    X, y, qid = rows_of(one)
    started, used = time.perf_counter(), time.process_time()
    try:
        ranker = fit(X[~is_test], y[~is_test], qid[~is_test])
    except ValueError as refused:
        return {"refused": str(refused)}
    times = {
        "seconds": time.perf_counter() - started,
        "processor": time.process_time() - used,
        "load": os.getloadavg()[0],
    }
    kind = getattr(ranker, "best_params_", {}).get("model")
    scores = np.asarray(ranker.predict(X[is_test]), dtype=float).tolist()
    return {**times, "kind": kind, "scores": scores}


def show(title: str, columns: list[str], rows: list[list[str]]) -> None:
    laid_out = [Column(c, "right" if k else "left") for k, c in enumerate(columns)]
    print(f"\n### {title}\n\n{Table(laid_out, rows).to_markdown()}", flush=True)


def print_means(sets: tuple[Set, ...], methods: dict[str, Fit], found: dict[Any, Any]) -> None:
    """Means over the folds, and seconds of a fit."""
    for title, cell in (
        ("Mean of the metric over the folds", lambda r: f"{np.mean(r['folds']):.4f}"),
        ("Seconds of a fit", lambda r: f"{r['seconds']:.2f}"),
    ):
        rows = [
            [name, *("—" if (r := found[one, name]) is None else cell(r) for one in sets)]
            for name in methods
        ]
        show(title, ["", *(one.name for one in sets)], rows)


def test(one: Set, found: dict[Any, Any]) -> None:
    """AutoRanker against each rival, by the queries of all folds."""
    joined = {name: found[one, name]["joined"] for name in [AUTO, *METHODS]}
    result = compare_evaluations(joined, baseline=AUTO, n_jobs=THREADS)
    rows = []
    for name in METHODS:
        if name != AUTO:
            cell = result.cells[name, one.metric]
            interval = f"{-cell.difference_high:+.4f} to {-cell.difference_low:+.4f}"
            by_query = f"{cell.losses}/{cell.ties}/{cell.wins}"
            rows.append(
                [name, f"{-cell.difference:+.4f}", interval, by_query, f"{cell.p_corrected:.4f}"]
            )
    columns = ["AutoRanker minus", "difference", "95% interval", "won/tied/lost", "p (Holm)"]
    show(f"{one.name}, {result.n_queries} queries: {found[one, AUTO]['kinds']}", columns, rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    kept = Path(tempfile.gettempdir()) / "linrank-rankers"
    parser.add_argument("--folder", type=Path, default=kept, help=f"what is measured; {kept}")
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore")  # of convergence, and of LightGBM about names of features
    found: dict[Any, Any] = {}
    for name in METHODS:
        if name == AUTO:
            found |= {(one, m): measure(folder, one, LINEAR, m) for one in HARDER for m in LINEAR}
            print_means(HARDER, LINEAR, found)
        for one in reversed(SETS):
            found[one, name] = measure(folder, one, METHODS, name)
    found |= {(one, m): measure(folder, one, ON_LABELS, m) for one in SETS for m in ON_LABELS}
    print_means(SETS, {**METHODS, **ON_LABELS}, found)
    for one in SETS:
        test(one, found)
    loads = [json.loads(f.read_text()).get("load", 0.0) for f in folder.glob("*.json")]
    print(f"\n{os.cpu_count()} cores, load average {min(loads):.1f} to {max(loads):.1f}")


if __name__ == "__main__":
    main()
