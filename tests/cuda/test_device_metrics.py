"""Measures of scores on a device are those of the core, and only they come back."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from hypothesis_profiles import examples
from linrank import evaluate
from linrank.data.dataset import Dataset
from linrank.metrics import convention
from linrank.metrics.conventions import CONVENTIONS
from linrank.system.device import Device

NAMES = [
    *("ndcg", "ndcg@1", "ndcg@3", "ndcg@50", "ndcg(gain=linear)@4", "ndcg(discount=letor)@5"),
    *("ndcg(empty=skip)@5", "mean_ndcg", "mean_ndcg(gain=linear, discount=letor)"),
    *("map", "map@3", "map@50", "map(rel=2)", "map(empty=1)", "p@1", "p@50", "p(rel=3)@8"),
    *("recall@2", "recall(rel=2)@50", "mrr", "mrr(rel=3)@2", "mrr@50", "success@1"),
    *("success(rel=3)@3", "success@50", "rbp", "rbp(p=0)", "rbp(p=0.95, rel=2)@3", "rbp@50"),
    *("err", "err@3", "err@50", "err(y_max=4000)", "err(y_max=4000.5)@7"),
]
OF_PAIRS = ["auc", "kendall_tau", "pairwise_accuracy", "domination_error"]
LABELS = {
    "grades": lambda rng, n: rng.integers(0, 5, n),
    "two": lambda rng, n: rng.integers(0, 2, n),
    "zeros": lambda rng, n: np.zeros(n),
    "large": lambda rng, n: rng.integers(0, 3000, n),
    "real": lambda rng, n: rng.exponential(size=n),
    "negative": lambda rng, n: rng.integers(-3, 4, n),
}
SCORES = {
    "distinct": lambda rng, n: rng.normal(size=n),
    "tied": lambda rng, n: np.round(rng.normal(size=n)) / 3,
    "equal": lambda rng, n: np.zeros(n),
    "infinite": lambda rng, n: rng.choice([np.inf, -np.inf, 0.0, -0.0, 1.0], n),
}


def problem(seed: int, labels: str, scores: str, n_queries: int, sizes: Any = None) -> Any:
    """(y, s, qid), rows of queries apart."""
    rng = np.random.default_rng(seed)
    sizes = rng.choice([1, 2, 3, 5, 12, 40, 150], n_queries) if sizes is None else sizes
    qid = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    return LABELS[labels](rng, len(qid)).astype(float), SCORES[scores](rng, len(qid)), qid


def check_alike(found: Any, expected: Any) -> None:
    for name, values in expected.per_query.items():
        assert_allclose(found.per_query[name], values, rtol=1e-12, atol=1e-13, err_msg=name)
        assert_allclose(found[name], expected[name], rtol=1e-12, atol=1e-13, err_msg=name)


@pytest.mark.parametrize("ties", ["stable", "average", "pessimistic", "docid"])
@examples(60)
@given(
    seed=st.integers(0, 10**6),
    labels=st.sampled_from(sorted(LABELS)),
    scores=st.sampled_from(sorted(SCORES)),
    name=st.sampled_from(sorted(CONVENTIONS)),
    empty=st.sampled_from([0.0, 1.0, "skip"]),
    flags=st.tuples(st.booleans(), st.booleans()),
)
def test_measures_equal_those_of_the_core(device, ties, seed, labels, scores, name, empty, flags):
    y, s, qid = problem(seed, labels, scores, 1 + seed % 6)
    choices = {"reachable": flags[0], "step_precision": flags[1], "empty": empty, "ties": ties}
    rules = convention(name, negative_is_zero=labels == "negative", **choices)
    expected = evaluate(y, s, qid=qid, metrics=NAMES, convention=rules)
    found = evaluate(y, device.put(s), qid=qid, metrics=NAMES, convention=rules)
    check_alike(found, expected)


@pytest.mark.parametrize("ties", ["stable", "average"])
def test_queries_of_every_class_of_sizes(device, ties):
    """Longer ones than a block takes are measured on the host."""
    names = ["ndcg@10", "map", "mean_ndcg", "err@20", "rbp"]
    for sizes in ([1, 127, 128, 129, 300, 513], [1500], [2049], [5000], [8193, 3]):
        y, s, qid = problem(len(sizes), "grades", "tied", 0, sizes)
        rules = convention("linrank", ties=ties)
        expected = evaluate(y, s, qid=qid, metrics=names, convention=rules)
        check_alike(evaluate(y, device.put(s), qid=qid, metrics=names, convention=rules), expected)


@pytest.mark.parametrize(
    ("y", "scores", "names", "rules"),
    [
        ([3, 0, 0, 0, 1e15], [1, 2, 1, 2, 1], "err", {"empty": "skip"}),
        ([1.7e308, 1.7e308, 0, 1, 2], [1, 3, 2, 1, 2], "ndcg(gain=linear)", {}),
        ([5e-324, 0, 0, 1e-310, 1], [1, 2, 1, 2, 1], ["ndcg", "ndcg(gain=linear)"], {}),
        ([-3, -1, 0, 0, -2], [3, 2, 1, 2, 3], "p(rel=-2)@3", {}),
    ],
    ids=["chances", "largest", "smallest", "negative"],
)
def test_labels_at_the_ends_of_the_range(device, y, scores, names, rules):
    rules = convention("linrank", **rules)
    given = {"qid": [1, 1, 2, 2, 3], "metrics": names, "convention": rules}
    y, scores = np.array(y, dtype=float), np.array(scores, dtype=float)
    check_alike(evaluate(y, device.put(scores), **given), evaluate(y, scores, **given))


def test_the_host_measures_what_the_device_does_not(device):
    y, s, qid = problem(3, "grades", "tied", 9)

    def spread(labels: Any, scores: Any) -> float:
        return float(np.ptp(scores))

    names = ["ndcg@10", *OF_PAIRS, spread, "mrr"]
    expected = evaluate(y, s, qid=qid, metrics=names)
    found = evaluate(y, device.put(s), qid=qid, metrics=names)
    assert list(found) == list(expected)
    check_alike(found, expected)
    assert found.pairs.totals() == expected.pairs.totals()
    ids = np.random.default_rng(0).permutation(len(y))
    rules = {"metrics": NAMES, "convention": "trec_eval", "docid": ids}
    check_alike(evaluate(y, device.put(s), qid=qid, **rules), evaluate(y, s, qid=qid, **rules))


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int32, np.bool_])
def test_scores_of_every_type(device, dtype):
    y, s, qid = problem(4, "grades", "tied", 7)
    s = s.astype(dtype)
    check_alike(evaluate(y, device.put(s), qid=qid), evaluate(y, s, qid=qid))
    check_alike(evaluate(y, device.put(s[:, None]), qid=qid), evaluate(y, s, qid=qid))


def test_scores_that_cannot_be_ranked(device):
    y, s, qid = problem(5, "grades", "distinct", 7)
    with pytest.raises(ValueError, match=r"y has 3 rows but scores has 2 elements"):
        evaluate([1, 2, 3], device.put(np.zeros(2)))
    with pytest.raises(ValueError, match=r"scores should be a 1d array"):
        evaluate(y, device.put(np.zeros((len(y), 2))), qid=qid)
    s[[4, 9]] = np.nan
    with pytest.raises(ValueError, match=r"nan at row 4 \(2 such rows\)"):
        evaluate(y, device.put(s), qid=qid, metrics="ndcg@10")
    with pytest.raises(ValueError, match=r"negative label -1"):
        evaluate(y - 1.0, device.put(np.zeros(len(y))), qid=qid, metrics="ndcg@10")


def test_labels_go_up_once_and_values_by_query_come_back(device, monkeypatch):
    y, s, qid = problem(6, "grades", "distinct", 20)
    data, scores = Dataset.of(np.ones((len(y), 1)), y, qid=qid), device.put(s)
    moved: list[int] = []
    put, get = Device.put, Device.get

    def count_put(self: Any, values: Any, dtype: Any = None) -> Any:
        moved.append(values.nbytes if type(values) is np.ndarray else 0)
        return put(self, values, dtype)

    def count_get(self: Any, array: Any) -> Any:
        moved.append(array.nbytes)
        return get(self, array)

    monkeypatch.setattr(Device, "put", count_put)
    monkeypatch.setattr(Device, "get", count_get)
    names = ["ndcg@10", "map(empty=skip)"]
    first = evaluate(data, scores, metrics=names)
    assert sum(moved) > 8 * len(y)
    moved.clear()
    again = evaluate(data, scores, metrics=names)
    assert sum(moved) == 2 * 20 * 8
    check_alike(again, first)
    for names in (["map"], ["ndcg@10", "err"]):  # other measures of the same labels
        check_alike(evaluate(data, scores, metrics=names), evaluate(data, s, metrics=names))


def test_queries_travel_without_what_lies_on_a_device(device):
    y, s, qid = problem(8, "grades", "distinct", 5)
    data = Dataset.of(np.ones((len(y), 1)), y, qid=qid)
    evaluate(data, device.put(s), metrics="map")
    copy = pickle.loads(pickle.dumps(data.queries))
    assert len(vars(data.queries)) > len(vars(copy))
    assert_array_equal(copy.order, data.queries.order)
    assert not copy.levels.flags.writeable


@pytest.mark.parametrize("seed", ["1", "2"])
def test_threads_in_any_order_give_the_same_bits(device, is_real, monkeypatch, seed):
    if is_real:
        pytest.skip("threads of a device run in their own order")
    y, s, qid = problem(7, "grades", "tied", 12)
    rules = convention("sklearn")
    expected = evaluate(y, device.put(s), qid=qid, metrics=NAMES, convention=rules)
    monkeypatch.setenv("LINRANK_EMULATOR_SEED", seed)
    found = evaluate(y, device.put(s), qid=qid, metrics=NAMES, convention=rules)
    for name in NAMES:
        assert_array_equal(found.per_query[name], expected.per_query[name])
