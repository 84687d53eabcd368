"""The method that chooses: linear, curves, interactions or few weights, by unseen queries."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from linrank.data import Array, Dataset, DenseRows
from linrank.errors import check_positive
from linrank.losses.swaps import LONGEST, swap_measure
from linrank.methods import DOMINATION, RANKSVM
from linrank.methods import parameters as of
from linrank.methods.base import Description, Task, Trained
from linrank.methods.description import describe_optimum, optimum_line
from linrank.methods.domination import grid_of
from linrank.methods.ground import Ground, place_of
from linrank.methods.search import Found, search_domination, search_ranksvm
from linrank.metrics import parse_scoring
from linrank.search import Judging, Tuning, as_folds
from linrank.system import cached_property, seed_of

# C times the weights of all pairs, the balance of losses and ½‖w‖²; the simplest model first.
WEIGHTS = (0.1, 0.3, 1.0, 3.0, 10.0)
LANDMARKS = 300  # of interactions: as good as 600 on the sets that were tried, in half the time
_SPARSEST = 0.01  # the last α of few weights, of the first, which leaves none


@dataclass(frozen=True)
class Candidate:
    """One kind of model: its name, its parameters beside C, and what it is expected to cost.

    ``factor`` is the time that it takes, in that of the one before.
    """

    name: str
    told: str
    options: dict[str, Any]
    factor: float = 1.0


def candidates_of(data: Dataset, metric: str) -> list[Candidate]:
    """The kinds of models for these data, the simplest first."""
    equal = {"pair_weighting": "uniform", "query_normalization": "pairs"}
    found = [
        Candidate("few weights", "linear, the l1 penalty choosing features", {}),
        Candidate("linear", "linear, every query of the same weight", equal),
    ]
    weighting = _weighting(data, metric)
    weighed = {"pair_weighting": weighting, "query_normalization": None}
    by_metric = equal if weighting is None else weighed
    if weighting is not None:
        found.append(Candidate(f"linear, {weighting}", f"linear, pairs by {weighting}", by_metric))
    if isinstance(data.rows, DenseRows):
        curves = {"curves": "quantile", **by_metric}
        by = "" if weighting is None else f", pairs by {weighting}"
        both = {**curves, "interactions": LANDMARKS}
        found += [
            Candidate("curves", f"a curve of each feature{by}", curves, 3.0),
            Candidate("interactions", f"curves, and a term of all features{by}", both, 6.0),
        ]
    return found


def _weighting(data: Dataset, metric: str) -> str | None:
    """The measure that weighs pairs where ``metric`` is to be high; None if none can.

    A cut-off is doubled: rows behind it are to come before it.
    """
    measure: Any = parse_scoring(metric)
    cutoff = getattr(measure, "k", None)
    try:
        wanted = measure if cutoff is None else replace(measure, k=2 * cutoff)
        swap_measure(str(wanted))
    except ValueError:
        return None
    longest = int(np.diff(data.queries.offsets).max())
    is_graded = data.labels.min() >= 0 and data.labels.max() <= 30
    return str(wanted) if is_graded and (cutoff is not None or longest <= LONGEST) else None


@dataclass(frozen=True, eq=False, kw_only=True)
class Choice(Found):
    """What was chosen, and what was tried.

    Attributes
    ----------
    tried : tuple of dict
        Of each kind of model: "model", "told", "score" (the best mean), "weight" (of it) and
        "seconds"; "skipped" says why where it was not tried.
    parameters : object
        Of the chosen model, those of its method.
    """

    tried: tuple[dict[str, Any], ...]
    parameters: Any

    @property
    def edges(self) -> tuple[str, ...]:
        """Nothing: the grid is not the user's."""
        return ()


def search_auto(task: Task, folds: Any, **judging: Any) -> Choice:
    """Every kind of model on the same folds, as long as there is time; the chosen one on all data.

    Parameters
    ----------
    task : Task
        A data set, and parameters of `AutoSearch`.
    folds : sequence of Fold
        Training and validation parts.
    **judging
        ``convention`` and ``progress``, as `linrank.search.tuning.Judging` has them.
    """
    p, started = task.parameters, time.perf_counter()
    task = replace(task, data=place_of(task))
    data, seed = task.data.dataset, seed_of(p.random_state)
    unit = max(1.0, float(np.count_nonzero(data.queries.n_levels > 1)))
    check_positive("time_limit", p.time_limit, optional=True)
    judging = {"scoring": p.metric, "selection": "best", **judging}
    runs: list[tuple[_Run, Tuning]] = []
    tried: list[dict[str, Any]] = []
    last = 0.0
    for candidate in candidates_of(data, p.metric):
        begun = time.perf_counter()
        needed = (1.0 + 1.0 / len(folds)) * candidate.factor * last
        if runs and p.time_limit is not None and begun - started + needed > p.time_limit:
            reason = f"about {needed:.1f} s more than there were of time_limit={p.time_limit:g}"
            tried.append({"model": candidate.name, "told": candidate.told, "skipped": reason})
            continue
        run = _Run(candidate, task, len(folds), seed, unit)
        tuning = run.tune(folds, judging)
        last = time.perf_counter() - begun
        runs.append((run, tuning))
        best: dict[str, Any] = {"weight": WEIGHTS[tuning.best], "score": tuning.mean_scores.max()}
        tried.append({"model": candidate.name, "told": candidate.told, "seconds": last, **best})
    whole = Tuning(
        {"model": tuple(run.candidate.name for run, _ in runs), "weight": np.array(WEIGHTS)},
        np.stack([tuning.scores for _, tuning in runs], axis=1),
        p.selection,
        simplest_first=True,
    )
    chosen, place = whole.chosen
    trained, parameters = runs[chosen][0].train(place)
    known = {"metric": str(parse_scoring(p.metric)), "score": whole.score, "model": whole.model}
    model = replace(trained.model, training={**trained.model.training, **known})
    trained = replace(trained, model=model)
    return Choice(**vars(whole), trained=trained, tried=tuple(tried), parameters=parameters)


@dataclass(frozen=True, eq=False)
class _Run:
    """A candidate on these data."""

    candidate: Candidate
    task: Task
    n_folds: int
    seed: int
    unit: float  # queries with pairs: what the weights of all pairs sum to

    def tune(self, folds: Any, judging: dict[str, Any]) -> Tuning:
        """The measure of its models, from the simplest on."""
        options = self.candidate.options
        kind = of.RankSVMSearch if options else of.DominationSearch
        parameters = kind(**self._common, **options)
        ground = Ground.of(replace(self.task, parameters=parameters))
        if not options:
            return search_domination.tune(ground, folds, self._alphas, Judging(**judging))
        # A fold has that share of the queries, and so of the weights.
        share = 1.0 - 1.0 / self.n_folds if self.n_folds > 1 else 1.0
        grid = np.array(WEIGHTS) / (share * self.unit)
        return search_ranksvm.tune(ground, folds, grid, Judging(**judging))

    @property
    def _common(self) -> dict[str, Any]:
        n_jobs = self.task.parameters.n_jobs
        return {"scale": "standard", "random_state": self.seed, "n_jobs": n_jobs}

    @cached_property
    def _alphas(self) -> Array:
        parameters = of.DominationSearch(n_alphas=len(WEIGHTS) + 1, eps=_SPARSEST, **self._common)
        return grid_of(Ground.of(replace(self.task, parameters=parameters)))[1:]

    def _parameters(self, place: int) -> Any:
        if not self.candidate.options:
            return of.DominationParameters(alpha=float(self._alphas[place]), **self._common)
        C = WEIGHTS[place] / self.unit
        return of.RankSVMParameters(C=C, **self._common, **self.candidate.options)

    def train(self, place: int) -> tuple[Trained, Any]:
        """One of its models on all data, and its parameters."""
        parameters = self._parameters(place)
        method = RANKSVM if self.candidate.options else DOMINATION
        return method.train(replace(self.task, parameters=parameters)), parameters


def train(task: Task) -> Trained:
    """The model that five folds choose."""
    place = place_of(task)
    found = search_auto(replace(task, data=place), as_folds(None, place.dataset, None))
    return found.trained


def describe(trained: Trained, parameters: Any) -> Description:
    """Which model it is, and what its own method tells of it."""
    known, result = trained.model.training, trained.result
    lines = [
        ("trained", f"{known['model']}: {known['metric']} {known['score']:.4f} on unseen queries"),
        optimum_line(result),
    ]
    names = ("metric", "score", "C", "alpha", "pair_weighting", "curves", "interactions")
    # "model" is the name of a file where facts are printed.
    facts = {"chosen": known["model"], **{name: known[name] for name in names if name in known}}
    return describe_optimum(trained, *lines, **facts)
