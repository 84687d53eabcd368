"""Names of features: from a mapping or a file into the engine, where they arrive as they are."""

from __future__ import annotations

import numpy as np
import pytest
from serving import SCORERS, exported, scores_in

from linrank import LinearModel
from linrank.export import TARGETS
from linrank.export.form import Form
from linrank.export.names import engine_names, read_feature_map

ROWS = np.array([[1.0, 2.0, 3.0], [2.0, -3.0, 0.5], [0.0, 0.0, 1.0]])
COEF = (1.0, -2.0, 0.25)
MODEL = LinearModel(COEF, ("a", "b", "c"))
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
    moved = exported(MODEL, target, feature_map={"a": "3", "b": "1", "c": "5"})
    rows = np.zeros((len(ROWS), 6))
    rows[:, [2, 0, 4]] = ROWS
    columns = {str(j): column for j, column in enumerate(rows.T)}
    np.testing.assert_allclose(SCORERS[target](moved, columns), MODEL.predict(ROWS))


@pytest.mark.parametrize("target", TARGETS)
def test_the_instructions_name_what_there_is(target):
    artefact = exported(MODEL, target, name="my_model")
    assert artefact.target == target
    assert next(iter(artefact.files)) in artefact.instructions
    assert all(name in artefact.instructions for name in ("a", "b", "c"))
    assert 100 < len(artefact.instructions) < 4000


@pytest.mark.parametrize("target", ["ranklib", "liblinear"])
def test_instructions_of_numbers_keep_a_name_on_its_line(target):
    told = exported(LinearModel(COEF, ("a\n  rm -rf .", "b\x1b[2J", "c d")), target).instructions
    assert r"'1 a\n  rm -rf .', '2 b\x1b[2J', 3 c d." in told


# ---- maps ---------------------------------------------------------------------------------------

OWN = ("bm25", "age", "clicks")


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
