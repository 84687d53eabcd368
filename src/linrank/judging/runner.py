"""All jobs of a contest, some at a time, each in a separate process with a budget of time.

A process trains the candidates of one method on one fold and keeps the best. It is started as
``python -c`` in a folder of its own with the path of a job, and writes there how far it is: into a
file of JSON, which is replaced as a whole. It ends when its standard input does: nobody would read
what it finds.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from linrank.choices import N_FOLDS
from linrank.data import Array, CsrRows, Dataset, DenseRows, Rows, join_rows
from linrank.judging.candidates import Contestant, Model, Size, Trial
from linrank.metrics import Convention
from linrank.system.durable import Scratch

Progress = Callable[[dict[str, Any]], None]

SELECTIONS = ("auto", "validation", "cross-validation")
MANY = 200  # queries of a validation part that tell candidates apart
_LOOK = 0.1  # seconds between two looks at the processes
_STATE = "state.json"
_WITHOUT_MODEL = ("status", "why", "search_seconds", "n_candidates")
_START_UP = 60.0  # seconds that importing the libraries may take, beside the budget
_PROGRAM = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from linrank.judging.runner import main; main(sys.argv[2])"
)
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


@dataclass(frozen=True)
class Fold:
    """Numbers of the subsets that make up each part; none to choose by for cross-validation."""

    train: tuple[int, ...]
    valid: tuple[int, ...]
    test: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Protocol:
    """Subsets of whole queries, and the folds that they make.

    Attributes
    ----------
    subsets : tuple of Dataset
        Queries of different subsets are different queries, whatever their ids.
    names : tuple of str
        What messages call them.
    folds : tuple of Fold
    n_folds : int
        Of the training queries, where cross-validation chooses.
    """

    subsets: tuple[Dataset, ...]
    names: tuple[str, ...]
    folds: tuple[Fold, ...]
    n_folds: int = N_FOLDS

    def n_queries(self, part: Sequence[int]) -> int:
        """Of these subsets together."""
        return sum(self.subsets[number].queries.n_queries for number in part)

    def with_selection(self, selection: str, n_folds: int = N_FOLDS) -> Protocol:
        """The same without validation parts, if not these but cross-validation is to choose.

        That is so by default where a part has few queries: the best of many candidates on few
        queries, or of many rounds, is the one that was lucky there.
        """
        n_valid = min(self.n_queries(fold.valid) for fold in self.folds)
        n_train = min(self.n_queries(fold.train) for fold in self.folds)
        is_enough = n_valid >= MANY or (n_valid > 0 and n_train < n_folds)
        if {"auto": is_enough, "validation": True, "cross-validation": False}[selection]:
            if n_valid == 0:
                raise ValueError("selection='validation' needs a validation part; give one")
            return self
        if n_train < n_folds:
            raise ValueError(
                f"{n_train} training queries are too few for {n_folds}-fold cross-validation; give "
                "a validation part to choose on"
            )
        folds = tuple(replace(fold, valid=()) for fold in self.folds)
        return replace(self, folds=folds, n_folds=n_folds)

    @property
    def selection(self) -> str:
        """What candidates are chosen by, in a few words."""
        by_folds = f"in {self.n_folds}-fold cross-validation over the training queries"
        return "on the validation part" if self.folds[0].valid else by_folds

    def describe(self) -> str:
        """The protocol in a few words."""
        if len(self.folds) == 1:
            return "one split"
        fold = self.folds[0]
        choose = f"{len(fold.valid)} to choose, " if fold.valid else ""
        sizes = f"{len(self.folds)} folds of {len(self.subsets)} subsets"
        return f"{sizes}, {len(fold.train)} to train, {choose}{len(fold.test)} to test"


def one_split(train: Dataset, valid: Dataset | None, test: Dataset) -> Protocol:
    """One fold of three parts, or of two."""
    if valid is None:
        return _protocol((train, test), ("train", "test"), [Fold((0,), (), (1,))])
    return _protocol((train, valid, test), ("train", "valid", "test"), [Fold((0,), (1,), (2,))])


def rotation(subsets: Sequence[Dataset]) -> Protocol:
    """LETOR's folds: fold k trains on all subsets from the k-th on but the last two of the circle.

    With five subsets, fold 1 trains on S1, S2, S3, chooses on S4 and tests on S5; fold 2 trains on
    S2, S3, S4, chooses on S5 and tests on S1; and so on. Every query is tested once.

    Examples
    --------
    >>> from linrank import make_ranking
    >>> parts = [make_ranking(n_queries=4, random_state=k) for k in range(5)]
    >>> rotation(parts).folds[1]
    Fold(train=(1, 2, 3), valid=(4,), test=(0,))
    """
    n = len(subsets)
    if n < 3:
        raise ValueError(
            f"folds need at least 3 subsets, one each to train, to choose and to test; got {n} "
            "(LETOR has 5)"
        )
    circles = [tuple((k + i) % n for i in range(n)) for k in range(n)]
    folds = [Fold(circle[:-2], circle[-2:-1], circle[-1:]) for circle in circles]
    return _protocol(subsets, [f"S{k + 1}" for k in range(n)], folds)


def _protocol(subsets: Sequence[Dataset], names: Sequence[str], folds: Sequence[Fold]) -> Protocol:
    """The protocol; subsets that are files are known by these, the others by the names."""
    named = zip(names, subsets, strict=True)
    sources = (name if data.source.startswith("<") else data.source for name, data in named)
    return Protocol(tuple(subsets), tuple(sources), tuple(folds))


@dataclass(frozen=True)
class Rules:
    """What is the same for all jobs.

    Attributes
    ----------
    scoring, convention, scale, seed, n_folds
        As in `linrank.judging.candidates.Trial`.
    budget : float
        Seconds on the clock for each job.
    """

    scoring: str
    convention: Convention
    scale: str
    seed: int
    budget: float
    n_folds: int = N_FOLDS


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
        The measure that the candidate was chosen by, higher is better.
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

    def to_dict(self) -> dict[str, Any]:
        """Plain Python values, without the scores."""
        apart, size = ("score", "size", "scores"), self.size
        return {
            **{name: value for name, value in vars(self).items() if name not in apart},
            "why": self.why or None,
            "validation_score": self.score,
            "model_bytes": None if size is None else size.n_bytes,
            "model_parts": None if size is None else {size.part: size.n_parts},
        }


# ---- in the process of the caller ---------------------------------------------------------------


class Worker:
    """A job on its way: a process, and the folder in which it says how far it is.

    Parameters
    ----------
    fold : int
        The number of the fold.
    method : Contestant
        Who is trained.
    job : dict
        What the process is to read, beside the method and the place of the data.
    data : str
        The folder of the data, and of one for its own files: the scores of the test rows.
    budget : float
        Seconds on the clock for the search.
    """

    def __init__(
        self, fold: int, method: Contestant, job: dict[str, Any], data: str, budget: float
    ) -> None:
        self.fold, self.method, self.budget = fold, method, budget
        name = f"fold{fold + 1}-{method.name.replace(os.sep, '_')}"
        self.folder = folder = os.path.join(data, name)
        self.start = time.monotonic()
        self._deadline, self._is_searching = self.start + budget + _START_UP, False
        self._is_killed = False
        os.mkdir(folder)
        path, self._log = os.path.join(folder, "job.json"), os.path.join(folder, "job.log")
        job = {**job, "folder": data, "method": asdict(method)}
        Path(path).write_text(json.dumps(job), "utf-8")
        paths = json.dumps([os.path.abspath(entry) for entry in sys.path])
        with open(self._log, "wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-c", _PROGRAM, paths, path],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=folder,
                env={**os.environ, **_ONE_THREAD, "TMPDIR": folder},
                start_new_session=True,  # Ctrl-C is the parent's to answer
            )

    @property
    def seconds(self) -> float:
        """Since its start, on the clock."""
        return time.monotonic() - self.start

    def has_ended(self) -> bool:
        """Whether the process has ended; kill it if its time is over."""
        if self.process.poll() is not None:
            return True
        now = time.monotonic()
        if not self._is_searching and os.path.exists(os.path.join(self.folder, _STATE)):
            self._deadline, self._is_searching = now + self.budget, True
        if now > self._deadline:
            self.kill()
        return False

    def kill(self) -> None:
        """End the process, and all that it may have started, if it still runs."""
        if self.process.poll() is None:
            self._is_killed = True
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)

    def stop(self) -> None:
        """End the process, and free what it takes."""
        self.kill()
        with self.process:  # closes the pipe and waits
            pass

    def outcome(self) -> Outcome:
        """What it has come to."""
        self.stop()
        state: dict[str, Any] = {"status": "", "why": ""}
        with suppress(FileNotFoundError):
            state |= json.loads(Path(self.folder, _STATE).read_text("utf-8"))
        if self._is_killed and state["status"] != "done":
            if state.get("score") is None:
                status, why = "over budget", f"no candidate within {self.budget:g} s"
            else:
                n = state["n_candidates"]
                counts = "the only candidate so far" if n == 1 else f"the best of {n} candidates"
                status, why = "cut", f"stopped after {self.budget:g} s; {counts} counts"
            state |= {"status": status, "why": why}
        elif not state["status"]:
            state |= {"status": "failed", "why": self._cause_of_death()}
        if state["status"] not in ("done", "cut"):
            state = {name: state[name] for name in _WITHOUT_MODEL if name in state}
            return Outcome(**state)
        state["size"] = Size(**state["size"])
        state["scores"] = np.load(os.path.join(self.folder, state["scores"]))
        return Outcome(**state)

    def _cause_of_death(self) -> str:
        code = self.process.returncode
        if code >= 0:
            log = Path(self._log).read_text("utf-8", errors="replace").split("\n")
            lines = [line.strip() for line in log if line.strip()]
            last = f": {lines[-1][:200]}" if lines else ""
            return f"the process ended with status {code}{last}"
        name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
        hint = "; out of memory?" if name == "SIGKILL" else ""
        return f"the process died of {name}{hint}"


def run_all(
    protocol: Protocol,
    methods: Sequence[Contestant],
    rules: Rules,
    n_jobs: int,
    progress: Progress | None = None,
) -> dict[str, list[Outcome]]:
    """The outcomes of every method, by fold. However this ends, no process and no file is left."""
    outcomes: dict[str, list[Outcome]] = {}
    for method in methods:
        why = f"the package {method.needs} is not installed: pip install {method.needs}"
        outcomes[method.name] = [Outcome("missing", why)] * len(protocol.folds)
    waiting = deque((k, m) for k in range(len(protocol.folds)) for m in methods if not m.is_missing)
    shared = asdict(rules)
    budget, n_total = shared.pop("budget"), len(waiting)
    running: list[Worker] = []
    took: dict[str, list[float]] = {}  # seconds of the jobs that have ended, by method

    def tell(**state: Any) -> None:
        if progress is not None:
            n_done = n_total - len(waiting) - len(running)
            progress({**state, "n_done": n_done, "n_total": n_total})

    with Scratch() as scratch:
        for number, data in enumerate(protocol.subsets):
            write_subset(scratch.path, number, data)
        try:
            while waiting or running:
                while waiting and len(running) < n_jobs:
                    k, method = waiting.popleft()
                    job = {"parts": list(vars(protocol.folds[k]).values()), "rules": shared}
                    running.append(Worker(k, method, job, scratch.path, budget))
                time.sleep(_LOOK)
                for worker in [worker for worker in running if worker.has_ended()]:
                    running.remove(worker)
                    outcome = worker.outcome()
                    outcomes[worker.method.name][worker.fold] = outcome
                    took.setdefault(worker.method.name, []).append(worker.seconds)
                    shown = ("status", "why", "score", "parameters")
                    about: dict[str, Any] = {name: getattr(outcome, name) for name in shown}
                    about |= {"fold": worker.fold + 1, "method": worker.method.name}
                    tell(event="finished", scoring=rules.scoring, seconds=worker.seconds, **about)
                names = [f"{worker.method.name} (fold {worker.fold + 1})" for worker in running]
                left = [(worker.method.name, worker.seconds) for worker in running]
                left += [(method.name, 0.0) for _, method in waiting]
                seconds = estimate_seconds(left, took, max(1, len(running)))
                tell(event="running", running=names, seconds_left=seconds)
        finally:
            for worker in running:
                worker.stop()
    return outcomes


def estimate_seconds(
    left: Sequence[tuple[str, float]], took: Mapping[str, Sequence[float]], n_at_once: int
) -> float | None:
    """Seconds that jobs may still take: each as long as its method took on other folds.

    A method that has not ended yet is taken to need what the others did on average, and once it has
    taken longer, as long again; None while there is nothing to go by.

    Parameters
    ----------
    left : sequence of (str, float)
        The method of each job, and how long it has been running.
    took : mapping of str to sequence of float
        How long jobs of each method took.
    n_at_once : int
        Jobs that run side by side.
    """
    if not took:
        return None
    means = {name: sum(times) / len(times) for name, times in took.items()}
    usual = sum(means.values()) / len(means)
    rest = 0.0
    for name, spent in left:
        expected = means.get(name, usual)
        is_overdue = name not in means and spent > expected
        rest += spent if is_overdue else max(0.0, expected - spent)
    return rest / n_at_once


# ---- in the process of a job --------------------------------------------------------------------


def write_subset(folder: str, number: int, data: Dataset) -> None:
    """Write the subset with the rows of each query together, queries numbered from 0."""
    queries = data.queries
    rows = data.rows if queries.order is None else data.rows.take(queries.order)
    arrays = {"labels": queries.gather(data.labels), "sizes": np.diff(queries.offsets)}
    for name in ("values", "columns", "offsets") if rows.is_sparse else ("values",):
        arrays[name] = getattr(rows, name)
    base = -1 if data.index_base is None else data.index_base
    arrays["about"] = np.array([data.n_features, base])
    subset = Path(folder, f"subset{number}")
    subset.mkdir()
    for name, array in arrays.items():
        np.save(subset / f"{name}.npy", array)


def read_joined(folder: str, numbers: Sequence[int]) -> Dataset:
    """The subsets one after the other as one dataset; a single one is mapped, not read."""
    parts = [
        # As plain arrays over the maps: some libraries look at the type.
        {path.stem: np.asarray(np.load(path, mmap_mode="r")) for path in subset.iterdir()}
        for subset in (Path(folder, f"subset{number}") for number in numbers)
    ]
    n_features, index_base = parts[0]["about"].tolist()
    rows: list[Rows] = []
    for part in parts:
        if "columns" not in part:
            rows.append(DenseRows(part["values"]))
        else:
            rows.append(CsrRows(part["values"], part["columns"], part["offsets"], n_features))
    labels, sizes = (np.concatenate([part[name] for part in parts]) for name in ("labels", "sizes"))
    qid = np.repeat(np.arange(len(sizes)), sizes)
    base = None if index_base < 0 else index_base
    return Dataset(join_rows(rows), labels, qid, index_base=base)


def main(path: str) -> None:
    """Do the job that the file at ``path`` describes."""
    tell = _writer(os.getcwd())
    threading.Thread(target=_end_with_the_parent, daemon=True).start()
    try:
        job = json.loads(Path(path).read_text("utf-8"))
        train, valid, test = job["parts"]
        known = read_joined(job["folder"], valid) if valid else None
        job["rules"]["convention"] = Convention(**job["rules"]["convention"])
        trial = Trial(read_joined(job["folder"], train), known, **job["rules"])
        rows = read_joined(job["folder"], test)
        tell({})  # the budget counts from here
        search(Contestant(**job["method"]), trial, rows, tell)
    except Exception as error:  # whatever a method of others may raise: its row will say so
        traceback.print_exc()
        text = " ".join(str(error).split())
        why = f"{type(error).__name__}: {text}" if text else repr(error)
        tell({"status": "failed", "why": why})


def search(
    method: Contestant, trial: Trial, test: Dataset, tell: Progress, folder: str = "."
) -> None:
    """Judge each candidate; tell of the best so far, its scores of the test rows in a file.

    Every file has another name, which the message has: whoever ends this between the file and the
    message still has the scores of the candidate in the last message.
    """
    start, best, best_score, name = time.process_time(), None, -np.inf, ""
    parts = trial.parts()
    scores = np.empty(sum(held_out.n_rows for _, held_out, _ in parts))
    for n_seen, point in enumerate(method.points(trial), start=1):
        for part, held_out, rows in parts:
            model, took = _time_fit(method, part, point)
            scores[rows] = model.predict(held_out)
        score = trial.judge(scores) if np.isfinite(scores).all() else -np.inf
        # Of those that differ by rounding only, the first: the most regularized.
        if best is None or score > best_score + 1e-12 * min(1.0, abs(best_score)):
            if trial.valid is None:  # so far there are models of the folds only
                model, took = _time_fit(method, trial, point)
            best, best_score, last = {**point, **model.found}, score, name
            name = f"scores-{n_seen}.npy"
            np.save(os.path.join(folder, name), np.asarray(model.predict(test), np.float64))
            found = {"parameters": best, "score": score if np.isfinite(score) else None}
            found |= {"fit_seconds": took, "size": asdict(model.size())}
            tell({**found, "scores": name, "n_candidates": n_seen})
            if last:
                os.remove(os.path.join(folder, last))
        tell({"n_candidates": n_seen, "search_seconds": time.process_time() - start})
    if best is None:
        raise ValueError("the method has come up with no model")
    if not np.isfinite(best_score):
        raise ValueError("no candidate gives finite scores that the measure can judge")
    tell({"status": "done"})
    # One fit is one from the beginning, without what other candidates have left or looked for.
    tell({"fit_seconds": _time_fit(method, replace(trial, last={}), best)[1]})


def _time_fit(method: Contestant, trial: Trial, point: Mapping[str, Any]) -> tuple[Model, float]:
    began = time.process_time()
    model = method.model(trial, point)
    return model, time.process_time() - began


def _writer(folder: str) -> Progress:
    """What a message holds replaces what was said before; a reader finds all of it or none."""
    state: dict[str, Any] = {}
    path = os.path.join(folder, _STATE)

    def tell(message: dict[str, Any]) -> None:
        state.update(message)
        Path(f"{path}.new").write_text(json.dumps(state), "utf-8")
        os.replace(f"{path}.new", path)

    return tell


def _end_with_the_parent() -> None:
    """The other end of standard input closes when the parent is gone, however it went."""
    sys.stdin.buffer.read()
    os._exit(1)
