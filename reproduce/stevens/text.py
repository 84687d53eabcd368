"""Figures 6, 7, 10 and 16: one measurement of precision against sparsity on real text."""

from __future__ import annotations

import bz2
import gzip
import lzma
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import IO, Any

import numpy as np
from sklearn.datasets import load_svmlight_file

import domination
import problems
from linrank.data.dataset import Dataset
from reproduce import official
from reproduce.page import Measurement
from reproduce.stevens import sparsity
from reproduce.stevens.tasks import TASKS, Task

OFFICIAL = "RCV1/rcv1_topics_train.svm"  # as LIBSVM has it: several labels per row
RCV1 = "RCV1"
INDUCTION, SEQUENTIAL, PAMIR = "domination, induction", "domination, l2", "PAMIR"
FEWEST = 30  # rows of a topic
OPENERS: dict[str, Callable[[Path, str], Any]] = {
    ".xz": lzma.open,
    ".gz": gzip.open,
    ".bz2": bz2.open,
}

PROTOCOL = [
    "Corel, Google's images and the text of RCV1 cannot be had. Stand-ins: reviews of garments, "
    "tf-idf of words and pairs of words, searched for complaints (one model) and for the class of "
    "garment (a model for each), and Reuters articles on acquisitions (SVM-light's example). "
    f"Where `{OFFICIAL}` of LIBSVM's collection is in the folder of the data, Figures 16 and 18 "
    "take it",
    "parameters by average precision on the validation part, the mean over the models of a task, "
    "as in the thesis; grids were widened after trials in which validation chose at their ends",
    "induction: 20 features a round with an l2 penalty, all negatives; the thesis sampled a tenth "
    "of them. Sequential: every feature, l2. PAMIR: 10^6 steps; the thesis ran 10^6 to 10^9",
    "Figures 10 and 16 are one measurement, made with the first of them that is run",
]


@cache
def found(quick: bool) -> Measurement:
    return Measurement(sparsity.measure(quick))


@cache
def found_topics(quick: bool) -> Measurement:
    """The same with the topics of RCV1 where they are here."""
    if official.path(OFFICIAL) is None:
        return found(quick)
    return Measurement(sparsity.measure(quick, tasks=(topics, *TASKS)))


def topics(quick: bool) -> Task:
    """A model for each topic of RCV1 with enough articles."""
    path = official.path(OFFICIAL)
    if path is None:
        raise problems.Absent(f"{problems.DATA / OFFICIAL} not found")
    with _open(path) as file:
        X, labels = load_svmlight_file(file, multilabel=True, dtype=np.float64)
    names, counts = np.unique(
        np.concatenate([np.asarray(one) for one in labels]), return_counts=True
    )
    part = domination.part_of(Dataset.of(X, np.zeros(X.shape[0])))
    rows = [X[part == k] for k in range(3)]
    models = []
    for name in names[counts >= FEWEST][: 2 if quick else None]:
        y = np.array([float(name in one) for one in labels])
        made = [Dataset.of(rows[k], y[part == k]) for k in range(3)]
        models.append((made[0], made[1], made[2]))
    about = f"one model for each of {len(models)} topics among {X.shape[0]:,} articles of RCV1"
    return Task(RCV1, about, models)


def _open(path: Path) -> IO[bytes]:
    opener = OPENERS.get(path.suffix)
    opened: IO[bytes] = path.open("rb") if opener is None else opener(path, "rb")
    return opened


def values(one: Measurement, task: str) -> dict[str, dict[str, float]]:
    """AP, P@10, errors and share of the weights by method."""
    return {row["method"]: _numbers(row) for row in one.rows(f"{task}: test measures")}


def names_of(one: Measurement) -> list[str]:
    """The tasks that were measured."""
    split = (table.title.split(": test measures") for table in one.tables)
    return [parts[0] for parts in split if len(parts) > 1]


def _numbers(row: Mapping[str, Any]) -> dict[str, float]:
    names = ("AP", "P@10", "domination error", "all-pairs error")
    found = {name: float(row[name]) for name in names}
    return {**found, "weight density": float(row["share"].rstrip("%")) / 100}
