"""Tables as text, Markdown and HTML."""

import xml.etree.ElementTree as ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linrank.system.tables import Column, Table

COLUMNS = [Column("method", "left"), Column("ndcg@10")]
TABLE = Table(COLUMNS, [["RankSVM", "0.5"], ["a|b <i>", "0.4321"]], "Test", ["higher is better"])


def test_text_is_padded():
    assert TABLE.to_text().splitlines() == [
        "Test",
        "",
        "method   ndcg@10",
        "RankSVM      0.5",
        "a|b <i>   0.4321",
        "higher is better",
    ]


def test_columns_that_do_not_fit_come_below():
    columns = [Column("method", "left"), *map(Column, ("mean", "low", "high"))]
    table = Table(columns, [["a", "1", "2", "3"], ["bc", "4", "5", "6"]], "a title of words")
    assert table.to_text(17).splitlines() == [
        "a title of words",
        "",
        "method  mean  low",
        "a          1    2",
        "bc         4    5",
        "",
        "method  high",
        "a          3",
        "bc         6",
    ]
    assert table.to_text(100) == table.to_text()
    assert table.to_text(1).count("method") == 3  # one column at a time, however wide


def test_markdown_escapes_bars_and_aligns():
    lines = TABLE.to_markdown().splitlines()
    assert lines[2:4] == ["| method   | ndcg@10 |", "|----------|--------:|"]
    assert "| a\\|b <i> |  0.4321 |" in lines
    assert lines[-1] == "- higher is better"

    lines = Table([Column("a|b", "left"), Column("c")], [["1", "2"]]).to_markdown().splitlines()
    assert lines == ["| a\\|b | c |", "|------|--:|", "| 1    | 2 |"]


def test_wide_characters_take_two_columns():
    lines = Table(COLUMNS, [["検索", "1"], ["é", "2"]]).to_text().splitlines()
    assert lines[1] == "検索          1"
    assert lines[2] == "é             2"


def test_a_row_with_a_missing_cell_is_refused():
    with pytest.raises(ValueError, match="row 1 of the table has 1 cells for 2 columns"):
        Table(COLUMNS, [["a", "b"], ["c"]])


@given(st.text(alphabet=st.characters(codec="utf-8", exclude_categories=["C"])))
def test_html_gives_back_any_text(text):
    root = ElementTree.fromstring(Table([Column(text)], [[text]], text).to_html())
    assert [node.text or "" for node in root.iter() if node.tag in ("td", "th", "caption")] == (
        [text, text, text] if text else ["", ""]
    )
