"""The search: a grid trained fold by fold, measured on rows not seen, and the choice among it."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast

import numpy as np

from linrank import _core
from linrank.choices import SELECTIONS
from linrank.data import Array, Dataset
from linrank.errors import NoPairsError, TooFewPairsError, check_one_of
from linrank.metrics import Metric, parse_scoring
from linrank.search.folds import Fold, Models, judge, judge_scores, weight_of_part
from linrank.solvers.result import Result
from linrank.system.resources import resolve

Progress = Callable[[dict[str, Any]], None]
Grid = Mapping[str, Any]
Judged = tuple[Array, dict[str, Any]]  # the measure of the models of a fold, and facts of them

_ROUNDING = 1e-12  # relative to the largest mean: what makes no difference between models


@dataclass(frozen=True, eq=False)
class Tuning:
    """The measure of every model of a grid on every fold, and the model that they speak for.

    ``tuning.Cs`` and ``tuning.C`` are short for the values of the axis "C" and the chosen one, and
    so on for the other axes; facts are attributes as well.

    Attributes
    ----------
    grid : dict
        One or two axes: the values of a parameter, by its name. Numbers begin with the simplest
        model, the most regularized one; names are a tuple, in the order of preference.
    scores : float64 array (n_folds, lengths of the axes)
        The measure on the validation part of each fold; an error has a minus sign.
    selection : {"best", "one_se"}
        The rule of choice.
    facts : dict of arrays of the shape of scores
        What else is known of each model: "n_nonzero", "converged", "n_iter".
    simplest_first : bool
        Whether names, too, begin with the simplest model.
    """

    grid: Grid
    scores: Array
    selection: str = "best"
    facts: Mapping[str, Array] = field(default_factory=dict, repr=False)
    simplest_first: bool = False

    def __getattr__(self, name: str) -> Any:
        known = vars(self)  # empty while a copy is being unpickled
        for axis, values in known.get("grid", {}).items():
            if name == f"{axis}s":
                return values
            if name == axis:
                return self.best_params[axis]
        if name in known.get("facts", {}):
            return self.facts[name]
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")

    @property
    def mean_scores(self) -> Array:
        """Mean over folds, of the shape of the grid."""
        return self.scores.mean(axis=0)

    @property
    def best(self) -> Any:
        """Index of the largest mean: a number, or a tuple where the grid has two axes.

        Among means that differ by rounding only, the first name, then the simplest value of the
        last axis, then that of the first.
        """
        return _index(self._best)

    @property
    def chosen(self) -> Any:
        """Index of the model to use.

        ``one_se`` looks at the models that are no less simple than the best one along any axis of
        numbers, have the same name, and whose mean is within one standard error, that of the best
        one, of the largest. It takes the simplest of them: the folds cannot tell the two apart.
        """
        return _index(self._chosen)

    @property
    def score(self) -> float:
        """The mean of the chosen model."""
        return float(self.mean_scores[self._chosen])

    @property
    def best_params(self) -> dict[str, Any]:
        """The chosen value of each axis."""
        axes = zip(self.grid.items(), self._chosen, strict=True)
        return {name: _plain(values[k]) for (name, values), k in axes}

    @property
    def choice(self) -> dict[str, Any]:
        """What the model is to know of the choice."""
        return {**self.best_params, "score": self.score}

    @property
    def cv_results(self) -> dict[str, Any]:
        """The whole grid, as scikit-learn's searches tell it: an element for each model."""
        scores = self.scores.reshape(len(self.scores), -1)
        mean = scores.mean(axis=0)
        places = list(itertools.product(*self.grid.values()))
        columns = zip(self.grid, zip(*places, strict=True), strict=True)
        return {
            **{f"param_{name}": np.ma.MaskedArray(np.array(column)) for name, column in columns},
            "params": [
                {name: _plain(v) for name, v in zip(self.grid, place, strict=True)}
                for place in places
            ],
            **{f"split{k}_test_score": row for k, row in enumerate(scores)},
            "mean_test_score": mean,
            "std_test_score": scores.std(axis=0),
            "rank_test_score": np.array([1 + (mean > m).sum() for m in mean], dtype=np.int32),
        }

    @property
    def edges(self) -> tuple[str, ...]:
        """What to say where the largest mean is at an end of an axis of numbers."""
        best, mean, axes = self._best, self.mean_scores, list(self.grid.items())
        told = []
        for k in self._order:
            name, values = axes[k]
            if isinstance(values, np.ndarray):
                line: tuple[Any, ...] = (*best[:k], slice(None), *best[k + 1 :])
                told.append(edge(name, values, mean[line]))
        said = tuple(one for one in told if one is not None)
        weights = self.facts.get("n_nonzero")
        if not said or weights is None or self._by_fold(weights).any() or np.ptp(mean) == 0:
            return said
        ((name, values),) = axes
        return (  # more of the penalty leaves no weight either
            f"the best {name}, {values[best[0]]:g}, leaves no weight: no model of the grid ranks "
            "better than equal scores do; check the features and the folds",
        )

    @property
    def edge(self) -> str | None:
        """The same in one line; None where there is nothing to say."""
        return "; ".join(self.edges) or None

    @property
    def open(self) -> str | None:
        """What to say of models that did not reach the tolerance; None if all did."""
        converged = self.facts.get("converged")
        if converged is None or converged.all():
            return None
        axes = list(zip(self.grid.items(), np.argwhere(~converged)[0][1:], strict=True))
        place = " with ".join(f"{name} = {values[k]:g}" for (name, values), k in reversed(axes))
        return (
            f"{np.count_nonzero(~converged)} of {converged.size} models on the folds did not reach "
            f"the tolerance, {place} the first of them; raise max_iter or tol, or try a grid of "
            "smaller C"
        )

    @property
    def _order(self) -> list[int]:
        """The axes from the one that decides first among equals: names, then the last numbers."""
        is_number = [isinstance(values, np.ndarray) for values in self.grid.values()]
        axes = range(len(is_number))
        return [
            *(k for k in axes if not is_number[k]),
            *(k for k in reversed(axes) if is_number[k]),
        ]

    @property
    def _best(self) -> tuple[int, ...]:
        mean = self.mean_scores
        return self._first(mean >= mean.max() - _ROUNDING * abs(mean.max()))

    @property
    def _chosen(self) -> tuple[int, ...]:
        best, mean = self._best, self.mean_scores
        if self.selection == "best":
            return best
        of_best = self._by_fold(self.scores)
        error = of_best.std(ddof=1) / np.sqrt(len(of_best))
        is_simpler = np.zeros(mean.shape, dtype=bool)
        ordered = [self.simplest_first or isinstance(v, np.ndarray) for v in self.grid.values()]
        places = zip(ordered, best, strict=True)
        is_simpler[tuple(slice(0 if whole else k, k + 1) for whole, k in places)] = True
        return self._first(is_simpler & (mean >= mean[best] - error))

    def _by_fold(self, values: Array) -> Array:
        """Those of the best model."""
        place: tuple[Any, ...] = (slice(None), *self._best)
        return values[place]

    def _first(self, is_in: Array) -> tuple[int, ...]:
        """The index of the first of some models in the order of preference."""
        order = self._order
        turned = is_in.transpose(order)
        place = np.unravel_index(int(np.argmax(turned)), turned.shape)
        return tuple(int(place[order.index(k)]) for k in range(is_in.ndim))


def _index(place: tuple[int, ...]) -> Any:
    return place[0] if len(place) == 1 else place


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def edge(name: str, values: Array, mean: Array) -> str | None:
    """What to say when the largest mean is at an end of a grid; None elsewhere.

    ``values`` of the parameter ``name`` are in order, ascending or descending.
    """
    best = int(np.argmax(mean >= mean.max() - _ROUNDING * abs(mean.max())))
    if len(values) == 1 or best not in (0, len(values) - 1):
        return None
    if np.ptp(mean) <= _ROUNDING * abs(mean[0]):
        taken = "smallest" if values[0] < values[-1] else "largest"
        return (
            f"every {name} of the grid scores {mean[0]:.6g}, and the {taken} is taken; "
            "try a wider grid, or validation rows that tell models apart"
        )
    is_least = values[best] == min(values)
    end, beyond = ("smallest", "smaller") if is_least else ("largest", "larger")
    return f"the best {name}, {values[best]:g}, is the {end} of the grid; try {beyond} values too"


@dataclass(frozen=True, eq=False)
class Judging:
    """By what models are measured, how one is chosen, and who is told of each.

    Attributes
    ----------
    scoring : Measure
        By its name, or a function, when it is made; of an error, less is better.
    convention : str
        Its rules.
    selection : {"best", "one_se"}
        How `Tuning.chosen` decides.
    progress : callable or None
        Called after each model with ``fold``, its place in the grid, what the method tells of it
        (``objective`` and ``gap`` most often), ``n_done`` and ``n_total``.
    """

    scoring: Metric = "ndcg@10"
    convention: str = "linrank"
    selection: str = SELECTIONS[0]
    progress: Progress | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "scoring", parse_scoring(self.scoring))

    def check(self, n_folds: int) -> None:
        """Refuse an unknown rule of choice, and one that needs more folds."""
        check_one_of("selection", self.selection, SELECTIONS)
        if self.selection == "one_se" and n_folds < 2:
            raise ValueError(
                "selection='one_se' needs the spread over at least two folds, and there is one "
                "validation set; use selection='best' or folds"
            )


class Sweep:
    """Trains the models of a grid on every fold, folds side by side.

    A method brings ``train(run) -> (measures, facts)`` for the models of one fold, in the order of
    the grid. What folds share, such as a kernel matrix, is its own matter.

    Parameters
    ----------
    grid : dict
        The axes, as `Tuning` has them.
    folds : sequence
        `Fold` in memory, or folds of data in parts.
    judging : Judging
        Measure, rule of choice, progress.
    most : int
        Folds at a time.
    n_jobs : int or None
        Threads in all; each fold has its share. Results do not depend on it.
    """

    def __init__(
        self, grid: Grid, folds: Sequence[Any], judging: Judging, *, most: int, n_jobs: int | None
    ) -> None:
        judging.check(len(folds))
        self.grid, self.folds, self.judging = grid, folds, judging
        self.cancelled = threading.Event()  # folds are to end at their next iterate
        self._most, self._n_threads = most, resolve(n_jobs)
        self._n_done, self._lock = 0, threading.Lock()
        self._n_total = len(folds) * int(np.prod([len(values) for values in grid.values()]))

    def run(self, train: Callable[[FoldRun], Judged], **fixed: Any) -> list[Judged]:
        """The models of every fold, or those of one value of an axis, which is ``fixed``.

        The core releases the lock: folds run side by side. After a fault or Ctrl-C, they are to end
        at their next iterate.
        """
        n_folds = len(self.folds)
        n_workers = min(n_folds, self._n_threads, self._most)

        def run_fold(k: int) -> Judged:
            try:
                run = FoldRun(self, k, self._n_threads // n_workers, fixed)
                return cast(Judged, _core.keep_threads(partial(train, run)))
            except (NoPairsError, TooFewPairsError) as error:
                raise type(error)(f"fold {k + 1} of {n_folds}: {error}") from None

        if n_workers == 1:
            return [run_fold(k) for k in range(n_folds)]
        with ThreadPoolExecutor(n_workers) as pool:
            futures = [pool.submit(run_fold, k) for k in range(n_folds)]
            try:
                wait(futures, return_when=FIRST_EXCEPTION)  # one in the last fold ends the first
                for future in futures:
                    if future.done():
                        future.result()
                return [future.result() for future in futures]
            except BaseException:  # KeyboardInterrupt too
                self.cancelled.set()
                pool.shutdown(wait=False, cancel_futures=True)
                raise

    def tuning(self, *rounds: list[Judged]) -> Tuning:
        """What was found, by one round or by one for each value of the first axis.

        A path may end early: the values that not all folds have come to are left out.
        """
        by_fold = list(zip(*rounds, strict=True))
        scores = [np.concatenate([values for values, _ in fold]) for fold in by_fold]
        lengths, grid = [len(values) for values in self.grid.values()], dict(self.grid)
        n_common = min(map(len, scores))
        if n_common < np.prod(lengths):
            ((name, values),) = self.grid.items()
            grid, lengths = {name: values[:n_common]}, [n_common]
        shape = (len(scores), *lengths)

        def gather(columns: list[Array]) -> Array:
            return np.array([column[:n_common] for column in columns]).reshape(shape)

        facts = {
            name: gather([np.concatenate([told[name] for _, told in fold]) for fold in by_fold])
            for name in by_fold[0][0][1]
        }
        return Tuning(grid, gather(scores), self.judging.selection, facts)

    def tell(self, **state: Any) -> None:
        """One model more: from any thread, but one after the other, and counted."""
        if self.judging.progress is None:
            return
        with self._lock:
            self._n_done += 1
            self.judging.progress({**state, "n_done": self._n_done, "n_total": self._n_total})


class FoldRun:
    """One fold while its models are trained: its rows, its threads, who is told, who judges."""

    def __init__(self, sweep: Sweep, k: int, n_threads: int, fixed: dict[str, Any]) -> None:
        self.k, self.n_threads, self.fold = k, n_threads, sweep.folds[k]
        self._sweep, self._fixed, self.scoring = sweep, fixed, sweep.judging.scoring
        self._how = {"convention": sweep.judging.convention, "n_jobs": n_threads}
        axes = {name: values for name, values in sweep.grid.items() if name not in fixed}
        self._places: Iterator[dict[str, Any]] = (
            {name: _plain(value) for name, value in zip(axes, place, strict=True)}
            for place in itertools.product(*axes.values())
        )

    def is_cancelled(self, state: Any = None) -> bool:
        """Whether the fold is to end: as a callback of solvers."""
        return self._sweep.cancelled.is_set()

    def part(self, data: Dataset, query_weight: Array | None) -> tuple[Dataset, Array | None]:
        """The training rows, and the factors c_q in the order of their queries."""
        rows = self.fold.train
        part = data if rows is None else data.select(rows)
        return part, weight_of_part(query_weight, data, part, rows)

    def report(self, result: Result | None, **more: Any) -> None:
        """Tell of the model that comes next in the grid; of some methods there is no result."""
        told = {} if result is None else {"gap": result.gap, "objective": result.value}
        self.tell(**told, **more)

    def tell(self, **state: Any) -> None:
        """The same in other words."""
        self._sweep.tell(fold=self.k, **self._fixed, **next(self._places), **state)

    def judge(self, models: Models, data: Dataset) -> Array:
        """The measure of the models on the validation part; higher is better."""
        fold, scaling, design = self.fold, models.scaling, models.design
        if design is not None:
            valid = fold.valid if isinstance(fold.valid, Dataset) else data.select(fold.valid)
            fold = Fold(None, design.dataset(valid, self.n_threads))
        return judge(models.coefs, data, fold, self.k, scaling, self.scoring, **self._how)

    def judge_scores(self, coefs: Array, scores: Array, valid: Dataset) -> Array:
        """The same by the scores (n_models, n_rows) that the models give to the rows."""
        return judge_scores(coefs, scores, valid, self.k, self.scoring, **self._how)
