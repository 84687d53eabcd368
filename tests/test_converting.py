"""convert: from every format into every other, in bounded memory, whole or not at all."""

from __future__ import annotations

import io
import os
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

import linrank
from hypothesis_profiles import examples
from linrank import Dataset, convert, load
from linrank.data.words import Comments, Words
from linrank.io import table_files as parquet
from linrank.io import table_reader as parts
from stored_data import assert_rows, assert_same

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
FILES = ("a.txt", "a.parquet", "a.arrow", "a.csv", "a.tsv.gz", "a.store")
TABLES = ("b.parquet", "b.arrow", "b.csv", "b.tsv.xz")
WORDS = st.text(st.sampled_from("ab7 ,\"'\t\n;ü#|"), min_size=1, max_size=4).map(lambda t: f"i{t}i")
EXTREMES = st.sampled_from([0.0, -0.0, 1e-45, 3.4028235e38, -1.1754944e-38, 0.1, 1 / 3, 16777216.0])


def with_docids(data: Dataset, docids: list[str]) -> Dataset:
    words = Words.of(f"docid = {docid}" for docid in docids)
    return replace(data, comments=Comments(words.text, words.offsets))


@st.composite
def rich_datasets(draw, words=WORDS, dtype="float32"):
    """Queries together, so that stores keep the order; weights, documents and extremes."""
    sizes = draw(st.lists(st.integers(1, 3), min_size=1, max_size=4))
    n_rows, n_features = sum(sizes), draw(st.integers(1, 3))
    ids = draw(st.lists(words, min_size=len(sizes), max_size=len(sizes), unique=True))
    row = st.lists(EXTREMES | st.floats(-2, 2, width=32), min_size=n_features, max_size=n_features)
    X = np.array(draw(st.lists(row, min_size=n_rows, max_size=n_rows)), dtype)
    labels = draw(st.lists(st.sampled_from([0, 1, 2.5, -1e300]), min_size=n_rows, max_size=n_rows))
    weight = draw(st.none() | st.just(np.arange(1, n_rows + 1) / 4))
    names = [f"n{j}" for j in range(n_features)] if draw(st.booleans()) else None
    qid = np.repeat(np.array(ids, dtype=object), sizes)
    return Dataset.of(X, labels, qid=qid, sample_weight=weight, feature_names=names)


@examples(4)
@given(rich_datasets(words=st.sampled_from(["a", "7", "b-ü", "07"])))
def test_every_format_into_every_other(tmp_path_factory, data):
    """Ids without blanks: text and stores take part."""
    folder = tmp_path_factory.mktemp("pairs")
    data = with_docids(data, [f"d{i}" for i in range(data.n_rows)])
    qid = data.qid
    if all(q == "7" for q in qid):
        data = replace(data, qid=np.array([7] * len(qid)))  # as text reads it
    for name in FILES:
        convert(data, folder / name)
    for first, second in product(FILES, FILES):
        target = folder / f"from-{first.replace('.', '-')}-{second}"
        dtype = None if first.endswith("store") else "float32"
        convert(folder / first, target, dtype=dtype)
        assert_rows(load(target), data)


@examples(6)
@given(rich_datasets(), st.data())
def test_tables_hold_any_ids(tmp_path_factory, data, draw):
    """Commas, quotes, tabs, line ends and letters of any kind in ids of queries and documents."""
    folder = tmp_path_factory.mktemp("tables")
    ids = draw.draw(st.lists(WORDS, min_size=data.n_rows, max_size=data.n_rows))
    table = pa.table(
        {"label": data.labels, "qid": data.qid, "docid": ids, "f": data.X[:, 0], "g": data.X[:, -1]}
    )
    source = load(table)
    assert source.docids == ids
    for first, second in product(TABLES, TABLES[::-1]):
        convert(table, folder / first, overwrite=True)
        convert(folder / first, folder / f"to-{second}", overwrite=True)
        found = load(folder / f"to-{second}")
        assert_rows(found, source)
        assert found.feature_names == ("f", "g")
    for target in ("x.txt", "x.store"):
        if any(q.split() != [q] or "#" in q for q in [*data.qid, *ids]):
            continue
        convert(table, folder / target)
        assert_rows(load(folder / target, dtype="float32"), source)


def table_of(n_queries: int, order=None, **columns):
    qid = np.repeat(np.arange(n_queries), 3)
    rng = np.random.default_rng(0)
    table = {
        "qid": qid,
        "label": rng.integers(0, 3, len(qid)),
        "docid": [f"d{i}" for i in range(len(qid))],
        "sample_weight": rng.integers(1, 4, len(qid)) / 2,
        "f": rng.standard_normal(len(qid)).astype(np.float32),
        "g": rng.standard_normal(len(qid)).astype(np.float32),
        **columns,
    }
    order = np.arange(len(qid)) if order is None else order
    return pa.table({name: pa.array(np.asarray(v)[order]) for name, v in table.items()})


def small_parts(monkeypatch):
    """Parts of 1024 rows."""
    monkeypatch.setattr(parquet, "_BATCH_ROWS", 1024)
    monkeypatch.setattr(parts, "PART_BYTES", 1)


@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize("ids", ["integers", "strings", None])
def test_a_table_of_many_batches_becomes_the_store_of_the_whole(tmp_path, monkeypatch, apart, ids):
    small_parts(monkeypatch)
    table = table_of(1500, np.random.default_rng(1).permutation(4500) if apart else None)
    if ids == "strings":
        table = table.set_column(0, "qid", [[f"q{q}" for q in table["qid"].to_pylist()]])
    elif ids is None:
        table = table.drop_columns(["qid"])
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=2000)
    seen: list[int] = []
    options = {"chunk_bytes": 4000, "progress": lambda done, total: seen.append(done)}
    store = convert(tmp_path / "t.parquet", tmp_path / "store", **options)
    assert len(seen) >= 4
    assert store.feature_names == ("f", "g")
    assert_same(store.dataset(), load(table))
    assert sorted(os.listdir(tmp_path)) == ["store", "t.parquet"]


def test_several_tables_and_texts_are_read_one_after_the_other(tmp_path):
    data = load(table_of(20))
    parts = [data.select(slice(0, 30)), data.select(slice(30, 60))]
    for ending in ("parquet", "csv", "txt"):
        names = [tmp_path / f"{i}.{ending}" for i in range(2)]
        for part, name in zip(parts, names, strict=True):
            convert(part, name)
        for target in (f"{ending}.arrow", f"{ending}.store"):
            convert(names, tmp_path / target)
            assert_rows(load(tmp_path / target), data)
    convert(tmp_path / "0.txt", tmp_path / "limited.csv", memory_limit="64MiB")  # by way of a store
    assert_rows(load(tmp_path / "limited.csv"), parts[0])
    assert not [name for name in os.listdir(tmp_path) if name.startswith(".")]
    for option, value in (("dtype", "float64"), ("label", "y"), ("zero_based", True)):
        with pytest.raises(ValueError, match=f"{option}= says how to read .* source is a store"):
            convert(tmp_path / "txt.store", tmp_path / "a.csv", **{option: value})
    (tmp_path / "text.csv").write_text("qid,label,docid,sample_weight,f,g\nq,1,d,1,0,0\n")
    with pytest.raises(ValueError, match="id_type is object, but int64 in the parts before"):
        convert([tmp_path / "0.csv", tmp_path / "text.csv"], tmp_path / "x.csv")
    with pytest.raises(ValueError, match="sources are of different kinds"):
        convert([tmp_path / "0.txt", tmp_path / "0.csv"], tmp_path / "x.csv")
    with pytest.raises(ValueError, match="one store is converted at a time, got 2"):
        convert([tmp_path / "txt.store"] * 2, tmp_path / "x.csv")


def test_ids_that_turn_out_to_be_text(tmp_path, monkeypatch):
    """Only the last batch shows that ids are strings: the file holds all of them as such."""
    monkeypatch.setattr(parquet, "_BLOCK", 1 << 12)
    monkeypatch.setattr(parts, "PART_BYTES", 1)
    lines = [f"{i // 3},{i % 2},{i}" for i in range(3000)] + ["last,1,7"]
    (tmp_path / "a.csv").write_text("qid,label,f\n" + "\n".join(lines) + "\n")
    convert(tmp_path / "a.csv", tmp_path / "a.parquet")
    assert load(tmp_path / "a.parquet").qid.tolist()[::1500] == ["0", "500", "last"]


def test_missing_values_stay_missing_in_tables(tmp_path):
    table = table_of(2, f=np.array([1, np.nan, 3, 4, 5, 6], np.float32), sample_weight=np.ones(6))
    convert(table, tmp_path / "a.csv")
    found = load(tmp_path / "a.csv", missing="keep").X[:, 0]
    assert_array_equal(found, np.array([1, np.nan, 3, 4, 5, 6], np.float32))
    for target in ("a.txt", "store"):
        with pytest.raises(ValueError, match=r"row 1, column 'f' is missing"):
            convert(tmp_path / "a.csv", tmp_path / target)
        convert(tmp_path / "a.csv", tmp_path / target, missing="zero")
        assert load(tmp_path / target).X[1, 0] == 0
        convert(tmp_path / "a.csv", tmp_path / target, missing="mean", overwrite=True)
        assert load(tmp_path / target).X[1, 0] == np.float32(3.8)


def test_positions_survive_where_there_is_a_place(tmp_path):
    table = table_of(2, position=np.array([3, 2, 1, 1, 2, 3]))
    for name in ("a.parquet", "a.csv"):
        assert convert(table, tmp_path / name).left_out == ()
        assert load(tmp_path / name).position.tolist() == [3, 2, 1, 1, 2, 3]
    left_out = convert(table, tmp_path / "a.txt").left_out
    assert left_out == ("the names of the features", "the positions")
    assert load(tmp_path / "a.txt").position is None
    notes: list[str] = []
    convert(tmp_path / "a.parquet", tmp_path / "store", note=notes.append)
    assert notes[0].startswith("columns: label 'label', query 'qid', ")
    assert notes[1:] == ["a store has no place for positions, which are left out"]
    (tmp_path / "a.txt.position").write_text("3\n2\n1\n1\n2\n3\n")
    convert(tmp_path / "a.txt", tmp_path / "b.parquet")
    assert load(tmp_path / "b.parquet").position.tolist() == [3, 2, 1, 1, 2, 3]


def test_what_lies_beside_a_text_goes_into_the_store(tmp_path):
    (tmp_path / "a.txt").write_text("1 1:1\n0 1:2\n2 1:3\n")
    (tmp_path / "a.txt.query").write_text("2\n1\n")
    store = convert(tmp_path / "a.txt", tmp_path / "store")
    assert store.query_lengths().tolist() == [2, 1]
    alone = convert(tmp_path / "a.txt", tmp_path / "alone", sidecars=False)
    assert alone.query_lengths().tolist() == [3]


def test_judgments_are_written_and_label_what_is_read(tmp_path):
    table = table_of(1, label=[0, 2, 1])
    convert(table, tmp_path / "a.txt")
    convert(table, tmp_path / "out.qrels")
    assert (tmp_path / "out.qrels").read_text() == "0 0 d0 0\n0 0 d1 2\n0 0 d2 1\n"
    relabeled = load(tmp_path / "a.txt", qrels={"0": {"d0": 3, "d2": 4}}, unjudged="drop")
    assert relabeled.labels.tolist() == [3, 4]
    unlabeled = table_of(2).drop_columns(["label"])
    convert(unlabeled, tmp_path / "a.parquet", qrels={"0": {"d1": 2}})
    assert load(tmp_path / "a.parquet").labels.tolist() == [0, 2, 0, 0, 0, 0]
    (tmp_path / "a.run").touch()
    for name, message in (("out.qrels", "holds judgments, not rows"), ("a.run", "holds a run")):
        with pytest.raises(ValueError, match=message):
            load(tmp_path / name)
    with pytest.raises(ValueError, match=r"one source; linrank\.convert joins several"):
        load([tmp_path / "a.txt", tmp_path / "a.txt"])


def test_sparse_rows(tmp_path):
    text = b"1 qid:1 3:0.5\n0 qid:1 900:2 1000:1\n"
    convert(io.BytesIO(text), tmp_path / "a.parquet")
    found = load(tmp_path / "a.parquet", dtype="float32")
    assert found.rows.describe().startswith("CSR float32, 2 × 1000")
    convert(tmp_path / "a.parquet", tmp_path / "a.txt", dtype="float32")
    assert (tmp_path / "a.txt").read_bytes() == b"1 qid:1 3:0.5 1000:0\n0 qid:1 900:2 1000:1\n"
    dense = convert(tmp_path / "a.txt", tmp_path / "a.csv")
    assert (dense.storage, dense.n_features) == ("dense", 1000)
    stored = convert(tmp_path / "a.parquet", tmp_path / "store", storage="dense")
    assert (stored.storage, stored.n_features) == ("dense", 1000)
    again = convert(stored, tmp_path / "again", storage="csr")
    assert (again.storage, again.n_features) == ("csr", 1000)


def test_the_source_is_not_overwritten(tmp_path):
    convert(table_of(2), tmp_path / "a.csv")
    convert(table_of(2), tmp_path / "store")
    for name in ("a.csv", "store"):
        with pytest.raises(ValueError, match="is read and would be overwritten"):
            convert(tmp_path / name, tmp_path / name, overwrite=True)
    assert linrank.load(tmp_path / "a.csv").n_rows == 6


def test_a_fault_in_a_later_batch_names_its_row_and_leaves_nothing(tmp_path, monkeypatch):
    small_parts(monkeypatch)
    labels = np.where(np.arange(4500) == 4000, np.nan, 0)
    pq.write_table(table_of(1500, label=labels), tmp_path / "t.parquet")
    for target in ("a.csv", "store", "a.txt.gz"):
        with pytest.raises(ValueError, match=r"row 928 .* counted from row 3072 of the table"):
            convert(tmp_path / "t.parquet", tmp_path / target)
    assert os.listdir(tmp_path) == ["t.parquet"]


def test_tables_whose_columns_stand_in_another_order_make_no_store(tmp_path):
    """The names of the first were once taken for all: values changed places."""
    for name, columns in (("one", "ab"), ("two", "ba")):
        lines = [f"qid,label,{','.join(columns)}", "1,0,1,2", "1,1,3,4"]
        (tmp_path / f"{name}.csv").write_text("\n".join(lines) + "\n")
    sources = [tmp_path / "one.csv", tmp_path / "two.csv"]
    with pytest.raises(ValueError, match=r"two\.csv: a column is named 'b' where 'a' stood before"):
        linrank.convert(sources, tmp_path / "store")
    assert sorted(os.listdir(tmp_path)) == ["one.csv", "two.csv"]
