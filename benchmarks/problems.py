"""The problem sets of the benchmarks, by name.

``load(name)`` gives the training data, `train_and_test` data to measure models on as well, `mq2008`
the parts of a fold of MQ2008. Real sets are looked
for in ``../shared/data`` next to the repository, or where the environment variable LINRANK_DATA
says; `Absent` is raised where there are none.
"""

from __future__ import annotations

import io
import lzma
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from linrank.data.dataset import Dataset
from linrank.data.rows import CsrRows, DenseRows
from linrank.io.load import load as read_svmlight
from shapes import GENERATED, generate, query_normalized

ROOT = Path(__file__).resolve().parent.parent
DATA = Path(os.environ.get("LINRANK_DATA", ROOT.parent / "shared" / "data"))


class Absent(Exception):
    """The real data asked for are not on this machine."""


def load(name: str, fraction: float = 1.0) -> Dataset:
    """The set of that name, or a fraction of it where it is a generated one."""
    if name in GENERATED:
        return generate(name, fraction)
    if name in REAL:
        return REAL[name]()
    raise ValueError(f"unknown problem {name!r}; expected one of {', '.join([*GENERATED, *REAL])}")


def text_of(*paths: str) -> bytes:
    """The real files, decompressed and joined."""
    files = [DATA / path for path in paths]
    for file in files:
        if not file.exists():
            raise Absent(f"{file} not found; set LINRANK_DATA to the folder of the real data")
    return b"".join(lzma.decompress(file.read_bytes()) for file in files)


def _read(*paths: str) -> Dataset:
    return read_svmlight(io.BytesIO(text_of(*paths)))


def mq2008_files(fold: int, folder: str = "mq2008") -> dict[str, tuple[str, ...]]:
    """Subsets S1 .. S5 of each part: fold k trains on three of them from Sk on, cyclically."""
    name = [f"{folder}/S{(fold - 1 + i) % 5 + 1}.txt.xz" for i in range(5)]
    return {"train": tuple(name[:3]), "vali": (name[3],), "test": (name[4],)}


def mq2008(fold: int, part: str) -> Dataset:
    return _read(*mq2008_files(fold)[part])


def train_and_test(name: str, fraction: float = 1.0) -> tuple[Dataset, Dataset]:
    """The parts as published where there are two, else every fifth query for the test."""
    if name == "mq":
        return mq2008(1, "train"), mq2008(1, "test")
    if name == "ohsumed":
        return ohsumed(1, "train"), ohsumed(1, "test")
    if name == "msn":
        return load(name), query_normalized(_read("mslr_sample/test.txt.xz"))
    data = load(name, fraction)
    if name == "rcv1":  # the sizes of the paper on stochastic pairwise descent
        is_test = np.arange(data.n_rows) >= data.n_rows * 781_265 // 804_414
        return data.select(~is_test), data.select(is_test)
    order, offsets = data.queries.order, data.queries.offsets
    is_test = np.repeat(np.arange(data.queries.n_queries) % 5 == 4, np.diff(offsets))
    if order is not None:
        by_row = np.empty_like(is_test)
        by_row[order] = is_test
        is_test = by_row
    return data.select(~is_test), data.select(is_test)


def mq2008_folds() -> list[dict[str, Dataset]]:
    """The five folds as published, each with its parts."""
    return [{part: mq2008(k, part) for part in mq2008_files(k)} for k in range(1, 6)]


def ohsumed(fold: int, part: str) -> Dataset:
    """A part of OHSUMED, cut into folds as MQ2008 is; its features are raw and are normalized."""
    return query_normalized(_read(*mq2008_files(fold, "ohsumed_letor2")[part]))


def _one_query(name: str) -> Callable[[], Dataset]:
    """A regression set; dense columns, in dollars or in years, brought to unit deviation."""

    def make() -> Dataset:
        data = _read(f"regression/{name}.svm.xz")
        if isinstance(data.rows, CsrRows):
            return data
        X = np.asarray(data.X)
        deviation = X.std(axis=0)
        return replace(data, rows=DenseRows(X / np.where(deviation > 0, deviation, 1)))

    return make


REAL: dict[str, Callable[[], Dataset]] = {
    "mq": lambda: mq2008(1, "train"),
    "ohsumed": lambda: ohsumed(1, "train"),
    "msn": lambda: query_normalized(_read("mslr_sample/train.txt.xz")),
    "msn-all": lambda: query_normalized(
        _read("mslr_sample/train.txt.xz", "mslr_sample/test.txt.xz")
    ),
    "bio": lambda: query_normalized(_read("bio_kdd04/train.txt.xz")),
    "nycflights": lambda: _read("regression/nycflights13_arr_delay.svm.xz"),
    **{name: _one_query(name) for name in ("cadata", "diamonds")},
    **{name: _one_query(f"{name}_scale") for name in ("abalone", "cpusmall", "space_ga")},
}
