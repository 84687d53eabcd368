"""Commands on tables: which column is what, features by name, notes and errors."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest

import linrank
from linrank.cli.main import main
from linrank.cli.options import FORMATS
from linrank.data.synthetic import make_ranking
from linrank.io import formats
from table_files import as_table, write_table


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tables")
    data = make_ranking(25, 8, 4, random_state=2)
    table = as_table(data, url=["u"] * data.n_rows)
    write_table(table, folder / "t.parquet")
    write_table(table, folder / "t.csv")
    assert main(["train", str(folder / "t.parquet"), str(folder / "m.json"), "-q"]) == 0
    return folder, table


def test_formats_are_those_of_the_library():
    assert formats.READ == FORMATS


def test_scores_follow_the_names_of_columns(place, tmp_path, cli):
    folder, table = place
    expected = cli("predict", folder / "t.parquet", folder / "m.json", "-q").out
    assert len(expected.split()) == table.num_rows
    other = table.select(["f3", "f1", "url", "f4", "qid", "f2"])
    other = other.append_column("extra", pa.array(np.ones(len(table))))
    for ending in ("parquet", "csv", "arrow"):
        path = write_table(other, tmp_path / f"o.{ending}")
        found = cli("predict", path, folder / "m.json")
        assert found.out == expected
        assert "left out: extra (the model does not know it)" in found.err
    path = write_table(other.drop_columns(["f2"]), tmp_path / "less.parquet")
    found = cli("predict", path, folder / "m.json", status=1)
    assert "no column 'f2', a feature that the model knows" in found.err


@pytest.mark.parametrize(
    "command",
    [
        ["train", "{t}", "{out}.json"],
        ["tune", "{t}", "--folds", "2"],
        ["compare", "--methods", "ranksvm", "{t}", "{t}"],
        pytest.param(
            ["report", "--train", "{t}", "{t}", "-o", "{out}.html"], marks=pytest.mark.slow
        ),
    ],
    ids=lambda command: command[0],
)
def test_the_role_of_every_column_is_printed_once(place, tmp_path, command, cli):
    _, table = place
    odd = table.append_column("user_id", pa.array(np.arange(len(table))))
    odd = odd.append_column("category", pa.array(["c"] * len(table)))
    write_table(odd, tmp_path / "t.csv")
    found = cli(*(a.format(t=tmp_path / "t.csv", out=tmp_path / "out") for a in command))
    line = (
        "columns   label 'label', query 'qid', document 'url', weight -, position -, 4 features; "
        "left out: user_id (an id), category (text)\n"
    )
    assert found.err.count(line) == 1
    assert "warning" in found.err
    assert "'user_id' (an id) is left out" in found.err
    assert "name them in --features ('*,user_id')" in found.err


@pytest.mark.parametrize(("name", "option"), [("weight", "--weight"), ("rank", "--position")])
def test_a_weight_or_a_rank_is_asked_for_by_the_option(place, tmp_path, name, option, cli):
    _, table = place
    path = tmp_path / "t.parquet"
    write_table(table.append_column(name, pa.array(np.arange(1, len(table) + 1))), path)
    found = cli("train", path, tmp_path / "m.json", status=1)
    assert f"'{name}' may hold the {option[2:]} of each row, or a feature; say " in found.err
    assert f"say {option} {name}, or {option} none if it is a feature" in found.err
    cli("train", path, tmp_path / "m.json", option, name)
    cli("train", path, tmp_path / "n.json", option, "none")
    features = [linrank.load_model(tmp_path / f"{m}.json").n_features for m in "mn"]
    assert features == [4, 5]


def test_loading_warns_of_ids_where_it_is_called():
    frame = pa.table(
        {"label": [1, 0], "qid": [1, 1], "x": [1.0, 2.0], "item": [1, 2], "id": [3, 4]}
    )
    with pytest.warns(UserWarning, match=r"'id' \(an id\) is left out.*in features=") as caught:
        assert linrank.load(frame).feature_names == ("x", "item")
    assert caught[0].filename == __file__


def test_all_commands_take_tables(place, cli):
    folder, table = place
    data, model = folder / "t.parquet", folder / "m.json"
    measures = cli("evaluate", data, "--model", model, "--json").json
    assert measures == json.loads(
        cli("evaluate", folder / "t.csv", "--model", model, "--json").out
    ) | {"data": measures["data"]}
    assert str(table.num_rows) in cli("inspect", data).out.replace(",", "")
    tuned = folder / "tuned.json"
    cli("tune", data, "-o", tuned, "--Cs", "0.1,1", "--valid", folder / "t.csv", "-q")
    assert linrank.load_model(tuned).feature_names == ["f1", "f2", "f3", "f4"]
    cli("train", data, tuned, "--valid", folder / "t.csv", "-q")
    cli("compare", data, "--models", model, tuned, "-q")


def test_columns_are_told(place, tmp_path, cli):
    _, table = place
    renamed = table.rename_columns(["stars", "session", "a", "b", "c", "d", "doc"])
    path = write_table(renamed, tmp_path / "t.parquet")
    model = tmp_path / "m.json"
    found = cli("train", path, model, status=1)
    assert "choose with --label, or --label none" in found.err
    told = ["--label", "stars", "--qid", "session", "--docid", "doc"]
    cli("train", path, model, *told, "--features", "?", "-q")
    assert linrank.load_model(model).feature_names == ["a", "b", "c", "d"]
    cli("train", path, model, *told, "--features", "*,!d", "-q")
    assert linrank.load_model(model).feature_names == ["a", "b", "c"]


def test_an_id_left_among_the_features_is_a_leak(place, tmp_path, cli):
    folder, _ = place
    found = cli("train", folder / "t.parquet", tmp_path / "m.json", "--qid", "none", status=1)
    assert "'qid' would be a feature" in found.err
    assert "give --qid qid" in found.err
    assert not (tmp_path / "m.json").exists()


def test_missing_values_are_part_of_the_model(tmp_path, cli):
    rng = np.random.default_rng(0)
    x = rng.normal(size=60)
    columns = {"label": (x > 0).astype(int), "a": np.where(rng.random(60) < 0.2, np.nan, x)}
    path = write_table(pa.Table.from_pydict(columns), tmp_path / "t.csv")
    model = tmp_path / "m.json"
    found = cli("train", path, model, status=1)
    assert "say what stands in for missing values with --missing zero" in found.err
    cli("train", path, model, "--missing", "mean", "-q")
    assert linrank.load_model(model).missing.kind == "mean"
    scores = cli("predict", path, model, "-q").out.split()
    assert len(scores) == 60


def test_notes_and_sidecars(tmp_path, cli):
    (tmp_path / "t.txt").write_text("1 1:1\n0 1:2\n1 1:3\n0 1:1\n")
    (tmp_path / "t.txt.query").write_text("2\n2\n")
    found = cli("train", tmp_path / "t.txt", tmp_path / "m.json")
    assert "note      read beside" in found.err
    assert linrank.load_model(tmp_path / "m.json").training["n_queries"] == 2
    cli("train", tmp_path / "t.txt", tmp_path / "m.json", "--no-sidecars", "-q")
    assert linrank.load_model(tmp_path / "m.json").training["n_queries"] == 1
    (tmp_path / "t.txt").write_text("1 qid:1 1:1\n0 qid:1 1:2\n1 qid:2 1:3\n0 qid:2 1:1\n")
    found = cli("train", tmp_path / "t.txt", tmp_path / "m.json", status=1)
    assert "ignore the files beside the data with --no-sidecars" in found.err


def test_options_that_do_not_apply(place, tmp_path, cli):
    folder, _ = place
    (tmp_path / "t.txt").write_text("1 1:1\n0 1:2\n")
    found = cli("inspect", tmp_path / "t.txt", "--label", "y", status=1)
    assert "--label is for tables" in found.err
    linrank.Store.of(tmp_path / "store", linrank.load(tmp_path / "t.txt"))
    found = cli("inspect", tmp_path / "store", "--qid", "q", status=1)
    assert "--qid is for tables, and" in found.err
    found = cli("inspect", folder / "t.parquet", "--index-base", "0", status=1)
    assert "leave out --index-base" in found.err


def test_scores_are_measured_whatever_the_features_lack(tmp_path, cli):
    (tmp_path / "t.csv").write_text("label,qid,f\n0,1,\n1,1,2\n")
    (tmp_path / "scores").write_text("0\n1\n")
    found = cli("evaluate", tmp_path / "t.csv", tmp_path / "scores", "-m", "map")
    assert "1.0000" in found.out
