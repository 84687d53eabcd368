"""Datasets as Arrow record batches."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank.data.dataset import Dataset
from linrank.data.joining import as_sparse
from linrank.data.rows import CsrRows, DenseRows, Rows
from linrank.writing.outline import Outline, ids_of

__all__ = ["batch_of", "dense", "require_pyarrow", "schema_of", "sparse"]

Array = NDArray[Any]
VECTOR = "features"  # the column of sparse rows


def require_pyarrow(what: str) -> Any:
    """The package, or an error that says how to get it."""
    try:
        import pyarrow
    except ImportError:
        raise ImportError(
            f"{what} needs pyarrow, which is not installed; install it with "
            "pip install linrank[arrow]"
        ) from None
    return pyarrow


def schema_of(outline: Outline) -> Any:
    """The columns: label, qid, docid, weight and position where there are any, then features.

    Sparse rows are one column of vectors as Spark ML stores them, ``{type, size, indices,
    values}`` with type 0.
    """
    pa = require_pyarrow("writing a table")
    fields = [pa.field("label", pa.float64())]
    if outline.id_type is not None:
        is_text = outline.id_type.kind == "O"
        kind = pa.string() if is_text else pa.from_numpy_dtype(outline.id_type)
        fields.append(pa.field("qid", kind))
    if outline.has_docids:
        fields.append(pa.field("docid", pa.string()))
    if outline.has_weight:
        fields.append(pa.field("weight", pa.float64()))
    if outline.position_type is not None:
        fields.append(pa.field("position", pa.from_numpy_dtype(outline.position_type)))
    value = pa.from_numpy_dtype(outline.dtype)
    if outline.is_sparse:
        fields.append(pa.field(VECTOR, _vector_type(pa, value)))
    else:
        fields += [pa.field(name, value) for name in outline.column_names()]
    return pa.schema(fields)


def _vector_type(pa: Any, value: Any) -> Any:
    return pa.struct(
        [
            ("type", pa.int8()),
            ("size", pa.int32()),
            ("indices", pa.list_(pa.int32())),
            ("values", pa.list_(value)),
        ]
    )


def batch_of(data: Dataset, outline: Outline, schema: Any) -> Any:
    """A block of rows as a record batch; missing values are null."""
    pa = require_pyarrow("writing a table")
    columns: list[Any] = [pa.array(data.labels)]
    if data.qid is not None:
        columns.append(pa.array(ids_of(data.qid), schema.field("qid").type))
    if outline.has_docids:
        columns.append(pa.array(data.docids, pa.string()))
    if data.weight is not None:
        columns.append(pa.array(data.weight))
    position = getattr(data, "position", None)
    if position is not None:
        columns.append(pa.array(position))
    if outline.is_sparse:
        columns.append(_vectors(pa, sparse(data.rows), schema.field(VECTOR).type))
    else:
        by_column = np.ascontiguousarray(dense(data.rows).values.T)
        has_missing = bool(np.isnan(by_column).any())
        columns += [pa.array(column, from_pandas=has_missing) for column in by_column]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _vectors(pa: Any, rows: CsrRows, kind: Any) -> Any:
    """Sparse rows as a struct of lists, whose offsets are those of the rows."""
    n_rows, n_columns = rows.shape
    offsets = pa.array(rows.offsets.astype(np.int32))
    indices = pa.ListArray.from_arrays(offsets, pa.array(rows.columns.astype(np.int32, copy=False)))
    values = pa.ListArray.from_arrays(offsets, pa.array(rows.values))
    parts = [
        pa.array(np.zeros(n_rows, np.int8)),
        pa.array(np.full(n_rows, n_columns, np.int32)),
        indices,
        values,
    ]
    return pa.StructArray.from_arrays(parts, fields=list(kind))


def dense(rows: Rows) -> DenseRows:
    """The rows as a full matrix."""
    if isinstance(rows, DenseRows):
        return rows
    values = np.zeros(rows.shape, rows.dtype)
    values[np.repeat(np.arange(rows.shape[0]), np.diff(rows.offsets)), rows.columns] = rows.values
    return DenseRows(values)


def sparse(rows: Rows) -> CsrRows:
    """The rows as entries."""
    return rows if isinstance(rows, CsrRows) else as_sparse(rows)
