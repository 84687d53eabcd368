"""One grammar of all commands: the same option means the same wherever there is one."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import linrank
from cli_files import write_svmlight
from linrank.cli.main import COMMANDS, _command, main
from linrank.data.synthetic import make_ranking
from linrank.judging.inspect import best_feature
from linrank.methods.base import METHODS

METRIC, FOLDS = ("train", "tune", "evaluate", "report", "compare"), ("tune", "report", "compare")
# What each command needs before it looks at anything else, and the option that names its output.
NEEDED = {
    "train": ["d", "-o", "m"],
    "tune": ["d"],
    "predict": ["d", "m"],
    "evaluate": ["d", "s"],
    "report": ["d", "--train", "t"],
    "compare": ["d", "e"],
    "convert": ["d", "e"],
    "export": ["m", "--to", "sql"],
}


def parser_of(command, *arguments):
    return _command([command, *arguments])[1]


def option(command, flag):
    return parser_of(command)._option_string_actions.get(flag)


@pytest.mark.parametrize("command", NEEDED)
def test_output_is_always_o(command, cli):
    assert option(command, "-o").dest == option(command, "--output").dest == "output"
    asked = {"train": NEEDED["train"][:1], "convert": ["d"]}.get(command, NEEDED[command])
    assert parser_of(command).parse_args([*asked, "-o", "FILE"]).output == "FILE"
    assert re.search(r"^  -o, --output ", cli(command, "--help").out, re.MULTILINE)


@pytest.mark.parametrize("command", METRIC)
def test_metrics_are_always_m_with_commas_or_repeats(command, cli):
    action = option(command, "-m")
    assert option(command, "--metric").dest == action.dest == "metrics"
    parser = parser_of(command)
    for spelt in (
        ["-m", "map,ndcg@5"],
        ["-m", "map", "--metric", "ndcg@5"],
        ["--metric=map,ndcg@5"],
    ):
        assert parser.parse_args([*NEEDED[command], *spelt]).metrics == ["map", "ndcg@5"]
    inside = parser.parse_args([*NEEDED[command], "-m", "ndcg(gain=linear,empty=0)@5,map"])
    assert inside.metrics == ["ndcg(gain=linear,empty=0)@5", "map"]
    assert "needs the name of a metric" in cli(command, *NEEDED[command], "-m", ",", status=2).err


@pytest.mark.parametrize("command", FOLDS)
def test_folds_are_a_number(command):
    assert parser_of(command).parse_args([*NEEDED[command], "--folds", "3"]).folds == 3


@pytest.mark.parametrize("command", ["report", "compare", "train", "tune"])
def test_the_seed_is_0_unless_told(command):
    assert option(command, "--seed").type("7") == 7
    assert "default: 0" in option(command, "--seed").help


@pytest.mark.parametrize("command", COMMANDS)
def test_a_slip_is_one_line(command, cli):
    (told,) = cli(command, *NEEDED.get(command, ["d"]), "--labbel", "x", status=2).err.splitlines()
    expected = "" if command in ("export", "sample") else "; did you mean --label?"
    assert told == f"linrank {command}: error: unknown option --labbel{expected}"


@pytest.mark.parametrize("method", METHODS)
def test_sizes_are_written_with_units(method, cli):
    out = cli("train", "--method", method, "--help").out
    for flag in set(re.findall(r"--memory(?:-limit)?(?= [A-Z])", out)):
        assert f"{flag} SIZE" in out
    assert "10⁶" not in out


# ---- files --------------------------------------------------------------------------------------


@pytest.mark.parametrize("spelt", ["{train} {out}", "{train} -o {out}", "{train} -c 1 {out}"])
def test_the_last_file_may_be_named_without_o(files, tmp_path, spelt, cli):
    out = tmp_path / "model.json"
    cli(f"train {spelt} -q", **files, out=out)
    assert linrank.load_model(out).n_features == 6


def test_files_behind_two_dashes(files, tmp_path, monkeypatch, cli):
    monkeypatch.chdir(tmp_path)
    cli("train -q -- {train} -m.json", **files)
    assert (tmp_path / "-m.json").exists()


def test_convert_takes_several_files_either_way(files, tmp_path, cli):
    one, two = tmp_path / "one.parquet", tmp_path / "two.parquet"
    cli(f"convert {{train}} {{valid}} {one} -q", **files)
    cli(f"convert {{train}} {{valid}} -o {two} -q", **files)
    np.testing.assert_array_equal(linrank.load(one).X, linrank.load(two).X)


def test_help_says_what_a_command_does(cli):
    told = {}
    for command in ("train", "tune", "compare"):
        told[command] = " ".join(cli(command, "--help").out.split())
    assert "err@10 (default: ndcg@10)" in told["tune"]  # which takes one metric
    assert "several with commas or repeated; the first chooses" in told["compare"]
    assert "--jobs N processes of one thread each" in told["compare"]
    assert "--jobs N threads" in told["train"]


@pytest.mark.usefixtures("plain")
def test_report_saves_the_model_that_it_trains(files, tmp_path, cli):
    page, model = tmp_path / "r.html", tmp_path / "m.json"
    asked = f"--train {{train}} --Cs 0.01,0.1 -o {page} -q --json --save-model {model}"
    told = cli(f"report {{valid}} {asked}", **files).json
    saved, valid = linrank.load_model(model), files["valid_data"]
    assert told["model_file"] == str(model)
    found = linrank.evaluate(valid.y, saved.predict(valid.X), qid=valid.qid)["ndcg@10"]
    shown = told["comparison"]["metrics"]["ndcg@10"]["methods"]["RankSVM"]["mean"]
    assert shown == pytest.approx(found, abs=1e-12)


@pytest.mark.usefixtures("plain")
def test_report_and_compare_know_one_best_feature(tmp_path, cli):
    """Tied values too: they count as the average over their orders in both."""
    parts = [make_ranking(n_queries=20, n_features=4, random_state=seed) for seed in (3, 4)]
    rounded = [linrank.Dataset.of(np.round(part.X), part.y, qid=part.qid) for part in parts]
    train, test = (write_svmlight(tmp_path / f"{k}.txt", part) for k, part in enumerate(rounded))
    page = cli(f"report {test} --train {train} -o {tmp_path / 'r.html'} -m map --json -q").json
    options = "--methods best-feature --baseline best-feature -j 1 -m map --json -q"
    table = cli(f"compare {train} {test} {options}").json
    ours, theirs = (one["comparison"]["metrics"]["map"]["methods"] for one in (page, table))
    (rival,) = (name for name in ours if "alone" in name)
    assert ours[rival]["mean"] == pytest.approx(theirs["best-feature"]["mean"], abs=1e-12)
    place, _ = best_feature(rounded[0], "map", "linrank")
    assert rival.startswith(f"feature {place + 1} alone")


# ---- tables of scores ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    """A table whose queries are texts, and a model of it."""
    folder = tmp_path_factory.mktemp("shop")
    table = folder / "shop.csv"
    table.write_text(
        "query,docid,label,a,b\nred shoes,u/1,1,0.5,1\nred shoes,u/2,0,0.25,2\n"
        "hat,u/3,2,0.125,1\nhat,u/4,0,0.3,5\n"
    )
    model = folder / "m.json"
    assert main(["train", str(table), "-o", str(model), "-q"]) == 0
    return str(table), str(model), linrank.load_model(model)


@pytest.mark.parametrize("ending", [".csv", ".tsv", ".parquet", ".arrow", ".csv.gz"])
def test_predict_writes_what_the_name_says(shop, tmp_path, ending, cli):
    pytest.importorskip("pyarrow")
    table, model, ranker = shop
    out = tmp_path / f"scores{ending}"
    cli(f"predict {table} {model} -o {out} -q")
    found = linrank.load(out, label=False, features="score", dtype="float64")
    expected = ranker.predict(np.array([[0.5, 1], [0.25, 2], [0.125, 1], [0.3, 5]], np.float32))
    np.testing.assert_array_equal(found.X[:, 0], expected)
    assert found.qid.tolist() == ["red shoes", "red shoes", "hat", "hat"]
    assert list(found.docids) == ["u/1", "u/2", "u/3", "u/4"]
    # Scores are read from what was written.
    by_table = cli(f"evaluate {table} {out} -m ndcg@2 --json").json["metrics"]
    by_model = cli(f"evaluate {table} --model {model} -m ndcg@2 --json").json["metrics"]
    assert by_table == by_model


def test_text_is_compressed_by_its_name(shop, tmp_path, cli):
    (table, model, _), out = shop, tmp_path / "scores.txt.gz"
    cli(f"predict {table} {model} {out} -q")
    assert out.read_bytes()[:2] == b"\x1f\x8b"
    cli(f"evaluate {table} {out} -q")


def test_what_has_no_ids_gets_numbers(tmp_path, cli):
    pytest.importorskip("pyarrow")
    data, model, out = tmp_path / "d.txt", tmp_path / "m.json", tmp_path / "s.csv"
    data.write_text("1 qid:7 1:1\n0 qid:7 1:2\n")
    cli(f"train {data} {model} -q")
    cli(f"predict {data} {model} {out} -q")
    rows = [line.split(",") for line in out.read_text().splitlines()]
    assert [row[:2] for row in rows] == [['"qid"', '"docid"'], ["7", '"1"'], ["7", '"2"']]


def test_a_run_has_no_place_for_blanks_in_ids(shop, cli):
    err = cli(f"predict {shop[0]} {shop[1]} --trec", status=1).err
    assert "qid 'red shoes' must be one word: TREC files separate columns by blanks" in err


# ---- check --------------------------------------------------------------------------------------


def test_check_shows_notes_with_v_only(tmp_path, cli):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(400, 2)), rng.integers(0, 2, 400)
    train = linrank.Dataset.of(X.copy(), y, qid=np.arange(400) // 10)
    X[7, 0] = X[:, 0].max() + 0.5
    X[:, 1] += 0.3
    fresh = linrank.Dataset.of(X, y, qid=train.qid)
    paths = [write_svmlight(tmp_path / f"{k}.txt", one) for k, one in enumerate((train, fresh))]
    model = tmp_path / "m.json"
    cli(f"train {paths[0]} -o {model} -q")

    def told(options=""):
        return cli(f"check {paths[1]} --against {model} {options}").out

    assert "[outside-range]" not in told()
    assert "(-v shows them)" in told()
    assert "[outside-range]" in told("-v")
    assert "warning" not in told()
    assert "[drift] feature 2 has the mean" in told("--drift 0.2")
    assert "warning  [outside-range] feature 1" in told("--outside 0.001")


# ---- packages -----------------------------------------------------------------------------------

EXTRA = re.compile(r"linrank\[\w+\]")


def test_messages_and_pages_name_packages_that_can_be_installed():
    """No index has a linrank: its extras would be an error, or a stranger's package."""
    root = Path(__file__).resolve().parent.parent
    pages = [*(root / "src").rglob("*.py"), *(root / "docs" / "guide").glob("*.md")]
    pages += [*(root / "docs").glob("*.md"), *(root / "examples").rglob("*.py")]
    assert len(pages) > 200
    assert [str(page) for page in pages if EXTRA.search(page.read_text(encoding="utf-8"))] == []
    told = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    assert "install --upgrade linrank" not in told
