"""What `RankSVM()` ranks without tuning, on every real set: ``defaults.py [--folder F]``.

Prints the table of docs/guide/training.md: the papers' settings, those that the data decide, a C
that folds of the training part choose, and LightGBM with its own defaults. Needs LightGBM,
scikit-learn, and the data that reproduce/README.md lists; goes on where it was stopped.
"""

from __future__ import annotations

import argparse
import io
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import rankers  # its path has that of `problems`
from rankers import Array, Fit, Rows, Set, letor, one_query, some_queries, some_rows

from linrank import KernelRankSVM, RankSVM, RankSVMCV
from linrank.choices import PAPERS
from linrank.io.load import load as read_svmlight

problems = rankers.problems
PAIRS = "pairwise_accuracy"


def one_sparse_query(path: str) -> Any:
    def load() -> Rows:
        data = read_svmlight(io.BytesIO(problems.text_of(path)))
        X: Any = data.X
        return X.tocsr(), np.asarray(data.y, dtype=float), np.zeros(X.shape[0], dtype=int)

    return load


def tweets() -> Rows:
    from sklearn.feature_extraction.text import TfidfVectorizer

    text = problems.text_of("text_graded/vader_tweets.tsv.xz").decode()
    lines = [line.split("\t") for line in text.splitlines()]
    X = TfidfVectorizer(sublinear_tf=True, min_df=2).fit_transform([line[2] for line in lines])
    return X, np.array([float(line[1]) for line in lines]), np.zeros(len(lines), dtype=int)


def values(name: str, n_rows: int | None = None) -> Set:
    load = one_query(name)
    title = name.removesuffix("_scale") + ("" if n_rows is None else f", {n_rows:,} rows")
    return Set(title, load if n_rows is None else some_rows(load, n_rows), 3, PAIRS, True)


FLIGHTS = one_sparse_query("regression/nycflights13_arr_delay.svm.xz")
MOVIES = letor("ml_latest_small/ratings_letor.txt.xz")
REVIEWS = letor("text_graded/womens_clothing_tfidf.txt.xz")
SETS = (
    *rankers.SETS,
    Set("KDD04", letor("bio_kdd04/train.txt.xz"), 3),
    Set("MovieLens, 200 users", some_queries(MOVIES, 200), 3),
    Set("reviews, tf-idf, 6,000 rows", some_rows(REVIEWS, 6000), 3),
    Set("tweets, tf-idf", tweets, 3, PAIRS, True),
    Set("Reuters", one_sparse_query("text_binary/reuters_acq_train.svm.xz"), 3, PAIRS, True),
    Set("RCV1", one_sparse_query("text_binary/rcv1_small_train.svm.xz"), 3, PAIRS, True),
    *map(values, ("housing_scale", "abalone_scale", "bodyfat_scale", "mpg_scale", "mg_scale")),
    *map(values, ("pyrim_scale", "triazines_scale", "space_ga_scale")),
    *(values(name, 4000) for name in ("cpusmall_scale", "cadata", "diamonds")),
    Set("flights, 4,000 rows", some_rows(FLIGHTS, 4000), 3, PAIRS, True),
)


def tune(X: Any, y: Array, qid: Array) -> Any:
    is_one = len(np.unique(qid)) == 1
    ranker = RankSVMCV(scoring=PAIRS if is_one else "ndcg@10", n_jobs=rankers.THREADS)
    return ranker.fit(X, y, qid=None if is_one else qid)


def lightgbm(X: Any, y: Array, qid: Array) -> Any:
    from lightgbm import LGBMRegressor

    if len(np.unique(qid)) > 1:
        return rankers.lightgbm()(X, y, qid)
    return LGBMRegressor(n_jobs=rankers.THREADS, random_state=0, verbose=-1).fit(X, y)


def kernel(**options: Any) -> Fit:
    def fit(X: Any, y: Array, qid: Array) -> Any:
        ranker = KernelRankSVM(approximation="nystroem", random_state=0, n_jobs=1, **options)
        return ranker.fit(X, y, qid=qid)

    return fit


def plain(**options: Any) -> Fit:
    def fit(X: Any, y: Array, qid: Array) -> Any:
        return RankSVM(n_jobs=rankers.THREADS, **options).fit(X, y, qid=qid)

    return fit


METHODS: dict[str, Fit] = {
    "the papers' settings": plain(**PAPERS),
    "RankSVM()": plain(),
    "RankSVMCV()": tune,
    "LightGBM": lightgbm,
}
KERNELS: dict[str, Fit] = {
    "kernel, the papers' settings": kernel(**PAPERS),
    "KernelRankSVM()": kernel(),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    kept = Path(tempfile.gettempdir()) / "linrank-defaults"
    parser.add_argument("--folder", type=Path, default=kept, help=f"what is measured; {kept}")
    parser.add_argument("--kernels", action="store_true", help="KernelRankSVM in place of RankSVM")
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore")  # of convergence, and of grids that end too early
    methods = KERNELS if args.kernels else METHODS
    rows, shares = [], []
    for one in SETS:
        found = [rankers.measure(args.folder, one, methods, name) for name in methods]
        means = [None if each is None else float(np.mean(each["folds"])) for each in found]
        rows.append([one.name, *("—" if mean is None else f"{mean:.4f}" for mean in means)])
        shares.append([mean / means[2] for mean in means[:2]] if len(means) > 2 else [])
    rankers.show(
        "NDCG@10, or pairwise accuracy of single queries; mean over folds", ["", *methods], rows
    )
    if not args.kernels:
        before, after = np.mean(shares, axis=0)
        print(f"\nof RankSVMCV(): the papers' settings {before:.4f}, RankSVM() {after:.4f}")


if __name__ == "__main__":
    main()
