"""What users give, as one tuple (X, y, qid, sample_weight) for every partition; nothing runs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import dask.array
import numpy as np
from dask.delayed import Delayed
from distributed import Future

from linrank.data.frames import as_array, is_frame
from linrank.data.queries import as_ids

Block = tuple[Any, Any, Any, Any]  # each delayed, a future, the name of a column, or None


@dataclass(frozen=True)
class Cut:
    """Where partitions end, as far as that is known before anything runs.

    Attributes
    ----------
    of : str
        The argument that is cut so, for errors.
    chunks : tuple of float
        Rows of each partition, NaN where that is not known.
    names : tuple of str or None
        Columns that may be named; None where only the worker can tell.
    divisions : tuple or None
        Those of the dataframe that the rows come from, if it knows them.
    """

    of: str
    chunks: tuple[float, ...]
    names: tuple[str, ...] | None = ()
    divisions: Any = None

    @property
    def n_parts(self) -> int:
        return len(self.chunks)

    @property
    def is_known(self) -> bool:
        return not any(math.isnan(n) for n in self.chunks)

    @property
    def n_rows(self) -> int:
        return int(sum(self.chunks))


def blocks_of(X: Any, y: Any, qid: Any, sample_weight: Any) -> tuple[Cut, list[Block]]:
    """Return distributed data partition by partition, and where these end.

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
    cut = cut_of(X, "X")
    if _is_array(X):
        if X.ndim != 2:
            raise ValueError(
                f"X must be a 2-D dask array, got {X.ndim} dimensions (shape {X.shape}); "
                "reshape it with X.reshape(-1, 1) for a single feature"
            )
        rows = [row.tolist() if len(row) > 1 else row[0] for row in X.to_delayed()]
    elif _is_series(X):
        raise TypeError("X is a series, one column; pass the table, as in X[['name']]")
    else:
        rows = list(X.to_delayed() if hasattr(X, "to_delayed") else X)
    vectors = [
        vector_blocks(v, what, cut)
        for v, what in ((y, "y"), (qid, "qid"), (sample_weight, "sample_weight"))
    ]
    return cut, list(zip(rows, *vectors, strict=True))


def cut_of(v: Any, what: str) -> Cut:
    """Return where the partitions of an argument end; `what` is its name."""
    if _is_array(v):
        return Cut(what, v.chunks[0])
    unknown = math.nan
    if _is_series(v) or _is_dataframe(v):
        names = tuple(str(name) for name in v.columns) if _is_dataframe(v) else ()
        divisions = v.divisions if v.known_divisions else None
        return Cut(what, (unknown,) * v.npartitions, names, divisions)
    if _is_blocks(v):
        return Cut(what, (unknown,) * len(v), None)
    raise not_distributed(what, v)


def is_distributed(v: Any) -> bool:
    """Whether an argument is in partitions."""
    return _is_array(v) or _is_series(v) or _is_dataframe(v) or _is_blocks(v)


def not_distributed(what: str, v: Any) -> TypeError:
    """The error for an argument in memory."""
    if isinstance(v, (list, tuple)) and not v:
        return TypeError(f"{what} is an empty {type(v).__name__}; give at least one delayed block")
    kind = f"{type(v).__module__}.{type(v).__qualname__}".removeprefix("builtins.")
    return TypeError(
        f"{what} is a {kind}, which is not distributed; use what has the same name in linrank, or "
        "give a dask array, a dask dataframe, a list of delayed blocks or of futures, or a Store"
    )


def vector_blocks(v: Any, what: str, cut: Cut) -> list[Any]:
    """Return one number or id per row as blocks of the given partitions.

    Parameters
    ----------
    v : dask array or series, list of blocks, array, str, or None
        See `blocks_of`.
    what : str
        Its name, for errors.
    cut : Cut
        The partitions.
    """
    if v is None or isinstance(v, str):
        _check_name(v, what, cut)
        return [v] * cut.n_parts
    if _is_array(v):
        return _array_blocks(v, what, cut)
    if _is_series(v):
        theirs = cut.divisions
        if (
            v.npartitions != cut.n_parts
            and v.known_divisions
            and (theirs or (None,))[0] is not None
        ):
            v = v.repartition(divisions=theirs)
        return _same_number(list(v.to_delayed()), what, cut)
    if _is_blocks(v):
        return _same_number(list(v), what, cut)
    if _is_dataframe(v) or is_frame(v):
        raise TypeError(f"{what} is a table; pass one column of it, as in X[{what!r}]")
    return _local_blocks(v, what, cut)


def _is_array(v: Any) -> bool:
    return isinstance(v, dask.array.Array)


def _is_blocks(v: Any) -> bool:
    return isinstance(v, (list, tuple)) and len(v) > 0 and isinstance(v[0], (Delayed, Future))


def _is_dataframe(v: Any) -> bool:
    return _dataframe_type(v) == "DataFrame"


def _is_series(v: Any) -> bool:
    return _dataframe_type(v) in ("Series", "Index")


def _dataframe_type(v: Any) -> str | None:
    """Told by the module: dask.dataframe needs pandas, which need not be installed."""
    kind = type(v)
    inside = kind.__module__.startswith("dask.dataframe") and hasattr(v, "to_delayed")
    return kind.__name__ if inside else None


def _check_name(v: Any, what: str, cut: Cut) -> None:
    if v is None or cut.names is None or v in cut.names:
        return
    if not cut.names:
        raise TypeError(
            f"{what}={v!r} names a column, but {cut.of} is an array; give one value per row"
        )
    raise ValueError(f"{what}={v!r} is no column of {cut.of}; there are {', '.join(cut.names)}")


def _array_blocks(v: Any, what: str, cut: Cut) -> list[Any]:
    if v.ndim == 2 and v.shape[1] == 1:
        v = v[:, 0]
    if v.ndim != 1:
        raise ValueError(f"{what} must be 1-D, one element per row; got shape {v.shape}")
    if cut.is_known and cut_of(v, what).is_known:
        _check_rows(v.shape[0], what, cut)
        return list(v.rechunk((tuple(int(n) for n in cut.chunks),)).to_delayed())
    return _same_number(list(v.to_delayed()), what, cut)


def _local_blocks(v: Any, what: str, cut: Cut) -> list[Any]:
    """An array in memory, cut where the partitions are."""
    if not hasattr(v, "__len__"):
        raise TypeError(f"{what} must hold one element per row, got {type(v).__name__}")
    if not cut.is_known:
        raise TypeError(
            f"{what} is a {type(v).__name__} in memory but the number of rows in each partition of "
            f"{cut.of} is not known; give {what} in partitions too, or as the name of a column, or "
            f"call {cut.of}.compute_chunk_sizes()"
        )
    _check_rows(len(v), what, cut)
    array = as_ids(v, len(v)) if what == "qid" else as_array(v, what)
    return np.split(array, np.cumsum([int(n) for n in cut.chunks])[:-1])


def _same_number(blocks: list[Any], what: str, cut: Cut) -> list[Any]:
    if len(blocks) != cut.n_parts:
        raise ValueError(
            f"{cut.of} has {cut.n_parts} partitions but {what} has {len(blocks)}, and where their "
            "rows meet is not known; give both in the same partitions, or call "
            "compute_chunk_sizes() on both dask arrays"
        )
    return blocks


def _check_rows(n_rows: int, what: str, cut: Cut) -> None:
    if n_rows != cut.n_rows:
        raise ValueError(f"{cut.of} has {cut.n_rows} rows but {what} has {n_rows}")
