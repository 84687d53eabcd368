"""Commands that are killed at random moments: what they write is whole, and nothing is left."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from cli_files import wait_for_the_end_of
from linrank import Store, load_model
from linrank.cli.main import main
from linrank.stochastic import checkpoint

SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGKILL)
KILLS_IN_A_ROW = 4  # before a run that is left alone


# ---- what is written ----------------------------------------------------------------------------


def look_at(path: str) -> Any:
    """What must be whole: models, stores and states are read; bytes are compared."""
    name = os.path.basename(path)
    if name == STATE:  # of a training that goes on from it: which one does not matter
        checkpoint.load(path)
        return "whole"
    if name == "m.json":
        load_model(path)
    if name == "d.store":
        opened, path = Store(path), os.path.join(path, "manifest.json")
        opened.verify()
        opened.close()
    content = Path(path).read_bytes()
    return sorted(json.loads(content)) if name == "t.json" else content  # times differ


STATE = "state"  # may be there or not: a run may leave it on purpose when it is ended
STREAM = "--method sgd --stream --passes 8 --memory-limit 50MB --checkpoint {out}/state"
COMMANDS = {
    "train": "train {data}.txt {out}/m.json",
    "train --stream": f"train {{data}}.txt {{out}}/m.json {STREAM} --checkpoint-every 1",
    "train --dask": "train {data}.store {out}/m.json --dask local:2 --checkpoint {out}/state",
    "tune": "tune {data}.txt -o {out}/m.json --Cs 0.001,0.01 --folds 2",
    "predict": "predict {data}.txt {model} {out}/s.txt",
    "evaluate": "evaluate {data}.txt --model {model} -o {out}/q.csv",
    "compare": "compare {data}.txt {data}.txt {data}.txt --methods ranksvm,random -o {out}/t.json",
    "report": "report {data}.txt --model {model} -o {out}/r.html",
    "export": "export {of_data} --to ranklib -o {out}/m.txt",
    "export --to onnx": "export {of_data} --to onnx -o {out}/m.onnx",
    "convert text": "convert {data}.parquet {out}/d.txt --force",
    "convert gz": "convert {data}.txt {out}/d.txt.gz --force",
    "convert zst": "convert {data}.txt {out}/d.txt.zst --force",
    "convert csv": "convert {data}.txt {out}/d.csv --force",
    "convert parquet": "convert {data}.txt {out}/d.parquet --force",
    "convert parquet, bounded": "convert {data}.txt {out}/d.parquet --force --memory-limit 64MiB",
    "convert store": "convert {data}.txt {out}/d.store --force",
    "convert store, apart": (
        "convert {data}.shuffled.txt {out}/d.store --force --memory-limit 64MiB"
    ),
    "convert store of a table": "convert {data}.parquet {out}/d.store --force --memory-limit 64MiB",
}


def names_of_outputs(line: str) -> list[str]:
    """What a command writes, its state apart."""
    names = set(re.findall(r"{out}/(\S+)", line)) - {STATE}
    return sorted(names | ({"m.README.txt"} if line.startswith("export") else set()))


# ---- a place to run them in ---------------------------------------------------------------------


class Undisturbed(NamedTuple):
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
        self.out, self.temporary = os.path.join(path, "out"), os.path.join(path, "tmp")
        os.mkdir(self.temporary)
        for k, name in enumerate(("old", "new")):
            base = os.path.join(path, name)
            lines = _lines(n_rows, k)
            Path(f"{base}.txt").write_text("".join(lines))
            random.Random(k).shuffle(lines)
            Path(f"{base}.shuffled.txt").write_text("".join(lines))
            for suffix in ("parquet", "store"):
                assert main(["convert", f"{base}.txt", f"{base}.{suffix}", "-q"]) == 0
            assert main(["train", f"{base}.txt", f"{base}.json", "-q"]) == 0

    def start(self, line: str, name: str) -> subprocess.Popen[str]:
        base = os.path.join(self.path, name)
        values = {"data": base, "of_data": f"{base}.json", "out": self.out}
        values["model"] = os.path.join(self.path, "old.json")
        return subprocess.Popen(
            [sys.executable, "-m", "linrank", *line.format(**values).split(), "-q"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "TMPDIR": self.temporary},
        )

    def finish(self, line: str, name: str) -> float:
        """Run a command to its end; the seconds that it took."""
        began = time.monotonic()
        process = self.start(line, name)
        _, error = process.communicate(timeout=300)
        assert process.returncode in (0, 3), (line, error)
        return time.monotonic() - began

    def found(self, line: str) -> dict[str, Any]:
        """All that is there of what a command writes; fails if something is not whole."""
        paths = {name: os.path.join(self.out, name) for name in (*names_of_outputs(line), STATE)}
        there = {name: path for name, path in paths.items() if os.path.lexists(path)}
        return {name: look_at(path) for name, path in there.items()}

    def forget_state(self, folder: str) -> None:
        """Else the next run would go on from that of the one before."""
        Path(folder, STATE).unlink(missing_ok=True)

    @cache  # noqa: B019  there is one world
    def undisturbed(self, line: str) -> Undisturbed:
        self.empty()
        self.finish(line, "old")
        old, saved = self.found(line), os.path.join(self.path, f"saved{abs(hash(line))}")
        shutil.copytree(self.out, saved)
        self.forget_state(saved)
        self.empty()
        seconds = self.finish(line, "new")
        return Undisturbed(old, self.found(line), saved, sorted(os.listdir(self.out)), seconds)

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


# ---- killing ------------------------------------------------------------------------------------


def kill_in_a_row(world: World, name: str, signals: list[int], counts: Counter[Any]) -> None:
    """Kill a command again and again, with and without old files there, then leave it alone."""
    line, outputs = COMMANDS[name], names_of_outputs(COMMANDS[name])
    before = world.undisturbed(line)
    old, new = before.old, before.new
    world.empty()
    has_old = world.rng.random() < 0.7
    if has_old:
        shutil.copytree(before.saved, world.out, dirs_exist_ok=True)
    seen, seconds = set(outputs) if has_old else set(), before.seconds
    for number in signals:
        how, n_tries = "done before", 0
        while how == "done before":  # a run that was through already is none
            n_tries += 1
            assert n_tries <= 60, f"{name} does not end by {signal.Signals(number).name}"
            process = world.start(line, "new")
            time.sleep(world.rng.uniform(0.02, 1.02 * seconds))
            process.send_signal(number)
            _, error = process.communicate(timeout=120)
            how = check_end(process.returncode, number, error)
            counts[name, signal.Signals(number).name, how] += 1
            wait_for_the_end_of(world.path)
            found = world.found(line)
            for place in outputs:
                allowed = [new[place]]
                allowed += [old[place]] if has_old else []
                allowed += [None] if place not in seen else []  # of two files, one comes first
                assert found.get(place) in allowed, f"{name}: {place} after {number}"
            seen |= set(found)
            if how == "done before":
                seconds = max(0.2, 0.8 * seconds)
                world.forget_state(world.out)
    world.finish(line, "new")
    found = world.found(line)
    assert [found[name] for name in outputs] == [new[name] for name in outputs]
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


def n_killed(counts):
    return sum(n for (_, _, how), n in counts.items() if how != "done before")


def test_a_few_kills(tmp_path):
    names = ["predict", "convert csv", "convert store, apart"]
    counts = kill_all(str(tmp_path), 6, seed=1, names=names, n_rows=3000)
    assert n_killed(counts) == 6


@pytest.mark.slow
def test_many_kills(tmp_path):
    """As many as LINRANK_KILLS says, from the seed LINRANK_SEED."""
    n_kills = int(os.environ.get("LINRANK_KILLS", "500"))
    counts = kill_all(str(tmp_path), n_kills, int(os.environ.get("LINRANK_SEED", "0")))
    assert n_killed(counts) == n_kills
