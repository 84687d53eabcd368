"""Batches of rows from text: the same rows however the text arrives, in bounded memory."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import linrank
from hypothesis_profiles import examples
from linrank.data.rows import CsrRows, DenseRows
from linrank.errors import DataFormatError
from linrank.stochastic.batches import (
    BLOCK_SIZE,
    Batches,
    Columns,
    Layout,
    numbers_of_ids,
    numbers_of_tokens,
)


class Trickle(io.RawIOBase):
    """A pipe that gives as much as it likes."""

    def __init__(self, text, seed=0):
        self.text, self.place, self.rng = text, 0, np.random.default_rng(seed)

    def read(self, size=-1):
        n = int(self.rng.integers(1, max(2, min(size, 50)))) if size > 0 else len(self.text)
        part = self.text[self.place : self.place + n]
        self.place += len(part)
        return part


def as_arrays(batches):
    """(x, labels, ids) of all rows, and the rows of each batch."""
    parts = list(batches)
    width = batches.columns.n_columns
    x = np.zeros((sum(len(b.labels) for b in parts), width), np.float32)
    begin = 0
    for b in parts:
        rows = b.rows.to_user()
        rows = rows if isinstance(rows, np.ndarray) else rows.toarray()
        x[begin : begin + len(rows), : rows.shape[1]] = rows
        begin += len(rows)
    labels = np.concatenate([b.labels for b in parts])
    ids = np.concatenate([b.ids for b in parts])
    return x, labels, ids, [(len(b.labels), type(b.rows), b.rows.shape[1]) for b in parts]


def text_of(n_rows=60, n_features=5, density=1.0, seed=0, first=1):
    rng = np.random.default_rng(seed)
    lines = []
    for i in range(n_rows):
        features = [j for j in range(first, first + n_features) if rng.random() < density]
        entries = " ".join(f"{j}:{rng.integers(-9, 9) / 8}" for j in features)
        lines.append(f"{rng.integers(3)} qid:{i // 7} {entries} # d{i}\n")
    return "".join(lines).encode()


@examples(60)
@given(
    st.integers(1, 70),
    st.integers(1, 400),
    st.sampled_from([0.05, 0.4, 1.0]),
    st.integers(0, 1),
    st.integers(0, 5),
)
def test_rows_are_those_of_load(batch_rows, block_size, density, first, seed):
    """Whatever the blocks, the batches and the short reads of a pipe; and storage and width of
    each batch depend on its rows alone."""
    text = text_of(density=density, first=first, seed=seed) + b"1 qid:99 1:1 5:2\n"
    data = linrank.load(io.BytesIO(text), zero_based=True)
    ways = [(io.BytesIO(text), block_size), (Trickle(text, seed), 1 << 20)]
    shapes = []
    for source, size in ways:
        columns = Columns()
        batches = Batches(source, columns, Layout(batch_rows=batch_rows), block_size=size)
        x, labels, ids, shape = as_arrays(batches)
        expected = data.X if isinstance(data.X, np.ndarray) else data.X.toarray()
        assert np.array_equal(x, expected)
        assert np.array_equal(labels, data.y)
        assert np.array_equal(ids, data.qid)
        assert columns.has_zero == (b" 0:" in text)
        assert batches.n_rows == len(labels)
        shapes.append(shape)
    assert shapes[0] == shapes[1]
    sizes = [n for n, _, _ in shapes[0]]
    assert set(sizes[:-1]) <= {batch_rows}


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress, None])
def test_compressed_text_and_files(tmp_path, pack):
    text = text_of(500)
    path = tmp_path / "data"
    path.write_bytes(pack(text) if pack else text)
    batches = Batches(str(path), Columns(), Layout(batch_rows=64))
    x, labels, *_ = as_arrays(batches)
    assert np.array_equal(x[:, 1:], linrank.load(path).X)
    assert batches.size == path.stat().st_size
    assert len(labels) == 500


def test_zstandard(tmp_path):
    zstandard = pytest.importorskip("zstandard")
    path = tmp_path / "data.zst"
    path.write_bytes(zstandard.compress(text_of(300)))
    assert len(as_arrays(Batches(path, Columns(), Layout(batch_rows=64)))[1]) == 300


def test_storage_is_that_of_the_first_batch_until_columns_make_it_absurd():
    dense_text = text_of(64, n_features=4)
    batches = Batches(io.BytesIO(dense_text), Columns(), Layout(batch_rows=16))
    assert [kind for _, kind, _ in as_arrays(batches)[3]] == [DenseRows] * 4
    # one column more stays dense; an index of a million makes it sparse, for good
    grown = dense_text + b"1 qid:1 1:1 5:1\n" * 16 + b"1 qid:1 1:1 1000000:1\n" + dense_text
    for block_size in (64, 1000, 1 << 20):
        batches = Batches(
            io.BytesIO(grown), Columns(), Layout(batch_rows=16), block_size=block_size
        )
        shapes = as_arrays(batches)[3]
        assert [kind for _, kind, _ in shapes] == [DenseRows] * 5 + [CsrRows] * 5
        assert [width for _, _, width in shapes] == [5] * 4 + [6] + [1_000_001] * 5
    sparse_first = b"1 qid:1 1:1 1000:1\n" * 16 + dense_text
    batches = Batches(io.BytesIO(sparse_first), Columns(), Layout(batch_rows=16))
    assert {kind for _, kind, _ in as_arrays(batches)[3]} == {CsrRows}


def test_a_second_pass_knows_the_columns_of_the_first():
    text, columns = text_of(40), Columns()
    first = as_arrays(Batches(io.BytesIO(text), columns, Layout(batch_rows=10)))
    again = as_arrays(Batches(io.BytesIO(text), columns, Layout(batch_rows=10)))
    assert np.array_equal(first[0], again[0])
    assert columns == Columns(6, False, "dense")


@pytest.mark.parametrize("block_size", [1, 100, 1 << 20])
def test_long_rows_make_short_batches(block_size):
    text = b"".join(
        b"1 qid:1 " + b" ".join(b"%d:1" % j for j in range(1, n + 1)) + b"\n"
        for n in [1, 1, 1, 9, 1, 30, 1, 5, 5, 1]
    )
    batches = Batches(
        io.BytesIO(text), Columns(), Layout(batch_rows=4, batch_entries=10), block_size=block_size
    )
    assert [n for n, _, _ in as_arrays(batches)[3]] == [3, 2, 1, 2, 2]


def test_query_ids_are_numbers_or_hashes_of_their_text():
    text = b"1 qid:7 1:1\n1 qid:a 1:1\n1 qid:7 1:1\n1 qid:-3 1:1\n1 qid:007 1:1\n"
    ids = as_arrays(Batches(io.BytesIO(text), Columns(), block_size=14))[2]
    whole = as_arrays(Batches(io.BytesIO(text), Columns()))[2]
    assert np.array_equal(ids, whole)
    assert (ids[0], ids[2], ids[3]) == (7, 7, -3)
    assert len(set(ids.tolist())) == 4
    assert numbers_of_tokens([b"a", b"9223372036854775808"])[0] == ids[1]


def test_ids_of_arrays():
    assert numbers_of_ids(None, 2).tolist() == [0, 0]
    assert numbers_of_ids(np.array([3, -1], np.int32), 2).tolist() == [3, -1]
    assert numbers_of_ids([1.0, 2.0], 2).tolist() == [1, 2]
    strings = numbers_of_ids(["b", "a", "b"], 3)
    assert strings[0] == strings[2] != strings[1]
    assert strings.tolist() == numbers_of_ids(np.array(["b", "a", "b"], object), 3).tolist()
    mixed = numbers_of_ids([("x", 1), "1", 1, b"1"], 4)
    assert len(set(mixed.tolist())) == 4
    for missing in (None, float("nan")):
        with pytest.raises(ValueError, match="qid of row 1 is missing"):
            numbers_of_ids(["a", missing], 2)


# ---- bad text -----------------------------------------------------------------------------------


def fail(text, match, block_size=BLOCK_SIZE, **layout):
    with pytest.raises(DataFormatError, match=match):
        list(Batches(io.BytesIO(text), Columns(), Layout(**layout), block_size=block_size))


@pytest.mark.parametrize("block_size", [1, 50, 1 << 20])
def test_faults_name_their_line(block_size):
    good = b"1 qid:1 1:0.5 2:1\n# a comment\n\n" * 20  # 60 lines
    options = {"block_size": block_size, "batch_rows": 3}
    fail(good + b"1 qid:1 1:x\n", r"<stream>:61:\d+: ", **options)
    fail(good + b"1 1:2\n", r"<stream>:61:3: no query id", **options)
    fail(good + b"1 qid:1 1:nan\n", r"<stream>:61:\d+: ", **options)
    fail(good + b"1 qid:1 0:1\n", r"<stream>:61:\d+: .*0", index_base="1", **options)
    fail(
        good + b"1 qid:1 1:1 2000000000:1\n",
        r"<stream>:61:13: feature index 2,000,000,000 asks for more weights than the 1,000 .*more",
        most_columns=1000,
        remedy="give more",
        **options,
    )
    fail(good + b"1:2 qid:1 1:1\n", r"has a weight, 'label:weight'; a stream takes none", **options)


def test_a_line_without_end_is_refused_in_bounded_memory():
    text = b"1 qid:1 1:1\n" * 5 + b"1 qid:1" + b" " * 100_000
    fail(
        text,
        r"<stream>:6: a line has more than 5,000 bytes; give more",
        longest_line=5000,
        block_size=1000,
        remedy="give more",
    )


@pytest.mark.parametrize(("text", "match"), [(b"", "empty"), (b"# nothing\n", "no line with data")])
def test_nothing_to_read(text, match):
    fail(text, match)


def test_damaged_data_come_behind_the_rows_before():
    text = gzip.compress(text_of(2000))[:-3000]
    batches = Batches(io.BytesIO(text), Columns(), Layout(batch_rows=10), block_size=500)
    with pytest.raises(DataFormatError, match="gzip data end too early; the file is truncated"):
        list(batches)
    assert batches.n_rows > 100


def test_no_query_ids_is_one_query():
    ids = as_arrays(Batches(io.BytesIO(b"1 1:1\n0 1:2\n"), Columns()))[2]
    assert ids.tolist() == [0, 0]
