"""Bad input of exports: each is an error that names the value, the place and the remedy."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

import linrank
from linrank import KernelModel, LinearModel
from linrank.export import TARGETS, export
from linrank.export.targets import options_of, target_name
from linrank.kernels.functions import Kernel

pytestmark = pytest.mark.filterwarnings("ignore::linrank.errors.ExportWarning")
MODEL = LinearModel([0.5, -1.0, 2.0], ["bm25", "age", "clicks"])
BY_NAME = ("elasticsearch", "opensearch", "solr", "vespa")
BY_NUMBER = ("ranklib", "liblinear")


@pytest.mark.parametrize(
    ("target", "options", "error", "words"),
    [
        ("elasticsaerch", {}, ValueError, "'elasticsaerch'; did you mean 'elasticsearch'.*solr"),
        ("opensarch", {}, ValueError, "'opensarch'; did you mean 'opensearch'"),
        ("xyz", {}, ValueError, "unknown export target 'xyz'; there are elasticsearch"),
        ("es", {"feature_map": "nowhere"}, FileNotFoundError, "nowhere"),
        ("es", {"feature_map": ["x"]}, TypeError, "feature_map must be a mapping .* got list"),
        ("solr", {"shop": "a"}, TypeError, "solr has no option 'shop'; it has store, collection"),
        ("ranklib", {"a": 1}, TypeError, "ranklib has no option 'a'; it has none"),
        ("onnx", {"precision": "half"}, ValueError, "precision must be 'float32' or .* got 'half'"),
        ("vespa", {"phase": "third"}, ValueError, "phase must be 'first' or 'second', got 'third'"),
        ("vespa", {"name": "default"}, ValueError, "'default' would inherit from itself"),
        *(("es", {"name": name}, ValueError, "name must be a text") for name in ("", " ", None, 3)),
    ],
)
def test_targets_and_options_that_are_none(target, options, error, words):
    with pytest.raises(error, match=words):
        MODEL.export(target, **options)


def test_targets_have_short_names_and_options():
    found = [target_name(name) for name in ("ES", "os", "Solr")]
    assert found == ["elasticsearch", "opensearch", "solr"]
    assert options_of("solr") == ("store", "collection", "tolerance", "steps")


@pytest.mark.parametrize("target", TARGETS)
def test_weights_that_are_all_zero_rank_nothing(target):
    with pytest.raises(ValueError, match="all weights of the model are 0"):
        LinearModel([0.0, 0.0, 0.0], MODEL.feature_names).export(target)


def test_what_is_no_model_that_can_be_exported():
    kernel = KernelModel([[0.0], [1.0]], [-1.0, 2.0], Kernel("rbf"))
    with pytest.raises(TypeError, match=r"rbf.*LinearModel"):
        export(kernel, "elasticsearch")
    with pytest.raises(TypeError, match="LinearModel, got ndarray"):
        export(np.ones(3), "elasticsearch")
    with pytest.raises(NotFittedError):
        linrank.RankSVM().export("elasticsearch")


# ---- names --------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", BY_NAME)
@pytest.mark.parametrize("name", ["", " ", "a\x00b", "a\nb", "a\x7fb", " a", "a\t"])
def test_names_of_features_that_no_request_carries(target, name):
    with pytest.raises(ValueError, match="name"):
        MODEL.export(target, feature_map={"age": name})


SHELL = [
    *("it's", 'a"b', "two words", "$(x)", "`x`", "a;b", "a/b", "../x", "a?b", "{x}", "[1-3]", "*"),
    *("..", "a\n", "<a>"),
]


@pytest.mark.parametrize("name", SHELL)
@pytest.mark.parametrize(
    ("target", "option"),
    [
        *((target, "name") for target in BY_NAME),
        *(("opensearch", "featureset"), ("solr", "store"), ("solr", "collection")),
        *(("vespa", "schema"), ("vespa", "inherits")),
    ],
)
def test_what_stands_in_a_request_must_not_change_it(target, option, name):
    with pytest.raises(ValueError, match=f"{target} cannot take the .* name"):
        MODEL.export(target, **{option: name})


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("a b", "' ' at place 1 ends it there; a rank feature is written as name"),
        ("a-b", "'-' at place 1"),
        ("größe", "'ö' at place 2"),
        ("1a", "'1' at place 0"),
        ("a(", "it is not complete"),
        ("a(b", "it is not complete"),
        ("a(b))", r"'\)' at place 4"),
        ("a(b c)", "'c' at place 4"),
        ("a(,)", "',' at place 2"),
        ("a(b,)", r"'\)' at place 4"),
        ("a(1b)", "'1' at place 2"),
        ("a.", r"'\.' at place 1"),
        ('a("{")', "'\"' at place 2"),
        ("a) + (b", r"'\)' at place 1"),
        ('a("b(" + c + ")")', r"'\+' at place 7"),
        *(('a"b"', "'\"' at place 1"), ("a'x'", '"\'" at place 1')),
        ('a."b"', r"'\.' at place 1"),
        *(("a(b)(c)", r"'\(' at place 4"), ("a(b)c", "'c' at place 4")),
        *(("f(a)f", "'f' at place 4"), ("f(g(x)h)", "'h' at place 6")),
        *(('f(1"a")', "'\"' at place 3"), ('f("a""b")', "'\"' at place 5")),
        ("if", "'if' is a word of the language"),
        ("a(in)", "'in' is a word of the language"),
        ("a(" * 33 + "b" + ")" * 33, "its brackets nest more than 32 deep"),
    ],
)
def test_what_is_no_rank_feature_is_refused(name, words):
    with pytest.raises(ValueError, match=f"vespa cannot take the feature name .*: {words}"):
        MODEL.export("vespa", feature_map={"age": name})


def test_profiles_have_names_of_their_own():
    for name, at in (("1a", "'1' at place 0"), ("a b", "' ' at place 1")):
        with pytest.raises(ValueError, match=f"vespa cannot take the profile name .*{at}"):
            MODEL.export("vespa", name=name)
    text = MODEL.export("vespa", name="a-b_1", inherits="unranked").text
    assert "rank-profile a-b_1 inherits unranked " in text


def test_names_of_a_plugin_have_a_length():
    MODEL.export("es", feature_map={"age": "x" * 504})
    with pytest.raises(ValueError, match="it has 505 bytes, at most 504 are stored"):
        MODEL.export("es", feature_map={"age": "x" * 505})


@pytest.mark.parametrize("target", BY_NUMBER)
@pytest.mark.parametrize(
    ("names", "words"),
    [
        (("3", "1", "x"), "by numbers from 1, and 'x' is none"),
        (("0", "1", "2"), "by numbers from 1, and '0' is none"),
        (("1", "2", "9999999999"), "numbers from 1"),
        (("9" * 5000, "1", "2"), "numbers from 1"),
        (("1", "01", "2"), "'1' and '01' are one"),
        (("3", "2", "0002"), "'2' and '0002' are one"),
    ],
)
def test_numbers_that_are_none_or_two_are_refused(target, names, words):
    feature_map = dict(zip(MODEL.feature_names, names, strict=True))
    with pytest.raises(ValueError, match=rf"{target} .*{words}"):
        MODEL.export(target, feature_map=feature_map)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"bm25": "x", "age": "x"}, "'bm25' and 'age' with one name, 'x'"),
        ({"bm25": "age"}, "'bm25' and 'age' with one name, 'age'"),
        ({"bm25": "x", 0: "y"}, "has the feature 'bm25' twice"),
        ({"agee": "x"}, "'agee', which the model does not know; did you mean 'age'?"),
        ({"zzzzzz": "x"}, "does not know$"),
        ({3: "x"}, "has the feature 3; those of the model are 0 to 2"),
        ({"age": ""}, "gives 'age' the name ''"),
        ({"age": None}, "gives 'age' the name None"),
        ({True: "x"}, "has True, which the model does not know"),
    ],
)
def test_what_does_not_map_is_refused(given, words):
    with pytest.raises(ValueError, match=words):
        MODEL.export("json", feature_map=given)


def test_models_with_one_name_twice_need_a_map():
    model = LinearModel([1.0, 2.0], ["a", "a"])
    with pytest.raises(ValueError, match="columns 0 and 1 of the model are both called 'a'"):
        model.export("json")
