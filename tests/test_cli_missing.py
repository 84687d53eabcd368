"""Tables with missing values through the commands: looked at, judged, reported on."""

from __future__ import annotations

import json

import numpy as np
import pytest

from linrank import Dataset
from linrank.cli.main import main
from linrank.reports.material import filled_in

pa = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")
POLICIES = ("zero", "mean", "indicator")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Train and test as Parquet with gaps, a model of each policy, and scores."""
    folder = tmp_path_factory.mktemp("missing")
    rng = np.random.default_rng(0)
    for name, n_rows in (("train", 300), ("test", 120)):
        X = rng.normal(2.0, 1.0, (n_rows, 3)).astype(np.float32)
        y = np.clip(np.round(X[:, 0] - X[:, 1]), -1, 1).astype(int) + 1
        X[rng.random(n_rows) < 0.3, 1] = np.nan
        columns = {
            "rel": y,
            "qid": np.arange(n_rows) // 10,
            "doc_id": np.arange(n_rows).astype(str),
        }
        table = pa.table(columns | {f"f{j}": pa.array(X[:, j], from_pandas=True) for j in range(3)})
        parquet.write_table(table, folder / f"{name}.parquet")
    for policy in POLICIES:
        run(folder, "train", "train.parquet", f"{policy}.json", "--missing", policy, "-q")
    run(folder, "predict", "test.parquet", "mean.json", "-o", "scores.txt", "-q")
    return folder


def run(folder, *arguments, status=0):
    """Run a command on files of the folder."""
    files = (".parquet", ".json", ".txt", ".html", ".csv", ".qrels")
    given = [str(folder / a) if a.endswith(files) else a for a in arguments]
    assert main(given) == status


def told(capsys):
    return capsys.readouterr().err.strip().split("\n")[-1]


def test_inspect_tells_of_missing_values(folder, capsys):
    run(folder, "inspect", "train.parquet", "--json")
    report = json.loads(capsys.readouterr().out)
    n_missing = parquet.read_table(folder / "train.parquet")["f1"].null_count
    assert report["missing"] == {"f1": n_missing}
    assert report["findings"][0]["code"] == "missing-values"
    run(folder, "inspect", "train.parquet")
    assert "[missing-values] values are missing of 'f1'" in capsys.readouterr().out


def test_features_do_not_matter_where_scores_are_given(folder, capsys):
    run(folder, "evaluate", "test.parquet", "scores.txt", "--json")
    by_scores = json.loads(capsys.readouterr().out)["metrics"]
    run(folder, "evaluate", "test.parquet", "--model", "mean.json", "--json")
    assert json.loads(capsys.readouterr().out)["metrics"] == by_scores


def test_nor_for_judgements(folder):
    run(folder, "convert", "test.parquet", "test.qrels", "-q")
    assert len((folder / "test.qrels").read_text().splitlines()) == 120


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.usefixtures("plain")
def test_reports_fill_in_as_the_training_data(folder, policy, capsys):
    grid = ("--Cs", "0.01,0.1", "--folds", "2")
    options = ("--missing", policy, *grid, "-o", "page.html", "-q", "--json")
    run(folder, "report", "test.parquet", "--train", "train.parquet", *options)
    assert capsys.readouterr().err == ""
    page = (folder / "page.html").read_text()
    assert ("missing(f1)" in page) == (policy == "indicator")
    assert ">nan<" not in page


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.usefixtures("plain")
def test_reports_fill_in_as_the_model(folder, policy, capsys):
    judged = ("--model", f"{policy}.json", "--train", "train.parquet")
    for rival in (("--against", "mean.json"), ()):
        run(folder, "report", "test.parquet", *judged, *rival, "-o", "page.html", "-q")
        assert capsys.readouterr().err == ""
        assert ">nan<" not in (folder / "page.html").read_text()


def test_parts_filled_by_themselves_are_refused():
    X = np.array([[1.0, np.nan], [2.0, 4.0], [3.0, 5.0]])
    train, test = (Dataset.of(rows, np.arange(len(rows)), missing="mean") for rows in (X, X[:2]))
    with pytest.raises(ValueError, match="not as those of the training data; load it with"):
        filled_in({"train": train, "test": test})


def test_another_policy_than_that_of_the_model_is_refused(folder, capsys):
    run(folder, "predict", "test.parquet", "mean.json", "--missing", "zero", status=1)
    assert "--missing zero: a model does with missing values what it was trained" in told(capsys)
    run(folder, "predict", "test.parquet", "mean.json", "--missing", "mean", "-q")


def test_the_remedy_is_spelt_as_an_option(folder, capsys):
    run(folder, "train", "train.parquet", "no.json", status=1)
    assert told(capsys).endswith("with --missing zero, mean or indicator")


def test_a_table_is_no_stream(folder, capsys):
    run(folder, "predict", "test.parquet", "mean.json", "--stream", status=1)
    assert "test.parquet: is parquet, and --stream reads SVMlight text" in told(capsys)
    run(folder, "train", "test.parquet", "no.json", "--method", "sgd", "--stream", status=1)
    assert "test.parquet: is parquet, and --stream reads SVMlight text" in told(capsys)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.txt", "qid,rel,f1\n1,0,2\n", "names of columns, say --format csv or tsv"),
        ("a.parquet", "1 qid:1 1:2\n", "its name says Parquet, but it begins with b'1 qid:1 '"),
        ("a.csv", "GX1,0,0.0,0.0\nGX2,1,0.5,0.1\n", "holds numbers; it must name the columns"),
    ],
)
def test_files_of_another_kind(tmp_path, capsys, name, content, words):
    (tmp_path / name).write_text(content)
    run(tmp_path, "inspect", name, status=1)
    assert words in told(capsys)


def test_numbers_are_names_of_columns_where_no_two_are_alike(tmp_path, capsys):
    (tmp_path / "a.csv").write_text("label,qid,0,1\n1,1,2,3\n0,1,4,5\n")
    run(tmp_path, "inspect", "a.csv", "--json")
    assert json.loads(capsys.readouterr().out)["features"] == 2


def test_a_table_without_queries_is_noted(tmp_path, capsys):
    (tmp_path / "a.csv").write_text("label,f\n1,2\n0,4\n")
    run(tmp_path, "inspect", "a.csv")
    assert "note      no column holds query ids (by name qid, " in capsys.readouterr().err
    run(tmp_path, "inspect", "a.csv", "--qid", "none")
    assert "note" not in capsys.readouterr().err


def test_a_table_is_no_model(folder, capsys):
    run(folder, "export", "test.parquet", "--to", "solr", status=1)
    assert "a table (Parquet or Arrow), not a model" in told(capsys)


@pytest.mark.parametrize("policy", POLICIES)
def test_a_store_trains_as_the_table_that_it_was_made_of(folder, tmp_path, policy, capsys):
    """convert --missing, train, predict: the scores of a fresh table with gaps are the same."""
    table, fresh = str(folder / "train.parquet"), str(folder / "test.parquet")
    store, model, lines = (str(tmp_path / name) for name in ("store", "model.json", "lines.txt"))
    assert main(["convert", table, "-o", store, "--missing", policy]) == 0
    assert capsys.readouterr().err.count("columns  ") == 1
    scores = []
    for data, options in ((table, ["--missing", policy]), (store, [])):
        assert main(["train", data, model, "--tol", "1e-9", *options]) == 0
        assert main(["predict", fresh, model, "-o", lines]) == 0
        scores.append(np.loadtxt(lines))
    np.testing.assert_allclose(*scores, rtol=1e-4, atol=1e-5)
    assert main(["predict", store, model, "-o", lines]) == 0
    assert len(np.loadtxt(lines)) == 300
    capsys.readouterr()
    other = "mean" if policy == "zero" else "zero"
    assert main(["train", store, model, "--missing", other]) == 1
    assert told(capsys).endswith(f"by --missing {policy} before; leave it out")
