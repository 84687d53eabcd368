"""Form: what an engine can hold, in the order of the model; what it cannot express is told."""

import warnings

import numpy as np
import pytest
from exported_models import Kind, model_of, statistics
from hypothesis import given
from hypothesis import strategies as st
from serving import FILLS_ZERO, STEPS, scores_in

from hypothesis_profiles import examples
from linrank import LinearModel
from linrank.data.missing import Missing
from linrank.data.scaling import Scaling
from linrank.errors import ExportWarning
from linrank.export import TARGETS
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


# ---- what an engine cannot express ---------------------------------------------------------------

ABC = ("a", "b", "c")
COEF = [0.5, 1.0, 2.0]
PLUGIN = ("elasticsearch", "opensearch")
BY_NAME = [target for target in TARGETS if target not in (*FILLS_ZERO, "onnx")]


def of(coef=COEF, names=ABC, **options):
    return LinearModel(coef, names, **options)


def worth(*weights):
    return Missing("indicator", None, np.array(weights))


def means(*values):
    return Missing("mean", np.array(values))


# A model, the targets that warn of it, and the words.
WARNED = [
    (of(scaling=Scaling("query")), TARGETS, ("scale='query'",)),
    (of(names=None), BY_NAME, ("no feature names",)),
    (of([0.5, -1.0, 2.0]), PLUGIN, ("negative", "'b'", "rescore", "positive=True")),
    (model_of(Kind("standard")), PLUGIN, ("negative",)),  # of features that can be
    (of(statistics=statistics([0, -3, 0], [1, 1, 1])), PLUGIN, ("'b' was as low as -3 in tr",)),
    (model_of(Kind(missing="mean")), FILLS_ZERO, ("missing='mean'",)),
    (model_of(Kind(missing="indicator")), FILLS_ZERO, ("missing='indicator'",)),
    (model_of(Kind(missing="mean")), PLUGIN, ("missing='mean'", "need the values that come with")),
    # A feature without a weight, or next to none, that counts when it is missing.
    *(
        (of([1.0, weight, 3.0], missing=worth(0.0, 5.0, 0.0)), STEPS, ("'b'", "no value in"))
        for weight in (0.0, 1e-45, 1e-200, 1e-320)
    ),
    (of(missing=means(0.0, 1e200, 0.0)), STEPS, ("'b'",)),
    (of([1e-60, 1.0, 1e30]), STEPS, ("'a'", "more than float32 can hold")),
    (of([1e300, 1e-300, 1.0]), STEPS, ("'b', 'c'", "more than float32 can hold")),
    (of(np.ones(20_000), [f"feature_{j}" for j in range(20_000)]), ("solr",), ("ZooKeeper",)),
    (of([1.0], ["lang=en"]), ("solr",), ("'lang=en' has a sign =",)),
    (of([1.0], ["a,b"]), ("solr",), ("'a,b' has a comma",)),
    (of(names=None, training={"index_base": 0}), FILLS_ZERO, ("feature 0 of the file",)),
]
SILENT = [
    (of(missing=Missing("zero")), TARGETS),
    (of([1e-20, 1.0, 1e10]), STEPS),
    (of(np.ones(1000), [f"feature_{j}" for j in range(1000)]), ("solr",)),
]


def told(model, target, **options):
    """All warnings of an export; each is issued, and is part of the artefact."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        artefact = model.export(target, **options)
    assert [str(warning.message) for warning in caught] == list(artefact.warnings)
    assert all(issubclass(warning.category, ExportWarning) for warning in caught)
    return " | ".join(artefact.warnings)


@pytest.mark.parametrize(("model", "targets", "words"), WARNED)
def test_what_an_engine_cannot_express_is_told(model, targets, words):
    for target in targets:
        text = told(model, target)
        assert all(word in text for word in words), text


@pytest.mark.parametrize(("model", "targets"), SILENT)
def test_what_it_can_express_needs_no_words(model, targets):
    assert [told(model, target) for target in targets] == [""] * len(targets)


@pytest.mark.parametrize("target", BY_NAME)
def test_a_map_gives_names(target):
    assert not told(of(names=None), target, feature_map=dict(enumerate(ABC)))


@pytest.mark.parametrize("target", ["json", "sql", "vespa", "onnx"])
def test_what_a_missing_value_adds_is_finite_or_refused(target):
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        warnings.simplefilter("ignore", ExportWarning)
        with pytest.raises(ValueError, match="a missing 'a' adds"):
            of([1e300, 1e-300], ["a", "b"], missing=means(1e308, 1.0)).export(target)


@pytest.mark.parametrize(
    ("target", "options", "missing"),
    [
        ("onnx", {"precision": "float64"}, means(0.0, 1e200, 0.0)),
        *((target, {}, worth(0.5, 5.0, 0)) for target in ("vespa", "sql", "json")),
    ],
)
def test_an_engine_that_can_express_all_rules_does(target, options, missing):
    model, gaps = of([1.0, 0.0, 3.0], missing=missing), np.full((3, 3), np.nan)
    gaps[0, 0] = gaps[1, 1:] = 2.0
    assert not told(model, target, **options)
    found = scores_in(target, model, gaps, **options)
    np.testing.assert_allclose(found, model.predict(gaps), rtol=1e-15)


def test_single_precision_that_cannot_hold_a_mean_is_refused_by_onnx():
    with pytest.raises(ValueError, match=r"'b'.*float32.*precision='float64'"):
        of(missing=means(0.0, 1e200, 0.0)).export("onnx")
