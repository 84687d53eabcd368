"""What features are called in an engine, from a mapping or a file."""

from __future__ import annotations

import json

import pytest

from linrank import LinearModel
from linrank.export.form import Form
from linrank.export.names import engine_names, read_feature_map

NAMES = ("bm25", "age", "clicks")


def test_names_are_mapped_and_others_stay():
    assert engine_names(NAMES, 3, 0, {"age": "document_age"}) == ["bm25", "document_age", "clicks"]


def test_numbers_are_those_of_the_training_file():
    assert engine_names(None, 3, 1, {1: "a", "3": "c"}) == ["a", "f2", "c"]
    assert engine_names(NAMES, 3, 0, {0: "a"}) == ["a", "age", "clicks"]
    assert engine_names(None, 2, 0, {"f1": "b"}) == ["f0", "b"]


def test_a_name_that_looks_like_a_number_is_a_name_first():
    assert engine_names(("2", "1"), 2, 1, {"1": "x"}) == ["2", "x"]


def test_two_features_may_swap_names():
    assert engine_names(("a", "b"), 2, 0, {"a": "b", "b": "a"}) == ["b", "a"]


def test_numbers_as_names_become_texts():
    assert engine_names(NAMES, 3, 0, {"bm25": 7}) == ["7", "age", "clicks"]


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
        engine_names(NAMES, 3, 0, given)


def test_models_with_one_name_twice_need_a_map():
    with pytest.raises(ValueError, match="columns 0 and 1 of the model are both called 'a'"):
        engine_names(("a", "a"), 2, 0, None)
    assert engine_names(("a", "a"), 2, 0, {0: "b"}) == ["b", "a"]


def test_files_of_both_kinds(tmp_path):
    columns, objects = tmp_path / "map.txt", tmp_path / "map.json"
    columns.write_text("# model\tengine\nbm25  title_bm25\n\nold age\tdocument age\n")
    found = {"bm25": "title_bm25", "old age": "document age"}
    objects.write_text(json.dumps(found))
    assert read_feature_map(columns) == found
    assert read_feature_map(objects) == found
    form = Form.of(LinearModel([1.0, 2.0], ["bm25", "old age"]), feature_map=columns)
    assert form.names == ("title_bm25", "document age")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("a b c\n", "line 1 has 3 columns"),
        ("a b\n\nc\n", "line 3 has 1 column;"),
        ("a b\na c\n", "has the feature 'a' twice"),
        ('{"a": "b", "a": "c"}', "has the feature 'a' twice"),
        ('{"a": ', r"map:1:7: begins like JSON and is none \(Expecting value\)"),
    ],
)
def test_bad_files_are_named(tmp_path, content, words):
    path = tmp_path / "map"
    path.write_text(content)
    with pytest.raises(ValueError, match=words) as caught:
        read_feature_map(str(path))
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("content", ['{"a": "title"}', "a title\n"])
def test_a_mark_at_the_start_of_a_file_is_no_part_of_a_name(tmp_path, content):
    path = tmp_path / "map"
    path.write_text(content, encoding="utf-8-sig")
    assert read_feature_map(path) == {"a": "title"}


def test_a_separator_that_is_no_line_end_is_part_of_a_name(tmp_path):
    path = tmp_path / "map"
    path.write_text("a\u2028b\ttitle\n", encoding="utf-8")
    assert read_feature_map(path) == {"a\u2028b": "title"}


@pytest.mark.parametrize("content", [b"a \xff\n", b'{"a":' * 100_000])
def test_a_damaged_file_is_named(tmp_path, content):
    path = tmp_path / "map"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=str(path)):
        read_feature_map(path)
