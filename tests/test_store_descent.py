"""SGDRanker and ``linrank train --method sgd`` on stores: bits, memory, faults."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from dataset_parts import Parts
from linrank.data.dataset import Dataset
from linrank.io.store.store import Store, outline
from linrank.stochastic.chunked import descend_chunks
from papers import SGDRanker


def ranking(n_rows=600, n_features=5, seed=0, sparse=False, names=None, text_ids=False):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, n_features)).astype(np.float32)
    y = np.digitize(X @ rng.standard_normal(n_features), [-1, 1]).astype(float)
    if sparse:
        from scipy.sparse import csr_array

        X = csr_array(np.where(rng.random(X.shape) < 0.5, X, 0))
    qid = np.sort(rng.integers(0, 30, n_rows))
    qid = np.char.add("q", qid.astype(str)) if text_ids else qid
    weight = rng.integers(1, 4, n_rows).astype(float)
    return Dataset.of(X, y, qid=qid, sample_weight=weight, feature_names=names)


def written(tmp_path, data, chunk_bytes=2000):
    store = Store.of(tmp_path / "store", data, chunk_bytes=chunk_bytes)
    assert store.n_chunks > 3
    return store


def ranker(**options):
    return SGDRanker("hybrid", n_steps=5000, average=True, random_state=3, **options)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("scale", ["none", "standard", "query"])
def test_a_store_gives_the_bits_of_its_chunks_in_memory(tmp_path, sparse, scale):
    store = written(tmp_path, ranking(sparse=sparse))
    fitted = ranker(scale=scale, memory_limit="64GB", record="exact").fit(store)
    scaling = fitted.model_.scaling
    parts = [scaling.applied(store.read(i)) for i in range(store.n_chunks)]
    expected = descend_chunks(
        Parts(parts), algorithm="hybrid", n_steps=5000, average="weighted", record="exact", seed=3
    )
    assert_array_equal(fitted.coef_, scaling.fold(expected.w))
    assert fitted.history_["objective"] == expected.history["objective"]
    assert fitted.duality_gap_ == expected.gap > 0


def test_query_weights_and_warm_starts_and_validation_work_as_in_memory(tmp_path):
    data = ranking(text_ids=True)
    store, ids = written(tmp_path, data), data.queries.ids.tolist()
    weights = [float(k % 3) for k in range(len(ids))]
    by_id, by_query, plain = (
        ranker(memory_limit="64GB").fit(store, query_weight=weight)
        for weight in (dict(zip(ids, weights, strict=True)), weights, None)
    )
    assert_array_equal(by_id.coef_, by_query.coef_)
    assert (by_id.coef_ != plain.coef_).any()
    held_out = ranking(seed=5, text_ids=True)
    given = {"X_val": held_out.X, "y_val": held_out.y, "qid_val": held_out.qid}
    stopped = ranker(memory_limit="64GB", early_stopping=True, warm_start=True)
    first = stopped.fit(store, **given).coef_
    stopped.set_params(n_steps=1).fit(store, **given)
    assert_allclose(stopped.coef_, first, atol=0.5 * abs(first).max())
    with pytest.raises(ValueError, match="no query ids"):
        ranker(memory_limit="64GB").fit(store, X_val=held_out.X, y_val=held_out.y)


def test_the_outline_has_the_shape_and_the_queries_and_takes_no_room(tmp_path):
    data = ranking(text_ids=True)
    found = outline(written(tmp_path, data))
    assert (found.n_rows, found.n_features) == (600, 5)
    assert_array_equal(found.queries.offsets, data.queries.offsets)
    assert found.queries.ids.tolist() == data.queries.ids.tolist()
    assert found.labels.strides == found.qid.strides == (0,)


def test_arguments_that_do_not_go_together_are_refused(tmp_path):
    data = ranking()
    store = written(tmp_path, data)
    for options, given, message in [
        ({"memory_limit": "1GB"}, [store, data.y], "y is part of the store"),
        ({"memory_limit": "1GB"}, [data.X, data.y], "memory_limit='1GB' is for a store"),
        ({"passes": 3}, [store], "passes=3 is for a store and memory_limit"),
        ({"memory_limit": "much"}, [store], "memory_limit must be"),
        *(
            ({"passes": n, "memory_limit": "1GB"}, [store], "passes must be an integer >= 1 or No")
            for n in (0, -1, 1.5, True, "2")
        ),
    ]:
        with pytest.raises(ValueError, match=message):
            ranker(**options).fit(*given)
    message = r"memory_limit='1MB', 1.0 MB, is too small: a descent .* allow [\d.]+MB, or"
    with pytest.raises(MemoryError, match=message):
        ranker(memory_limit="1MB").fit(store)
