"""What methods of linear models stand on: settings, rows and scaling, wherever they lie."""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from linrank.choices import AUTO, PAIR_WEIGHTINGS, PAIRS, PUBLISHED, SCORING
from linrank.data import Array, Dataset, Rows, Scaling, without_rounding
from linrank.data.queries import Queries, query_weights, varying_columns
from linrank.io.store.store import Store
from linrank.methods import description
from linrank.methods.base import Task, Trained
from linrank.methods.parameters import Placed, RowsPlaced
from linrank.metrics import convention, evaluate, parse, parse_scoring
from linrank.models.linear import LinearModel
from linrank.parts.parts import Facts, MemoryParts, Parts
from linrank.ranksvm.train import Balance
from linrank.solvers.result import Result
from linrank.system.resources import cached_property, resolve

if TYPE_CHECKING:
    from linrank.models.additive import AdditiveModel
    from linrank.models.design import Design, Shape


# ---- settings that the data decide --------------------------------------------------------------

SETTINGS = ("C", "scale", "pair_weighting", "query_normalization")
WEIGHTING = "ndcg@20"  # of grades, see docs/guide/training.md


def is_auto(value: Any) -> bool:
    """Whether the data are to decide."""
    return isinstance(value, str) and value == AUTO


def settle_parameters(parameters: Any, facts: Facts, *, is_listed: bool = False) -> Any:
    """A copy of the parameters with a value in place of every "auto" but that of C.

    Parameters
    ----------
    parameters : object
        Those of a method or an estimator; what it lacks is left out.
    facts : Facts
        Of the training data.
    is_listed : bool
        Whether preferences are among the pairs.
    """
    p = copy.copy(parameters)
    if is_auto(getattr(p, "scale", None)):
        p.scale = "none" if getattr(p, "kernel", None) == "precomputed" else facts.scale
    if is_auto(getattr(p, "pair_weighting", None)):
        can_weigh = hasattr(p, "n_rounds") and p.pairs == PAIRS[0] and p.solver not in PUBLISHED
        by_measure = can_weigh and not is_listed and facts.has_gains and not facts.is_sparse
        p.pair_weighting = WEIGHTING if by_measure else PAIR_WEIGHTINGS[0]
    if is_auto(getattr(p, "query_normalization", None)):
        is_equal = p.pair_weighting in PAIR_WEIGHTINGS and facts.n_queries > 1
        p.query_normalization = "pairs" if is_equal else None
    return p


def choose_scale(scale: str, rows: Rows, n_jobs: int | None = None) -> str:
    """The kind of scaling of rows without labels."""
    if not is_auto(scale):
        return scale
    return Facts(rows.scan(None, resolve(n_jobs)).statistics, 0, 0, 0.0, 0.0).scale


def settle(task: Task) -> tuple[Task, Facts | None]:
    """The task with a value in place of every "auto" but that of C, and what decided on it.

    Its data become a place, in memory or elsewhere.
    """
    place, p = place_of(task), task.parameters
    task = replace(task, data=place)
    if not any(is_auto(getattr(p, name, None)) for name in (*SETTINGS, "Cs")):
        return task, None
    facts = place.facts()
    if facts.n_queries == 0 and place.dataset is not None:  # preferences alone
        facts = replace(facts, n_queries=place.n_queries)
    settings = settle_parameters(p, facts, is_listed=task.preferences is not None)
    return replace(task, parameters=settings), facts


def place_of(task: Task) -> Parts:
    """Where the data of a task lie."""
    place, p = task.data, task.parameters
    if isinstance(place, Dataset):
        place = MemoryParts(place, resolve(p.n_jobs))
    elif isinstance(place, Store):
        from linrank.parts.passes import StoreParts  # costs 40 ms, and few need it

        place = StoreParts(place, p.memory_limit, resolve(p.n_jobs))
    data, device = place.dataset, getattr(p, "device", "cpu")
    if data is None:
        if device != "cpu":
            raise ValueError(f"device={device!r} takes rows in memory, and these are {place.where}")
        return place
    moved = _placed(data, p)
    return place if moved is data else MemoryParts(moved, place.n_threads)


def _placed(data: Dataset, parameters: Any) -> Dataset:
    """The data, their rows where the method computes with them."""
    if isinstance(parameters, RowsPlaced):
        data = data.on(parameters.device)
    device = data.rows.device
    if device is None:
        return data
    if shape_of(parameters) is not None:
        what = "curves and interactions"
    elif getattr(parameters, "penalty", "l2") != "l2":
        what = f"penalty={parameters.penalty!r}"
    elif isinstance(parameters, Placed):
        return data
    else:
        what = "this method"
    raise ValueError(
        f"the rows are on {device}, and {what} can only be trained on the host; pass a copy, "
        "cupy.asnumpy(X) or tensor.cpu(), or leave device out"
    )


def shape_of(parameters: Any) -> Shape | None:
    """What is asked of an additive model; None where the model is to be linear."""
    p = parameters
    asked = ("curves", "n_knots", "interactions", "increasing", "decreasing")
    if all(getattr(p, name, None) in (None, 0) for name in asked):
        return None
    from linrank.models.design import Shape  # few need it

    return Shape.of(p)


# ---- what is watched while a solver runs --------------------------------------------------------


class Monitor:
    """A callback for the solver.

    It computes `scoring` on each validation set at every iterate, remembers the best iterate (of
    the last set), and asks to stop after `n_iter_no_change` iterations without a better one.

    Parameters
    ----------
    ranker : object
        Has the parameters ``verbose``, ``callback`` and ``n_jobs``; where it takes validation data,
        those of `Watched` too.
    sets : sequence of Dataset
        Validation data.
    scaling : Scaling or None
        Of the training run: iterates live in the scaled space. None where what the solver calls w
        are no weights of features.
    """

    def __init__(
        self, ranker: Any, sets: Sequence[Dataset] = (), scaling: Scaling | None = None
    ) -> None:
        self._scoring = scoring = getattr(ranker, "scoring", SCORING)
        if scoring != SCORING:
            parse_scoring(scoring)  # a misspelt name is told even with nothing to score
        is_impatient = getattr(ranker, "early_stopping", False)
        if is_impatient and not sets:
            raise ValueError("early_stopping=True needs validation data: pass X_val and y_val")
        if getattr(ranker, "n_iter_no_change", 1) < 1:
            raise ValueError(f"n_iter_no_change must be >= 1, got {ranker.n_iter_no_change}")
        self.scaling = scaling or Scaling()
        many = len(sets) > 1
        name = scoring if isinstance(scoring, str) else str(parse(scoring))
        self.keys = [f"val{i if many else ''}_{name}" for i in range(len(sets))]
        self.history: dict[str, list[float]] = {key: [] for key in self.keys}
        self.best_iteration = 0
        self.best_w: Array | None = None
        self._n_jobs = n_jobs = ranker.n_jobs
        self._sets = [
            replace(data, rows=self.scaling.transform(data.rows, data.queries, n_jobs=n_jobs))
            for data in sets
        ]
        self._sign = 1.0 if not sets or parse(scoring).higher_is_better else -1.0
        self._patience: int | None = ranker.n_iter_no_change if is_impatient else None
        self._verbose, self._callback = ranker.verbose, ranker.callback

    @property
    def is_needed(self) -> bool:
        """Whether there is anything to do at an iterate."""
        return bool(self._sets) or self._verbose > 0 or self._callback is not None

    def __call__(self, state: dict[str, Any]) -> bool:
        if self._sets:
            self._score(state["w"])
        latest = {key: values[-1] for key, values in self.history.items()}
        if self._verbose > 0:
            _report(state, latest)
        wanted = self._callback is not None and self._callback({**state, **latest})
        if wanted or self._patience is None:
            return bool(wanted)
        return len(self.history[self.keys[-1]]) - 1 - self.best_iteration >= self._patience

    def best(self, result: Result) -> Result:
        """The best iterate in place of the last one."""
        i = self.best_iteration
        if self.best_w is None or i == len(result.history["objective"]) - 1:
            return result
        history = result.history
        return replace(
            result,
            w=self.best_w,
            value=history["objective"][i],
            gap=history["gap"][i],
            # Where there is no gradient, the residual says the same of the smallest subgradient.
            gradient_norm=history.get("gradient_norm", history["kkt_residual"])[i],
            kkt_residual=history["kkt_residual"][i],
            converged=False,
            stopped="callback",
            message=f"iteration {i} had the best {self.keys[-1]}",
        )

    def _score(self, w: Array) -> None:
        model = LinearModel(self.scaling.fold(w))
        # The start at 0 ranks nothing: in input order, rows sorted by label would be perfect.
        rules = convention("linrank", ties="stable" if w.any() else "average")
        for key, data in zip(self.keys, self._sets, strict=True):
            scores = model.predict(data.rows, n_jobs=self._n_jobs)
            values = evaluate(data, scores, metrics=(self._scoring,), convention=rules)
            self.history[key].append(float(values[self._scoring]))
        if self._sets:
            steering = self.history[self.keys[-1]]
            gain = self._sign * (steering[-1] - steering[self.best_iteration])
            # The first iterate always, later ones only when strictly better.
            if self.best_w is None or gain > 0.0:
                self.best_iteration, self.best_w = len(steering) - 1, w.copy()


def _report(state: dict[str, Any], latest: dict[str, float]) -> None:
    """One line per iteration."""
    told = [key for key in ("objective", "gap") if np.isfinite(state.get(key, np.nan))]
    known = {key: state[key] for key in told}
    values = "".join(f", {key} {value:.6g}" for key, value in {**known, **latest}.items())
    # Solvers count iterations, descents steps.
    place = f"step {state['n_steps']:,}" if "n_steps" in state else f"iteration {state['n_iter']}"
    tell(f"{place}{values}")


def tell(line: str) -> None:
    """A line of progress: to the logger when somebody listens, else to standard error.

    A notebook shows standard error as a red box: there it goes to standard output.
    """
    import logging  # what nobody listens to is not loaded

    logger = logging.getLogger("linrank")
    if logger.hasHandlers() and logger.isEnabledFor(logging.INFO):
        logger.info(line)  # which puts its own name before it
    else:
        ipython: Any = sys.modules.get("IPython")
        shell = None if ipython is None else ipython.get_ipython()
        stream = sys.stderr if getattr(shell, "kernel", None) is None else sys.stdout
        stream.write(f"linrank: {line}\n")


# ---- the ground ---------------------------------------------------------------------------------


def _varying_columns(data: Dataset, candidates: Array, n_threads: int = 1) -> Array:
    return varying_columns(data.rows, data.queries, candidates)


@dataclass(frozen=True, eq=False)
class Ground:
    """A task made ready: its settings, and the columns and scaling of its rows.

    Attributes
    ----------
    task : Task
        Its data are a place, its parameters settled.
    place : Parts
        Where the rows lie.
    columns : Dataset
        What is trained on: the rows in memory, or what is known of columns elsewhere without their
        rows; those of ``design`` where there is one.
    scaling : Scaling
        Of the columns.
    design : Design or None
        What makes the columns of an additive model.
    facts : Facts or None
        What decided on the settings, if anything was left to the data.
    recipe_of : callable or None
        As that of the `Method`.
    """

    task: Task
    place: Parts
    columns: Dataset
    scaling: Scaling
    design: Design | None = None
    facts: Facts | None = None
    recipe_of: Callable[..., Any] | None = None

    @classmethod
    def of(cls, task: Task, recipe_of: Callable[..., Any] | None = None) -> Ground:
        """The scaling of all rows: one pass, or none where their statistics are known.

        ``recipe_of`` is that of the method: what a store, or its limit, cannot serve is refused
        before the first pass.
        """
        place, p = place_of(task), task.parameters
        if recipe_of is not None and place.dataset is None:
            place.check_room(recipe_of(p, place.where, task.query_weight))
        return cls.of_settled(*settle(replace(task, data=place)), recipe_of)

    @classmethod
    def of_settled(
        cls, task: Task, facts: Facts | None = None, recipe_of: Callable[..., Any] | None = None
    ) -> Ground:
        """The same of a task whose parameters are settled, by ``facts`` if at all."""
        place, shape = task.data, shape_of(task.parameters)
        if shape is None:
            design, columns, scaling = None, place.columns, place.scaling(task.parameters.scale)
        else:
            (design, columns), scaling = place.mapped(shape), Scaling("none")  # of variance 1
        return cls(task, place, columns, scaling, design, facts, recipe_of)

    def part(self, rows: Any, n_threads: int) -> Ground:
        """The same of the training part of a fold, of all rows if ``rows`` is None."""
        place, weight = self.place.select(rows, n_threads), self.task.query_weight
        if place.dataset is not None:
            from linrank.search.folds import weight_of_part

            weight = weight_of_part(self.query_weight, self.place.dataset, place.dataset, rows)
        task = replace(self.task, data=place, query_weight=weight)
        return Ground.of_settled(task, recipe_of=self.recipe_of)

    @property
    def recipe(self) -> Any:
        """What makes chunks of rows that are read in passes."""
        assert self.recipe_of is not None
        made = self.recipe_of(self.task.parameters, self.place.where, self.task.query_weight)
        return replace(made, design=self.design)

    @cached_property
    def monitor(self) -> Monitor:
        """Who watches the iterates."""
        sets: Sequence[Dataset] = self.task.sets
        if self.design is not None:
            sets = [self.design.dataset(each, self.n_threads) for each in sets]
        return Monitor(self.task.parameters, sets, self.scaling)

    @property
    def n_threads(self) -> int:
        """For the work that is done here."""
        return self.place.n_threads

    @property
    def balance(self) -> Balance:
        """The weight of all losses that C is to be where it is "auto"."""
        return self.place.balance(self.scaling, self.design, self.facts)

    @property
    def C(self) -> float:
        """The weight of the losses that is asked for; of "auto", the weight of all of them."""
        C = self.task.parameters.C
        return self.balance if is_auto(C) else C

    @property
    def store(self) -> Store | None:
        """The rows where they stay on disk."""
        return getattr(self.place, "store", None)

    @property
    def callback(self) -> Monitor | None:
        """Whom the solver tells of its iterates, if there is anything to do at them."""
        return self.monitor if self.monitor.is_needed else None

    @property
    def scaled(self) -> Dataset:
        """The rows as losses see them but for the factors of their columns."""
        return self.scaling.transformed(self.columns, n_jobs=self.n_threads)

    @property
    def query_weight(self) -> Any:
        """One number for each query in memory."""
        return query_weights(self.task.query_weight, self.columns.queries)

    @property
    def weighing(self) -> dict[str, Any]:
        """Weights of columns and queries, and threads: for every training in memory."""
        scale, weight = self.scaling.factors, self.query_weight
        return {"scale": scale, "query_weight": weight, "n_jobs": self.n_threads}

    @property
    def start(self) -> Array | None:
        """Where the weights of the scaled columns begin."""
        model, filling = self.task.start, self.columns.filling
        is_curved = self.design is not None or hasattr(model, "curves")
        if is_curved and hasattr(model, "training"):
            raise ValueError("curves cannot start from an earlier fit; set warm_start=False")
        if not isinstance(model, LinearModel):
            return model
        n_features = self.columns.n_raw_features
        if model.coef.size != n_features:
            raise ValueError(
                f"warm_start=True, but X has {n_features} features and the previous fit had "
                f"{model.coef.size}; set warm_start=False"
            )
        return self.scaling.unfold(model.missing.join(model.coef, filling))

    @property
    def minimizer_start(self) -> Array | None:
        """The same without weights of columns that no pair sees: they only add to the penalty.

        `conclude` makes them 0, and the objective is to be that of the weights it leaves.
        """
        w = self.start
        if w is None or not isinstance(self.task.start, LinearModel):
            return w
        return without_rounding(w, self.varying(w != 0.0))

    def model_of(
        self, result: Any, n_pairs: int | None, settings: Mapping[str, Any]
    ) -> LinearModel | AdditiveModel:
        """The model of a result; ``n_pairs`` where the data cannot tell it without a pass."""
        place, design, listed = self.place, self.design, self.task.preferences
        known = dict(settings)
        if listed is not None:
            known["n_preferences"] = len(listed)
        if place.index_base is not None:  # for those who read the model's features
            known["index_base"] = place.index_base
        if place.dataset is not None:
            model = LinearModel.of(result, self.columns, self.scaling, **known)
            return model if design is None else design.model(model, place.dataset)
        sizes = {"n_rows": place.n_rows, "n_queries": place.n_queries, "n_pairs": n_pairs}
        training = {**known, **result.summary, **sizes}
        columns = self.columns if design is None else None
        model = LinearModel.of_columns(result, columns, self.scaling, training)
        found = model if design is None else design.model(model, place.columns)
        return found.with_statistics(place.statistics)

    def varying(self, candidates: Array) -> Array:
        """Whether pairs see each of these columns: a pass over parts, often less over memory."""
        if self.place.dataset is not None:
            return varying_columns(self.columns.rows, self._compared, candidates)
        with self.place.opened(None) as data:
            return data.total(_varying_columns, candidates)

    @property
    def _compared(self) -> Queries | None:
        """Whose rows are compared with each other; None where all are."""
        queries, listed = self.columns.queries, self.task.preferences
        is_pooled = getattr(self.task.parameters, "pooled", False)
        if is_pooled or (listed is not None and listed.crosses(queries)):
            return None
        return queries

    def conclude(
        self,
        result: Any,
        settings: Mapping[str, Any],
        *,
        n_pairs: int | None = None,
        best: Callable[[Any], Any] | None = None,
        bounds: tuple[Any, Any] | None = None,
    ) -> Trained:
        """The end of a training that minimizes; the best iterate where it was to stop early.

        ``settings`` and ``n_pairs`` are those of `model_of`; ``best`` finds that iterate from the
        result where `Monitor.best` cannot; ``bounds`` are those of the weights.
        """
        doubt = description.doubt_of(result)
        if self.task.parameters.early_stopping:
            result = (best or self.monitor.best)(result)
        if self.place.dataset is not None:  # parts have looked while they read the rows
            varies = self.varying(result.w != 0.0)
            result = replace(result, w=without_rounding(result.w, varies, bounds))
        model = self.model_of(result, n_pairs, settings)
        listed, known = self.task.preferences, cast(int, model.training["n_pairs"])
        shown = {
            **description.optimum_attributes(result),
            "kkt_residual": result.kkt_residual,
            "history": {**result.history, **self.monitor.history},
            "n_pairs": known + (0 if listed is None else len(listed)),
        }
        return Trained(model, result, shown, self.monitor, result.converged, doubt)
