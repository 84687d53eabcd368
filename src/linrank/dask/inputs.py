"""What users give, as one tuple (X, y, qid, sample_weight) for every partition; nothing runs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import dask.array
import numpy as np
from dask.delayed import Delayed
from distributed import Future

from linrank.data.frames import is_frame, read_column
from linrank.data.queries import as_ids

__all__ = ["Block", "blocks_of", "is_blocks", "is_frame_collection", "is_series", "vector_blocks"]

Block = tuple[Any, Any, Any, Any]  # each delayed, a future, the name of a column, or None
Chunks = tuple[float, ...]  # rows of each partition, NaN where that is not known


def blocks_of(X: Any, y: Any, qid: Any, sample_weight: Any) -> list[Block]:
    """Return the blocks of distributed data, partition by partition.

    Parameters
    ----------
    X : dask array, dask dataframe, or list of delayed blocks or of futures
        The rows. A block of a list is a matrix or a table, a tuple ``(X, y[, qid[, weight]])`` or
        a `linrank.Dataset`; with the last two the other arguments stay None.
    y, qid, sample_weight : dask array or series, list of blocks, array, name of a column, or None
        One element a row, in partitions of the same rows; a dask array of known chunks is cut to
        those of `X`, and so is an array in memory. Names are those of columns of `X`, which are
        then no features.
    """
    if isinstance(X, dask.array.Array):
        if X.ndim != 2:
            raise ValueError(
                f"X must be a 2-D dask array, got {X.ndim} dimensions (shape {X.shape}); "
                "reshape it with X.reshape(-1, 1) for a single feature"
            )
        grid = X.to_delayed()
        blocks = [row.tolist() if len(row) > 1 else row[0] for row in grid]
        chunks: Chunks = X.chunks[0]
        names: Sequence[str] | None = ()
    elif is_frame_collection(X):
        blocks, names = list(X.to_delayed()), [str(name) for name in X.columns]
        chunks = (math.nan,) * len(blocks)
    elif is_blocks(X):
        blocks, names, chunks = list(X), None, (math.nan,) * len(X)
    else:
        raise _not_distributed("X", X)
    divisions = getattr(X, "divisions", None)
    vectors = [
        vector_blocks(v, what, chunks, names, divisions)
        for v, what in ((y, "y"), (qid, "qid"), (sample_weight, "sample_weight"))
    ]
    return list(zip(blocks, *vectors, strict=True))


def is_blocks(X: Any) -> bool:
    """Whether this is a list of delayed blocks or of futures."""
    return isinstance(X, (list, tuple)) and len(X) > 0 and isinstance(X[0], (Delayed, Future))


def is_frame_collection(X: Any) -> bool:
    """Whether this is a dask dataframe; told by its module, which may well not be installed."""
    return _dataframe_type(X) == "DataFrame"


def is_series(X: Any) -> bool:
    """Whether this is a series, a column, of a dask dataframe."""
    return _dataframe_type(X) in ("Series", "Index")


def _dataframe_type(X: Any) -> str | None:
    kind = type(X)
    inside = kind.__module__.startswith("dask.dataframe") and hasattr(X, "to_delayed")
    return kind.__name__ if inside else None


def vector_blocks(
    v: Any,
    what: str,
    chunks: Chunks,
    names: Sequence[str] | None = (),
    divisions: Any = None,
) -> list[Any]:
    """Return one number or id per row as blocks of the given partitions.

    Parameters
    ----------
    v : dask array or series, list of blocks, array, str, or None
        See `blocks_of`.
    what : str
        Its name, for errors.
    chunks : tuple
        Rows of each partition.
    names : sequence of str or None
        Columns that may be named; None where only the worker can tell.
    divisions : tuple or None
        Those of the dataframe that the rows come from.
    """
    if v is None or isinstance(v, str):
        _check_name(v, what, names)
        return [v] * len(chunks)
    if isinstance(v, dask.array.Array):
        return _array_blocks(v, what, chunks)
    if is_series(v):
        if divisions is not None and v.npartitions != len(chunks) and v.known_divisions:
            v = v.repartition(divisions=divisions) if divisions[0] is not None else v
        return _same_number(list(v.to_delayed()), what, len(chunks))
    if is_blocks(v):
        return _same_number(list(v), what, len(chunks))
    if is_frame_collection(v) or is_frame(v):
        raise TypeError(f"{what} is a table; pass one column of it, as in X[{what!r}]")
    return _local_blocks(v, what, chunks)


def _check_name(v: Any, what: str, names: Sequence[str] | None) -> None:
    if v is None or names is None or v in names:
        return
    if not names:
        raise TypeError(f"{what}={v!r} names a column, but X is an array; give one value per row")
    raise ValueError(f"{what}={v!r} is no column of X; there are {', '.join(names)}")


def _array_blocks(v: Any, what: str, chunks: Chunks) -> list[Any]:
    if v.ndim == 2 and v.shape[1] == 1:
        v = v[:, 0]
    if v.ndim != 1:
        raise ValueError(f"{what} must be 1-D, one element per row; got shape {v.shape}")
    if _known(chunks) and _known(v.chunks[0]):
        _check_rows(v.shape[0], what, chunks)
        return list(v.rechunk((tuple(int(n) for n in chunks),)).to_delayed())
    return _same_number(list(v.to_delayed()), what, len(chunks))


def _local_blocks(v: Any, what: str, chunks: Chunks) -> list[Any]:
    """An array in memory, cut where the partitions are."""
    v = read_column(v)
    if not hasattr(v, "__len__"):
        raise TypeError(f"{what} must hold one element per row, got {type(v).__name__}")
    if not _known(chunks):
        raise TypeError(
            f"{what} is a {type(v).__name__} in memory but the number of rows in each partition of "
            f"X is not known; give {what} in partitions too, or as the name of a column, or call "
            "X.compute_chunk_sizes()"
        )
    _check_rows(len(v), what, chunks)
    array = as_ids(v, len(v)) if what == "qid" else np.asarray(v)
    return np.split(array, np.cumsum([int(n) for n in chunks])[:-1])


def _same_number(blocks: list[Any], what: str, n_parts: int) -> list[Any]:
    if len(blocks) != n_parts:
        raise ValueError(
            f"X has {n_parts} partitions but {what} has {len(blocks)}, and where their rows meet "
            "is not known; give both in the same partitions, or call compute_chunk_sizes() on "
            "both dask arrays"
        )
    return blocks


def _check_rows(n_rows: int, what: str, chunks: Chunks) -> None:
    if n_rows != sum(chunks):
        raise ValueError(f"X has {int(sum(chunks))} rows but {what} has {n_rows}")


def _known(chunks: Chunks) -> bool:
    return not any(math.isnan(n) for n in chunks)


def _not_distributed(what: str, X: Any) -> TypeError:
    kind = f"{type(X).__module__}.{type(X).__qualname__}".removeprefix("builtins.")
    return TypeError(
        f"{what} is a {kind}, which is not distributed; use what has the same name in linrank, or "
        "give a dask array, a dask dataframe, a list of delayed blocks or of futures, or a Store"
    )
