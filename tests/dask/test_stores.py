"""A store on a disk that the workers see, as partitions."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
from distributed_data import ranking
from numpy.testing import assert_allclose, assert_array_equal

import linrank
import linrank.dask
from linrank.dask.partitions import partitions_of
from linrank.dask.scoring import predict
from linrank.io.store.store import Store


@pytest.fixture
def store(tmp_path):
    data = ranking(30, seed=5, shuffled=True)
    return Store.write(tmp_path / "store", *data[:2], qid=data.qid, chunk_bytes=400)


@pytest.mark.parametrize("given", [lambda s: s, lambda s: s.path], ids=["store", "path"])
def test_every_chunk_is_a_partition(client, store, given):
    found = partitions_of(given(store), client=client)
    assert len(found.futures) == store.n_chunks > 3
    assert found.repair.n_queries == 0
    assert (found.n_rows, found.columns.n_features) == (store.n_rows, store.n_features)
    assert sum(s.n_pairs for s in found.summaries) == store.n_pairs
    assert found.n_queries == store.n_queries
    for i, part in enumerate(client.gather(list(found.futures))):
        chunk = store.read(i)
        assert_array_equal(part.X, chunk.X)
        assert_array_equal(part.qid, chunk.qid)
        assert_array_equal(part.queries.levels, chunk.queries.levels)


def test_scores_of_a_store(client, store):
    model = linrank.LinearModel([1.0, -2.0, 0.5, 0.0])
    scores = predict(model, store)
    sizes = [chunk.rows.stop - chunk.rows.start for chunk in store.chunks]
    assert scores.chunks == (tuple(sizes),)
    assert_array_equal(scores.compute(), model.predict(store.dataset().X))


def test_a_store_brings_its_labels(client, store):
    with pytest.raises(ValueError, match="holds labels, ids and weights; leave y, qid"):
        partitions_of(store, np.zeros(3), client=client)


def test_a_store_that_workers_do_not_see(client, store):
    shutil.rmtree(store.path)
    with pytest.raises(FileNotFoundError, match=r"partition 0: .*all workers must see"):
        partitions_of(store, client=client)


@pytest.mark.parametrize("policy", ["mean", "indicator"])
def test_a_model_has_the_policy_of_the_store(client, tmp_path, policy):
    """Missing values were filled in when the store was written: the model knows how."""
    data = ranking(30, seed=5)
    X = np.array(data.X)
    X[np.random.default_rng(0).random(X.shape) < 0.2] = np.nan
    store = Store.write(
        tmp_path / "filled", X, data.y, qid=data.qid, missing=policy, chunk_bytes=400
    )
    found = linrank.dask.RankSVM(C=0.1, tol=1e-8).fit(store).model_
    expected = linrank.RankSVM(C=0.1, tol=1e-8).fit(store).model_
    assert found.missing.kind == policy
    assert_allclose(found.predict(X), expected.predict(X), rtol=1e-6, atol=1e-9)
