"""Malformed files, and files that become shorter: each has its own message."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import random
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import zstandard

import linrank
from linrank.errors import DataFormatError
from linrank.io.blocks import open_blocks
from linrank.io.load import load as load_any

load = partial(load_any, format="svmlight")

GOOD = b"1 qid:1 1:0.5 2:0.25\n0 qid:1 1:1 2:2\n"
FLOAT32 = "is out of the range of a 32-bit float"
ALL = "; give every line one, or none"
BEHIND = " right behind the value of feature"
FLOAT64 = "is out of the range of a 64-bit float"

# Text in Latin-1: how the message begins behind the name of the file.
TEXTS = {
    "": ": empty file; expected lines 'label qid:id index:value ...'",
    "\n \n\t\r\n": ": no line with data; expected lines",
    "# a\n# b\n": ": no line with data; expected lines",
    "1 qid:1\n0 qid:1\n": ": none of the 2 rows has a feature; expected lines",
    "good 1:1\n": ":1:1: expected a number for the label, got 'good'",
    "qid:1 1:1\n": ":1:1: expected a number for the label, got 'qid:1'",
    "1:1 2:1 3:1 1:2\n": ":1:13: feature 1 follows 3",
    "nan 1:1\n": ":1:1: the label is 'nan'; expected a finite number",
    "-Inf 1:1\n": ":1:1: the label is '-Inf'; expected a finite number",
    "1e999 1:1\n": f":1:1: the label {FLOAT64}: '1e999'",
    "1x 1:1\n": ":1:2: unexpected 'x' after the label",
    "0x10 1:1\n": ":1:2: unexpected 'x10' after the label",
    "- 1:1\n": ":1:1: expected a number for the label, got '-'",
    "1e 1:1\n": ":1:2: unexpected 'e' after the label",
    "1,0.5,0.25\n": ":1:2: unexpected ',0.5,0.25' after the label",
    "1: 1:1\n": ":1:3: expected a number for the weight, got a blank",
    "1:-2 1:1\n": ":1:3: the weight is negative: '-2'",
    "1:nan 1:1\n": ":1:3: the weight is 'nan'; expected a finite number",
    "1:2:3 1:1\n": ":1:4: unexpected ':3' after the label",
    "1 qid: 1:1\n": ":1:7: expected a query id after 'qid:'",
    "1 qid:1 1:1\n0 qid:1 2:2\n1 1:1\n": f":3:3: no query id where the lines before have one{ALL}",
    "1 1:1\n0 qid:1 1:1\n": f":2:3: a query id where the lines before have none{ALL}",
    "1 qid:1 qid:2 1:1\n": ":1:9: the query id must come once, right behind",
    "1 1:1 qid:1\n": ":1:7: the query id must come once, right behind the label",
    "1 qid:a\x00b 1:1\n": ":1:8: NUL byte in the query id; expected text",
    "1 qid:1 1:1\n0 qid:1 2:2\n0 qid:1 3:1 3:1\n": ":3:13: feature 3 is given twice",
    "0 40:1 12:2\n": ":1:8: feature 12 follows 40; indices must increase within a line",
    "0 1:1 2:1 5:1 9:1 8:1\n": ":1:19: feature 8 follows 9",
    "0 -1:1\n": ":1:3: feature index -1 is negative; indices start at 0",
    "0 a:1\n": ":1:3: expected a feature as index:value, got 'a:1'",
    "0 1.5:1\n": ":1:4: expected ':' and a value behind feature index 1, got '.5",
    "0 2147483647:1\n": ":1:3: feature index 2147483647 is too large; the largest is 2147483646",
    "0 18446744073709551617:1\n": ":1:3: feature index 18446744073709551617 is",
    "0 1:1 2\n": ":1:8: expected ':' and a value behind feature index 2, got the end of the line",
    "0 1 2:3\n": ":1:4: expected ':' and a value behind feature index 1",
    "0 :1\n": ":1:3: expected a feature as index:value, got ':1'",
    "0 1::2\n": ":1:5: expected a number for the value of feature 1, got ':2'",
    "0 1:\n": ":1:5: expected a number for the value of feature 1, got the end",
    "0 1: 2\n": ":1:5: expected a number for the value of feature 1, got a blank",
    "0 1:x\n": ":1:5: expected a number for the value of feature 1, got 'x'",
    "0 1:inf\n": ":1:5: the value of feature 1 is 'inf'; expected a finite number",
    "0 1:1e999\n": f":1:5: the value of feature 1 {FLOAT32}: '1e999'",
    "0 1:3.5e38\n": f":1:5: the value of feature 1 {FLOAT32}: '3.5e38'",
    "0 1:1.5x 2:1\n": f":1:8: unexpected 'x'{BEHIND} 1; expected a blank or the end",
    "0 1:1.2.3\n": ":1:8: unexpected '.3' right behind the value of feature 1",
    "0 1:1e+\n": ":1:6: unexpected 'e+' right behind the value of feature",
    "0 1:2:3\n": ":1:6: unexpected ':3' right behind the value of feature 1",
    "0 1:--2\n": ":1:5: expected a number for the value of feature 1, got '--2'",
    "0 1:1\x00 2:1\n": ":1:6: unexpected '\\x00' right behind the value of feature 1",
    "0 1:1\xa02:1\n": ":1:6: unexpected '\\xa02:1' right behind",
    "\x00\x00\x00\x00": ":1:1: expected a number for the label, got '\\x00\\x00\\x00\\x00'",
    "1 qid:1 1:1\n0 qid:1 2:2\n\x00\n": ":3:1: expected a number for the label, got '\\x00'",
    "\x89PNG\r\n\x1a\n": ":1:1: expected a number for the label, got '\\x89PNG'",
    "PK\x03\x04rest": ": expected UTF-8 text, got a zip archive; unpack it first",
    "PAR1rest": ": expected UTF-8 text, got a Parquet file; read it with linrank.load",
    "1 qid:1 1:1\n0 qid:1 2:2\n0 qid:1 1:": ":3:11: expected a number for the value of feature 1",
    "1 1:1\r\n\r\n0 1:x\r\n": ":3:5: expected a number for the value of feature 1, got 'x'",
    "1 1:\r\n": ":1:5: expected a number for the value of feature 1, got the end",
    "1 1:1\r0 1:1\r": ":1:8: expected ':' and a value behind feature index 0",
    "1 1:#x\n": ":1:5: expected a number for the value of feature 1, got '#x'",
}
# The same for bytes.
BYTES = {
    b"0 " + b"9" * 5000 + b":1\n": ":1:3: feature index 999999999999999999999999",
    b"0 1:" + b"7" * 400 + b"\n": f":1:5: the value of feature 1 {FLOAT32}",
    "1 1:1\n".encode("utf-16"): ": expected UTF-8 text, got UTF-16 text; convert it",
    gzip.compress(GOOD * 99)[:-9]: ": the gzip data end too early; the file is",
    gzip.compress(GOOD)[:5]: ": the gzip data end too early; the file is trunc",
    gzip.compress(GOOD)[:-8] + bytes(8): ": damaged gzip data: CRC check failed",
    gzip.compress(GOOD) + b"more": ": damaged gzip data: Not a gzipped file",
    gzip.compress(GOOD)[:12] + bytes(40): ": damaged gzip data",
    gzip.compress(b""): ": empty file; expected lines",
    gzip.compress(GOOD + b"x\n"): ":3:1: expected a number for the label, got 'x'",
    bz2.compress(GOOD * 99)[:-9]: ": the bzip2 data end too early; the file is",
    b"BZh9" + bytes(40): ": damaged bzip2 data: Invalid data stream",
    lzma.compress(GOOD * 99)[:-9]: ": the xz data end too early; the file is trunc",
    lzma.compress(GOOD)[:20] + b"damage" * 9: ": damaged xz data",
    zstandard.compress(GOOD * 99)[:-9]: ": the Zstandard data end too early; the file is truncated",
    zstandard.compress(GOOD)[:4]: ": the Zstandard data end too early; the file is truncated",
    b"\x28\xb5\x2f\xfd" + b"\xff" * 40: ": damaged Zstandard data",
    zstandard.compress(GOOD) + b"more and more": ": damaged Zstandard data",
}
# Options of load that make a text wrong.
OPTIONS: list[tuple[str, dict[str, Any], str]] = [
    *(
        (GOOD.decode(), given, ":1:15: feature index 2 is out of range")
        for given in (
            *({"n_features": 1}, {"n_features": 1, "zero_based": False}),
            {"n_features": 2, "zero_based": True},
        )
    ),
    ("0 1:1 2:2\n0 0:1\n", {"n_features": 2}, ":1:7: feature index 2 is out of range; expected 0 "),
    ("0 1:1\n0 0:1\n", {"zero_based": False}, ":2:3: feature index 0 is out of range; expected 1"),
    ("0 1:-1.8e308\n", {"dtype": "float64"}, f":1:5: the value of feature 1 {FLOAT64}: '-1.8e308'"),
]
CASES = [
    *((text.encode("latin-1"), {}, message) for text, message in TEXTS.items()),
    *((text, {}, message) for text, message in BYTES.items()),
    *((text.encode(), options, message) for text, options, message in OPTIONS),
]


@pytest.mark.parametrize(("text", "options", "message"), CASES, ids=[c[2][:30] for c in CASES])
def test_message(text: bytes, options: dict[str, Any], message: str, tmp_path: Path) -> None:
    """The message of the file; the same from a stream, with another name."""
    path = tmp_path / "data.txt"
    path.write_bytes(text)
    with pytest.raises(DataFormatError) as caught:
        load(path, **options)
    told = str(caught.value).removeprefix(str(path))
    assert told.startswith(message)
    with pytest.raises(DataFormatError) as streamed:
        load(io.BytesIO(text), **options)
    assert str(streamed.value) == f"<stream>{told}"


def test_long_garbage_is_cut() -> None:
    with pytest.raises(DataFormatError, match=r"1, got 'zzzzzzzzzzzzzzzzzzzzzzzz\.\.\.'"):
        load(io.BytesIO(b"0 1:" + b"z" * 99))


def test_missing_file_and_folder(tmp_path: Path) -> None:
    """What the system says is passed on."""
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "absent.txt")
    with pytest.raises(IsADirectoryError):
        open_blocks(tmp_path)


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


@pytest.mark.slow
@pytest.mark.parametrize("victim", READERS)
def test_files_that_become_shorter_end_in_an_error(tmp_path, victim):
    """A file is cut at a random moment of a process that reads it, by a random number of bytes."""
    rng, source = random.Random(0), tmp_path / victim.partition("/")[0]
    data = linrank.make_ranking(600, 20, 40, random_state=0)  # large enough to be read for a while
    linrank.convert(data, source, to=source.suffix[1:].replace("txt", "svmlight"))
    command = [sys.executable, "-c", PROGRAM.format(READERS[victim]), str(source)]
    whole, started = (tmp_path / victim).read_bytes(), time.monotonic()
    subprocess.run(command, check=True)
    seconds = time.monotonic() - started
    for _ in range(10):
        (tmp_path / victim).write_bytes(whole)
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        time.sleep(rng.uniform(0, seconds))
        os.truncate(tmp_path / victim, rng.randrange(len(whole)))
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
