"""Tables as other programs write them: bytes for strings, categories, long lines, blanks."""

from __future__ import annotations

import io
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest

import linrank
from linrank.data.dataset import Dataset
from linrank.errors import DataFormatError
from linrank.io import columns
from linrank.io import columns as values
from linrank.io import table_files as files
from linrank.io.columns import columns_of, plain_numbers
from linrank.io.table_reader import DenseReader
from linrank.io.write import write


def load(**columns):
    return linrank.load(pa.table({"label": [0.0, 1.0, 2.0], "f": [1.0, 2.0, 3.0], **columns}))


def load_csv(text, **options):
    return linrank.load(io.BytesIO(text), format="csv", **options)


def category(codes, kinds):
    return pa.DictionaryArray.from_arrays(pa.array(codes), kinds)


@pytest.mark.parametrize(
    ("ids", "found"),
    [
        (pa.array([b"q1", b"q1", "é".encode()]), ["q1", "q1", "é"]),
        (category([1, 1, 0], pa.array([b"x", b"y"])), ["y", "y", "x"]),
        (category([0, 1, 1], pa.array([5.0, 6.0])), [5, 6, 6]),
        (category([0, 1, 1], pa.array([2**63, 7], pa.uint64())), [2**63, 7, 7]),
    ],
)
def test_query_ids_are_what_they_stand_for(ids, found):
    assert load(qid=ids).qid.tolist() == found


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        (category([0, 1, 1], pa.array([5, None])), "the qid of row 1 .* is missing"),
        (category([0, 1, 1], pa.array([5.0, None])), "the qid of row 1 .* is missing"),
        (pa.array([b"a", b"\xff", b"b"]), "ids are numbers or strings"),
        (pa.RunEndEncodedArray.from_arrays([3], [5]), "ids are numbers or strings"),
    ],
)
def test_query_ids_that_are_none(ids, message):
    with pytest.raises(DataFormatError, match=message):
        load(qid=ids)


def test_text_of_a_table_that_is_no_text(tmp_path):
    wrong = pa.Array.from_buffers(pa.string(), 3, pa.array([b"a", b"\xff", b"b"]).buffers())
    pa.parquet.write_table(
        pa.table({"label": [0, 1, 2], "qid": wrong, "f": [1, 2, 3]}), tmp_path / "t.parquet"
    )
    with pytest.raises(DataFormatError, match="the qid column 'qid' holds text that is not UTF-8"):
        linrank.load(tmp_path / "t.parquet")


def test_ids_do_not_change_with_the_frame():
    ids, names = np.array([1, 1, 2]), np.frombuffer(b"abc", np.uint8).copy()
    docids = pa.Array.from_buffers(
        pa.large_string(), 3, [None, pa.py_buffer(np.arange(4)), pa.py_buffer(names)]
    )
    data = load(qid=pa.array(ids), docid=docids)
    ids[:], names[:] = 9, ord("z")
    assert data.qid.tolist() == [1, 1, 2]
    assert data.docids == ["a", "b", "c"]


def test_chunks_are_joined_as_what_has_room_for_all(monkeypatch):
    """Plain string arrays end at 2 GiB, all document ids of a table need not."""
    joined = []
    one_array = columns.one_array
    monkeypatch.setattr(columns, "one_array", lambda c: joined.append(str(c.type)) or one_array(c))
    column = pa.chunked_array([["a"], ["b", None]])
    assert values.as_docids(column, "d", "t")[1] == "b"
    assert values.as_query_ids(pa.chunked_array([["a"], ["b"]]), "q", "t").tolist() == ["a", "b"]
    assert joined[0] == "large_string"
    assert joined[1].startswith("dictionary<values=string")


def vector(indices, entry=1):
    kind = [("type", pa.int8()), ("size", pa.int32()), ("indices", indices)]
    row = {"type": 0, "size": 3, "indices": entry, "values": [1.0, 2.0]}
    return pa.array([row] * 3, pa.struct([*kind, ("values", pa.list_(pa.float64()))]))


@pytest.mark.parametrize(
    "column",
    [vector(pa.int32()), vector(pa.list_(pa.string()), entry=["a", "b"])],
)
def test_structs_that_only_look_like_vectors_are_none(column):
    (found,) = columns_of(pa.table({"features": column}).schema, "t")
    assert found.kind == "other"


def test_an_index_that_is_missing_is_a_fault():
    with pytest.raises(DataFormatError, match=r"the vector of row 0 .* has the index -1"):
        linrank.load(
            pa.table(
                {"label": [0, 1, 2], "features": vector(pa.list_(pa.int32()), entry=[None, 2])}
            )
        )


def test_values_between_words_are_copied():
    raw = pa.py_buffer(b"\0" + np.array([1.5, 2.5]).tobytes()).slice(1)
    found = plain_numbers(pa.Array.from_buffers(pa.float64(), 2, [None, raw]))[0]
    assert found.flags.aligned
    assert found.tolist() == [1.5, 2.5]


def test_blanks_around_names_hide_no_query_id():
    data = load_csv(b"label, qid, f\n0,1,2.5\n1,1,3\n")
    assert data.qid.tolist() == [1, 1]
    assert data.feature_names == (" f",)
    with pytest.raises(ValueError, match="the column ' qid' would be a feature"):
        load_csv(b"label, qid, f\n0,1,2.5\n1,1,3\n", qid=False)


@pytest.mark.parametrize(
    ("ids", "found"),
    [
        ((2**63 - 1, -(2**63)), [2**63 - 1, -(2**63)]),
        ((2**63, 1), [str(2**63), "1"]),
        ((-(2**63) - 1, 1), [str(-(2**63) - 1), "1"]),
    ],
)
def test_ids_of_text_are_integers_as_far_as_64_bits_go(ids, found):
    text = "label,qid,f\n0,{},1\n1,{},2\n".format(*ids).encode()
    assert load_csv(text).qid.tolist() == found


def test_true_and_false_are_numbers():
    data = load_csv(b"label,f\ntrue,false\nfalse,true\n1,\n", missing="keep")
    assert data.labels.tolist() == [1, 0, 1]
    assert np.array_equal(data.X, [[0], [1], [np.nan]], equal_nan=True)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"label,f", "no rows"),
        (b"label,f\n", "no rows"),
        ("label,fé\n0,1\n".encode("latin-1"), "not UTF-8"),
        (b"x" * 5000, "a line has more than"),
    ],
)
def test_text_that_is_no_table(text, message, monkeypatch):
    monkeypatch.setattr(files, "_PROBE", 1000)
    monkeypatch.setattr(files, "LONGEST_LINE", 2000)
    with pytest.raises(DataFormatError, match=message):
        load_csv(text)


def test_the_first_memory_of_a_matrix_does_not_grow_with_its_columns():
    """Of a text the rows are not known: 4096 of them took 3 GB for two of 200,000 columns."""
    table = SimpleNamespace(name="t.csv", n_rows=None)
    few, many = (DenseReader(table, ["x"], True, np.dtype(np.float64), 1) for _ in range(2))
    few._start(2)
    many._start(10_000_000)
    assert few._rows(0, 1).base.nbytes <= 16 << 20
    assert many._rows(0, 1).base.nbytes == 80_000_000


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_lines_longer_than_what_is_looked_at(monkeypatch, end):
    monkeypatch.setattr(files, "_PROBE", 1000)
    monkeypatch.setattr(files, "_BLOCK", 1000)
    lines = [b"label," + b",".join(b"f%d" % j for j in range(300))]
    lines += [b",".join([b"0.123456789"] * 301)] * 5
    assert load_csv(end.join(lines) + end).X.shape == (5, 300)


def test_names_of_columns_twice_in_a_frame():
    with pytest.raises(DataFormatError, match="several columns are named 'f'; rename"):
        linrank.load(pd.DataFrame([[0, 1.0, 2.0]], columns=["label", "f", "f"]))


def test_floats_that_two_roundings_would_change_survive_csv(tmp_path):
    # 7.038531e-26 is the shortest decimal of the first; the double nearest to it is halfway.
    bits = np.array([363742205, 1036831949, -(2**31), 1], np.int32)
    data = Dataset.of(bits.view(np.float32)[:, None], [0, 1, 2, 3])
    write(data, tmp_path / "t.csv", "csv")
    assert linrank.load(tmp_path / "t.csv").X.view(np.int32).ravel().tolist() == bits.tolist()
    assert "1,0.1\n" in (tmp_path / "t.csv").read_text()
