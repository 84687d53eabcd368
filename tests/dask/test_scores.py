"""Scores on a cluster, and their measures: to the last bit those of memory."""

import re

import dask
import dask.array as da
import distributed
import numpy as np
import pytest
from distributed_data import PLAIN_FORMS, cuts, in_blocks, ranking
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal, assert_equal

import linrank
import linrank.dask
from linrank.dask import evaluate
from linrank.dask.scoring import predict
from linrank.data.dataset import Dataset
from linrank.data.scaling import Scaling
from linrank.io.store.store import Store
from linrank.metrics.evaluate import mean_of

DATA = ranking(seed=2)
MODEL = linrank.LinearModel([1.0, -2.0, 0.5, 0.25])
BY_QUERY = linrank.LinearModel([1.0, -2.0, 0.5, 0.25], scaling=Scaling("query"))


@pytest.fixture
def alone():
    """Without a cluster: what is lazy runs wherever dask is told to."""
    with dask.config.set(scheduler="synchronous"):
        yield


@dask.delayed
def fails():
    raise RuntimeError("computed")


@pytest.mark.parametrize("form", PLAIN_FORMS)
def test_scores_are_those_in_memory(alone, form):
    scores = predict(MODEL, PLAIN_FORMS[form](DATA, 3).X)
    assert isinstance(scores, da.Array)
    assert scores.numblocks == (3,)
    if form in ("arrays", "sparse arrays", "column chunks"):
        assert scores.chunks == (cuts(len(DATA.y), 3),)
    assert_array_equal(scores.compute(), MODEL.predict(DATA.X))


def test_scores_on_a_cluster(client, tmp_path):
    futures = client.scatter(in_blocks(DATA.X, 3))
    assert_array_equal(predict(MODEL, futures).compute(), MODEL.predict(DATA.X))
    store = Store.write(tmp_path / "store", *DATA[:2], qid=DATA.qid, chunk_bytes=400)
    scores = predict(MODEL, store)
    assert scores.chunks == (tuple(chunk.rows.stop - chunk.rows.start for chunk in store.chunks),)
    assert_array_equal(scores.compute(), MODEL.predict(store.dataset().X))


def test_empty_partitions_have_no_scores(alone):
    blocks = [dask.delayed(X) for X in (DATA.X[:0], DATA.X)]
    assert_array_equal(predict(MODEL, blocks).compute(), MODEL.predict(DATA.X))


@pytest.mark.parametrize("n_parts", [1, 2, 5, 17])
@pytest.mark.parametrize("shuffled", [False, True])
def test_a_model_that_scales_within_queries_sees_them_whole(alone, n_parts, shuffled):
    """Split queries meet for their ranges; the scores stand where the rows do."""
    data = ranking(20, seed=4, shuffled=shuffled)
    lazy = data.arrays(n_parts)
    scores = predict(BY_QUERY, lazy.X, lazy.qid)
    assert scores.chunks == lazy.y.chunks
    assert_array_equal(scores.compute(), BY_QUERY.predict(data.X, qid=data.qid))


def test_it_takes_ids_of_every_form(alone):
    X, y, qid = (in_blocks(v, 3) for v in DATA[:3])
    datasets = [Dataset.of(a, b, qid=c) for a, b, c in zip(X, y, qid, strict=True)]
    tables = in_blocks(DATA.table().drop(columns=["label", "u"]), 3)
    for blocks, ids in (
        (datasets, None),
        (list(zip(X, y, qid, strict=True)), None),
        (tables, "query"),
        ([X[0][:0], *X], [qid[0][:0], *qid]),
    ):
        given = [dask.delayed(v) for v in ids] if isinstance(ids, list) else ids
        scores = predict(BY_QUERY, [dask.delayed(b) for b in blocks], given)
        assert_array_equal(scores.compute(), BY_QUERY.predict(DATA.X, qid=DATA.qid))
    with pytest.raises(ValueError, match=r"partition \d: this model scales every feature"):
        predict(BY_QUERY, DATA.arrays(3).X)


def test_nothing_runs_before_it_is_asked_and_rows_are_not_read_to_look_at_ids(alone):
    for scores in (
        predict(MODEL, [fails()]),
        predict(BY_QUERY, [fails()], [dask.delayed(DATA.qid)]),
    ):
        with pytest.raises(RuntimeError, match="computed"):
            scores.compute()


def test_a_partition_with_other_columns_is_named(alone):
    blocks = [dask.delayed(X) for X in (DATA.X, DATA.X[:, :3])]
    with pytest.raises(ValueError, match="partition 1: the rows have 3 features, the model 4"):
        predict(MODEL, blocks).compute()
    with pytest.raises(TypeError, match=r"X is a numpy\.ndarray, which is not distributed"):
        predict(MODEL, DATA.X)


def test_the_score_of_a_ranker_is_computed_by_its_own_client(client):
    data = ranking(20)
    parts = data.arrays(2)
    ranker = parts.fit(linrank.dask.RankSVM(client=client, patience=2))
    local = ranker.to_local().score(data.X, data.y, qid=data.qid)
    # The client in force has nobody to work.
    with distributed.Client(processes=False, n_workers=0, dashboard_address=":0"):
        assert ranker.score(parts.X, parts.y, qid=parts.qid) == pytest.approx(local, abs=1e-15)


METRICS = (
    *("ndcg@3", "mean_ndcg", "map", "mrr", "p@2", "err", "err(y_max=4)@2", "auc", "kendall_tau"),
    *("pairwise_accuracy", "pairwise_accuracy(over=queries)", "gamma", "all_pairs_error"),
    *("domination_error", "dominated_error(over=queries)"),
)


def plain(evaluation):
    """All of an evaluation, in its order, as plain values and arrays."""
    ids, counts = evaluation.query_ids, ("pairs", "dominating", "dominated")
    found = [getattr(evaluation, name) for name in counts]
    return {
        "means": list(evaluation.items()),
        "per_query": dict(evaluation.per_query),
        "ids": None if ids is None else ids.tolist(),
        "counts": [(type(c).__name__, None if c is None else vars(c)) for c in found],
        "convention": evaluation.convention,
    }


def assert_same(found, expected):
    """Equal in every bit, NaN included, and in the order of everything."""
    assert_equal(plain(found), plain(expected))


def scored(seed=0, *, shuffled=False):
    data = ranking(25, seed=seed, shuffled=shuffled)
    rng = np.random.default_rng(seed)
    return data, np.round(rng.normal(size=len(data.y)), 1)  # some ties


@pytest.mark.parametrize("n_parts", [1, 2, 7])
@pytest.mark.parametrize("shuffled", [False, True])
def test_measures_are_those_in_memory(client, n_parts, shuffled):
    data, scores = scored(n_parts, shuffled=shuffled)
    lazy = data.arrays(n_parts)
    found = evaluate(lazy.y, da.from_array(scores, chunks=9), qid=lazy.qid, metrics=METRICS)
    expected = linrank.evaluate(data.y, scores, qid=data.qid, metrics=METRICS)
    assert_same(found, expected)


@pytest.mark.parametrize("convention", ["letor", "trec_eval", "xgboost", "sklearn"])
def test_conventions_break_ties_as_in_memory(client, convention):
    data, scores = scored(3, shuffled=True)
    lazy = data.arrays(4)
    options = {"metrics": ["ndcg@5", "map"], "convention": convention}
    whole = linrank.evaluate(data.y, scores, qid=data.qid, **options)
    assert_same(evaluate(lazy.y, scores, qid=lazy.qid, **options), whole)


def test_without_ids_all_rows_are_one_query(client):
    data, scores = scored(4)
    found = evaluate(data.y, da.from_array(scores, chunks=10), metrics=METRICS)
    assert_same(found, linrank.evaluate(data.y, scores, metrics=METRICS))


def test_blocks_infinite_scores_and_columns_of_a_dataframe(client):
    data, scores = scored(6, shuffled=True)
    scores[::7], scores[3::7] = np.inf, -np.inf
    expected = linrank.evaluate(data.y, scores, qid=data.qid)
    lazy = data._replace(weight=scores).delayed(3)
    assert_same(evaluate(lazy.y, lazy.weight, qid=lazy.qid, client=client), expected)
    lazy = data._replace(weight=scores).dataframe(4).X
    assert_same(evaluate(lazy["label"], lazy["u"], qid=lazy["query"]), expected)


def test_empty_partitions_take_no_part(client):
    data, scores = scored(7)
    lazy = data._replace(weight=scores).arrays(3)
    kept, mine = lazy.qid == data.qid[-1], data.qid == data.qid[-1]
    found = evaluate(lazy.y[kept], lazy.weight[kept], qid=lazy.qid[kept])
    assert_same(found, linrank.evaluate(data.y[mine], scores[mine], qid=data.qid[mine]))


Y, S, Q = [np.array([0, 1])] * 2, [np.array([0.5, 1.5])] * 2, [np.array([1, 1])] * 2
BAD = {
    "partition 1: scores has nan at row 1 (1 such rows)": (Y, [S[0], np.array([0, np.nan])], Q),
    "partition 0: Input y contains NaN at row 0": ([np.array([np.nan, 1]), Y[1]], S, Q),
    "partition 1: inconsistent lengths: y has 2 rows but scores has 1": (Y, [S[0], S[1][:1]], Q),
    "partition 1: qid has 3 elements but there are 2 rows": (Y, S, [Q[0], np.arange(3)]),
    "partition 1: y has the negative label -1 at row 0": ([Y[0], Y[1] - 1], S, Q),
    "y has 2 partitions but scores has 1, and where": (Y, S[:1], Q),
}


@pytest.mark.parametrize("message", BAD)
def test_what_cannot_be_evaluated_is_refused_by_partition(client, message):
    y, s, q = ([dask.delayed(block) for block in v] for v in BAD[message])
    with pytest.raises(ValueError, match=re.escape(message)):
        evaluate(y, s, qid=q)


def test_arrays_in_memory_are_for_linrank_evaluate(client):
    with pytest.raises(TypeError, match=r"y is a numpy\.ndarray, which is not distributed; use"):
        evaluate(Y[0], S[0], qid=Q[0])


@given(st.lists(st.floats(-1e6, 1e6) | st.just(float("nan")) | st.floats(-1, 1), max_size=30))
def test_the_mean_has_the_bits_of_the_core(values):
    """The loop of the core, written out."""
    total = lost = 0.0
    taken = [v for v in values if v == v]
    for v in taken:
        after = total + v
        lost += (total - after) + v if abs(total) >= abs(v) else (v - after) + total
        total = after
    expected = (total + lost) / len(taken) if taken else float("nan")
    assert_array_equal(mean_of(np.array(values, float)), expected)
