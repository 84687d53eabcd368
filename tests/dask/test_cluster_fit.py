"""Fits, paths and searches on a cluster: the numbers of the same rows in memory."""

import warnings
from functools import partial

import dask.array as da
import numpy as np
import pytest
from distributed_data import Arrays, assert_forgotten, ranking
from numpy.testing import assert_allclose
from processes import processes
from sklearn.base import clone

import linrank
import linrank.dask
import linrank.dask.partitions
from law import cases, judge
from linrank.choices import PAPERS
from linrank.dask import RankSVM, RankSVMCV, ranksvm_path
from linrank.dask.partitions import partitions_of
from linrank.errors import DataWarning
from linrank.io.store.store import Store
from linrank.parts.parts import MemoryChunks
from linrank.parts.recipes import RankRecipe
from linrank.parts.train import train_chunks

# Noise has no best C; that the choice lies at an end of these grids is no concern here.
pytestmark = pytest.mark.filterwarnings("ignore:(the best|every) C")
EXACT = {"C": 0.3, "tol": 1e-12}
ALIKE = {name: value for name, value in PAPERS.items() if name != "C"}


def in_memory(data, **options):
    return data.fit(linrank.RankSVM(**{**EXACT, **options}))


def on_cluster(parts, **options):
    return parts.fit(linrank.dask.RankSVM(**{**EXACT, **options}))


def assert_same(ranker, expected):
    scale = np.abs(expected.coef_).max()
    np.testing.assert_allclose(ranker.coef_, expected.coef_, rtol=0, atol=1e-10 * scale)
    assert ranker.n_pairs_ == expected.n_pairs_
    assert ranker.n_queries_ == expected.n_queries_


OPTIONS = [
    {"scale": "standard"},
    {"scale": "minmax", "positive": True},
    {"scale": "query"},
    {"loss": "hinge", "tol": 1e-3},
    {"pairs": "adjacent", "pair_weighting": "gain_diff", "tol": 1e-11},
    {"query_normalization": "pairs"},
    {"coef_bounds": (-0.1, 0.2)},
    {"pair_weighting": "ndcg@3", "n_rounds": 2, "C": "auto"},
    {"pair_weighting": "ndcg@3", "scale": "standard", "on_split": "gather"},
    {"pair_weighting": "err", "n_rounds": 2, "on_split": "gather"},
    {"pair_weighting": "err", "scale": "standard", "C": "auto"},
]
L2 = {"penalty": "l2", "alpha": 0.3}
OF_DOMINATION = (("margin", None), ("margin", 1.0), ("layers", "binary"))
CASES = [
    *(("RankSVM", EXACT, n, shuffled) for n in (1, 2, 5, 17) for shuffled in (False, True)),
    *(("RankSVM", EXACT | options, 4, False) for options in OPTIONS),
    *(("DominationRanker", L2 | {key: value}, 5, False) for key, value in OF_DOMINATION),
]
CASES = [("arrays", *case) for case in CASES]
CASES += [(form, "RankSVM", EXACT, 3, False) for form in ("dataframe", "sparse")]


@pytest.mark.parametrize(("form", "name", "options", "n_parts", "shuffled"), CASES)
def test_a_fit_is_that_in_memory(client, form, name, options, n_parts, shuffled):
    data = ranking(40, seed=6, shuffled=shuffled)
    if n_parts == 17:  # some of them make no pair
        data = data._replace(y=np.where(np.arange(len(data.y)) < 40, 1, data.y))
    if name == "DominationRanker":
        data = data._replace(weight=None)
    options = {"tol": 1e-12, **options}
    parts = getattr(data, form)(n_parts)
    ranker = parts.fit(getattr(linrank.dask, name)(**options))
    how = options.pop("on_split", "repair")
    expected = data.fit(getattr(linrank, name)(**options))
    if options.get("loss") == "hinge":  # the certified gap is all that is known
        room = ranker.duality_gap_ + expected.duality_gap_
        assert abs(ranker.objective_ - expected.objective_) <= room
    else:
        assert_same(ranker, expected)
        C = [one.model_.training.get("C", 0.0) for one in (ranker, expected)]
        np.testing.assert_allclose(*C)
    assert ranker.model_.training.keys() <= expected.model_.training.keys()
    assert ranker.n_repeated_ == 0
    assert (ranker.repair_.n_queries > 0) == (n_parts > 1 and how == "repair")


@pytest.mark.parametrize("missing", ["error", "mean", "indicator"])
def test_a_store_gives_the_model_of_memory(client, tmp_path, missing):
    """Missing values were filled in when it was written: the model knows how."""
    data = ranking(40, seed=5)
    X = np.array(data.X)
    if missing != "error":
        X[np.random.default_rng(0).random(X.shape) < 0.2] = np.nan
    given = {"qid": data.qid, "sample_weight": data.weight, "missing": missing}
    Store.write(tmp_path / "store", X, data.y, **given, chunk_bytes=800)
    found = on_cluster(Arrays(str(tmp_path / "store")))
    expected = Arrays(Store(tmp_path / "store")).fit(linrank.RankSVM(**EXACT))
    assert_same(found, expected)
    assert found.model_.missing.kind == missing
    np.testing.assert_allclose(found.model_.predict(X), expected.model_.predict(X), rtol=1e-6)


@pytest.mark.parametrize(
    "options",
    [
        {"curves": "quantile", "n_knots": 20},
        {"curves": "spline", "n_knots": 4, "increasing": [0], "decreasing": [2]},
        {"curves": "step", "n_knots": 4, "interactions": 8, "random_state": 0},
        {"curves": "quantile", "pair_weighting": "ndcg@5"},
    ],
    ids=str,
)
@pytest.mark.parametrize(
    "form",
    ["arrays", *(pytest.param(name, marks=pytest.mark.slow) for name in ("delayed", "sparse"))],
)
def test_curves_are_those_in_memory(client, form, options):
    data, options = ranking(40, seed=6), {"tol": 1e-8, **options}
    parts = getattr(data, form)(4)
    ranker, expected = on_cluster(parts, **options), in_memory(data, **options)
    assert ranker.objective_ == pytest.approx(expected.objective_, rel=1e-6)
    scores = expected.predict(data.X)
    np.testing.assert_allclose(ranker.predict(data.X), scores, atol=1e-3 * np.ptp(scores))
    assert isinstance(ranker.model_, linrank.AdditiveModel)
    np.testing.assert_allclose(ranker.model_.statistics.mean, data.X.mean(axis=0), atol=0.5)
    there = da.from_array(data.X, chunks=(20, -1))
    np.testing.assert_array_equal(ranker.predict(there).compute(), ranker.predict(data.X))
    np.testing.assert_array_equal(ranker.to_local().predict(data.X), ranker.predict(data.X))


def test_query_weights_are_a_mapping(client):
    data = ranking(40, seed=7)
    weights = {q: 0.5 + (q % 3) for q in data.qid.tolist()}
    parts = data.arrays(4)
    found = parts.fit(linrank.dask.RankSVM(**EXACT), query_weight=weights)
    assert_same(found, data.fit(linrank.RankSVM(**EXACT), query_weight=weights))
    with pytest.raises(ValueError, match=r"mapping from query id to weight .* got ndarray"):
        parts.fit(linrank.dask.RankSVM(), query_weight=np.ones(40))


def test_one_and_two_workers_and_memory_have_the_same_bits(client, tmp_path):
    parts = ranking(60, seed=9).arrays(5)
    place = partitions_of(*parts, client)
    chunks = [RankRecipe().chunk(held) for held in client.gather(list(place.futures))]
    expected = train_chunks(MemoryChunks(chunks), RankRecipe(), **EXACT)[0].w
    with processes(tmp_path, n_workers=1) as (_, alone):
        for one in (client, alone):
            assert np.array_equal(on_cluster(parts, client=one, **ALIKE).coef_, expected)


def test_what_the_data_decide_is_the_same_on_a_cluster(client):
    data = ranking(60, seed=9)
    ranker = data.arrays(5).fit(linrank.dask.RankSVM())
    expected = data.fit(linrank.RankSVM())
    assert ranker.settings_ == expected.settings_ | {"C": pytest.approx(expected.C_)}
    np.testing.assert_allclose(ranker.coef_, expected.coef_, rtol=1e-2, atol=1e-5)


def test_predict_score_and_the_local_ranker_agree(client, tmp_path):
    data = ranking(60, seed=10)
    parts = data.arrays(5)
    ranker = on_cluster(parts, scale="standard")
    scores = ranker.predict(parts.X)
    assert scores.chunks == parts.y.chunks
    local = ranker.to_local()
    assert type(local) is linrank.RankSVM
    assert np.array_equal(scores.compute(), local.predict(data.X))
    expected = local.score(data.X, data.y, qid=data.qid)
    assert ranker.score(parts.X, parts.y, qid=parts.qid) == expected
    ranker.save(tmp_path / "model.json")
    assert np.array_equal(linrank.load_model(tmp_path / "model.json").coef, local.coef_)
    with pytest.raises(ValueError, match="needs qid"):
        ranker.score(parts.X, parts.y)
    ranks = ranker.rank(data.X, qid=data.qid)
    assert np.array_equal(ranks, local.rank(data.X, qid=data.qid))
    with pytest.raises(TypeError, match="needs the rows of each query together"):
        ranker.rank(parts.X, qid=parts.qid)


def test_validation_data_stop_early(client):
    held_out, parts = ranking(20, seed=12), ranking(40, seed=11).arrays(3)
    validation = {"X_val": held_out.X, "y_val": held_out.y, "qid_val": held_out.qid}
    ranker = linrank.dask.RankSVM(early_stopping=True, n_iter_no_change=1)
    parts.fit(ranker, **validation)
    assert len(ranker.history_["val_ndcg@10"]) == len(ranker.history_["objective"])
    assert ranker.best_iteration_ <= ranker.n_iter_


RANKSVM, DOMINATION = linrank.dask.RankSVM, linrank.dask.DominationRanker
SEARCH = partial(linrank.dask.RankSVMCV, [0.05, 1.0])


@pytest.mark.parametrize(
    ("ranker", "options", "message"),
    [
        (RANKSVM, {"solver": "bundle"}, "solver='bundle' reads rows .* in memory, not a cluster"),
        (RANKSVM, {"pairs": "closest"}, "pairs='closest' lists pairs of all queries"),
        (RANKSVM, {"n_closest": 5}, "n_closest=5 does not go with"),
        (RANKSVM, {"random_state": 1}, "random_state=1 does not go with"),
        (RANKSVM, {"early_stopping": True}, "needs validation data"),
        (RANKSVM, {"patience": 0}, "patience must be a number of seconds > 0, got 0"),
        (RANKSVM, {"loss": "logistic"}, "loss must be"),
        (RANKSVM, {"C": -1.0}, "C must be a finite number > 0"),
        (RANKSVM, {"scale": "max"}, "scale must be 'none', "),
        (SEARCH, {"solver": "bundle"}, "solver='bundle' reads rows .* in memory, not a cluster"),
        (SEARCH, {"pairs": "pruned"}, "pairs='pruned' lists pairs of all queries"),
        (SEARCH, {"on_split": "ignore"}, "on_split must be 'repair', 'error' or 'gather'"),
        (SEARCH, {"cv": 99}, "cannot fill 99 folds"),
        (SEARCH, {"patience": 0}, "patience must be a number of seconds > 0, got 0"),
        (DOMINATION, {"penalty": "l1"}, "use penalty='l2' and solver='newton'"),
        (DOMINATION, {"pooled": True}, "pooled=True makes one query of all rows"),
        (DOMINATION, {"solver": "coordinate"}, "'coordinate' reads features one by one"),
        (DOMINATION, {"margin": np.zeros(3)}, "a margin by table or by row"),
        (DOMINATION, {"alpha": 0.0}, "alpha must be > 0"),
        (DOMINATION, {"scale": "max"}, "scale must be 'none', "),
    ],
    ids=str,
)
def test_what_makes_no_sense_on_a_cluster_is_refused_by_name(client, ranker, options, message):
    parts = ranking().arrays(2)
    with pytest.raises(ValueError, match=message):
        ranker(client=client, **options).fit(parts.X, parts.y, qid=parts.qid)
    assert_forgotten(client)


def test_partitions_are_there_until_a_training_opens_them_last(client, monkeypatch):
    """A second opening that finds them gone would fail or not, by who is quicker."""
    parts = ranking(40, seed=11).arrays(4)
    released = []
    monkeypatch.setattr(linrank.dask.partitions, "release", released.append)
    with partitions_of(*parts[:3]) as place:
        for _ in range(2):
            with place.opened(RankRecipe()) as chunks:
                assert chunks.n_chunks == 4
            assert not released
        with place.opened(RankRecipe(), is_last=True):
            assert released == [place.futures]
        with pytest.raises(RuntimeError, match="released"), place.opened(None):
            pass


@pytest.mark.parametrize(
    ("options", "other"),
    [
        ({"curves": "quantile", "tol": 1e-8}, {"curves": "step"}),
        ({"pair_weighting": "ndcg@3", "n_rounds": 2}, {"pair_weighting": "ndcg@4"}),
    ],
)
def test_a_fit_goes_on_from_a_checkpoint_of_the_same_problem(client, tmp_path, options, other):
    """Weights by a measure do not depend on where the solver starts."""
    data = ranking(40, seed=12)
    parts = data.arrays(4)
    ranker = linrank.dask.RankSVM(**EXACT | options, checkpoint=tmp_path / "kept")
    parts.fit(clone(ranker).set_params(callback=lambda state: state["n_iter"] == 1))
    parts.fit(ranker, resume=True)
    assert ranker.objective_ == pytest.approx(in_memory(data, **options).objective_, rel=1e-6)
    with pytest.raises(linrank.errors.CheckpointError, match=next(iter(other))):
        parts.fit(ranker.set_params(**other), resume=True)


# ---- the law of certificates; see `tests/test_certificates.py` -----------------------------------

with_judge = pytest.mark.skipif(
    not judge.is_able(), reason="no compiler, or long doubles are no longer than doubles"
)


def check(client, numbers):
    _, n_refused, faults = cases.run("cluster", 1, numbers, client=client)
    assert n_refused < len(numbers) / 2
    assert [fault[:4] for fault in faults] == []


@with_judge
def test_no_certificate_is_false(client):
    check(client, range(4))


@with_judge
@pytest.mark.slow
@pytest.mark.time_limit(1800)
@pytest.mark.parametrize("first", range(0, 500, 100))
def test_no_certificate_is_false_of_many(client, first):
    check(client, range(first, first + 100))


# ---- paths, searches and giant queries -----------------------------------------------------------

GRID = [1e-3, 0.05, 1.0]


def giant(n_rows):
    """One query in memory, and in four partitions."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_rows, 5))
    y = np.digitize(X @ rng.standard_normal(5) + rng.standard_normal(n_rows), [-1, 1, 3])
    there = da.from_array(X, chunks=(n_rows // 3, -1)), da.from_array(y, chunks=n_rows // 3)
    return (X, y), there


def path(function, data, **options):
    return function(*data[:3], sample_weight=data.weight, Cs=GRID, tol=1e-12, **options)


@pytest.mark.parametrize(
    ("n_parts", "options"),
    [
        (1, {}),
        (2, {"scale": "standard"}),
        (5, {"scale": "query", "pairs": "adjacent"}),
        (5, {"positive": True, "scale": "minmax"}),
    ],
    ids=str,
)
def test_a_path_is_that_in_memory(client, n_parts, options):
    data = ranking(15)
    found = path(ranksvm_path, data.arrays(n_parts), **options)
    assert found.converged.all()
    truth = path(linrank.ranksvm_path, data, **options)
    assert_allclose(found.coefs, truth.coefs, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize(
    "options", [{}, {"scale": "standard"}, {"pairs": "pruned", "random_state": 3}], ids=str
)
def test_split_queries_by_gathered_scores(client, options):
    """Rows stay where they are: every query of shuffled rows lies in all partitions."""
    data = ranking(9, shuffled=True)
    there, truth = data.delayed(4), path(linrank.ranksvm_path, data, **options)
    found = path(ranksvm_path, there, on_split="gather", **options)
    assert_allclose(found.coefs, truth.coefs, rtol=1e-7, atol=1e-9)
    if not options:
        ranker = there.fit(RankSVM(C=GRID[1], scale="none", tol=1e-14, on_split="gather"))
        assert ranker.repair_.n_rows == 0
        expected = data.fit(linrank.RankSVM(C=GRID[1], scale="none", tol=1e-14))
        assert_allclose(ranker.coef_, expected.coef_, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    ("n_parts", "shuffled", "options"),
    [
        (1, False, {"scale": "standard"}),
        (3, False, {"scoring": "err"}),
        (5, True, {"scoring": "pairwise_accuracy", "scale": "minmax"}),
        (4, False, {"pair_weighting": "ndcg@3", "n_rounds": 2}),
        (3, False, {"curves": "spline", "n_knots": 3, "increasing": [1], "tol": 1e-9}),
    ],
)
def test_the_choice_is_that_in_memory(client, n_parts, shuffled, options):
    """Every fold has curves of its own."""
    data = ranking(20, shuffled=shuffled)
    options, is_linear = {"cv": 3, "tol": 1e-11, **options}, "curves" not in options
    truth = data.fit(linrank.RankSVMCV(GRID, n_jobs=1, **options))
    found = data.arrays(n_parts).fit(RankSVMCV(GRID, **options))
    assert_allclose(found.scores_, truth.scores_, rtol=1e-12 if is_linear else 1e-6)
    assert found.C_ == truth.C_
    assert (found.n_pairs_, found.n_queries_) == (truth.n_pairs_, truth.n_queries_)
    assert found.model_.training["score"] == pytest.approx(found.best_score_)
    room = 1e-6 if is_linear else 1e-3
    assert_allclose(found.predict(data.X), truth.predict(data.X), rtol=room, atol=room)
    local = found.to_local()
    assert type(local) is linrank.RankSVMCV
    assert_allclose(local.predict(data.X), found.predict(data.X))


def test_folds_of_one_giant_query(client):
    here, there = giant(900)
    truth = linrank.RankSVMCV([1e-4, 1e-2], cv=2, tol=1e-9, n_jobs=1).fit(*here)
    found = RankSVMCV([1e-4, 1e-2], cv=2, tol=1e-9).fit(*there)
    assert_allclose(found.scores_, truth.scores_, rtol=1e-12)
    assert found.needs_qid_ is False


@pytest.mark.parametrize("options", [{}, {"scale": "standard"}, {"loss": "hinge"}], ids=str)
def test_ranksvm_learns_from_one_giant_query_and_goes_on(client, tmp_path, options):
    here, there = giant(2000)
    options = {"C": 1e-3, "tol": 1e-4 if "loss" in options else 1e-8, **options}
    truth = linrank.RankSVM(**options).fit(*here)
    ranker = RankSVM(**options, checkpoint=tmp_path / "w")
    found, again = clone(ranker).fit(*there), ranker.fit(*there, resume=True)
    assert again.n_iter_ < found.n_iter_
    for one in (found, again):
        assert one.converged_
        assert one.n_pairs_ == truth.n_pairs_
        assert abs(one.objective_ - truth.objective_) <= one.duality_gap_ + truth.duality_gap_
        if "loss" not in options:
            assert_allclose(one.coef_, truth.coef_, rtol=1e-6, atol=1e-9)


def test_graded_rows_without_queries_are_asked_for(client):
    X, y = giant(300)[1]
    for ranker in (RankSVM(C=1e-3, tol=0.1), RankSVMCV([1e-3], cv=2, tol=0.1)):
        said = rf"{type(ranker).__name__}.fit got no query ids, .*4 levels from 0 to 3.*qid=None"
        with pytest.warns(DataWarning, match=said):
            ranker.fit(X, y)
        with warnings.catch_warnings():
            warnings.simplefilter("error", DataWarning)
            ranker.fit(X, y, qid=None)
            ranker.fit(X, abs(X[:, 0]))


def test_what_needs_whole_queries_is_refused(client):
    for options, message in (
        ({"scale": "query"}, r"scale='query'.*blocks elsewhere.*'standard'"),
        ({"curves": "quantile"}, r"in 3 blocks elsewhere.* on_split='repair'"),
    ):
        with pytest.raises(ValueError, match=message):
            RankSVM(**options).fit(*giant(300)[1])
    with pytest.raises(ValueError, match=r"pairs='pruned'.*a cluster"):
        path(ranksvm_path, ranking().arrays(2), pairs="pruned")


def test_parameters_are_those_in_memory_and_those_of_a_cluster(client):
    ranker = RankSVMCV(GRID, cv=3, client=client, scale="standard", on_split="error")
    assert isinstance(ranker, linrank.RankSVMCV)
    own = {"client", "on_split", "patience"}
    assert set(ranker.get_params()) - own == set(linrank.RankSVMCV().get_params())
    assert clone(ranker).get_params() == ranker.get_params()
    assert clone(ranker).client is client


def test_the_rows_of_a_fold_count_once():
    from dask.sizeof import sizeof

    from linrank.dask.rounds import make_chunk
    from linrank.parts.recipes import RankRecipe

    data = linrank.make_ranking(n_queries=4, n_features=50, random_state=0)
    for recipe, n_bytes in ((RankRecipe(), data.rows.nbytes), (RankRecipe(by_query=True), 0)):
        # By query, rows are a copy, which counts.
        alone, beside = (sizeof(make_chunk(data, None, recipe, shared)) for shared in (False, True))
        assert alone - beside == n_bytes
