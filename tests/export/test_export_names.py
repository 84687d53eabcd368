"""Names of features and models: what an engine takes arrives there, what it does not is refused."""

from __future__ import annotations

import numpy as np
import pytest
from engines import vespa
from serving import SCORERS, columns_of
from test_order import exported

from linrank import LinearModel
from linrank.export import TARGETS

ROWS = np.array([[1.0, 2.0, 3.0], [2.0, -3.0, 0.5], [0.0, 0.0, 1.0]])
COEF = (1.0, -2.0, 0.25)


def check_scores(names, target, **options):
    model = LinearModel(COEF, names)
    scores = SCORERS[target](exported(model, target, **options), columns_of(model, ROWS))
    np.testing.assert_allclose(scores, model.predict(ROWS), rtol=1e-6)


@pytest.mark.parametrize("target", ["elasticsearch", "opensearch", "solr"])
@pytest.mark.parametrize(
    "names",
    [
        ("two words", 'a "quoted" one', "back\\slash"),
        ("größe", "価格", "naïve\u0301"),
        ("<b>", "&amp;", "it's"),
        ("a.b", "a-b", "a/b"),
        ("1", "2", "3"),
        ("if", "null", "true"),
    ],
)
def test_names_of_all_kinds_arrive(target, names):
    check_scores(names, target)


@pytest.mark.parametrize(
    "names",
    [
        ("bm25(title)", "attribute(popularity)", "fieldMatch(title).completeness"),
        ("plain", "_private", "with9digits"),
        ("foo(bar(baz))", "matches(title, 2)", "term(0).significance"),
        ("closeness(field, embedding)", 'distance(label, "x y")', "my(attribute(a), 2)"),
    ],
)
def test_rank_features_are_names_in_vespa(names):
    check_scores(names, "vespa")


@pytest.mark.parametrize("target", ["elasticsearch", "opensearch", "solr", "vespa"])
@pytest.mark.parametrize("name", ["", " ", "a\x00b", "a\nb", "a\x7fb", " a", "a\t"])
def test_names_that_no_request_carries(target, name):
    model = LinearModel(COEF, ("a", "b", "c"))
    with pytest.raises(ValueError, match="name"):
        model.export(target, feature_map={"b": name})


@pytest.mark.parametrize("target", ["elasticsearch", "opensearch", "solr", "vespa"])
@pytest.mark.parametrize("name", ["two words", "a/b", "a?b", 'a"b', "a'b", "a\n", "<a>"])
def test_names_of_models_go_into_urls(target, name):
    with pytest.raises(ValueError, match=rf"{target} cannot take"):
        LinearModel(COEF, ("a", "b", "c")).export(target, name=name)


def test_a_vespa_profile_cannot_inherit_from_itself():
    with pytest.raises(ValueError, match="default"):
        LinearModel(COEF, ("a", "b", "c")).export("vespa", name="default")
    artefact = exported(LinearModel(COEF, ("a", "b", "c")), "vespa", name="x", inherits="unranked")
    assert vespa.parse_rank_profile(artefact.text).inherits == ("unranked",)


@pytest.mark.parametrize("target", ["ranklib", "liblinear"])
def test_features_by_number(target):
    check_scores(("a", "b", "c"), target)
    check_scores(None, target)
    model = LinearModel(COEF, ("a", "b", "c"))
    moved = exported(model, target, feature_map={"a": "3", "b": "1", "c": "5"})
    rows = np.zeros((len(ROWS), 6))
    rows[:, [2, 0, 4]] = ROWS
    columns = {str(j): column for j, column in enumerate(rows.T)}
    np.testing.assert_allclose(SCORERS[target](moved, columns), model.predict(ROWS))


@pytest.mark.parametrize("numbers", [("3", "1", "x"), ("0", "1", "2"), ("1", "2", "9999999999")])
@pytest.mark.parametrize("target", ["ranklib", "liblinear"])
def test_numbers_that_are_none(target, numbers):
    feature_map = dict(zip("abc", numbers, strict=True))
    with pytest.raises(ValueError, match="numbers from 1"):
        LinearModel(COEF, ("a", "b", "c")).export(target, feature_map=feature_map)


@pytest.mark.parametrize("target", TARGETS)
def test_the_instructions_name_what_there_is(target):
    artefact = exported(LinearModel(COEF, ("a", "b", "c")), target, name="my_model")
    assert artefact.target == target
    assert next(iter(artefact.files)) in artefact.instructions
    assert all(name in artefact.instructions for name in ("a", "b", "c"))
    assert 100 < len(artefact.instructions) < 4000


@pytest.mark.parametrize("target", ["ranklib", "liblinear"])
def test_instructions_of_numbers_keep_a_name_on_its_line(target):
    told = exported(LinearModel(COEF, ("a\n  rm -rf .", "b\x1b[2J", "c d")), target).instructions
    assert r"'1 a\n  rm -rf .', '2 b\x1b[2J', 3 c d." in told


@pytest.mark.parametrize("target", ["ranklib", "liblinear"])
@pytest.mark.parametrize("names", [("1", "01", "2"), ("3", "2", "0002")])
def test_two_names_of_one_number_are_refused(target, names):
    with pytest.raises(ValueError, match=rf"{target} .* '0*\d' and '0*\d' are one"):
        exported(LinearModel(COEF, names), target)


def test_a_number_of_very_many_digits_is_refused():
    with pytest.raises(ValueError, match="numbers from 1"):
        exported(LinearModel(COEF, ("9" * 5000, "1", "2")), "ranklib")


SHELL = [
    "it's",
    'a"b',
    "a b",
    "$(x)",
    "`x`",
    "a;b",
    "a/b",
    "../x",
    "a?b",
    "{x}",
    "[1-3]",
    "*",
    "..",
]


@pytest.mark.parametrize("name", SHELL)
@pytest.mark.parametrize(
    ("target", "option"),
    [
        ("elasticsearch", "name"),
        ("opensearch", "featureset"),
        ("solr", "name"),
        ("solr", "store"),
        ("solr", "collection"),
        ("vespa", "name"),
        ("vespa", "schema"),
        ("vespa", "inherits"),
    ],
)
def test_what_stands_in_a_request_must_not_change_it(target, option, name):
    with pytest.raises(ValueError, match=f"{target} cannot take the .* name"):
        exported(LinearModel(COEF, ("a", "b", "c")), target, **{option: name})


MODEL = LinearModel([0.5, 0.25, 2.0], ["bm25", "age", "clicks"])


@pytest.mark.parametrize(
    ("name", "rest"),
    [
        ("a b", " b"),
        ("a-b", "-b"),
        ("größe", "öße"),
        ("1a", "1a"),
        ("a(", r"\("),
        ("a(b", r"\(b"),
        ("a(b))", r"\)"),
        ("a(b c)", r"\(b c\)"),
        ("a(,)", r"\(,\)"),
        ("a.", r"\."),
        ('a("{")', r'\("{"\)'),
        ("a) + (b", r"\) \+ \(b"),
        ('a("b(" + c + ")")', r"\(0 \+ c \+ 0\)"),
        ("if", "if"),
        ("a(in)", r"\(in\)"),
        ("a(" * 33 + "b" + ")" * 33, r"\(f\)"),
    ],
)
def test_what_is_no_rank_feature_is_refused(name, rest):
    told = f"vespa cannot take the feature name .* it ends before '{rest}'; a rank feature is"
    with pytest.raises(ValueError, match=told):
        MODEL.export("vespa", feature_map={"age": name})


@pytest.mark.parametrize(("name", "at"), [("1a", "'1' at place 0"), ("a b", "' ' at place 1")])
def test_profiles_have_names_of_their_own(name, at):
    with pytest.raises(ValueError, match=f"vespa cannot take the profile name .*{at}"):
        MODEL.export("vespa", name=name)
    assert "rank-profile a-b_1 " in MODEL.export("vespa", name="a-b_1").text


def test_names_of_a_plugin_have_a_length():
    MODEL.export("es", feature_map={"age": "x" * 504})
    with pytest.raises(ValueError, match="it has 505 bytes, at most 504 are stored"):
        MODEL.export("es", feature_map={"age": "x" * 505})
