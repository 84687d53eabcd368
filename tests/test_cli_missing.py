"""Tables with missing values through the commands: looked at, judged, reported on."""

from __future__ import annotations

import numpy as np
import pytest

from linrank import Dataset
from linrank.cli.main import main
from linrank.reports.material import fill_missing_values

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
        model = (f"{policy}.json", "--missing", policy, "-q")
        assert main(within(folder, "train", "train.parquet", *model)) == 0
    scored = ("predict", "test.parquet", "mean.json", "-o", "scores.txt", "-q")
    assert main(within(folder, *scored)) == 0
    return folder


def within(folder, *arguments):
    """The arguments, files being those of the folder."""
    files = (".parquet", ".json", ".txt", ".html", ".csv", ".qrels")
    return [str(folder / a) if a.endswith(files) else a for a in arguments]


@pytest.fixture
def run(cli):
    return lambda folder, *arguments, status=0: cli(*within(folder, *arguments), status=status)


def test_inspect_tells_of_missing_values(folder, run):
    report = run(folder, "inspect", "train.parquet", "--json").json
    n_missing = parquet.read_table(folder / "train.parquet")["f1"].null_count
    assert report["missing"] == {"f1": n_missing}
    assert report["findings"][0]["code"] == "missing-values"
    assert (
        "[missing-values] values are missing of 'f1'" in run(folder, "inspect", "train.parquet").out
    )


def test_features_do_not_matter_where_scores_are_given(folder, run):
    by_scores = run(folder, "evaluate", "test.parquet", "scores.txt", "--json").json["metrics"]
    assert (
        run(folder, "evaluate", "test.parquet", "--model", "mean.json", "--json").json["metrics"]
        == by_scores
    )


def test_nor_for_judgments(folder, run):
    run(folder, "convert", "test.parquet", "test.qrels", "-q")
    assert len((folder / "test.qrels").read_text().splitlines()) == 120


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.usefixtures("plain")
def test_reports_fill_in_as_the_training_data(folder, policy, run):
    grid = ("--Cs", "0.01,0.1", "--folds", "2")
    options = ("--missing", policy, *grid, "-o", "page.html", "-q", "--json")
    assert run(folder, "report", "test.parquet", "--train", "train.parquet", *options).err == ""
    page = (folder / "page.html").read_text()
    assert ("missing(f1)" in page) == (policy == "indicator")
    assert ">nan<" not in page


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.usefixtures("plain")
def test_reports_fill_in_as_the_model(folder, policy, run):
    judged = ("--model", f"{policy}.json", "--train", "train.parquet")
    for rival in (("--against", "mean.json"), ()):
        options = (*judged, *rival, "-o", "page.html", "-q")
        assert run(folder, "report", "test.parquet", *options).err == ""
        assert ">nan<" not in (folder / "page.html").read_text()


def test_parts_filled_by_themselves_are_refused():
    X = np.array([[1.0, np.nan], [2.0, 4.0], [3.0, 5.0]])
    train, test = (Dataset.of(rows, np.arange(len(rows)), missing="mean") for rows in (X, X[:2]))
    with pytest.raises(ValueError, match="not as those of the training data; load it with"):
        fill_missing_values({"train": train, "test": test})


def test_another_policy_than_that_of_the_model_is_refused(folder, run):
    assert (
        "--missing zero: a model does with missing values what it was trained"
        in run(
            folder, "predict", "test.parquet", "mean.json", "--missing", "zero", status=1
        ).err.strip()
    )
    run(folder, "predict", "test.parquet", "mean.json", "--missing", "mean", "-q")


def test_the_remedy_is_spelt_as_an_option(folder, run):
    assert (
        run(folder, "train", "train.parquet", "no.json", status=1)
        .err.strip()
        .endswith("with --missing zero, mean or indicator")
    )


def test_a_table_is_no_stream(folder, run):
    assert (
        "test.parquet: is parquet, and --stream reads SVMlight text"
        in run(folder, "predict", "test.parquet", "mean.json", "--stream", status=1).err.strip()
    )
    assert (
        "test.parquet: is parquet, and --stream reads SVMlight text"
        in run(
            folder, "train", "test.parquet", "no.json", "--method", "sgd", "--stream", status=1
        ).err.strip()
    )


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.txt", "qid,rel,f1\n1,0,2\n", "names of columns, say --format csv or tsv"),
        ("a.parquet", "1 qid:1 1:2\n", "its name says Parquet, but it begins with b'1 qid:1 '"),
        ("a.csv", "GX1,0,0.0,0.0\nGX2,1,0.5,0.1\n", "holds numbers; it must name the columns"),
    ],
)
def test_files_of_another_kind(tmp_path, name, content, words, run):
    (tmp_path / name).write_text(content)
    assert words in run(tmp_path, "inspect", name, status=1).err.strip()


def test_numbers_are_names_of_columns_where_no_two_are_alike(tmp_path, run):
    (tmp_path / "a.csv").write_text("label,qid,0,1\n1,1,2,3\n0,1,4,5\n")
    assert run(tmp_path, "inspect", "a.csv", "--json").json["features"] == 2


def test_a_table_without_queries_is_noted(tmp_path, run):
    (tmp_path / "a.csv").write_text("label,f\n1,2\n0,4\n")
    assert (
        "note      no column holds query ids (by name qid, "
        in run(tmp_path, "inspect", "a.csv").err
    )
    assert "note" not in run(tmp_path, "inspect", "a.csv", "--qid", "none").err


def test_a_table_is_no_model(folder, run):
    assert (
        "a table (Parquet or Arrow), not a model"
        in run(folder, "export", "test.parquet", "--to", "solr", status=1).err.strip()
    )


@pytest.mark.parametrize("policy", POLICIES)
def test_a_store_trains_as_the_table_that_it_was_made_of(folder, tmp_path, policy, cli):
    """convert --missing, train, predict: the scores of a fresh table with gaps are the same."""
    table, fresh = str(folder / "train.parquet"), str(folder / "test.parquet")
    store, model, lines = (str(tmp_path / name) for name in ("store", "model.json", "lines.txt"))
    assert cli("convert", table, "-o", store, "--missing", policy).err.count("columns  ") == 1
    scores = []
    for data, options in ((table, ["--missing", policy]), (store, [])):
        cli("train", data, model, "--tol", "1e-9", *options)
        cli("predict", fresh, model, "-o", lines)
        scores.append(np.loadtxt(lines))
    np.testing.assert_allclose(*scores, rtol=1e-4, atol=1e-5)
    cli("predict", store, model, "-o", lines)
    assert len(np.loadtxt(lines)) == 300
    other = "mean" if policy == "zero" else "zero"
    assert (
        cli("train", store, model, "--missing", other, status=1)
        .err.strip()
        .endswith(f"by --missing {policy} before; leave it out")
    )
