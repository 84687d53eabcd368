"""Export to PMML: by the rules of the schema, and scored as the model does."""

import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pmml_rules import SPACE, scope_violations, score, violations
from portable_models import KINDS, NAMES, assert_scores, model_of, rows_of

from hypothesis_profiles import examples
from linrank import LinearModel
from linrank.data.missing import Missing

DOUBLE = 2.0**-53


def document(model, **options):
    return ElementTree.fromstring(model.export("pmml", **options).content)


def scored(model, X):
    columns = dict(zip(model.feature_names, X.T, strict=True))
    return score(document(model), columns)


@pytest.mark.parametrize("kind", KINDS)
def test_the_document_keeps_the_rules_of_the_schema(kind):
    root = document(model_of(kind))
    assert violations(root) == []
    assert scope_violations(root) == []


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda root: root.remove(root[0]), "at least 1"),
        (lambda root: root.append(root[0]), "Header out of order"),
        (lambda root: root[1][0].attrib.pop("optype"), "lacks optype"),
        (lambda root: root[2].set("functionName", "ranking"), "functionName='ranking'"),
        (lambda root: root[2].set("intercept", "0"), "unknown attribute intercept"),
        (lambda root: root[2][-1].set("intercept", "1e-05x"), "intercept='1e-05x'"),
        (lambda root: root[2].insert(0, root[2][-1]), "MiningSchema out of order"),
    ],
)
def test_the_rules_find_what_breaks_them(change, said):
    root = document(model_of("indicator"))
    change(root)
    assert said in "; ".join(violations(root))


@pytest.mark.parametrize("kind", KINDS)
def test_records_are_in_the_order_of_the_model(kind):
    model, X = model_of(kind), rows_of(100_000, len(NAMES), missing=kind != "error")
    assert_scores(scored(model, X), model, X, DOUBLE)


def test_a_record_that_lacks_a_value_has_no_score_where_the_model_refuses_it():
    X = np.array([[1.0, 2.0], [np.nan, 2.0]])
    np.testing.assert_array_equal(scored(LinearModel([1.0, 2.0], ["a", "b"]), X), [5.0, np.nan])


def test_an_indicator_of_a_feature_without_a_weight_counts():
    missing = Missing("indicator", weights=np.array([3.0, 0.0]))
    model = LinearModel([0.0, 1.0], ["a", "b"], missing=missing)
    X = np.array([[7.0, 1.0], [np.nan, 1.0], [np.nan, np.nan]])
    assert scored(model, X).tolist() == [1.0, 4.0, 3.0]


def test_names_of_features_and_of_what_is_added_do_not_meet():
    names = ["score", "relevance", "missing(relevance)", "filled(relevance)", "score_"]
    missing = Missing("indicator", weights=np.arange(1.0, 6.0))
    model = LinearModel(np.ones(5), names, missing=missing)
    assert violations(document(model)) == []
    assert scope_violations(document(model)) == []
    X = rows_of(100, 5)
    assert_scores(scored(model, X), model, X, DOUBLE)
    (output,) = document(model).iter(f"{SPACE}OutputField")
    assert output.get("name") == "score__"
    assert "output field score__ " in model.export("pmml").instructions


characters = st.characters(exclude_categories=["Cs"])


@examples(50)
@given(st.lists(st.text(characters, min_size=1, max_size=8), min_size=1, max_size=3, unique=True))
def test_names_come_back_as_they_were_or_are_refused(names):
    model = LinearModel([1.5, -2.0, 3.0][: len(names)], names)
    bad = [n for n in names if any((c < " " and c not in "\t\n\r") or c in "￾￿" for c in n)]
    if bad:
        with pytest.raises(ValueError, match=r"U\+[0-9A-F]{4}; give another by a feature map"):
            document(model)
        return
    root = document(model)
    found = [e.get("name") for e in root.iter(f"{SPACE}NumericPredictor")]
    assert found == names
    assert violations(root) == []


@pytest.mark.parametrize(("name", "said"), [("", "it is empty"), ("a\x07", r"U\+0007")])
def test_a_name_that_xml_refuses_is_an_error(name, said):
    with pytest.raises(ValueError, match=f"pmml cannot take the feature name .*{said}"):
        LinearModel([1.0], [name]).export("pmml")


def test_a_model_name_that_xml_refuses_is_an_error():
    with pytest.raises(ValueError, match=r"pmml cannot take the model name .*U\+0000"):
        model_of().export("pmml", name="a\0b")


@given(st.floats(1e-100, 1e100), st.floats(-1e100, 1e100))
@examples(50)
def test_weights_and_fills_keep_all_their_digits(weight, fill):
    missing = Missing("mean", values=np.array([fill]))
    root = document(LinearModel([weight], ["a"], missing=missing))
    (predictor,) = root.iter(f"{SPACE}NumericPredictor")
    mined = next(root.iter(f"{SPACE}MiningField"))
    assert float(predictor.get("coefficient")) == weight
    assert float(mined.get("missingValueReplacement")) == fill
    assert mined.get("missingValueTreatment") == "asMean"
