"""What a model knows of the data that it was trained on: statistics of columns, a fingerprint."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from linrank import _core
from linrank.data.rows import CsrRows, DenseRows
from linrank.data.statistics import ColumnStatistics

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from linrank.data.dataset import Dataset
    from linrank.data.rows import Rows

__all__ = ["fingerprint", "kept", "known_of"]

MAX_FEATURES = 20_000  # beyond, statistics would make up most of the model
_BLOCK_BYTES = 1 << 22


def known_of(data: Dataset, used: NDArray[np.bool_]) -> tuple[ColumnStatistics | None, str | None]:
    """Statistics of the raw features, and the fingerprint; None for what is not to be had."""
    rows = data.rows
    if not isinstance(rows, (DenseRows, CsrRows)) or len(rows.values) == 0:
        return None, None  # computed by blocks, or the outline of a store
    n_features = rows.shape[1] if data.filling is None else data.filling.n_features
    if n_features > MAX_FEATURES:
        return None, fingerprint(data)
    found = ColumnStatistics.of(rows, data.weight)
    return kept(found.of_first(n_features), used), fingerprint(data)


def kept(statistics: ColumnStatistics | None, used: NDArray[np.bool_]) -> ColumnStatistics | None:
    """What a model keeps of statistics: those of the features that it uses, 0 for the others.

    A model of few weights stays a small file so.
    """
    if statistics is None or statistics.n_columns > MAX_FEATURES or statistics.weight <= 0.0:
        return None
    if not np.isfinite(statistics.variance).all():
        return None
    return statistics.masked(used)


def fingerprint(data: Dataset) -> str:
    """A checksum of rows, labels, weights and grouping: the same for the same data in any format.

    Ids and names are no part of it. It tells data apart by accident, not by intent: CRC-32C.

    Examples
    --------
    >>> from linrank.data.dataset import Dataset
    >>> fingerprint(Dataset.of([[1.0], [2.0]], [0, 1], qid=["a", "a"]))
    'crc32c:467e1d01'
    """
    check = _of_rows(data.rows)
    queries = data.queries
    for array in (data.labels, data.weight, queries.offsets, queries.order):
        check = check if array is None else _add(check, array)
    return f"crc32c:{check:08x}"


def _of_rows(rows: Rows) -> int:
    check = _add(0, np.array(rows.shape, dtype=np.int64))
    if isinstance(rows, CsrRows):
        for array in (rows.offsets, rows.columns, rows.values):
            check = _add(check, array)
        return check
    step = max(1, _BLOCK_BYTES // max(1, rows.shape[1] * rows.dtype.itemsize))
    for begin in range(0, rows.shape[0], step):  # rows may lie apart, and a copy be large
        check = _add(check, rows.values[begin : begin + step])
    return check


def _add(check: int, array: NDArray[Any]) -> int:
    return _core.crc32c(np.ascontiguousarray(array).reshape(-1).view(np.uint8), check)
