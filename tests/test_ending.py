"""Commands that are told to end clean up."""

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
    """A signal that comes many times does not disturb."""
    process, number = waiting(), getattr(signal, name)
    for _ in range(20):
        process.send_signal(number)
    assert process.wait(timeout=300) == 128 + number
    _, error = process.communicate()
    assert error.decode() == f"\nlinrank: ended by {name}\n"
    assert os.listdir(tmp_path / "out") == []


def test_nohup_goes_on(tmp_path, waiting):
    process = waiting(preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    process.send_signal(signal.SIGHUP)
    process.communicate(b"2 qid:1 1:3\n", timeout=300)
    assert process.returncode == 0
    assert (tmp_path / "out" / "scores.txt").read_text().split() == ["1.0", "3.0"]


def test_a_terminal_that_is_gone(tmp_path, waiting):
    """Standard error leads nowhere any more; the status tells all the same."""
    controller, terminal = os.openpty()
    process = waiting(stderr=terminal)
    os.close(terminal)
    os.close(controller)
    process.send_signal(signal.SIGHUP)
    assert process.wait(timeout=300) == 129
    process.communicate()
    assert os.listdir(tmp_path / "out") == []


ENDS = [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, 130)]


@pytest.fixture
def heeded(monkeypatch):
    """Calls a function as a command, under signals that nobody has changed."""
    from linrank.cli import inspect
    from linrank.cli.main import main

    usual = {number: signal.SIG_DFL for number, _ in ENDS}
    usual[signal.SIGINT] = signal.default_int_handler
    before = {number: signal.signal(number, handler) for number, handler in usual.items()}

    def call(function):
        monkeypatch.setattr(inspect, "run", lambda args, parser: function())
        return main(["inspect", "x"])

    yield call
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize(("number", "status"), ENDS)
def test_a_module_that_is_being_imported_is_not_disturbed(
    tmp_path, monkeypatch, heeded, number, status
):
    """Compiled ones end the process when they are struck while they set themselves up."""
    code = f"os.kill(os.getpid(), {int(number)})\ntime.sleep(0.1)\nis_whole = True\n"
    (tmp_path / "struck_while_imported.py").write_text(f"import os, time\n{code}")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "struck_while_imported", raising=False)
    seen = []

    def run():
        import struck_while_imported

        seen.append(struck_while_imported.is_whole)
        time.sleep(10)

    assert heeded(run) == status
    assert seen in ([], [True])  # the signal comes again as soon as the import is through
    assert sys.modules["struck_while_imported"].is_whole


@pytest.mark.parametrize(("number", "status"), ENDS)
def test_a_command_that_is_run_by_an_import_can_be_ended(tmp_path, number, status):
    """That import takes as long as the command."""
    (tmp_path / "runs.py").write_text(
        "from linrank.cli import inspect\n"
        "from linrank.cli.main import main\n"
        "import os, time\n"
        f"inspect.run = lambda *_: (os.kill(os.getpid(), {int(number)}), time.sleep(900))\n"
        "raise SystemExit(main(['inspect', 'x']))\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    command = [sys.executable, "-c", "import runs"]
    done = subprocess.run(command, env=environment, stderr=subprocess.DEVNULL, timeout=300)
    assert done.returncode == status


@pytest.mark.parametrize(("number", "status"), ENDS)
def test_a_library_that_makes_an_error_of_its_own_of_it(capsys, heeded, number, status):
    """NumPy says that its extensions are broken when its import is interrupted."""

    def run():
        try:
            os.kill(os.getpid(), number)
            time.sleep(10)
        except KeyboardInterrupt:
            raise ImportError("C-extensions failed") from None

    before = signal.getsignal(number)
    assert heeded(run) == status
    assert "C-extensions" not in capsys.readouterr().err
    assert signal.getsignal(number) is before
