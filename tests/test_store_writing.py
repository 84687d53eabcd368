"""Writing stores: what may be appended, and what a fault leaves behind."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from linrank import Store
from linrank.data.dataset import Dataset
from linrank.data.rows import CsrRows, DenseRows
from linrank.data.words import Comments
from linrank.errors import DataFormatError
from linrank.io.store.writer import StoreWriter
from linrank.system import durable
from stored_data import assert_same, example


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


def test_a_killed_writer_is_no_store_and_no_hindrance(tmp_path):
    path = tmp_path / "store"
    code = """if True:
        import os, signal, sys
        import numpy as np
        from linrank.data.dataset import Dataset
        from linrank.data.rows import DenseRows
        from linrank.io.store.writer import StoreWriter
        writer = StoreWriter(sys.argv[1], chunk_bytes=4)
        ones = np.ones(3)
        rows = DenseRows(np.ones((3, 1), np.float32))
        writer.append(Dataset(rows, ones, np.array([1, 2, 3])))
        os.kill(os.getpid(), signal.SIGKILL)
    """
    subprocess.run([sys.executable, "-c", code, str(path)], check=False)
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
