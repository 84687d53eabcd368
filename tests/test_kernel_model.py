"""KernelModel: scores by the formula, support rows only, a file that gives the same model back."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from any_models import assert_same
from kernel_twin import plain_kernel
from linrank import Dataset, KernelModel, WeightsDisplay, dual_matrix, load_model
from linrank.data.rows import CsrRows, DenseRows
from linrank.data.scaling import Scaling
from linrank.kernels.functions import Kernel
from peaks import peak_of

RNG = np.random.default_rng(7)
X = RNG.normal(size=(40, 5))
X[X < -0.8] = 0.0
COEF = RNG.normal(size=40)
TEST = RNG.normal(size=(23, 5))
TEST[TEST > 1] = 0.0
QID = np.arange(23) % 4
KERNELS = [
    Kernel("rbf", 0.3),
    Kernel("poly", 0.5, 2, 1.0),
    Kernel("sigmoid", 0.1, coef0=-0.5),
    Kernel("linear"),
]


def model_of(kernel=KERNELS[0], **options):
    return KernelModel(X, COEF, kernel, **options)


def scores_by_definition(model, rows):
    """``Σ_i coef_i k(x_i, x)`` of rows that are scaled already."""
    support = model.rows.to_user()
    support = support.toarray() if sparse.issparse(support) else support
    kernel = model.kernel
    return plain_kernel(rows, support, kernel.name, **kernel.parameters) @ model.coef


# ---- scores -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.name)
@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("make_test", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_scores_equal_the_definition(kernel, make, make_test, dtype):
    model = KernelModel(make(X.astype(dtype)), COEF, kernel)
    found = model.predict(make_test(TEST), n_jobs=2)
    assert_allclose(found, scores_by_definition(model, TEST), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("kind", ["standard", "minmax", "query"])
@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
def test_raw_rows_are_scaled_before_the_kernel(kind, make, monkeypatch):
    factors = None if kind == "query" else np.array([1.0, 0.0, 2.0, 0.5, 3.0])
    scaling = Scaling(kind, factors)
    model = model_of(scaling=scaling)
    if factors is not None:
        scaled = TEST * factors
    else:
        width = np.array([np.ptp(TEST[q == QID], axis=0) for q in QID])
        scaled = np.divide(TEST, width, out=np.zeros_like(TEST), where=width > 0)
    expected = scores_by_definition(model, scaled)
    assert_allclose(model.predict(make(TEST), qid=QID), expected, rtol=1e-7)
    monkeypatch.setattr("linrank.models.kernel._SCALED_BYTES", 1)
    monkeypatch.setattr("linrank.models.kernel._TILE", 3)  # three rows a block
    assert_allclose(model.predict(make(TEST), qid=QID), expected, rtol=1e-7)
    data = Dataset.of(make(TEST), np.zeros(23), qid=QID)
    assert_allclose(model.predict(data), expected, rtol=1e-7)


def test_a_precomputed_kernel_takes_the_matrix_against_all_training_rows():
    model = KernelModel(None, [2.0, -1.0], Kernel("precomputed"), [4, 1], 5)
    K = RNG.normal(size=(7, 5))
    for matrix in (K, sparse.csr_array(K), pd.DataFrame(K)):
        assert_allclose(model.predict(matrix), 2 * K[:, 4] - K[:, 1])
    assert model.n_features == 5
    with pytest.raises(ValueError, match=r"the matrix has 2 columns, .* trained on 5 rows"):
        model.predict(K[:, [4, 1]])


def test_a_callable_kernel_scores_but_cannot_be_saved(tmp_path):
    def laplace(A, B):
        return np.exp(-np.abs(A[:, np.newaxis] - B[np.newaxis]).sum(axis=2))

    model = model_of(Kernel("callable", function=laplace))
    expected = laplace(TEST, X) @ COEF
    assert_allclose(model.predict(TEST), expected)
    with pytest.raises(ValueError, match=r"Python function cannot be saved, .*precomputed"):
        model.save(tmp_path / "m.json")
    assert list(tmp_path.iterdir()) == []


def test_a_model_without_support_rows_scores_0():
    model = KernelModel(np.empty((0, 5), np.float32), [], Kernel("rbf"))
    assert_array_equal(model.predict(TEST), np.zeros(23))


def test_scoring_takes_little_memory_beside_the_rows():
    """Neither K(X, rows), here 120 MB, nor a scaled copy of the rows is made."""
    rows = RNG.normal(size=(30_000, 60))
    model = KernelModel(
        rows[:500], np.ones(500), Kernel("rbf", 0.1), scaling=Scaling("minmax", np.ones(60))
    )
    assert peak_of(lambda: model.predict(rows)) < 60e6


def test_raw_rows_must_fit_the_model():
    with pytest.raises(ValueError, match="the rows have 3 features, the model 5"):
        model_of().predict(TEST[:, :3])
    with pytest.raises(ValueError, match="needs qid"):
        model_of(scaling=Scaling("query")).predict(TEST)


def test_what_needs_weights_of_features_says_so():
    model = model_of()
    with pytest.raises(TypeError, match="no sum over features"):
        model.explain(TEST)
    with pytest.raises(TypeError, match=r"a KernelModel has no weights .* dual_matrix takes"):
        dual_matrix(model, TEST, np.arange(23))
    with pytest.raises(TypeError, match="KernelModel has no weights of features"):
        WeightsDisplay.from_estimator(model)


# ---- the model of a training run ----------------------------------------------------------------


def run_of(w, **others):
    """As a training returns it."""
    return SimpleNamespace(w=w, **{"summary": {"objective": 1.5}, **others})


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
def test_only_rows_with_a_coefficient_are_kept(make):
    beta = np.where(np.arange(40) % 3 == 0, COEF, 0.0)
    beta[3] = 5e-324
    data = Dataset.of(make(X.astype(np.float32)), np.arange(40) % 5, qid=np.arange(40) % 2)
    scaling = Scaling("standard", np.ones(5))
    model = KernelModel.of(run_of(beta), data, scaling, KERNELS[0], C=0.5, pairs="all")
    assert_array_equal(model.support, np.flatnonzero(beta))
    assert_array_equal(model.coef, beta[model.support])
    assert model.n_support == 14
    assert model.n_train == 40
    assert model.rows.dtype == np.float32
    assert_allclose(model.predict(TEST), KernelModel(data.rows, beta, KERNELS[0]).predict(TEST))
    assert model.training == {
        **{"C": 0.5, "pairs": "all", "objective": 1.5},
        **{"n_rows": 40, "n_queries": 2, "n_pairs": data.queries.n_pairs},
    }


def test_an_approximation_says_what_it_is_a_sum_of():
    data = Dataset.of(X, np.arange(40))
    run = run_of(np.ones(3), rows=DenseRows(X[:2]), coef=[1.0, 0.0], support=[1, 0])
    model = KernelModel.of(run, data, Scaling(), KERNELS[0])
    assert (model.kernel.name, model.n_support, model.n_train) == ("rbf", 2, 40)


def test_pairs_are_counted_where_the_training_does_not_say():
    data = Dataset.of(X, np.arange(40))
    settings = [{}, {"pairs": "closest", "n_closest": "auto"}, {"pairs": "pruned", "n_random": 5}]
    told = [
        KernelModel.of(run_of(COEF), data, Scaling(), KERNELS[0], **options).training
        for options in settings
    ]
    assert [training["n_pairs"] for training in told] == [780, 39, 44]
    assert [training.get("n_closest") for training in told] == [None, 39, 39]
    run = run_of(COEF, summary={"n_pairs": 800})  # with twenty listed ones
    assert KernelModel.of(run, data, Scaling(), KERNELS[0]).training["n_pairs"] == 800


# ---- the file -----------------------------------------------------------------------------------


def test_strided_and_wide_rows_are_written_as_what_they_hold(tmp_path):
    rows = np.asfortranarray(X)[:, ::-1]
    wide = CsrRows(np.ones(1), np.array([2**29]), np.array([0, 1]), 2**30)
    for model in (KernelModel(rows, COEF, KERNELS[0]), KernelModel(wide, [1.0], KERNELS[3])):
        model.save(tmp_path / "m.json")
        assert_same(load_model(tmp_path / "m.json"), model)


def test_the_file_is_compact():
    """4/3 of the bytes: 4 for each float32 feature, 8 for the coefficient, 4 for the number."""
    rows = RNG.normal(size=(3000, 46)).astype(np.float32)
    model = KernelModel(rows, np.ones(3000), KERNELS[0], np.arange(3000), 3000)
    assert 0 < len(model.to_json()) - 3000 * (46 * 4 + 8 + 4) * 4 / 3 < 800


# ---- what a model is ----------------------------------------------------------------------------

# What a file can hold too is in test_bad_models.py.
BAD = [
    ({"kernel": Kernel("laplace")}, "name of a kernel must be .* 'laplace'"),
    ({"kernel": Kernel("rbf", 0.0)}, "gamma must be a finite number > 0, got 0.0"),
    ({"kernel": Kernel("poly", degree=0)}, "degree must be an integer >= 1, got 0"),
    ({"kernel": Kernel("poly", coef0=np.inf)}, "coef0 must be a finite number"),
    ({"kernel": Kernel("callable")}, "'callable' and its function do not go"),
    ({"rows": np.ones((3, 2))}, "3 support rows for 2 coefficients"),
    ({"rows": [[np.nan], [1.0]]}, "NaN at row 0, column 0"),
    ({"rows": np.ones((0, 0)), "coef": []}, "have no features"),
    ({"support": [1]}, r"support must be 2 row numbers, .* shape \(1,\)"),
    ({"support": [1.0, 2.0]}, "got float64 of shape"),
    ({"n_train": 0}, "n_train must be an integer >= 1, got 0"),
]


@pytest.mark.parametrize(("changes", "message"), BAD)
def test_a_wrong_model_is_an_error(changes, message):
    good = {"rows": [[1.0], [2.0]], "coef": [1.0, -1.0], "kernel": KERNELS[0]}
    KernelModel(**good)
    with pytest.raises(ValueError, match=message):
        KernelModel(**{**good, **changes})
