"""Rows in one column: lists, and vectors of Spark."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import linrank
from linrank.data.rows import CsrRows
from linrank.errors import DataFormatError
from table_files import write_table


@pytest.mark.parametrize("kind", [pa.list_(pa.float32()), pa.large_list(pa.float32())])
@pytest.mark.parametrize("fixed", [False, True])
def test_one_column_of_lists(tmp_path, kind, fixed):
    kind = pa.list_(pa.float32(), 3) if fixed else kind
    rows = [[1, 2, 3], [4, 5, 6], [7, 8, 9]]
    table = pa.table({"label": [1, 0, 2], "features": pa.array(rows, kind), "age": [1, 2, 3]})
    for source in (table, write_table(table, tmp_path / "t.parquet", 2), table.slice(0)):
        data = linrank.load(source)
        assert data.X.tolist() == rows
        assert data.X.dtype == np.float32
        assert data.feature_names is None
    assert linrank.load(table.slice(1)).X.tolist() == rows[1:]
    assert linrank.load(table, features="age").X.tolist() == [[1], [2], [3]]


def test_lists_must_have_one_length():
    for rows, message in (
        (
            [[1.0, 2], [3.0], [4.0, 5]],
            "list of row 1 in the column 'features' has 1 values.* have 2",
        ),
        ([[1.0, 2], None], "row 1 has no list"),
        ([[], []], "list of row 0 is empty"),
        ([[1.0, np.inf]], r"row 0, column 'features\[1\]' is infinite"),
    ):
        table = pa.table(
            {"y": range(len(rows)), "features": pa.array(rows, pa.list_(pa.float64()))}
        )
        with pytest.raises(DataFormatError, match=message):
            linrank.load(table)


def test_pyterrier_frames():
    frame = pd.DataFrame(
        {
            "qid": ["1", "1", "2"],
            "query": ["chemical", "chemical", "end"],
            "docno": ["d1", "d2", "d3"],
            "rank": [0, 1, 0],
            "label": [1, 0, 0],
            "features": [np.array([1.0, 2.0]), np.array([3.0, 4.0]), np.array([5.0, 6.0])],
        }
    )
    data = linrank.load(frame)
    assert data.X.tolist() == [[1, 2], [3, 4], [5, 6]]
    assert data.qid.tolist() == ["1", "1", "2"]
    assert data.docids == ["d1", "d2", "d3"]


SPARK = pa.struct(
    [("type", pa.int8()), ("size", pa.int32()), ("indices", pa.list_(pa.int32())),
     ("values", pa.list_(pa.float64()))]
)  # fmt: skip


def vectors(*rows):
    return pa.table({"label": range(len(rows)), "features": pa.array(rows, SPARK)})


def sparse(size, indices, values):
    return {"type": 0, "size": size, "indices": indices, "values": values}


def dense(*values):
    return {"type": 1, "size": None, "indices": None, "values": list(values)}


def test_vectors_of_spark():
    table = vectors(sparse(40, [3, 39], [1.0, 2.0]), sparse(40, [], []), sparse(40, [0], [5.0]))
    data = linrank.load(table)
    assert isinstance(data.rows, CsrRows)
    full = np.zeros((3, 40))
    full[0, 3], full[0, 39], full[2, 0] = 1, 2, 5
    assert (data.X.toarray() == full).all()
    assert (full == linrank.load(table, storage="dense").X).all()
    assert (linrank.load(table.slice(1)).X.toarray() == full[1:]).all()


def test_dense_and_sparse_vectors_in_one_column():
    table = vectors(dense(1.0, 0.0, 2.0), sparse(3, [1], [4.0]), dense(0.0, 7.0, 0.0))
    data = linrank.load(table, storage="dense")
    assert data.X.tolist() == [[1, 0, 2], [0, 4, 0], [0, 7, 0]]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([sparse(3, [0], [1.0]), sparse(4, [0], [1.0])], "row 1 .* has 4 features, .*before 3"),
        ([sparse(3, [2, 1], [1.0, 1.0])], "row 0 .* has the index 1"),
        ([sparse(3, [0], [1.0]), sparse(3, [3], [1.0])], "row 1 .* has the index 3"),
        ([sparse(3, [-1], [1.0])], "has the index -1"),
        ([sparse(3, [0, 1], [1.0])], "has 1 values for 2 indices"),
        ([sparse(3, [0], [np.inf])], "has a value that is infinite"),
        ([{**dense(1.0), "type": 5}], "is of type 5"),
        ([dense(1.0), None], "row 1 .* is missing"),
        ([dense(1.0, 2.0), dense(1.0)], "row 1 .* has 1 features"),
        ([sparse(3, None, [1.0])], "has no indices"),
        ([sparse(3, [1], [None])], "row 0, feature 1 is missing"),
    ],
)
def test_vectors_at_fault(rows, message):
    with pytest.raises(DataFormatError, match=message):
        linrank.load(vectors(*rows))
