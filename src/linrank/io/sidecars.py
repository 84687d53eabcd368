"""Files beside a text that say more of its rows, as LightGBM and XGBoost have them."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank.data.dataset import Dataset
from linrank.data.frames import as_weights
from linrank.errors import DataFormatError
from linrank.io.formats import COMPRESSIONS
from linrank.system.durable import naming

Array = NDArray[Any]
ENDINGS = (".query", ".group", ".weight", ".position")
_LARGEST = 2.0**40  # rows of a query: more fit nowhere, and their sum stays an integer
_IGNORE = "remove one, or ignore the files beside the data with sidecars=False"


def attach(data: Dataset, path: Any, note: Callable[[str], object]) -> Dataset:
    """The data with what the files beside it say.

    They are named like the data (with or without the ending of a compression) and end in
    ``.query`` or ``.group`` (the number of rows of each query, in order), ``.weight`` (a number a
    row, or a query) and ``.position`` (a number a row); one number a line.
    """
    found = files_beside(path)
    told = [found[ending] for ending in ENDINGS[:2] if ending in found]
    if len(told) > 1:
        raise DataFormatError(f"{told[0]} and {told[1]} both tell the queries; {_IGNORE}")
    if told:
        data = _with_queries(data, told[0])
    if name := found.get(".weight"):
        data = _with_weights(data, name)
    if name := found.get(".position"):
        if data.position is not None:
            raise DataFormatError(f"{name} tells positions, and {data.source} has some; {_IGNORE}")
        positions = _numbers(name)
        if len(positions) != data.n_rows:
            raise DataFormatError(
                f"{name}: {len(positions):,} positions for the {data.n_rows:,} rows of "
                f"{data.source}"
            )
        data = replace(data, position=positions)
    for name in found.values():
        note(f"read beside {os.fsdecode(path)}: {name}")
    return data


def files_beside(path: Any) -> dict[str, str]:
    """The files beside a text that `attach` would read, by their endings."""
    path = os.fsdecode(path)
    stem, last = os.path.splitext(path)
    stems = (path, stem) if last.lower() in COMPRESSIONS else (path,)
    found = {}
    for ending in ENDINGS:
        name = next((s + ending for s in stems if os.path.isfile(s + ending)), None)
        if name is not None:
            found[ending] = name
    return found


def _with_queries(data: Dataset, name: str) -> Dataset:
    if data.qid is not None:
        raise DataFormatError(
            f"{name} tells the queries, and {data.source} has query ids; {_IGNORE}"
        )
    sizes = _numbers(name)
    bad = (sizes != np.floor(sizes)) | (sizes < 1) | (sizes > _LARGEST)
    if bad.any():
        line = int(np.argmax(bad))
        raise DataFormatError(f"{name}:{line + 1}: {sizes[line]:g} is no number of rows of a query")
    if int(sizes.sum()) != data.n_rows:
        raise DataFormatError(
            f"{name}: its {len(sizes):,} queries have {int(sizes.sum()):,} rows together, "
            f"{data.source} has {data.n_rows:,}"
        )
    return replace(data, qid=np.repeat(np.arange(len(sizes)), sizes.astype(np.int64)))


def _with_weights(data: Dataset, name: str) -> Dataset:
    """Weights u of rows, or c of queries: a pair weighs ``u_i u_j``, so u = √c in a query."""
    if data.weight is not None:
        raise DataFormatError(f"{name} tells weights, and {data.source} has some; {_IGNORE}")
    weights = _numbers(name)
    queries = data.queries
    if len(weights) not in (data.n_rows, queries.n_queries):
        raise DataFormatError(
            f"{name}: {len(weights):,} weights for the {data.n_rows:,} rows and "
            f"{queries.n_queries:,} queries of {data.source}"
        )
    if (weights < 0).any():
        line = int(np.argmax(weights < 0))
        raise DataFormatError(f"{name}:{line + 1}: the weight {weights[line]:g} is below 0")
    if len(weights) != data.n_rows:
        weights = queries.scatter(np.repeat(np.sqrt(weights), np.diff(queries.offsets)))
    weighted = replace(data, weight=as_weights(weights, data.n_rows, name))
    weighted.__dict__["queries"] = queries  # weights do not change them
    return weighted


def _numbers(name: str) -> Array:
    """One finite number a line; an error names the line."""
    with naming(name), open(name, encoding="utf-8", errors="backslashreplace") as file:
        lines = file.read().rstrip().split("\n")
    numbers = np.empty(len(lines) if lines != [""] else 0)
    for i in range(len(numbers)):
        try:
            numbers[i] = float(lines[i])
        except ValueError:
            numbers[i] = np.nan
        if not np.isfinite(numbers[i]):
            raise DataFormatError(f"{name}:{i + 1}: expected one number, got {lines[i][:60]!r}")
    return numbers
