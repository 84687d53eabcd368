"""Test AUC of linear models on real binary sets: RankSVM against scikit-learn, tuned alike.

A third of the rows (in KDD04 a third of the queries, then joined into one)
trains, a third chooses among 13 values of C by AUC, a third tests; three splits. Scikit-learn's C
multiplies a sum over rows, so RankSVM gets n times it on the mean over the pairs.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

import problems
from linrank import RankSVM, evaluate
from linrank.io.load import load as read_svmlight
from report import Table, main

EQUAL = {"scale": "none", "pair_weighting": "uniform", "query_normalization": "pairs"}

GRID = 2.0 ** np.arange(-12, 13, 2)
SPLITS = (1, 2, 3)  # seeds
MODELS: dict[str, Callable[[float, int], Any]] = {
    "RankSVM, squared hinge": lambda C, n: RankSVM(**EQUAL, C=C * n),
    "RankSVM, hinge": lambda C, n: RankSVM(**EQUAL, C=C * n, loss="hinge"),
    "LogisticRegression": lambda C, n: LogisticRegression(C=C, max_iter=1000),
    "LogisticRegression, balanced": lambda C, n: LogisticRegression(
        C=C, max_iter=1000, class_weight="balanced"
    ),
    "LinearSVC": lambda C, n: LinearSVC(C=C),
    "LinearSVC, balanced": lambda C, n: LinearSVC(C=C, class_weight="balanced"),
}


def measure(quick: bool) -> list[Table]:
    table = Table(
        "Test AUC, C chosen by validation AUC; mean and values of the splits",
        ["set", "model", "mean", "splits", "chosen C", "CPU seconds of all fits"],
        notes=[f"C: {GRID[0]:g} to {GRID[-1]:g} in factors of 4, mean loss times n"],
    )
    for name in ("reuters_acq",) if quick else ("reuters_acq", "rcv1_small", "bio"):
        try:
            X, y, group = read(name)
        except problems.Absent as absent:
            table.notes.append(f"{name} skipped: {absent}")
            continue
        for title, make in MODELS.items():
            start = time.process_time()
            seeds = SPLITS[:1] if quick else SPLITS
            found = [tune_C(make, X, y, split(group, seed)) for seed in seeds]
            taken = time.process_time() - start
            test, chosen = zip(*found, strict=True)
            values = " ".join(f"{value:.4f}" for value in test)
            chosen_C = " ".join(f"{C:g}" for C in chosen)
            table.add(name, title, f"{np.mean(test):.4f}", values, chosen_C, taken)
    return [table]


def read(name: str) -> tuple[Any, np.ndarray, np.ndarray]:
    """Features, labels 0 and 1, and the group that a split keeps together."""
    if name == "bio":
        data = read_svmlight(_file("bio_kdd04/train.txt.xz"))
        X = np.asarray(data.X, dtype=np.float64)
        return (X - X.mean(axis=0)) / X.std(axis=0), data.y, np.asarray(data.qid)
    parts = [
        read_svmlight(_file(f"text_binary/{name}_{part}.svm.xz")) for part in ("train", "test")
    ]
    rows = [sp.csr_matrix(part.X) for part in parts]
    width = max(row.shape[1] for row in rows)
    for row in rows:
        row.resize(row.shape[0], width)
    y = np.concatenate([part.y for part in parts]) > 0
    return sp.vstack(rows).tocsr(), y.astype(np.float64), np.arange(len(y))


def _file(path: str) -> Any:
    file = problems.DATA / path
    if not file.exists():
        raise problems.Absent(f"{file} not found; set LINRANK_DATA to the folder of the real data")
    return file


def split(group: np.ndarray, seed: int) -> np.ndarray:
    """0 (train), 1 (validate) or 2 (test) for each row."""
    ids, code = np.unique(group, return_inverse=True)
    place = np.argsort(np.random.default_rng(seed).permutation(len(ids)))
    return np.asarray((3 * place // len(ids))[code])


def tune_C(
    make: Callable[[float, int], Any], X: Any, y: np.ndarray, part: np.ndarray
) -> tuple[float, float]:
    """Test AUC of the C with the best AUC on the validation rows, and that C."""
    best, test, chosen = -1.0, 0.0, 0.0
    train_rows = np.flatnonzero(part == 0)
    for C in GRID:
        model = make(C, len(train_rows))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of convergence, at the largest C
            model.fit(X[train_rows], y[train_rows])
        score = model.predict if isinstance(model, RankSVM) else model.decision_function
        auc = [evaluate(y[part == k], score(X[part == k]), metrics=["auc"])["auc"] for k in (1, 2)]
        if auc[0] > best:
            best, test, chosen = auc[0], auc[1], float(C)
    return test, chosen


if __name__ == "__main__":
    main(measure, __doc__)
