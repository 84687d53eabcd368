"""Files that become shorter while they are read: an error that names them, never a dead process."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import time

import numpy as np
import pytest

import linrank
from linrank.data.dataset import Dataset
from linrank.errors import DataFormatError
from linrank.io.blocks import open_blocks
from linrank.io.load import load

API = """if True:
    import sys, linrank
    try:
        {code}
    except linrank.DataFormatError as error:
        sys.exit(f"linrank: error: {{error}}")
"""
CODES = {
    "load": "linrank.load(sys.argv[1]).X.sum()",
    "fit": "linrank.RankSVM(C=1e-3, tol=1e-9).fit(linrank.Store(sys.argv[1]))",
    "passes": "linrank.RankSVM(C=1e-3, memory_limit='300MB').fit(linrank.Store(sys.argv[1]))",
    "descent": "linrank.SGDRanker(n_steps=10**6).fit(linrank.Store(sys.argv[1]))",
}
# What is read, the file of it that becomes shorter, and who reads it: code, or a command.
READERS = {
    "text, train": ("d.txt", "d.txt", ["train", "-e", "1e-9"]),
    "text, load": ("d.txt", "d.txt", "load"),
    "csv, train": ("d.csv", "d.csv", ["train"]),
    "parquet, train": ("d.parquet", "d.parquet", ["train"]),
    "arrow, load": ("d.arrow", "d.arrow", "load"),
    "store, train": ("d.store", "d.store/values.bin", ["train", "-e", "1e-9"]),
    "store, fit": ("d.store", "d.store/values.bin", "fit"),
    "store, fit, labels": ("d.store", "d.store/labels.bin", "fit"),
    "store, passes": ("d.store", "d.store/values.bin", "passes"),
    "store, descent": ("d.store", "d.store/values.bin", "descent"),
}


@pytest.fixture(scope="module")
def formats(tmp_path_factory):
    """The path of one data set in a format, which is written when it is first asked for."""
    folder, rng = tmp_path_factory.mktemp("formats"), np.random.default_rng(0)
    n = 12_000  # large enough to be read for a while
    X = rng.normal(size=(n, 40)).astype(np.float32).round(3)
    data = Dataset.of(X, rng.integers(0, 3, n), qid=np.arange(n) // 20)

    def written(name):
        if not (folder / name).exists():
            linrank.convert(data, folder / name)
        return folder / name

    return written


def shrink_once(formats, folder, name, rng, seconds=None):
    """Run a reader, cut its file at a random moment; how it ended, or the seconds of it alone."""
    source, victim, reader = READERS[name]
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    copy = shutil.copytree if os.path.isdir(formats(source)) else shutil.copyfile
    copy(formats(source), folder / source)
    if isinstance(reader, str):
        command = ["-c", API.format(code=CODES[reader]), str(folder / source)]
    else:
        command = ["-m", "linrank", reader[0], str(folder / source), str(folder / "m.json"), "-q"]
        command += reader[1:]
    began = time.monotonic()
    process = subprocess.Popen([sys.executable, *command], stderr=subprocess.PIPE, text=True)
    if seconds is not None:
        time.sleep(rng.uniform(0.1, seconds))
        os.truncate(folder / victim, rng.randrange(os.path.getsize(folder / victim)))
    _, error = process.communicate(timeout=120)
    assert process.returncode in (0, 1, 3), (name, process.returncode, error)
    if process.returncode == 1:
        assert "linrank: error: " in error
        assert os.path.join(str(folder), victim) in error
        assert "Traceback" not in error
    return time.monotonic() - began if seconds is None else process.returncode == 1


def shrink(formats, folder, names, n_times):
    rng = random.Random(0)
    for name in names:
        seconds = shrink_once(formats, folder, name, rng)
        for _ in range(n_times):
            shrink_once(formats, folder, name, rng, seconds)


def test_a_few_files_that_become_shorter(formats, tmp_path):
    shrink(formats, tmp_path / "here", ["text, train", "store, fit"], 1)


@pytest.mark.slow
@pytest.mark.parametrize("name", READERS)
def test_many_files_that_become_shorter(formats, tmp_path, name):
    shrink(formats, tmp_path / "here", [name], int(os.environ.get("LINRANK_SHRINKS", "12")))


@pytest.mark.parametrize("n_left", [0, 7, 8, 10_000, 23_999_999])
def test_text_that_ends_before_it_should(tmp_path, n_left):
    """Cut when the blocks are laid out, or when they are read; in a line or between two."""
    path = tmp_path / "data.txt"
    path.write_bytes(b"1 1:0.5\n" * 3_000_000)
    stretches = [part for part, _ in open_blocks(path).parts]
    os.truncate(path, n_left)
    whole = [stretch for stretch in stretches if _reads(stretch)]
    assert whole == stretches[: len(whole)]
    assert sum(map(len, whole)) <= n_left
    with pytest.raises(DataFormatError, match=r"data\.txt: became shorter while it was read: it "):
        stretches[-1].read()


def _reads(stretch):
    try:
        return len(stretch.read()) == len(stretch)
    except DataFormatError:
        return False


def test_the_layout_of_text_that_becomes_shorter(tmp_path):
    path = tmp_path / "data.txt"
    path.write_bytes(b"1 1:0.5\n" * 3_000_000)
    parts = open_blocks(path).parts
    next(parts)
    os.truncate(path, 5_000_000)
    found = [part for part, _ in parts]
    assert isinstance(found[-1], DataFormatError)
    assert "it had 24,000,000 bytes" in str(found[-1])


def test_a_system_that_reads_less_than_it_is_asked_for(tmp_path, monkeypatch):
    """As Linux does beyond 2 GiB: that is not a file that became shorter."""
    path, read = tmp_path / "data.txt", os.pread
    path.write_bytes(b"1 1:0.5\n" * 1000)
    monkeypatch.setattr(os, "pread", lambda file, n, begin: read(file, min(n, 100), begin))
    assert load(path).n_rows == 1000


def test_text_that_grows_ends_where_it_did(tmp_path):
    path = tmp_path / "data.txt"
    path.write_bytes(b"1 1:0.5\n" * 1000)
    blocks = open_blocks(path, 100).blocks
    first = next(blocks)
    with open(path, "ab") as file:
        file.write(b"1 1:0.5\n" * 1000)
    assert len(first[0]) + sum(len(block) for block, _ in blocks) == 8000
    assert load(path).n_rows == 2000
