"""TopicLabels: the labels of all topics, as a matrix of rows × topics, checked once."""

from __future__ import annotations

import sys
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank.data import frames

__all__ = ["TopicLabels", "positions_of"]

Array = NDArray[Any]
_BLOCK = 1 << 20  # labels that are checked at a time


@dataclass(frozen=True, eq=False)
class TopicLabels:
    """A label for each row and topic; what a sparse matrix leaves out is 0.

    Attributes
    ----------
    matrix : array or scipy.sparse.csc_array of shape (n_rows, n_topics)
        The labels, finite.
    topics : array (n_topics,)
        The names of the topics.
    is_named : bool
        Whether they were given; else they are 0, 1, 2, ...
    """

    matrix: Any
    topics: Array
    is_named: bool

    @property
    def n_topics(self) -> int:
        return int(self.matrix.shape[1])

    def of(self, t: int) -> Array:
        """Return the labels of topic ``t`` as a float64 vector of its own."""
        if isinstance(self.matrix, np.ndarray):
            return np.array(self.matrix[:, t], dtype=np.float64)
        labels = np.zeros(self.matrix.shape[0])
        entries = slice(self.matrix.indptr[t], self.matrix.indptr[t + 1])
        labels[self.matrix.indices[entries]] = self.matrix.data[entries]
        return labels

    @classmethod
    def read(cls, Y: Any, n_rows: int, topics: Any = None) -> TopicLabels:
        """Check labels as users give them.

        Parameters
        ----------
        Y : array, scipy.sparse matrix or array, pandas, polars or pyarrow table
            2-D, real, finite, ``n_rows`` rows and at least one column.
        n_rows : int
            Rows of the features.
        topics : sequence of hashable, optional
            Names of the columns; those of a table if None, else 0, 1, 2, ...
        """
        sparse = sys.modules.get("scipy.sparse")  # not loaded: Y cannot be one of its matrices
        names = topics
        if frames.is_frame(Y):
            if names is None:
                names = frames.all_column_names(Y)
            Y = _from_frame(Y)
        is_sparse = sparse is not None and sparse.issparse(Y)
        matrix = _from_sparse(Y) if is_sparse else _from_array(Y)
        _check_shape(matrix, n_rows)
        named = _names(names, matrix.shape[1])
        (_check_sparse if is_sparse else _check_dense)(matrix, named)
        return cls(matrix, named, names is not None)


def positions_of(wanted: Any, topics: Array) -> Array:
    """Return where the topics ``wanted``, one name or several, are among ``topics``."""
    places = {name: t for t, name in enumerate(topics.tolist())}
    if isinstance(wanted, str | bytes) or not isinstance(wanted, Iterable):
        wanted = [wanted]
    names = wanted.tolist() if isinstance(wanted, np.ndarray) else list(wanted)
    for name in names:
        if name not in places:
            known = ", ".join(map(repr, topics[:3].tolist()))
            raise ValueError(f"there is no topic {name!r}; topics_ begins with {known}")
    return np.array([places[name] for name in names], dtype=np.int64)


def _from_frame(Y: Any) -> Any:
    coo = frames.sparse_part(Y)
    return frames.to_matrix(Y, "Y") if coo is None else coo


def _from_sparse(Y: Any) -> Any:
    """By columns, each label once; a copy unless it is so already."""
    if Y.ndim != 2:
        raise ValueError(f"Y must have a column for each topic, got a sparse array of {Y.shape}")
    columns = Y.tocsc()
    if not columns.has_canonical_format:
        columns = columns.copy() if columns is Y else columns
        columns.sum_duplicates()
    if columns.data.dtype.kind not in "biuf":
        raise ValueError(f"Y has dtype {columns.data.dtype}; labels are real numbers")
    return columns


def _from_array(Y: Any) -> Array:
    if Y is None:
        raise ValueError("Y is None; give a label for each row and topic")
    matrix = frames.as_array(Y, "Y")
    if matrix.ndim != 2:
        raise ValueError(
            f"Y must be 2-D, rows × topics, got shape {matrix.shape}; for one topic fit the "
            "estimator itself, or pass Y.reshape(-1, 1)"
        )
    # Small integers stay small: a topic becomes float64 when its turn comes.
    return matrix if matrix.dtype.kind in "biu" else frames.as_float(matrix, "Y")


def _check_shape(matrix: Any, n_rows: int) -> None:
    if matrix.shape[0] != n_rows:
        transposed = "; it looks transposed: pass Y.T" if matrix.shape[1] == n_rows else ""
        raise ValueError(
            f"inconsistent lengths: X has {n_rows} rows but Y has {matrix.shape[0]}{transposed}"
        )
    if matrix.shape[1] == 0:
        raise ValueError("Y has no column; give at least one topic")


def _names(names: Any, n_topics: int) -> Array:
    """The names as an array, each once."""
    if names is None:
        return np.arange(n_topics)
    if isinstance(names, str | bytes) or not isinstance(names, Iterable):
        raise TypeError(f"topics must be a sequence of names, got {names!r}")
    listed: Sequence[Hashable] = names.tolist() if isinstance(names, np.ndarray) else list(names)
    if len(listed) != n_topics:
        raise ValueError(f"Y has {n_topics} columns but topics has {len(listed)} names")
    seen: set[Hashable] = set()
    for name in listed:
        if name in seen:
            raise ValueError(f"the topic {name!r} occurs twice; names of topics must differ")
        seen.add(name)
    if len({type(name) for name in listed}) == 1 and isinstance(listed[0], str | int):
        return np.asarray(listed)
    array = np.empty(n_topics, dtype=object)  # 1 and "1" differ; np.asarray would merge them
    array[:] = listed
    return array


def _check_dense(matrix: Array, topics: Array) -> None:
    if matrix.dtype.kind != "f":
        return
    step = max(1, _BLOCK // matrix.shape[1])
    for begin in range(0, len(matrix), step):
        block = matrix[begin : begin + step]
        is_bad = ~np.isfinite(block)
        if is_bad.any():
            row, t = np.argwhere(is_bad)[0].tolist()
            raise _not_finite(block[row, t], begin + row, t, topics)


def _check_sparse(matrix: Any, topics: Array) -> None:
    if matrix.data.dtype.kind != "f":
        return
    bad = np.flatnonzero(~np.isfinite(matrix.data))
    if bad.size:
        t = int(np.searchsorted(matrix.indptr, bad[0], side="right")) - 1
        raise _not_finite(matrix.data[bad[0]], int(matrix.indices[bad[0]]), t, topics)


def _not_finite(value: Any, row: int, t: int, topics: Array) -> ValueError:
    what = "NaN" if np.isnan(value) else "infinity (inf)"
    name = topics[t : t + 1].tolist()[0]
    return ValueError(
        f"Input Y contains {what} at row {row}, column {t} (topic {name!r}); labels must be finite"
    )
