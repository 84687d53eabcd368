"""Runs judged by qrels, number by number against trec_eval; labels from qrels."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import reference
from hypothesis_profiles import examples
from linrank import Qrels, Run, evaluate, evaluate_run, load_qrels, load_run
from linrank.data.dataset import Dataset
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
    result = evaluate_run(
        {"q": {f"d{i}": g for i, g in enumerate(everything)}, "other": {"x": 3}},
        {"q": {f"d{i}": x for i, x in enumerate(s)}, "other": {"x": 1}},
        metrics=names,
        convention=convention("linrank", ties=ties),
        complete=True,
    )
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
    qrels, run = load_qrels(tmp_path / "q"), load_run(tmp_path / "r")
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
    with pytest.raises(ValueError, match="unjudged must be one of zero, drop, error"):
        label_by_qrels(rows_of([("q", "a")]), {"q": {"a": 1}}, "none")
