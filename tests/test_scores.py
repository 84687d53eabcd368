"""Products with dense rows: right, and the same bits for a row in whatever company."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from linrank import _core
from linrank.data.rows import DenseRows


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_row_has_the_same_bits_wherever_it_stands(dtype):
    """The kernels take four rows at a time, and rows of 8 to 23 numbers without a loop."""
    rng = np.random.default_rng(0)
    for n_columns in [*range(1, 42), 136]:
        X = rng.standard_normal((23, n_columns)).astype(dtype)
        w, order = rng.standard_normal(n_columns), rng.permutation(23)
        scores = _core.scores(DenseRows(X).core, w, None, 1)
        exact = [
            math.fsum(x * v for x, v in zip(row, w.tolist(), strict=True)) for row in X.tolist()
        ]
        bound = 1e-15 * n_columns * (abs(X) @ abs(w))
        assert (abs(scores - exact) <= bound).all(), n_columns
        alone = [_core.scores(DenseRows(X[i : i + 1]).core, w, None, 1)[0] for i in range(23)]
        assert_array_equal(scores, alone, str(n_columns))
        assert_array_equal(_core.scores(DenseRows(X).core, w, order, 1), scores[order])
        wide = np.pad(X, ((0, 0), (0, 3)))[:, :n_columns]  # rows that lie apart
        assert_array_equal(_core.scores(DenseRows(wide).core, w, None, 1), scores)


def test_scores_do_not_depend_on_threads_or_on_where_they_are_kept():
    """Those of more than 32 MB are in pages of their own, others from the allocator."""
    n_rows = (32 << 20) // 8 + 5
    X = np.random.default_rng(1).random((n_rows, 1), dtype=np.float32)
    w = np.array([3.0])
    scores = _core.scores(DenseRows(X).core, w, None, 2)
    assert_allclose(scores, 3.0 * X[:, 0].astype(np.float64), rtol=1e-15)
    half = n_rows // 2
    assert_array_equal(_core.scores(DenseRows(X[:half]).core, w, None, 1), scores[:half])
