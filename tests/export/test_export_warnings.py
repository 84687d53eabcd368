"""Where an engine cannot express a model the artefact says so; where it can, it says nothing."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest
from export_cases import statistics
from exported_models import Kind, model_of
from serving import FILLS_ZERO, SCORERS, columns_of

from linrank import LinearModel
from linrank.data.missing import Missing
from linrank.data.scaling import Scaling
from linrank.errors import ExportWarning
from linrank.export import TARGETS

NAMES = ("a", "b", "c")
BY_NAME = [target for target in TARGETS if target not in (*FILLS_ZERO, "onnx")]
DEFAULTS = ("elasticsearch", "opensearch", "solr")  # missing values are the features' business
GAPS = np.array([[1.0, np.nan, 1.0], [2.0, 3.0, 4.0], [np.nan, np.nan, 0.0]])


def told(model: LinearModel, target: str, **options) -> str:
    """All warnings of an export; each is issued, and is part of the artefact."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        artefact = model.export(target, **options)
    assert [str(warning.message) for warning in caught] == list(artefact.warnings)
    assert all(issubclass(warning.category, ExportWarning) for warning in caught)
    return " | ".join(artefact.warnings)


@pytest.mark.parametrize("target", TARGETS)
def test_scaling_within_queries_is_not_in_the_artefact(target):
    model = LinearModel([0.5, 1.0, 2.0], NAMES, Scaling("query"))
    assert "scale='query'" in told(model, target)


@pytest.mark.parametrize("target", BY_NAME)
def test_a_model_without_names(target):
    assert "no feature names" in told(LinearModel([0.5, 1.0, 2.0]), target)
    mapped = told(LinearModel([0.5, 1.0, 2.0]), target, feature_map={0: "x", 1: "y", 2: "z"})
    assert "no feature names" not in mapped


@pytest.mark.parametrize("target", ["elasticsearch", "opensearch"])
def test_negative_scores_and_lucene(target):
    warned = told(LinearModel([0.5, -1.0, 2.0], NAMES), target)
    assert "negative" in warned
    assert "'b'" in warned
    assert "rescore" in warned
    assert "positive=True" in warned
    assert "negative" in told(model_of(Kind("standard")), target)  # of features that can be
    assert not told(LinearModel([0.5, 1.0, 2.0], NAMES), target)


@pytest.mark.parametrize("target", FILLS_ZERO)
@pytest.mark.parametrize("missing", ["mean", "indicator"])
def test_fills_that_the_engine_does_not_know(target, missing):
    assert f"missing={missing!r}" in told(model_of(Kind(missing=missing)), target)


@pytest.mark.parametrize("target", TARGETS)
def test_zeros_for_missing_values_need_no_words(target):
    warned = told(LinearModel([0.5, 1.0, 2.0], NAMES, missing=Missing("zero")), target)
    assert not warned


@pytest.mark.parametrize("target", ["elasticsearch", "opensearch"])
def test_defaults_that_queries_of_features_have_to_bring(target):
    warned = told(model_of(Kind(missing="mean")), target)
    assert "missing='mean'" in warned
    assert "need the values that come with it" in warned


@pytest.mark.parametrize("target", DEFAULTS)
def test_an_effect_that_no_default_value_can_have(target):
    """A feature without a weight, or next to none, that counts when it is missing."""
    for weight in (0.0, 1e-45, 1e-200, 1e-320):
        worth = np.array([0.0, 5.0, 0.0])
        model = LinearModel([1.0, weight, 3.0], NAMES, missing=Missing("indicator", None, worth))
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            assert "'b'" in told(model, target)


@pytest.mark.parametrize("target", DEFAULTS)
def test_a_mean_that_single_precision_cannot_hold(target):
    model = LinearModel([1.0, 2.0, 3.0], NAMES, missing=Missing("mean", np.array([0, 1e200, 0])))
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        assert "'b'" in told(model, target)


def test_what_a_missing_value_adds_is_never_infinite_in_onnx():
    pytest.importorskip("onnx", reason="pip install onnx")
    model = LinearModel([1.0, 2.0, 3.0], NAMES, missing=Missing("mean", np.array([0, 1e200, 0])))
    with pytest.raises(ValueError, match=r"'b'.*float32.*precision='float64'"):
        model.export("onnx")
    scores = SCORERS["onnx"](model.export("onnx", precision="float64"), columns_of(model, GAPS))
    np.testing.assert_allclose(scores, model.predict(GAPS), rtol=1e-15)


def test_vespa_expresses_all_rules_for_missing_values():
    worth = np.array([0.5, 5.0, 0.0])
    model = LinearModel([1.0, 0.0, 3.0], NAMES, missing=Missing("indicator", None, worth))
    assert not told(model, "vespa")
    scores = SCORERS["vespa"](model.export("vespa"), columns_of(model, GAPS))
    np.testing.assert_allclose(scores, model.predict(GAPS), rtol=1e-15)


@pytest.mark.parametrize("target", ["elasticsearch", "opensearch", "solr"])
def test_weights_that_single_precision_cannot_hold_together(target):
    warned = told(LinearModel([1e-60, 1.0, 1e30], NAMES), target)
    assert "'a'" in warned
    assert "float32" in warned
    assert not told(LinearModel([1e-20, 1.0, 1e10], NAMES), target)


def test_a_model_that_zookeeper_does_not_keep():
    names = [f"feature_{j}" for j in range(20_000)]
    model = LinearModel(np.ones(20_000), names, missing=Missing("zero"))
    assert "ZooKeeper" in told(model, "solr")
    assert "DefaultWrapperModel" in told(model, "solr")
    small = LinearModel(np.ones(1_000), names[:1_000], missing=Missing("zero"))
    assert not told(small, "solr")


def test_factors_are_powers_of_two_and_keep_the_digits():
    weights = np.array([1.1e-50, 2.3e-50, 3.7e-50])
    artefact = LinearModel(weights, NAMES).export("elasticsearch")
    definition = json.loads(json.loads(artefact.text)["model"]["model"]["definition"])
    written = np.array([definition[name] for name in NAMES])
    ratio = written / weights
    np.testing.assert_allclose(ratio, ratio[0], rtol=2**-23)
    exponent = np.log2(ratio[0])
    assert abs(exponent - round(exponent)) < 1e-6


@pytest.mark.parametrize("target", DEFAULTS)
def test_a_weight_that_vanishes_altogether_is_told(target):
    """Times the power of two it is 0 in double precision already."""
    text = told(LinearModel([1e300, 1e-300, 1.0], NAMES), target)
    assert "'b', 'c'" in text
    assert "more than float32 can hold" in text


@pytest.mark.parametrize("target", ["json", "sql", "vespa", "onnx"])
def test_what_a_missing_value_adds_is_finite_or_refused(target):
    missing = Missing("mean", np.array([1e308, 1.0]))
    model = LinearModel([1e300, 1e-300], ("a", "b"), missing=missing)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        warnings.simplefilter("ignore", ExportWarning)
        with pytest.raises(ValueError, match="a missing 'a' adds"):
            model.export(target)


def test_names_that_make_the_feature_log_of_solr_ambiguous():
    for name, sign in (("lang=en", "sign ="), ("a,b", "comma")):
        assert f"{name!r} has a {sign}" in told(LinearModel([1.0], [name]), "solr")


@pytest.mark.parametrize("target", ["ranklib", "liblinear"])
def test_files_numbered_from_zero_are_shifted_and_told(target):
    model = LinearModel([1.0, 2.0], training={"index_base": 0})
    assert "feature 0 of the file is feature 1 here" in told(model, target)


def test_features_that_were_below_zero_in_lucene():
    low = LinearModel([1.0, 1.0], ["a", "b"], statistics=statistics([0, -3], [1, 1]))
    assert "'b' was as low as -3 in training" in told(low, "opensearch")
