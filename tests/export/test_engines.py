"""The twins of the engines do what the documentation of the engines says: its own examples."""

import json

import engines
import numpy as np
import pytest

NAN = np.nan
PLUGIN = json.dumps(
    {
        "model": {
            "name": "my_linear_model",
            "model": {
                "type": "model/linear",
                "definition": {"title_query": 0.3, "body_query": 0.5, "recency": 0.1},
            },
        }
    }
)
SOLR_NAMES = ("documentRecency", "popularity", "originalScore")
SOLR_FEATURES = [
    {"name": name, "class": "org.apache.solr.ltr.feature.ValueFeature", "store": "s"}
    for name in SOLR_NAMES
]
SOLR_FEATURES[0]["params"] = {"defaultValue": "48"}
SOLR = json.dumps(
    {
        "class": "org.apache.solr.ltr.model.LinearModel",
        "name": "myModel",
        "store": "s",
        "features": [{"name": name} for name in SOLR_NAMES],
        "params": {"weights": dict(zip(SOLR_NAMES, (1.0, 0.1, 0.5), strict=True))},
    }
)
RANKLIB = "## Coordinate Ascent\n## Restart = 5\n## Slack = 0.001\n1:0.3 2:0.5 4:-1.0E-4\n"
LIBLINEAR = "solver_type L2R_L2LOSS_SVR\nnr_class 2\nnr_feature 2\nbias -1\nw\n0.5 \n-2 \n"
VESPA = """rank-profile learned-linear inherits default, other {
    first-phase {
        expression {
            if (isNan(attribute(age)), 0.5, -2e-1 * attribute(age)) + 0.25 * bm25(title) +
              -1.5 * fieldMatch(title).completeness + if (bm25(title) > 5, 1, 0)
        }
    }
}
"""


def in_plugin(text):
    return engines.plugin(text, ("title_query", "body_query", "recency"))


def in_solr(text):
    return engines.solr(json.dumps(SOLR_FEATURES), text)


# The engine, what it reads, columns of two rows, and their scores.
EXAMPLES = {
    "plugin": (
        *(in_plugin, PLUGIN),
        {"title_query": [1.0, NAN], "body_query": [2.0, 2.0], "recency": [0.0, 10.0]},
        [1.3, 2.0],
    ),
    "solr": (
        *(in_solr, SOLR),
        dict(zip(SOLR_NAMES, ([NAN, 1.0], [NAN, 10.0], [NAN, 4.0]), strict=True)),
        [48.0, 4.0],
    ),
    "ranklib": (
        *(engines.ranklib, RANKLIB),
        {"1": [1.0, NAN], "2": [2.0, 1.0], "3": [100.0, 0.0], "4": [0.0, 1000.0]},
        [1.3, 0.4],
    ),
    "liblinear": (engines.liblinear, LIBLINEAR, {"1": [2.0, NAN], "2": [1.0, -1.0]}, [-1.0, 2.0]),
    "vespa": (
        *(engines.vespa, VESPA),
        {
            "bm25(title)": [4.0, 8.0],
            "attribute(age)": [NAN, 10.0],
            "fieldMatch(title).completeness": [1.0, 0.0],
        },
        [0.0, 1.0],
    ),
}


def score(engine, changes=()):
    read, text, columns, _ = EXAMPLES[engine]
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return read(text)({name: np.array(values) for name, values in columns.items()})


@pytest.mark.parametrize("engine", EXAMPLES)
def test_an_engine_scores_its_example(engine):
    np.testing.assert_allclose(score(engine), EXAMPLES[engine][3], rtol=1e-6)


REFUSED = [
    ("plugin", '"title_query"', '"titel_query"', "is unknown"),
    ("plugin", "0.3", '"0.3"', "not a number"),
    ("plugin", "0.3", "NaN", "no JSON number"),
    ("plugin", "0.3", "1e39", "infinite"),
    ("plugin", '"body_query"', '"title_query"', "duplicate"),
    ("plugin", '{"title_query": 0.3, "body_query": 0.5, "recency": 0.1}', "[]", "start object"),
    ("plugin", '"type"', '"weights": 1, "type"', "unknown fields"),
    ("solr", '"popularity": 0.1, ', "", "lacks weight"),
    ("solr", '{"documentRecency": 1.0, "popularity": 0.1, "originalScore": 0.5}', "{}", "any weig"),
    ("solr", '"name": "popularity"', '"name": "x"', "not found in store"),
    ("solr", '"name": "popularity"', '"name": "originalScore"', "duplicated"),
    ("solr", '"store"', '"weights": {}, "store"', "unknown fields"),
    ("ranklib", "Coordinate Ascent", "Linear Regression", "Linear"),
    ("ranklib", "1:", "0:", "the id '0'"),
    ("ranklib", "0.3", "inf", "NumberFormat"),
    ("ranklib", " 2:", "\n2:", "only the first line"),
    ("ranklib", " 4:", " # 4:", "cut at #"),
    ("ranklib", "4:", "5:", "unspecified feature"),
    ("liblinear", "L2R_L2LOSS_SVR", "L2R_L2LOSS_SVC", "predicts a class"),
    ("liblinear", "nr_feature 2", "nr_feature 3", "2 weights"),
    ("liblinear", "bias -1\n", "", "unknown text"),
    ("vespa", "expression {", "expression:", "reads a rank profile"),
    ("vespa", "rank-profile learned", "rank-profile 7learned", "reads a rank profile"),
    ("vespa", "bm25(title)", "bm25(body)", "cannot read"),
    ("vespa", "isNan(", "isNaN(", "cannot read"),
]


@pytest.mark.parametrize(("engine", "old", "new", "complaint"), REFUSED)
def test_an_engine_refuses(engine, old, new, complaint):
    with pytest.raises(engines.Refused, match=complaint):
        score(engine, [(old, new)])
