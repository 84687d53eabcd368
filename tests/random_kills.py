"""Commands that are killed at random moments: whatever they write is whole, and nothing is left."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cli_files import wait_for_the_end_of
from linrank import Store, load_model
from linrank.cli.main import main
from linrank.stochastic import checkpoint

SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGKILL)
KILLS_IN_A_ROW = 4  # before a run that is left alone


# ---- what is written ----------------------------------------------------------------------------


def content(path: str) -> Any:
    """A file, by its bytes."""
    with open(path, "rb") as file:
        return file.read()


def model(path: str) -> Any:
    load_model(path)
    return content(path)


def store(path: str) -> Any:
    opened = Store(path)
    opened.verify()
    opened.close()
    return content(os.path.join(path, "manifest.json"))


def table(path: str) -> Any:
    """Times differ from run to run."""
    return sorted(json.loads(content(path)))


def state(path: str) -> Any:
    """Of a training that goes on from it: which one does not matter."""
    checkpoint.load(path)
    return "whole"


@dataclass(frozen=True)
class Command:
    """A command line with {old} or {new} data as input, and what it writes by name.

    ``aside`` may be there or not: files that a run may leave on purpose when it is ended.
    """

    line: str
    writes: dict[str, Callable[[str], Any]]
    aside: dict[str, Callable[[str], Any]] = field(default_factory=dict)


STREAM = "--method sgd --stream --passes 8 --memory-limit 50MB --checkpoint {out}/state"
COMMANDS = {
    "train": Command("train {data}.txt {out}/m.json", {"m.json": model}),
    "train --stream": Command(
        f"train {{data}}.txt {{out}}/m.json {STREAM} --checkpoint-every 1",
        {"m.json": model},
        {"state": state},
    ),
    "train --dask": Command(
        "train {data}.store {out}/m.json --dask local:2 --checkpoint {out}/state",
        {"m.json": model},
        {"state": state},
    ),
    "tune": Command("tune {data}.txt -o {out}/m.json --Cs 0.001,0.01 --folds 2", {"m.json": model}),
    "predict": Command("predict {data}.txt {model} {out}/s.txt", {"s.txt": content}),
    "evaluate": Command("evaluate {data}.txt --model {model} -o {out}/q.csv", {"q.csv": content}),
    "compare": Command(
        "compare {data}.txt {data}.txt {data}.txt --methods ranksvm,random -o {out}/t.json",
        {"t.json": table},
    ),
    "report": Command("report {data}.txt --model {model} -o {out}/r.html", {"r.html": content}),
    "export": Command(
        "export {of_data} --to ranklib -o {out}/m.txt", {"m.txt": content, "m.README.txt": content}
    ),
    "export --to onnx": Command(
        "export {of_data} --to onnx -o {out}/m.onnx",
        {"m.onnx": content, "m.README.txt": content},
    ),
    **{
        f"convert {name}": Command(
            f"convert {{data}}.{source} {{out}}/d{suffix} --force {options}", {f"d{suffix}": kind}
        )
        for name, source, suffix, options, kind in (
            ("text", "parquet", ".txt", "", content),
            ("gz", "txt", ".txt.gz", "", content),
            ("zst", "txt", ".txt.zst", "", content),
            ("csv", "txt", ".csv", "", content),
            ("parquet", "txt", ".parquet", "", content),
            ("parquet, bounded", "txt", ".parquet", "--memory-limit 64MiB", content),
            ("store", "txt", ".store", "", store),
            ("store, apart", "shuffled.txt", ".store", "--memory-limit 64MiB", store),
            ("store of a table", "parquet", ".store", "--memory-limit 64MiB", store),
        )
    },
}


# ---- a place to run them in ---------------------------------------------------------------------


@dataclass(frozen=True)
class Undisturbed:
    """What a command writes of old and of new data, all names there, and how long it takes."""

    old: dict[str, Any]
    new: dict[str, Any]
    saved: str
    names: list[str]
    seconds: float


class World:
    """Inputs, the outputs of runs that are left alone, and a folder to write into."""

    def __init__(self, path: str, n_rows: int, seed: int) -> None:
        self.path, self.rng = path, random.Random(seed)
        self._undisturbed: dict[str, Undisturbed] = {}
        self.out, self.temporary = os.path.join(path, "out"), os.path.join(path, "tmp")
        os.mkdir(self.temporary)
        for k, name in enumerate(("old", "new")):
            base = os.path.join(path, name)
            lines = _lines(n_rows, k)
            _write(f"{base}.txt", lines)
            random.Random(k).shuffle(lines)
            _write(f"{base}.shuffled.txt", lines)
            for suffix in ("parquet", "store"):
                assert main(["convert", f"{base}.txt", f"{base}.{suffix}", "-q"]) == 0
            assert main(["train", f"{base}.txt", f"{base}.json", "-q"]) == 0

    def arguments(self, command: Command, name: str) -> list[str]:
        base = os.path.join(self.path, name)
        values = {"data": base, "of_data": f"{base}.json", "out": self.out}
        values["model"] = os.path.join(self.path, "old.json")
        return [part.format(**values) for part in command.line.split()]

    def start(self, command: Command, name: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "linrank", *self.arguments(command, name), "-q"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "TMPDIR": self.temporary},
        )

    def finish(self, command: Command, name: str) -> float:
        """Run a command to its end; the seconds that it took."""
        began = time.monotonic()
        process = self.start(command, name)
        _, error = process.communicate(timeout=300)
        assert process.returncode in (0, 3), (command.line, error)
        return time.monotonic() - began

    def found(self, command: Command) -> dict[str, Any]:
        """All that is there of what a command writes; fails if something is not whole."""
        paths = {name: os.path.join(self.out, name) for name in (*command.writes, *command.aside)}
        kinds = command.writes | command.aside
        return {n: kinds[n](path) for n, path in paths.items() if os.path.lexists(path)}

    def undisturbed(self, command: Command) -> Undisturbed:
        if command.line not in self._undisturbed:
            self.empty()
            self.finish(command, "old")
            old = self.found(command)
            saved = os.path.join(self.path, f"saved{len(self._undisturbed)}")
            shutil.copytree(self.out, saved)
            for place in command.aside:  # else the new run would go on from the old one
                os.remove(os.path.join(saved, place))
            self.empty()
            seconds = self.finish(command, "new")
            names = sorted(os.listdir(self.out))
            found = Undisturbed(old, self.found(command), saved, names, seconds)
            self._undisturbed[command.line] = found
        return self._undisturbed[command.line]

    def empty(self) -> None:
        shutil.rmtree(self.out, ignore_errors=True)
        os.mkdir(self.out)


def _lines(n_rows: int, seed: int) -> list[str]:
    rng = np.random.default_rng(seed)
    X, labels = rng.normal(size=(n_rows, 12)).round(5), rng.integers(0, 3, n_rows)
    return [
        f"{y} qid:{i // 20} {' '.join(f'{j}:{v}' for j, v in enumerate(x, 1))} # d{i}\n"
        for i, (y, x) in enumerate(zip(labels.tolist(), X.tolist(), strict=True))
    ]


def _write(path: str, lines: list[str]) -> None:
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(lines)


# ---- killing ------------------------------------------------------------------------------------


def kill_in_a_row(world: World, name: str, signals: list[int], counts: Counter[Any]) -> None:
    """Kill a command again and again, with and without old files there, then leave it alone."""
    command = COMMANDS[name]
    before = world.undisturbed(command)
    old, new = before.old, before.new
    world.empty()
    has_old = world.rng.random() < 0.7
    if has_old:
        shutil.copytree(before.saved, world.out, dirs_exist_ok=True)
    seen, seconds = set(command.writes) if has_old else set(), before.seconds
    for number in signals:
        how, n_tries = "done before", 0
        while how == "done before":  # a run that was through already is none
            n_tries += 1
            assert n_tries <= 60, f"{name} does not end by {signal.Signals(number).name}"
            process = world.start(command, "new")
            time.sleep(world.rng.uniform(0.02, 1.02 * seconds))
            process.send_signal(number)
            _, error = process.communicate(timeout=120)
            how = check_end(process.returncode, number, error)
            counts[name, signal.Signals(number).name, how] += 1
            wait_for_the_end_of(world.path)
            found = world.found(command)
            for place in command.writes:
                allowed = [new[place]]
                allowed += [old[place]] if has_old else []
                allowed += [None] if place not in seen else []  # of two files, one comes first
                assert found.get(place) in allowed, f"{name}: {place} after {number}"
            seen |= set(found)
            if how == "done before":
                seconds = max(0.2, 0.8 * seconds)
                for place in command.aside:  # else the next one would have nothing to do
                    os.remove(os.path.join(world.out, place))
    world.finish(command, "new")
    assert {n: world.found(command)[n] for n in command.writes} == {
        n: new[n] for n in command.writes
    }
    assert sorted(os.listdir(world.out)) == before.names
    # What Dask keeps there is its own.
    left = [entry for entry in os.listdir(world.temporary) if not entry.startswith("dask")]
    assert left == []


def check_end(status: int, number: int, error: str) -> str:
    """How it ended: with the status that shells give, or by the signal before it has begun."""
    if "Traceback" in error:  # of Python before it came to us, or of workers that Dask was starting
        assert "linrank/cli" not in error, error
        if number == signal.SIGINT and "linrank: " not in error:
            return "killed"
    assert status in (0, 3, 128 + number, -number), (status, error)
    if status in (0, 3):
        return "done before"
    return "cleaned up" if status == 128 + number else "killed"


def kill_all(
    path: str, n_kills: int, seed: int, names: list[str] | None = None, n_rows: int = 60_000
) -> Counter[Any]:
    """Kill commands in turn, each by all signals; (command, signal, how it ended) counted."""
    # A job in the background inherits a Ctrl-C that is ignored; the commands would not hear it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    world, counts = World(path, n_rows, seed), Counter()
    names, n_done = list(names or COMMANDS), 0
    while n_done < n_kills:
        for name in names:
            n_now = min(KILLS_IN_A_ROW, n_kills - n_done)
            signals = [SIGNALS[(i + n_done) % 4] for i in range(n_now)]
            world.rng.shuffle(signals)
            kill_in_a_row(world, name, signals, counts)
            n_done += n_now
            if n_done == n_kills:
                break
    return counts
