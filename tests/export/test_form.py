"""Form: names and weights that an engine can hold, in the order of the model."""

from __future__ import annotations

import numpy as np
import pytest
from exported_models import statistics
from hypothesis import given
from hypothesis import strategies as st

from hypothesis_profiles import examples
from linrank import LinearModel
from linrank.data.missing import Missing
from linrank.export.form import Form, power_of_two, singles, text

NAMES = ["bm25", "age", "clicks"]


def test_features_that_count_keep_their_order_and_say_what_a_missing_value_adds():
    form = Form.of(LinearModel([0.5, 0.0, -2.0], NAMES))
    assert (form.names, form.columns.tolist()) == (("bm25", "clicks"), [0, 2])
    assert (form.weights.tolist(), form.factor, form.warnings) == ([0.5, -2.0], 1.0, ())
    mean = Missing("mean", values=np.array([2.0, 3.0, 4.0]))
    form = Form.of(LinearModel([0.5, 0.0, -2.0], NAMES, missing=mean))
    assert form.fill.tolist() == form.defaults.tolist() == [2.0, 4.0]
    indicator = Missing("indicator", weights=np.array([1.5, 0.25, 0.0]))
    form = Form.of(LinearModel([0.5, 0.0, -2.0], NAMES, missing=indicator))
    assert form.names == ("bm25", "age", "clicks")  # the second counts when it is missing
    assert form.contributions.tolist() == [1.5, 0.25, 0.0]
    np.testing.assert_array_equal(form.defaults, [3.0, np.nan, 0.0])


# ---- magnitudes ---------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1e-300, 1e-45, 1e-30, 1e30, 1e45, 1e300])
def test_weights_beyond_float32_are_rescaled_by_a_power_of_two(size):
    coef = np.array([1.0, -3.0, 0.5]) * size
    form = Form.of(LinearModel(coef, NAMES))
    assert np.frexp(form.factor)[0] == 0.5
    np.testing.assert_array_equal(form.weights, coef * form.factor)
    held = form.weights.astype(np.float32)
    np.testing.assert_allclose(held, form.weights, rtol=1e-7)
    assert form.warnings == ()


def test_values_of_training_count():
    """A weight that float32 holds well, of values so large that the score overflows."""
    large = statistics([0.0, 0.0], [1e30, 1.0])
    model = LinearModel([1e10, 1.0], ["a", "b"], statistics=large)
    form = Form.of(model)
    with np.errstate(over="raise", under="raise"):
        scores = form.weights.astype(np.float32) * np.array([1e30, 1.0], dtype=np.float32)
    assert np.isfinite(scores).all()
    assert form.factor < 1.0
    assert Form.of(model, precision="float64").factor == 1.0


def test_dust_beside_values_that_are_known_is_no_reason_to_rescale():
    known = statistics([0.0, 0.0], [1.0, 1.0])
    assert Form.of(LinearModel([1.0, 1e-25], ["a", "b"], statistics=known)).factor == 1.0
    assert Form.of(LinearModel([1.0, 1e-25], ["a", "b"])).factor > 1.0


def test_too_wide_a_span_keeps_the_large_and_warns_of_the_small():
    form = Form.of(LinearModel([1e60, 1e-60], ["large", "small"]))
    assert np.isfinite(np.float32(form.weights[0]))
    assert "'small'" in form.warnings[0]
    assert "float32" in form.warnings[0]
    assert Form.of(LinearModel([1e60, 1e-60], ["a", "b"]), precision="float64").factor == 1.0


@examples(50)
@given(
    exponents=st.lists(st.integers(-1000, 1000), min_size=1, max_size=5),
    reach=st.integers(-200, 200),
)
def test_no_factor_lets_a_score_of_training_overflow(exponents, reach):
    coef = np.ldexp(np.ones(len(exponents)), exponents)
    reaches = np.full(len(coef), np.ldexp(1.0, reach))
    factor = power_of_two(coef, reaches, np.zeros_like(coef), "float32")
    assert np.frexp(factor)[0] == 0.5
    # In exponents: the products themselves may overflow in double precision.
    largest = max(max(exponents), max(exponents) + reach) + np.log2(len(coef)) + np.log2(factor)
    span = max(exponents) - min(exponents) + abs(reach) + 3
    if abs(np.log2(factor)) < 1022:
        assert largest <= 127
        if span < 180:
            assert min(exponents) + np.log2(factor) >= -126


# ---- numbers ------------------------------------------------------------------------------------


@examples(50)
@given(st.floats(allow_nan=False, allow_infinity=False, width=32))
def test_numbers_read_back_as_the_same_bits(value):
    (single,) = singles([value])
    assert np.float32(single) == np.float32(value)
    assert len(repr(single).lstrip("-").split("e")[0].replace(".", "").strip("0")) <= 9
    assert float(text(value)) == value
