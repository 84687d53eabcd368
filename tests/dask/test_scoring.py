"""Lazy scores: equal to those in memory, in the partitions of the rows."""

from __future__ import annotations

import dask
import dask.array as da
import distributed
import pytest
from distributed_data import as_dask_arrays, as_delayed, as_table, cuts, in_blocks, ranking
from numpy.testing import assert_array_equal
from scipy import sparse

import linrank
import linrank.dask
from linrank.dask.scoring import predict
from linrank.data.dataset import Dataset
from linrank.data.scaling import Scaling

DATA = ranking(seed=2)
MODEL = linrank.LinearModel([1.0, -2.0, 0.5, 0.25])
BY_QUERY = linrank.LinearModel([1.0, -2.0, 0.5, 0.25], scaling=Scaling("query"))


def table(n_parts):
    dd = pytest.importorskip("dask.dataframe")
    return dd.from_pandas(as_table(DATA), npartitions=n_parts, sort=False)


FORMS = {
    "array": lambda: as_dask_arrays(DATA, 3).X,
    "sparse": lambda: as_dask_arrays(DATA, 3).X.map_blocks(sparse.csr_array),
    "columns apart": lambda: as_dask_arrays(DATA, 3).X.rechunk({1: 2}),
    "unknown sizes": lambda: as_dask_arrays(DATA, 3).X[as_dask_arrays(DATA, 3).y > -1],
    "delayed": lambda: as_delayed(DATA, 3).X,
    "tuples": lambda: [dask.delayed(b) for b in zip(*as_delayed(DATA, 3), strict=True)],
    "dataframe": lambda: table(3)[["f0", "f1", "f2", "f3"]],
}


@pytest.mark.parametrize("form", FORMS)
def test_scores_are_those_in_memory(form):
    """Without a cluster: what is lazy runs wherever dask is told to."""
    scores = predict(MODEL, FORMS[form]())
    assert isinstance(scores, da.Array)
    assert scores.numblocks == (3,)
    if form in ("array", "sparse", "columns apart"):
        assert scores.chunks == (cuts(len(DATA.y), 3),)
    with dask.config.set(scheduler="synchronous"):
        assert_array_equal(scores.compute(), MODEL.predict(DATA.X))


def test_scores_on_a_cluster(client):
    futures = client.scatter(in_blocks(DATA.X, 3))
    assert_array_equal(predict(MODEL, futures).compute(), MODEL.predict(DATA.X))


def test_nothing_runs_before_it_is_asked():
    def fails():
        raise RuntimeError("computed")

    scores = predict(MODEL, [dask.delayed(fails)()])
    with (
        pytest.raises(RuntimeError, match="computed"),
        dask.config.set(scheduler="synchronous"),
    ):
        scores.compute()


def test_empty_partitions_have_no_scores():
    blocks = [dask.delayed(X) for X in (DATA.X[:0], DATA.X)]
    with dask.config.set(scheduler="synchronous"):
        assert_array_equal(predict(MODEL, blocks).compute(), MODEL.predict(DATA.X))


@pytest.mark.parametrize("n_parts", [1, 2, 5, 17])
@pytest.mark.parametrize("shuffled", [False, True])
def test_a_model_that_scales_within_queries_sees_them_whole(n_parts, shuffled):
    """Split queries meet for their ranges; the scores stand where the rows do."""
    data = ranking(20, seed=4, shuffled=shuffled)
    expected = BY_QUERY.predict(data.X, qid=data.qid)
    lazy = as_dask_arrays(data, n_parts)
    with dask.config.set(scheduler="synchronous"):
        scores = predict(BY_QUERY, lazy.X, lazy.qid)
        assert scores.chunks == lazy.y.chunks
        assert_array_equal(scores.compute(), expected)


def test_it_takes_ids_of_every_form():
    expected = BY_QUERY.predict(DATA.X, qid=DATA.qid)
    X, y, qid = (in_blocks(v, 3) for v in DATA[:3])
    datasets = [Dataset.of(a, b, qid=c) for a, b, c in zip(X, y, qid, strict=True)]
    tables = in_blocks(as_table(DATA).drop(columns=["label", "u"]), 3)
    with dask.config.set(scheduler="synchronous"):
        for blocks, ids in (
            (datasets, None),
            (list(zip(X, y, qid, strict=True)), None),
            (tables, "query"),
            ([X[0][:0], *X], [qid[0][:0], *qid]),
        ):
            given = [dask.delayed(v) for v in ids] if isinstance(ids, list) else ids
            scores = predict(BY_QUERY, [dask.delayed(b) for b in blocks], given)
            assert_array_equal(scores.compute(), expected)
        with pytest.raises(ValueError, match=r"partition \d: this model scales every feature"):
            predict(BY_QUERY, as_dask_arrays(DATA, 3).X)


def test_rows_are_not_read_to_look_at_ids():
    def fails():
        raise RuntimeError("computed")

    with dask.config.set(scheduler="synchronous"):
        scores = predict(BY_QUERY, [dask.delayed(fails)()], [dask.delayed(DATA.qid)])
        with pytest.raises(RuntimeError, match="computed"):
            scores.compute()


def test_a_partition_with_other_columns_is_named():
    blocks = [dask.delayed(X) for X in (DATA.X, DATA.X[:, :3])]
    with (
        dask.config.set(scheduler="synchronous"),
        pytest.raises(ValueError, match="partition 1: the rows have 3 features, the model 4"),
    ):
        predict(MODEL, blocks).compute()
    with pytest.raises(TypeError, match=r"X is a numpy\.ndarray, which is not distributed"):
        predict(MODEL, DATA.X)


def test_the_score_of_a_ranker_is_computed_by_its_own_client(client):
    data = ranking(20)
    parts = as_dask_arrays(data, 2)
    ranker = linrank.dask.RankSVM(client=client, patience=2).fit(parts.X, parts.y, qid=parts.qid)
    local = ranker.to_local().score(data.X, data.y, qid=data.qid)
    assert ranker.score(parts.X, parts.y, qid=parts.qid) == pytest.approx(local, abs=1e-15)
    # The client in force has nobody to work.
    with distributed.Client(processes=False, n_workers=0, dashboard_address=":0"):
        assert ranker.score(parts.X, parts.y, qid=parts.qid) == pytest.approx(local, abs=1e-15)
