"""Subsets as arrays in a folder, which processes map into memory instead of copying them."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank.data.dataset import Dataset
from linrank.data.joining import join_rows
from linrank.data.rows import CsrRows, DenseRows, Rows

__all__ = ["read_joined", "write_subset"]

Array = NDArray[Any]


def write_subset(folder: str, number: int, data: Dataset) -> None:
    """Write the subset with the rows of each query together, queries numbered from 0."""
    queries = data.queries
    rows = data.rows if queries.order is None else data.rows.take(queries.order)
    arrays = {"labels": queries.gather(data.labels), "offsets": queries.offsets}
    if isinstance(rows, CsrRows):
        arrays |= {"values": rows.values, "columns": rows.columns, "starts": rows.offsets}
    else:
        arrays |= {"values": rows.values}
    for name, array in arrays.items():
        np.save(_path(folder, number, name), array)
    with open(_path(folder, number, "about", "json"), "w", encoding="utf-8") as file:
        json.dump({"n_features": data.n_features, "index_base": data.index_base}, file)


def read_joined(folder: str, numbers: Sequence[int]) -> Dataset:
    """The subsets one after the other as one dataset; a single one is mapped, not read."""
    with open(_path(folder, numbers[0], "about", "json"), encoding="utf-8") as file:
        about = json.load(file)
    rows = [_read_rows(folder, k, about["n_features"]) for k in numbers]
    labels = [_read(folder, k, "labels") for k in numbers]
    sizes = np.concatenate([np.diff(_read(folder, k, "offsets")) for k in numbers])
    return Dataset(
        join_rows(rows),
        np.concatenate(labels),
        np.repeat(np.arange(len(sizes)), sizes),
        index_base=about["index_base"],
    )


def _read_rows(folder: str, number: int, n_features: int) -> Rows:
    values = _read(folder, number, "values")
    if values.ndim == 2:
        return DenseRows(values)
    columns, starts = (_read(folder, number, name) for name in ("columns", "starts"))
    return CsrRows(values, columns, starts, n_features)


def _read(folder: str, number: int, name: str) -> Array:
    # As a plain array over the map: some libraries look at the type.
    return np.asarray(np.load(_path(folder, number, name), mmap_mode="r"))


def _path(folder: str, number: int, name: str, extension: str = "npy") -> str:
    return os.path.join(folder, f"{number}-{name}.{extension}")
