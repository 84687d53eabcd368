"""One worker: its process, what it has said so far, and what became of it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank.judging.contest.methods import Size

Array = NDArray[Any]

_START_UP = 60.0  # seconds that importing the libraries may take, beside the budget
_PROGRAM = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from linrank.judging.contest.worker import main; main(sys.argv[2])"
)
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


@dataclass(frozen=True, eq=False)
class Outcome:
    """What became of one method on one fold.

    Attributes
    ----------
    status : {"done", "cut", "over budget", "failed", "missing"}
        ``cut``: the budget ended the search, and the best candidate so far counts. The last three
        have no model.
    why : str
        What went wrong, in words; empty if nothing did.
    parameters : dict
        Of the chosen candidate.
    score : float or None
        The measure of the chosen candidate on the validation part, higher is better.
    fit_seconds : float or None
        Processor time of one fit with the chosen parameters.
    search_seconds : float
        Processor time of the whole search, validation included.
    n_candidates : int
        Candidates that were judged.
    size : Size or None
    scores : float64 array or None
        Of the test rows, the rows of each query together.
    """

    status: str
    why: str = ""
    parameters: dict[str, Any] = field(default_factory=dict)
    score: float | None = None
    fit_seconds: float | None = None
    search_seconds: float = 0.0
    n_candidates: int = 0
    size: Size | None = None
    scores: Array | None = field(default=None, repr=False)

    @property
    def has_model(self) -> bool:
        """Whether there is a model to measure."""
        return self.scores is not None

    def to_dict(self) -> dict[str, Any]:
        """Plain Python values, without the scores."""
        size = self.size
        return {
            "status": self.status,
            "why": self.why or None,
            "parameters": self.parameters,
            "validation_score": self.score,
            "fit_seconds": self.fit_seconds,
            "search_seconds": self.search_seconds,
            "n_candidates": self.n_candidates,
            "model_bytes": None if size is None else size.n_bytes,
            "model_parts": None if size is None else {size.part: size.n_parts},
        }


class Worker:
    """A job on its way.

    Parameters
    ----------
    job : dict
        What the worker is to read.
    path : str
        A name for its files; scores of the test rows come into the same folder.
    budget : float
        Seconds on the clock for the search.
    """

    def __init__(self, job: dict[str, Any], path: str, budget: float) -> None:
        self.job, self.budget, self.path = job, budget, path
        self.began = time.monotonic()
        self.deadline = self.began + budget + _START_UP
        self._best: dict[str, Any] = {}
        self._seen: dict[str, Any] = {"n": 0, "seconds": 0.0}
        self._timed: float | None = None
        self._end: dict[str, Any] | None = None
        self._rest = b""
        with open(f"{path}.json", "w", encoding="utf-8") as file:
            json.dump(job, file)
        paths = json.dumps([os.path.abspath(entry) for entry in sys.path])
        with open(f"{path}.log", "wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-c", _PROGRAM, paths, f"{path}.json"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                cwd=os.path.dirname(path),
                env={**os.environ, **_ONE_THREAD, "TMPDIR": os.path.dirname(path)},
                start_new_session=True,  # Ctrl-C is the parent's to answer
            )

    @property
    def seconds(self) -> float:
        """Since its start, on the clock."""
        return time.monotonic() - self.began

    @property
    def is_over_budget(self) -> bool:
        return time.monotonic() > self.deadline

    def fileno(self) -> int:
        """Of its messages, for a selector."""
        assert self.process.stdout is not None
        return self.process.stdout.fileno()

    def read(self) -> bool:
        """Take in what has come; False at the end of the messages."""
        block = os.read(self.fileno(), 1 << 16)
        *lines, self._rest = (self._rest + block).split(b"\n")
        for line in lines:
            self._hear(json.loads(line))
        return bool(block)

    def _hear(self, message: dict[str, Any]) -> None:
        event = message.pop("event")
        if event == "begin":
            self.deadline = time.monotonic() + self.budget
        elif event == "best":
            self._best = message
        elif event == "seen":
            self._seen = message
        elif event == "timed":
            self._timed = message["seconds"]
        else:
            self._end = {"event": event, **message}

    def kill(self) -> None:
        """End the process, and all that it may have started; what it has said can be read."""
        if self.process.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def stop(self) -> None:
        """End the process, and listen no more."""
        self.kill()
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                stream.close()

    def outcome(self, *, over_budget: bool) -> Outcome:
        """What it has come to; the process has ended."""
        if self._end is not None and self._end["event"] == "done":
            return self._found("done")
        if over_budget and self._best.get("score") is not None:
            return self._found("cut", f"stopped after {self.budget:g} s; {self._what_counts()}")
        if over_budget:
            return self._lost("over budget", f"no candidate within {self.budget:g} s")
        if self._end is not None:
            return self._lost("failed", self._end["why"])
        return self._lost("failed", self._cause_of_death())

    def _found(self, status: str, why: str = "") -> Outcome:
        best = self._best
        seconds = best["fit_seconds"] if self._timed is None else self._timed
        return Outcome(
            status,
            why,
            best["parameters"],
            best["score"],
            seconds,
            self._seen["seconds"],
            max(self._seen["n"], best["n"]),
            Size(**best["size"]),
            np.load(os.path.join(os.path.dirname(self.path), best["scores"])),
        )

    def _what_counts(self) -> str:
        n = max(self._seen["n"], self._best["n"])
        return (
            "the only candidate so far counts" if n == 1 else f"the best of {n} candidates counts"
        )

    def _lost(self, status: str, why: str) -> Outcome:
        return Outcome(
            status, why, search_seconds=self._seen["seconds"], n_candidates=self._seen["n"]
        )

    def _cause_of_death(self) -> str:
        code = self.process.returncode
        with open(f"{self.path}.log", encoding="utf-8", errors="replace") as file:
            lines = [line.strip() for line in file if line.strip()]
        if code < 0:
            try:
                name = signal.Signals(-code).name
            except ValueError:
                name = f"signal {-code}"
            hint = "; out of memory?" if name == "SIGKILL" else ""
            return f"the process died of {name}{hint}"
        last = f": {lines[-1][:200]}" if lines else ""
        return f"the process ended with status {code}{last}"
