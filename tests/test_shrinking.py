"""Files that become shorter while they are read: an error that names them, never a dead process."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import time

import pytest

import linrank
from linrank.errors import DataFormatError
from linrank.io.blocks import open_blocks
from linrank.io.load import load

PROGRAM = """if True:
    import sys, linrank
    try:
        {}
    except linrank.DataFormatError as error:
        sys.exit(f"linrank: error: {{error}}")
"""
READERS = {
    "d.txt": "linrank.load(sys.argv[1])",
    "d.csv": "linrank.load(sys.argv[1])",
    "d.parquet": "linrank.load(sys.argv[1])",
    "d.arrow": "linrank.load(sys.argv[1]).X.sum()",
    "d.store/values.bin": "linrank.RankSVM(C=1e-3, tol=1e-9).fit(linrank.Store(sys.argv[1]))",
    "d.store/labels.bin": "linrank.SGDRanker(n_steps=10**6).fit(linrank.Store(sys.argv[1]))",
}
usual = ("d.txt", "d.store/values.bin")


@pytest.mark.parametrize(
    "victim", [pytest.param(v, marks=[] if v in usual else pytest.mark.slow) for v in READERS]
)
def test_files_that_become_shorter_end_in_an_error(tmp_path, victim):
    """A file is cut at a random moment, by a random number of bytes."""
    rng, source = random.Random(0), tmp_path / victim.partition("/")[0]
    data = linrank.make_ranking(600, 20, 40, random_state=0)  # large enough to be read for a while
    linrank.convert(data, tmp_path / "whole", to=source.suffix[1:].replace("txt", "svmlight"))
    for _ in range(int(os.environ.get("LINRANK_SHRINKS", "1"))):
        if (tmp_path / "whole").is_dir():
            shutil.copytree(tmp_path / "whole", source, dirs_exist_ok=True)
        else:
            shutil.copyfile(tmp_path / "whole", source)
        command = [sys.executable, "-c", PROGRAM.format(READERS[victim]), str(source)]
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        time.sleep(rng.uniform(0.1, 2.0))
        os.truncate(tmp_path / victim, rng.randrange(os.path.getsize(tmp_path / victim)))
        _, error = process.communicate(timeout=120)
        assert process.returncode in (0, 1), (process.returncode, error)
        if process.returncode == 1:
            assert "linrank: error: " in error
            assert str(tmp_path / victim) in error


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
    path.write_bytes(b"1 1:0.5\n" * 3_000_000)
    parts = open_blocks(path).parts
    next(parts)
    os.truncate(path, n_left)  # while the blocks are laid out
    *_, (last, _) = parts
    assert isinstance(last, DataFormatError) == (n_left < 20_000_000)


def _reads(stretch):
    try:
        return len(stretch.read()) == len(stretch)
    except DataFormatError:
        return False


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
