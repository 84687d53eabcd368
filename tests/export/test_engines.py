"""The twins of the engines do what the documentation of the engines says: its own examples."""

from __future__ import annotations

import json

import numpy as np
import pytest
from engines import learning_to_rank_plugin, liblinear, ranklib, solr, vespa
from engines.rules import Refused

PLUGIN_SET = ("title_query", "body_query", "recency")
PLUGIN_BODY = {
    "model": {
        "name": "my_linear_model",
        "model": {
            "type": "model/linear",
            "definition": '{"title_query": 0.3, "body_query": 0.5, "recency": 0.1}',
        },
    }
}


def plugin_model(features=PLUGIN_SET, **changes):
    body = json.loads(json.dumps(PLUGIN_BODY))
    body["model"]["model"] |= changes
    return learning_to_rank_plugin.create_model(json.dumps(body).encode(), features)


def test_plugin_scores_with_zeros_for_what_does_not_match():
    columns = {"title_query": [1.0, np.nan], "body_query": [2.0, 2.0], "recency": [0.0, 10.0]}
    scores = plugin_model().score({name: np.array(values) for name, values in columns.items()})
    assert scores.dtype == np.float32
    np.testing.assert_allclose(scores, [1.3, 2.0], rtol=1e-6)


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"definition": '{"titel_query": 0.3}'}, "is unknown"),
        ({"definition": '{"title_query": "0.3"}'}, "not a number"),
        ({"definition": '{"title_query": null}'}, "not a number"),
        ({"definition": '{"title_query": true}'}, "not a number"),
        ({"definition": '{"title_query": NaN}'}, "no JSON number"),
        ({"definition": '{"title_query": 1e39}'}, "infinite"),
        ({"definition": '{"title_query": 1, "title_query": 2}'}, "duplicate"),
        ({"definition": "[]"}, "Expected start object"),
        ({"type": "model/linaer"}, "unknown type"),
        ({"weights": {}}, "unknown fields"),
    ],
)
def test_plugin_refuses(changes, complaint):
    with pytest.raises(Refused, match=complaint):
        plugin_model(**changes)


SOLR_FEATURES = [
    {"name": name, "class": "org.apache.solr.ltr.feature.ValueFeature", "store": "s", "params": {}}
    for name in ("documentRecency", "popularity", "originalScore")
]
SOLR_MODEL = {
    "class": "org.apache.solr.ltr.model.LinearModel",
    "name": "myModel",
    "store": "s",
    "features": [{"name": name} for name in ("documentRecency", "popularity", "originalScore")],
    "params": {"weights": {"documentRecency": 1.0, "popularity": 0.1, "originalScore": 0.5}},
}


def solr_model(model=SOLR_MODEL, features=SOLR_FEATURES):
    server = solr.Server()
    server.put_features(json.dumps(features))
    return server.put_model(json.dumps(model))


def test_solr_fills_in_the_default():
    features = [dict(feature) for feature in SOLR_FEATURES]
    features[0]["params"] = {"defaultValue": "48"}
    columns = {name: np.array([np.nan]) for name in SOLR_MODEL["params"]["weights"]}
    assert solr_model(features=features).score(columns).tolist() == [48.0]


def solr_change(**changes):
    return {**json.loads(json.dumps(SOLR_MODEL)), **changes}


@pytest.mark.parametrize(
    ("model", "complaint"),
    [
        (solr_change(params={"weights": {"popularity": 1.0}}), "lacks weight"),
        (solr_change(params={"weights": {}}), "doesn't contain any weights"),
        (solr_change(features=[]), "no features"),
        (solr_change(features=[{"name": "x"}]), "not found in store"),
        (solr_change(features=[{"name": "popularity"}] * 2), "duplicated"),
        (solr_change(store="other"), "empty feature store"),
        (solr_change(weights={}), "unknown fields"),
        (solr_change(**{"class": "LinearModel"}), "unknown class"),
    ],
)
def test_solr_refuses_models(model, complaint):
    with pytest.raises(Refused, match=complaint):
        solr_model(model)


RANKLIB = "## Coordinate Ascent\n## Restart = 5\n## Slack = 0.001\n1:0.3 2:0.5 4:-1.0E-4\n"


def test_ranklib_reads_the_line_of_weights():
    model = ranklib.load(RANKLIB)
    scores = model.score(np.array([[1.0, 2.0, 100.0, 0.0], [np.nan, 1.0, 0.0, 1000.0]]))
    np.testing.assert_allclose(scores, [1.3, 0.4], rtol=1e-12)


@pytest.mark.parametrize(
    "text",
    [
        RANKLIB.replace("Coordinate Ascent", "Linear Regression"),
        RANKLIB.replace("1:", "0:"),
        RANKLIB.replace("2:", "1:"),
        RANKLIB.replace("0.3", "inf"),
        RANKLIB.replace(" 2:", "\n2:"),
        RANKLIB.replace(" 4:", " # 4:"),
        RANKLIB.splitlines()[0],
    ],
)
def test_ranklib_refuses(text):
    with pytest.raises(Refused):
        ranklib.load(text)


def test_ranklib_knows_no_feature_beyond_the_data():
    with pytest.raises(Refused, match="unspecified feature"):
        ranklib.load(RANKLIB).score(np.zeros((1, 3)))


LIBLINEAR = (
    "solver_type L2R_L2LOSS_SVC\nnr_class 2\nlabel 1 -1\nnr_feature 2\nbias -1\nw\n0.5 \n-2 \n"
)


def test_liblinear_scores_by_the_vector_of_the_first_label():
    scores = liblinear.load(LIBLINEAR).score(np.array([[2.0, 1.0], [np.nan, -1.0]]))
    assert scores.tolist() == [-1.0, 2.0]


def test_liblinear_has_a_weight_for_the_bias():
    model = liblinear.load(LIBLINEAR.replace("bias -1", "bias 1") + "4\n")
    assert model.score(np.array([[2.0, 1.0]])).tolist() == [3.0]


@pytest.mark.parametrize(
    "text",
    [
        LIBLINEAR.replace("L2R_L2LOSS_SVC", "RANKSVM"),
        LIBLINEAR.replace("label 1 -1", "label -1 1"),
        LIBLINEAR.replace("label 1 -1\n", ""),
        LIBLINEAR.replace("nr_feature 2", "nr_feature 3"),
        LIBLINEAR.replace("bias -1\n", ""),
        LIBLINEAR.replace("nr_class", "classes"),
        LIBLINEAR.replace("nr_class 2\nlabel 1 -1", "label 1 -1\nnr_class 2"),
    ],
)
def test_liblinear_refuses(text):
    with pytest.raises(Refused):
        liblinear.load(text)


VESPA = """rank-profile learned-linear inherits default, other {
    first-phase {
        expression {
            if (isNan(attribute(age)), 0.5, -2e-1 * attribute(age)) + 0.25 * bm25(title) +
              -1.5 * fieldMatch(title).completeness + if (bm25(title) > 5, 1, 0)
        }
    }
}
"""
VESPA_COLUMNS = {
    "bm25(title)": np.array([4.0, 8.0]),
    "attribute(age)": np.array([np.nan, 10.0]),
    "fieldMatch(title).completeness": np.array([1.0, 0.0]),
}


def test_vespa_scores_by_its_first_phase():
    profile = vespa.parse_rank_profile(VESPA)
    assert profile.name == "learned-linear"
    assert profile.inherits == ("default", "other")
    assert profile.score(VESPA_COLUMNS).tolist() == [0.0, 1.0]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("expression {", "expression:"),
        ("rank-profile learned", "rank-profile 7learned"),
        ("first-phase", "frist-phase"),
        ("bm25(title)", "bm25(body)"),
        ("-2e-1", ".2"),
        ("isNan(", "isNaN("),
    ],
)
def test_vespa_refuses(old, new):
    with pytest.raises(Refused):
        vespa.parse_rank_profile(VESPA.replace(old, new)).score(VESPA_COLUMNS)
