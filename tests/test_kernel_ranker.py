"""KernelRankSVM: scikit-learn's checks and tools, what a fit records, what it refuses."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn
from numpy.testing import assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import cross_val_score

from kernel_twin import plain_kernel
from linrank import ConvergenceWarning, QueryKFold
from papers import KernelRankSVM
from small_data import small

DATA = small(3, 4, n_levels=4)
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


# ---- what a fit records, and what it writes -----------------------------------------------------


def test_too_few_iterations_warn():
    ranker = KernelRankSVM(gamma=0.3, C=100.0, max_iter=1, random_state=0)
    with pytest.warns(ConvergenceWarning, match="did not converge: .*max_iter") as told:
        ranker.fit(DATA.X, DATA.y, qid=DATA.qid)
    assert told[0].filename == __file__


# ---- what is refused ----------------------------------------------------------------------------

X3, Y3 = [[0.0, 1.0], [1.0, 0.5], [2.0, 0.0]], [0, 1, 2]
GIVEN = {"kernel": "precomputed"}
SKEW = np.array([[1.0, 0.5, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
INDEFINITE = np.array([[1.0, 2.0, 0.0], [2.0, 1.0, 0.0], [0.0, 0.0, 1.0]])


@pytest.mark.parametrize(
    ("params", "X", "error", "message"),
    [
        ({"kernel": 3}, X3, ValueError, "kernel must be one of 'rbf', .* got 3"),
        ({"loss": "logistic"}, X3, ValueError, "loss must be .* got 'logistic'"),
        ({"random_state": "x"}, X3, TypeError, "random_state must be an integer"),
        ({"approximation": "svd"}, X3, ValueError, "must be None or 'nystroem', got 'svd'"),
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


def test_arguments_that_do_not_go_together():
    with pytest.raises(ValueError, match="sample_weight weighs the pairs of y"):
        KernelRankSVM().fit_pairs(X3, [[0, 1]], sample_weight=[1, 1, 1])
    with pytest.raises(ValueError, match="y is part of the data set"):
        KernelRankSVM().fit(DATA, DATA.y)
    given = KernelRankSVM("precomputed", random_state=0).fit(np.eye(3), Y3)
    with pytest.raises(ValueError, match=r"2 features.*3"):
        given.predict([[1.0, 0.0]])
