"""Runs judged by qrels, number by number against trec_eval; labels from qrels; their files."""

from __future__ import annotations

import gzip
import io
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import linrank
import reference
from hypothesis_profiles import examples
from linrank import DataFormatError, Dataset, Qrels, Run, evaluate, evaluate_run
from linrank.data.words import Comments, Words
from linrank.io.trec import label_by_qrels
from linrank.metrics import convention

TREC_NAMES = {
    "map": "map",
    "mrr": "recip_rank",
    "ndcg": "ndcg",
    **{f"ndcg@{k}": f"ndcg_cut_{k}" for k in (5, 10, 20)},
    **{f"p@{k}": f"P_{k}" for k in (5, 10, 20)},
    **{f"recall@{k}": f"recall_{k}" for k in (5, 10, 20)},
    **{f"map@{k}": f"map_cut_{k}" for k in (5, 10, 20)},
    **{f"success@{k}": f"success_{k}" for k in (1, 5, 10)},
}


def collection(seed, n_queries=40, negative=False):
    """(qrels, run): pools that overlap in part, tied scores, queries that only one of them has.

    Some queries have no relevant document, some nothing relevant was retrieved for, some lists are
    shorter than any cutoff.
    """
    rng = np.random.default_rng(seed)
    qrels, run = {}, {}
    for q in range(n_queries):
        documents = [f"D{d}" for d in rng.permutation(60)]
        n_judged, n_retrieved = rng.integers(1, 40), rng.integers(1, 45)
        first = rng.integers(0, 20)
        grades = rng.integers(-2 if negative else 0, 4, n_judged)
        if q % 7 == 3:
            grades[:] = 0
        judged = documents[:n_judged]
        scores = rng.normal(size=n_retrieved).round(1) + rng.choice([0, 1e-12], n_retrieved)
        if q % 9 != 4:
            qrels[f"q{q}"] = dict(zip(judged, grades.tolist(), strict=True))
        if q % 11 != 5:
            retrieved = documents[first : first + n_retrieved]
            run[f"q{q}"] = dict(zip(retrieved, scores[: len(retrieved)].tolist(), strict=True))
    return qrels, run


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("level", [1, 2])
def test_trec_eval(seed, level):
    """Unjudged documents retrieved, judged ones not: every measure of every query."""
    pytrec_eval = pytest.importorskip("pytrec_eval")
    qrels, run = collection(seed, negative=seed % 2 == 1)
    families = {"map", "recip_rank", "ndcg", "ndcg_cut.5,10,20", "P.5,10,20", "recall.5,10,20"}
    families |= {"map_cut.5,10,20", "success.1,5,10"}
    judge = pytrec_eval.RelevanceEvaluator(qrels, families, relevance_level=level)
    truth = judge.evaluate(run)
    chosen = convention("trec_eval", relevant_from=level)
    result = evaluate_run(qrels, run, metrics=list(TREC_NAMES), convention=chosen)
    assert result.query_ids.tolist() == [q for q in qrels if q in run]
    assert set(truth) == set(result.query_ids)
    for ours, theirs in TREC_NAMES.items():
        expected = [truth[q][theirs] for q in result.query_ids]
        assert_allclose(result.per_query[ours], expected, rtol=1e-12, atol=1e-15, err_msg=ours)
        assert_allclose(result[ours], np.mean(expected), rtol=1e-12)


def test_complete_counts_what_nobody_found():
    """trec_eval -c: means over all queries of the qrels, 0 where the run has nothing."""
    qrels, run = collection(1)
    part, whole = (evaluate_run(qrels, run, complete=c) for c in (False, True))
    assert whole.query_ids.tolist() == list(qrels)
    for name in part:
        values = dict(zip(part.query_ids, part.per_query[name], strict=True))
        assert_array_equal(whole.per_query[name], [values.get(q, 0.0) for q in qrels])
        assert_allclose(whole[name], sum(values.values()) / len(qrels), rtol=1e-13)


@pytest.mark.parametrize("ties", ["stable", "average", "pessimistic", "docid"])
@examples(80)
@given(data=st.data())
def test_every_measure_equals_its_definition(ties, data):
    """A list that ends, and rows behind it that count among those to be found."""
    grades, scores = st.integers(0, 3).map(float), st.integers(0, 3).map(float)
    listed = data.draw(st.lists(st.tuples(grades, scores), max_size=6))
    missed = data.draw(st.lists(grades, max_size=4))
    y, s = np.array(listed).reshape(-1, 2).T
    everything = np.array([*y, *missed] or [0.0])
    bottom = np.array([*s, *[-1.0] * (len(everything) - len(s))])
    k = data.draw(st.sampled_from([1, 2, 3, 7]))
    names = ["ndcg", f"ndcg@{k}", "mean_ndcg", "map", f"map@{k}", f"p@{k}", f"recall@{k}", "mrr"]
    names += [f"success@{k}", "rbp", "err", "auc", "pairwise_accuracy", "kendall_tau"]
    qrels = {"q": {f"d{i}": g for i, g in enumerate(everything)}, "other": {"x": 3}}
    run = {"q": {f"d{i}": x for i, x in enumerate(s)}, "other": {"x": 1}}
    rules = convention("linrank", ties=ties)
    result = evaluate_run(qrels, run, metrics=names, convention=rules, complete=True)
    relevant = int((everything >= 1).sum())

    def on_list(measure, *options):
        """Expectation of a function of the labels on the list, over the orders of ties."""
        if not listed:
            return measure(np.array([]), *options)
        return reference.expected(lambda r: measure(r, *options), y, s, ties)

    def ndcg(m):
        options = m, "exponential", "standard"
        best = reference.dcg(sorted(everything, reverse=True), *options)
        return on_list(reference.dcg, *options) / best if best else 0.0

    def precisions(r, depth):
        ap = reference.average_precision(r, depth)
        return 0.0 if math.isnan(ap) else ap * sum(r >= 1)

    hits = on_list(lambda r: sum(r[:k] >= 1))
    c, d, t = reference.pair_counts(everything, bottom)
    truth = {
        "ndcg": ndcg(None),
        f"ndcg@{k}": ndcg(k),
        "mean_ndcg": np.mean([ndcg(m) for m in range(1, len(everything) + 1)]),
        "map": on_list(precisions, None) / relevant if relevant else 0.0,
        f"map@{k}": on_list(precisions, k) / relevant if relevant else 0.0,
        f"p@{k}": hits / k,
        f"recall@{k}": hits / relevant if relevant else 0.0,
        "mrr": on_list(reference.reciprocal_rank),
        f"success@{k}": on_list(reference.success, k),
        "rbp": on_list(reference.rank_biased_precision),
        "err": on_list(reference.err, 3.0),
        "auc": reference.auc(everything, bottom),
        "pairwise_accuracy": c / (c + d + t) if c + d + t else math.nan,
        "kendall_tau": reference.kendall_tau(everything, bottom),
    }
    for name in names:
        found = result.per_query[name][0]
        assert_allclose(found, truth[name], rtol=1e-12, atol=1e-15, err_msg=name)


def test_everything_judged_and_retrieved_is_evaluate():
    """Without missing documents a run is nothing but labels and scores."""
    rng = np.random.default_rng(5)
    n = 30_000
    qid = np.sort(rng.integers(0, 300, n))
    y, s = rng.integers(0, 4, n).astype(float), rng.normal(size=n).round(1)
    docid = np.array([f"d{i}" for i in rng.permutation(n)])
    mixed = rng.permutation(n)
    names = ["ndcg@10", "map", "err", "pairwise_accuracy", "domination_error", "auc", "gamma"]
    for chosen in ("trec_eval", "sklearn"):
        run = Run.of(qid[mixed], docid[mixed], s[mixed])
        got, three = (
            evaluate_run(Qrels.of(qid, docid, y), run, metrics=names, convention=chosen, n_jobs=j)
            for j in (1, 3)
        )
        assert dict(got) == dict(three)
        expected = evaluate(y, s, qid=qid, docid=docid, metrics=names, convention=chosen)
        assert got.query_ids.tolist() == [str(q) for q in expected.query_ids]
        for name in names:
            assert_allclose(got.per_query[name], expected.per_query[name], rtol=1e-13)
            assert_allclose(got[name], expected[name], rtol=1e-13)
        assert got.pairs.totals() == expected.pairs.totals()


def test_ids_are_compared_as_bytes():
    """Ties go to the larger id: accents and capitals sort by their code, numbers as text."""
    documents = ["a", "B", "é", "z", "10", "9", "中"]
    run = {"q": dict.fromkeys(documents, 1.0)}
    for winner in documents:
        result = evaluate_run({"q": {winner: 1}}, run, metrics="mrr")
        rank = sorted(documents, reverse=True).index(winner) + 1
        assert result["mrr"] == pytest.approx(1 / rank)


def test_files_objects_and_mappings_are_the_same(tmp_path):
    (tmp_path / "q").write_text("1 0 a 1\n1 0 b 2\n")
    (tmp_path / "r").write_text("1 Q0 b 1 0.5 t\n1 Q0 c 2 0.25 t\n")
    by_path = evaluate_run(tmp_path / "q", str(tmp_path / "r"))
    qrels, run = linrank.load_qrels(tmp_path / "q"), linrank.load_run(tmp_path / "r")
    assert dict(by_path) == dict(evaluate_run(qrels, run))
    assert dict(by_path) == dict(evaluate_run({1: {"a": 1, "b": 2}}, {1: {"b": 0.5, "c": 0.25}}))
    assert by_path["map"] == 0.5


# ---- bad input --------------------------------------------------------------------------------


def test_nothing_in_common_names_the_ids(tmp_path):
    (tmp_path / "qrels.txt").write_text("".join(f"{q} 0 a 1\n" for q in range(51, 60)))
    (tmp_path / "run.txt").write_text("q51 Q0 a 1 1 t\n")
    with pytest.raises(ValueError, match=r"none of the 1 queries of the run .*run\.txt \('q51'\)"):
        evaluate_run(tmp_path / "qrels.txt", tmp_path / "run.txt")
    with pytest.raises(ValueError, match=r"qrels\.txt \('51', '52', '53', \.\.\.\); the ids must"):
        evaluate_run(tmp_path / "qrels.txt", tmp_path / "run.txt", complete=True)


def test_negative_relevance_needs_a_rule(tmp_path):
    (tmp_path / "q").write_text("1 0 a 1\n1 0 spam -2\n")
    run = {"1": {"a": 1.0}}
    assert evaluate_run(tmp_path / "q", run, metrics="ndcg")["ndcg"] == 1.0
    with pytest.raises(ValueError, match=r"q:2: document 'spam' of query '1' has relevance -2"):
        evaluate_run(tmp_path / "q", run, metrics="ndcg", convention="linrank")
    assert evaluate_run(tmp_path / "q", run, metrics="map", convention="linrank")["map"] == 1.0


def test_wrong_types():
    with pytest.raises(TypeError, match=r"run must be a Run, the path of a file or .* got list"):
        evaluate_run({"q": {"d": 1}}, [1, 2])
    with pytest.raises(TypeError, match="qrels must be a Qrels"):
        evaluate_run(Run.of(["q"], ["d"], [1]), {"q": {"d": 1}})


# ---- labels from qrels by (query, document) -----------------------------------------------------


IDS = st.sampled_from(["1", "2", "07", "q", "ü"])
DOCUMENTS = st.sampled_from(["a", "b", "c", "docid=d", "GX-1"])


def rows_of(pairs: list[tuple[object, str | None]]) -> Dataset:
    words = Words.of("" if d is None else f"docid = {d}" for _, d in pairs)
    data = Dataset.of(np.arange(float(len(pairs)))[:, None], [9.0] * len(pairs))
    qid = np.array([q for q, _ in pairs], dtype=object)
    return replace(data, qid=qid, comments=Comments(words.text, words.offsets))


@examples(40)
@given(
    st.lists(st.tuples(IDS, DOCUMENTS), min_size=1, max_size=12),
    st.dictionaries(st.tuples(IDS, DOCUMENTS), st.sampled_from([-1.0, 0.0, 1.0, 2.5]), min_size=1),
    st.sampled_from(["zero", "drop", "error"]),
)
def test_labels_are_those_of_a_dictionary(pairs, judgments, unjudged):
    qrels: dict[str, dict[str, float]] = {}
    for (q, d), relevance in judgments.items():
        qrels.setdefault(q, {})[d] = relevance
    data, known = rows_of(pairs), [pair in judgments for pair in pairs]
    if not any(known):
        with pytest.raises(ValueError, match=r"none of the .* the ids must be the same"):
            label_by_qrels(data, qrels, unjudged)
        return
    if unjudged == "error" and not all(known):
        with pytest.raises(ValueError, match=f"row {known.index(False)}, document .* not judged"):
            label_by_qrels(data, qrels, unjudged)
        return
    kept = [i for i in range(len(pairs)) if known[i] or unjudged != "drop"]
    found = label_by_qrels(data, qrels, unjudged)
    assert found.labels.tolist() == [judgments.get(pairs[i], 0.0) for i in kept]
    assert found.X[:, 0].tolist() == kept
    assert found.docids == [pairs[i][1] for i in kept]


def test_integer_ids_match_their_text(tmp_path):
    path = tmp_path / "a.qrels"
    path.write_text("7 0 a 2\n8 0 a 1\n")
    data = rows_of([(8, "a"), (7, "a"), (7, "b")])
    data = replace(data, qid=np.array([8, 7, 7]))
    assert label_by_qrels(data, path).labels.tolist() == [1, 2, 0]
    assert data.labels.tolist() == [9, 9, 9]  # what was given stays


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (replace(rows_of([("q", "a")]), comments=None), "have no document ids"),
        (replace(rows_of([("q", "a")]), qid=None), "have no query ids"),
        (rows_of([("q", "a"), ("q", None)]), "row 1 of query 'q' has no document id"),
    ],
)
def test_rows_without_ids_are_refused(data, message):
    with pytest.raises(ValueError, match=message):
        label_by_qrels(data, {"q": {"a": 1}})


def test_what_is_no_judgment_is_refused():
    with pytest.raises(TypeError, match="qrels must be a Qrels, the path"):
        label_by_qrels(rows_of([("q", "a")]), 3)
    with pytest.raises(ValueError, match="unjudged must be 'zero', 'drop' or 'error'"):
        label_by_qrels(rows_of([("q", "a")]), {"q": {"a": 1}}, "none")


QRELS = b"301 0 FR-1 2\n301 0 FR-2 0\n302 0 FR-1 1\n"
RUN = b"301 Q0 FR-2 1 9.5 mine\n301 Q0 FR-1 2 -7e-1 mine\n302 Q0 x 1 3 other\n"


def test_columns():
    qrels, run = linrank.load_qrels(io.BytesIO(QRELS)), linrank.load_run(io.BytesIO(RUN))
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
    qrels = linrank.load_qrels(io.BytesIO(text))
    assert qrels.to_dict() == {"b": {"d1": 1.0, "d3": -1.0}, "a": {"d2": 0.0}}
    assert qrels.lines.tolist() == [2, 3, 6]


def test_many_blocks(tmp_path):
    """Larger than a block of the reader: rows, lines and queries go on across blocks."""
    n, path, seen = 150_000, tmp_path / "run.txt", []
    path.write_text("".join(f"q{i % 700} Q0 document-{i:09d} 1 {i / 8} tag\n" for i in range(n)))
    assert path.stat().st_size > 4 << 20
    run = linrank.load_run(path, progress=lambda done, total: seen.append((done, total)))
    assert (run.n_rows, run.n_queries, run.lines[-1]) == (n, 700, n)
    assert run.query_ids[:2].tolist() == ["q0", "q1"]
    assert np.array_equal(run.query, np.arange(n) % 700)
    assert np.array_equal(run.scores, np.arange(n) / 8)
    assert run.docids[77_777] == "document-000077777"
    assert seen[-1] == (path.stat().st_size,) * 2
    with path.open("a") as file:
        file.write("q1 Q0 document-000000001 1 0 tag\n")
    with pytest.raises(DataFormatError, match=rf":{n + 1}: .* was given in line 2 already"):
        linrank.load_run(path)


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
    linrank.write_run(text, Run.from_dict(table))
    back = linrank.load_run(io.BytesIO(text.getvalue().encode()))
    assert back.to_dict() == table
    rows = [line.split(" ") for line in text.getvalue().split("\n")[:-1]]
    for query in table:
        mine = [row for row in rows if row[0] == query]
        assert [int(row[3]) for row in mine] == list(range(1, len(mine) + 1))
        scores = [float(row[4]) for row in mine]
        assert scores == sorted(scores, reverse=True)
    text = io.StringIO()
    linrank.write_qrels(text, Qrels.from_dict(table))
    assert linrank.load_qrels(io.BytesIO(text.getvalue().encode())).to_dict() == table


def test_bytes_that_are_no_text_survive():
    raw = b"q\xff Q0 doc\xfe\xc3\xa9 1 1.0 t\n"
    run = linrank.load_run(io.BytesIO(raw))
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
    *((linrank.load_run, *bad) for bad in BAD_RUNS.values()),
    *((linrank.load_qrels, *b) for b in BAD_QRELS.values()),
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
        (lambda: linrank.write_run(io.StringIO(), Run(*TWO, tag="a b")), "tag 'a b' must be one"),
    ],
)
def test_bad_columns(attempt, message):
    with pytest.raises((TypeError, ValueError), match=message):
        attempt()


@pytest.mark.parametrize("ending", ["", ".gz"])
def test_files_are_compressed_as_their_names_say(tmp_path, ending):
    run = Run.of([2, 2, 1], ["a", "b", "a"], [0.5, 2, 1])
    qrels = Qrels.of(["q"] * 2, "de", [1, 0.5])
    runs, judged = (tmp_path / f"a.{kind}{ending}" for kind in ("run", "qrels"))
    linrank.write_run(runs, run)
    linrank.write_qrels(judged, qrels)
    unpack = gzip.decompress if ending else bytes
    expected = b"2 Q0 b 1 2.0 linrank\n2 Q0 a 2 0.5 linrank\n1 Q0 a 1 1.0 linrank\n"
    assert unpack(runs.read_bytes()) == expected
    assert unpack(judged.read_bytes()) == b"q 0 d 1\nq 0 e 0.5\n"
    assert linrank.load_run(runs).to_dict() == run.to_dict()
    assert linrank.load_qrels(judged).to_dict() == qrels.to_dict()
