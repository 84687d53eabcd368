"""The order of any rows by any weights: all pairs, one by one, against the exact scores."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from rounding import bounds, first_inversion, underflow
from serving import PRECISION, SCORERS, columns_of
from test_order import exported

from hypothesis_profiles import examples
from linrank import LinearModel

exponents = st.integers(-45, 38)
digits = st.floats(1.0, 9.0) | st.floats(-9.0, -1.0) | st.just(0.0)
# Values that single precision holds, so that every engine reads them as they are.
values = st.floats(-1e6, 1e6, width=32) | st.sampled_from([0.0, 1.0, 1e-20, 1e15])
# Those that cost nothing to start; all others see 10^5 rows at a time.
TWINS = [target for target in SCORERS if target not in ("onnx", "sql")]


@st.composite
def problems(draw):
    """Weights within a dozen orders of each other, anywhere in single precision; a few rows."""
    d = draw(st.integers(1, 4))
    middle = draw(exponents)
    spread = draw(st.lists(st.integers(-6, 6), min_size=d, max_size=d))
    signed = draw(st.lists(digits, min_size=d, max_size=d).filter(any))
    coef = np.array([w * 10.0 ** (middle + s) for w, s in zip(signed, spread, strict=True)])
    rows = draw(st.lists(st.lists(values, min_size=d, max_size=d), min_size=2, max_size=12))
    return coef, np.array(rows, dtype=np.float32)


def all_pairs_kept(scores, bound, computed) -> bool:
    surely = (scores - bound)[:, None] > (scores + bound)[None, :]
    return bool((computed[:, None] > computed[None, :])[surely].all())


@examples(40)
@given(problems())
def test_every_target_keeps_the_order_of_every_pair(problem):
    coef, rows = problem
    model = LinearModel(coef, [f"x{j}" for j in range(coef.size)])
    terms = coef * rows.astype(np.float64)
    for target in TWINS:
        artefact = exported(model, target)
        computed = SCORERS[target](artefact, columns_of(model, rows)).astype(np.float64)
        assert np.isfinite(computed).all()
        lost = underflow(terms.sum(axis=1), computed, coef.size, PRECISION[target])
        bound = bounds(terms, PRECISION[target]) + lost
        assert all_pairs_kept(terms.sum(axis=1), bound, computed)


@examples(40)
@given(
    st.lists(
        st.tuples(st.integers(0, 6), st.integers(0, 2), st.integers(0, 6)), min_size=1, max_size=9
    )
)
def test_the_check_by_sorting_is_the_check_of_all_pairs(rows):
    scores, bound, computed = np.array(rows, dtype=np.float64).T
    inversion = first_inversion(scores, bound / 2, computed)
    assert (inversion is None) == all_pairs_kept(scores, bound / 2, computed)
    if inversion is not None:
        i, k = inversion
        assert scores[i] - bound[i] / 2 > scores[k] + bound[k] / 2
        assert computed[i] <= computed[k]
