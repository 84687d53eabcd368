"""Methods that minimize one objective: the time of public calls until (F - F*)/F* is small.

Every race is a row of `RACES`: problems, methods, a gap. linrank's estimator is the first method,
and the ratios of the others are to it. A time is processor time on one thread from the call to the
first iterate with F <= F*(1 + gap), checks of the input and the model included; a method that tells
no iterates runs to its own end, at growing effort until it is there. F* is linrank's at tol=1e-10.

    python benchmarks/race.py
    python benchmarks/run.py race --rivals FOLDER    # with programs that you have built
"""

from __future__ import annotations

import signal
import statistics
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

import problems
from domination import load as load_for_domination
from linrank import DominationRanker, RankSVM
from linrank.data.dataset import Dataset
from linrank.data.rows import CsrRows
from linrank.domination.train import make_problem
from linrank.losses.base import Hinge, SquaredHinge
from linrank.objective import Ridge, Risk, Sum
from linrank.pairs import Pairs
from linrank.published import PublishedRankSVM
from linrank.ranksvm.train import train
from report import Table, main, ratio, spread
from rivals import bmrm, lbfgsb, programs, scikit_survival

Array = NDArray[Any]

GAP = 1e-5  # (F - F*)/F*
SVM_RANK = 24934.0  # objective that SVM-rank reaches on MQ2008 fold 1, C = 1, at its epsilon .001


# ---- the clock --------------------------------------------------------------


class TimeLimit(Exception):
    pass


@contextmanager
def time_limit(limit: float) -> Iterator[None]:
    """Raise `TimeLimit` after ``limit`` seconds, at the latest when the running kernel returns."""

    def stop(*_: Any) -> None:
        raise TimeLimit

    previous = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, limit)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)


def follow(
    data: Dataset, goal: float, *, limit: float, n_jobs: int = 1, **options: Any
) -> tuple[list[dict[str, Any]], bool]:
    """The states of the outer iterates of a fit, up to the first with ``F <= goal``.

    And whether the fit ended, by the goal or by itself, before ``limit`` seconds.
    """
    seen: list[dict[str, Any]] = []

    def watch(state: dict[str, Any]) -> bool:
        seen.append(state)
        return bool(state["objective"] <= goal)

    assert data.queries.n_pairs  # ranks the labels before the clock starts
    # The tolerance is out of reach: the callback alone decides, or the clock.
    options = {"tol": 1e-14, "max_iter": 100_000, **options}
    try:
        with time_limit(limit):
            train(data, n_jobs=n_jobs, callback=watch, **options)
    except TimeLimit:
        return seen, False
    return seen, True


def as_published(data: Dataset) -> Dataset:
    """The same rows sparse and double, as tron works on them: its conversion is not timed."""
    from scipy.sparse import csr_array

    rows = data.rows
    if isinstance(rows, CsrRows):
        values, columns, offsets = rows.values, rows.columns, rows.offsets
    else:
        matrix = csr_array(rows.values)
        values, columns, offsets = matrix.data, matrix.indices, matrix.indptr
    offsets = offsets.astype(np.int64)
    return replace(data, rows=CsrRows(values.astype(np.float64), columns, offsets, data.n_features))


# ---- tasks and methods ------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Task:
    """An objective to be minimized up to a goal.

    ``strength`` is C, or alpha of the domination loss; ``options`` are those of linrank's estimator
    that belong to the objective.
    """

    data: Dataset
    strength: float
    options: Mapping[str, Any]
    limit: float
    optimum: float = 0.0
    goal: float = 0.0

    @property
    def loss(self) -> str:
        return str(self.options.get("loss", "squared_hinge"))

    def value(self, w: Array) -> float:
        """``½‖w‖² + C·L(Xw)``."""
        loss = {"squared_hinge": SquaredHinge, "hinge": Hinge}[self.loss]
        risk = Risk(self.data.rows, loss(Pairs(self.data.queries)), self.strength)
        return float(Sum(Ridge(), risk).at(w).value)


@dataclass(frozen=True)
class Run:
    """A method on a task: seconds until the goal, or when it ended; its last objective."""

    seconds: float
    objective: float
    work: str = ""

    def is_there(self, task: Task) -> bool:
        return self.objective <= task.goal


Method = Callable[[Task], Run]


class Stop:
    """A callback that ends a fit at the goal, or when its processor time is over."""

    def __init__(self, task: Task) -> None:
        self.task, self.start = task, time.process_time()
        self.last: dict[str, Any] = {}

    def __call__(self, state: dict[str, Any]) -> bool:
        self.last = state
        is_late = time.process_time() - self.start > self.task.limit
        return bool(state["objective"] <= self.task.goal) or is_late

    def run(self) -> Run:
        counts = [int(self.last[name]) for name in ("n_iter", "n_hvp") if name in self.last]
        objective = float(self.last["objective"])
        return Run(time.process_time() - self.start, objective, ", ".join(map(str, counts)))


def ours(
    estimator: Any,
    strength: str = "C",
    prepare: Callable[[Dataset], Dataset] = lambda data: data,
    **options: Any,
) -> Method:
    """An estimator of linrank, one thread, features as they are."""

    def method(task: Task) -> Run:
        data = prepare(task.data)
        stop = Stop(task)
        given = {strength: task.strength, **task.options, **options}
        ranker = estimator(scale="none", tol=1e-14, max_iter=100_000, n_jobs=1, **given)
        with warnings.catch_warnings():  # the tolerance is out of reach
            warnings.simplefilter("ignore")
            ranker.set_params(callback=stop).fit(data)
        return stop.run()

    return method


def scipy_within_bounds(task: Task) -> Run:
    """L-BFGS-B of SciPy with w >= 0; value and gradient are linrank's, on one thread."""
    loss = SquaredHinge(Pairs(task.data.queries), 1)
    objective = Sum(Ridge(), Risk(task.data.rows, loss, task.strength))

    def oracle(w: Array) -> tuple[float, Array]:
        point = objective.at(w)
        return point.value, point.gradient

    n_features = task.data.n_features
    return Run(*lbfgsb.minimize_until(oracle, n_features, task.goal, task.limit, bound=0.0))


def scipy_on_domination(make_oracle: Callable[[Dataset], Any]) -> Method:
    """L-BFGS-B of SciPy on the domination loss; l1 as ``w = u - v`` with ``u, v >= 0``."""

    def method(task: Task) -> Run:
        oracle, penalty = make_oracle(task.data), task.options["penalty"]
        sizes = (task.data.n_features, penalty, task.strength)
        return Run(*lbfgsb.fit(oracle, *sizes, task.goal, task.limit))

    return method


def planes(task: Task) -> Run:
    """Cutting planes at the minimizer of their model, on linrank's sweeps."""
    start = time.process_time()
    _, value, n_rounds = bmrm.fit(task.data, task.strength, task.goal)
    return Run(time.process_time() - start, value, str(n_rounds))


def survival(task: Task) -> Run:
    """FastSurvivalSVM of scikit-survival by its defaults, to its own end."""
    scikit_survival.warm_up()
    start = time.process_time()
    with time_limit(task.limit):
        w = scikit_survival.fit(task.data, task.strength)
    return Run(time.process_time() - start, task.value(w))


def program(fit: Callable[..., tuple[float, Array]], efforts: tuple[float, ...]) -> Method:
    """A program of the user's: the first of these tolerances with which it is there, or the last.

    Its seconds are those of its training: reading the file is left out.
    """

    def method(task: Task) -> Run:
        run = Run(np.inf, np.inf)
        for tolerance in efforts:
            seconds, w = fit(task.data, task.strength, tolerance, task.limit)
            run = Run(seconds, task.value(w), f"tol {tolerance:g}")
            if run.is_there(task):
                break
        return run

    return method


PLAIN = {"pair_weighting": "uniform", "query_normalization": None}  # all pairs weigh the same
NEWTON = ours(RankSVM, **PLAIN)
TRON = ours(PublishedRankSVM, prepare=as_published, solver="tron")


# ---- the races --------------------------------------------------------------


@dataclass(frozen=True)
class Entry:
    """A problem in a race: its C (or share of the largest alpha), the least ratio that is asked of
    the other methods, and the seconds that each of these may take."""

    strength: float = 1.0
    asked: float | None = None
    limit: float = 60.0


@dataclass(frozen=True)
class Race:
    title: str
    entries: Mapping[str, Entry]
    methods: Mapping[str, Method]
    gap: float = GAP
    options: Mapping[str, Any] = field(default_factory=dict)
    load: Callable[[str, float], Dataset] = problems.load
    notes: tuple[str, ...] = ()


RACES = (
    Race(
        "Squared hinge on all pairs: Newton's method against tron as published",
        {
            "a": Entry(asked=20),
            "b20": Entry(asked=40, limit=180),
            "y20": Entry(asked=100, limit=240),
            "c": Entry(asked=12, limit=120),
            "mq": Entry(asked=20),
            "msn": Entry(asked=50),
            "bio": Entry(asked=8),
            "nycflights": Entry(limit=100),
            "d200k": Entry(1e-6, limit=100),
            "d": Entry(1e-6, limit=100),
        },
        {
            "newton": NEWTON,
            "tron": TRON,
            "liblinear-ranksvm": program(programs.liblinear_ranksvm, (1e-3, 1e-4, 1e-5, 1e-6)),
        },
        notes=("tron gets sparse rows in double, as it works on, before the clock starts",),
    ),
    Race(
        "One query, all labels distinct",
        {"f": Entry(1e-4, limit=120)},
        {"newton": NEWTON, "tron": TRON, "scikit-survival": survival},
        gap=1e-4,
        notes=("FastSurvivalSVM by its defaults but max_iter=100, to its own end",),
    ),
    Race(
        "Non-negative coefficients",
        {name: Entry() for name in ("mq", "msn", "bio", "a", "c", "y20")},
        {"newton": NEWTON, "L-BFGS-B": scipy_within_bounds},
        options={"positive": True},
        notes=("L-BFGS-B has value and gradient from linrank: only the method is the rival",),
    ),
    Race(
        "Hinge on all pairs",
        {name: Entry(asked=10) for name in ("mq", "ohsumed", "a")},
        {
            "newton": NEWTON,
            "bundle": ours(RankSVM, solver="bundle", **PLAIN),
            "bmrm": planes,
            "SVM-rank": program(programs.svm_rank, (1e-2, 1e-3)),
        },
        gap=1e-3,
        options={"loss": "hinge"},
        notes=(
            f"SVM-rank's objective on mq at its epsilon .001: {SVM_RANK} (published, 1.2–2.0 s)",
            "bundle: linrank's cutting planes with a line search; bmrm: cut at the minimizer of "
            "the model, as TreeRankSVM does, on linrank's sweeps",
        ),
    ),
    *(
        Race(
            f"Domination loss, {penalty}: against SciPy's L-BFGS-B",
            {
                name: Entry(strength, asked=10 if name == "clothing" else None, limit=30)
                for name in ("mq", "ohsumed", "msn", "clothing")
            },
            {
                "linrank": ours(DominationRanker, "alpha"),
                "L-BFGS-B, NumPy": scipy_on_domination(lbfgsb.by_numpy),
                "L-BFGS-B, kernel": scipy_on_domination(lbfgsb.by_linrank),
            },
            gap=1e-6,
            options={"penalty": penalty},
            load=lambda name, _: load_for_domination(name),
            notes=(
                "kernel: value and gradient from linrank; NumPy: from whole arrays",
                "alpha of l1: that share of the smallest one that leaves no weight",
            ),
        )
        for penalty, strength in (("l1", 0.1), ("l1", 0.01), ("l2", 1.0))
    ),
)


# ---- running ----------------------------------------------------------------


def measure(quick: bool) -> list[Table]:
    return [run_race(race, quick) for race in RACES]


def run_race(race: Race, quick: bool) -> Table:
    first, *others = race.methods
    table = Table(
        f"{race.title}: seconds until (F - F*)/F* <= {race.gap:g}",
        [
            *("set", "rows × features", "pairs", "C", first, "steps, Hv"),
            *(title for name in others for title in (name, f"{name} / {first}")),
        ],
        notes=[
            "processor seconds, median (lowest–highest) of up to five calls, methods in turn; >=: "
            "not there, or stopped at the limit, how far F was above F* in brackets",
            *race.notes,
        ],
    )
    for name, entry in race.entries.items():
        if quick and name == "d":
            continue
        try:
            data = race.load(name, 0.02 if quick else 1.0)
        except problems.Absent as absent:
            table.notes.append(f"{name} skipped: {absent}")
            continue
        compare(table, name, make_task(race, data, entry, quick), race, entry, quick)
    return table


def make_task(race: Race, data: Dataset, entry: Entry, quick: bool) -> Task:
    """The task with its goal; F* by linrank to ten digits, or a certified bound of it."""
    assert data.queries.n_pairs  # ranks the labels before the clock starts
    options, strength = dict(race.options), entry.strength
    limit = min(5.0, entry.limit) if quick else entry.limit
    if "penalty" in options:
        if options["penalty"] == "l1":
            strength *= make_problem(data, penalty="l1", alpha=1.0).largest_alpha()
        ranker: Any = DominationRanker(alpha=strength, scale="none", tol=1e-9, **options)
    else:
        tol = race.gap / 10 if options.get("loss") == "hinge" else 1e-10
        ranker = RankSVM(strength, scale="none", tol=tol, max_iter=1000, **PLAIN, **options)
    with warnings.catch_warnings():  # ten digits may be one more than double precision has
        warnings.simplefilter("ignore")
        ranker.fit(data)
    lowest = ranker.objective_ - ranker.duality_gap_ if ranker.duality_gap_ > 0 else 0.0
    optimum = max(lowest, ranker.objective_ * (1 - race.gap / 10))
    return Task(data, strength, options, limit, optimum, optimum * (1 + race.gap))


def compare(table: Table, name: str, task: Task, race: Race, entry: Entry, quick: bool) -> None:
    """A row of the table."""
    runs: dict[str, list[Run]] = {method: [] for method in race.methods}
    for turn in range(1 if quick else 5):
        for method, call in race.methods.items():
            done = runs[method]
            if turn and (not done or sum(run.seconds for run in done) > 15):
                continue  # absent or slow: once is enough
            try:
                done.append(call(task))
            except TimeLimit:
                done.append(Run(task.limit, np.inf))
            except (ImportError, programs.Absent) as missing:
                if turn == 0:
                    note = f"{method} skipped: {missing}"
                    table.notes += [note] if note not in table.notes else []
    first, *others = runs
    base = statistics.median(run.seconds for run in runs[first])
    cells: list[Any] = [format_runs(runs[first], task), runs[first][0].work]
    for method in others:
        done = runs[method]
        if not done:
            cells += ["-", "-"]
            continue
        more = "" if done[0].is_there(task) else ">= "
        middle = statistics.median(run.seconds for run in done)
        asked = entry.asked if method == others[0] and not quick else None
        cells += [format_runs(done, task), more + ratio(middle / base, asked)]
    data = task.data
    size = f"{data.n_rows} × {data.n_features}"
    table.add(name, size, data.queries.n_pairs, f"{task.strength:.3g}", *cells)


def format_runs(done: list[Run], task: Task) -> str:
    """Seconds of the runs, as a lower bound where the goal was not reached."""
    text = spread([run.seconds for run in done])
    if done[0].is_there(task):
        return text
    return f">= {text} ({done[0].objective / task.optimum - 1:.1e})"


if __name__ == "__main__":
    main(measure, __doc__)
