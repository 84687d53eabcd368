"""Commands that are told to end clean up."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from linrank import LinearModel


@pytest.fixture
def waiting(tmp_path):
    """A command that writes a file and waits for more to read."""
    (tmp_path / "out").mkdir()
    LinearModel([1.0]).save(tmp_path / "m.json")
    files = ["-", str(tmp_path / "m.json"), "-o", str(tmp_path / "out" / "scores.txt")]

    def start(**options):
        process = subprocess.Popen(
            [sys.executable, "-m", "linrank", "predict", *files, "-q"],
            **{"stdin": subprocess.PIPE, "stderr": subprocess.PIPE, **options},
        )
        process.stdin.write(b"1 qid:1 1:1\n")
        process.stdin.flush()
        while not os.listdir(tmp_path / "out"):
            assert process.poll() is None
        return process

    return start


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_who_is_told_to_end_cleans_up(tmp_path, waiting, name):
    process, number = waiting(), getattr(signal, name)
    process.send_signal(number)
    _, error = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert error.decode() == f"\nlinrank: ended by {name}\n"
    assert os.listdir(tmp_path / "out") == []


def test_a_signal_that_comes_twice_does_not_disturb(tmp_path, waiting):
    process = waiting()
    for _ in range(20):
        process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert process.returncode == 143
    assert os.listdir(tmp_path / "out") == []


def test_nohup_goes_on(tmp_path, waiting):
    process = waiting(preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    process.send_signal(signal.SIGHUP)
    process.communicate(b"2 qid:1 1:3\n", timeout=60)
    assert process.returncode == 0
    assert (tmp_path / "out" / "scores.txt").read_text().split() == ["1.0", "3.0"]


def test_a_terminal_that_is_gone(tmp_path, waiting):
    """Standard error leads nowhere any more; the status tells all the same."""
    controller, terminal = os.openpty()
    process = waiting(stderr=terminal)
    os.close(terminal)
    os.close(controller)
    process.send_signal(signal.SIGHUP)
    process.communicate(timeout=60)
    assert process.returncode == 129
    assert os.listdir(tmp_path / "out") == []


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_library_that_makes_an_error_of_its_own_of_it(capsys, monkeypatch, number, status):
    """NumPy says that its extensions are broken when its import is interrupted."""
    from linrank.cli import inspect
    from linrank.cli.main import main

    def run(args, parser):
        try:
            os.kill(os.getpid(), number)
            time.sleep(10)
        except KeyboardInterrupt:
            raise ImportError("C-extensions failed") from None

    monkeypatch.setattr(inspect, "run", run)
    before = signal.getsignal(number)
    assert main(["inspect", "x"]) == status
    assert "C-extensions" not in capsys.readouterr().err
    assert signal.getsignal(number) is before
