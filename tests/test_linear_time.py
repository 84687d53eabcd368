"""Text that strangers wrote is read in time that grows as its length, whatever it holds."""

import contextlib
import io
import time

import numpy as np
import pytest

import linrank
from linrank.data.words import Comments
from linrank.errors import did_you_mean
from linrank.export.vespa import check_rank_feature
from linrank.io.sidecars import load_preferences
from linrank.io.store.chunks import read_manifest
from linrank.io.svmlight import _HEADER
from linrank.metrics.measures import parse as parse_metric
from linrank.reports.html import clear
from linrank.system.json_text import MAX_BRACKETS, MalformedJSON, TooMuchJSON, parse

SIZES = [4**k for k in range(6, 10)]  # 4 kB to 262 kB: a square takes minutes at the last step


def seconds(work, argument):
    best = np.inf
    for _ in range(3):
        start = time.process_time()
        with contextlib.suppress(ValueError):
            work(argument)
        best = min(best, time.process_time() - start)
    return best


def assert_linear(work, make):
    """Four times the text takes four times as long, eight with a margin; its square, sixteen."""
    before = None
    for n in SIZES:
        now = seconds(work, make(n))
        assert before is None or now < 8.0 * before + 0.02, f"{before} s, then {now} s at {n}"
        before = now


def of_json(content):
    return parse(content, max_values=10**6)


def load_text(content):
    return linrank.load(io.BytesIO(content))


def docid(text):
    return Comments(np.frombuffer(text, np.uint8), np.array([0, len(text)])).docid(0)


def words(n):
    rng = np.random.default_rng(0)
    return "".join(map(chr, 0x4E00 + rng.integers(0, 199, n)))


JSON = {
    "escaped quotes that never end": lambda n: b'{"format": "' + b'\\"' * n,
    "backslashes": lambda n: b'"' + b"\\" * n,
    "quotes": lambda n: b'"' * n,
    "strings": lambda n: b"[" + b'"a",' * n,
    "escapes": lambda n: b'"' + b"\\u0041" * n,
    "lists": lambda n: b"[" * n,
    "objects": lambda n: b'{"a":' * n,
    "digits": lambda n: b"1" * n,
    "numbers of 64 digits": lambda n: b"[" + (b"1" * 64 + b",") * (n // 64),
    "numbers": lambda n: b"[" + b"1," * n,
    "blanks": lambda n: b" " * n,
    "keys": lambda n: b"{" + b",".join(b'"%d": 1' % k for k in range(n // 8)) + b"}",
    "the same key": lambda n: b"{" + b'"a": 1,' * (n // 8) + b'"a": 1}',
    "minus signs": lambda n: b"-" * n,
    "lines": lambda n: b"\n" * n + b"x",
}


@pytest.mark.parametrize("name", ["escaped quotes that never end", "strings", "digits", "lists"])
def test_model_files_and_manifests(name, tmp_path):
    def work(content):
        (tmp_path / "m.json").write_bytes(content)
        for read in (linrank.load_model, read_manifest):
            with contextlib.suppress(ValueError):
                read(str(tmp_path / "m.json"))

    assert_linear(work, JSON[name])


TEXTS = {
    **{f"JSON: {name}": (of_json, make) for name, make in JSON.items()},
    "weights of preferences": (
        lambda text: load_preferences(io.BytesIO(text)),
        lambda n: b"0 1 " + b"1" * n + b"x\n",
    ),
    "names of metrics": (parse_metric, lambda n: "ndcg" + " " * n + "!"),
    "options of metrics": (parse_metric, lambda n: "ndcg" + "(" * n),
    "first lines": (_HEADER.match, lambda n: "expected a number for the label, got '" + "a" * n),
    "document ids": (docid, lambda n: b"docid " * (n // 6)),
    "rank features": (check_rank_feature, lambda n: "a(" * n),
    "outputs of rank features": (check_rank_feature, lambda n: "a" + ".a" * n + "("),
    "names that are alike": (lambda s: did_you_mean(s, [s[::-1]]), words),
    "words in reports": (clear, lambda n: ("a" * 149 + " ") * (n // 150)),
    "labels": (load_text, lambda n: b"1" * n),
    "query ids": (load_text, lambda n: b"1 qid:" + b"1" * n + b" 1:1\n"),
    "values": (load_text, lambda n: b"1 qid:1 1:" + b"1" * n + b"x\n"),
    "features": (load_text, lambda n: b"1 qid:1" + b" 1:" * n),
    "qrels": (
        lambda text: linrank.load_qrels(io.BytesIO(text)),
        lambda n: b"1 0 d" + b"1" * n + b" 1x\n",
    ),
}


@pytest.mark.parametrize(("work", "make"), TEXTS.values(), ids=TEXTS)
def test_texts(work, make):
    assert_linear(work, make)


@pytest.mark.parametrize(
    ("content", "error", "message"),
    [
        (b"[" * (MAX_BRACKETS + 1), TooMuchJSON, "more lists and objects than 64"),
        (b'["' + b'","' * 10, TooMuchJSON, "more than 10 values"),
        (b"[" + b"1," * 10 + b"1]", None, ""),
        (b"[" + b"1," * 11 + b"1]", TooMuchJSON, "more than 10 values"),
        (b"1" * 64, None, ""),
        (b"1" * 65, TooMuchJSON, "a number of more than 64 characters"),
        (b'["' + b"1" * 65 + b'"]', None, ""),
        (rb'["\\", "[[[[", "\"", "{,,,,,,,,,,,,,,"]', None, ""),
        (b'["a" "', MalformedJSON, "not JSON at line 1, column 6"),
        (b'"\xff"', MalformedJSON, "byte 1 is not UTF-8"),
        (b"[-Infinity]", MalformedJSON, "holds -Infinity, which is not a finite number"),
        (b'{"a": {"b": 1, "b": 1}}', MalformedJSON, "the key 'b' occurs twice"),
    ],
)
def test_what_a_text_would_make_is_counted_outside_its_strings(content, error, message):
    if error is None:
        parse(content, max_values=10)
        return
    with pytest.raises(error, match=message):
        parse(content, max_values=10)
