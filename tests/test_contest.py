"""Contests as a whole: processes, budgets, rows that say what went wrong, tables."""

import json
import os
import tempfile
import time
from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array

from cli_files import processes_of
from contest_trainers import method
from linrank import Dataset, RankSVM, compare_methods, evaluate, make_ranking
from linrank.judging.candidates import contestants
from linrank.judging.contest import Entry, chosen_parameters
from linrank.judging.runner import Outcome, estimate_seconds
from linrank.metrics import Evaluation
from linrank.ranksvm.path import GRID
from linrank.search.folds import deal


@pytest.fixture(scope="module")
def parts():
    shape = {"n_queries": 15, "n_features": 4, "noise": 0.5}
    made = [make_ranking(**shape, random_state=k) for k in range(4)]
    return [replace(data, qid=np.asarray(data.qid) + 100 * k) for k, data in enumerate(made)]


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    """A folder for temporary files of its own."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def contest_of(parts, *names, **options):
    options = {"baseline": "first_feature", "metrics": ["map", "ndcg@5"], "n_jobs": 2} | options
    options = {"selection": "validation"} | options
    return compare_methods(*parts[:3], methods=[method("first_feature"), *names], **options)


# ---- what goes well -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def many():
    """Parts of one ranking, with enough validation queries to choose by."""
    data = make_ranking(n_queries=240, n_features=4, noise=0.5, random_state=0)
    ids = np.asarray(data.qid)
    return [data.select(chosen) for chosen in (ids < 20, (ids >= 20) & (ids < 220), ids >= 220)]


def measured(fit, data):
    return evaluate(data.y, fit.predict(data.X), qid=data.qid, metrics="map")["map"]


ALIKE = {"pair_weighting": "uniform", "query_normalization": None}


def test_the_figures_are_those_of_fits_by_hand(many):
    contest = compare_methods(*many, methods=["ranksvm"], metrics="map", scoring="map")
    train, valid, test = many
    usual = RankSVM(**ALIKE).fit(train.X, train.y, qid=train.qid).C_
    Cs = np.array(GRID) * usual
    fits = [RankSVM(C=C, **ALIKE, tol=1e-8).fit(train.X, train.y, qid=train.qid) for C in Cs]
    on_validation = [measured(fit, valid) for fit in fits]
    (outcome,) = contest["ranksvm"].outcomes
    assert outcome.score == pytest.approx(max(on_validation), abs=2e-3)
    chosen = fits[int(np.argmin(abs(Cs - outcome.parameters.get("C", usual))))]
    assert contest["ranksvm"].evaluation["map"] == pytest.approx(measured(chosen, test), abs=2e-3)
    assert outcome.n_candidates == 26
    assert outcome.fit_seconds > 0
    assert outcome.search_seconds > 0


def test_few_validation_queries_leave_the_choice_to_folds_of_the_training_queries(parts):
    """Trained on the whole training part and nothing else, as without the validation part."""
    train, valid, test = parts[:3]
    contest = compare_methods(train, valid, test, methods=["ranksvm"], metrics="map", scoring="map")
    (outcome,) = contest["ranksvm"].outcomes
    C, held_out = outcome.parameters["C"], np.empty(train.n_rows)
    for fold in deal(train, 5):
        rows, others = train.select(fold.train), train.select(fold.valid)
        fit = RankSVM(C=C, **ALIKE, tol=1e-8).fit(rows.X, rows.y, qid=rows.qid)
        held_out[fold.valid] = fit.predict(others.X)
    by_hand = evaluate(train.y, held_out, qid=train.qid, metrics="map")["map"]
    assert outcome.score == pytest.approx(by_hand, abs=5e-3)
    chosen = RankSVM(C=C, **ALIKE, tol=1e-8).fit(train.X, train.y, qid=train.qid)
    assert contest["ranksvm"].evaluation["map"] == pytest.approx(measured(chosen, test), abs=2e-3)
    without = compare_methods(train, test=test, methods=["ranksvm"], metrics="map", scoring="map")
    assert without["ranksvm"].evaluation.means == contest["ranksvm"].evaluation.means


def witnessed(path, *data):
    """What two methods of the same candidates were trained on."""
    methods = [
        replace(method("witness"), name=name, settings={"path": str(path / name)})
        for name in ("one", "other")
    ]
    contest = compare_methods(*data, methods=methods, baseline="one", metrics="map")
    return contest, [(path / m.name).read_text().splitlines() for m in methods]


def test_all_methods_are_trained_on_the_same_folds_and_shown_no_more(parts, tmp_path):
    contest, (one, other) = witnessed(tmp_path, *parts[:3])
    assert one == other
    seen = [json.loads(line) for line in one]
    # Two candidates on five folds; the first, which is the best, on all rows, and again for time.
    assert sorted(k for k, *_ in seen) == [1] * 7 + [2] * 5
    assert not any(has_part for _, has_part, _ in seen)
    sizes = [len(rows) for _, _, rows in seen]
    assert sorted(sizes)[-2:] == [parts[0].n_rows] * 2
    assert sum(sizes[:5]) == 4 * parts[0].n_rows
    text, told = " ".join(contest.to_text().split()), contest.to_dict()
    assert "the best in 5-fold cross-validation over the training queries by ndcg@10" in text
    assert "a validation part of 15 queries, fewer than 200, is left aside" in text
    assert told["selection"] == "in 5-fold cross-validation over the training queries"
    assert told["methods"][0]["folds"][0]["n_candidates"] == 2
    assert told["methods"][0]["folds"][0]["parameters"] == {"k": 1}


def test_many_validation_queries_choose(many, tmp_path):
    contest, (one, other) = witnessed(tmp_path, *many)
    assert one == other
    seen = [json.loads(line) for line in one]
    assert [(k, has_part) for k, has_part, _ in seen] == [(1, True), (2, True), (1, True)]
    assert all(len(rows) == many[0].n_rows for _, _, rows in seen)
    assert contest.to_dict()["selection"] == "on the validation part"
    assert "left aside" not in contest.to_text()


def test_the_validation_part_chooses_where_the_training_queries_are_fewer(parts):
    train = parts[0].select(np.asarray(parts[0].qid) < 4)
    contest = contest_of([train, *parts[1:]], selection="auto")
    assert contest.selection == "on the validation part"
    with pytest.raises(ValueError, match="4 training queries are too few for 5-fold"):
        compare_methods(train, test=parts[1], methods=["random"], baseline="random")


def test_the_candidates_chosen_on_folds_are_told_together(parts):
    def entry(*chosen):
        outcomes = tuple(Outcome("done", parameters=each) for each in chosen)
        return Entry(method("equal"), outcomes, None)

    assert chosen_parameters(entry({}, {})) == "defaults"
    told = chosen_parameters(entry({"C": 1.0}, {"C": 0.5}, {}))
    assert told == "C 0.5–1 (2 folds); defaults (1 fold)"


def test_folds_are_pooled_over_their_queries(parts):
    metrics, first = ["map", "pairwise_accuracy"], method("first_feature")
    contest = compare_methods(folds=parts, methods=[first], baseline=first.name, metrics=metrics)
    tested = (parts[3], *parts[:3])
    alone = [evaluate(d.y, d.X[:, 0], qid=d.qid, metrics=metrics) for d in tested]
    by_hand = Evaluation.joined(alone)
    found = contest["first_feature"].evaluation
    assert found.means == pytest.approx(by_hand.means, abs=1e-12)
    assert found.n_queries == 60
    assert len(contest["first_feature"].outcomes) == 4
    assert "4 folds of 4 subsets, 2 to train, 1 to test" in contest.to_text()


# ---- how methods may behave ---------------------------------------------------------------------

BEHAVIOR = {  # the remark of each method, empty where all goes well
    "equal": "",
    "infinite": "",
    "plain": "",
    "chatter": "",
    "slow_first_feature": "",
    "<script>": "",
    "crash": "the process died of SIGSEGV",
    "leave": "the process ended with status 3: the disk is on fire",
    "refuse": "failed: ValueError: not with these labels",
    "nothing": "the method has come up with no model",
    "only_infinite": "no candidate gives finite scores",
    "absent": "the package no_such_package is not installed: pip install no_such_package",
}
HURRIED = {  # with a budget of a second
    "sleep": "no candidate within 1 s",
    "tire": "stopped after 1 s; the only candidate so far counts",
    "mute_at_the_second": "stopped after 1 s; the only candidate so far counts",
    "family": "no candidate within 1 s",
}


@pytest.fixture(scope="module")
def behaviors(parts, tmp_path_factory):
    """A contest of all of them, and another one in a hurry; no file is left."""
    odd = {
        "absent": replace(method("chatter"), name="absent", needs="no_such_package"),
        "<script>": replace(method("first_feature"), name="<script>"),
    }
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("temporary")
        patch.setattr(tempfile, "tempdir", str(folder))
        usual = contest_of(parts, *(odd.get(name) or method(name) for name in BEHAVIOR))
        hurried = contest_of(parts, *map(method, HURRIED), budget=1.0)
        assert os.listdir(folder) == []
    return usual, hurried


@pytest.mark.parametrize("name", [*BEHAVIOR, *HURRIED])
def test_a_method_is_a_row_that_says_how_it_behaved(behaviors, name):
    contest, remark = behaviors[name in HURRIED], (BEHAVIOR | HURRIED)[name]
    entry = contest[name]
    assert remark in entry.remark
    assert bool(remark) == bool(entry.remark)
    is_cut = remark.startswith("stopped")
    assert entry.has_result == (name in contest.comparison.methods) == (not remark or is_cut)
    usual = "failed" if remark else "done"
    odd = {"absent": "missing", "sleep": "over budget", "family": "over budget"}
    assert entry.outcomes[0].status == ("cut" if is_cut else odd.get(name, usual))
    for shown in (contest.to_text(), contest.to_markdown()):
        assert entry.remark in " ".join(shown.split())
    assert "no result" in contest.to_html()


def test_what_is_chosen_and_what_counts(behaviors):
    usual, hurried = behaviors
    assert usual["equal"].outcomes[0].parameters == {"k": 0}  # among equals the first
    cell = usual.comparison.cells["equal", "map"]
    assert (cell.difference, cell.p) == (0.0, 1.0)
    assert usual["infinite"].outcomes[0].parameters == {"value": 1.0}
    (outcome,) = usual["plain"].outcomes  # whatever predicts is a model
    assert (outcome.parameters, outcome.size.n_bytes > 0) == ({}, True)
    cut = hurried["tire"]
    assert cut.outcomes[0].n_candidates == 1
    assert 0 <= cut.fit_seconds < 1
    assert cut.evaluation.means == hurried["first_feature"].evaluation.means
    assert "tire *" in hurried.to_text()
    assert "*: the budget ended the search" in hurried.to_text()
    # The second candidate is better, and the process is ended before it can tell.
    (outcome,) = hurried["mute_at_the_second"].outcomes
    assert outcome.parameters == {"k": 0}
    np.testing.assert_array_equal(outcome.scores, np.zeros(parts_of_test(hurried)))
    assert processes_of("sleep\x0061") == []  # of the family


def parts_of_test(contest):
    return len(contest["first_feature"].outcomes[0].scores)


def test_the_tables(behaviors):
    contest = behaviors[0]
    text = contest.to_text()
    for wanted in ("one fit", "search", "model", "corrected p", "95% interval", "k 0", "1 weight"):
        assert wanted in text
    found = json.loads(json.dumps(contest.to_dict(), allow_nan=False))
    assert [m["method"] for m in found["methods"]] == ["first_feature", *BEHAVIOR]
    slow = found["methods"][5]
    assert 0.25 <= slow["fit_seconds"] <= slow["search_seconds"]
    assert found["comparison"]["baseline"] == "first_feature"
    assert repr(contest).startswith("<Contest of 13 methods, 7 with a result, one split")
    assert contest._repr_html_() == contest.to_html()
    assert "<script>" not in contest.to_html()
    assert "&lt;script&gt;" in contest.to_html()
    with pytest.raises(KeyError, match="'sgd' did not take part; there are first_feature"):
        contest["sgd"]
    assert max(map(len, contest.comparison.to_text(80).splitlines())) <= 80


# ---- what goes wrong ----------------------------------------------------------------------------


def test_candidates_that_the_measure_cannot_judge_are_passed_over(parts):
    """All scores equal have no Kendall's τ: no number, and not the best of all."""
    contest = contest_of(parts, method("flat_first"), scoring="kendall_tau", metrics="kendall_tau")
    (outcome,) = contest["flat_first"].outcomes
    assert outcome.parameters == {"k": 0}
    assert np.isfinite(outcome.score)
    assert max(map(len, contest.to_text(80).splitlines())) <= 80
    assert contest.to_text(500).splitlines()[:4] == contest.to_text().splitlines()[:4]


def test_negative_labels_are_chosen_by_pairs_unless_told(parts):
    lower = [replace(part, labels=part.labels - 5.0) for part in parts]
    contest = contest_of(lower, metrics=None)
    assert contest.rules.scoring == "pairwise_accuracy"
    assert contest.metrics == ("map", "pairwise_accuracy")


@pytest.mark.slow
def test_what_was_said_last_counts_after_a_cut(parts):
    contest = contest_of(parts, method("tire"), budget=1.0, progress=lambda state: time.sleep(1.5))
    assert contest["tire"].outcomes[0].status == "cut"


@pytest.mark.parametrize(
    "name", ["catboost", pytest.param("forest", marks=pytest.mark.slow), "svr-l2", "sgd"]
)
def test_sparse_rows_are_no_obstacle_in_a_process_of_their_own(parts, name):
    """There they are maps of files that cannot be written."""
    needs = contestants()[name].needs
    if needs is not None:
        pytest.importorskip(needs)
    sparse = [Dataset.of(csr_array(part.X), part.y, qid=part.qid) for part in parts[:3]]
    contest = compare_methods(*sparse, methods=[name], baseline=name, metrics="map", budget=60)
    assert contest[name].remark == ""


def test_a_baseline_that_fails_is_replaced_and_said(parts):
    contest = compare_methods(
        *parts[:3], methods=[method("crash"), method("first_feature")], baseline="crash"
    )
    assert contest.comparison.baseline == "first_feature"
    assert "the baseline crash has no result; compared with first_feature" in contest.to_text()


def test_nobody_with_a_result_still_is_a_table(parts):
    contest = compare_methods(*parts[:3], methods=[method("crash")], baseline="crash")
    assert contest.comparison is None
    assert "no method has come to a result" in contest.to_text()
    assert json.loads(json.dumps(contest.to_dict()))["comparison"] is None


def test_a_method_that_fails_on_a_fold_has_no_result(parts):
    even = [p.select(np.arange(p.n_rows - p.n_rows % 2)) for p in parts]
    even[1] = even[1].select(np.arange(even[1].n_rows - 1))
    methods, how = [method("last_fold_fails"), method("equal")], {"selection": "validation"}
    contest = compare_methods(folds=even, methods=methods, baseline="equal", **how)
    entry = contest["last_fold_fails"]
    assert [o.status for o in entry.outcomes] == ["failed", "failed", "done", "done"]
    assert not entry.has_result
    assert entry.remark.startswith("2 of 4 folds, fold 1 first: failed: RuntimeError: an odd")


def test_the_time_left_is_estimated_by_what_methods_took_before():
    assert estimate_seconds([("a", 0.0)], {}, 1) is None
    took = {"a": [2.0, 4.0], "b": [10.0]}  # of one that has not ended: 6.5 seconds
    waiting = [("a", 1.0), ("b", 0.0), ("c", 0.0)]
    assert estimate_seconds(waiting, took, 2) == pytest.approx((2.0 + 10.0 + 6.5) / 2)
    assert estimate_seconds([("a", 50.0)], took, 2) == 0.0
    assert estimate_seconds([("c", 60.0)], took, 1) == 60.0


def test_an_interrupt_leaves_no_process_and_no_file(parts, temporary):
    def interrupt(state):
        if state["event"] == "running" and state["n_done"] == 1:
            assert state["seconds_left"] > 0.0
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        contest_of(parts, method("sleep"), progress=interrupt)
    assert os.listdir(temporary) == []
    assert processes_of(str(temporary)) == []


# ---- usage --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"budget": 0}, "budget must be a finite number > 0, got 0"),
        ({"selection": "test"}, "selection must be 'auto', 'validation' or 'cross-validation'"),
        ({"valid": None, "selection": "validation"}, "needs a validation part"),
        ({"scale": "query"}, "scale must be 'auto', 'standard', 'minmax' or 'none', got 'query'"),
        ({"metrics": []}, "metrics is empty"),
        ({"metrics": "ndgc@10"}, "Did you mean 'ndcg'"),
        ({"scoring": "dominated_error"}, "counts rows that are only tied as right"),
        ({"folds": []}, "give the parts train, test"),
        ({"test": [[1.0]]}, r"parts must be datasets, as linrank\.load"),
    ],
)
def test_wrong_options_are_refused_before_anything_runs(parts, options, message):
    given = dict(zip(("train", "valid", "test"), parts, strict=False)) | options
    with pytest.raises((TypeError, ValueError), match=message):
        compare_methods(**given, methods=["random"], baseline="random")
