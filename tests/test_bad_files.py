"""Malformed files: each gets its own message, with file, line and column."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from linrank.errors import DataFormatError
from linrank.io.blocks import open_blocks
from linrank.io.load import load as load_any

load = partial(load_any, format="svmlight")

GOOD = b"1 qid:1 1:0.5 2:0.25\n0 qid:1 1:1 2:2\n"
FLOAT32 = "is out of the range of a 32-bit float"
FLOAT64 = "is out of the range of a 64-bit float"
MIXED_NONE = "no query id where the lines before have one; give every line one, or none"
MIXED_SOME = "a query id where the lines before have none; give every line one, or none"

# name: (text, options, the whole message behind the name of the file)
CASES: dict[str, tuple[bytes, dict[str, Any], str]] = {
    # nothing to read
    "empty": (b"", {}, ": empty file; expected lines 'label qid:id index:value ...'"),
    "blank_lines": (b"\n \n\t\r\n", {}, ": no line with data; expected lines"),
    "only_remarks": (b"# a\n# b\n", {}, ": no line with data; expected lines"),
    "no_features": (
        b"1 qid:1\n0 qid:1\n",
        {},
        ": none of the 2 rows has a feature; expected lines",
    ),
    # labels
    "word_label": (b"good 1:1\n", {}, ":1:1: expected a number for the label, got 'good'"),
    "no_label": (b"qid:1 1:1\n", {}, ":1:1: expected a number for the label, got 'qid:1'"),
    "feature_first": (b"1:1 2:1 3:1 1:2\n", {}, ":1:13: feature 1 follows 3"),
    "label_nan": (b"nan 1:1\n", {}, ":1:1: the label is 'nan'; expected a finite number"),
    "label_inf": (b"-Inf 1:1\n", {}, ":1:1: the label is '-Inf'; expected a finite number"),
    "label_huge": (b"1e999 1:1\n", {}, f":1:1: the label {FLOAT64}: '1e999'"),
    "label_garbage": (b"1x 1:1\n", {}, ":1:2: unexpected 'x' after the label"),
    "label_hex": (b"0x10 1:1\n", {}, ":1:2: unexpected 'x10' after the label"),
    "label_underscore": (b"1_0 1:1\n", {}, ":1:2: unexpected '_0' after the label"),
    "label_comma": (b"0,5 1:1\n", {}, ":1:2: unexpected ',5' after the label"),
    "label_sign_only": (b"- 1:1\n", {}, ":1:1: expected a number for the label, got '-'"),
    "label_dot_only": (b". 1:1\n", {}, ":1:1: expected a number for the label, got '.'"),
    "csv": (b"1,0.5,0.25\n", {}, ":1:2: unexpected ',0.5,0.25' after the label"),
    "label_half_exponent": (b"1e 1:1\n", {}, ":1:2: unexpected 'e' after the label"),
    # weights
    "weight_missing": (b"1: 1:1\n", {}, ":1:3: expected a number for the weight, got a blank"),
    "weight_negative": (b"1:-2 1:1\n", {}, ":1:3: the weight is negative: '-2'"),
    "weight_nan": (b"1:nan 1:1\n", {}, ":1:3: the weight is 'nan'; expected a finite number"),
    "weight_twice": (b"1:2:3 1:1\n", {}, ":1:4: unexpected ':3' after the label"),
    # query ids
    "qid_empty": (b"1 qid: 1:1\n", {}, ":1:7: expected a query id after 'qid:'"),
    "qid_end": (b"1 qid:\n", {}, ":1:7: expected a query id after 'qid:'"),
    "qid_later_missing": (GOOD + b"1 1:1 2:1\n", {}, f":3:3: {MIXED_NONE}"),
    "qid_later_given": (b"1 1:1\n0 qid:1 1:1\n", {}, f":2:3: {MIXED_SOME}"),
    "qid_twice": (b"1 qid:1 qid:2 1:1\n", {}, ":1:9: the query id must come once, right behind"),
    "qid_last": (b"1 1:1 qid:1\n", {}, ":1:7: the query id must come once, right behind the label"),
    "qid_nul": (b"1 qid:a\0b 1:1\n", {}, ":1:8: NUL byte in the query id; expected text"),
    # feature indices
    "index_repeated": (GOOD + b"0 qid:1 3:1 3:1\n", {}, ":3:13: feature 3 is given twice"),
    "index_decreasing": (
        b"0 40:1 12:2\n",
        {},
        ":1:8: feature 12 follows 40; indices must increase within a line",
    ),
    "index_decreasing_far": (b"0 1:1 2:1 5:1 9:1 8:1\n", {}, ":1:19: feature 8 follows 9"),
    "index_negative": (b"0 -1:1\n", {}, ":1:3: feature index -1 is negative; indices start at 0"),
    "index_word": (b"0 a:1\n", {}, ":1:3: expected a feature as index:value, got 'a:1'"),
    "index_plus": (b"0 +1:1\n", {}, ":1:3: expected a feature as index:value, got '+1:1'"),
    "index_real": (
        b"0 1.5:1\n",
        {},
        ":1:4: expected ':' and a value behind feature index 1, got '.5",
    ),
    "index_too_large": (
        b"0 2147483647:1\n",
        {},
        ":1:3: feature index 2147483647 is too large; the largest is 2147483646",
    ),
    "index_64_bits": (
        b"0 18446744073709551617:1\n",
        {},
        ":1:3: feature index 18446744073709551617 is",
    ),
    "index_endless": (
        b"0 " + b"9" * 5000 + b":1\n",
        {},
        ":1:3: feature index 999999999999999999999999",
    ),
    "colon_missing": (
        b"0 1:1 2\n",
        {},
        ":1:8: expected ':' and a value behind feature index 2, got the end of the line",
    ),
    "colon_missing_blank": (
        b"0 1 2:3\n",
        {},
        ":1:4: expected ':' and a value behind feature index 1",
    ),
    "colon_alone": (b"0 :1\n", {}, ":1:3: expected a feature as index:value, got ':1'"),
    "colon_twice": (
        b"0 1::2\n",
        {},
        ":1:5: expected a number for the value of feature 1, got ':2'",
    ),
    "index_beyond": (
        GOOD,
        {"n_features": 1},
        ":1:15: feature index 2 is out of range; expected 0 to 1",
    ),
    "index_beyond_one_based": (
        GOOD,
        {"n_features": 1, "zero_based": False},
        ":1:15: feature index 2 is out of range; expected 1 to 1",
    ),
    "index_beyond_zero_based": (
        GOOD,
        {"n_features": 2, "zero_based": True},
        ":1:15: feature index 2 is out of range; expected 0 to 1",
    ),
    "index_beyond_found_late": (
        b"0 1:1 2:2\n0 0:1\n",
        {"n_features": 2},
        ":1:7: feature index 2 is out of range; expected 0 to 1, as the file has a feature 0",
    ),
    "index_zero": (
        b"0 1:1\n0 0:1\n",
        {"zero_based": False},
        ":2:3: feature index 0 is out of range; expected 1 to 2147483646",
    ),
    # values
    "value_missing": (
        b"0 1:\n",
        {},
        ":1:5: expected a number for the value of feature 1, got the end",
    ),
    "value_blank": (
        b"0 1: 2\n",
        {},
        ":1:5: expected a number for the value of feature 1, got a blank",
    ),
    "value_word": (b"0 1:x\n", {}, ":1:5: expected a number for the value of feature 1, got 'x'"),
    "value_nan": (b"0 1:1 2:nan\n", {}, ":1:9: the value of feature 2 is 'nan'; expected a finite"),
    "value_inf": (
        b"0 1:inf\n",
        {},
        ":1:5: the value of feature 1 is 'inf'; expected a finite number",
    ),
    "value_minus_infinity": (b"0 1:-Infinity\n", {}, ":1:5: the value of feature 1 is '-Infinity'"),
    "value_overflow": (b"0 1:1e999\n", {}, f":1:5: the value of feature 1 {FLOAT32}: '1e999'"),
    "value_overflow_64": (
        b"0 1:-1.8e308\n",
        {"dtype": "float64"},
        f":1:5: the value of feature 1 {FLOAT64}: '-1.8e308'",
    ),
    "value_overflow_digits": (
        b"0 1:" + b"7" * 400 + b"\n",
        {},
        f":1:5: the value of feature 1 {FLOAT32}",
    ),
    "value_beyond_float32": (
        b"0 1:3.5e38\n",
        {},
        f":1:5: the value of feature 1 {FLOAT32}: '3.5e38'",
    ),
    "value_garbage": (
        b"0 1:1.5x 2:1\n",
        {},
        ":1:8: unexpected 'x' right behind the value of feature 1; expected a blank or the end",
    ),
    "value_two_points": (
        b"0 1:1.2.3\n",
        {},
        ":1:8: unexpected '.3' right behind the value of feature 1",
    ),
    "value_half_exponent": (
        b"0 1:1e+\n",
        {},
        ":1:6: unexpected 'e+' right behind the value of feature",
    ),
    "value_two_colons": (
        b"0 1:2:3\n",
        {},
        ":1:6: unexpected ':3' right behind the value of feature 1",
    ),
    "value_semicolons": (b"0 1:2;2:3\n", {}, ":1:6: unexpected ';2:3' right behind the value"),
    "value_two_signs": (
        b"0 1:--2\n",
        {},
        ":1:5: expected a number for the value of feature 1, got '--2'",
    ),
    "value_comma": (b"0 1:0,5\n", {}, ":1:6: unexpected ',5' right behind the value of feature 1"),
    "value_nul": (
        b"0 1:1\0 2:1\n",
        {},
        r":1:6: unexpected '\x00' right behind the value of feature 1",
    ),
    "value_form_feed": (b"0 1:1\f2:1\n", {}, r":1:6: unexpected '\x0c2:1' right behind the value"),
    "value_no_break_space": (b"0 1:1\xa02:1\n", {}, r":1:6: unexpected '\xa02:1' right behind"),
    "value_long_garbage": (b"0 1:" + b"z" * 99 + b"\n", {}, "got 'zzzzzzzzzzzzzzzzzzzzzzzz...'"),
    # binary and foreign files
    "nul_bytes": (
        b"\0\0\0\0",
        {},
        r":1:1: expected a number for the label, got '\x00\x00\x00\x00'",
    ),
    "nul_line": (GOOD + b"\0\n", {}, r":3:1: expected a number for the label, got '\x00'"),
    "png": (b"\x89PNG\r\n\x1a\n", {}, r":1:1: expected a number for the label, got '\x89PNG'"),
    "zip": (b"PK\x03\x04rest", {}, ": expected UTF-8 text, got a zip archive; unpack it first"),
    "parquet": (
        b"PAR1rest",
        {},
        ": expected UTF-8 text, got a Parquet file; read it with linrank.load",
    ),
    "utf16": (
        "1 1:1\n".encode("utf-16"),
        {},
        ": expected UTF-8 text, got UTF-16 text; convert it",
    ),
    # compressed
    "gzip_truncated": (
        gzip.compress(GOOD * 99)[:-9],
        {},
        ": the gzip data end too early; the file is",
    ),
    "gzip_header_only": (
        gzip.compress(GOOD)[:5],
        {},
        ": the gzip data end too early; the file is trunc",
    ),
    "gzip_checksum": (
        gzip.compress(GOOD)[:-8] + bytes(8),
        {},
        ": damaged gzip data: CRC check failed",
    ),
    "gzip_trailing": (gzip.compress(GOOD) + b"more", {}, ": damaged gzip data: Not a gzipped file"),
    "gzip_damaged": (gzip.compress(GOOD)[:12] + bytes(40), {}, ": damaged gzip data"),
    "gzip_empty": (gzip.compress(b""), {}, ": empty file; expected lines"),
    "gzip_bad_line": (
        gzip.compress(GOOD + b"x\n"),
        {},
        ":3:1: expected a number for the label, got 'x'",
    ),
    "bzip2_truncated": (
        bz2.compress(GOOD * 99)[:-9],
        {},
        ": the bzip2 data end too early; the file is",
    ),
    "bzip2_damaged": (b"BZh9" + bytes(40), {}, ": damaged bzip2 data: Invalid data stream"),
    "xz_truncated": (
        lzma.compress(GOOD * 99)[:-9],
        {},
        ": the xz data end too early; the file is trunc",
    ),
    "xz_damaged": (lzma.compress(GOOD)[:20] + b"damage" * 9, {}, ": damaged xz data"),
    # the last line has no line end; other line ends
    "unfinished_line": (
        GOOD + b"0 qid:1 1:",
        {},
        ":3:11: expected a number for the value of feature 1",
    ),
    "crlf": (
        b"1 1:1\r\n\r\n0 1:x\r\n",
        {},
        ":3:5: expected a number for the value of feature 1, got 'x'",
    ),
    "crlf_value": (
        b"1 1:\r\n",
        {},
        ":1:5: expected a number for the value of feature 1, got the end",
    ),
    "old_mac": (b"1 1:1\r0 1:1\r", {}, ":1:8: expected ':' and a value behind feature index 0"),
    "comment_as_value": (
        b"1 1:#x\n",
        {},
        ":1:5: expected a number for the value of feature 1, got '#x'",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_message(name: str, tmp_path: Path) -> None:
    """The message of the mapped file; the same from a stream, with another name."""
    text, options, message = CASES[name]
    path = tmp_path / f"{name}.txt"
    path.write_bytes(text)
    with pytest.raises(DataFormatError) as caught:
        load(path, **options)
    told = str(caught.value)
    assert told.startswith(str(path))
    if name == "value_long_garbage":
        assert message in told
    else:
        assert told.removeprefix(str(path)).startswith(message)
    with pytest.raises(DataFormatError) as streamed:
        load(io.BytesIO(text), **options)
    assert str(streamed.value) == "<stream>" + told.removeprefix(str(path))


def test_zstandard(tmp_path: Path) -> None:
    compress = pytest.importorskip("zstandard").ZstdCompressor().compress
    path = tmp_path / "data.zst"
    for stored, message in [
        (compress(GOOD * 99)[:-9], "the Zstandard data end too early; the file is truncated"),
        (compress(GOOD)[:4], "the Zstandard data end too early; the file is truncated"),
        (b"\x28\xb5\x2f\xfd" + b"\xff" * 40, "damaged Zstandard data"),
        (compress(GOOD) + b"more and more", "damaged Zstandard data"),
    ]:
        path.write_bytes(stored)
        with pytest.raises(DataFormatError, match=message):
            load(path)


def test_missing_file_and_folder(tmp_path: Path) -> None:
    """What the system says is passed on."""
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "absent.txt")
    with pytest.raises(IsADirectoryError):
        open_blocks(tmp_path)
