"""The command line as a process: streams, also broken ones, signals, whole files, start-up."""

import errno
import io
import json
import os
import re
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest

from cli_files import COMMAND, interrupted, run_code, start
from linrank.cli import console as console_module
from linrank.cli import files as files_module
from linrank.cli.console import Console, json_report
from linrank.cli.files import write_lines
from linrank.cli.main import COMMANDS, main
from linrank.io import sidecars
from linrank.methods.base import METHODS


def run(arguments, **options):
    return subprocess.run(
        [*COMMAND, *arguments], capture_output=True, text=True, timeout=120, **options
    )


# ---- streams and signals ------------------------------------------------------------------------


def test_everything_through_pipes(files):
    trained = run(["train", "-", "-", "-q"], input=files["train"].read_text())
    assert (trained.returncode, trained.stderr) == (0, "")
    predicted = run(["predict", files["valid"], "-"], input=trained.stdout)
    assert predicted.stdout == files["scores"].read_text()
    measured = run(["evaluate", files["valid"], "-", "-m", "map"], input=predicted.stdout)
    assert measured.returncode == 0
    assert "map" in measured.stdout


def test_reports_are_json_whatever_is_in_them():
    facts = {"n": np.int64(3), "mean": np.float32(0.5), "none": np.nan, "all": (np.inf, ["é"])}
    told = json.loads(json_report("test", facts), parse_constant=pytest.fail)
    assert {"n": 3, "mean": 0.5, "none": None, "all": [None, ["é"]]}.items() <= told.items()
    with pytest.raises(TypeError, match="not JSON serializable"):
        json_report("test", {"place": {1, 2}})


def test_scores_are_read_at_once_and_a_bad_line_is_found(tmp_path, monkeypatch):
    path = tmp_path / "scores.txt"
    path.write_text("1\n2.5\nx\n")
    with pytest.raises(ValueError, match=r"scores.txt:3: expected one finite score, got 'x'"):
        files_module.read_scores(str(path))
    path.write_text("1\n2.5\n")
    monkeypatch.setattr(sidecars, "suppress", None)  # no line is looked at by itself
    assert files_module.read_scores(str(path)).tolist() == [1.0, 2.5]


@pytest.mark.parametrize("number", [signal.SIGINT, *console_module.SIGNALS])
def test_signals_are_held_for_any_handler(number):
    """One who calls main() may have a handler, which would interrupt half a batch."""
    came = []
    before = signal.signal(number, lambda number, frame: came.append(number))
    try:
        with console_module.hold_signals():
            signal.raise_signal(number)
            assert came == []
        assert came == [number]
    finally:
        signal.signal(number, before)


def test_standard_output_by_its_file_name(files):
    predicted = run(["predict", files["valid"], files["model"], "/dev/stdout", "-q"])
    assert (predicted.stdout, predicted.stderr) == (files["scores"].read_text(), "")
    trained = run(["train", files["train"], "/dev/stdout", "-q"])
    assert (trained.stdout, trained.stderr) == (files["model"].read_text(), "")


def test_a_pipe_with_a_name_is_opened_once(files, tmp_path, cli):
    """Its writer would be gone if it were only looked at first."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    text = files["valid"].read_bytes()
    threading.Thread(target=lambda: pipe.write_bytes(text), daemon=True).start()
    assert cli(f"predict {pipe} {files['model']} -q").out == files["scores"].read_text()


def test_progress_is_not_drawn_into_a_pipe(files, tmp_path):
    done = run(["train", files["train"], str(tmp_path / "m")])
    assert "\r" not in done.stderr


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_broken_pipe_is_quiet(files, tmp_path, unbuffered):
    """Also when a write is cut short, which unbuffered text streams of Python overlook."""
    many = tmp_path / "many.txt"
    many.write_text(files["valid"].read_text() * 40)
    env = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    process = start("predict", many, files["model"], stdin=None, env=env)
    float(process.stdout.readline())
    process.stdout.close()
    error = process.stderr.read()
    process.stderr.close()
    assert (process.wait(timeout=300), error) == (141, "")


# Commands that take long, and how the line begins at which they are interrupted.
LONG = {
    "train": ("train {data} {out} -c 1e6 -e 1e-15 --solver tron --max-iter 1000000", "iteration"),
    "tune": ("tune {data} -o {out} -e 1e-9 --Cs 1e-9:1e9:1.05", "1 of"),
    "report": ("report {data} --train {data} --Cs 1e-6:1e6:1.05 -o {out}", "training: 3 of"),
    "convert, store": ("convert {data} {folder}/store", "converting"),
    "convert, csv": ("convert {data} {out}.csv --dtype float64", "wrote"),
}


@pytest.fixture(scope="module")
def long_data(tmp_path_factory):
    """Three blocks of rows as they are written."""
    path, rng = tmp_path_factory.mktemp("long") / "data.txt", np.random.default_rng(0)
    X, labels = rng.random((30_000, 60)).round(3), rng.integers(0, 3, 30_000)
    with path.open("w") as file:
        for i, (y, row) in enumerate(zip(labels.tolist(), X.tolist(), strict=True)):
            values = " ".join(f"{j}:{x}" for j, x in enumerate(row, 1))
            file.write(f"{y} qid:{i % 3000} {values}\n")
    return str(path)


@pytest.mark.parametrize(("line", "at"), LONG.values(), ids=LONG)
def test_an_interrupt_leaves_the_old_file_and_nothing_else(line, at, long_data, tmp_path):
    out = tmp_path / "out"
    if "{out} " in f"{line} ":
        out.write_text("old")
    before = sorted(os.listdir(tmp_path))
    arguments = line.format(data=long_data, out=out, folder=tmp_path).split()
    interrupted([*COMMAND, *arguments, "-v"], at=at)
    assert sorted(os.listdir(tmp_path)) == before
    assert not before or out.read_text() == "old"


def test_interrupt_while_reading_a_pipe(tmp_path):
    process = start("train", "-", tmp_path / "m.json")
    process.stdin.write("1 qid:1 1:1\n" * 20_000)  # more than a pipe holds: it is being read
    process.stdin.flush()
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=300)
    assert process.returncode == 130
    assert "Traceback" not in error
    assert os.listdir(tmp_path) == []


def test_writing_follows_links_and_accepts_devices(tmp_path):
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("old")
    link.symlink_to(target)
    write_lines(str(link), ["new\n"])
    assert link.is_symlink()
    assert target.read_text() == "new\n"
    write_lines("/dev/null", ["gone\n"])
    assert not os.path.isfile("/dev/null")


def open_terminal(monkeypatch):
    """Standard error as a terminal, on which the status is drawn at once."""

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    stream = Terminal()
    monkeypatch.setattr("sys.stderr", stream)
    monkeypatch.setattr(Console, "PATIENCE", 0)
    monkeypatch.setattr(Console, "INTERVAL", 0)
    return stream


def test_status_line_is_drawn_on_a_terminal_and_removed(monkeypatch):
    terminal, console = open_terminal(monkeypatch), Console()
    show = console.reading_progress("data.txt")
    assert show is not None
    show(1_500_000, 3_000_000)
    show(2_000, None)
    console.say("read", "done")
    drawn = terminal.getvalue()
    assert "reading data.txt: 1.5 MB of 3 MB (50 %)" in drawn
    assert drawn.endswith("\rread      done\n")
    assert Console(quiet=True).reading_progress("data.txt") is None
    monkeypatch.setattr("sys.stderr", io.StringIO())
    assert Console().reading_progress("data.txt") is None


def test_a_status_line_does_not_wrap(monkeypatch):
    """What is longer than the terminal is wide could not be redrawn in place."""
    monkeypatch.setattr(console_module, "terminal_width", lambda descriptor: 20)
    terminal, console = open_terminal(monkeypatch), Console()
    console.status("reading " + "漢" * 80 + "\n: 1 %")
    console.status("done")
    assert terminal.getvalue() == "\rreading 漢漢漢漢漢\rdone" + " " * 14


# ---- standard streams that are closed, full, of another encoding, or read by nobody -------------


LINES = {
    "train": ("train {train} {out}.json -v", 0),
    "train, stopped early": ("train {train} {out}.json --max-iter 1", 3),
    "train, kernel": ("train {train} {out}.json --method kernel --kernel rbf", 0),
    "train, sgd": ("train {train} {out}.json --method sgd --stream", 0),
    "tune": ("tune {train} -o {out}.json --folds 2", 0),
    "predict": ("predict {valid} {model} {out}.txt", 0),
    "evaluate": ("evaluate {valid} {scores}", 0),
    "report": ("report {valid} --model {model} -o {out}.html", 0),
    "convert": ("convert {valid} {out}.csv", 0),
    "export": ("export {model} --to sql -o {out}.sql", 0),
    "inspect": ("inspect {valid}", 0),
    "check": ("check {valid} --against {model}", 0),
    "wrong option": ("train --no-such-option", 2),
    "no such file": ("train nowhere.txt {out}.json", 1),
    "help": ("train --help", 0),
}


class Full(io.TextIOBase):
    """A log on a disk without room."""

    def write(self, *text):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    flush = write


CLOSED = io.StringIO()
CLOSED.close()


@pytest.mark.parametrize(
    ("name", "broken"), [*((name, Full()) for name in LINES), ("train", CLOSED), ("predict", None)]
)
def test_standard_error_never_costs_the_work(name, broken, files, tmp_path, monkeypatch, capsys):
    command, status = LINES[name]

    def done(name):
        """(exit status, standard output, files) of the command."""
        folder = tmp_path / name
        folder.mkdir()
        arguments = command.format(**files, out=folder / "out").split()
        found = main(arguments), re.sub(r"[\d.]+ m?s\b", "", capsys.readouterr().out)
        return *found, sorted(path.name for path in folder.iterdir())

    usual = done("usual")
    assert usual[0] == status
    monkeypatch.setattr(sys, "stderr", broken)
    assert done("broken") == usual
    assert sys.stderr is broken


@pytest.mark.parametrize("broken", ["2>&-", "2>/dev/full", "2> >(exec true)"])
def test_a_process_with_a_broken_standard_error(broken, files, tmp_path):
    model = tmp_path / "m.json"
    command = [*COMMAND, "train", files["train"], str(model), "-v"]
    shell = ["bash", "-c", f'"$@" {broken}', "bash", *command]
    done = subprocess.run(shell, capture_output=True, timeout=120)
    assert (done.returncode, done.stdout) == (0, b"")
    found, expected = (json.loads(path.read_text()) for path in (model, files["model"]))
    assert found["coef"] == expected["coef"]


@pytest.mark.parametrize(
    "command",
    ["predict {valid} {model}", "inspect {valid}", "train {train} -", "convert {valid} - --to csv"],
)
@pytest.mark.parametrize(
    ("broken", "told"),
    [(">&-", "standard output is closed"), (">/dev/full", "No space left on device")],
)
def test_a_broken_standard_output_is_one_line(command, broken, told, files):
    arguments = [*command.format(**files).split(), "-q"]
    shell = ["bash", "-c", f'"$@" {broken}', "bash", *COMMAND, *arguments]
    done = subprocess.run(shell, capture_output=True, text=True, timeout=120)
    assert done.returncode == 1
    assert re.fullmatch(rf"linrank: error: .*{told}.*\n", done.stderr)


@pytest.mark.parametrize(
    "command",
    [
        "train - {out}",
        "train - {out} --method sgd --stream",
        "predict - {model}",
        "predict {valid} -",
        "predict - {model} --stream",
        "evaluate {valid} -",
        "inspect -",
        "convert - {out}.csv",
        "convert - {out}",
        "export - --to sql",
        "train {train} {out} --preferences -",
    ],
)
def test_a_closed_standard_input_is_one_line(command, files, tmp_path, monkeypatch, cli):
    monkeypatch.setattr(sys, "stdin", None)
    told = cli(command, status=1, **files, out=tmp_path / "out").err.splitlines()
    assert told[-1] == "linrank: error: standard input is closed; name a file in place of -"
    assert os.listdir(tmp_path) == []


# ---- encodings ----------------------------------------------------------------------------------


@pytest.mark.parametrize("arguments", [["inspect", "{named}"], ["train", "--help"]])
def test_letters_that_a_terminal_lacks_are_replaced(arguments, files, tmp_path):
    named = tmp_path / "✓.csv"
    named.write_text("label,qid,a\n1,1,2\n0,1,1\n")
    env = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    done = run([one.format(named=named) for one in arguments], env=env)
    assert done.returncode == 0
    assert all(line.startswith("columns ") for line in done.stderr.splitlines())
    assert "?" in done.stdout
    assert done.stdout.isascii()


def test_what_programs_read_is_utf8_in_any_locale(tmp_path, monkeypatch):
    named = tmp_path / "named.csv"
    named.write_text("label,qid,größe\n" + "".join(f"{i % 2},1,{i}\n" for i in range(6)))
    out = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", out)
    assert main(["train", str(named), "-", "-q"]) == 0
    assert json.loads(out.buffer.getvalue().decode())["feature_names"] == ["größe"]


# ---- Ctrl-C -------------------------------------------------------------------------------------


STRUCK = """
import os, signal, sys, time
from linrank.cli import main as cli

class Struck:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.1)

def run(arguments):
    Struck()
    time.sleep(20)

cli._run = run
sys.exit(cli.main())
"""


def test_an_interrupt_in_a_destructor_comes_again():
    """Python drops an exception of a destructor; the command must end all the same."""
    done = subprocess.run([sys.executable, "-c", STRUCK], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (130, "\nlinrank: interrupted\n")


@pytest.mark.parametrize("wait", [0.0, 0.05, 0.2])
def test_ctrl_c_is_clean_from_the_first_line(wait, files, tmp_path):
    """The lines of -X importtime tell when the command has begun to load."""
    program = [sys.executable, "-X", "importtime", "-m", "linrank"]
    streams = {"stdin": None, "stdout": subprocess.DEVNULL}
    process = start("train", files["train"], "-", program=program, **streams)
    for line in process.stderr:
        if line.endswith("linrank.cli.console\n"):
            break
    try:
        process.wait(wait)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGINT)
    told = process.stderr.read()
    process.stderr.close()
    # Ended by the signal itself where all was done already.
    assert process.wait(timeout=300) in (0, 130, -signal.SIGINT)
    assert "Traceback" not in told
    assert "Error" not in told


# ---- start-up -----------------------------------------------------------------------------------


def modules_after(lines):
    """The modules that a process has loaded when commands are through."""
    code = (
        "import sys; from linrank.cli.main import main\n"
        "for line in sys.argv[1].split(';'):\n"
        "    assert main(line.split()) == 0, line\n"
        "print('loaded', *sys.modules)"
    )
    return set(run_code(code, ";".join(lines)).splitlines()[-1].split())


def test_help_does_not_load_numpy():
    lines = [f"{command} --help" for command in COMMANDS if command != "convert"]
    lines += [f"train --method {name} --help" for name in METHODS]
    assert "numpy" not in modules_after(["--help", "--version", *lines])


def test_no_command_loads_what_it_does_not_need(files, tmp_path):
    """SciPy and scikit-learn cost seconds, and what NumPy leaves out costs milliseconds."""
    model, train, valid = tmp_path / "m.json", files["train"], files["valid"]
    heavy = {"scipy", "sklearn", "matplotlib", "logging", "pandas", "concurrent.futures"}
    lines = [
        f"train {train} {model} --valid {valid} --json",
        f"predict {valid} {model}",
        f"evaluate {valid} --model {model}",
        f"inspect {valid}",
    ]
    assert not heavy & modules_after(lines)
    methods = set(METHODS) - {"auto", "published"}
    fits = [f"train {train} {model} -q --method {name}" for name in sorted(methods)]
    assert not {"scipy", "sklearn"} & modules_after(fits)
    report = f"report {valid} --train {train} --Cs 0.01,0.1 -q -o {tmp_path / 'page.html'}"
    assert "sklearn" not in modules_after([report])
