"""One grammar of all commands and methods: the same option means the same wherever there is one."""

import math
import re
from argparse import ArgumentTypeError
from pathlib import Path

import numpy as np
import pytest

import linrank
from cli_files import write_svmlight
from linrank.cli.main import COMMANDS, _command, main
from linrank.cli.options import KINDS, Rule, flags_in, flags_of
from linrank.cli.train import GROUPS
from linrank.data.synthetic import make_ranking
from linrank.judging.inspect import best_feature
from linrank.methods.base import METHODS, options_of

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


COMMON = {
    *("--method", "--output", "--valid", "--metric", "--convention", "--json", "--quiet"),
    "--verbose",
    *("--label", "--qid", "--docid", "--weight", "--position", "--features", "--format"),
    *("--no-sidecars", "--qrels", "--unjudged", "--dtype", "--index-base", "--jobs", "--help"),
}
SEARCHED = {name: method for name, method in METHODS.items() if method.search is not None}
PARAMETERS = [("train", name, method.parameters) for name, method in METHODS.items()]
PARAMETERS += [("tune", name, method.search) for name, method in SEARCHED.items()]


def spellings(parameters):
    return {flags_of(name, option)[-1] for name, option in options_of(parameters).items()}


def line(cli, *arguments):
    """The one line on standard error of what is refused as wrong usage."""
    files = ["d", "m"] if arguments[0] == "train" else ["d"]
    captured = cli(arguments[0], *files, *arguments[1:], status=2)
    assert captured.out == ""
    (told,) = captured.err.splitlines()
    return told


@pytest.mark.parametrize(("command", "method", "parameters"), PARAMETERS)
def test_help_shows_the_options_of_the_method_and_the_common_ones(command, method, parameters, cli):
    shown = set(
        re.findall(r"(?<![\w`-])--[a-zA-Z][\w-]*", cli(command, "--method", method, "--help").out)
    )
    places = {name for group in GROUPS.values() for name in flags_in(group)}
    own = spellings(parameters) | COMMON | places | {"--output", "--folds", "--auto"}
    assert spellings(parameters) <= shown
    assert shown <= own
    others = set().union(*(spellings(m.parameters) for m in METHODS.values())) - own
    assert not others & shown


@pytest.mark.parametrize("command", ["train", "tune"])
def test_help_fits_on_two_screens(command, cli):
    lines = cli(command, "--help").out.splitlines()
    assert len(lines) <= 100
    assert max(map(len, lines)) <= 80
    listed = METHODS if command == "train" else SEARCHED
    for name in listed:
        assert any(text.startswith(f"  {name} ") for text in lines)


@pytest.mark.parametrize(("command", "method", "parameters"), PARAMETERS)
def test_an_option_of_another_method_is_refused_with_its_owners(command, method, parameters, cli):
    owners = {}
    for other in METHODS.values():
        of = other.parameters if command == "train" else other.search
        for name in spellings(of) if of is not None else ():
            owners.setdefault(name, []).append(other.name)
    foreign = {name: names for name, names in owners.items() if method not in names}
    assert foreign
    for name, names in foreign.items():
        told = line(cli, command, "--method", method, name, "1")
        assert told.startswith(f"linrank {command}: error: {name} belongs to --method {names[0]}")
        assert all(one in told for one in names)


@pytest.mark.parametrize(
    ("group", "method"), [("preferences", "sgd"), ("cluster", "kernel"), ("stream", "ranksvm")]
)
def test_what_a_method_cannot_do_is_refused_with_who_can(group, method, cli):
    name = flags_in(GROUPS[group])[0]
    assert f"{name} belongs to --method " in line(cli, "train", "--method", method, name)


@pytest.mark.parametrize("command", COMMANDS)
def test_rules_are_of_options_that_there_are(command):
    """One that no method has would be passed over in silence."""
    methods = {"train": METHODS, "tune": SEARCHED}.get(command, ["ranksvm"])
    more = [["--method", name] if len(methods) > 1 else [] for name in methods]
    parsers = [_command([command, *arguments])[1] for arguments in more]
    actions = [action for parser in parsers for action in parser._actions]
    known = {name for a in actions for name in (*a.option_strings, a.dest.upper())}
    for line in filter(None, "\n".join(parser.rules for parser in parsers).splitlines()):
        rule = Rule.parse(line)
        assert rule.verb in ("needs", "excludes"), line
        assert {rule.option, *rule.others} <= known, line


@pytest.mark.parametrize("name", [name for name in METHODS if name not in SEARCHED])
def test_tune_says_which_methods_have_a_grid(name, cli):
    told = line(cli, "tune", "--method", name)
    assert f"--method {name} has no grid; tune takes {', '.join(SEARCHED)}" in told


@pytest.mark.parametrize(("command", "method", "parameters"), PARAMETERS)
def test_options_that_need_or_exclude_others(command, method, parameters, cli):
    """What is declared of a parameter is what the command line says."""
    options = options_of(parameters)

    def given(name, value="1"):
        option = options[name]
        return [flags_of(name, option)[-1], *([] if option.kind == "flag" else [value])]

    for name, option in options.items():
        value = {"bounds": "1:0:1", "share": "0.5"}.get(option.kind, "1")
        value = str(option.choices[0]) if option.choices else value
        for other in option.excludes:
            told = line(cli, command, "--method", method, *given(name, value), *given(other))
            assert f"{given(name)[0]} excludes {given(other)[0]}" in told
        if not option.needs or option.needs[0] not in options:
            continue
        other, values = option.needs
        asked = options[other]
        wrong = [one for one in asked.choices if one is not None and one not in values]
        chosen = given(other, wrong[0]) if values else []
        told = line(cli, command, "--method", method, *chosen, *given(name, value))
        assert f"{given(name)[0]} needs {flags_of(other, asked)[-1]}" in told


def test_every_kind_of_a_parameter_is_known():
    kinds = {
        option.kind for _, _, parameters in PARAMETERS for option in options_of(parameters).values()
    }
    assert kinds - {"flag", "choice", "average"} == set(KINDS)


# ---- values -------------------------------------------------------------------------------------

# Of each kind of parameter: what may be typed, and the values; what may not, and the message.
VALUES = {
    "finite": ({"-1.5": -1.5}, ["nan", "inf", "x"], "must be a finite number, got"),
    "positive": ({"0.5": 0.5}, ["0", "-1", "nan", "inf", "x"], "must be finite and > 0, got"),
    "nonnegative": ({"0": 0.0}, ["-1", "nan", "inf", "much"], "must be a finite number ≥ 0"),
    "share": ({"1": 1.0}, ["0", "-0.1", "1.01", "nan", "half"], "must be a number > 0 and ≤ 1"),
    "weight": ({"auto": "auto"}, ["0", "x"], "must be finite and > 0 or auto, got"),
    "width": ({"0.2": 0.2}, ["0", "wide"], "must be finite and > 0 or scale or auto, got"),
    "count": ({"7": 7}, ["0", "2.5", "many"], "must be an integer ≥ 1, got"),
    "natural": ({"0": 0}, ["-1", "nan"], "must be an integer ≥ 0, got"),
    "steps": ({"5e3": 5000}, ["0", "1e400"], "must be an integer ≥ 1, got"),
    "size": ({"auto": "auto"}, ["0", "2.5"], "must be an integer ≥ 1 or auto, got"),
    "size_in_bytes": ({"4": 4_000_000}, ["0", "lots"], "must be a size such as 2GB or 512MiB, got"),
    "grid": (
        {
            **{"2^-2:2^1": [0.25, 0.5, 1.0, 2.0], "1:10:3": [1.0, 3.0, 9.0], "10^-2": [0.01]},
            **{"1,0.5,1": [1.0, 0.5, 1.0], "3:3": [3.0], "0.25:4:4": [0.25, 1.0, 4.0]},
        },
        ["0", "1,nan", "x", "", "0^-1", "-2^2", "2:1", "1:2:1", "1:2:3:4"],
        "",
    ),
    "margin": (
        {
            **{"linear:3": ("linear", 3.0, 0.0), "log": ("log", 1.0, 0.0), "2.5": 2.5, "-1": -1.0},
            **{"log:1,2.7": ("log", 1.0, 2.7)},
        },
        ["", "nan", "log:", "log:1,2,3", "exp:1", "linear:inf"],
        "must be a finite number, linear[:K1[,K2]]",
    ),
    "algorithms": ({"pa,hybrid": ("pa", "hybrid")}, ["pa,adam"], "must be one of pegasos"),
    "bounds": ({"1::0.5": {"1": (-math.inf, 0.5)}}, ["1:2"], "is not FEATURE:LOW:HIGH"),
    "weighting": ({"gain-diff": "gain_diff"}, ["ndgc@5"], "pair_weighting"),
    "features": ({"a, b": ("a", "b")}, [], ""),
    "device": ({"cuda:1": "cuda:1", "cpu": "cpu"}, ["gpu", "cuda:x"], "must be 'cpu', 'cuda' or"),
}
BY_PARAMETER = [
    (command, method, name, option)
    for command, method, parameters in PARAMETERS
    for name, option in options_of(parameters).items()
]


def typed(option):
    """Arguments that give a parameter a value, and the value."""
    if option.kind == "flag":
        return [], True
    if option.choices:
        name = str(option.choices[-1] or "none")
        return [name.replace("_", "-")], name
    text, value = next(iter(VALUES[option.kind][0].items()))
    return [text], value


@pytest.mark.parametrize(("command", "method", "name", "option"), BY_PARAMETER)
def test_what_is_typed_reaches_the_parameter(command, method, name, option):
    spelling, (text, value) = flags_of(name, option)[-1], typed(option)
    given = [f"{spelling}={text[0]}" if text else spelling]
    parser = _command([command, "--method", method])[1]
    args = parser.parse_args(["d", "-o", "m", "--method", method, *given])
    assert getattr(args, name) == value


@pytest.mark.parametrize("kind", VALUES)
def test_values_of_every_kind(kind):
    fine, wrong, message = VALUES[kind]
    assert {text: KINDS[kind](text) for text in fine} == fine
    for text in wrong:
        with pytest.raises(ArgumentTypeError, match=re.escape(message)):
            KINDS[kind](text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0", "must be finite and > 0, got 0"),
        ("", "must be a number > 0, got ''"),
        ("5e-324:1e308", "'5e-324:1e308' has 2,098 values, at most 1,000 are tried"),
        ("2:1", "needs LOW ≤ HIGH and FACTOR > 1, got '2:1'"),
        ("1:2:3:4", "must be LOW:HIGH[:FACTOR] or a list, got '1:2:3:4'"),
    ],
)
def test_what_is_wrong_with_a_grid(text, message):
    with pytest.raises(ArgumentTypeError, match=re.escape(message)):
        KINDS["grid"](text)
