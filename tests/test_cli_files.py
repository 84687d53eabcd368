"""Commands on tables, stores and conversions: which column is what, features by name, notes."""

import gzip
import io
import json
import os
import re
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from numpy.testing import assert_array_equal

import linrank
from linrank import Dataset, Store, load, load_model
from linrank.cli.main import main
from linrank.cli.options import FORMATS
from linrank.data.synthetic import make_ranking
from linrank.io import formats
from linrank.reports.material import fill_missing_values
from table_files import as_table, write_table

POLICIES = ("zero", "mean", "indicator")


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
    model = folder / "m.json"
    expected = cli(f"predict {folder / 't.parquet'} {model} -q").out
    assert len(expected.split()) == table.num_rows
    other = table.select(["f3", "f1", "url", "f4", "qid", "f2"])
    other = other.append_column("extra", pa.array(np.ones(len(table))))
    for ending in ("parquet", "csv", "arrow"):
        out, err = cli(f"predict {write_table(other, tmp_path / f'o.{ending}')} {model}")
        assert out == expected
        assert "left out: extra (the model does not know it)" in err
    path = write_table(other.drop_columns(["f2"]), tmp_path / "less.parquet")
    err = cli(f"predict {path} {model}", status=1).err
    assert "no column 'f2', a feature that the model knows" in err


@pytest.mark.parametrize(
    "command",
    [
        "train {t} {out}.json",
        "tune {t} --folds 2",
        "compare --methods ranksvm {t} {t}",
        pytest.param("report --train {t} {t} -o {out}.html", marks=pytest.mark.slow),
    ],
)
def test_the_role_of_every_column_is_printed_once(place, tmp_path, command, cli):
    _, table = place
    odd = table.append_column("user_id", pa.array(np.arange(len(table))))
    odd = odd.append_column("category", pa.array(["c"] * len(table)))
    err = cli(command, t=write_table(odd, tmp_path / "t.csv"), out=tmp_path / "out").err
    line = (
        "columns   label 'label', query 'qid', document 'url', weight -, position -, 4 features; "
        "left out: user_id (an id), category (text)\n"
    )
    assert err.count(line) == 1
    assert "warning" in err
    assert "'user_id' (an id) is left out" in err
    assert "name them in --features ('*,user_id')" in err


@pytest.mark.parametrize(("name", "option"), [("weight", "--weight"), ("rank", "--position")])
def test_a_weight_or_a_rank_is_asked_for_by_the_option(place, tmp_path, name, option, cli):
    _, table = place
    wide = table.append_column(name, pa.array(np.arange(1, len(table) + 1)))
    path, model = write_table(wide, tmp_path / "t.parquet"), tmp_path / "m.json"
    for role, n_features in ((name, 4), ("none", 5)):
        cli(f"train {path} {model} {option} {role}")
        assert linrank.load_model(model).n_features == n_features


def test_loading_warns_of_ids_where_it_is_called():
    columns = {"label": [1, 0], "qid": [1, 1], "x": [1.0, 2.0], "item": [1, 2], "id": [3, 4]}
    with pytest.warns(UserWarning, match=r"'id' \(an id\) is left out.*in features=") as caught:
        assert linrank.load(pa.table(columns)).feature_names == ("x", "item")
    assert caught[0].filename == __file__


def test_all_commands_take_tables(place, tmp_path, cli):
    folder, table = place
    data, text, model = (folder / name for name in ("t.parquet", "t.csv", "m.json"))
    measures, others = (cli(f"evaluate {d} --model {model} --json").json for d in (data, text))
    assert measures == others | {"data": measures["data"]}
    assert str(table.num_rows) in cli(f"inspect {data}").out.replace(",", "")
    tuned = tmp_path / "tuned.json"
    cli(f"tune {data} -o {tuned} --Cs 0.1,1 --valid {text} -q")
    assert linrank.load_model(tuned).feature_names == ["f1", "f2", "f3", "f4"]
    cli(f"train {data} {tuned} --valid {text} -q")
    cli(f"compare {data} --models {model} {tuned} -q")


def test_columns_are_told(place, tmp_path, cli):
    _, table = place
    renamed = table.rename_columns(["stars", "session", "a", "b", "c", "d", "doc"])
    path, model = write_table(renamed, tmp_path / "t.parquet"), tmp_path / "m.json"
    for features, names in (("?", list("abcd")), ("*,!d", list("abc"))):
        told = f"--label stars --qid session --docid doc --features '{features}'"
        cli(f"train {path} {model} {told} -q")
        assert linrank.load_model(model).feature_names == names


def test_notes_and_sidecars(tmp_path, cli):
    path, model = tmp_path / "t.txt", tmp_path / "m.json"
    path.write_text("1 1:1\n0 1:2\n1 1:3\n0 1:1\n")
    (tmp_path / "t.txt.query").write_text("2\n2\n")
    assert "note      read beside" in cli(f"train {path} {model}").err
    assert linrank.load_model(model).training["n_queries"] == 2
    cli(f"train {path} {model} --no-sidecars -q")
    assert linrank.load_model(model).training["n_queries"] == 1


def test_numbers_are_names_of_columns_where_no_two_are_alike(tmp_path, cli):
    (tmp_path / "a.csv").write_text("label,qid,0,1\n1,1,2,3\n0,1,4,5\n")
    assert cli(f"inspect {tmp_path / 'a.csv'} --json").json["features"] == 2


def test_a_table_without_queries_is_noted(tmp_path, cli):
    path = tmp_path / "a.csv"
    path.write_text("label,f\n1,2\n0,4\n")
    assert "note      no column holds query ids (by name qid, " in cli(f"inspect {path}").err
    assert "note" not in cli(f"inspect {path} --qid none").err


# ---- missing values -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def gaps(tmp_path_factory):
    """Train and test as Parquet with gaps, a model of each policy, and scores, by name."""
    folder, paths = tmp_path_factory.mktemp("missing"), {}
    rng = np.random.default_rng(0)
    for name, n_rows in (("table", 300), ("test", 120)):
        X = rng.normal(2.0, 1.0, (n_rows, 3)).astype(np.float32)
        y = np.clip(np.round(X[:, 0] - X[:, 1]), -1, 1).astype(int) + 1
        X[rng.random(n_rows) < 0.3, 1] = np.nan
        rows = np.arange(n_rows)
        columns = {"rel": y, "qid": rows // 10, "doc_id": rows.astype(str)}
        columns |= {f"f{j}": pa.array(X[:, j], from_pandas=True) for j in range(3)}
        paths[name] = str(write_table(pa.table(columns), folder / f"{name}.parquet"))
    for policy in POLICIES:
        paths[policy] = str(folder / f"{policy}.json")
        assert main(["train", paths["table"], paths[policy], "--missing", policy, "-q"]) == 0
        assert linrank.load_model(paths[policy]).missing.kind == policy
    paths["scored"] = str(folder / "scores.txt")
    assert main(["predict", paths["test"], paths["mean"], "-o", paths["scored"], "-q"]) == 0
    return paths


def test_inspect_tells_of_missing_values(gaps, cli):
    report = cli("inspect {table} --json", **gaps).json
    n_missing = pa.parquet.read_table(gaps["table"])["f1"].null_count
    assert report["missing"] == {"f1": n_missing}
    assert report["findings"][0]["code"] == "missing-values"
    assert "[missing-values] values are missing of 'f1'" in cli("inspect {table}", **gaps).out


def test_features_do_not_matter_where_scores_are_given_nor_for_judgments(gaps, tmp_path, cli):
    by_scores = cli("evaluate {test} {scored} --json", **gaps).json["metrics"]
    assert cli("evaluate {test} --model {mean} --json", **gaps).json["metrics"] == by_scores
    qrels = tmp_path / "test.qrels"
    cli(f"convert {{test}} {qrels} -q", **gaps)
    assert len(qrels.read_text().splitlines()) == 120


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.usefixtures("plain")
def test_reports_fill_in_as_the_training_data_or_the_model(gaps, tmp_path, policy, cli):
    path = tmp_path / "page.html"
    trained = f"--missing {policy} --Cs 0.01,0.1 --folds 2"
    judged = f"--model {gaps[policy]}"
    for options in (trained, judged, f"{judged} --against {gaps['mean']}"):
        line = f"report {{test}} --train {{table}} {options} -o {path} -q"
        assert cli(line, **gaps).err == ""
        page = path.read_text()
        assert ">nan<" not in page
        assert options != trained or ("missing(f1)" in page) == (policy == "indicator")


def test_parts_filled_by_themselves_are_refused():
    X = np.array([[1.0, np.nan], [2.0, 4.0], [3.0, 5.0]])
    train, test = (Dataset.of(rows, np.arange(len(rows)), missing="mean") for rows in (X, X[:2]))
    with pytest.raises(ValueError, match="not as those of the training data; load it with"):
        fill_missing_values({"train": train, "test": test})


@pytest.mark.parametrize("policy", POLICIES)
def test_a_store_trains_as_the_table_that_it_was_made_of(gaps, tmp_path, policy, cli):
    """convert --missing, train, predict: the scores of a fresh table with gaps are the same."""
    store, model, lines = (str(tmp_path / name) for name in ("store", "model.json", "lines.txt"))
    err = cli(f"convert {{table}} -o {store} --missing {policy}", **gaps).err
    assert err.count("columns  ") == 1
    scores = []
    for data, options in ((gaps["table"], f"--missing {policy}"), (store, "")):
        cli(f"train {data} {model} --tol 1e-9 {options}")
        cli(f"predict {{test}} {model} -o {lines}", **gaps)
        scores.append(np.loadtxt(lines))
    np.testing.assert_allclose(*scores, rtol=1e-4, atol=1e-5)
    cli(f"predict {store} {model} -o {lines}")
    assert len(np.loadtxt(lines)) == 300
    other = "mean" if policy == "zero" else "zero"
    err = cli(f"train {store} {model} --missing {other}", status=1).err
    assert f"by --missing {policy} before; leave it out" in err


# ---- stores, and training within a limit of memory -----------------------------------------------


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    data = linrank.make_ranking(n_queries=80, n_features=5, random_state=0)
    path = tmp_path_factory.mktemp("stores") / "store"
    return Store.write(path, data.X, data.y, qid=data.qid, chunk_bytes=5_000)


@pytest.mark.parametrize("options", ["", "--method domination", "--method sgd"])
def test_every_command_takes_a_store_in_the_place_of_its_text(files, tmp_path, options, cli):
    store, model, found = tmp_path / "store", tmp_path / "m.json", []
    cli(f"convert {{train}} {store} --chunk-size 2kB -q", **files)
    assert Store(store).n_chunks > 3
    for data in (files["train"], store):
        cli(f"train {data} {model} {options} -q")
        scores = cli(f"predict {data} {model} -q").out
        measures = cli(f"evaluate {data} --model {model} --json").json["metrics"]
        shown = {**cli(f"inspect {data} --json").json, "source": ""}
        found.append((load_model(model).coef.tolist(), scores, measures, shown))
    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("flags", "ranker"),
    [
        ("--C 0.1", linrank.RankSVM(C=0.1)),
        ("--loss hinge --scale standard", linrank.RankSVM(loss="hinge", scale="standard")),
        ("--method domination --penalty l2 --alpha 2", linrank.DominationRanker("l2", 2.0)),
        (
            "--method sgd --n-steps 5000 --seed 3 --passes 2",
            linrank.SGDRanker(n_steps=5000, random_state=3, passes=2),
        ),
    ],
)
def test_within_a_limit_it_trains_what_the_estimator_trains(flags, ranker, store, tmp_path, cli):
    line = f"train {store.path} {tmp_path / 'm.json'} --memory-limit 64GB --json {flags}"
    told, found = cli(line).json, load_model(tmp_path / "m.json")
    fitted = ranker.set_params(memory_limit="64GB").fit(store)
    assert_array_equal(found.coef, fitted.coef_)
    assert told["data"]["chunks"] == store.n_chunks > 1
    expected = {"n_rows": store.n_rows, "n_queries": 80, "n_pairs": fitted.n_pairs_}
    assert {name: found.training[name] for name in expected} == expected


@pytest.mark.parametrize("limit", [None, "2GB"])
@pytest.mark.parametrize(
    ("flags", "ranker"),
    [
        ("--Cs 0.01,0.1,1", linrank.RankSVMCV([0.01, 0.1, 1.0], cv=3)),
        (
            "--method domination --penalty l2 --n-alphas 3",
            linrank.DominationRankerCV("l2", n_alphas=3, cv=3),
        ),
    ],
)
def test_tune_chooses_what_the_estimator_chooses(flags, ranker, limit, store, tmp_path, cli):
    asked = "" if limit is None else f"--memory-limit {limit}"
    line = f"tune {store.path} -o {tmp_path / 'm.json'} {flags} --folds 3 --json {asked}"
    told, fitted = cli(line).json, ranker.set_params(memory_limit=limit).fit(store)
    np.testing.assert_allclose(told["path"]["scores"], fitted.scores_)
    np.testing.assert_allclose(load_model(tmp_path / "m.json").coef, fitted.coef_)
    assert told["data"].get("chunks", 0) == (0 if limit is None else store.n_chunks)


# ---- convert -------------------------------------------------------------------------------------

COMMAND = [sys.executable, "-m", "linrank", "convert"]


def test_a_file_becomes_a_store(files, tmp_path, cli):
    store, data = tmp_path / "store", load(files["train"])
    out, err = cli(f"convert {files['train']} {store} --json")
    report = json.loads(out)
    assert (report["rows"], report["features"], report["passes"]) == (data.n_rows, 6, 1)
    assert report["bytes_read"] == os.path.getsize(files["train"])
    assert report["pairs"] == data.queries.n_pairs
    assert err.startswith(f"read      {files['train']}: ")
    assert f"wrote     {store}: {data.n_rows:,} rows, 40 queries" in err
    assert_array_equal(Store(store).dataset().X, data.X)
    assert Store(store).dtype == report["dtype"] == "float32"  # as linrank.load has it
    err = cli(f"convert {files['valid']} {store}", status=1).err
    assert "name another folder, or overwrite it (--force)" in err


def test_options_reach_the_conversion(files, tmp_path, cli):
    store, packed = tmp_path / "store", tmp_path / "valid.gz"
    cli(f"convert {files['train']} {store} -q")
    packed.write_bytes(gzip.compress(files["valid"].read_bytes()))
    options = "--storage csr --dtype float64 --n-features 9 --index-base 0 --memory-limit 128MiB"
    options += " --chunk-size 10kB -j 1 -q --force"
    assert cli(f"convert {files['train']} {packed} {store} {options}").err == ""
    found, data = Store(store), load(files["train"], dtype="float64", zero_based=True)
    assert (found.storage, found.dtype, found.n_features) == ("csr", np.float64, 9)
    assert (found.index_base, found.n_chunks > 1) == (0, True)
    assert found.n_rows == data.n_rows + load(packed).n_rows


def test_passes_are_told(tmp_path, cli):
    path = tmp_path / "data"
    path.write_text("1 qid:1 1:1\n" * 200_000 + "0 qid:2 1:1\n1 qid:1 1:3\n")
    err = cli(f"convert {path} {tmp_path / 'store'} -v").err
    assert "pass 2: a line asked for another layout or order" in err


def test_files_of_any_format(files, tmp_path, cli):
    data = load(files["train"])
    previous = files["train"]
    for name in ("a.parquet", "a.csv", "a.arrow", "a.store", "a.tsv.gz", "a.txt"):
        out = cli("convert", previous, tmp_path / name, "--json")
        report = json.loads(out.out)
        assert (report["rows"], report["features"]) == (data.n_rows, 6)
        assert f"wrote     {tmp_path / name}: " in out.err
        previous = str(tmp_path / name)
        assert load(previous).X.tobytes() == data.X.tobytes()
    assert report["left_out"] == ["the names of the features"]
    assert "note      svmlight has no place for the names of the features" in out.err
    err = cli("convert", files["train"], previous, status=1).err
    assert "is there already; name another, or overwrite it (--force)" in err
    assert cli("convert", files["train"], previous, "--force", "-q").err == ""


def test_standard_streams(files):
    command = [*COMMAND, "-", "-", "--to"]
    text, asked = files["train"].read_bytes(), {"capture_output": True, "check": True}
    table = subprocess.run([*command, "parquet"], input=text, **asked)
    back = subprocess.run([*command, "svmlight", "-q"], input=table.stdout, **asked)
    found = load(io.BytesIO(back.stdout))
    assert found.X.tobytes() == load(files["train"]).X.tobytes()
    assert back.stderr == b""
    assert b"wrote     -: parquet; dense float32" in table.stderr


def test_labels_from_judgments(files, tmp_path, cli):
    """A model of the labels as qrels is that of the labels, however the rows are read."""
    qrels, model, wrong = (tmp_path / name for name in ("a.qrels", "model.json", "wrong.txt"))
    cli(f"convert {files['train']} {qrels} -q")
    cli(f"convert {files['train']} {tmp_path / 'store'} -q")
    wrong.write_text(re.sub("^[^ ]+", "0", files["train"].read_text(), flags=re.MULTILINE))
    for data in (files["train"], wrong, tmp_path / "store"):
        cli(f"train {data} {model} --qrels {qrels} -q")
        assert_array_equal(load_model(model).coef, load_model(files["model"]).coef)
