"""Where an engine cannot express a model the artefact says so; where it can, it says nothing."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from exported_models import Kind, model_of, statistics
from serving import FILLS_ZERO, STEPS, scores_in

from linrank import LinearModel
from linrank.data.missing import Missing
from linrank.data.scaling import Scaling
from linrank.errors import ExportWarning
from linrank.export import TARGETS

NAMES = ("a", "b", "c")
COEF = [0.5, 1.0, 2.0]
PLUGIN = ("elasticsearch", "opensearch")
BY_NAME = [target for target in TARGETS if target not in (*FILLS_ZERO, "onnx")]


def of(coef=COEF, names=NAMES, **options):
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
    (
        of(names=None, training={"index_base": 0}),
        FILLS_ZERO,
        ("feature 0 of the file",),
    ),
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
    assert not told(of(names=None), target, feature_map=dict(enumerate(NAMES)))


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
