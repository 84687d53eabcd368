"""Retrieval tasks on real text, relevant or not: what the sparsity of a model is measured on."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import domination
import problems
from linrank.data.dataset import Dataset
from linrank.io.load import load as read_svmlight

Array = NDArray[Any]
Parts = tuple[Dataset, Dataset, Dataset]  # train, validate, test

COMPLAINT = 2.0  # stars up to which a review is one
FEWEST = 500  # reviews of a class that is a topic


@dataclass(frozen=True)
class Task:
    """What is looked for, and the parts of each of its models."""

    name: str
    about: str
    models: list[Parts]

    @property
    def n_features(self) -> int:
        return self.models[0][0].n_features


def complaints(quick: bool) -> Task:
    """One model: reviews of one or two stars, among those of the same class of garment."""
    data = _reviews(quick)
    labels = (data.labels <= COMPLAINT).astype(np.float64)
    part = domination.part_of(data)
    parts = [
        Dataset.of(data.X[part == k], labels[part == k], qid=data.qid[part == k]) for k in range(3)
    ]
    about = (
        f"clothing reviews of at most {COMPLAINT:g} stars ({labels.mean():.1%}), query = class of "
        "garment; rows by hash: half train, a quarter each validates and tests"
    )
    return Task("complaints", about, [(parts[0], parts[1], parts[2])])


def classes(quick: bool, fewest: int = FEWEST) -> Task:
    """A model for each class of garment: its reviews, among all, by their words alone."""
    data = _reviews(quick)
    part = domination.part_of(data)
    ids, counts = np.unique(data.qid, return_counts=True)
    topics = ids[counts >= (fewest // 10 if quick else fewest)]
    rows = [data.X[part == k] for k in range(3)]
    models = []
    for topic in topics[:2] if quick else topics:
        labels = (data.qid == topic).astype(np.float64)
        made = [Dataset.of(rows[k], labels[part == k]) for k in range(3)]
        models.append((made[0], made[1], made[2]))
    about = (
        f"one model for each of {len(models)} classes of garment: its reviews among all "
        f"{data.n_rows:,}; rows by hash: half train, a quarter each validates and tests"
    )
    return Task("classes", about, models)


def acquisitions(_: bool) -> Task:
    """One model: Reuters articles on acquisitions; the test part as published."""
    files = [f"text_binary/reuters_acq_{part}.svm.xz" for part in ("train", "test")]
    n_train = problems._read(files[0]).n_rows
    data = read_svmlight(io.BytesIO(problems.text_of(*files)))
    part = domination.part_of(data, (2 / 3, 1 / 3))
    part[n_train:] = 2
    labels = (data.labels > 0).astype(np.float64)
    parts = [Dataset.of(data.X[part == k], labels[part == k]) for k in range(3)]
    about = "Reuters articles on acquisitions, one query; a third of the training part validates"
    return Task("acquisitions", about, [(parts[0], parts[1], parts[2])])


def _reviews(quick: bool) -> Dataset:
    data = domination.load("clothing")
    return domination.thin_rows(data, 3_000) if quick else data


TASKS: tuple[Callable[[bool], Task], ...] = (complaints, acquisitions, classes)
