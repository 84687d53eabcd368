"""Training in the space of a kernel: against linear rankers of its coordinates, and by laws."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import cross_val_score

from kernel_twin import KernelTwin, plain_kernel
from linrank import Dataset, QueryKFold
from linrank.data.rows import dot
from linrank.kernels.functions import Kernel
from linrank.kernels.landmarks import Landmarks, OnLandmarks
from linrank.kernels.matrices import StoredMatrix, kernel_matrix
from linrank.kernels.train import JointLoss, KernelRisk, as_function, train_kernel
from linrank.losses.base import SquaredHinge
from linrank.objective import Ridge, Sum
from linrank.pairs import choose_pairs
from linrank.ranksvm.train import train
from linrank.solvers.result import duality_gap
from papers import KernelRankSVM, RankSVM
from peaks import peak_of
from small_data import small

RBF = Kernel("rbf", gamma=0.5)


def problem(seed: int = 0, n: int = 60, *, qid: bool = True, ties: bool = True) -> Dataset:
    """Rows of a curved relation, in shuffled queries, with weights."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    y = np.sin(2 * X[:, 0]) + X[:, 1] ** 2 + 0.3 * rng.normal(size=n)
    return Dataset.of(
        X,
        np.round(2 * y) if ties else y,
        qid=rng.integers(0, 4, n) if qid else None,
        sample_weight=rng.uniform(0.5, 2.0, n),
    )


def explicit(data: Dataset, kernel: Kernel) -> Dataset:
    """The same problem with coordinates in the space of the kernel as features."""
    values, vectors = np.linalg.eigh(kernel.matrix(data.rows, data.rows))
    features = vectors * np.sqrt(np.maximum(values, 0.0))
    return Dataset.of(features, data.labels, qid=data.qid, sample_weight=data.weight)


@pytest.mark.parametrize("loss", ["squared_hinge", "hinge"])
@pytest.mark.parametrize("pairs", ["all", "adjacent", "closest", "pruned", "listed"])
def test_it_is_the_linear_ranker_of_the_coordinates(loss, pairs):
    """With listed preferences too, beside the pairs of the labels."""
    data = problem()
    options = {"C": 0.3, "loss": loss, "pairs": pairs, "seed": 3}
    if pairs == "listed":
        options |= {"pairs": "all", "preferences": [[3, 5], [5, 9], [40, 2]]}
    tol = 1e-5 if loss == "hinge" else 1e-8
    found = train_kernel(data, kernel=RBF, tol=tol, **options)
    twin_data = explicit(data, RBF)
    twin = train(twin_data, tol=tol, **options)
    assert found.converged
    assert found.n_pairs == data.queries.n_pairs + 3 or pairs != "listed"
    assert_allclose(found.value, twin.value, rtol=2 * tol)
    # ½‖w - w*‖² <= f - f*, and every row has the norm 1.
    distance = np.sqrt(2 * found.gap) + np.sqrt(2 * twin.gap)
    assert_allclose(found.scores, twin_data.X @ twin.w, atol=distance)


@pytest.mark.parametrize("loss", ["squared_hinge", "hinge"])
def test_beta_is_that_of_the_dual(loss):
    """0 for rows without a violated pair, of sum 0 in each query, and what the scores come from."""
    data, kernel = problem(2, n=150, ties=False), Kernel("rbf", gamma=0.2)
    found = train_kernel(data, kernel=kernel, C=100.0, loss=loss)
    assert_allclose(kernel.matrix(data.rows, data.rows) @ found.w, found.scores, rtol=1e-9)
    largest = np.abs(found.w).max()
    for q in np.unique(data.qid):
        assert abs(found.w[data.qid == q].sum()) <= 1e-10 * largest
    s = found.scores
    above = (data.labels[:, None] > data.labels) & (data.qid[:, None] == data.qid)
    violated, clear = (above & (1 - s[:, None] + s > least) for least in (0.02, -0.02))
    idle = ~(clear.any(0) | clear.any(1))
    assert idle.sum() >= 3
    assert (found.w[idle] == 0.0).all()
    assert (found.w[violated.any(0) ^ violated.any(1)] != 0.0).all()


def test_a_singular_kernel_is_no_obstacle():
    """Rows twice, and a linear kernel of fewer features than rows: scores are unique, β is not."""
    data = problem(3)
    twice = Dataset.of(
        np.vstack([data.X, data.X]), np.tile(data.labels, 2), qid=np.tile(data.qid, 2)
    )
    found = train_kernel(twice, kernel=RBF, C=0.1, tol=1e-9)
    assert found.converged
    assert_allclose(found.scores[:60], found.scores[60:], atol=1e-9)
    once = Dataset.of(data.X, data.labels, qid=data.qid)
    single = train_kernel(once, kernel=RBF, C=0.4, tol=1e-9)  # every pair occurs four times
    assert_allclose(found.scores[:60], single.scores, atol=1e-4)
    linear = train_kernel(data, kernel=Kernel("linear"), C=0.1, tol=1e-10)
    assert_allclose(data.X.T @ linear.w, train(data, C=0.1, tol=1e-10).w, atol=1e-5)


def test_no_gap_is_above_the_objective():
    rng = np.random.default_rng(0)
    data = Dataset.of(rng.normal(size=(30, 3)), rng.integers(0, 3, 30), qid=np.arange(30) // 6)
    found = train_kernel(data, kernel=Kernel("poly", gamma=0.36, degree=50))
    assert not found.converged
    assert found.gap <= found.value * (1 + 1e-4)  # the rounding of entries of 10⁸, and more
    assert found.value <= data.queries.n_pairs  # that of β = 0: rounding never makes it worse


def test_value_gradient_and_products_belong_together():
    """Derivatives in coefficients, by differences of f along functions."""
    data = problem(9)
    Q = StoredMatrix(RBF.matrix(data.rows, data.rows))
    loss = JointLoss([SquaredHinge(choose_pairs(data))], data.n_rows)
    objective = Sum(Ridge(), KernelRisk(Q, loss, 0.7))
    rng = np.random.default_rng(0)
    w, d = (as_function(0.1 * rng.normal(size=60), Q) for _ in range(2))
    point, t = objective.at(w), 1e-6
    ahead, behind = objective.at(w + t * d), objective.at(w - t * d)
    slope = dot(point.gradient, d)
    assert_allclose(slope, (ahead.value - behind.value) / (2 * t), rtol=1e-6)
    assert_allclose(point.slope(d, point.image(d)), slope, rtol=1e-12)
    product, _ = point.hvp(d)
    assert_allclose(product, (ahead.gradient - behind.gradient) / (2 * t), rtol=1e-4, atol=1e-4)
    assert_allclose(product[1], Q.product(product[0]), rtol=1e-12)
    # The gap at t = 1 is ½r'Qr; a better length of the dual point can only lower it.
    assert duality_gap(point) <= 0.5 * dot(point.gradient, point.gradient) * (1 + 1e-12)


def test_landmarks_reproduce_their_columns():
    X = np.random.default_rng(1).normal(size=(200, 2))
    Q = kernel_matrix(Kernel("rbf", gamma=0.3), Dataset.of(X, np.arange(200.0)).rows)
    few = Landmarks.of(Q, 30, seed=5)
    G, rows = few.coordinates, few.rows
    assert len(np.unique(rows)) == len(rows) <= 30
    assert_allclose(G.T @ G[:, rows], Q.columns(rows), atol=1e-9)
    assert_allclose(few.back @ np.tril(G[:, rows].T).T, np.eye(len(rows)), atol=1e-6)
    more = Landmarks.of(Q, 60, seed=5).coordinates
    assert np.trace(Q.values - more.T @ more) < 0.3 * np.trace(Q.values - G.T @ G)
    assert (Landmarks.of(Q, 30, seed=5).rows == rows).all()


def at_zero(seed):
    """Q of 40 rows, and the objective at no function."""
    data = problem(seed, n=40)
    Q = kernel_matrix(RBF, data.rows)
    loss = JointLoss([SquaredHinge(choose_pairs(data))], 40)
    return Q, Sum(Ridge(), KernelRisk(Q, loss, 0.5)).at(np.zeros((2, 40)))


def test_on_all_rows_the_preconditioner_is_the_inverse():
    Q, point = at_zero(10)
    solve = OnLandmarks(Landmarks.of(Q, 40, least=1e-14), patience=3).at(point, 0)
    r = as_function(np.random.default_rng(3).normal(size=40), Q)
    y = solve(r)
    back, _ = point.hvp(y)
    assert_allclose(back[1], r[1], atol=1e-6 * np.abs(r[1]).max())
    assert_allclose(y[1], Q.product(y[0]), atol=1e-8)


def test_the_hessian_on_landmarks_is_that_of_any_number_of_threads():
    Q, point = at_zero(12)
    few = Landmarks.of(Q, 7)
    one, many = (OnLandmarks(few, 3, n_threads=n).matrix(point, 0) for n in (1, 3))
    np.testing.assert_array_equal(one, many)
    G, part = few.coordinates, point.parts[1]
    curvature = np.array([part.risk.loss.curvature(part.loss, unit) for unit in np.eye(40)])
    assert_allclose(one, np.eye(7) + 0.5 * G @ curvature @ G.T, rtol=1e-10, atol=1e-10)


def test_coefficients_do_not_grow_where_the_kernel_sees_none_of_it():
    """Ten dimensions, 120 rows, hundreds of products: most coefficients are invisible to Q."""
    data = problem(12, n=120)
    kernel = Kernel("poly", gamma=0.5, degree=2, coef0=1.0)
    seen = []

    def note(state):
        seen.append(np.abs(state["w"]).max())

    found = train_kernel(data, kernel=kernel, C=0.3, loss="hinge", tol=1e-6, callback=note)
    assert found.converged
    weight = np.abs(data.weight).max() ** 2
    assert max(seen) <= 2 * 0.3 * weight * 120  # no slope of the loss is larger than C·Σω
    assert found.n_hvp > 150


def test_a_memory_limit_holds_for_all_that_training_takes():
    """Fewer landmarks and tiles of Q; the peak is that of NumPy's arrays, rows not counted."""
    data = problem(13, n=2000, ties=False)
    limit = 12_000_000  # Q alone takes 32 MB, 1,500 landmarks 100 MB
    train_kernel(data, kernel=RBF, C=1e-3, n_jobs=1, max_iter=1)  # modules are loaded
    fits = []
    within = {"memory_limit": limit, "n_jobs": 1}
    peak = peak_of(lambda: fits.append(train_kernel(data, kernel=RBF, C=1e-3, **within)))
    found = fits[0]
    assert found.converged
    assert found.n_landmarks < 200
    assert peak <= limit
    free = train_kernel(data, kernel=RBF, C=1e-3)
    assert abs(free.value - found.value) <= free.gap + found.gap


@pytest.mark.parametrize("seed", [14, 18, 38])
def test_equal_rows_are_at_their_optimum_from_the_start(seed):
    # No pair can be told apart: β = 0 is optimal, and the rounding of r'Qr no reason to doubt it.
    rng = np.random.default_rng(seed)
    rows, labels = np.full((3, 1), rng.normal()), rng.normal(size=3)
    data = Dataset.of(rows, labels, sample_weight=rng.uniform(size=3))
    found = train_kernel(data, kernel=Kernel("linear"), C=rng.uniform())
    assert found.converged, found.message
    assert_allclose(found.scores, 0.0, atol=1e-12)


@pytest.mark.parametrize("seed", range(12))
def test_what_is_called_converged_has_the_gap_that_was_asked_for(seed):
    # Entries of Q of 10¹⁸: the values that iterates carry along are far from Qβ.
    X = 1e3 * np.random.default_rng(seed).normal(size=(2, 8))
    kernel = Kernel("poly", gamma=0.125, degree=3)
    found = train_kernel(Dataset.of(X, [0.0, 1.0]), kernel=kernel, C=1e-6, tol=1e-5)
    assert found.gap <= 1.3e-5 * found.value or not found.converged


def test_a_memory_limit_that_is_no_number_is_refused_for_many_rows_too():
    X = np.random.default_rng(0).normal(size=(1200, 2))
    with pytest.raises(ValueError, match=r"memory_limit must be .* got '1 lot'"):
        train_kernel(Dataset.of(X, X[:, 0]), kernel=RBF, memory_limit="1 lot")


@pytest.mark.parametrize("loss", ["squared_hinge", "hinge"])
def test_a_C_beyond_double_precision_is_refused(loss):
    """A norm that is no number must not pass for 0, which would be a certificate."""
    with pytest.raises(ValueError, match="too large for double precision"):
        train_kernel(problem(14, n=30), kernel=RBF, C=1e300, loss=loss)


# ---- the estimator ------------------------------------------------------------------------------


DATA = small(3, 4, n_levels=4)
OTHER = small(4, 4, n_levels=4)
KERNELS = {"rbf": {"gamma": 0.3}, "poly": {"gamma": 0.5, "degree": 2, "coef0": 1.0}, "linear": {}}
TIGHT = 1e-8  # a tolerance for comparisons


def fit(kernel="rbf", X=DATA.X, **params):
    params = {"tol": TIGHT, "random_state": 0, "gamma": 0.3, **params}
    return KernelRankSVM(kernel, **params).fit(X, DATA.y, qid=DATA.qid)


@pytest.mark.parametrize("loss", ["squared_hinge", "hinge"])
@pytest.mark.parametrize("C", [0.01, 1.0, 30.0])
@pytest.mark.parametrize("kernel", KERNELS)
def test_the_optimum_is_that_of_all_pairs(kernel, C, loss):
    tol = TIGHT if loss == "squared_hinge" else 1e-5
    if (kernel, C) == ("poly", 30.0):
        tol = max(tol, 1e-6)  # Q of 10³, and coefficients of as much: what rounding leaves
    ranker = fit(kernel, C=C, loss=loss, tol=tol, **{**KERNELS[kernel]})
    Q = plain_kernel(DATA.X, DATA.X, kernel, **KERNELS[kernel])
    twin = KernelTwin.of(DATA, Q)
    least, scores = twin.optimum(C, loss)
    assert ranker.converged_
    assert ranker.n_pairs_ == len(twin.pairs.winner)
    assert least * (1 - 1e-8) <= ranker.objective_ <= least * (1 + 2 * tol) + 1e-9
    beta, found = np.zeros(DATA.n_rows), ranker.predict(DATA.X)
    beta[ranker.support_] = ranker.dual_coef_
    assert ranker.n_support_ == len(ranker.support_) == np.count_nonzero(beta)
    assert_array_equal(ranker.support_vectors_, DATA.X[ranker.support_])
    assert_allclose(found, Q @ beta, rtol=1e-8, atol=1e-9)
    assert_allclose(twin.objective(found, beta, C, loss), ranker.objective_, rtol=1e-7)
    if loss == "squared_hinge":  # β = 2C A'ξ
        i, j = twin.pairs.winner, twin.pairs.loser
        alpha = 2 * C * np.maximum(0.0, 1.0 - found[i] + found[j])
        dual = np.bincount(i, alpha, DATA.n_rows) - np.bincount(j, alpha, DATA.n_rows)
        assert_allclose(beta, dual, atol=1e-3 * np.abs(dual).max())
    # ½‖w - w*‖² <= F - F*, and a score is w times a row of length √Q_ii.
    assert (np.abs(found - scores) <= np.sqrt(2 * ranker.duality_gap_ * np.diag(Q)) + 1e-4).all()
    expected = plain_kernel(OTHER.X, DATA.X, kernel, **KERNELS[kernel]) @ beta
    assert_allclose(ranker.decision_function(OTHER.X), expected, atol=1e-8)


@pytest.mark.parametrize("kernel", KERNELS)
def test_kernels_by_name_by_matrix_and_by_function(kernel):
    params = KERNELS[kernel]

    def function(A, B):
        return plain_kernel(A, B, kernel, **params)

    named = fit(kernel, **params)
    given = fit("precomputed", X=function(DATA.X, DATA.X))
    called = fit(function)
    expected = named.predict(OTHER.X)
    assert_allclose(given.predict(function(OTHER.X, DATA.X)), expected, atol=1e-6)
    assert_allclose(called.predict(OTHER.X), expected, atol=1e-6)
    assert given.n_features_in_ == DATA.n_rows
    assert given.model_.rows is None  # numbers only
    with pytest.raises(AttributeError, match="a precomputed kernel has no rows"):
        given.support_vectors_  # noqa: B018


def test_a_precomputed_matrix_is_split_by_rows_and_columns():
    Q = plain_kernel(DATA.X, DATA.X, "rbf", gamma=0.3)
    options = {"cv": QueryKFold(3), "params": {"qid": DATA.qid}, "error_score": "raise"}
    ranker = KernelRankSVM(gamma=0.3, tol=1e-9, random_state=0)
    with sklearn.config_context(enable_metadata_routing=True):
        named = cross_val_score(ranker, DATA.X, DATA.y, **options)
        given = cross_val_score(
            clone(ranker).set_params(kernel="precomputed"), Q, DATA.y, **options
        )
    assert_array_equal(named, given)
    assert (named > 0.5).all()


# ---- what is refused ----------------------------------------------------------------------------

X3, Y3 = [[0.0, 1.0], [1.0, 0.5], [2.0, 0.0]], [0, 1, 2]
GIVEN = {"kernel": "precomputed"}
SKEW = np.array([[1.0, 0.5, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
INDEFINITE = np.array([[1.0, 2.0, 0.0], [2.0, 1.0, 0.0], [0.0, 0.0, 1.0]])


@pytest.mark.parametrize(
    ("params", "X", "error", "message"),
    [
        ({"random_state": "x"}, X3, TypeError, "random_state must be an integer"),
        ({"kernel": "precomputed"}, X3, ValueError, r"square matrix, .* got 3 × 2; pass K\(X, X\)"),
        ({"kernel": "precomputed"}, sparse.eye_array(3, format="csr"), TypeError, "dense matrix"),
        ({"kernel": "precomputed", "scale": "standard"}, np.eye(3), ValueError, "scale='none'"),
        ({"kernel": "precomputed"}, SKEW, ValueError, "symmetric"),
        ({"kernel": "precomputed"}, INDEFINITE, ValueError, "positive semidefinite.* -1"),
        ({"kernel": lambda A, B: INDEFINITE}, X3, ValueError, "positive semidefinite.* -1"),
        ({"approximation": "nystroem", **GIVEN}, np.eye(3), ValueError, "precomputed"),
        ({"pairs": "closest", "n_closest": 4}, X3, ValueError, "4.*3"),
    ],
)
def test_what_fit_refuses(params, X, error, message):
    with pytest.raises(error, match=message):
        KernelRankSVM(**{"random_state": 0, **params}).fit(X, Y3)


def test_pairs_that_are_listed_are_those_of_a_linear_ranker():
    pairs = np.random.default_rng(1).permuted(np.tile(np.arange(DATA.n_rows), (60, 1)), axis=1)
    given = {"pair_weight": np.linspace(0.0, 2.0, 60)}
    rankers = (kind(C=2.0, tol=1e-10) for kind in (RankSVM, partial(KernelRankSVM, "linear")))
    one, two = (ranker.fit_pairs(DATA.X, pairs[:, :2], **given) for ranker in rankers)
    assert_allclose(two.objective_, one.objective_, rtol=1e-9)
    assert_allclose(two.predict(OTHER.X), one.predict(OTHER.X), atol=1e-4)


def test_a_matrix_of_another_width_is_refused():
    given = KernelRankSVM("precomputed", random_state=0).fit(np.eye(3), Y3)
    with pytest.raises(ValueError, match=r"2 features.*3"):
        given.predict([[1.0, 0.0]])
