"""Names of features and all that stands in a request: they arrive as they are, or are refused."""

import numpy as np
import pytest
from serving import SCORERS, exported, scores_in
from sklearn.exceptions import NotFittedError

import linrank
from linrank import KernelModel, LinearModel
from linrank.export import TARGETS, export
from linrank.export.form import Form
from linrank.export.names import engine_names, read_feature_map
from linrank.export.targets import options_of, target_name
from linrank.kernels.functions import Kernel

ROWS = np.array([[1.0, 2.0, 3.0], [2.0, -3.0, 0.5], [0.0, 0.0, 1.0]])
COEF = (1.0, -2.0, 0.25)
OWN = ("bm25", "age", "clicks")
MODEL = LinearModel(COEF, OWN)
LUCENE = ("elasticsearch", "opensearch", "solr")
NAMES = [
    ("two words", 'a "quoted" one', "back\\slash"),
    ("größe", "価格", "naïve\u0301"),
    ("<b>", "&amp;", "it's"),
    ("a.b", "a-b", "a/b"),
    ("1", "2", "3"),
    ("if", "null", "true"),
]
RANK_FEATURES = [
    ("bm25(title)", "attribute(popularity)", "fieldMatch(title).completeness"),
    ("plain", "_private", "with9digits"),
    ("foo(bar(baz))", "matches(title, 2)", "term(0).significance"),
    ("closeness(field, embedding)", 'distance(label, "x y")', "my(attribute(a), 2)"),
]


@pytest.mark.parametrize(
    ("target", "names"),
    [
        *((target, names) for target in LUCENE for names in NAMES),
        *(("vespa", names) for names in RANK_FEATURES),
        *((target, names) for target in ("ranklib", "liblinear") for names in (None, NAMES[0])),
    ],
)
def test_names_of_all_kinds_arrive(target, names):
    model = LinearModel(COEF, names)
    np.testing.assert_allclose(scores_in(target, model, ROWS), model.predict(ROWS), rtol=1e-6)


@pytest.mark.parametrize("target", ["ranklib", "liblinear"])
def test_a_map_may_give_numbers(target):
    moved = exported(MODEL, target, feature_map={"bm25": "3", "age": "1", "clicks": "5"})
    rows = np.zeros((len(ROWS), 6))
    rows[:, [2, 0, 4]] = ROWS
    columns = {str(j): column for j, column in enumerate(rows.T)}
    np.testing.assert_allclose(SCORERS[target](moved, columns), MODEL.predict(ROWS))


@pytest.mark.parametrize("target", TARGETS)
def test_the_instructions_name_what_there_is(target):
    artefact = exported(MODEL, target, name="my_model")
    assert artefact.target == target
    assert next(iter(artefact.files)) in artefact.instructions
    names_features = target not in ("onnx", "sql", "json")  # in the file itself
    assert all(name in artefact.instructions for name in OWN) == names_features
    assert 100 < len(artefact.instructions) < 4000


@pytest.mark.parametrize("target", ["ranklib", "liblinear"])
def test_instructions_of_numbers_keep_a_name_on_its_line(target):
    told = exported(LinearModel(COEF, ("a\n  rm -rf .", "b\x1b[2J", "c d")), target).instructions
    assert r"'1 a\n  rm -rf .', '2 b\x1b[2J', 3 c d." in told


# ---- maps ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("names", "base", "feature_map", "found"),
    [
        (OWN, 0, {"age": "document_age"}, ["bm25", "document_age", "clicks"]),
        (OWN, 0, {0: "a"}, ["a", "age", "clicks"]),
        (OWN, 0, {"bm25": 7}, ["7", "age", "clicks"]),
        (OWN, 0, {"bm25": "age", "age": "bm25"}, ["age", "bm25", "clicks"]),  # they swap
        (None, 1, {1: "a", "3": "c"}, ["a", "f2", "c"]),  # numbers of the training file
        (None, 0, {"f1": "b"}, ["f0", "b", "f2"]),
        (("2", "1", "x"), 1, {"1": "y"}, ["2", "y", "x"]),  # a name first
        (("a", "a", "c"), 0, {0: "b"}, ["b", "a", "c"]),
    ],
)
def test_names_and_numbers_are_mapped_and_others_stay(names, base, feature_map, found):
    assert engine_names(names, 3, base, feature_map) == found


@pytest.mark.parametrize(
    ("content", "found"),
    [
        ("# a b\nbm25  title_bm25\n\nold age\tdocument age\n", None),
        ('{"bm25": "title_bm25", "old age": "document age"}', None),
        ('\ufeff{"a": "title"}', {"a": "title"}),  # a mark at the start is no part of a name
        ("\ufeffa title\n", {"a": "title"}),
        ("a\u2028b\ttitle\n", {"a\u2028b": "title"}),  # this separator is no end of a line
    ],
)
def test_files_of_both_kinds(tmp_path, content, found):
    path = tmp_path / "map"
    path.write_text(content, encoding="utf-8")
    assert read_feature_map(path) == (found or {"bm25": "title_bm25", "old age": "document age"})
    if found is None:
        form = Form.of(LinearModel([1.0, 2.0], ["bm25", "old age"]), feature_map=path)
        assert form.names == ("title_bm25", "document age")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"a b c\n", "line 1 has 3 columns"),
        (b"a b\n\nc\n", "line 3 has 1 column;"),
        (b"a b\na c\n", "has the feature 'a' twice"),
        (b'{"a": "b", "a": "c"}', "has the feature 'a' twice"),
        (b'{"a": ', r"map:1:7: begins like JSON and is none \(Expecting value\)"),
        (b"a \xff\n", "utf-8"),
        (b'{"a":' * 100_000, "recursion"),
    ],
)
def test_bad_files_are_named(tmp_path, content, words):
    path = tmp_path / "map"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=words) as caught:
        read_feature_map(str(path))
    assert str(path) in str(caught.value)


pytestmark = pytest.mark.filterwarnings("ignore::linrank.errors.ExportWarning")
BY_NAME = ("elasticsearch", "opensearch", "solr", "vespa")
BY_NUMBER = ("ranklib", "liblinear")


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


SHELL = [
    *("it's", 'a"b', "two words", "$(x)", "`x`", "a;b", "a/b", "../x", "a?b", "{x}", "[1-3]", "*"),
    *("..", "a\n", "<a>"),
]
REQUESTED = [
    *((target, "name") for target in BY_NAME),
    *(("opensearch", "featureset"), ("solr", "store"), ("solr", "collection")),
    *(("vespa", "schema"), ("vespa", "inherits")),
]
NUMBERS = {
    ("3", "1", "x"): "by numbers from 1, and 'x' is none",
    ("0", "1", "2"): "by numbers from 1, and '0' is none",
    ("1", "2", "9999999999"): "numbers from 1",
    ("9" * 5000, "1", "2"): "numbers from 1",
    ("1", "01", "2"): "'1' and '01' are one",
    ("3", "2", "0002"): "'2' and '0002' are one",
}
MAPS = [
    ("json", {"bm25": "x", "age": "x"}, "'bm25' and 'age' with one name, 'x'"),
    ("json", {"bm25": "age"}, "'bm25' and 'age' with one name, 'age'"),
    ("json", {"bm25": "x", 0: "y"}, "has the feature 'bm25' twice"),
    ("json", {"agee": "x"}, "'agee', which the model does not know; did you mean 'age'?"),
    ("json", {"zzzzzz": "x"}, "does not know$"),
    ("json", {3: "x"}, "has the feature 3; those of the model are 0 to 2"),
    ("json", {"age": ""}, "gives 'age' the name ''"),
    ("json", {"age": None}, "gives 'age' the name None"),
    ("json", {True: "x"}, "has True, which the model does not know"),
    ("es", "nowhere", "nowhere"),
    ("es", ["x"], "feature_map must be a mapping .* got list"),
    ("es", {"age": "x" * 505}, "it has 505 bytes, at most 504 are stored"),
    *(
        (target, dict(zip(OWN, names, strict=True)), f"{target} .*{words}")
        for target in BY_NUMBER
        for names, words in NUMBERS.items()
    ),
    # What no request carries.
    *(
        (target, {"age": name}, "name")
        for target in BY_NAME
        for name in ("", " ", "a\x00b", "a\nb", "a\x7fb", " a", "a\t")
    ),
]
REFUSED = [
    ("elasticsaerch", {}, "'elasticsaerch'; did you mean 'elasticsearch'.*solr"),
    ("opensarch", {}, "'opensarch'; did you mean 'opensearch'"),
    ("xyz", {}, "unknown export target 'xyz'; there are elasticsearch"),
    ("solr", {"shop": "a"}, "solr has no option 'shop'; it has store, collection"),
    ("ranklib", {"a": 1}, "ranklib has no option 'a'; it has none"),
    ("onnx", {"precision": "half"}, "precision must be 'float32' or .* got 'half'"),
    ("vespa", {"phase": "third"}, "phase must be 'first' or 'second', got 'third'"),
    ("vespa", {"name": "default"}, "'default' would inherit from itself"),
    ("vespa", {"name": "1a"}, "vespa cannot take the profile name .*'1' at place 0"),
    ("vespa", {"name": "a b"}, "the profile name .*' ' at place 1"),
    *(("es", {"name": name}, "name must be a text") for name in ("", " ", None, 3)),
    *((target, {"feature_map": given}, words) for target, given, words in MAPS),
    # What stands in a request must not change it.
    *(
        (target, {option: name}, f"{target} cannot take the .* name")
        for target, option in REQUESTED
        for name in SHELL
    ),
]


@pytest.mark.parametrize(("target", "options", "words"), REFUSED)
def test_what_an_engine_cannot_take_is_refused(target, options, words):
    with pytest.raises((TypeError, ValueError, FileNotFoundError), match=words):
        MODEL.export(target, **options)


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


def test_names_that_are_taken():
    MODEL.export("es", feature_map={"age": "x" * 504})
    text = MODEL.export("vespa", name="a-b_1", inherits="unranked").text
    assert "rank-profile a-b_1 inherits unranked " in text


def test_models_with_one_name_twice_need_a_map():
    model = LinearModel([1.0, 2.0], ["a", "a"])
    with pytest.raises(ValueError, match="columns 0 and 1 of the model are both called 'a'"):
        model.export("json")
