"""descend_chunks, and SGDRanker on stores: the same bits whatever the memory, all of the pairs."""

import re
import threading
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array

from dataset_parts import BufferedParts, Parts, in_parts
from linrank.data.dataset import Dataset
from linrank.errors import NoPairsError
from linrank.io.store.store import Store, outline
from linrank.stochastic import chunked
from linrank.stochastic.chunked import descend_chunks
from linrank.stochastic.samplers import pair_sampler
from linrank.stochastic.train import ExactObjective, descend
from linrank.system.resources import parse_bytes
from papers import SGDRanker
from real_data import mq2008


@pytest.fixture(autouse=True)
def nothing_to_spare(monkeypatch):
    """What allocators keep is more than these chunks."""
    monkeypatch.setattr(chunked, "_SPARE", 0)


def problem(seed=0, n_rows=300, sparse=False, weights=False, n_queries=12, text_ids=False):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, 5)).astype(np.float32)
    y = np.digitize(X @ rng.standard_normal(5), [-1, 1]).astype(float)
    if sparse:
        X = csr_array(np.where(rng.random(X.shape) < 0.5, X, 0))
    weight = rng.integers(0, 4, n_rows).astype(float) if weights else None
    qid = np.sort(rng.integers(0, n_queries, n_rows))
    qid = np.char.add("q", qid.astype(str)) if text_ids else qid
    return Dataset.of(X, y, qid=qid, sample_weight=weight)


CUTS = [3, 4, 7, 10]  # the queries with which parts begin
OPTIONS = {"n_steps": 3000, "alpha": 0.01, "seed": 5}


@pytest.mark.parametrize("algorithm", ["pegasos", "pa", "logistic", "hybrid"])
@pytest.mark.parametrize("record", [None, "sampled"])
def test_one_chunk_is_the_fit_in_memory_bit_for_bit(algorithm, record):
    data = problem()
    options = OPTIONS | {"algorithm": algorithm, "average": "weighted", "record": record}
    ours, plain = descend_chunks(Parts([data]), **options), descend(data, **options)
    assert_array_equal(ours.w, plain.w)
    assert (ours.loss, ours.n_pairs, ours.n_steps) == (plain.loss, plain.n_pairs, plain.n_steps)
    assert ours.history["objective"] == plain.history["objective"]


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("record", [None, "exact", "sampled"])
def test_the_memory_decides_what_is_read_and_not_what_is_computed(sparse, record):
    parts = in_parts(problem(sparse=sparse), CUTS)
    options = OPTIONS | {"algorithm": "hybrid", "record": record, "passes": 6}
    free = BufferedParts(parts)
    expected = descend_chunks(free, **options)
    assert free.n_read == 5
    assert free.buffers == []
    least = least_limit(parts, **options)
    reads = []
    for limit in (least, 2 * least, 3 * least):
        source = BufferedParts(parts)
        found = descend_chunks(source, **options, memory_limit=limit)
        assert_array_equal(found.w, expected.w)
        assert found.history == expected.history | {"seconds": found.history["seconds"]}
        reads.append(source.n_read)
    assert reads == sorted(reads, reverse=True)
    assert reads[0] > reads[-1]


def least_limit(parts, **options):
    with pytest.raises(MemoryError) as caught:
        descend_chunks(Parts(parts), **options, memory_limit=1)
    return parse_bytes(re.search(r"allow (\S+), or write", str(caught.value))[1])


def test_a_chunk_is_read_while_another_is_stepped_on():
    parts = in_parts(problem(), CUTS)
    least = least_limit(parts, **OPTIONS)
    ahead, alone = BufferedParts(parts), BufferedParts(parts)
    descend_chunks(ahead, **OPTIONS, memory_limit=2 * least)
    descend_chunks(alone, **OPTIONS, memory_limit=least)
    assert len(ahead.buffers) == 2
    assert any(name.startswith("linrank-read") for name in ahead.threads)
    assert len(alone.buffers) == 1
    assert alone.threads == {threading.current_thread().name}


def test_nothing_is_left_running_when_a_callback_stops_or_fails():
    parts = in_parts(problem(), CUTS)
    options = OPTIONS | {"memory_limit": 2 * least_limit(parts, **OPTIONS)}

    def fail(state):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        descend_chunks(BufferedParts(parts), callback=fail, **options)
    result = descend_chunks(BufferedParts(parts), callback=lambda state: True, **options)
    assert (result.stopped, result.n_steps) == ("callback", 100)
    assert not [t for t in threading.enumerate() if t.name.startswith("linrank-read")]


def test_a_fault_of_reading_is_told_where_it_is_waited_for(monkeypatch):
    parts, read = in_parts(problem(), CUTS), BufferedParts.read

    def broken(self, i, *, into=None):
        if i == 3:
            raise OSError("chunk 3 is gone")
        return read(self, i, into=into)

    limits = (None, 2 * least_limit(parts, **OPTIONS))
    monkeypatch.setattr(BufferedParts, "read", broken)
    for limit in limits:
        with pytest.raises(OSError, match="chunk 3 is gone"):
            descend_chunks(BufferedParts(parts), **OPTIONS, memory_limit=limit)


# ---- the distribution ---------------------------------------------------------------------------


@pytest.mark.parametrize("sampling", ["pairs", "query", "query-level", "rejection"])
def test_the_recorded_objective_is_that_of_the_whole(sampling):
    data = problem(n_queries=9, weights=sampling in ("pairs", "query"))
    c = None if sampling == "rejection" else np.arange(data.queries.n_queries) % 3 + 0.5
    options = {"sampling": sampling, "query_weight": c, "record": "exact", "C": 0.02}
    ours, plain = (
        run(given, n_steps=400, **options)
        for run, given in ((descend_chunks, Parts(in_parts(data, [1, 4, 6]))), (descend, data))
    )
    assert ours.alpha == pytest.approx(plain.alpha, rel=1e-12)
    assert ours.n_pairs == plain.n_pairs
    sampler = pair_sampler(data.queries, sampling, row_weight=data.weight, query_weight=c)
    value, gap = ExactObjective.of(data.rows, sampler, ours.alpha, 1)(ours.w)
    assert_allclose([ours.objective, ours.gap], [value, gap], rtol=1e-9)
    assert gap > 0


# ---- how good it is -----------------------------------------------------------------------------


@pytest.mark.parametrize(("average", "margin"), [("weighted", 0.005), (None, 0.05)])
def test_real_data_in_chunks_end_near_those_in_memory(average, margin):
    """471 queries in 10 chunks, by their share of relevant rows: chunks that differ much."""
    data = mq2008(1, 2, 3)
    offsets = data.queries.offsets
    order = np.argsort(np.add.reduceat(data.labels, offsets[:-1]) / np.diff(offsets), kind="stable")
    rows = [np.arange(offsets[q], offsets[q + 1]) for q in order]
    data = data.select(np.concatenate(rows))
    parts = Parts(in_parts(data, list(range(47, 471, 47))))
    options = {"algorithm": "hybrid", "average": average, "n_steps": 100_000, "record": "exact"}
    plain = np.mean([descend(data, **options, seed=s).objective for s in range(3)])
    ours = np.mean([descend_chunks(parts, **options, seed=s).objective for s in range(3)])
    assert ours < (1 + margin) * plain


# ---- options and faults -------------------------------------------------------------------------


def test_chunks_without_pairs_are_never_read():
    data = problem()
    labels, weight = data.labels.copy(), np.ones(data.queries.n_queries)
    labels[data.queries.offsets[3] : data.queries.offsets[4]] = 1.0
    weight[4:7] = 0.0
    data = replace(data, labels=labels)
    source = BufferedParts(in_parts(data, CUTS[:3]))
    result = descend_chunks(source, **OPTIONS, query_weight=weight, memory_limit=None)
    assert source.n_read == 2
    assert result.n_pairs == descend(data, **OPTIONS, query_weight=weight).n_pairs


def test_what_chunks_cannot_give_is_an_error():
    data = problem()
    flat = replace(data, labels=np.zeros(data.n_rows))
    with pytest.raises(NoPairsError, match=r"none of the 3 chunks \(300 rows\) has a pair"):
        descend_chunks(Parts(in_parts(flat, CUTS[:2])), **OPTIONS)
    with pytest.raises(NoPairsError, match="none of the 1 chunks"):
        descend_chunks(Parts([data]), **OPTIONS, query_weight=np.zeros(data.queries.n_queries))
    with pytest.raises(ValueError, match=r"sampling='roc' compares rows of all queries"):
        descend_chunks(Parts([data]), sampling="roc")


# ---- stores -------------------------------------------------------------------------------------


ranking = partial(problem, n_rows=600, n_queries=30, weights=True)


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


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"passes": 3}, "passes=3 is for a store and memory_limit"),
        ({"memory_limit": "much"}, "memory_limit must be"),
        ({"memory_limit": "1kB"}, r"='1kB', 1.0 kB, is too small: a descent .* allow [\d.]+kB, or"),
        ({"passes": 0, "memory_limit": "1GB"}, "passes must be an integer >= 1 or No"),
        ({"passes": 1.5, "memory_limit": "1GB"}, "passes must be an integer >= 1 or No"),
        ({"passes": True, "memory_limit": "1GB"}, "passes must be an integer >= 1 or No"),
    ],
)
def test_arguments_that_do_not_go_together_are_refused(tmp_path, options, message):
    with pytest.raises((ValueError, MemoryError), match=message):
        ranker(**options).fit(written(tmp_path, ranking()))
