"""Estimators on stores: mapped, and in passes within a limit on memory."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import linrank
from linrank.io.store.store import Store
from linrank.parts.parts import _SPARE
from linrank.parts.passes import Budget
from linrank.system.resources import resident

TIGHT = (64 << 20) + 1_000_000  # beside what the process has: room for two small chunks, no more


@pytest.fixture(scope="module")
def data() -> linrank.Dataset:
    made = linrank.make_ranking(n_queries=300, n_features=9, random_state=0)
    rng = np.random.default_rng(0)
    weight = rng.integers(1, 3, made.n_rows).astype(float)
    names = [f"f{i}" for i in range(9)]
    return linrank.Dataset.of(
        made.X, made.y, qid=made.qid, sample_weight=weight, feature_names=names
    )


@pytest.fixture(scope="module")
def store(data: linrank.Dataset, tmp_path_factory: pytest.TempPathFactory) -> Store:
    path = tmp_path_factory.mktemp("stores") / "store"
    return Store.of(path, data, chunk_bytes=20_000)


def in_memory(ranker: Any, data: linrank.Dataset) -> Any:
    return ranker.fit(data.X, data.y, qid=data.qid, sample_weight=data.weight)


@pytest.mark.parametrize("scale", ["none", "standard", "minmax", "query"])
@pytest.mark.parametrize(
    "ranker",
    [linrank.RankSVM(C=0.1, tol=1e-14), linrank.DominationRanker("l2", 2.0, tol=1e-14)],
    ids=lambda ranker: type(ranker).__name__,
)
@pytest.mark.filterwarnings("ignore::linrank.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_passes_find_what_memory_finds(
    ranker: Any, scale: str, data: linrank.Dataset, store: Store
) -> None:
    from sklearn.base import clone

    ranker = clone(ranker).set_params(scale=scale)
    whole = in_memory(clone(ranker), data)
    ample = clone(ranker).set_params(memory_limit="64GB").fit(store)
    tight = clone(ranker).set_params(memory_limit=resident() + TIGHT).fit(store)
    np.testing.assert_array_equal(ample.coef_, tight.coef_)
    size = np.abs(whole.coef_).max()
    np.testing.assert_allclose(ample.coef_, whole.coef_, rtol=0, atol=1e-9 * size)
    assert ample.n_pairs_ == whole.n_pairs_
    assert ample.n_queries_ == whole.n_queries_
    assert list(ample.feature_names_in_) == list(data.feature_names or ())
    assert ample.model_.training["n_rows"] == data.n_rows
    np.testing.assert_allclose(
        ample.predict(data.X, qid=data.qid), whole.predict(data.X, qid=data.qid), atol=1e-7
    )


def test_a_mapped_store_is_the_data(data: linrank.Dataset, store: Store) -> None:
    for ranker in (linrank.RankSVM(C=0.1), linrank.DominationRanker(alpha=3.0)):
        mapped = ranker.fit(store).coef_
        np.testing.assert_array_equal(mapped, in_memory(ranker, data).coef_)


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_validation_stops_early_over_a_store(data: linrank.Dataset, store: Store) -> None:
    held_out = {"X_val": data.X, "y_val": data.y, "qid_val": data.qid}
    options: dict[str, Any] = {"early_stopping": True, "n_iter_no_change": 1, "C": 0.1}
    ranker = linrank.RankSVM(memory_limit="64GB", **options).fit(store, **held_out)
    best = ranker.history_["val_ndcg@10"][ranker.best_iteration_]
    scores = ranker.predict(data.X)
    measured = linrank.evaluate(data.y, scores, qid=data.qid, metrics=["ndcg@10"])
    assert measured["ndcg@10"] == pytest.approx(best)


def test_query_weights_by_id(data: linrank.Dataset, store: Store) -> None:
    weights = {id_: float(i % 3) for i, id_ in enumerate(np.unique(data.qid).tolist())}
    whole = linrank.RankSVM(C=0.1, tol=1e-12).fit(
        data.X, data.y, qid=data.qid, sample_weight=data.weight, query_weight=weights
    )
    ranker = linrank.RankSVM(C=0.1, tol=1e-12, memory_limit="64GB")
    found = ranker.fit(store, query_weight=weights)
    np.testing.assert_allclose(found.coef_, whole.coef_, rtol=0, atol=1e-8)
    with pytest.raises(ValueError, match="mapping from query id to weight"):
        ranker.fit(store, query_weight=np.ones(300))


@pytest.mark.parametrize(
    ("ranker", "message"),
    [
        (linrank.RankSVM(solver="bundle"), "solver='bundle' .* use solver='newton'"),
        (linrank.RankSVM(pairs="pruned"), "pairs='pruned' .* use pairs='all' or 'adjacent'"),
        (linrank.DominationRanker("l1"), "penalty='l1' .* use penalty='l2'"),
        (linrank.DominationRanker("l2", pooled=True), "pooled=True"),
        (linrank.DominationRanker("l2", margin=np.eye(5)), "a margin by table"),
        (linrank.DominationRanker("l2", negative_sampling=0.5), "negative_sampling=0.5"),
    ],
)
def test_what_passes_cannot_do_is_refused(ranker: Any, message: str, store: Store) -> None:
    with pytest.raises(ValueError, match=message):
        ranker.set_params(memory_limit="64GB").fit(store)


def test_a_limit_is_for_stores_and_large_enough(data: linrank.Dataset, store: Store) -> None:
    with pytest.raises(ValueError, match="is for a store, got ndarray"):
        linrank.RankSVM(memory_limit="1GB").fit(data.X, data.y)
    with pytest.raises(ValueError, match="y is part of the store"):
        linrank.RankSVM(memory_limit="1GB").fit(store, data.y)
    with pytest.raises(MemoryError, match=r"memory_limit='1MB' is too small .* allow .* [MG]B"):
        linrank.RankSVM(memory_limit="1MB").fit(store)
    with pytest.raises(ValueError, match="memory_limit"):
        linrank.RankSVM(memory_limit="a lot").fit(store)


def test_the_limit_has_room_for_the_sums_of_hessians(tmp_path: Path) -> None:
    """A sum by a tree keeps one matrix a level, and a kernel 64 MB of parts."""
    rng = np.random.default_rng(0)
    X, y, qid = rng.standard_normal((640, 1000)), rng.integers(0, 3, 640), np.arange(640) // 5
    n_bytes = {}
    for n_chunks in (1, 128):
        store = Store.write(
            tmp_path / f"{n_chunks}", X, y, qid=qid, chunk_bytes=X.nbytes // n_chunks
        )
        assert store.n_chunks == n_chunks
        with pytest.raises(MemoryError, match="is too small") as caught:
            linrank.RankSVM(memory_limit="1MB").fit(store)
        found = re.search(r"take (\d+\.\d) MB more", str(caught.value))
        assert found is not None
        n_bytes[n_chunks] = float(found[1]) * 1e6 - Budget.least(store) - _SPARE
    assert n_bytes[128] > 20 * X.shape[1] ** 2 * 8  # 18 to 21 matrices were measured
    assert n_bytes[128] - n_bytes[1] == pytest.approx(7 * X.shape[1] ** 2 * 8, rel=0.01)


PROGRAM = """
import resource, sys
import linrank
from linrank.io.store.store import Store
from linrank.system.resources import resident
ranker = linrank.RankSVM(C=0.01, tol=0.1, n_jobs=1)
ranker.fit([[0.0], [1.0]], [0, 1])  # all that is imported late
pages = int(open("/proc/self/statm").read().split()[0])
more = int(sys.argv[2])
limit = pages * resource.getpagesize() + more
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
store = Store(sys.argv[1])
if sys.argv[3] == "passes":
    ranker.set_params(memory_limit=resident() + more - (20 << 20))
print(ranker.fit(store).coef_.tobytes().hex())
"""


def test_the_system_enforces_the_limit(tmp_path: Path) -> None:
    """A store that is larger than what a process may add to its address space."""
    rng = np.random.default_rng(0)
    n, more = 300_000, 150_000_000
    X = rng.standard_normal((n, 160), dtype=np.float32)
    y = rng.integers(0, 3, n)
    path = tmp_path / "store"
    store = Store.write(path, X, y, qid=np.arange(n) // 50, chunk_bytes=8_000_000)
    assert store.nbytes > 1.25 * more
    free = linrank.RankSVM(C=0.01, tol=0.1, memory_limit="8GB").fit(store)

    def run(how: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", PROGRAM, str(path), str(more), how]
        # Arenas of threads reserve 64 MB each, which they do not use.
        env = {**os.environ, "MALLOC_ARENA_MAX": "1"}
        return subprocess.run(command, capture_output=True, text=True, check=False, env=env)

    passes = run("passes")
    assert passes.returncode == 0, passes.stderr
    assert passes.stdout.strip() == free.coef_.tobytes().hex()
    assert run("mapped").returncode != 0  # the limit is one


def test_a_store_where_rows_are_wanted_is_told(tmp_path):
    data = linrank.make_ranking(n_queries=5, n_features=3, random_state=0)
    store = linrank.Store.of(tmp_path / "store", data)
    ranker = linrank.RankSVM().fit(store)
    with pytest.raises(TypeError, match=r"X is a Store.*read it by data = store\.dataset\(\)"):
        ranker.predict(store)


@pytest.mark.parametrize(
    "ranker",
    [
        linrank.FactorizedRankSVM(max_iter=5, random_state=0),
        linrank.KernelRankSVM(approximation="nystroem", n_components=8, random_state=0),
        linrank.SGDRankerCV(cv=2, random_state=0),
        linrank.DominationRankerCV(cv=2),
    ],
    ids=lambda ranker: type(ranker).__name__,
)
@pytest.mark.filterwarnings("ignore")
def test_every_estimator_takes_a_store(
    ranker: Any, store: linrank.Store, data: linrank.Dataset
) -> None:
    scores = ranker.fit(store).predict(data.X)
    np.testing.assert_array_equal(scores, in_memory(ranker, data).predict(data.X))
    with pytest.raises(ValueError, match="qid is part of the store"):
        ranker.fit(store, qid=data.qid)
