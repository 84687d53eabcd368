"""The worst queries and their wrong pairs, against all pairs written out."""

import itertools
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.sparse import csr_array

from hypothesis_profiles import examples
from linrank import Dataset, LinearModel, RankSVM, evaluate, make_ranking
from linrank.data.scaling import Scaling
from linrank.judging.inspect import sample_pairs
from linrank.reports.diagnosis import pushes, worst_queries


def wrong_pairs(labels, scores):
    """All (better, worse) with the better one not above."""
    return [
        (i, j)
        for i, j in itertools.permutations(range(len(labels)), 2)
        if labels[i] > labels[j] and scores[i] <= scores[j]
    ]


def ranked(scores):
    """Rank of each row, equal scores in input order."""
    order = sorted(range(len(scores)), key=lambda i: (-scores[i], i))
    return {row: rank for rank, row in enumerate(order, start=1)}


def costliest(labels, scores):
    """The largest loss of DCG among all pairs whose better document is ranked below."""
    rank = ranked(scores)
    losses = [
        (2.0 ** labels[i] - 2.0 ** labels[j])
        * (1 / np.log2(rank[j] + 1) - 1 / np.log2(rank[i] + 1))
        for i, j in itertools.permutations(range(len(labels)), 2)
        if labels[i] > labels[j] and rank[i] > rank[j]
    ]
    return max(losses, default=0.0)


rows = st.lists(st.tuples(st.integers(0, 3), st.integers(-2, 2)), min_size=1, max_size=12)


@examples(150)
@given(st.lists(rows, min_size=1, max_size=4), st.randoms())
def test_counts_and_the_costliest_pair_are_those_of_all_pairs(queries, random):
    lines = [(q, y, s) for q, query in enumerate(queries) for y, s in query]
    random.shuffle(lines)  # rows of a query need not be together
    qid, y, scores = (np.array(column, dtype=np.float64) for column in zip(*lines, strict=True))
    data = Dataset.of(scores[:, None], y, qid=qid)
    values = evaluate(y, scores, qid=qid, metrics="ndcg@10").per_query["ndcg@10"]
    found = worst_queries(data, scores, values, n_queries=10)
    truth = {}
    for q in np.unique(qid):
        mine = np.flatnonzero(qid == q)
        if wrong := wrong_pairs(y[mine], scores[mine]):
            truth[q] = (len(wrong), costliest(y[mine], scores[mine]))
    assert {one.id for one in found} == set(truth)
    assert [one.value for one in found] == sorted(one.value for one in found)
    for one in found:
        assert one.n_wrong == truth[one.id][0]
        loss = one.pairs[0].loss if one.pairs else 0.0  # ties in the right order cost nothing
        assert loss == pytest.approx(truth[one.id][1])
        used = [document.row for pair in one.pairs for document in (pair.better, pair.worse)]
        assert len(used) == len(set(used))
        for pair in one.pairs:
            assert pair.better.label > pair.worse.label
            assert pair.better.rank > pair.worse.rank
            assert pair.better.score <= pair.worse.score


def of_curves(data, **options):
    options |= {"curves": "spline", "n_knots": 3, "missing": "indicator", "random_state": 0}
    return RankSVM(C=1e-3, **options).fit(data.X, data.y, qid=data.qid).model_


COEF = [1.0, -2.0, 0.5, 0.0, 3.0]
MODELS = {
    "linear": lambda data: LinearModel(COEF),
    "by query": lambda data: LinearModel(COEF, scaling=Scaling("query")),
    "curves": of_curves,
    "interactions": partial(of_curves, interactions=10),
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("sparse", [False, True])
def test_contributions_add_up_to_the_difference_of_scores(name, sparse):
    """Of the pairs that are shown, and on average over all pairs."""
    made = make_ranking(n_queries=12, n_features=5, random_state=3)
    X = np.array(made.X)
    if name in ("curves", "interactions"):
        X[::5, 0] = np.nan
    model = MODELS[name](Dataset.of(X, made.y, qid=made.qid, missing="keep"))
    data = Dataset.of(csr_array(X) if sparse else X, made.y, qid=made.qid, missing="keep")
    scores = model.predict(data)
    values = evaluate(data.y, scores, qid=data.qid, metrics="map").per_query["map"]
    found = worst_queries(data, scores, values, model=model)
    assert found
    for pair in (pair for one in found for pair in one.pairs):
        assert_allclose(pair.contributions.sum(), pair.better.score - pair.worse.score, atol=1e-5)
        assert_allclose(pair.values, X[[pair.better.row, pair.worse.row]], rtol=1e-6)
    pushed = pushes(data, scores, model)
    gaps = np.subtract.outer(scores, scores)
    gaps = gaps[(data.qid[:, None] == data.qid) & (data.y[:, None] > data.y)]
    assert (pushed.n_wrong, pushed.n_right) == ((gaps <= 0).sum(), (gaps > 0).sum())
    assert pushed.wrong.shape == (5 + (name == "interactions"),)
    assert_allclose(pushed.wrong.sum(), gaps[gaps <= 0].mean(), atol=1e-6)
    assert_allclose(pushed.right.sum(), gaps[gaps > 0].mean(), atol=1e-6)


def test_documents_are_the_first_and_the_best_of_the_rest():
    labels = np.zeros(40)
    labels[[20, 30, 35]] = 1.0, 2.0, 1.0
    data = Dataset.of(np.ones((40, 1)), labels, qid=np.zeros(40, int))
    scores = -np.arange(40.0)
    one = worst_queries(data, scores, np.zeros(1), n_documents=4)[0]
    assert [document.rank for document in one.documents] == [1, 2, 3, 4, 21, 31]
    assert [document.best_rank for document in one.documents] == [4, 4, 4, 4, 2, 1]


def test_an_error_is_worst_where_it_is_largest():
    data = Dataset.of(np.ones((4, 1)), [0, 1, 0, 1], qid=["a", "a", "b", "b"])
    scores = np.array([1.0, 0.0, 1.0, 0.0])
    found = worst_queries(data, scores, np.array([0.2, 0.9]), higher_is_better=False)
    assert [one.id for one in found] == ["b", "a"]


@pytest.mark.parametrize("labels", [[-1.0, 1.0, 0.0], [0.0, 1e6, 5.0]])
def test_labels_that_are_no_grades_have_gains_all_the_same(labels):
    data = Dataset.of(np.ones((3, 1)), labels, qid=[1, 1, 1])
    one = worst_queries(data, np.array([3.0, 1.0, 2.0]), np.zeros(1))[0]
    assert (one.pairs[0].better.label, one.pairs[0].worse.label) == (max(labels), min(labels))
    assert np.isfinite(one.pairs[0].loss)


def test_ten_thousand_labels_are_no_burden():
    rng = np.random.default_rng(0)
    labels = rng.random(10_000)
    data = Dataset.of(np.ones((10_000, 1)), labels)
    assert len(worst_queries(data, -labels, np.zeros(1))[0].pairs) == 3


@pytest.mark.parametrize("sparse", [False, True])
def test_pushes_are_means_over_the_sampled_pairs(sparse):
    data = make_ranking(n_queries=15, n_features=4, random_state=5)
    X = csr_array(data.X) if sparse else data.X
    data = Dataset.of(X, data.y, qid=data.qid)
    model = LinearModel([1.0, -1.0, 2.0, 0.0])
    scores = model.predict(data)
    found = pushes(data, scores, model, n_samples=1000)
    dense = np.asarray(data.X.todense() if sparse else data.X, dtype=np.float64)
    better, worse = sample_pairs(data.queries, 1000)
    shares = (dense[better] - dense[worse]) * model.coef
    wrong = scores[better] <= scores[worse]
    assert (found.n_wrong, found.n_right) == (wrong.sum(), (~wrong).sum())
    assert_allclose(found.wrong, shares[wrong].mean(axis=0), atol=1e-9)
    assert_allclose(found.right, shares[~wrong].mean(axis=0), atol=1e-9)
    assert found.is_sample == (data.queries.n_pairs > 1000)
    assert not pushes(data, scores, model).is_sample


def test_of_equal_values_the_query_with_more_wrong_pairs_comes_first():
    data = Dataset.of(np.zeros((5, 1)), [1, 0, 1, 0, 0], qid=[1, 1, 2, 2, 2])
    worst = worst_queries(data, -data.labels, np.array([0.5, 0.5]))
    assert [(one.query, one.n_wrong) for one in worst] == [(1, 2), (0, 1)]
