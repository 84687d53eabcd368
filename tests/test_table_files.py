"""Tables of every format into datasets: values, ids, types."""

from __future__ import annotations

import datetime
import decimal
import gzip
import io
import logging
import subprocess
import sys

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import linrank
from linrank.errors import DataFormatError
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


def test_frames():
    check(linrank.load(TABLE))
    check(linrank.load(TABLE.to_pandas()))
    check(linrank.load(pl.from_arrow(TABLE)))
    check(linrank.load(TABLE.combine_chunks().to_batches()[0]))
    frame = TABLE.to_pandas().astype({"qid": "category", "docno": "category"})
    assert linrank.load(frame).qid.tolist() == [7, 7, 3, 7, 3]
    assert linrank.load(frame).docids[0] == "a b"


def test_a_pipe_and_standard_input_lose_no_byte(tmp_path):
    code = "import linrank; print(linrank.load('-', {}).y.tolist())"
    for name, options in (("t.arrows", ""), ("t.csv", "format='csv'")):
        path = write_table(TABLE, tmp_path / name)
        run = subprocess.run(
            [sys.executable, "-c", code.format(options)],
            stdin=subprocess.Popen(["cat", path], stdout=subprocess.PIPE).stdout,
            capture_output=True,
            text=True,
            check=True,
        )
        assert run.stdout == "[2.0, 0.0, 1.0, 1.0, 0.0]\n"


def test_reading_files_does_not_load_pandas(tmp_path):
    """Half a second that a command would wait for."""
    paths = [str(write_table(TABLE, tmp_path / f"t.{ending}")) for ending in ENDINGS]
    code = f"import linrank, sys\nfor p in {paths}: linrank.load(p)\nprint('pandas' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "False\n"


@pytest.mark.parametrize(
    ("type", "dtype"),
    [
        (pa.float32(), "float32"),
        (pa.float16(), "float32"),
        (pa.float64(), "float64"),
        (pa.int8(), "float64"),
        (pa.uint64(), "float64"),
        (pa.bool_(), "float32"),
        (pa.decimal128(5, 2), "float64"),
    ],
)
def test_the_type_of_the_matrix_follows_the_columns(type, dtype):
    values = [decimal.Decimal(v) for v in (1, 0)] if "decimal" in str(type) else [1, 0]
    values = np.array(values, np.float16) if type == pa.float16() else values
    values = [True, False] if type == pa.bool_() else values
    table = pa.table(
        {"y": [1, 0], "a": pa.array([0.5, 1], pa.float32()), "b": pa.array(values, type)}
    )
    data = linrank.load(table)
    assert data.X.dtype == dtype
    assert data.X.tolist() == [[0.5, 1.0], [1.0, 0.0]]
    assert linrank.load(table, dtype="float32").X.dtype == np.float32


def test_integers_alone_are_float64():
    assert linrank.load(pa.table({"y": [1, 0], "b": [True, False]})).X.dtype == np.float64


@pytest.mark.parametrize(
    ("ids", "found"),
    [
        (["b", "a", "b"], ["b", "a", "b"]),
        (pa.array(["b", "a", "b"]).dictionary_encode(), ["b", "a", "b"]),
        (pa.array([1.0, 2.0, 1.0]), [1, 2, 1]),
        (pa.array([2**63, 1, 2**63], pa.uint64()), [2**63, 1, 2**63]),
        (["07", "7", "07"], ["07", "7", "07"]),
        (pa.array([datetime.date(2026, 1, 2)] * 3), ["2026-01-02"] * 3),
    ],
)
def test_ids_of_any_type(ids, found):
    data = linrank.load(pa.table({"y": [1, 0, 2], "qid": ids, "x": [1.0, 2.0, 3.0]}))
    assert data.qid.tolist() == found
    assert data.queries.n_queries == len(set(found))


def test_ids_of_text_are_integers_only_if_all_are_written_so():
    read = lambda ids: linrank.load(  # noqa: E731
        io.BytesIO("".join(["qid,y,x\n", *(f"{i},1,2\n" for i in ids)]).encode()), format="csv"
    ).qid.tolist()
    assert read(["7", "-3", "0"]) == [7, -3, 0]
    assert read(["07", "7"]) == ["07", "7"]
    assert read(["7", "x"]) == ["7", "x"]


def test_dictionaries_that_differ_between_batches():
    parts = [["a", "b"], ["b", "c"]]
    chunks = [pa.array(part).dictionary_encode() for part in parts]
    table = pa.table({"y": [1, 0, 1, 0], "qid": pa.chunked_array(chunks), "x": [1.0, 2, 3, 4]})
    assert linrank.load(table).qid.tolist() == ["a", "b", "b", "c"]


def test_no_label_is_zero_everywhere():
    data = linrank.load(pa.table({"qid": [1, 1], "x": [1.0, 2.0]}), label=False)
    assert data.y.tolist() == [0.0, 0.0]
