"""The reader: equals its slow twin, whatever the blocks, threads, compression and storage."""

from __future__ import annotations

import bz2
import errno
import gzip
import io
import lzma
import os
import subprocess
import sys
import threading
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import linrank
from hypothesis_profiles import examples
from linrank import DataFormatError, Dataset, load
from linrank.data.rows import DenseRows
from linrank.io import blocks, svmlight
from linrank.io.blocks import open_blocks
from real_data import real_file
from svmlight_reference import Parsed, parse, texts

LETOR = (
    b"2 qid:10 1:0.5 2:0.25 3:-1 #docid = GX1 inc = 1\n"
    b"0 qid:10 1:1.5 2:0 3:2e-3 #docid = GX2 inc = 1\n"
    b"1 qid:11 1:1 2:1 3:0.125 #docid = GX3 inc = 1\n"
)


def read(source: Any, block_size: int = 1 << 20, n_threads: int = 1, **options: Any) -> Dataset:
    """``load`` of text or a path, with the size of the blocks in the hands of the test."""
    chosen = {"dtype": "float64", "storage": "auto", "n_features": None, "zero_based": "auto"}
    checked = svmlight.ReadingOptions.of(**{**chosen, **options})
    source = io.BytesIO(source) if isinstance(source, bytes) else source
    return svmlight.read_blocks(open_blocks(source, block_size), checked, n_threads)


def dense(data: Dataset) -> np.ndarray:
    """The matrix, with the sign of its zeros (``toarray`` adds entries to 0, which loses it)."""
    rows = data.rows
    if isinstance(rows, DenseRows):
        return rows.values
    x = np.zeros(rows.shape, rows.dtype)
    x[np.repeat(np.arange(data.n_rows), np.diff(rows.offsets)), rows.columns] = rows.values
    return x


def same_bits(a: np.ndarray, b: np.ndarray) -> bool:
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def assert_equal(data: Dataset, truth: Parsed, dtype: str) -> None:
    assert same_bits(dense(data), truth.matrix(dtype))
    assert data.labels.tolist() == truth.labels
    assert (None if data.qid is None else data.qid.tolist()) == truth.qid()
    weights = [1.0 if w is None else w for w in truth.weights]
    is_weighted = any(w is not None for w in truth.weights)
    found = None if data.weight is None else data.weight.tolist()
    assert found == (weights if is_weighted else None)
    comments = [""] * data.n_rows if data.comments is None else data.comments.tolist()
    assert comments == truth.comments


# ---- equals the definition ----------------------------------------------------------------------


@examples(200)
@given(
    texts(), st.sampled_from([1, 7, 32, 33, 200, 1 << 20]), st.sampled_from([1, 3]),
    st.sampled_from(["float32", "float64"]),
)  # fmt: skip
def test_load_equals_definition(text: bytes, block_size: int, n_threads: int, dtype: str) -> None:
    """Every form the format allows, cut anywhere, on any number of threads.

    CSR has exactly the entries of the text, written zeros too, however a piece was stored.
    """
    truth = parse(text.removeprefix(b"\xef\xbb\xbf"))
    if not any(truth.entries):
        with pytest.raises(DataFormatError, match="has a feature"):
            read(text, block_size, n_threads, dtype=dtype)
        return
    assert_equal(read(text, block_size, n_threads, dtype=dtype), truth, dtype)
    rows, (base, _) = read(text, block_size, storage="csr").rows, truth.columns()
    assert np.diff(rows.offsets).tolist() == [len(row) for row in truth.entries]
    assert rows.columns.tolist() == [index - base for row in truth.entries for index in row]
    assert rows.values.tolist() == [value for row in truth.entries for value in row.values()]
    assert same_bits(dense(read(text, block_size, storage="dense")), truth.matrix("float64"))


def random_text(n_rows: int, density: float, seed: int) -> bytes:
    rng = np.random.default_rng(seed)
    lines = []
    for i in range(n_rows):
        features = np.flatnonzero(rng.random(40) < density) + 1
        values = rng.normal(size=len(features)).round(int(rng.integers(1, 17)))
        row = " ".join(f"{j}:{v}" for j, v in zip(features, values, strict=True))
        lines.append(f"{rng.integers(5)} qid:{i // 7} {row} # doc{i}")
    return "\n".join(lines).encode()


@pytest.mark.parametrize("density", [0.02, 0.4, 0.6, 0.9, 1.0])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_blocks_and_threads_do_not_matter(density: float, dtype: str) -> None:
    """The same arrays to the bit, whichever mix of dense and sparse pieces the cuts lead to."""
    text = random_text(300, density, seed=1)
    truth, cuts = parse(text), product((64, 1000, 5000, 1 << 20), (1, 2, 5))
    for (block_size, n_threads), storage in product(cuts, ("dense", "csr")):
        assert_equal(read(text, block_size, n_threads, dtype=dtype, storage=storage), truth, dtype)


def test_the_first_fault_wins_for_all_blocks() -> None:
    """Two faults: the message is that of the first, with its line, however the text is cut."""
    good = [b"1 qid:%d 1:2 2:3" % i for i in range(60)]
    good[41:43] = b"1 qid:1 2:3 2:4", b"broken"
    for block_size, n_threads in product((1, 50, 300, 1 << 20), (1, 4)):
        with pytest.raises(DataFormatError, match=r"^<stream>:42:13: feature 2 is given twice"):
            read(b"\n".join(good), block_size, n_threads)


# ---- numbers ------------------------------------------------------------------------------------


def neighbors_midpoint(x: float) -> tuple[int, int]:
    """(d, k): the point half-way between x and the next double is exactly d·10^-k."""
    from fractions import Fraction

    middle = (Fraction(x) + Fraction(float(np.nextafter(x, np.inf)))) / 2
    shift = middle.denominator.bit_length() - 1  # a power of two: the expansion ends
    return middle.numerator * 5**shift, shift


def number_family(name: str, n: int) -> list[str]:
    """n decimal strings, none of which overflows."""
    rng = np.random.default_rng(list(name.encode()))
    bits = rng.integers(0, 0x7FF0_0000_0000_0000, n).view(np.float64)
    if name == "short":
        scale = 10.0 ** rng.integers(-3, 8, n)
        places = rng.integers(0, 9, n)
        return [f"{x:.{p}f}" for x, p in zip(rng.normal(size=n) * scale, places, strict=True)]
    if name == "shortest":
        return [repr(x) for x in bits.tolist()]
    if name == "seventeen":
        return [f"{x:.17g}" for x in bits.tolist()]
    if name == "unit":
        return [f"{x:.16g}" for x in rng.random(n).tolist()]
    if name == "long":
        return [f"{x:.30f}" for x in (rng.random(n) * 1e5).tolist()]
    if name == "nineteen":
        mantissas, exponents = rng.integers(0, 2**63 - 1, n), rng.integers(-30, 31, n)
        return [f"{m}e{e}" for m, e in zip(mantissas.tolist(), exponents.tolist(), strict=True)]
    if name == "subnormal":
        tiny = rng.integers(0, 1 << 53, n).view(np.float64)
        return [f"{x:.{p}e}" for x, p in zip(tiny.tolist(), rng.integers(0, 25, n), strict=True)]
    if name == "halfway":
        middles = [neighbors_midpoint(x) for x in bits[: n // 3].tolist()]
        above = [f"{digits}0001e-{shift + 4}" for digits, shift in middles]
        below = [f"{digits * 10 - 1}e-{shift + 1}" for digits, shift in middles]
        return [f"{digits}e-{shift}" for digits, shift in middles] + above + below
    raise AssertionError(name)


FAMILIES = ("short", "shortest", "seventeen", "unit", "long", "nineteen", "subnormal", "halfway")


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("n", [20_000, pytest.param(300_000, marks=pytest.mark.slow)])
def test_numbers_round_as_float(name: str, n: int) -> None:
    """Bit for bit Python's float(), and np.float32(float()) for float32."""
    numbers = number_family(name, n // 50 if name == "halfway" else n)
    text = "\n".join(f"{t} 1:{t} 2:-{t.lstrip('-')}" for t in numbers).encode()
    truth = np.array([float(t) for t in numbers])
    data = read(text, 1 << 22, 2)
    assert same_bits(data.labels, truth)
    assert same_bits(data.X[:, 0].copy(), truth)
    assert same_bits(data.X[:, 1].copy(), -np.abs(truth))
    kept = np.abs(truth) < 3.4e38
    if kept.all():
        assert same_bits(read(text, dtype="float32").X[:, 0].copy(), truth.astype(np.float32))


def test_float32_rounds_the_double() -> None:
    """Half-way between two float32 plus less than half an ulp of a double: tie first, then even."""
    text = b"0 1:1.00000005960464477539062500000001 2:16777217 3:1e-46 4:3.4028235677973362e38\n"
    one, odd, tiny, largest = read(text, dtype="float32").X[0]
    assert (one, odd, tiny) == (1.0, 16777216.0, 0.0)
    assert largest == np.finfo(np.float32).max


# ---- forms of input -----------------------------------------------------------------------------


def compressed(kind: str, data: bytes) -> bytes:
    if kind == "zst":
        zstandard = pytest.importorskip("zstandard")
        return zstandard.ZstdCompressor().compress(data)  # type: ignore[no-any-return]
    return {"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress}[kind](data)


KINDS = ["gz", "bz2", "xz", "zst"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("block_size", [10, 1000, 1 << 20])
def test_compression_is_told_by_content(tmp_path: Path, kind: str, block_size: int) -> None:
    """Of one member or several, whatever the name."""
    text, path = random_text(100, 0.5, seed=2), tmp_path / "data.txt"
    for cut in (len(text), 300):
        members = [compressed(kind, part) for part in (text[:cut], text[cut:]) if part]
        path.write_bytes(b"".join(members))
        for source in (path, io.BytesIO(b"".join(members))):
            assert_equal(read(source, block_size, 2), parse(text), "float64")


@pytest.mark.parametrize("kind", KINDS)
def test_truncated_compressed_data(kind: str) -> None:
    """A cut is an error, never a shorter data set; faults in the text before it come first."""
    stored = compressed(kind, random_text(60, 0.5, seed=3))
    for keep in (len(stored) - 1, len(stored) - 5, len(stored) // 2, 12):
        with pytest.raises(DataFormatError, match="data end too early; the file is truncated"):
            read(stored[:keep])
    faulty = compressed(kind, b"1 1:x\n" + os.urandom(300_000).hex().encode())
    with pytest.raises(DataFormatError, match=":1:5: expected a number"):
        read(faulty[:-4], block_size=6)

    class Broken(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            if self.tell() >= 8:
                raise OSError(errno.EIO, "Input/output error")
            return super().read(size)

    with pytest.raises(OSError, match="Input/output error") as caught:
        read(Broken(stored))
    assert caught.value.filename == "<stream>"


def test_paths_streams_and_standard_input(tmp_path: Path) -> None:
    truth, path = parse(LETOR), tmp_path / "letor.txt"
    path.write_bytes(LETOR)
    assert load(str(path)).source == str(path)
    with path.open("rb") as file:
        for source in (path, file):
            assert_equal(load(source, dtype="float64"), truth, "float64")
    code = "import linrank; d = linrank.load('-'); print(d.source, d.rows.describe())"
    for stored in (LETOR, gzip.compress(LETOR)):
        done = subprocess.run([sys.executable, "-c", code], input=stored, capture_output=True)
        assert done.stdout.decode().strip() == "<stdin> dense float32, 3 × 3"


class Endless(io.RawIOBase):
    """Blanks without end, and a count of those that were taken."""

    n_read = 0

    def read(self, size: int = -1) -> bytes:
        self.n_read += size
        return b" " * size


@pytest.mark.parametrize("read", [load, linrank.load_qrels, linrank.load_preferences])
def test_text_without_a_line_end_is_given_up(read: Any, monkeypatch: Any, tmp_path: Path) -> None:
    monkeypatch.setattr(blocks, "LONGEST_LINE", 5 << 20)
    told = "a line has more than 5,242,880 bytes; check that it is text with line ends"
    stream: Any = Endless()
    with pytest.raises(DataFormatError, match=f"^<stream>: {told}$"):
        read(stream)
    assert stream.n_read < 20 << 20
    path = tmp_path / "long.txt"
    path.write_bytes(b"\n" + b" " * (10 << 20))
    with pytest.raises(DataFormatError, match=f"long.txt: {told}$"):
        read(path)
    path.write_bytes(gzip.compress(b" " * (10 << 20)))
    with pytest.raises(DataFormatError, match=f"long.txt: {told}$"):
        read(path)


def test_fuller_rows_than_most() -> None:
    """Features beyond the table of expected indices, and one row that breaks the pattern."""
    row = b" ".join(b"%d:1.5" % j for j in range(900, 1200))
    text = b"\n".join([b"0 " + row] * 20 + [b"1 1:2"] + [b"2 " + row] * 3)
    for block_size in (100, 5000, 1 << 20):
        assert_equal(read(text, block_size), parse(text), "float64")


# ---- options ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "options", "shape"),
    [
        (b"1 0:5 2:6\n0 1:7\n", {}, (2, 3)),
        (b"1 0:5 2:6\n0 1:7\n", {"block_size": 1}, (2, 3)),  # the 0 is in the first block only
        (b"1 1:5 3:6\n0 2:7\n", {}, (2, 3)),
        (b"1 1:5 3:6\n0 2:7\n", {"zero_based": True}, (2, 4)),
        (b"1 1:5 3:6\n0 2:7\n", {"zero_based": False}, (2, 3)),
        (b"1 1:5 3:6\n0 2:7\n", {"n_features": 5}, (2, 5)),
        (b"1\n2\n", {"n_features": 2}, (2, 2)),
    ],
)
def test_numbers_of_columns(text: bytes, options: Any, shape: tuple[int, int]) -> None:
    assert read(text, **options).X.shape == shape


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_storage_is_the_smaller(dtype: str) -> None:
    """dense if rows·columns·itemsize <= entries·(itemsize + 4)."""
    itemsize = np.dtype(dtype).itemsize
    for n_entries in range(1, 9):
        text = b"0 " + b" ".join(b"%d:1" % j for j in range(1, n_entries)) + b" 8:1\n"
        rows = read(text, dtype=dtype).rows
        assert isinstance(rows, DenseRows) == (8 * itemsize <= n_entries * (itemsize + 4))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dtype": "int32"}, "dtype must be float32 or float64, got int32"),
        ({"storage": "coo"}, "storage must be 'auto', 'dense' or 'csr', got 'coo'"),
        ({"n_features": 0}, "n_features must be from 1 to 2147483647, got 0"),
        ({"zero_based": "no"}, "zero_based must be 'auto', True or False, got 'no'"),
        ({"n_jobs": 0}, "n_jobs must be >= 1"),
    ],
)
def test_wrong_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        load(io.BytesIO(LETOR), **options)


def test_text_mode_is_refused() -> None:
    with pytest.raises(TypeError, match="must give bytes, got str; open it in binary mode"):
        load(io.StringIO("1 1:1"))


def test_a_matrix_that_cannot_fit_is_refused_before() -> None:
    with pytest.raises(MemoryError, match=r"1000 × 2147483646 float32 as dense would take 8\.6 TB"):
        load(io.BytesIO(b"0 2147483646:1\n" * 1000), storage="dense")
    assert load(io.BytesIO(b"0 2147483646:1\n" * 1000)).n_features == 2147483646


def test_progress_and_stopping(tmp_path: Path) -> None:
    path = tmp_path / "data.txt"
    path.write_bytes(b"1 1:0.5\n" * 3_000_000)
    size, seen = path.stat().st_size, []
    load(path, progress=lambda *state: seen.append(state))
    assert (len(seen), seen[-1]) == (6, (size, size))
    assert seen == sorted(seen)

    def stop(done: int, total: int | None) -> None:
        raise KeyboardInterrupt

    before = threading.active_count()
    with pytest.raises(KeyboardInterrupt):
        load(path, n_jobs=2, progress=stop)
    assert threading.active_count() == before


# ---- comments -----------------------------------------------------------------------------------


def test_comments_and_docids() -> None:
    data = read(b"1 1:1 #docid = GX1 inc = 1\n0 1:2 # 7555\trambo \n2 1:3\n0 1:1#x\xff\n")
    assert data.docids == ["GX1", "7555", None, "x\\xff"]
    assert (data.comments[1], data.comments[-2]) == ("7555\trambo", "")
    with pytest.raises(IndexError):
        data.comments[4]
    for index, docids in (
        ([3, 0], ["x\\xff", "GX1"]),
        (np.array([False, True, True, False]), ["7555", None]),
        (slice(1, None, 2), ["7555", "x\\xff"]),
    ):
        assert data.select(index).docids == docids
    assert read(b"1 1:1\n# only a remark\n").comments is None


# ---- real files ---------------------------------------------------------------------------------

REAL = [
    "mq2008/S1.txt.xz", "ohsumed_letor2/S2.txt.xz", "mslr_sample/train.txt.xz",
    "lightgbm_rank/rank.train.xz", "regression/cpusmall_scale.svm.xz",
    "text_binary/rcv1_small_test.svm.xz",
    pytest.param("text_binary/reuters_acq_train.svm.xz", marks=pytest.mark.slow),
]  # fmt: skip


@pytest.mark.parametrize("name", REAL)
@pytest.mark.parametrize("dtype", [pytest.param("float32", marks=pytest.mark.slow), "float64"])
def test_real_files_equal_scikit_learn(name: str, dtype: str) -> None:
    from sklearn.datasets import load_svmlight_file

    path = real_file(name)
    with lzma.open(path) as file:
        matrix, labels, qid = load_svmlight_file(
            file, dtype=np.float64, query_id=True, zero_based=False
        )
    data = load(path, dtype=dtype)
    assert same_bits(dense(data) + 0, matrix.toarray().astype(dtype) + 0)
    assert data.labels.tolist() == labels.tolist()
    assert data.qid is None or data.qid.tolist() == qid.tolist()
