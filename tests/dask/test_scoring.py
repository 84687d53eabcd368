"""Lazy scores: equal to those in memory, in the partitions of the rows."""

from __future__ import annotations

import dask
import dask.array as da
import distributed
import pytest
from distributed_data import (
    PLAIN_FORMS,
    as_dask_arrays,
    as_table,
    cuts,
    fit,
    in_blocks,
    ranking,
)
from numpy.testing import assert_array_equal

import linrank
import linrank.dask
from linrank.dask.scoring import predict
from linrank.data.dataset import Dataset
from linrank.data.scaling import Scaling
from linrank.io.store.store import Store

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
    lazy = as_dask_arrays(data, n_parts)
    scores = predict(BY_QUERY, lazy.X, lazy.qid)
    assert scores.chunks == lazy.y.chunks
    assert_array_equal(scores.compute(), BY_QUERY.predict(data.X, qid=data.qid))


def test_it_takes_ids_of_every_form(alone):
    X, y, qid = (in_blocks(v, 3) for v in DATA[:3])
    datasets = [Dataset.of(a, b, qid=c) for a, b, c in zip(X, y, qid, strict=True)]
    tables = in_blocks(as_table(DATA).drop(columns=["label", "u"]), 3)
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
        predict(BY_QUERY, as_dask_arrays(DATA, 3).X)


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
    parts = as_dask_arrays(data, 2)
    ranker = fit(linrank.dask.RankSVM(client=client, patience=2), parts)
    local = ranker.to_local().score(data.X, data.y, qid=data.qid)
    # The client in force has nobody to work.
    with distributed.Client(processes=False, n_workers=0, dashboard_address=":0"):
        assert ranker.score(parts.X, parts.y, qid=parts.qid) == pytest.approx(local, abs=1e-15)
