"""How the pages on Xu, Lin and Stevens judge numbers: by hand-made rows, and files of a user."""

import bz2
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(autouse=True)
def _on_the_path(monkeypatch):
    """The scripts are programs of the repository, not a part of the package."""
    pytest.importorskip("matplotlib")
    pytest.importorskip("sklearn")
    monkeypatch.syspath_prepend(str(ROOT))
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))


def gain(method, measure, difference, p):
    return {
        "method": method,
        "measure": measure,
        "difference": difference,
        "p, t test": p,
        "p, Holm": "1",
    }


def test_a_gain_must_be_positive_and_significant():
    from reproduce.xu import gains

    stars = {gains.FAC: ("map", "ndcg@3"), gains.REG: ("map",)}
    rows = [
        gain(gains.BOX, "map", "+0.0100", "0.01"),
        gain(gains.BOX, "ndcg@3", "-0.0100", "0.01"),
        gain(gains.REGULARIZED, "map", "+0.0100", "0.2"),
    ]
    assert [claim.holds for claim in gains.claims(rows, stars)] == [True, False, False]
    stood_in = gains.claims(rows, stars, stand_in="MQ2008")
    assert {claim.holds for claim in stood_in} == {None}
    assert all(claim.found.startswith("on MQ2008 ") for claim in stood_in)


def test_measures_without_a_star_are_no_claim():
    from reproduce.xu import gains

    rows = [gain(gains.BOX, "ndcg@3", "+0.0100", "0.01"), gain(gains.BOX, "map", "-0.1", "0.01")]
    claims = gains.claims(rows, {gains.FAC: ("ndcg@3",), gains.REG: ()})
    assert [claim.holds for claim in claims] == [True]


@pytest.mark.parametrize(("n_outside", "holds"), [(0, True), (1, True), (2, False)])
def test_one_number_in_ten_may_disagree(n_outside, holds):
    from reproduce.lin.accuracies import AGREEMENT, agree

    rows = [{AGREEMENT: "within", "difference": "+0.01"}] * (10 - n_outside)
    rows += [{AGREEMENT: "OUTSIDE, 3.0σ", "difference": "-0.40"}] * n_outside
    rows += [{AGREEMENT: "not in the paper", "difference": ""}] * 5
    claim = agree(rows, "The accuracies")
    assert claim.holds is holds
    assert ("by up to 0.40" in claim.found) == (n_outside > 0)


def test_arrival_is_the_first_iteration_near_the_end():
    from reproduce.xu.figure_4 import Arrival, arrival

    points = [(0, 0.0, 0.1), (5, -90.0, 0.2), (9, -99.95, 0.3), (20, -100.0, 0.4)]
    assert arrival(points) == Arrival(9, 0.3)


def test_fewest_pairs_near_the_accuracy_of_all():
    from report import Table
    from reproduce.lin import figure_3
    from reproduce.page import Measurement

    rows = [[1, "10", "80.0 ± 1", "89.5 ± 1", "90 ± 1"], [2, "20", "85.0 ± 1", "90 ± 1", "90 ± 1"]]
    columns = ["pairs / S", "pairs", "closest", "pruned", "random"]
    one = Table(figure_3._title("mpg"), columns, rows, ["all pairs: 90.40 ± 0.10"])
    found = Measurement([one])
    assert figure_3.first_near(found, "mpg", "pruned") == 1
    assert figure_3.first_near(found, "mpg", "closest") == float("inf")


def test_missing_table_is_named():
    from report import Table
    from reproduce.page import Measurement

    found = Measurement([Table("OHSUMED", ["why"], [["other"]])])
    with pytest.raises(LookupError, match=r"no table 'Table 7'.*OHSUMED"):
        found.rows("Table 7")


def test_missing_data_are_named_rather_than_the_table_that_they_would_give():
    import problems
    from report import Table
    from reproduce.page import Measurement

    found = Measurement([Table("OHSUMED skipped", ["reason"], [["file not found"]])])
    with pytest.raises(problems.Absent, match="file not found"):
        found.rows("Table 7")


def test_parameter_is_the_best_on_all_validation_parts_together():
    from linrank.data.dataset import Dataset
    from reproduce.stevens.scatter import evaluate_models

    X = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
    first, second = (Dataset.of(X, y) for y in (np.array([1.0, 0, 0]), np.array([0.0, 1, 0])))
    weights = [("a", np.array([2.0, 1.0])), ("b", np.array([1.0, 2.0]))]
    # "a" is right on two of the three models, so that it is taken for all of them.
    models = [(first, first, first), (first, first, second), (second, second, first)]
    found = evaluate_models(lambda _: weights, models)
    assert [values.tolist() for values in found] == [[1.0], [0.5], [1.0]]


def test_topics_of_rcv1_as_libsvm_has_them(monkeypatch, tmp_path):
    import problems
    from reproduce.stevens import text

    monkeypatch.setattr(problems, "DATA", tmp_path)
    with pytest.raises(problems.Absent, match="rcv1_topics_train"):
        text.topics(False)
    rng = np.random.default_rng(0)
    lines = []
    for i in range(200):
        labels = "0,1" if i % 2 else "1"  # topic 2 has too few articles
        lines.append(f"{labels if i > 5 else '2'} 1:{rng.random():.3f} 7:1\n")
    (tmp_path / "RCV1").mkdir()
    with bz2.open(tmp_path / "RCV1" / "rcv1_topics_train.svm.bz2", "wt") as file:
        file.writelines(lines)
    task = text.topics(False)
    assert len(task.models) == 2
    assert task.n_features == 7
    positives = [sum(float((part.labels > 0).sum()) for part in parts) for parts in task.models]
    assert positives == [97, 194]


def test_a_page_that_can_judge_no_claim_is_open():
    from reproduce.page import Claim, Page

    assert Page("Table 3", [Claim("said", None, "other data")], [], []).verdict == "open"


def test_cutting_planes_are_not_slower_than_what_does_not_arrive():
    from reproduce.lee_lin.races import GOAL, planes_are_slower

    def times(planes, newton):
        return {"TreeRankSVM": {GOAL: planes}, "prsvm+": {GOAL: newton}}

    than = {"prsvm+": "PRSVM+"}
    assert planes_are_slower({"a": times("2", "1")}, than).holds
    claim = planes_are_slower({"a": times("2", "1"), "b": times("2", "-")}, than)
    assert not claim.holds
    assert "a 2.00, b 0 (the other does not get there)" in claim.found
    assert planes_are_slower({"a": times("2", "1"), "b": times("-", "-")}, than).holds is None
    assert planes_are_slower({"a": times("1", "2"), "b": times("-", "-")}, than).holds is False
