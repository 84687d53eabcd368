"""Official files where a user has them: which names they have, and how they are read.

Under the folder of the real data (``$LINRANK_DATA``, else ``../shared/data``):

========================  =====================================================================
``MQ2007/Fold1/``         LETOR 4.0: ``train.txt``, ``vali.txt``, ``test.txt``, folds 1 to 5
``MQ2007-list/Fold1/``    LETOR 4.0, listwise: the same names; also ``MQ2008-list``
``MSLR-WEB30K/Fold1/``    the same names; also ``MSLR-WEB10K``
``HP2003/Fold1/``         LETOR 3.0 (.gov, query-level norm), the files renamed alike
``Yahoo/set1.train.txt``  Yahoo LTRC: ``set1.valid.txt``, ``set1.test.txt``, and ``set2``
``RCV1/train.svm``        RCV1, labels +1 for the topic E311 and -1; ``RCV1/test.svm``; with all
                          topics of an article, after LIBSVM: ``RCV1/rcv1_topics_train.svm``
========================  =====================================================================

Each may be compressed (``.xz``, ``.gz``, ``.bz2``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

import problems
from linrank.data.dataset import Dataset
from linrank.data.rows import DenseRows
from linrank.io.load import load

PARTS = ("train", "vali", "test")
SUFFIXES = ("", ".xz", ".gz", ".bz2")


@dataclass(frozen=True, eq=False)
class Parts:
    """Three parts of a set; ``stand_in`` says in a few words what it stands in with, if it does."""

    name: str
    train: Dataset
    vali: Dataset
    test: Dataset
    stand_in: str = ""

    @property
    def label(self) -> str:
        return f"{self.name} → {self.stand_in}" if self.stand_in else self.name


def folds(name: str, fold: int = 1) -> dict[str, Dataset] | None:
    """The parts of a fold of LETOR or MSLR files, or None where they are not here."""
    return read({part: f"{name}/Fold{fold}/{part}.txt" for part in PARTS})


def yahoo(number: int) -> dict[str, Dataset] | None:
    """The parts of set 1 or 2 of Yahoo's challenge."""
    words = {"train": "train", "vali": "valid", "test": "test"}
    return read({part: f"Yahoo/set{number}.{word}.txt" for part, word in words.items()})


def read(names: Mapping[str, str]) -> dict[str, Dataset] | None:
    files = {part: path(name) for part, name in names.items()}
    if any(file is None for file in files.values()):
        return None
    return {part: load(file) for part, file in files.items() if file is not None}


def path(name: str) -> Path | None:
    """The file of that name, compressed or not, or None where it is not here."""
    candidates = [Path(f"{problems.DATA / name}{suffix}") for suffix in SUFFIXES]
    return next((file for file in candidates if file.exists()), None)


# ---- what is done to them ---------------------------------------------------


def split_off(data: Dataset, every: int = 4) -> tuple[Dataset, Dataset]:
    """Every fourth query as validation part of a set that comes without one: (train, vali)."""
    _, first, number = np.unique(data.qid, return_index=True, return_inverse=True)
    place = np.argsort(np.argsort(first))[number]  # of the query, in the order of the file
    is_vali = place % every == every - 1
    return data.select(~is_vali), data.select(is_vali)


def unit_range(parts: Mapping[str, Dataset]) -> dict[str, Dataset]:
    """Each feature mapped linearly to [0, 1] on the training part, as the paper does for MSLR."""
    dense = {part: _dense(data) for part, data in parts.items()}
    width = max(X.shape[1] for X in dense.values())
    dense = {part: np.pad(X, ((0, 0), (0, width - X.shape[1]))) for part, X in dense.items()}
    low, high = dense["train"].min(axis=0), dense["train"].max(axis=0)
    factor = np.divide(1.0, high - low, out=np.zeros_like(low), where=high > low)
    return {
        part: replace(data, rows=DenseRows((dense[part] - low) * factor))
        for part, data in parts.items()
    }


def _dense(data: Dataset) -> np.ndarray:
    X = data.X if isinstance(data.rows, DenseRows) else data.X.toarray()
    return np.asarray(X, dtype=np.float64)


def sizes(sets: Sequence[Parts]) -> list[str]:
    """A line for each stand-in: what it is and how large."""
    return [
        f"{one.name}: not to be had; stands in for it: {one.stand_in} ({one.train.n_rows:,} rows, "
        f"{one.train.n_features} features, {one.train.queries.n_queries:,} queries, "
        f"{one.train.queries.n_pairs:,} pairs in training)"
        for one in sets
        if one.stand_in
    ]
