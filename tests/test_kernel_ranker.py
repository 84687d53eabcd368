"""KernelRankSVM: scikit-learn's checks and tools, what a fit records, what it refuses."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn
from numpy.testing import assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score

from kernel_twin import plain_kernel
from linrank import ConvergenceWarning, NoPairsError, QueryKFold
from papers import KernelRankSVM
from small_data import small

DATA = small(3, 4, n_levels=4)
OTHER = small(4, 4, n_levels=4)


def fit(kernel="rbf", **params):
    params = {"tol": 1e-8, "random_state": 0, "gamma": 0.3, **params}
    return KernelRankSVM(kernel, **params).fit(DATA.X, DATA.y, qid=DATA.qid)


# ---- scikit-learn -------------------------------------------------------------------------------


def test_the_tags():
    tags, pairwise = (KernelRankSVM(k).__sklearn_tags__() for k in ("rbf", "precomputed"))
    assert (tags.estimator_type, tags.input_tags.sparse, tags.input_tags.pairwise) == (
        "ranker",
        True,
        False,
    )
    assert (pairwise.input_tags.sparse, pairwise.input_tags.pairwise) == (False, True)


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


def test_searches_over_kernels():
    grid = {"C": [0.1, 10.0], "gamma": [0.1, "scale"], "kernel": ["rbf", "poly"]}
    search = GridSearchCV(KernelRankSVM(random_state=0), grid, cv=QueryKFold(3))
    with sklearn.config_context(enable_metadata_routing=True):
        search.fit(DATA.X, DATA.y, qid=DATA.qid)
    assert search.best_score_ > 0.6
    expected = clone(search.best_estimator_).fit(DATA.X, DATA.y, qid=DATA.qid)
    assert_array_equal(search.predict(OTHER.X), expected.predict(OTHER.X))


# ---- what a fit records, and what it writes -----------------------------------------------------


def test_too_few_iterations_warn():
    with pytest.warns(
        ConvergenceWarning, match="KernelRankSVM did not converge: .*max_iter"
    ) as told:
        ranker = fit(C=100.0, max_iter=1)
    assert told[0].filename == __file__
    assert not ranker.converged_


# ---- what is refused ----------------------------------------------------------------------------

X3, Y3 = [[0.0, 1.0], [1.0, 0.5], [2.0, 0.0]], [0, 1, 2]
SKEW = np.array([[1.0, 0.5, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
INDEFINITE = np.array([[1.0, 2.0, 0.0], [2.0, 1.0, 0.0], [0.0, 0.0, 1.0]])


@pytest.mark.parametrize(
    ("params", "X", "error", "message"),
    [
        ({"kernel": "gauss"}, X3, ValueError, "kernel must be one of 'rbf', .* got 'gauss'"),
        ({"kernel": 3}, X3, ValueError, "kernel must be one of 'rbf', .* got 3"),
        ({"gamma": 0}, X3, ValueError, "gamma must be a finite number > 0, got 0"),
        ({"gamma": -1.5}, X3, ValueError, "gamma must be a finite number > 0, got -1.5"),
        ({"gamma": "wide"}, X3, ValueError, "gamma must be 'scale' or 'auto', got 'wide'"),
        ({"kernel": "poly", "degree": 0}, X3, ValueError, "degree must be an integer >= 1, got 0"),
        ({"kernel": "poly", "coef0": np.nan}, X3, ValueError, "coef0 must be a finite number"),
        ({"tol": -1}, X3, ValueError, "tol must be a finite number > 0, got -1"),
        ({"loss": "logistic"}, X3, ValueError, "loss must be .* got 'logistic'"),
        ({"pairs": "some"}, X3, ValueError, "pairs must be .* got 'some'"),
        ({"pair_weighting": "no"}, X3, ValueError, "pair_weighting must be .* got 'no'"),
        ({"random_state": "x"}, X3, TypeError, "random_state must be an integer"),
        (
            {"approximation": "svd"},
            X3,
            ValueError,
            "approximation must be None or 'nystroem', got 'svd'",
        ),
        (
            {"approximation": "nystroem", "n_components": 0},
            X3,
            ValueError,
            "n_components must be an integer >= 1 or None, got 0",
        ),
        (
            {"kernel": "precomputed"},
            X3,
            ValueError,
            r"must be a square matrix, .* got 3 × 2; pass K\(X, X\)",
        ),
        ({"kernel": "precomputed"}, sparse.eye_array(3, format="csr"), TypeError, "dense matrix"),
        ({"kernel": "precomputed", "scale": "standard"}, np.eye(3), ValueError, "scale='none'"),
        ({"kernel": "precomputed"}, SKEW, ValueError, "symmetric"),
        ({"kernel": "precomputed"}, INDEFINITE, ValueError, "positive semidefinite.* -1"),
        (
            {"kernel": lambda A, B: INDEFINITE},
            X3,
            ValueError,
            "positive semidefinite.* -1",
        ),
        ({"kernel": lambda A, B: np.ones((2, 2))}, X3, ValueError, r"2 × 2|\(2, 2\)"),
        (
            {"kernel": "precomputed", "approximation": "nystroem"},
            np.eye(3),
            ValueError,
            "precomputed",
        ),
        ({"pairs": "closest", "n_closest": 4}, X3, ValueError, "4.*3"),
    ],
)
def test_what_fit_refuses(params, X, error, message):
    with pytest.raises(error, match=message):
        KernelRankSVM(**{"random_state": 0, **params}).fit(X, Y3)


def test_data_without_pairs_and_other_arguments():
    with pytest.raises(NoPairsError, match="same label"):
        KernelRankSVM().fit(X3, [1, 1, 1])
    with pytest.raises(NoPairsError, match="none of the 3 queries has two different labels"):
        KernelRankSVM().fit(X3, Y3, qid=[0, 1, 2])
    with pytest.raises(ValueError, match="query_weight must be >= 0, got -1"):
        KernelRankSVM().fit(X3, Y3, query_weight=[-1])
    with pytest.raises(ValueError, match="sample_weight weighs the pairs of y"):
        KernelRankSVM().fit_pairs(X3, [[0, 1]], sample_weight=[1, 1, 1])
    with pytest.raises(ValueError, match="y is part of the data set"):
        KernelRankSVM().fit(DATA, DATA.y)
    given = KernelRankSVM("precomputed", random_state=0).fit(np.eye(3), Y3)
    with pytest.raises(ValueError, match=r"2 features.*3"):
        given.predict([[1.0, 0.0]])
