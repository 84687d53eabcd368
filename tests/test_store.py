"""Stores: what is written comes back, what may be appended, and what a fault leaves behind."""

from __future__ import annotations

import errno
import gc
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from scipy import sparse

import linrank
from hypothesis_profiles import examples
from linrank import DataFormatError, Dataset, Store
from linrank.data.rows import ColumnStatistics, CsrRows, DenseRows, as_rows
from linrank.data.scaling import Scaling
from linrank.data.words import Comments
from linrank.io.store import chunks
from linrank.io.store.writer import StoreWriter
from linrank.system import durable
from stored_data import assert_same, dense, example, grouped
from strategies import datasets

quick = examples(40, suppress_health_check=[HealthCheck.function_scoped_fixture])


# ---- what comes back ----------------------------------------------------------------------------


@given(data=datasets(weights=True), chunk_bytes=st.sampled_from([1, 50, 200, 1 << 20]))
@quick
def test_what_is_written_comes_back(data, chunk_bytes, tmp_path):
    store = Store.of(tmp_path / "store", data, chunk_bytes=chunk_bytes, overwrite=True)
    assert_same(store.dataset(), data)
    assert (store.n_rows, store.n_features) == (data.n_rows, data.n_features)
    assert (store.n_queries, store.n_pairs) == (data.queries.n_queries, data.queries.n_pairs)
    assert_array_equal(store.query_lengths(), np.diff(data.queries.offsets))
    buffer = store.buffer()
    for i, chunk in enumerate(store.chunks):
        part = grouped(data).select(chunk.rows)
        assert_same(store.read(i), part)
        assert_same(store.read(i, into=buffer), part)
        assert store.chunks[i].nbytes <= chunk_bytes or store.read(i).queries.n_queries == 1
    store.verify()


@pytest.mark.parametrize("storage", ["dense", "csr"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_everything_that_a_dataset_has(tmp_path, storage, dtype):
    data = example(storage=storage, dtype=dtype)
    store = Store.of(tmp_path / "store", data, chunk_bytes=500)
    assert store.n_chunks > 3
    assert_same(store.dataset(), data)
    for i, chunk in enumerate(store.chunks):
        found = store.read(i)
        assert_same(found, grouped(data).select(chunk.rows))
        assert found.comments[0] == grouped(data).comments[chunk.rows.start]
        assert len(found.comments) == found.n_rows
        assert pickle.loads(pickle.dumps(found)).docids == found.docids
    assert (store.feature_names, store.index_base) == (data.feature_names, 1)
    assert (store.storage, store.dtype) == (storage, np.dtype(dtype))
    assert (store.has_weights, store.has_comments, store.has_ids) == (True, True, True)
    assert "30 queries" in repr(store)


def test_ids_may_be_text_and_may_be_missing(tmp_path):
    X, y = np.eye(4, dtype=np.float32), [0, 1, 1, 0]
    store = Store.write(
        tmp_path / "text", X, y, qid=["b", "Ω a", "b", "c"], docids=["x", None, "y", "z"]
    )
    assert store.dataset().qid.tolist() == ["b", "b", "Ω a", "c"]
    assert store.dataset().docids == ["x", "y", None, "z"]
    store = Store.write(tmp_path / "none", X, y)
    assert (store.dataset().qid, store.has_ids) == (None, False)
    assert store.read(0).queries.n_pairs == 4
    with pytest.raises(TypeError, match=r"query id 0\.5 is a float"):
        Store.write(tmp_path / "other", X, y, qid=[0.5, 0.5, 1.5, 1.5])
    with pytest.raises(ValueError, match="id of row 1 is 'a b'; in a store an id"):
        Store.write(tmp_path / "other", X, y, docids=["a", "a b", "c", "d"])
    assert sorted(os.listdir(tmp_path)) == ["none", "text"]


def test_ids_that_turn_out_to_be_text(tmp_path):
    """The first chunks have integers: they are rewritten."""
    with StoreWriter(tmp_path / "store", chunk_bytes=8) as writer:
        for ids in ([1, 2], [30], ["a", "b"], [4]):
            rows = DenseRows(np.ones((len(ids), 1), np.float32))
            writer.append(Dataset(rows, np.ones(len(ids)), np.array(ids)))
        store = writer.finish()
    assert store.dataset().qid.tolist() == ["1", "2", "30", "a", "b", "4"]
    assert [q for i in range(store.n_chunks) for q in store.read(i).qid] == [
        *("1", "2", "30", "a", "b", "4")
    ]
    store.verify()


@given(data=datasets(weights=True), seed=st.integers(0, 99))
@quick
def test_where_the_writer_is_fed_does_not_matter(data, seed, tmp_path):
    """The same bytes, manifest and checksums included."""
    whole = Store.of(tmp_path / "whole", data, chunk_bytes=100, overwrite=True)
    data, queries = grouped(data), data.queries
    cuts = [0, *sorted(np.random.default_rng(seed).integers(0, queries.n_queries + 1, 2))]
    options = {"chunk_bytes": 100, "overwrite": True}
    with StoreWriter(tmp_path / "parts", **options) as writer:
        for a, b in zip(cuts, [*cuts[1:], queries.n_queries], strict=True):
            if a < b:
                part = data.select(slice(queries.offsets[a], queries.offsets[b]))
                writer.append(part, queries.ids[a:b])
        parts = writer.finish()
    assert parts.digest == whole.digest


@given(data=datasets(weights=True), bounds=st.tuples(st.integers(0, 20), st.integers(0, 20)))
@quick
def test_rows_across_chunks(data, bounds, tmp_path):
    store = Store.of(tmp_path / "store", data, chunk_bytes=60, overwrite=True)
    rows = slice(min(bounds), max(bounds))
    expected = grouped(data).rows.take(slice(*rows.indices(data.n_rows)))
    assert_array_equal(dense(store.read_rows(rows).to_user()), dense(expected.to_user()))


@pytest.mark.parametrize("storage", ["dense", "csr"])
def test_large_reads_pass_by_the_cache(tmp_path, storage, monkeypatch):
    """Ranges at odd places, read with O_DIRECT, without, and where it is refused: the same."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(9000, 37)).astype(np.float32)
    rows = as_rows(sparse.csr_array(X) if storage == "csr" else X)
    data = Dataset.of(rows, rng.integers(0, 3, 9000), qid=np.arange(9000) // 11)
    path = Store.of(tmp_path / "store", data, chunk_bytes=1_300_000).path

    def check():
        store = Store(path)
        buffer = store.buffer()
        parts = [store.read(i, into=buffer).rows.values.copy() for i in range(store.n_chunks)]
        assert_array_equal(np.concatenate(parts), rows.values)
        assert_array_equal(store.read(0).rows.values, parts[0])

    def refuse(self, name):
        raise OSError(errno.EINVAL, "no")

    check()
    monkeypatch.setattr(chunks.Files, "_direct_descriptor", refuse)
    check()
    monkeypatch.setattr(chunks, "_DIRECT", 0)
    check()


def crowd(monkeypatch, n_bytes=100):
    """Let so many bytes of memory be free."""
    monkeypatch.setattr("linrank.io.store.store.available", lambda: n_bytes)


@pytest.fixture(params=["in memory", "beyond", "beyond, in pieces", "beyond, elsewhere"])
def make_room(request, monkeypatch, tmp_path):
    """A store fits into memory, or a copy is mapped that is made at once, or piece by piece."""

    def make():
        if request.param != "in memory":
            crowd(monkeypatch)
        if request.param == "beyond, in pieces":
            monkeypatch.setattr(chunks, "_PART", 100)
        if request.param == "beyond, elsewhere":
            access = os.access
            monkeypatch.setattr(os, "access", lambda p, m: p != str(tmp_path) and access(p, m))

    return make


@pytest.mark.parametrize("storage", ["dense", "csr"])
def test_a_dataset_is_not_changed_by_what_happens_to_the_store(tmp_path, storage, make_room):
    """A file that became shorter while it was mapped would end the process."""
    data = example(300, storage=storage)
    store = Store.of(tmp_path / "store", data, chunk_bytes=1000)
    make_room()
    found = store.dataset()
    arrays = (found.rows.values, found.labels, found.queries.levels, found.queries.offsets)
    assert not any(array.flags.writeable for array in arrays)
    store.close()
    for name in os.listdir(tmp_path / "store"):
        os.truncate(tmp_path / "store" / name, 0)
    assert os.listdir(tmp_path) == ["store"]
    assert_same(found, data)


def test_a_store_that_becomes_shorter_while_it_is_read(tmp_path, make_room):
    store = Store.of(tmp_path / "store", example(300))
    make_room()
    os.truncate(tmp_path / "store" / "values.bin", 1000)
    with pytest.raises(DataFormatError, match=r"values\.bin: became shorter while it was open"):
        store.dataset()
    with pytest.raises(DataFormatError, match=r"values\.bin: became shorter while it was open"):
        store.read(0)


def test_a_store_that_fits_nowhere(tmp_path, monkeypatch):
    store = Store.of(tmp_path / "store", example(300))
    crowd(monkeypatch)

    def full(folder):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(chunks, "nameless_file", full)
    with pytest.raises(MemoryError, match=r"more than half of the 100 B .* within a memory_limit"):
        store.dataset()
    assert os.listdir(tmp_path) == ["store"]


def test_statistics_are_those_of_the_rows(tmp_path):
    data = example(100)
    store = Store.of(tmp_path / "one", data)
    whole = ColumnStatistics.of(grouped(data).rows, grouped(data).weight)
    for name in ("weight", "n_rows", "mean", "variance", "low", "high", "n_nonzero"):
        assert_array_equal(getattr(store.statistics, name), getattr(whole, name))
    many = Store.of(tmp_path / "many", data, chunk_bytes=300).statistics
    expected = Scaling.fit("standard", data.rows, weight=data.weight).factors
    factors = Scaling.of_statistics("standard", many).factors
    np.testing.assert_allclose(factors, expected, rtol=1e-12)


def test_a_pickled_store_is_its_path(tmp_path):
    data = example()
    store = Store.of(tmp_path / "store", data, chunk_bytes=500)
    sent = pickle.dumps(store)
    assert len(sent) < 1000
    code = (
        "import pickle, sys; store = pickle.loads(sys.stdin.buffer.read())\n"
        "print(store.read(1).labels.sum())"
    )
    found = subprocess.check_output([sys.executable, "-c", code], input=sent)
    assert float(found) == store.read(1).labels.sum()
    twins = [pickle.loads(sent) for _ in range(2)]
    assert twins[0] is twins[1]
    del twins
    gc.collect()
    Store.of(tmp_path / "store", data, chunk_bytes=600, overwrite=True)
    with pytest.raises(DataFormatError, match="is not the store that it was"):
        pickle.loads(sent)


def test_descriptors_are_given_back(tmp_path):
    def is_open() -> bool:  # other files of this process come and go
        held = (os.path.join("/proc/self/fd", name) for name in os.listdir("/proc/self/fd"))
        return any(
            os.readlink(one).startswith(str(tmp_path)) for one in held if os.path.exists(one)
        )

    store = Store.of(tmp_path / "store", example(), chunk_bytes=500)
    store.read(0)
    assert is_open()
    del store
    gc.collect()
    assert not is_open()


def test_a_closed_store_says_so(tmp_path):
    store = Store.of(tmp_path / "store", example(), chunk_bytes=500)
    sent = pickle.dumps(store)
    for one in (store, pickle.loads(sent)):
        assert not one.is_closed
        one.close()
        assert one.is_closed
        for read in (lambda one=one: one.read(0), one.dataset):
            with pytest.raises(ValueError, match="was closed; open it again"):
                read()
    assert_same(pickle.loads(sent).dataset(), example())  # another one, opened anew


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not forked here")
def test_a_forked_process_has_buffers_of_its_own(tmp_path):
    store = Store.of(tmp_path / "store", example(), chunk_bytes=500)
    buffer = store.buffer()
    data = store.read(0, into=buffer)
    before = np.array(data.X)
    if (code := os.fork()) == 0:
        buffer.part("values", 0, 1)[:] = 7  # as a read of another chunk does
        os._exit(0)
    assert os.waitpid(code, 0)[1] == 0
    assert_array_equal(data.X, before)


# ---- loading ------------------------------------------------------------------------------------


def test_load_maps_a_folder_and_refuses_what_is_for_text(tmp_path):
    data, path = example(), str(tmp_path / "store")
    Store.of(path, data)
    assert_same(linrank.load(path), data)
    assert_same(linrank.load(path, dtype="float32", n_features=7, zero_based=False), data)
    other = {"dtype": "float64", "storage": "csr", "n_features": 8, "zero_based": True}
    for name, value in other.items():
        with pytest.raises(ValueError, match=f"leave {name} out"):
            linrank.load(path, **{name: value})
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("x")
    for attempt, error, message in (
        (linrank.load, DataFormatError, r"empty: has no manifest\.json"),
        (Store, FileNotFoundError, "nowhere: there is no such store"),
        (Store, DataFormatError, "file: is a file; a store is a folder"),
    ):
        with pytest.raises(error, match=message):
            attempt(tmp_path / message.partition(":")[0])


def append(writer, n=3, ids=None, **changes):
    data = Dataset(DenseRows(np.ones((n, 2), np.float32)), np.arange(n, dtype=float), np.full(n, 7))
    writer.append(replace(data, **changes), ids)


UNORDERED = CsrRows(np.ones(2, np.float32), np.array([1, 0], np.int32), np.array([0, 2]), 2)


@pytest.mark.parametrize(
    ("n_before", "changes", "message"),
    [
        (3, {"rows": DenseRows(np.ones((3, 2)))}, "dense float64 of 2 columns"),
        (3, {"rows": DenseRows(np.ones((3, 1), np.float32))}, "of 1 columns"),
        (3, {"rows": DenseRows(np.full((3, 2), np.nan, np.float32))}, "row 0 .* is NaN"),
        (3, {"labels": np.array([0.0, np.inf, 1.0])}, "row 1"),
        (3, {"labels": np.zeros(2)}, "2 elements"),
        (3, {"ids": [1, 2]}, "1 queries but 2 ids"),
        (3, {"ids": [[1]]}, "ids must be 1-D"),
        (3, {"qid": None}, "are .*, with no ids, those before .*, with ids; all must be alike"),
        (3, {"weight": np.ones(3)}, "rows are .*, with ids and weights, those before"),
        (3, {"comments": Comments.of(["", "", ""])}, "with ids and comments"),
        (3, {"feature_names": ("a", "b")}, "a column is named .* same columns in the same order"),
        (3, {"index_base": 0}, "counted from 0, with ids, those before"),
        (0, {"n": 0}, "no rows to append"),
        (0, {"weight": np.ones(2)}, "3 rows but weight has 2 elements"),
        (0, {"weight": np.array([1.0, -1.0, 1.0])}, r"weight must be >= 0, got -1\.0 at row 1"),
        (0, {"weight": np.full(3, np.inf)}, "weight contains infinity .* at row 0"),
        (0, {"n": 1, "rows": UNORDERED}, "must increase"),
        (0, {"rows": DenseRows(np.ones((3, 2), int))}, "must be float32 or float64, got int64"),
    ],
)
def test_what_cannot_be_appended(tmp_path, n_before, changes, message):
    writer = StoreWriter(tmp_path / "store")
    if n_before:
        append(writer, n_before)
    with pytest.raises(ValueError, match=message):
        append(writer, **changes)
    assert os.listdir(tmp_path) == []


def test_nothing_is_there_until_it_is_finished(tmp_path):
    path = tmp_path / "store"
    with StoreWriter(path) as writer:
        append(writer)
        assert not path.exists()
        with pytest.raises(DataFormatError, match=r"has no manifest\.json"):
            Store(writer.folder.partial)
    assert os.listdir(tmp_path) == []
    with pytest.raises(ValueError, match="nothing was appended"), StoreWriter(path) as writer:
        writer.finish()
    with pytest.raises(ValueError, match="finished or was given up"):
        append(writer)
    with pytest.raises(ValueError, match="chunk_bytes must be"):
        StoreWriter(path, chunk_bytes=0)


@pytest.mark.parametrize(
    ("call", "fault"),
    [("fsync", KeyboardInterrupt()), ("write", OSError(errno.ENOSPC, "No space"))],
)
def test_an_interrupt_or_a_full_disk_leaves_nothing(tmp_path, monkeypatch, call, fault):
    def fail(*_):
        raise fault

    writer = StoreWriter(tmp_path / "store", chunk_bytes=16)
    append(writer)
    monkeypatch.setattr(f"linrank.io.store.writer.os.{call}", fail)
    with pytest.raises(type(fault)) as caught:
        writer.finish()
    monkeypatch.undo()
    assert os.listdir(tmp_path) == []
    if call == "write":
        assert caught.value.filename == str(tmp_path / "store")
        assert "while the store was written; what was written is removed" in caught.value.strerror


def die_while_writing(path):
    append(StoreWriter(path, chunk_bytes=4))
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_killed_writer_is_no_store_and_no_hindrance(tmp_path):
    path = tmp_path / "store"
    dead = multiprocessing.get_context("fork").Process(target=die_while_writing, args=(path,))
    dead.start()
    dead.join()
    left = sorted(os.path.splitext(name)[1] for name in os.listdir(tmp_path))
    assert left == [".dir", ".lock"]
    with StoreWriter(path) as writer:
        append(writer)
        with pytest.raises(FileExistsError, match="written by another process"):
            StoreWriter(path)
        assert writer.finish().n_rows == 3
    assert os.listdir(tmp_path) == ["store"]


DATA = example()


@pytest.fixture
def path(tmp_path):
    """A folder with nothing but a store of `DATA`, and with that alone in the end."""
    Store.of(tmp_path / "store", DATA)
    yield tmp_path / "store"
    assert os.listdir(tmp_path) == ["store"]


def write_anew(path):
    """Another store in its place."""
    return Store.of(path, DATA.select(slice(0, 20)), overwrite=True).n_rows


def old_place(path):
    """Where a store waits while another takes its place, on file systems that cannot swap names."""
    return durable._aside(str(path))


def no_swap(monkeypatch):
    monkeypatch.setattr(durable, "_swap", lambda first, second: False)


def test_a_store_is_replaced_without_a_moment_in_which_there_is_none(path, monkeypatch):
    """Also after a kill: whatever happens before the swap leaves the old one, later the new one."""
    seen, renamed, swap = [], [], durable._swap

    def look(first, second):
        seen.append(Store(path).n_rows)
        assert swap(first, second)
        seen.append(Store(path).n_rows)
        return True

    monkeypatch.setattr(durable, "_swap", look)
    monkeypatch.setattr(os, "rename", lambda *names: renamed.append(names))
    write_anew(path)
    assert (seen, renamed) == ([DATA.n_rows, 20], [])


@pytest.mark.parametrize("opens", [True, False])
def test_a_store_left_between_two_renames_is_put_back(path, monkeypatch, opens):
    """By whoever opens it, and by whoever writes it."""
    no_swap(monkeypatch)
    os.rename(path, old_place(path))  # and then the process was killed
    if opens:
        assert_same(Store(path).dataset(), DATA)
    else:
        with pytest.raises(FileExistsError, match="is a store already"):
            Store.of(path, DATA)
    assert write_anew(path) == 20


def test_who_opens_between_two_renames_gets_the_old_store(path, monkeypatch):
    """And the writer notices that it was put back."""
    no_swap(monkeypatch)
    found, rename = [], os.rename

    def slowly(first, second):
        rename(first, second)
        if second == old_place(path) and not found:
            found.append(Store(path).n_rows)

    monkeypatch.setattr(os, "rename", slowly)
    assert write_anew(path) == 20
    assert found == [DATA.n_rows]


def test_what_a_killed_writer_had_replaced_is_removed(path, monkeypatch):
    no_swap(monkeypatch)
    Store.of(old_place(path), DATA)  # and then the process was killed
    write_anew(path)


def test_long_comments_fill_chunks_too(tmp_path):
    """A chunk is put together in memory: one of few features must not gather all comments."""
    docids = [f"{i:0100d}" for i in range(100)]
    X, y, qid = np.ones((100, 1), np.float32), np.arange(100), np.arange(100) // 2
    options = {"qid": qid, "docids": docids, "chunk_bytes": 1000}
    store = Store.write(tmp_path / "store", X, y, **options)
    assert store.n_chunks == 13  # of 4 queries of 2 rows of 116 bytes, "docid = " and 8
    assert store.dataset().docids == docids


def test_only_stores_are_overwritten(tmp_path):
    path, bare = tmp_path / "store", tmp_path / "application"
    Store.of(path, DATA)
    with pytest.raises(FileExistsError, match="is a store already"):
        Store.of(path, DATA)
    opened = Store(path)
    assert write_anew(path) == 20
    assert_same(opened.read(0), DATA)  # the files that it opened, not their names
    bare.mkdir()
    for file, place, told in (
        (path / "notes.txt", path, r"holds 'notes\.txt' and is no store"),
        (bare / "manifest.json", bare, "is no store"),  # alone, it may be that of something else
        (tmp_path / "other", tmp_path / "other", "no folder"),
    ):
        file.write_text("mine")
        with pytest.raises(FileExistsError, match=told):
            Store.of(place, DATA, overwrite=True)
        assert file.read_text() == "mine"
    (tmp_path / "empty").mkdir()
    Store.of(tmp_path / "empty", DATA)
    assert sorted(os.listdir(tmp_path)) == ["application", "empty", "other", "store"]
