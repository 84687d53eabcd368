"""Files for the tests of the command line: data as text, a model, its scores."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from typing import Any, NamedTuple

import pytest

from linrank.cli.main import main
from linrank.data.synthetic import make_ranking

COMMAND = [sys.executable, "-m", "linrank"]


class Told(NamedTuple):
    """What a command has written to its two streams."""

    out: str
    err: str

    @property
    def json(self) -> Any:
        """Standard output, of a command with ``--json``."""
        return json.loads(self.out)


@pytest.fixture
def cli(capsys):
    """Run a command line in this process and check its exit status: what it has told.

    Names in braces stand for what is passed by name, as the paths of `files`.
    """

    def run(line, *more, status=0, **names):
        words = [word.format(**names) for word in shlex.split(line)]
        assert main([*words, *map(str, more)]) == status
        return Told(*capsys.readouterr())

    return run


def write_svmlight(path, data, *, docid=True):
    """A dataset as LETOR text, with repr so that float32 values survive."""
    lines = []
    for i, (row, label, qid) in enumerate(zip(data.X, data.y, data.qid, strict=True)):
        pairs = " ".join(f"{j}:{value!r}" for j, value in enumerate(map(float, row), 1))
        comment = f" # d{i}" if docid else ""
        lines.append(f"{label:g} qid:{qid} {pairs}{comment}\n")
    path.write_text("".join(lines))
    return str(path)


@pytest.fixture(scope="session")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cli")
    names = ("train.txt", "valid.txt", "model.json", "scores.txt")
    found = {"folder": folder, **{name.split(".")[0]: folder / name for name in names}}
    for name, n_queries, seed in (("train", 40, 1), ("valid", 20, 2)):
        data = make_ranking(n_queries=n_queries, n_features=6, random_state=seed)
        found[f"{name}_data"] = data
        write_svmlight(found[name], data)
    train, valid, model, scores = (str(folder / name) for name in names)
    assert main(["train", train, model, "-q"]) == 0
    assert main(["predict", valid, model, "-o", scores, "-q"]) == 0
    return found


def start(*arguments, program=COMMAND, text=True, **options):
    """A command in a process of its own; its streams are pipes."""
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    return subprocess.Popen([*program, *map(str, arguments)], text=text, **{**pipes, **options})


def run_code(code, *arguments):
    """What a Python program prints in a process of its own: it may be one that does not survive."""
    command = [sys.executable, "-c", code, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, (done.returncode, done.stderr[-2000:])
    return done.stdout


def interrupted(command, at):
    """Run the command, press Ctrl-C at the first line of standard error that starts with ``at``."""
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    seen = ""
    for line in process.stderr:
        seen += line
        if line.startswith(at):
            process.send_signal(signal.SIGINT)
            break
    seen += process.stderr.read()
    process.stderr.close()
    assert process.wait(timeout=300) == 130
    assert seen.endswith("linrank: interrupted\n")
    assert "Traceback" not in seen


def processes_of(text):
    """Processes other than this one whose command line or environment names a path."""
    found = []
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            for name in ("cmdline", "environ"):
                with open(f"/proc/{entry}/{name}", "rb") as file:
                    if os.fsencode(text) in file.read() and int(entry) != os.getpid():
                        found.append(int(entry))
        except OSError:
            continue
    return found


def wait_for_sleep(process):
    """Until a process waits for its input, which it has read so far."""
    n_looks, deadline = 0, time.monotonic() + 60
    while n_looks < 10:
        with open(f"/proc/{process.pid}/stat") as file:
            state = file.read().rpartition(") ")[2][0]
        n_looks = n_looks + 1 if state == "S" else 0
        assert time.monotonic() < deadline
        time.sleep(0.02)


def wait_for_the_end_of(text):
    """Processes that another had started notice its end after a moment."""
    deadline = time.monotonic() + 60
    while left := processes_of(text):
        assert time.monotonic() < deadline, left
        time.sleep(0.05)
