"""Data sets into files: text that reads back to the same bits, tables, nothing half-written."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
from dataclasses import replace

import numpy as np
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from scipy import sparse

from hypothesis_profiles import examples
from linrank import Dataset, load
from linrank.data.words import Comments, Words
from linrank.io import write as writing
from linrank.io.formats import target_format
from linrank.io.write import write
from stored_data import assert_rows, dense
from strategies import datasets

pa = pytest.importorskip("pyarrow")
EXTREMES = [0.0, -0.0, 1e-45, -1.1754944e-38, 3.4028235e38, 0.1, 1 / 3, 2.0**24, 1e-7, 123456.789]


def with_comments(data: Dataset, comments: list[str]) -> Dataset:
    words = Words.of(comments)
    return replace(data, comments=Comments(words.text, words.offsets))


@examples(40)
@given(datasets(weights=True), st.sampled_from(["auto", "dense", "csr"]))
def test_text_reads_back(tmp_path_factory, data, storage):
    path = tmp_path_factory.mktemp("text") / "data.txt"
    written = write(data, path, "svmlight", storage=storage, n_jobs=1)
    found = load(path, dtype=data.rows.dtype)
    assert_rows(found, data)
    assert (written.n_rows, written.n_features) == data.rows.shape
    assert written.nbytes == path.stat().st_size


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("base", [0, 1])
def test_extremes_and_the_first_number_survive_text(tmp_path, dtype, base):
    x = np.array([EXTREMES, EXTREMES[::-1]], dtype)
    if dtype == "float64":
        x = np.hstack([x, [[5e-324, -1.7976931348623157e308]] * 2])
    data = replace(Dataset.of(x, [-0.5, 1e300], qid=["a", "b"]), index_base=base)
    write(data, tmp_path / "data.txt", "svmlight")
    found = load(tmp_path / "data.txt", dtype=dtype, storage="dense")
    assert found.X.tobytes() == x.tobytes()
    assert (found.index_base, found.qid.tolist()) == (base, ["a", "b"])
    assert found.labels.tolist() == [-0.5, 1e300]


def test_text_names_the_last_feature_and_feature_0_and_keeps_comments(tmp_path):
    x = sparse.csr_array(([1.5], ([1], [2])), shape=(3, 6))
    data = replace(Dataset.of(x, [0, 1, 2], qid=[1, 1, 2]), index_base=0)
    comments = ["docid = GX-1 inc = 1", "", "7555 rambo ü"]
    write(with_comments(data, comments), tmp_path / "data.txt", "svmlight")
    lines = ["0 qid:1 0:0 5:0 # docid = GX-1 inc = 1", "1 qid:1 2:1.5", "2 qid:2 # 7555 rambo ü"]
    assert (tmp_path / "data.txt").read_text().splitlines() == lines
    found = load(tmp_path / "data.txt", dtype="float64")
    assert (found.n_features, found.index_base) == (6, 0)
    assert found.comments.tolist() == comments
    assert found.docids == ["GX-1", None, "7555"]


@pytest.mark.parametrize(
    ("qid", "message"),
    [
        (["a", "b c"], "the query id of row 1 is 'b c'"),
        (["a", ""], "the query id of row 1 is ''"),
        (["a#", "b"], "the query id of row 0 is 'a#'"),
        (["a\n", "b"], r"the query id of row 0 is 'a\\n'"),
        ([1, "1"], "query ids are of type int, str"),
    ],
)
def test_ids_that_text_cannot_hold_are_refused(tmp_path, qid, message):
    data = Dataset.of([[1.0], [2.0]], [0, 1], qid=qid)
    with pytest.raises((TypeError, ValueError), match=message):
        write(data, tmp_path / "data.txt", "svmlight")
    assert os.listdir(tmp_path) == []


def full(dtype="float32") -> Dataset:
    data = Dataset.of(
        np.array([[1, 0.1], [2, -0.0], [3, 1e-7]], dtype),
        [0, 1, 2],
        qid=["a,b", 'say "no"', "two\nlines ü"],
        sample_weight=[1, 0.5, 2],
        feature_names=["bm25", 'odd, "name"'],
    )
    return with_comments(data, ["docid = x", "", "docid = y"])


def read_table(path, name):
    import pyarrow.csv
    import pyarrow.feather
    import pyarrow.parquet

    if name == "parquet":
        return pyarrow.parquet.read_table(path)
    if name == "arrow":
        return pyarrow.feather.read_table(path)
    parse = pyarrow.csv.ParseOptions(
        delimiter="," if name == "csv" else "\t", newlines_in_values=True
    )
    kinds = {"bm25": pa.float32(), 'odd, "name"': pa.float32(), "label": pa.float64()}
    convert = pyarrow.csv.ConvertOptions(column_types=kinds, strings_can_be_null=True)
    return pyarrow.csv.read_csv(path, parse_options=parse, convert_options=convert)


@pytest.mark.parametrize("name", ["parquet", "arrow", "csv", "tsv"])
def test_tables_have_a_column_for_everything(tmp_path, name):
    data = full()
    write(data, tmp_path / "data", name)
    table = read_table(tmp_path / "data", name)
    assert table.column_names == ["label", "qid", "docid", "sample_weight", *data.feature_names]
    assert table.column("qid").to_pylist() == data.qid.tolist()
    assert table.column("docid").to_pylist() == ["x", None, "y"]
    assert table.column("sample_weight").to_pylist() == [1, 0.5, 2]
    assert table.schema.field("bm25").type == pa.float32()
    found = np.column_stack([table.column(n).to_numpy() for n in data.feature_names])
    assert found.astype(np.float32).tobytes() == data.X.tobytes()
    numbered = replace(Dataset.of(np.eye(2), [0, 1], qid=[2**60, 5]), index_base=1)
    write(numbered, tmp_path / "data", name, overwrite=True)
    table = read_table(tmp_path / "data", name)
    assert table.column_names == ["label", "qid", "f1", "f2"]
    assert table.column("qid").to_pylist() == [2**60, 5]


def test_missing_values_are_null_in_tables_and_refused_in_text(tmp_path):
    data = full()
    rows = replace(data.rows, values=np.where(data.X == 2, np.float32(np.nan), data.X))
    missing = replace(data, rows=rows, qid=None)
    for name in ("parquet", "csv"):
        write(missing, tmp_path / name, name)
        found = read_table(tmp_path / name, name)
        assert found.column("bm25").to_pylist() == [1, None, 3]
        assert found.column('odd, "name"').null_count == 0
    with pytest.raises(ValueError, match="row 1, feature 1 is missing, which SVMlight text"):
        write(missing, tmp_path / "data.txt", "svmlight")
    assert sorted(os.listdir(tmp_path)) == ["csv", "parquet"]


@examples(20)
@given(datasets(storages=("csr",)))
def test_sparse_rows_are_vectors_of_spark(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("table") / "data"
    write(data, path, "parquet")
    vectors = read_table(path, "parquet").column("features").to_pylist()
    x = np.zeros(data.rows.shape, data.rows.dtype)
    for i, vector in enumerate(vectors):
        assert (vector["type"], vector["size"]) == (0, data.n_features)
        x[i, vector["indices"]] = vector["values"]
    assert_array_equal(x, dense(data.X))
    write(data, path, "parquet", storage="dense", overwrite=True)
    table = read_table(path, "parquet").drop_columns(["label", "qid"])
    assert_array_equal(np.column_stack([c.to_numpy() for c in table.columns]), x)


def test_parts_and_blocks_make_one_file(tmp_path, monkeypatch):
    data = Dataset.of(np.arange(60.0).reshape(30, 2), np.arange(30), qid=np.arange(30) // 4)
    monkeypatch.setattr(writing, "_BLOCK_BYTES", 5 * 16)
    seen: list[tuple[int, int | None]] = []
    for name in ("svmlight", "parquet", "csv", "arrow"):
        write(data, tmp_path / name, name, progress=lambda *done: seen.append(done))
        parts = (data.select(slice(a, b)) for a, b in ((0, 7), (7, 8), (8, 30)))
        write(parts, tmp_path / f"{name}2", name, n_rows=30)
    assert seen[:6] == [(done, 30) for done in (5, 10, 15, 20, 25, 30)]
    assert (tmp_path / "svmlight").read_bytes() == (tmp_path / "svmlight2").read_bytes()
    for name in ("parquet", "csv", "arrow"):
        whole, joined = (read_table(tmp_path / n, name) for n in (name, f"{name}2"))
        assert whole.equals(joined)
        assert whole.num_rows == 30


def test_parts_must_be_alike(tmp_path):
    first, other = (Dataset.of([[1.0, 2.0]], [0], qid=[q]) for q in (1, "a"))
    with pytest.raises(ValueError, match="id_type is object, but int64 in the parts before"):
        write([first, other], tmp_path / "data.csv", "csv")
    with pytest.raises(ValueError, match="no rows"):
        write([], tmp_path / "data.csv", "csv")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("extension", "opener"), [("gz", gzip), ("bz2", bz2), ("xz", lzma), ("zst", zstandard)]
)
def test_text_is_compressed_by_its_name(tmp_path, extension, opener):
    data = Dataset.of([[1.0], [2.0]], [0, 1], qid=[1, 1])
    path = tmp_path / f"data.txt.{extension}"
    write(data, path, target_format(path))
    content = path.read_bytes()
    assert opener.open(path).read() == b"0 qid:1 1:1\n1 qid:1 1:2\n"
    write(data, path, target_format(path), overwrite=True)
    assert path.read_bytes() == content  # gzip would keep a name, which is random until it is whole
    assert_rows(load(path, dtype="float64"), data)
    path = tmp_path / f"data.csv.{extension}"
    write(data, path, target_format(path))
    assert opener.open(path).read().splitlines() == [b'"label","qid","f1"', b"0,1,1", b"1,1,2"]


def test_files_that_are_there(tmp_path):
    data, path = full(), tmp_path / "data.csv"
    path.write_text("precious")
    with pytest.raises(FileExistsError, match="is there already; name another, or overwrite it"):
        write(data, path, "csv")
    assert path.read_text() == "precious"
    write(data, path, "csv", overwrite=True)
    assert path.read_text().startswith('"label"')
    (tmp_path / "data.csv.weight").write_text("1\n")
    for place, error, message in (
        (path, FileExistsError, r"data\.csv\.weight is there and would be read along"),
        (tmp_path, IsADirectoryError, "is a folder"),
        (tmp_path / "nowhere" / "data.csv", FileNotFoundError, "there is no folder"),
    ):
        with pytest.raises(error, match=message):
            write(data, place, "csv", overwrite=True)


@pytest.mark.parametrize(
    ("names", "message"),
    [(["a", "a"], "two features are called 'a'"), (["a", "qid"], "a feature is called 'qid'")],
)
def test_names_that_a_table_cannot_hold(tmp_path, names, message):
    data = Dataset.of(np.eye(2), [0, 1], qid=[1, 1], feature_names=names)
    with pytest.raises(ValueError, match=message):
        write(data, tmp_path / "data.parquet", "parquet")
    written = write(data, tmp_path / "data.txt", "svmlight")
    assert written.left_out == ("the names of the features",)


def test_judgments(tmp_path):
    data = with_comments(Dataset.of(np.eye(3), [2, 0, 0.5], qid=[7, 7, 9]), ["a", "b", "a"])
    write(data, tmp_path / "data.qrels", "qrels")
    assert (tmp_path / "data.qrels").read_text() == "7 0 a 2\n7 0 b 0\n9 0 a 0.5\n"
    for bad, message in (
        (with_comments(data, ["a", "a", "b"]), "document 'a' of query '7' is in row 1 and"),
        (with_comments(data, ["a", "", "b"]), "row 1 has no document id"),
        (replace(data, comments=None), "the rows have no document ids"),
        (replace(data, qid=None), "the rows have no query ids"),
    ):
        with pytest.raises(ValueError, match=message):
            write(bad, tmp_path / "bad.qrels", "qrels")
    assert os.listdir(tmp_path) == ["data.qrels"]


@pytest.mark.parametrize(
    ("paths", "to", "found"),
    [
        ("a.parquet a.PQ", None, "parquet"),
        ("a.feather", None, "arrow"),
        ("a.csv.gz a.csv.zst", None, "csv"),
        ("a.tab", None, "tsv"),
        ("a.txt", None, "svmlight"),
        ("a.qrels", None, "qrels"),
        ("folder a.store folder.jsonl/ letor4.0", None, "store"),
        ("a.jsonl", "store", "store"),
        ("a", "LETOR", "svmlight"),
        ("-", "csv", "csv"),
    ],
)
def test_formats(paths, to, found):
    assert {target_format(path, to) for path in paths.split()} == {found}


@pytest.mark.parametrize(
    ("paths", "to", "message"),
    [
        ("a", "parket", r"no format 'parket' to write.*did you mean 'parquet'"),
        ("a.gz", "parquet", "only text is compressed as a whole"),
        ("a.parquet.gz a.gz a.zst", None, "only text is compressed as a whole"),
        ("a.jsonl a.xlsx a.csv.zip", None, r"has the extension \.\w+; those that are: \.parquet"),
        ("a.parqet", None, r"end the name in / or \.store; did you mean '\.parquet'"),
        ("-", None, "standard output has no extension"),
    ],
)
def test_formats_that_there_are_not(paths, to, message):
    for path in paths.split():
        with pytest.raises(ValueError, match=message):
            target_format(path, to)
    with pytest.raises(ValueError, match="CSV has no place for sparse rows"):
        write(full(), "a.csv", "csv", storage="csr")
