"""Standard streams that are closed, full, of another encoding, or read by nobody; early Ctrl-C."""

from __future__ import annotations

import errno
import io
import json
import os
import re
import signal
import subprocess
import sys

import pytest

from linrank.cli.main import main

COMMAND = [sys.executable, "-m", "linrank"]
COMMANDS = {
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

    def write(self, text):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def flush(self):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def closed():
    stream = io.StringIO()
    stream.close()
    return stream


def absent():
    return None


BROKEN = [(name, Full) for name in COMMANDS] + [("train", closed), ("predict", absent)]


@pytest.mark.parametrize(
    ("name", "stream"), BROKEN, ids=[f"{name}-{stream.__name__}" for name, stream in BROKEN]
)
def test_standard_error_never_costs_the_work(name, stream, files, tmp_path, monkeypatch, capsys):
    command, status = COMMANDS[name]

    def done(name):
        """(exit status, standard output, files) of the command."""
        folder = tmp_path / name
        folder.mkdir()
        paths = {key: path for key, path in files.items() if isinstance(path, str)}
        arguments = command.format(**paths, out=folder / "out").split()
        found = main(arguments), re.sub(r"[\d.]+ m?s\b", "", capsys.readouterr().out)
        return *found, sorted(path.name for path in folder.iterdir())

    usual = done("usual")
    assert usual[0] == status
    broken = stream()
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
    with open(files["model"]) as file:
        assert json.load(file)["coef"] == json.loads(model.read_text())["coef"]


@pytest.mark.parametrize(
    "command",
    ["predict {valid} {model}", "inspect {valid}", "train {train} -", "convert {valid} - --to csv"],
)
@pytest.mark.parametrize(
    ("broken", "told"),
    [(">&-", "standard output is closed"), (">/dev/full", "No space left on device")],
)
def test_a_broken_standard_output_is_one_line(command, broken, told, files):
    paths = {key: path for key, path in files.items() if isinstance(path, str)}
    arguments = [*command.format(**paths).split(), "-q"]
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
def test_a_closed_standard_input_is_one_line(command, files, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdin", None)
    paths = {key: path for key, path in files.items() if isinstance(path, str)}
    assert main(command.format(**paths, out=tmp_path / "out").split()) == 1
    told = capsys.readouterr().err.splitlines()
    assert told[-1] == "linrank: error: standard input is closed; name a file in place of -"
    assert os.listdir(tmp_path) == []


# ---- encodings ----------------------------------------------------------------------------------


@pytest.mark.parametrize("arguments", [["inspect", "{named}"], ["train", "--help"]])
def test_letters_that_a_terminal_lacks_are_replaced(arguments, files, tmp_path):
    named = tmp_path / "✓.csv"
    named.write_text("label,qid,a\n1,1,2\n0,1,1\n")
    done = subprocess.run(
        [*COMMAND, *(one.format(named=named) for one in arguments)],
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"},
        timeout=120,
    )
    assert done.returncode == 0
    assert all(line.startswith(b"columns ") for line in done.stderr.splitlines())
    assert b"?" in done.stdout
    done.stdout.decode("ascii")


def test_what_programs_read_is_utf8_in_any_locale(tmp_path, monkeypatch):
    named = tmp_path / "named.csv"
    named.write_text("label,qid,größe\n" + "".join(f"{i % 2},1,{i}\n" for i in range(6)))
    out = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", out)
    assert main(["train", str(named), "-", "-q"]) == 0
    assert json.loads(out.buffer.getvalue().decode())["feature_names"] == ["größe"]


def test_scores_that_are_no_text_are_named(files, tmp_path, cli):
    scores = tmp_path / "scores"
    scores.write_bytes(b"1.0\n\xff\n")
    assert "scores: byte 4 is not UTF-8" in cli("evaluate", files["valid"], scores, status=1).err


# ---- Ctrl-C -------------------------------------------------------------------------------------


def command_that(lines, folder):
    """(exit status, standard error) of a process whose command is some lines of Python."""
    code = (
        "import os, signal, sys, time\n"
        "from linrank.cli import main as cli\n"
        "def run(arguments):\n" + "".join(f"    {line}\n" for line in lines) + "cli._run = run\n"
        "sys.exit(cli.main())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), *sys.path])},
        timeout=300,
    )
    return done.returncode, done.stderr


STRIKE = ["os.kill(os.getpid(), signal.SIGINT)", "time.sleep(0.1)"]


def test_an_import_is_not_interrupted_in_the_middle(tmp_path):
    """A module that is struck may end the process, or hide the interrupt behind its own error."""
    lines = ["import os, signal, sys, time", *STRIKE, "print('imported', file=sys.stderr)"]
    (tmp_path / "struck.py").write_text("\n".join(lines))
    done = command_that(["import struck", "time.sleep(20)"], tmp_path)
    assert done == (130, "imported\n\nlinrank: interrupted\n")


def test_an_interrupt_in_a_destructor_comes_again(tmp_path):
    """Python drops an exception of a destructor; the command must end all the same."""
    lines = ["class Struck:", "    def __del__(self):", *(f"        {line}" for line in STRIKE)]
    done = command_that([*lines, "Struck()", "time.sleep(20)"], tmp_path)
    assert done == (130, "\nlinrank: interrupted\n")


@pytest.mark.parametrize("wait", [0.0, 0.05, 0.2])
def test_ctrl_c_is_clean_from_the_first_line(wait, files, tmp_path):
    """The lines of -X importtime tell when the command has begun to load."""
    process = subprocess.Popen(
        [sys.executable, "-X", "importtime", "-m", "linrank", "train", files["train"], "-"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
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
