"""SGDRanker and ``linrank train --method sgd`` on stores: bits, memory, faults."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from dataset_parts import Parts
from linrank import evaluate
from linrank.cli.main import main
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


def test_what_the_fit_knows_of_the_store(tmp_path):
    data = ranking(names=list("abcde"), text_ids=True)
    fitted = ranker(memory_limit="64GB").fit(written(tmp_path, data))
    assert fitted.n_features_in_ == 5
    assert fitted.feature_names_in_.tolist() == list("abcde")
    assert fitted.n_queries_ == data.queries.n_queries
    assert fitted.n_pairs_ == data.queries.n_pairs
    assert fitted.needs_qid_
    assert fitted.model_.training["n_rows"] == 600
    assert fitted.model_.feature_names == list("abcde")
    scores = fitted.model_.predict(data.X)
    assert (
        evaluate(data.y, scores, qid=data.qid, metrics="pairwise_accuracy")["pairwise_accuracy"]
        > 0.9
    )


def test_query_weights_and_warm_starts_and_validation_work_as_in_memory(tmp_path):
    data = ranking(text_ids=True)
    store = written(tmp_path, data)
    ids = data.queries.ids.tolist()
    weight = {id_: float(k % 3) for k, id_ in enumerate(ids)}
    by_id = ranker(memory_limit="64GB").fit(store, query_weight=weight)
    by_query = ranker(memory_limit="64GB").fit(store, query_weight=[k % 3 for k in range(len(ids))])
    assert_array_equal(by_id.coef_, by_query.coef_)
    assert (by_id.coef_ != ranker(memory_limit="64GB").fit(store).coef_).any()
    with pytest.raises(ValueError, match="has no weight for 29 of 30 queries"):
        ranker(memory_limit="64GB").fit(store, query_weight={ids[0]: 1.0})
    held_out = ranking(seed=5, text_ids=True)
    given = {"X_val": held_out.X, "y_val": held_out.y, "qid_val": held_out.qid}
    stopped = ranker(memory_limit="64GB", early_stopping=True, warm_start=True)
    stopped.fit(store, **given)
    first = stopped.coef_
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


def test_a_store_without_a_limit_is_mapped(tmp_path):
    data = ranking()
    fitted = ranker().fit(written(tmp_path, data))
    plain = ranker().fit(data.X, data.y, qid=data.qid, sample_weight=data.weight)
    assert_array_equal(fitted.coef_, plain.coef_)


def test_arguments_that_do_not_go_together_are_refused(tmp_path):
    data = ranking()
    store = written(tmp_path, data)
    with pytest.raises(ValueError, match="y is part of the store"):
        ranker(memory_limit="1GB").fit(store, data.y)
    with pytest.raises(ValueError, match="memory_limit='1GB' is for a store"):
        ranker(memory_limit="1GB").fit(data.X, data.y, qid=data.qid)
    with pytest.raises(ValueError, match="passes=3 is for a store and memory_limit"):
        ranker(passes=3).fit(store)
    for passes in (0, -1, 1.5, True, "2"):
        with pytest.raises(ValueError, match="passes must be an integer >= 1 or None, got"):
            ranker(passes=passes, memory_limit="1GB").fit(store)
    with pytest.raises(ValueError, match="sampling='roc' compares rows of all queries"):
        ranker(sampling="roc", memory_limit="1GB").fit(store)
    with pytest.raises(
        MemoryError,
        match=r"memory_limit='1MB', 1.0 MB, is too small: a descent .* allow [\d.]+MB, or",
    ):
        ranker(memory_limit="1MB").fit(store)
    with pytest.raises(ValueError, match="memory_limit must be"):
        ranker(memory_limit="much").fit(store)


LIMITED = """
    import resource, sys
    import numpy as np
    import linrank, sklearn.utils.validation
    from linrank import SGDRanker
    from linrank.io.store.store import Store

    store = Store(sys.argv[1])
    ranker = SGDRanker(n_steps=20_000, scale=sys.argv[2], random_state=0)
    ranker.fit([[0.0], [1.0]], [0, 1], qid=[0, 0])  # all that is imported late
    ranker.set_params(memory_limit=int(sys.argv[3]))

    def in_memory(name):
        with open("/proc/self/status") as file:
            status = dict(line.split(":") for line in file)
        # Without mapped files, here libraries: the system can drop their pages.
        return 1024 * (int(status[name].split()[0]) - int(status["RssFile"].split()[0]))

    before = in_memory("VmRSS")
    with open("/proc/self/statm") as file:
        mapped = int(file.read().split()[0]) * resource.getpagesize()
    limit = mapped + int(sys.argv[3]) + (80 << 20)  # address space of a thread, hardly touched
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    ranker.fit(store)
    taken = in_memory("VmHWM") - before
    if taken > ranker.memory_limit:
        sys.exit(f"{taken} bytes were taken, more than {ranker.memory_limit}")
    print(*ranker.coef_)
"""


@pytest.fixture(scope="module")
def large(tmp_path_factory) -> Store:
    """A store of 240 MB."""
    rng = np.random.default_rng(0)
    X = rng.random((500_000, 120), dtype=np.float32)
    y = np.digitize(X[:, 0] + X[:, 1], [0.5, 1.5]).astype(float)
    qid = np.repeat(np.arange(5000), 100)
    path = tmp_path_factory.mktemp("large") / "store"
    return Store.write(path, X, y, qid=qid, chunk_bytes=4 << 20)


@pytest.mark.slow
@pytest.mark.parametrize("scale", ["none", "standard"])
def test_a_store_of_three_times_the_limit_is_trained_on(large, scale):
    """The address space is limited: an array of the size of the store could not be made."""
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(LIMITED), large.path, scale, str(80 << 20)],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert run.returncode == 0, run.stderr[-2000:]
    options = {"n_steps": 20_000, "scale": scale, "random_state": 0}
    whole = SGDRanker(**options, memory_limit="8GB").fit(large)
    assert_array_equal(np.array(run.stdout.split(), dtype=float), whole.coef_)


# ---- command line -------------------------------------------------------------------------------


def test_the_command_line_trains_within_a_limit(tmp_path, capsys):
    store = written(tmp_path, ranking())
    model = tmp_path / "model.json"
    arguments = ["train", store.path, str(model), "--method", "sgd", "--memory-limit", "8GB"]
    arguments += ["--scale", "none"]
    assert (
        main([*arguments, "--n-steps", "5000", "--record", "exact", "--json", "--seed", "3"]) == 0
    )
    told = capsys.readouterr()
    report = json.loads(told.out)
    assert report["data"]["chunks"] == store.n_chunks
    assert report["data"]["memory_limit"] == 8_000_000_000
    assert f"in {store.n_chunks} chunks" in told.err
    expected = SGDRanker(n_steps=5000, random_state=3, memory_limit="8GB").fit(store)
    from linrank import load_model

    assert_array_equal(load_model(model).coef, expected.coef_)
    assert main([*arguments, "--passes", "1", "--quiet"]) == 0
    assert (load_model(model).coef != expected.coef_).any()


def test_the_command_line_refuses_limits_without_a_store(tmp_path, capsys):
    text = tmp_path / "train.txt"
    text.write_text("1 qid:1 1:1\n0 qid:1 1:0\n")
    for arguments, message in [
        (["--method", "sgd", "--memory-limit", "1GB"], "is no store"),
        (["--method", "sgd", "--passes", "2"], "--passes needs --memory-limit"),
    ]:
        assert main(["train", str(text), str(tmp_path / "m.json"), *arguments]) == 2
        assert message in capsys.readouterr().err
