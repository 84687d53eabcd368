"""Tables of every format into datasets: values, ids, types, what other programs write, faults."""

import datetime
import decimal
import gzip
import io
import itertools
import logging
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import linrank
from hypothesis_profiles import examples
from linrank import DataFormatError, Dataset
from linrank.io import columns
from linrank.io import table_files as files
from linrank.io.columns import as_docids, as_query_ids, columns_of, plain_numbers
from linrank.io.table_reader import DenseReader
from linrank.io.write import write
from table_files import ENDINGS, TABLE, write_table


def check(data):
    assert data.feature_names == ("bm25", "clicks")
    assert data.X.dtype == np.float32
    expected = np.array([TABLE["bm25"], TABLE["clicks"]], np.float32).T
    assert data.X.tobytes() == np.ascontiguousarray(expected).tobytes()
    assert data.y.tolist() == [2, 0, 1, 1, 0]
    assert data.qid.tolist() == [7, 7, 3, 7, 3]
    assert data.qid.dtype.kind == "i"
    assert data.docids == ["a b", "c,d", 'e"f', "g\nh", "ü"]
    assert data.weight.tolist() == [1.0, 2.0, 0.5, 1.0, 1.0]
    assert data.position.tolist() == [1, 2, 3, 4, 5]
    assert data.queries.n_queries == 2


@pytest.mark.parametrize("ending", ENDINGS)
def test_the_same_data_from_every_format(tmp_path, ending, caplog):
    path = write_table(TABLE, tmp_path / f"t.{ending}", rows_per_batch=2)
    with caplog.at_level(logging.INFO, "linrank"):
        data = linrank.load(path)
    check(data)
    assert "left out: url (text)" in caplog.text
    assert str(path) in repr(data)
    kind = {"arrows": "arrow"}.get(ending, ending)
    check(linrank.load(io.BytesIO(path.read_bytes()), format=kind))
    with open(path, "rb") as file:
        check(linrank.load(file))
    check(linrank.load(path, n_jobs=1))


@pytest.mark.parametrize("ending", ["csv.gz", "TSV.gz"])
def test_compressed_text_by_its_name(tmp_path, ending):
    plain = write_table(TABLE, tmp_path / f"t.{ending.lower()[:3]}")
    (tmp_path / f"u.{ending}").write_bytes(gzip.compress(plain.read_bytes()))
    check(linrank.load(tmp_path / f"u.{ending}"))


def test_a_folder_of_parquet_files_is_one_table(tmp_path):
    """As Spark writes it: parts in the order of their names, and files that are no data."""
    folder = tmp_path / "t.parquet"
    folder.mkdir()
    write_table(TABLE.slice(0, 3), folder / "part-00000-x.parquet")
    write_table(TABLE.slice(3), folder / "part-00001-x.parquet")
    (folder / "_SUCCESS").touch()
    check(linrank.load(folder))
    write_table(TABLE.drop_columns(["clicks"]), folder / "part-00002-x.parquet")
    with pytest.raises(DataFormatError, match=r"part-00002-x.parquet: its columns or their types"):
        linrank.load(folder)


@pytest.mark.parametrize(
    "frame",
    [
        TABLE,
        TABLE.to_pandas(),
        TABLE.to_pandas().astype({"qid": "category", "docno": "category"}),
        pl.from_arrow(TABLE),
        TABLE.combine_chunks().to_batches()[0],
    ],
)
def test_frames(frame):
    check(linrank.load(frame))


def test_a_pipe_and_standard_input_lose_no_byte(tmp_path):
    code = "import linrank; print(linrank.load('-', {}).y.tolist())"
    for name, options in (("t.arrows", ""), ("t.csv", "format='csv'")):
        path = write_table(TABLE, tmp_path / name)
        command = [sys.executable, "-c", code.format(options)]
        pipe = subprocess.Popen(["cat", path], stdout=subprocess.PIPE).stdout
        found = subprocess.check_output(command, stdin=pipe, text=True)
        assert found == "[2.0, 0.0, 1.0, 1.0, 0.0]\n"


def test_reading_files_does_not_load_pandas(tmp_path):
    """Half a second that a command would wait for."""
    paths = [str(write_table(TABLE, tmp_path / f"t.{ending}")) for ending in ENDINGS]
    code = f"import linrank, sys\nfor p in {paths}: linrank.load(p)\nprint('pandas' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "False\n"


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        *((pa.array([1, 0], kind()), "float32") for kind in (pa.float32, pa.float16)),
        *((pa.array([1, 0], kind()), "float64") for kind in (pa.float64, pa.int8, pa.uint64)),
        (pa.array([True, False]), "float32"),
        (pa.array([decimal.Decimal(1), decimal.Decimal(0)]), "float64"),
    ],
)
def test_the_type_of_the_matrix_follows_the_columns(values, dtype):
    table = pa.table({"y": [1, 0], "a": pa.array([0.5, 1], pa.float32()), "b": values})
    data = linrank.load(table)
    assert data.X.dtype == dtype
    assert data.X.tolist() == [[0.5, 1.0], [1.0, 0.0]]
    assert linrank.load(table, dtype="float32").X.dtype == np.float32
    whole = linrank.load(table, features="b").X.dtype
    assert whole == ("float64" if pa.types.is_boolean(values.type) else dtype)


# ---- ids -----------------------------------------------------------------------------------------


def load(**columns):
    return linrank.load(pa.table({"label": [0.0, 1.0, 2.0], "f": [1.0, 2.0, 3.0], **columns}))


def load_csv(text, **options):
    return linrank.load(io.BytesIO(text), format="csv", **options)


def category(codes, kinds):
    return pa.DictionaryArray.from_arrays(pa.array(codes), kinds)


@pytest.mark.parametrize(
    ("ids", "found"),
    [
        (["b", "a", "b"], ["b", "a", "b"]),
        (["07", "7", "07"], ["07", "7", "07"]),
        (pa.array([1.0, 2.0, 1.0]), [1, 2, 1]),
        (pa.array([2**63, 1, 2**63], pa.uint64()), [2**63, 1, 2**63]),
        (pa.array([datetime.date(2026, 1, 2)] * 3), ["2026-01-02"] * 3),
        (pa.array([b"q1", b"q1", "é".encode()]), ["q1", "q1", "é"]),
        (category([1, 1, 0], pa.array(["x", "y"])), ["y", "y", "x"]),
        (category([1, 1, 0], pa.array([b"x", b"y"])), ["y", "y", "x"]),
        (category([0, 1, 1], pa.array([5.0, 6.0])), [5, 6, 6]),
        (category([0, 1, 1], pa.array([2**63, 7], pa.uint64())), [2**63, 7, 7]),
        # Dictionaries that differ between batches.
        (
            pa.chunked_array([pa.array(part).dictionary_encode() for part in (["a", "b"], ["c"])]),
            ["a", "b", "c"],
        ),
    ],
)
def test_query_ids_are_what_they_stand_for(ids, found):
    data = load(qid=ids)
    assert data.qid.tolist() == found
    assert data.queries.n_queries == len(set(found))


NO_TEXT = pa.Array.from_buffers(pa.string(), 3, pa.array([b"a", b"\xff", b"b"]).buffers())


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        (category([0, 1, 1], pa.array([5, None])), "the qid of row 1 .* is missing"),
        (category([0, 1, 1], pa.array([5.0, None])), "the qid of row 1 .* is missing"),
        (pa.array([b"a", b"\xff", b"b"]), "ids are numbers or strings"),
        (NO_TEXT, "the qid column 'qid' holds text that is not UTF-8"),
        (pa.RunEndEncodedArray.from_arrays([3], [5]), "ids are numbers or strings"),
    ],
)
def test_query_ids_that_are_none(ids, message):
    with pytest.raises(DataFormatError, match=message):
        load(qid=ids)


@pytest.mark.parametrize(
    ("ids", "found"),
    [
        (("7", "-3"), [7, -3]),
        (("07", "7"), ["07", "7"]),
        (("7", "x"), ["7", "x"]),
        ((2**63 - 1, -(2**63)), [2**63 - 1, -(2**63)]),
        ((2**63, 1), [str(2**63), "1"]),
        ((-(2**63) - 1, 1), [str(-(2**63) - 1), "1"]),
    ],
)
def test_ids_of_text_are_integers_if_all_are_written_so_and_have_64_bits(ids, found):
    text = "label,qid,f\n0,{},1\n1,{},2\n".format(*ids).encode()
    assert load_csv(text).qid.tolist() == found


def test_ids_do_not_change_with_the_frame():
    ids, names = np.array([1, 1, 2]), np.frombuffer(b"abc", np.uint8).copy()
    buffers = [None, pa.py_buffer(np.arange(4)), pa.py_buffer(names)]
    docids = pa.Array.from_buffers(pa.large_string(), 3, buffers)
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
    assert as_docids(column, "d", "t")[1] == "b"
    assert as_query_ids(pa.chunked_array([["a"], ["b"]]), "q", "t").tolist() == ["a", "b"]
    assert joined[0] == "large_string"
    assert joined[1].startswith("dictionary<values=string")


# ---- rows in one column --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kind", [pa.list_(pa.float32()), pa.large_list(pa.float32()), pa.list_(pa.float32(), 3)]
)
def test_one_column_of_lists(tmp_path, kind):
    rows = [[1, 2, 3], [4, 5, 6], [7, 8, 9]]
    table = pa.table({"label": [1, 0, 2], "features": pa.array(rows, kind), "age": [1, 2, 3]})
    for source in (table, write_table(table, tmp_path / "t.parquet", 2), table.slice(0)):
        data = linrank.load(source)
        assert (data.X.tolist(), data.X.dtype, data.feature_names) == (rows, np.float32, None)
    assert linrank.load(table.slice(1)).X.tolist() == rows[1:]
    assert linrank.load(table, features="age").X.tolist() == [[1], [2], [3]]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([[1.0, 2], [3.0], [4.0, 5]], "list of row 1 in the column 'features' has 1 .* have 2"),
        ([[1.0, 2], None], "row 1 has no list"),
        ([[], []], "list of row 0 is empty"),
        ([[1.0, np.inf]], r"row 0, column 'features\[1\]' is infinite"),
    ],
)
def test_lists_must_have_one_length(rows, message):
    lists = pa.array(rows, pa.list_(pa.float64()))
    with pytest.raises(DataFormatError, match=message):
        linrank.load(pa.table({"y": range(len(rows)), "features": lists}))


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
    full = np.zeros((3, 40))
    full[0, 3], full[0, 39], full[2, 0] = 1, 2, 5
    data = linrank.load(table)
    assert data.rows.is_sparse
    assert (data.X.toarray() == full).all()
    assert (full == linrank.load(table, storage="dense").X).all()
    assert (linrank.load(table.slice(1)).X.toarray() == full[1:]).all()
    mixed = vectors(dense(1.0, 0.0, 2.0), sparse(3, [1], [4.0]), dense(0.0, 7.0, 0.0))
    assert linrank.load(mixed, storage="dense").X.tolist() == [[1, 0, 2], [0, 4, 0], [0, 7, 0]]


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
        ([sparse(3, [None, 2], [1.0, 2.0])], r"row 0 .* has the index -1"),
    ],
)
def test_vectors_at_fault(rows, message):
    with pytest.raises(DataFormatError, match=message):
        linrank.load(vectors(*rows))


@pytest.mark.parametrize(
    ("kind", "indices"), [(pa.int32(), 1), (pa.list_(pa.string()), ["a", "b"])]
)
def test_structs_that_only_look_like_vectors_are_none(kind, indices):
    fields = [("type", pa.int8()), ("size", pa.int32()), ("indices", kind)]
    kind = pa.struct([*fields, ("values", pa.list_(pa.float64()))])
    column = pa.array([sparse(3, indices, [1.0, 2.0])], kind)
    (found,) = columns_of(pa.table({"features": column}).schema, "t")
    assert found.kind == "other"


# ---- text and other oddities ---------------------------------------------------------------------


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


def test_true_and_false_are_numbers():
    data = load_csv(b"label,f\ntrue,false\nfalse,true\n1,\n", missing="keep")
    assert data.labels.tolist() == [1, 0, 1]
    assert np.array_equal(data.X, [[0], [1], [np.nan]], equal_nan=True)


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


@pytest.mark.parametrize("ending", ["parquet", "arrow", "csv"])
def test_missing_values_by_policy(tmp_path, ending):
    table = pa.table({"y": [1, 0, 2], "a": [1.0, None, 4.0], "b": pa.array([None, 5.0, 6.0])})
    path = write_table(table, tmp_path / f"t.{ending}")
    with pytest.raises(DataFormatError, match=r"row 0, column 'b' is missing; .*missing='zero'"):
        linrank.load(path)
    assert linrank.load(path, missing="zero").X.tolist() == [[1, 0], [0, 5], [4, 6]]
    assert linrank.load(path, missing="mean").X.tolist() == [[1, 5.5], [2.5, 5], [4, 6]]
    nulls = pa.table({"y": [1, 0], "a": [np.nan, 1.0], "b": pa.nulls(2)})
    assert linrank.load(nulls, missing="zero").X.tolist() == [[0, 0], [1, 0]]
    told = linrank.load(path, missing="indicator")
    assert told.X.tolist() == [[1, 0, 0, 1], [0, 5, 1, 0], [4, 6, 0, 0]]
    assert told.feature_names == ("a", "b", "missing(a)", "missing(b)")
    assert np.isnan(linrank.load(path, missing="keep").X).sum() == 2
    with pytest.raises(ValueError, match="missing must be"):
        linrank.load(path, missing="median")


@examples(40)
@given(
    hnp.arrays(np.float32, st.tuples(st.integers(1, 40), st.integers(1, 20)),
               elements=st.floats(width=32, allow_infinity=False)),
    st.integers(0, 5),
)  # fmt: skip
def test_slices_with_nulls_against_a_plain_loop(values, start):
    """Arrow arrays that begin in the middle of their bits; NaN becomes null."""
    start = min(start, len(values) - 1)
    columns = {f"f{j}": pa.array(values[:, j], from_pandas=True) for j in range(values.shape[1])}
    table = pa.table({"label": np.arange(len(values)), **columns}).slice(start)
    found = linrank.load(table, missing="keep").X
    expected = np.where(np.isnan(values), np.float32(np.nan), values)[start:]
    assert found.tobytes() == np.ascontiguousarray(expected).tobytes()


def test_infinity_is_refused_with_its_place(tmp_path):
    table = pa.table({"y": [1, 0, 1], "a": [1.0, 2.0, 3.0], "b": [1.0, 2.0, -np.inf]})
    for ending, missing in itertools.product(("parquet", "csv"), ("error", "zero")):
        path = write_table(table, tmp_path / f"t.{ending}", 2)
        with pytest.raises(DataFormatError, match=r"row 2, column 'b' is infinite"):
            linrank.load(path, missing=missing)
    with pytest.raises(DataFormatError, match=r"column 'b'.* too large .*dtype='float64'"):
        linrank.load(pa.table({"y": [1], "b": [1e39]}), dtype="float32")


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"label": ["good", "bad"], "x": [1, 2]}, "label column 'label' is text .*value is 'good'"),
        ({"label": [1, None], "x": [1, 2]}, r"label of row 1 \(column 'label'\) is missing"),
        ({"label": [1.0, np.inf], "x": [1, 2]}, "label of row 1 .* is inf"),
        ({"label": [1, 0], "qid": ["a", None], "x": [1, 2]}, "qid of row 1 .* is missing"),
        ({"label": [1, 0], "qid": [np.nan, 1.0], "x": [1, 2]}, "qid of row 0 .* is missing"),
        ({"label": [1, 0], "qid": [[1], [2]], "x": [1, 2]}, "qid column 'qid' is list"),
        ({"label": [1, 0], "docid": [[1], [2]], "x": [1, 2]}, "docid column 'docid' is list"),
        ({"y": [1, 0], "sample_weight": ["a", "b"], "x": [1, 2]}, "weight column .* is text"),
        ({"label": pa.nulls(0, pa.int8()), "x": pa.nulls(0, pa.int8())}, "no rows"),
        ({"y": [1, 0], "sample_weight": [1.0, -1.0], "x": [1, 2]}, "be >= 0, got -1.0 at row 1"),
    ],
)
def test_columns_at_fault(columns, message):
    with pytest.raises(ValueError, match=message):
        linrank.load(pa.table(columns))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "empty"),
        (b"\n", "empty"),
        (b"1,2,3\n4,5,6\n", "the first line, 1, 2, 3, ..., holds numbers"),
        (b"y;x\n1;2\n", "the first line has no ',' but ';'"),
        (b"y,x\n", "no rows"),
        (b"y,x", "no rows"),
        ("label,fé\n0,1\n".encode("latin-1"), "not UTF-8"),
        (b"x" * 5000, "a line has more than"),
        (b"y,x\n1,2\n3\n", "t.csv:3: a line with 1 fields, the first line has 2"),
        (b"y,x\n1,2,3\n", "t.csv:2: a line with 3 fields"),
        (b"y,qid,x\n1,,2\n", "qid of row 0 .* is missing"),
        (b",y,x\n0,1,2\n", r"column 0 .* has no name.*index=False"),
        (b"y,x,x\n0,1,2\n", "2 columns are named 'x'"),
        (b"y,qid,x\nlow,a,2\n1,a,3\n", "label column 'y' is text .* the first value is 'low'"),
    ],
)
def test_csv_at_fault(tmp_path, monkeypatch, text, message):
    monkeypatch.setattr(files, "_PROBE", 1000)
    monkeypatch.setattr(files, "LONGEST_LINE", 2000)
    (tmp_path / "t.csv").write_bytes(text)
    with pytest.raises(DataFormatError, match=message):
        linrank.load(tmp_path / "t.csv")


def test_a_slip_among_numbers_costs_no_feature(tmp_path):
    (tmp_path / "t.csv").write_text("".join(["y,x,u\n", *("1,2.5,3\n" * 20), "1,2.5x,a\n"]))
    with pytest.raises(DataFormatError, match=r"t.csv:22: the column 'x' holds '2.5x'"):
        linrank.load(tmp_path / "t.csv", features="x")


def test_a_word_behind_the_first_megabyte_is_named_with_its_line(tmp_path):
    lines = ["y,u,x\n", *(f"{i % 3},a,{i}.5\n" for i in range(120_000)), "1,a,oops\n"]
    (tmp_path / "t.csv").write_text("".join(lines))
    with pytest.raises(DataFormatError, match=r"t.csv:120002: the column 'x' holds 'oops'"):
        linrank.load(tmp_path / "t.csv")


def test_options_of_the_other_kind_are_refused(tmp_path):
    (tmp_path / "t.txt").write_text("1 qid:1 1:2\n")
    for source, options, message in (
        (tmp_path / "t.txt", {"label": "y"}, r"label= is for tables, and .*t.txt is SVMlight text"),
        (tmp_path / "t.txt", {"format": "paquet"}, "did you mean 'parquet'"),
        (TABLE, {"zero_based": True}, "zero_based"),
        (TABLE, {"n_features": 3}, "2 features, n_features=3"),
    ):
        with pytest.raises(ValueError, match=message):
            linrank.load(source, **options)


@pytest.mark.parametrize("ending", ["parquet", "arrow", "arrows"])
def test_damaged_files_are_refused_or_read(tmp_path, ending):
    """Cut short or with a byte changed: a dataset, or one of our errors, never anything else."""
    rng, damaged = np.random.default_rng(5), tmp_path / f"damaged.{ending}"
    columns = {"label": rng.integers(0, 3, 64), "x": rng.normal(size=64)}
    columns["qid"] = pa.array([f"q{i // 8}" for i in range(64)]).dictionary_encode()
    columns["docno"] = [f"d{i}" for i in range(64)]
    whole = write_table(pa.table(columns), tmp_path / f"whole.{ending}", 16).read_bytes()
    n_refused = 0
    for k in range(120):
        data = bytearray(whole)
        if k % 2:
            del data[int(rng.integers(8, len(data))) :]
        else:
            data[int(rng.integers(8, len(data)))] ^= int(rng.integers(1, 256))
        damaged.write_bytes(data)
        try:
            linrank.load(damaged, missing="keep")
        except (ValueError, MemoryError) as error:
            assert "damaged." in str(error)  # noqa: PT017
            n_refused += isinstance(error, DataFormatError)
    assert n_refused > 30


def test_the_size_in_the_metadata_is_checked_before_memory_is_taken(tmp_path, monkeypatch):
    monkeypatch.setattr("linrank.system.resources.available", lambda: 39)
    path = write_table(TABLE, tmp_path / "t.parquet")
    with pytest.raises(MemoryError, match=r"t.parquet: 5 × 2 float32 would take 40 B"):
        linrank.load(path)


def test_without_pyarrow_the_extra_is_named(tmp_path, monkeypatch):
    path = write_table(TABLE, tmp_path / "t.parquet")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"pip install pyarrow"):
        linrank.load(path)
