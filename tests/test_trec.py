"""TREC qrels and runs: reading, writing, and files that are not as they should be."""

from __future__ import annotations

import gzip
import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from linrank import DataFormatError, Qrels, Run, load_qrels, load_run, write_qrels, write_run
from linrank.data.words import Words

QRELS = b"301 0 FR-1 2\n301 0 FR-2 0\n302 0 FR-1 1\n"
RUN = b"301 Q0 FR-2 1 9.5 mine\n301 Q0 FR-1 2 -7e-1 mine\n302 Q0 x 1 3 other\n"


def test_columns():
    qrels, run = load_qrels(io.BytesIO(QRELS)), load_run(io.BytesIO(RUN))
    assert qrels.to_dict() == {"301": {"FR-1": 2.0, "FR-2": 0.0}, "302": {"FR-1": 1.0}}
    assert run.to_dict() == {"301": {"FR-2": 9.5, "FR-1": -0.7}, "302": {"x": 3.0}}
    assert (run.tag, run.n_rows, run.n_queries) == ("mine", 3, 2)
    assert qrels.qid.tolist() == ["301", "301", "302"]
    assert (run.docids[0], run.docids[-1], len(run.docids)) == ("FR-2", "x", 3)
    assert qrels.relevance.tolist() == [2.0, 0.0, 1.0]
    with pytest.raises(IndexError, match="row 3 of 3 rows"):
        run.docids[3]


TWO = (np.zeros(1, np.int64), np.array(["q"], object), Words.of(["d"]), np.ones(1))


def test_any_blanks_any_order_and_no_last_line_end():
    """Tabs, Windows line ends, blank lines, a mark, queries that come back."""
    text = b"\xef\xbb\xbf\r\nb\t0\td1\t1\r\n  a 0   d2 0 \n\n \t\nb 0 d3 -1"
    qrels = load_qrels(io.BytesIO(text))
    assert qrels.to_dict() == {"b": {"d1": 1.0, "d3": -1.0}, "a": {"d2": 0.0}}
    assert qrels.lines.tolist() == [2, 3, 6]


def test_many_blocks(tmp_path):
    """Larger than a block of the reader: rows, lines and queries go on across blocks."""
    n, path, seen = 150_000, tmp_path / "run.txt", []
    path.write_text("".join(f"q{i % 700} Q0 document-{i:09d} 1 {i / 8} tag\n" for i in range(n)))
    assert path.stat().st_size > 4 << 20
    run = load_run(path, progress=lambda done, total: seen.append((done, total)))
    assert (run.n_rows, run.n_queries, run.lines[-1]) == (n, 700, n)
    assert run.query_ids[:2].tolist() == ["q0", "q1"]
    assert np.array_equal(run.query, np.arange(n) % 700)
    assert np.array_equal(run.scores, np.arange(n) / 8)
    assert run.docids[77_777] == "document-000077777"
    assert seen[-1] == (path.stat().st_size,) * 2
    with path.open("a") as file:
        file.write("q1 Q0 document-000000001 1 0 tag\n")
    with pytest.raises(DataFormatError, match=rf":{n + 1}: .* was given in line 2 already"):
        load_run(path)


words = st.text(
    st.characters(blacklist_categories=["Cs", "Zs", "Zl", "Zp", "Cc"]), min_size=1, max_size=5
).filter(lambda word: word.split() == [word] and word[0] != "\ufeff")  # a mark, at the start


@given(
    st.dictionaries(
        words,
        st.dictionaries(words, st.floats(allow_nan=False, allow_infinity=False), min_size=1),
        min_size=1,
    )
)
def test_what_is_written_reads_back(table):
    """Every bit of every score; documents by falling score, ranks from 1."""
    text = io.StringIO()
    write_run(text, Run.from_dict(table))
    back = load_run(io.BytesIO(text.getvalue().encode()))
    assert back.to_dict() == table
    rows = [line.split(" ") for line in text.getvalue().split("\n")[:-1]]
    for query in table:
        mine = [row for row in rows if row[0] == query]
        assert [int(row[3]) for row in mine] == list(range(1, len(mine) + 1))
        scores = [float(row[4]) for row in mine]
        assert scores == sorted(scores, reverse=True)
    text = io.StringIO()
    write_qrels(text, Qrels.from_dict(table))
    assert load_qrels(io.BytesIO(text.getvalue().encode())).to_dict() == table


def test_bytes_that_are_no_text_survive():
    raw = b"q\xff Q0 doc\xfe\xc3\xa9 1 1.0 t\n"
    run = load_run(io.BytesIO(raw))
    assert run.query_ids.tolist() == ["q\\xff"]
    assert run.docids[0].encode("utf-8", "surrogateescape") == b"doc\xfe\xc3\xa9"
    assert Words.of(run.docids.tolist()).text.tobytes() == b"doc\xfe\xc3\xa9"


# ---- files that are not as they should be -----------------------------------------------------

BAD_RUNS = {
    "empty": (b"", ": no line with data; expected lines 'qid Q0 docid rank score tag'"),
    "blank": (b"\n \n", ": no line with data"),
    "qrels": (QRELS, ":1: expected 6 columns .*, got 4; this looks like a file of judgments"),
    "five": (RUN + b"1 Q0 d 1 1\n", ":4: expected 6 columns 'qid Q0 docid rank score tag', got 5"),
    "seven": (b"1 Q0 d 1 1 a b\n", ":1: expected 6 columns .*, got 7$"),
    "word": (RUN + b"\n1 Q0 d 1 high t\n", ":5: the score is 'high'; expected a finite number"),
    "nan": (b"1 Q0 d 1 nan t\n", ":1: the score is 'nan'; expected a finite number"),
    "inf": (b"1 Q0 d 1 -inf t\n", ":1: the score is '-inf'; expected a finite number"),
    "huge": (b"1 Q0 d 1 1e999 t\n", ":1: the score is out of range: '1e999'"),
    "hexadecimal": (b"1 Q0 d 1 0x10 t\n", ":1: the score is '0x10'"),
    "endless": (b"1 Q0 d 1 " + b"9" * 5000 + b" t\n", r":1: the score is '9{40}\.\.\.'"),
    "unprintable": (b"1 Q0 d 1 \xff\x01 t\n", r":1: the score is '\\xff\\x01'"),
    "nul": (b"1 Q0 a\0b 1 1 t\n", ":1: NUL byte; expected text"),
    "twice": (
        RUN + b"301 Q0 FR-1 3 1 t\n",
        ":4: document 'FR-1' of query '301' was given in line 2",
    ),
    "zip": (b"PK\x03\x04rest", ": expected UTF-8 text, got a zip archive"),
    "cut": (gzip.compress(RUN * 1)[:-9], "the gzip data end too early"),
}
BAD_QRELS = {
    "run": (RUN, ":1: expected 4 columns .*, got 6; this looks like a run"),
    "three": (QRELS + b"1 d 1\n", ":4: expected 4 columns 'qid iteration docid relevance', got 3"),
    "word": (b"1 0 d yes\n", ":1: the relevance is 'yes'; expected a finite number"),
    "twice": (QRELS + b"302 9 FR-1 1\n", ":4: document 'FR-1' of query '302' was given in line 3"),
    "svmlight": (b"2 qid:1 1:0.5 2:1\n", ":1: the relevance is '2:1'; expected a finite number"),
}


BAD = [
    *((load_run, *bad) for bad in BAD_RUNS.values()),
    *((load_qrels, *b) for b in BAD_QRELS.values()),
]


@pytest.mark.parametrize(("load", "text", "message"), BAD, ids=[*BAD_RUNS, *BAD_QRELS])
def test_bad_files(load, text, message):
    with pytest.raises(DataFormatError, match=f"<stream>.*{message}"):
        load(io.BytesIO(text))


@pytest.mark.parametrize(
    ("attempt", "message"),
    [
        (lambda: Run.of(["a b"], ["d"], [1]), "qid 'a b' must be one word"),
        (lambda: Run.of(["a"], [""], [1]), "docid '' must be one word"),
        (lambda: Run.of(["a"], ["d\n"], [1]), r"docid 'd\\n' must be one word"),
        (lambda: Run.of(["a"], ["d", "e"], [1]), "Run has 2 documents but 1 numbers"),
        (lambda: Run.of(["a", "a"], ["d", "d"], [1, 2]), "'d' of query 'a' is in row 1 and in row"),
        (lambda: Run.of(["a"], ["d"], [np.nan]), "Run has nan at row 0; numbers must be finite"),
        (lambda: Run.of(["a"], ["d"], [[1.0]]), r"one number per row, got shape \(1, 1\)"),
        (lambda: Run.of(["a", "b"], ["d"], [1]), "qid has 2 elements but there are 1 rows"),
        (lambda: Qrels.from_dict({"q": 3}), r"expected \{query: \{document: number\}\}, got dict"),
        (lambda: write_run(io.StringIO(), Run(*TWO, tag="a b")), "tag 'a b' must be one word"),
    ],
)
def test_bad_columns(attempt, message):
    with pytest.raises((TypeError, ValueError), match=message):
        attempt()


@pytest.mark.parametrize("ending", ["", ".gz"])
def test_files_are_compressed_as_their_names_say(tmp_path, ending):
    run, qrels = (
        Run.of([2, 2, 1], ["a", "b", "a"], [0.5, 2, 1]),
        Qrels.of(["q"] * 2, "de", [1, 0.5]),
    )
    runs, judged = (tmp_path / f"a.{kind}{ending}" for kind in ("run", "qrels"))
    write_run(runs, run)
    write_qrels(judged, qrels)
    unpack = gzip.decompress if ending else bytes
    expected = b"2 Q0 b 1 2.0 linrank\n2 Q0 a 2 0.5 linrank\n1 Q0 a 1 1.0 linrank\n"
    assert unpack(runs.read_bytes()) == expected
    assert unpack(judged.read_bytes()) == b"q 0 d 1\nq 0 e 0.5\n"
    assert load_run(runs).to_dict() == run.to_dict()
    assert load_qrels(judged).to_dict() == qrels.to_dict()
