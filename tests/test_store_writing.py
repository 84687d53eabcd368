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


def writer_of(path, **options):
    return StoreWriter(path, **options)


def append(writer, n=3, ids=None, **changes):
    data = Dataset(DenseRows(np.ones((n, 2), np.float32)), np.arange(n, dtype=float), np.full(n, 7))
    writer.append(replace(data, **changes), ids)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rows": DenseRows(np.ones((3, 2)))}, "dense float64 of 2 columns"),
        ({"rows": DenseRows(np.ones((3, 1), np.float32))}, "of 1 columns"),
        ({"rows": DenseRows(np.full((3, 2), np.nan, np.float32))}, "row 0 .* is NaN"),
        ({"labels": np.array([0.0, np.inf, 1.0])}, "row 1"),
        ({"labels": np.zeros(2)}, "2 elements"),
        ({"ids": [1, 2]}, "1 queries but 2 ids"),
        ({"ids": [[1]]}, "ids must be 1-D"),
        ({"qid": None}, "rows are .*, with no ids, those before .*, with ids; all must be alike"),
        ({"weight": np.ones(3)}, "rows are .*, with ids and weights, those before"),
        ({"comments": Comments(np.empty(0, np.uint8), np.zeros(4, int))}, "with ids and comments"),
        ({"feature_names": ("a", "b")}, "a column is named .* the same columns in the same order"),
        ({"index_base": 0}, "counted from 0, with ids, those before"),
    ],
)
def test_what_cannot_be_appended(tmp_path, changes, message):
    writer = writer_of(tmp_path / "store")
    append(writer)
    with pytest.raises(ValueError, match=message):
        append(writer, **changes)
    assert os.listdir(tmp_path) == []


def test_no_rows_cannot_be_appended(tmp_path):
    with pytest.raises(ValueError, match="no rows to append"):
        append(writer_of(tmp_path / "store"), 0)


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (np.ones(2), "3 rows but weight has 2 elements"),
        (np.array([1.0, -1.0, 1.0]), r"weight must be >= 0, got -1\.0 at row 1"),
        (np.full(3, np.inf), "weight contains infinity .* at row 0"),
    ],
)
def test_weights_that_cannot_be_appended(tmp_path, weight, message):
    with pytest.raises(ValueError, match=message):
        append(writer_of(tmp_path / "store"), weight=weight)


def test_columns_that_do_not_increase_are_refused(tmp_path):
    rows = CsrRows(np.ones(2, np.float32), np.array([1, 0], np.int32), np.array([0, 2]), 2)
    with pytest.raises(ValueError, match="must increase"):
        append(writer_of(tmp_path / "store"), 1, rows=rows)


def test_options_of_the_writer(tmp_path):
    with pytest.raises(ValueError, match="chunk_bytes must be"):
        writer_of(tmp_path / "store", chunk_bytes=0)
    whole = DenseRows(np.ones((3, 2), np.int32))
    with pytest.raises(ValueError, match="values must be float32 or float64, got int32"):
        append(writer_of(tmp_path / "store"), rows=whole)
    assert os.listdir(tmp_path) == []


def test_nothing_is_there_until_it_is_finished(tmp_path):
    path = tmp_path / "store"
    with writer_of(path) as writer:
        append(writer)
        assert not path.exists()
        with pytest.raises(DataFormatError, match=r"has no manifest\.json"):
            Store(writer.folder.partial)
    assert os.listdir(tmp_path) == []
    with pytest.raises(ValueError, match="nothing was appended"), writer_of(path) as writer:
        writer.finish()
    with pytest.raises(ValueError, match="finished or was given up"):
        append(writer)


def test_an_interrupt_leaves_nothing(tmp_path, monkeypatch):
    def interrupt(*arguments):
        raise KeyboardInterrupt

    writer = writer_of(tmp_path / "store")
    append(writer)
    monkeypatch.setattr("linrank.io.store.writer.os.fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        writer.finish()
    assert os.listdir(tmp_path) == []


def test_a_full_disk_leaves_nothing(tmp_path, monkeypatch):
    def full(descriptor, data):
        raise OSError(errno.ENOSPC, "No space left on device")

    writer = writer_of(tmp_path / "store", chunk_bytes=16)
    append(writer)
    monkeypatch.setattr("linrank.io.store.writer.os.write", full)
    with pytest.raises(OSError, match="No space left") as caught:
        append(writer)
    monkeypatch.undo()
    assert caught.value.filename == str(tmp_path / "store")
    assert "while the store was written; what was written is removed" in caught.value.strerror
    assert os.listdir(tmp_path) == []


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
    with writer_of(path) as writer:
        append(writer)
        with pytest.raises(FileExistsError, match="written by another process"):
            writer_of(path)
        assert writer.finish().n_rows == 3
    assert os.listdir(tmp_path) == ["store"]


def old_place(path):
    """Where a store waits while another takes its place, on file systems that cannot swap names."""
    return durable._aside(str(path))


def no_swap(monkeypatch):
    monkeypatch.setattr(durable, "_swap", lambda first, second: False)


def test_a_store_is_replaced_without_a_moment_in_which_there_is_none(tmp_path, monkeypatch):
    """Also after a kill: whatever happens before the swap leaves the old one, later the new one."""
    data, path = example(), tmp_path / "store"
    Store.of(path, data)
    seen, swap = [], durable._swap

    def look(first, second):
        seen.append(Store(path).n_rows)
        assert swap(first, second)
        seen.append(Store(path).n_rows)
        return True

    monkeypatch.setattr(durable, "_swap", look)
    renamed = []
    monkeypatch.setattr(os, "rename", lambda *names: renamed.append(names))
    Store.of(path, data.select(slice(0, 20)), overwrite=True)
    assert (seen, renamed) == ([data.n_rows, 20], [])
    assert os.listdir(tmp_path) == ["store"]


@pytest.mark.parametrize("opens", [True, False])
def test_a_store_left_between_two_renames_is_put_back(tmp_path, monkeypatch, opens):
    """By whoever opens it, and by whoever writes it."""
    no_swap(monkeypatch)
    data, path = example(), tmp_path / "store"
    Store.of(path, data)
    os.rename(path, old_place(path))  # and then the process was killed
    if opens:
        assert_same(Store(path).dataset(), data)
    else:
        with pytest.raises(FileExistsError, match="is a store already"):
            Store.of(path, data)
    assert os.listdir(tmp_path) == ["store"]
    assert Store.of(path, data.select(slice(0, 20)), overwrite=True).n_rows == 20
    assert os.listdir(tmp_path) == ["store"]


def test_who_opens_between_two_renames_gets_the_old_store(tmp_path, monkeypatch):
    """And the writer notices that it was put back."""
    no_swap(monkeypatch)
    data, path = example(), tmp_path / "store"
    Store.of(path, data)
    found, rename = [], os.rename

    def slowly(first, second):
        rename(first, second)
        if second == old_place(path) and not found:
            found.append(Store(path).n_rows)

    monkeypatch.setattr(os, "rename", slowly)
    assert Store.of(path, data.select(slice(0, 20)), overwrite=True).n_rows == 20
    assert found == [data.n_rows]
    assert os.listdir(tmp_path) == ["store"]


def test_what_a_killed_writer_had_replaced_is_removed(tmp_path, monkeypatch):
    no_swap(monkeypatch)
    data, path = example(), tmp_path / "store"
    Store.of(path, data)
    Store.of(old_place(path), data)  # and then the process was killed
    Store.of(path, data, overwrite=True)
    assert os.listdir(tmp_path) == ["store"]


def test_folders_with_other_names_are_never_taken_from_others(tmp_path):
    data, path = example(), tmp_path / "store"
    for name in ("store.old", "store.partial"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "values.bin").write_text("mine")
    Store.of(path, data)
    Store.of(path, data, overwrite=True)
    for name in ("store.old", "store.partial"):
        assert (tmp_path / name / "values.bin").read_text() == "mine"


def test_long_comments_fill_chunks_too(tmp_path):
    """A chunk is put together in memory: one of few features must not gather all comments."""
    docids = [f"{i:0100d}" for i in range(100)]
    X, y, qid = np.ones((100, 1), np.float32), np.arange(100), np.arange(100) // 2
    options = {"qid": qid, "docids": docids, "chunk_bytes": 1000}
    store = Store.write(tmp_path / "store", X, y, **options)
    assert store.n_chunks == 13  # of 4 queries of 2 rows of 116 bytes, "docid = " and 8
    assert store.dataset().docids == docids


def test_a_manifest_alone_is_no_store(tmp_path):
    path = tmp_path / "application"
    path.mkdir()
    (path / "manifest.json").write_text("{}")
    with pytest.raises(FileExistsError, match="is no store"):
        Store.of(path, example(), overwrite=True)
    assert (path / "manifest.json").read_text() == "{}"


def test_only_stores_are_overwritten(tmp_path):
    data = example()
    path = tmp_path / "store"
    Store.of(path, data)
    with pytest.raises(FileExistsError, match="is a store already"):
        Store.of(path, data)
    opened = Store(path)
    assert Store.of(path, data.select(slice(0, 20)), overwrite=True).n_rows == 20
    assert_same(opened.read(0), data)  # the files that it opened, not their names
    (path / "notes.txt").write_text("mine")
    with pytest.raises(FileExistsError, match=r"holds 'notes\.txt' and is no store"):
        Store.of(path, data, overwrite=True)
    assert (path / "notes.txt").read_text() == "mine"
    (tmp_path / "other").write_text("mine")
    with pytest.raises(FileExistsError, match="no folder"):
        Store.of(tmp_path / "other", data, overwrite=True)
    (tmp_path / "empty").mkdir()
    Store.of(tmp_path / "empty", data)
    assert sorted(os.listdir(tmp_path)) == ["empty", "other", "store"]
