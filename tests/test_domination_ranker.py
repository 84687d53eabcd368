"""DominationRanker, its paths and descents: the optimum by other solvers, and what is refused."""

import warnings
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from hypothesis_profiles import examples
from linrank import ConvergenceWarning, Store, domination_path, evaluate, load_model, make_ranking
from linrank.data.dataset import Dataset
from linrank.data.rows import as_rows
from linrank.domination import path as pathwise
from linrank.domination.coordinate import Descent, descend
from linrank.domination.layering import Layering, margin_of_part
from linrank.domination.path import geometric_alphas, strong_features
from linrank.domination.problem import DominationLoss, DominationProblem
from linrank.domination.train import make_problem, minimize_ridge, sample_negatives, train
from linrank.search.folds import deal
from linrank.search.tuning import Tuning
from papers import DominationRanker, DominationRankerCV
from plain_domination import PlainDomination
from small_data import small

pytestmark = pytest.mark.filterwarnings("ignore:the best alpha", "ignore:every alpha")

DATA = make_ranking(n_queries=15, rows_per_query=(4, 9), n_features=6, n_levels=3, random_state=3)


def fit(penalty="l1", alpha=1.0, tol=1e-9, **params):
    return DominationRanker(penalty, alpha, tol=tol, **params).fit(DATA.X, DATA.y, qid=DATA.qid)


# ---- the optimum --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("penalty", "alpha", "scale"),
    [
        *(("l1", 3.0, "none"), ("none", 0.0, "none"), ("l1", 3.0, "standard")),
        *(("l2", alpha, "standard") for alpha in (1e-3, 0.5, 30.0)),
    ],
)
def test_the_optimum_is_that_of_a_generic_solver(penalty, alpha, scale):
    """Nobody finds a smaller objective, and the certificate says so; it is of scaled weights."""
    deviation = DATA.X.astype(float).std(axis=0) if scale == "standard" else np.ones(6)
    plain = PlainDomination(DATA.X / deviation, DATA.y, DATA.qid)
    tol = 1e-7 if penalty == "none" else 1e-9
    ranker = fit(penalty, alpha, tol=tol, max_iter=50_000, scale=scale)
    best = plain.objective(plain.minimum(penalty, alpha), penalty, alpha)
    found = plain.objective(ranker.coef_ * deviation, penalty, alpha)
    assert ranker.converged_
    assert_allclose(ranker.objective_, found, rtol=1e-7)
    assert found <= best * (1 + 1e-6)
    assert found - best <= ranker.duality_gap_ + 1e-6 * found


# ---- attributes ---------------------------------------------------------------------------------


def test_sparsity_is_told():
    ranker = fit("l1", 8.0)
    n = int(np.count_nonzero(ranker.coef_))
    assert 0 < n < 6
    assert (ranker.n_nonzero_, ranker.density_) == (n, n / 6)
    assert (ranker.sparse_coef_.shape, ranker.sparse_coef_.nnz) == ((1, 6), n)
    assert_array_equal(ranker.sparse_coef_.toarray()[0], ranker.coef_)


def test_the_model_is_saved_with_what_it_was_trained_by(tmp_path):
    ranker = fit("l1", 3.0, margin=("log", 1, 2.7), layers=lambda y: y + 1)
    ranker.save(tmp_path / "m.json")
    model = load_model(tmp_path / "m.json")
    expected = {
        **{"method": "domination", "penalty": "l1", "alpha": 3.0, "margin": "log:1,2.7"},
        **{"layers": "function", "pooled": False, "seed": None},
        **{"n_pairs": DATA.queries.n_pairs, "objective": ranker.objective_},
    }
    assert {key: model.training[key] for key in expected} == expected
    assert "method='domination'" in repr(model)


@pytest.mark.parametrize("penalty", ["l1", "l2"])
def test_the_best_round_of_an_induction_is_certified_over_all_features(penalty):
    test = make_ranking(n_queries=10, n_features=6, n_levels=3, random_state=9)
    rounds = []  # stop in the second: most features are still outside
    ranker = DominationRanker(
        *(penalty, 0.1),
        feature_induction=1,
        early_stopping=True,
        scoring="p@1",
        callback=lambda state: rounds.append(state["round"]) or state["round"] == 2,
    )
    ranker.fit(DATA.X, DATA.y, qid=DATA.qid, X_val=test.X, y_val=test.y, qid_val=test.qid)
    best = ranker.best_iteration_
    assert best < len(rounds) - 1
    whole = make_problem(DATA, penalty=penalty, alpha=0.1, n_jobs=1).at(np.array(ranker.coef_))
    assert_allclose(ranker.objective_, whole.value)
    assert_allclose(ranker.duality_gap_, whole.gap)
    assert_allclose(ranker.kkt_residual_, whole.kkt_residual)
    assert ranker.duality_gap_ > ranker.history_["gap"][best]


# ---- errors -------------------------------------------------------------------------------------


@pytest.mark.parametrize("penalty", ["l1", "l2", "none"])
def test_curvature_that_underflows_or_overflows_is_borne_in_silence(penalty):
    rng = np.random.default_rng(4)
    X, y, qid = rng.normal(size=(18, 5)), rng.permutation(18), rng.integers(0, 3, 18)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        ranker = DominationRanker(penalty, 0.5, solver="coordinate", margin=1e3, max_iter=100)
        assert np.isfinite(ranker.fit(X, y, qid=qid).coef_).all()
        if penalty == "l1":
            ranker = DominationRanker("l1", 0.5, max_iter=100)
            ranker.fit(X * [1e200, 1, 1, 1, 1], y, qid=qid)


@pytest.mark.parametrize("seed", [14, 48])
def test_rows_that_can_be_told_apart_do_not_blow_up_the_weights(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(4, 13))
    X, y, qid = rng.normal(size=(n, 3)), rng.permutation(n), rng.integers(0, 4, n)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        ranker = DominationRanker("none", margin=1e3).fit(X, y, qid=qid)
    assert np.abs(ranker.coef_).max() < 1e12  # 1e274 without a limit


# ---- the search ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def data():
    data = make_ranking(24, n_features=6, n_levels=3, noise=1.0, dtype="float64", random_state=3)
    return data.select(np.random.default_rng(0).permutation(data.n_rows))


def search(data, **params):
    params = {"n_alphas": 8, "cv": 3, "tol": 1e-6, **params}
    return DominationRankerCV(**params).fit(data.X, data.y, qid=data.qid)


def test_a_search_shows_the_path_of_its_choice(data):
    ranker = search(data, scoring="ndcg@5", max_features=4)
    k, path = int(np.flatnonzero(ranker.alphas_ == ranker.alpha_)[0]), ranker.path_
    assert ranker.scores_.shape == ranker.n_nonzeros_.shape == (3, len(path))
    assert (ranker.n_nonzeros_[:, :-1] <= 4).all()  # the grid is cut for all folds
    assert_array_equal(ranker.coef_, path.coefs[k])
    assert ranker.n_nonzero_ == path.n_nonzero[k] == ranker.sparse_coef_.nnz
    assert (ranker.n_iter_, ranker.objective_) == (path.n_iter[: k + 1].sum(), path.objectives[k])
    assert ranker.history_["alpha"][0] == ranker.alpha_


def test_margins_by_row_go_with_their_rows(data):
    margin = np.random.default_rng(0).random(data.n_rows) + data.y
    found = search(data, margin=margin, alphas=[3.0])
    fold = deal(data, 3)[0]
    part, valid = data.select(fold.train), data.select(fold.valid)
    one = DominationRanker(alpha=3.0, margin=margin[fold.train], tol=1e-6)
    scores = one.fit(part.X, part.y, qid=part.qid).predict(valid.X)
    measure = evaluate(valid.y, scores, qid=valid.qid)["ndcg@10"]
    assert_allclose(found.scores_[0, 0], measure, rtol=1e-9)
    assert_array_equal(search(data, margin=margin.tolist(), alphas=[3.0]).scores_, found.scores_)


def test_of_a_table_the_layers_of_the_part_are_kept():
    data = Dataset.of(np.arange(6.0).reshape(-1, 1), [0, 1, 2, 5, 0, 2], qid=[0, 0, 0, 0, 1, 1])
    table = np.arange(16.0).reshape(4, 4)
    part = margin_of_part(table, "labels", data, np.array([4, 5]))
    assert_array_equal(part, [[0, 0], [8, 0]])
    same = margin_of_part(table[:2, :2], "binary", data, np.array([0, 1]))
    assert_array_equal(same, [[0, 0], [4, 0]])
    for form in (None, 1.0, "log", ("linear", 2.0), np.abs):
        assert margin_of_part(form, "labels", data, np.array([1])) is form
    with pytest.raises(ValueError, match="the data have 4 layers"):
        margin_of_part(np.zeros((2, 2)), "labels", data, np.array([4, 5]))
    weightless = Dataset.of(np.zeros((4, 1)), [0, 1, 2, 0], sample_weight=[1, 1, 0, 1])
    part = margin_of_part(np.array([[0, 0], [7, 0]]), "labels", weightless, np.array([0, 1, 2]))
    assert_array_equal(part, [[0, 0], [7, 0]])  # rows of weight 0 make no layer


def test_a_table_in_folds_that_lack_a_layer(data):
    """The only row of the top layer is in one fold."""
    y = np.where(data.y == 2, 1, data.y)
    y[int(np.flatnonzero(y == 1)[0])] = 9
    table = np.array([[0, 0, 0], [1, 0, 0], [3, 2, 0]])
    found = DominationRankerCV(alphas=[5.0, 1.0], cv=3, margin=table)
    assert np.isfinite(found.fit(data.X, y, qid=data.qid).scores_).all()


@pytest.mark.parametrize(("n_nonzero", "words"), [(0, "leaves no weight"), (2, "try larger")])
def test_an_alpha_that_leaves_no_weight_need_not_be_larger(n_nonzero, words):
    counts = np.array([[n_nonzero, 3], [n_nonzero, 4]])
    scores = np.array([[0.5, 0.4], [0.6, 0.4]])
    tuning = Tuning({"alpha": np.array([2.0, 1.0])}, scores, facts={"n_nonzero": counts})
    assert words in tuning.edge


# ---- descents to the optimum, with few features and many -----------------------------------------


def few_features():
    data = make_ranking(n_queries=40, n_features=8, noise=1.0, random_state=3)
    X = np.column_stack([data.X, data.X[:, 0] + 0.3 * data.X[:, 1]])  # two that go together
    return Dataset.of(X, data.y, qid=data.qid)


def text():
    """Sparse rows of many features, few of which matter."""
    rng, w = np.random.default_rng(0), np.zeros(2000)
    X = sparse.random_array((300, 2000), density=0.01, rng=rng, format="csr")
    w[rng.choice(2000, 30, replace=False)] = rng.normal(size=30) * 3
    scores = X @ w + 0.3 * rng.normal(size=300)
    return Dataset.of(X, np.digitize(scores, [0.2, 0.8]), qid=np.arange(300) // 30)


def many_features():
    """More of them get a weight than the Hessian is written down for."""
    rng = np.random.default_rng(7)
    X = sparse.random_array((400, 900), density=0.05, rng=rng, format="csr")
    labels = np.digitize(X @ rng.normal(size=900) + 0.3 * rng.normal(size=400), [-0.5, 0.5])
    return Dataset.of(X, labels, qid=rng.integers(0, 8, 400))


PROBLEMS = {"few": few_features(), "many": many_features()}
every_data = pytest.mark.parametrize("name", PROBLEMS)


def solved(name, penalty, alpha, *, is_plain=False, tol=1e-9, max_iter=20_000):
    descent = Descent(make_problem(PROBLEMS[name], penalty=penalty, alpha=alpha, n_jobs=1))
    descent.is_plain = is_plain
    return descend(descent, tol=tol, max_iter=max_iter)


@every_data
@pytest.mark.parametrize(("penalty", "alpha"), [("l1", 1.0), ("l1", 0.3), ("l2", 0.5)])
def test_newton_steps_do_not_change_the_optimum(name, penalty, alpha):
    with_steps = solved(name, penalty, alpha)
    plain = solved(name, penalty, alpha, is_plain=True, tol=1e-7)
    assert with_steps.converged
    assert_allclose(with_steps.value, plain.value, rtol=1e-6)
    assert with_steps.value <= plain.value * (1 + 1e-9)
    assert with_steps.n_iter <= plain.n_iter
    objectives, gaps = (np.array(plain.history[key]) for key in ("objective", "gap"))
    assert (objectives - with_steps.value <= gaps + 1e-9 * plain.value).all()
    assert (np.diff(objectives) <= 1e-12 * plain.value).all()


@pytest.mark.parametrize("curvature", ["range", "paper"])
def test_other_curvatures_reach_the_same_optimum(curvature):
    """So small that steps by loose bounds arrive too."""
    data = make_ranking(n_queries=6, n_features=3, noise=1.0, random_state=1)
    centered = Dataset.of(data.X - data.X.mean(axis=0), data.y, qid=data.qid)
    problem = make_problem(centered, penalty="l2", alpha=1.0)
    best = descend(Descent(problem), tol=1e-9, max_iter=100)
    slow = descend(Descent(problem, curvature=curvature), tol=1e-6, max_iter=9999)
    assert slow.converged
    assert_allclose(slow.value, best.value, rtol=1e-6)
    assert slow.n_iter > best.n_iter


def test_without_a_penalty_the_descent_stops_when_sweeps_bring_little():
    result = train(PROBLEMS["few"], penalty="none", tol=1e-6, n_jobs=1)
    assert (result.converged, result.gap) == (True, np.inf)
    assert "lowered F by less" in result.message
    assert result.kkt_residual < 0.1


def test_threads_do_not_change_a_bit():
    rng = np.random.default_rng(0)
    X = sparse.random_array((30_000, 700), density=0.05, rng=rng, format="csr")
    assert X.data.nbytes > 4_000_000  # enough for threads to be used at all
    data = Dataset.of(X, rng.integers(0, 3, 30_000), qid=rng.integers(0, 50, 30_000))
    one, three = (train(data, alpha=60.0, tol=1e-3, n_jobs=n) for n in (1, 3))
    assert_array_equal(one.w, three.w)
    assert np.count_nonzero(one.w)


# ---- Newton's method ----------------------------------------------------------------------------


def ridge(rows, layering, alpha, **options):
    problem = DominationProblem(rows, layering, "l2", alpha, options.pop("scale", None))
    return minimize_ridge(problem, alpha=alpha, **options)


def test_all_that_is_reported_is_in_the_units_of_the_objective():
    data, seen = small(n_features=6), []
    layering = Layering.of(data)
    result = ridge(data.rows, layering, 0.25, callback=lambda entry: seen.append(entry))
    history = result.history
    for key in ("objective", "gap"):
        assert [entry[key] for entry in seen] == history[key]
    value, slope = PlainDomination(data.X, data.y, data.qid).loss(np.zeros(6))
    assert_allclose(history["objective"][0], value)
    assert_allclose(history["gradient_norm"][0], np.linalg.norm(slope), rtol=1e-6)
    assert history["n_hvp"][-1] == result.n_hvp
    assert 0 <= result.gap <= 1e-6 * result.value
    lower = np.array(history["objective"]) - history["gap"]
    assert (lower <= result.value - result.gap + 1e-9).all()
    again = ridge(data.rows, layering, 0.25, w0=result.w)
    assert again.n_iter == 0
    short = ridge(data.rows, layering, 1e-3, max_iter=1, tol=1e-12)
    assert short.stopped == "max_iter"
    assert "certified gap" in short.message


def test_a_sample_stands_for_the_whole():
    rng = np.random.default_rng(0)
    n = 20_000
    y, qid = (rng.random(n) < 0.05) + 0.0 + (rng.random(n) < 0.1), np.arange(n) // 4000
    data = Dataset.of(rng.normal(size=(n, 3)), y, qid=qid, sample_weight=rng.uniform(0.5, 1.5, n))
    table = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [3.0, 1.0, 0.0]])
    for margin in (table, 0.7):
        layering = Layering.of(data, margin=margin, query_weight=np.linspace(1.0, 2.0, 5))
        part = layering.sample(3000, seed=1)
        assert (part.queries.n_queries, part.queries.n_rows < 4000) == (5, True)
        z = rng.normal(size=n)
        estimate = DominationLoss(part).at(z[part.queries.order]).value
        assert_allclose(estimate, DominationLoss(layering).at(z).value, rtol=0.05)
        problem = DominationProblem(data.rows, layering, "l2", 0.5)
        some, whole = (one.objective().at(np.zeros(3)) for one in (problem.sample(3000), problem))
        assert_allclose(some.value, whole.value, rtol=1e-12)


def test_many_rows_begin_with_a_sample_and_end_at_the_same_optimum():
    rng = np.random.default_rng(2)
    n = 30_000
    x = rng.normal(size=(n, 4)).astype(np.float32)
    y = np.clip(np.round(x @ [1.0, -0.5, 0.2, 0.0] + rng.normal(size=n)), 0, 2)
    layering = Layering.of(Dataset.of(x, y, qid=np.arange(n) // 20))
    result, cold = (ridge(as_rows(x), layering, 1.0, tol=1e-9, w0=w0) for w0 in (None, np.zeros(4)))
    assert result.converged
    assert result.history["objective"][0] < cold.history["objective"][0]
    assert_allclose(result.w, cold.w, atol=1e-4)


# ---- negative sampling --------------------------------------------------------------------------


def test_sampled_negatives_are_as_many_as_asked_and_weigh_as_much():
    data = PROBLEMS["few"]
    whole = Layering.of(data)
    part = sample_negatives(whole, 0.3, np.random.default_rng(0))

    def levels_of(queries, q):
        rows = slice(queries.offsets[q], queries.offsets[q + 1])
        return queries.levels[rows], rows

    for q in np.flatnonzero(whole.queries.n_levels > 1):
        (kept, rows), (levels, _) = levels_of(part.queries, q), levels_of(whole.queries, q)
        n = int((levels == 0).sum())
        assert (kept == 0).sum() == np.ceil(0.3 * n)
        assert_array_equal(np.bincount(kept)[1:], np.bincount(levels)[1:])
        weight = part.row_weight[rows]
        assert_allclose(weight[kept == 0].sum(), n)
        assert_array_equal(weight[kept > 0], 1.0)
    # At w = 0 the loss is that of all rows: Σ log(1 + |D(i)|).
    full, some = (
        make_problem(data, penalty="l1", alpha=1.0, negative_sampling=share)
        for share in (None, 0.3)
    )
    zero = np.zeros(data.n_features)
    assert_allclose(some.at(zero).value, full.at(zero).value, rtol=1e-12)


# ---- paths of alpha ------------------------------------------------------------------------------

SHAPE = {"n_queries": 15, "rows_per_query": (4, 9), "n_features": 8, "n_levels": 3}
NOISY = make_ranking(noise=1.0, random_state=3, dtype="float64", **SHAPE)


def path(data=NOISY, n_alphas=8, tol=1e-7, **options):
    return domination_path(data.X, data.y, data.qid, n_alphas=n_alphas, tol=tol, **options)


def problem(data=NOISY, penalty="l1", alpha=1.0, **options):
    return make_problem(data, penalty=penalty, alpha=alpha, n_jobs=1, **options)


# ---- the law: certified, and equal to separate fits ---------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"penalty": "l2"},
        {"penalty": "l2", "solver": "coordinate", "scale": "query"},
        {"margin": "linear", "layers": "binary"},
        {"pooled": True, "scale": "standard", "eps": 0.1},
    ],
    ids=str,
)
def test_the_path_equals_separate_fits(options):
    found = path(**options)
    options.pop("eps", None)
    assert found.converged.all(), found.messages
    assert (found.gaps <= 1e-7 * found.objectives).all()
    assert len(found) == len(found.alphas) == 8
    for k, alpha in enumerate(found.alphas):
        one = DominationRanker(alpha=alpha, tol=1e-8, **options).fit(
            NOISY.X, NOISY.y, qid=NOISY.qid
        )
        assert_allclose(found.objectives[k], one.objective_, rtol=2e-7)
        assert_allclose(found.coefs[k], one.coef_, atol=5e-3 * max(1e-9, np.abs(one.coef_).max()))


@examples(15)
@given(seed=st.integers(0, 10_000), n_features=st.integers(1, 12))
def test_every_model_is_the_optimum_of_the_plain_problem(seed, n_features):
    data = small(seed, n_features=n_features)
    found = path(data, n_alphas=4, eps=0.05, tol=1e-6)
    plain = PlainDomination(data.X, data.y, data.qid)
    slope = plain.loss(np.zeros(n_features))[1]
    assert_allclose(found.alphas[0], np.abs(slope).max(), rtol=1e-9)
    for alpha, coef, value in zip(found.alphas, found.coefs, found.objectives, strict=True):
        assert_allclose(value, plain.objective(coef, "l1", alpha), rtol=1e-9)
        g = plain.loss(coef)[1]
        room = 0.03 * alpha
        assert (np.abs(g) <= alpha + room).all()
        assert (np.abs(g + alpha * np.sign(coef))[coef != 0] <= room).all()


@pytest.mark.parametrize("memory_limit", [None, "64GB"])
def test_a_store_has_the_path_of_its_rows(tmp_path, memory_limit):
    store = Store.write(tmp_path / "store", NOISY.X, NOISY.y, qid=NOISY.qid, chunk_bytes=1000)
    options = {"penalty": "l2", "n_alphas": 4, "tol": 1e-7}
    found = domination_path(store, memory_limit=memory_limit, **options)
    assert_allclose(found.objectives, path(**options).objectives, rtol=1e-6)


def test_the_attributes():
    found = path(scale="standard")
    assert found.coefs.shape == (8, 8)
    assert_array_equal(found.n_nonzero, (found.coefs != 0).sum(axis=1))
    assert (found.n_nonzero[0], found.n_iter[0]) == (0, 0)
    assert found.n_nonzero[-1] > found.n_nonzero[1] > 0
    assert_array_equal(found.sparse_coefs.toarray(), found.coefs)
    assert_allclose(found.norms[-1], np.linalg.norm(found.results[-1].w))
    assert not np.allclose(found.results[-1].w, found.coefs[-1])  # those of the scaled features
    assert (found.seconds >= 0).all()
    assert [h["alpha"][0] for h in found.history] == found.alphas.tolist()
    assert found.history[-1]["gap"][-1] == found.gaps[-1]
    assert repr(found).startswith("<DominationPathResult: 8 models, alpha ")


# ---- the grid -----------------------------------------------------------------------------------


def test_grids_begin_where_the_first_weight_moves_or_zero_is_nearly_optimal():
    grid = geometric_alphas(problem(), 7, None)
    assert_allclose(grid[-1] / grid[0], 1e-3)
    assert_allclose(grid[1:] / grid[:-1], grid[1] / grid[0])
    assert_allclose(geometric_alphas(problem(), 1, None), grid[:1])
    for share, moves in ((1.001, False), (0.98, True)):
        descent = Descent(problem(alpha=share * grid[0]))
        assert descend(descent, tol=1e-12, max_iter=99).w.any() == moves
    grid = geometric_alphas(problem(penalty="l2"), 5, None)
    assert_allclose(grid[-1] / grid[0], 1e-6)
    start = problem(penalty="l2", alpha=grid[0]).at(np.zeros(8))
    assert_allclose(start.gap, 0.01 * start.value)


WRONG = [
    ({"penalty": None}, "penalty must be 'l1', 'l2' or 'none', got None"),
    ({"alpha": -1.0}, r"alpha must be a finite number >= 0, got -1\.0"),
    ({"alpha": np.inf}, "alpha must be a finite number >= 0, got inf"),
    ({"alpha": "1"}, "alpha must be a finite number >= 0, got '1'"),
    ({"alpha": 0}, "alpha must be > 0 with penalty='l1', got 0; for no penalty use"),
    ({"solver": "bundle"}, "solver must be 'auto', 'coordinate' or 'newton', got 'bundle'"),
    ({"solver": "newton"}, "solver='newton' needs penalty='l2', got penalty='l1'"),
    (
        {"solver": "newton", "penalty": "l2", "feature_induction": 5},
        "cannot go with feature_induction=5; use solver='coordinate'",
    ),
    ({"feature_induction": 2.5}, "feature_induction must be an integer >= 1.*got 2.5"),
    ({"negative_sampling": 0.0}, "negative_sampling must be a share .* got 0.0"),
    ({"negative_sampling": 1.5}, "negative_sampling must be a share .* got 1.5"),
]
OF_PATHS = [
    ({"penalty": "none"}, "penalty='none' has no alpha to follow"),
    ({"n_alphas": True}, "n_alphas must be an integer >= 1, got True"),
    ({"max_features": 0}, "max_features must be an integer >= 1, or None, got 0"),
    ({"eps": 1.0}, "eps must be a number > 0 and < 1, or None, got 1.0"),
    ({"alphas": [1, -1]}, r"alphas\[1\] is -1"),
    ({"alphas": "all"}, "alphas must be 'auto' or numbers > 0"),
    ({"tol": 0}, "tol must be a finite number > 0, got 0"),
]
REFUSED = [
    *((partial(fit, **given), message) for given, message in WRONG),
    *((partial(path, **given), message) for given, message in OF_PATHS),
]


@pytest.mark.parametrize(("call", "message"), REFUSED)
def test_wrong_parameters_are_told(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("penalty", ["l1", "l2"])
def test_the_rounding_of_constant_features_is_no_slope(penalty):
    X = np.tile([1.0, 0.1, 1e8 + 0.3], (30, 1))
    y = np.random.default_rng(0).integers(0, 3, 30)
    with pytest.raises(ValueError, match="the loss has no slope at 0"):
        domination_path(X, y, np.repeat([0, 1, 2], 10), penalty=penalty)


def test_a_path_that_does_not_fit_is_refused(monkeypatch):
    monkeypatch.setattr("linrank.system.resources.available", lambda: 100)
    with pytest.raises(MemoryError, match="a path of 8 models of 8 features would take"):
        path()


# ---- early ends ---------------------------------------------------------------------------------


def test_the_path_ends_with_the_first_model_of_more_features():
    whole, part = path(n_alphas=20), path(n_alphas=20, max_features=1)
    n = len(part)
    assert 2 < n < 20
    assert part.n_nonzero[-1] > 1
    assert (part.n_nonzero[:-1] <= 1).all()
    assert_array_equal(part.coefs, whole.coefs[:n])


@pytest.mark.parametrize("penalty", ["l1", "l2"])
def test_the_callback_ends_the_path_with_what_is_done(penalty):
    whole = path(penalty=penalty)
    third = whole.alphas[3]
    part = path(penalty=penalty, callback=lambda state: state["alpha"] <= third)
    assert_array_equal(part.coefs, whole.coefs[:3])
    nothing = path(penalty=penalty, callback=lambda state: True)
    assert nothing.coefs.shape == (0, 8)


def test_too_few_sweeps_are_told():
    with pytest.warns(ConvergenceWarning, match=r"the gap of \d of 8 values of alpha"):
        found = path(max_iter=1, tol=1e-9)
    assert not found.converged[-1]
    assert found.n_iter.max() == 1


@pytest.mark.filterwarnings("ignore::linrank.ConvergenceWarning")
def test_a_tolerance_within_rounding_ends():
    # The certificates of some features and of all may be on two sides of it.
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 4)), rng.integers(0, 3, 30)
    calls = []
    options = {"tol": 1e-15, "n_alphas": 5, "max_iter": 30}
    options["callback"] = lambda state: calls.append(1) or len(calls) > 500
    assert len(domination_path(X, y, np.repeat([0, 1, 2], 10), **options)) == 5


# ---- the strong rule ----------------------------------------------------------------------------


def test_the_strong_rule_by_its_formula():
    made = problem(alpha=20.0)
    point = made.at(descend(Descent(made), tol=1e-10, max_iter=200).w)
    g = PlainDomination(NOISY.X, NOISY.y, NOISY.qid).loss(point.w)[1]
    expected = [r for r in range(8) if abs(g[r]) >= 0.8 * (2 * 15.0 - 20.0) or point.w[r] != 0]
    assert strong_features(point, 15.0).tolist() == expected
    assert 0 < len(expected) < 8


@pytest.mark.parametrize("kept", [None, 0, 1])
def test_the_rule_saves_derivatives_and_never_decides(monkeypatch, kept):
    """Features that a rule misses are found by the certificate: it costs time only."""
    sizes = []

    def rule(point, alpha):
        strong = strong_features(point, alpha)
        sizes.append(len(strong) if kept is None else kept)
        return strong if kept is None else np.flatnonzero(point.w)[:kept]

    data = text()
    monkeypatch.setattr(pathwise, "strong_features", lambda point, alpha: np.arange(2000))
    honest = path(data, tol=1e-6, eps=0.05)
    monkeypatch.setattr(pathwise, "strong_features", rule)
    found = path(data, tol=1e-6, eps=0.05)
    assert found.converged.all()
    assert_allclose(found.objectives, honest.objectives, rtol=2e-6)
    assert np.mean(sizes) < 0.6 * data.n_features


def test_certificates_that_differ_do_not_keep_it_going_round(monkeypatch):
    # As rounding may have it, the gap over all features is larger than that over the screened ones.
    tol, whole = 1e-4, Descent.point

    def point(self, among=None):
        made = whole(self, among)
        if among is None:
            vars(made)["gap"] = 3.0 * made.gap
        return made

    seen = []
    monkeypatch.setattr(Descent, "point", point)
    found = path(tol=tol, callback=lambda state: seen.append(1) or len(seen) > 1000)
    assert found.converged.all()
    assert (found.gaps <= tol * found.objectives).all()
