"""The grammar of ``linrank train`` and ``tune``, for every method of the registry."""

from __future__ import annotations

import math
import re
from argparse import ArgumentTypeError

import pytest

from linrank.cli.main import COMMANDS, _command
from linrank.cli.options import KINDS, Rule, flags_in, flags_of
from linrank.cli.train import GROUPS
from linrank.methods.base import METHODS, options_of

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
