"""What all methods of linear models do before and after they solve."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from linrank.data.bounds import without_rounding
from linrank.data.dataset import Dataset
from linrank.data.queries import query_weights, varying_columns
from linrank.data.scaling import Scaling
from linrank.io.store.store import Store
from linrank.methods.base import Task, Trained
from linrank.models.linear import LinearModel
from linrank.options import SELECTED_PAIRS
from linrank.ranksvm.settings import Facts, balance_in_memory, is_auto, is_open, settled
from linrank.search.monitor import Monitor
from linrank.solvers.result import distance_text
from linrank.system.resources import count, resolve

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from linrank.data.queries import Queries
    from linrank.models.additive import AdditiveModel
    from linrank.models.design import Design, Shape
    from linrank.parts.parts import Parts
    from linrank.solvers.result import Result


Line = tuple[str, str]


def optimum_attributes(result: Result) -> dict[str, Any]:
    """What every estimator shows that minimises."""
    return {
        "n_iter": result.n_iter,
        "converged": result.converged,
        "objective": result.value,
        "duality_gap": result.gap,
    }


def doubt_of(result: Result) -> str:
    """What to say of a solver that stopped before its tolerance; nothing if it was told to."""
    if result.stopped not in ("max_iter", "precision"):
        return ""
    is_told = result.stopped == "max_iter" or "raise tol" in result.message
    remedy = "" if is_told else "; raise tol to accept it"
    return f"did not converge: {result.message}{remedy}"


def relative_gap(result: Result) -> float:
    """The certified bound on ``F - F*`` as a share of F."""
    return result.gap / result.value if result.value > 0 else 0.0


def optimum_line(result: Result) -> Line:
    """The objective, and how far from its minimum it is at most."""
    told = distance_text(result.value, result.gap, result.converged)
    return "optimum", f"objective {result.value:.10g}, {told}"


def pair_lines(training: Mapping[str, Any]) -> tuple[Line, ...]:
    """How many pairs were chosen, where not all are; ``training`` is what the model knows."""
    if training.get("pairs") not in SELECTED_PAIRS or training.get("n_closest") is None:
        return ()
    told = f"{training['n_closest']:,} closest"
    if training["pairs"] == "pruned":
        told += f" and {training['n_random']:,} random"
    return (("pairs", f"{told} of the labels, seed {training['seed']}"),)


def weight_line(n_nonzero: int, n_features: int) -> Line:
    """How many features count."""
    share = f"{100 * n_nonzero / max(n_features, 1):.3g} %"
    return "weights", f"{n_nonzero:,} of {count(n_features, 'feature')} ({share})"


def converged_lines(trained: Trained) -> tuple[Line, ...]:
    """That the tolerance was reached; `Trained.doubt` says it where it was not."""
    return (("converged", trained.result.message),) if trained.is_done else ()


def ending(result: Any) -> dict[str, Any]:
    """How a solver ended, for programs."""
    return {
        "iterations": result.n_iter,
        "converged": result.converged,
        "stopped": result.stopped,
        "message": result.message,
    }


def shape_of(parameters: Any) -> Shape | None:
    """What is asked of an additive model; None where the model is to be linear."""
    p = parameters
    asked = ("curves", "n_knots", "interactions", "increasing", "decreasing")
    if all(getattr(p, name, None) in (None, 0) for name in asked):
        return None
    from linrank.models.design import Shape  # few need it

    return Shape.of(p)


def settle(task: Task, parts: Parts | None = None) -> tuple[Task, Facts | None]:
    """The task with a value in place of every "auto" but that of C, and what decided on it."""
    p = task.parameters
    if not is_open(p):
        return task, None
    if parts is None:
        facts = Facts.of(task.data, n_threads=resolve(p.n_jobs))
    else:
        from linrank.parts.path import facts_of

        facts = facts_of(parts)
    if facts.n_queries == 0 and parts is None:  # preferences alone
        facts = replace(facts, n_queries=task.data.queries.n_queries)
    settings = settled(p, facts, is_listed=task.preferences is not None)
    return replace(task, parameters=settings), facts


def model_of(
    result: Any,
    place: Dataset | Parts,
    columns: Dataset,
    scaling: Scaling,
    design: Design | None,
    n_pairs: int | None,
    settings: dict[str, Any],
) -> LinearModel | AdditiveModel:
    """The model of a result for raw rows, wherever these are.

    ``columns`` are those that were trained on; ``n_pairs`` is for data in parts.
    """
    if place.index_base is not None:  # for those who read the model's features
        settings = {**settings, "index_base": place.index_base}
    if isinstance(place, Dataset):
        model = LinearModel.of(result, columns, scaling, **settings)
        return model if design is None else design.model(model, place)
    sizes: dict[str, Any] = {
        "n_rows": place.n_rows,
        "n_queries": place.n_queries,
        "n_pairs": n_pairs,
    }
    model = LinearModel.of_sizes(
        result, columns if design is None else None, scaling, **settings, **sizes
    )
    if design is None:
        return model.knowing(place.statistics)
    return design.model(model, place.columns, place.statistics)


def _varying_columns(
    data: Dataset, candidates: NDArray[np.bool_], n_threads: int = 1
) -> NDArray[np.bool_]:
    return varying_columns(data.rows, data.queries, candidates)


@dataclass(frozen=True, eq=False)
class Ground:
    """A task made ready: the columns and scaling of its rows, and who watches the iterates.

    ``columns`` is the data set, with the columns of ``design`` in place of its rows where there is
    one, or what is known of the columns of ``parts`` without their rows; ``parts`` is None in
    memory. The parameters of ``task`` are settled, by ``facts`` where something was left to them.
    """

    task: Task
    columns: Dataset
    scaling: Scaling
    monitor: Monitor
    parts: Parts | None = None
    design: Design | None = None
    facts: Facts | None = None

    @classmethod
    def of(cls, task: Task, recipe_of: Callable[..., Any] | None = None) -> Ground:
        """The scaling of all rows: one pass, or none where their statistics are known.

        ``recipe_of`` is that of the method: what a store, or its limit, cannot serve is refused
        before the first pass.
        """
        data, parts, design = task.data, None, None
        if not isinstance(data, Dataset):
            from linrank.parts.passes import StoreParts  # costs 40 ms, and few need it

            p, is_store = task.parameters, isinstance(data, Store)
            parts = StoreParts(data, p.memory_limit, resolve(p.n_jobs)) if is_store else data
            if recipe_of is not None:
                parts.check_room(recipe_of(p, parts.where, task.query_weight))
        task, facts = settle(task, parts)
        p = task.parameters
        sets: Sequence[Dataset] = task.sets
        shape = shape_of(p)
        scale = p.scale if shape is None else "none"  # the columns of curves have variance 1
        columns = data
        if parts is not None:
            from linrank.parts.path import design_of, scaling_of

            columns, scaling = parts.columns, scaling_of(parts, scale)
            if shape is not None:
                design = design_of(parts, shape)
                columns = design.dataset(columns)
        elif facts is not None and shape is None:
            scaling = Scaling.of_statistics(scale, facts.statistics)
        else:
            if shape is not None:
                design, columns = shape.mapped(data, p.n_jobs)
            scaling = Scaling.fit(scale, columns.rows, weight=data.weight, n_jobs=p.n_jobs)
        if design is not None:
            sets = [design.dataset(each, p.n_jobs) for each in sets]
        monitor = Monitor.of(p, sets, scaling)
        return cls(task, columns, scaling, monitor, parts, design, facts)

    @property
    def C(self) -> float:
        """The weight of the losses that is asked for; of "auto", the weight of all of them."""
        p = self.task.parameters
        if not is_auto(p.C):
            return p.C  # type: ignore[no-any-return]
        if self.design is not None:
            assert self.facts is not None
            return self.facts.balance(self.design.spread)
        if self.parts is not None:
            from linrank.parts.path import balance_of

            return balance_of(self.parts, self.scaling, self.facts)
        return balance_in_memory(self.columns, self.scaling, self.facts, p.n_jobs)

    @property
    def store(self) -> Store | None:
        """The rows where they stay on disk."""
        return self.task.data if isinstance(self.task.data, Store) else None

    @property
    def callback(self) -> Monitor | None:
        """Whom the solver tells of its iterates, if there is anything to do at them."""
        return self.monitor if self.monitor.is_needed else None

    @property
    def scaled(self) -> Dataset:
        """The rows as losses see them but for the factors of their columns."""
        return self.scaling.transformed(self.columns, n_jobs=self.task.parameters.n_jobs)

    @property
    def query_weight(self) -> Any:
        """One number for each query in memory."""
        return query_weights(self.task.query_weight, self.columns.queries)

    @property
    def start(self) -> NDArray[np.float64] | None:
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
    def minimiser_start(self) -> NDArray[np.float64] | None:
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
        known, listed = dict(settings), self.task.preferences
        if listed is not None:
            known["n_preferences"] = len(listed)
        place = self.task.data if self.parts is None else self.parts
        return model_of(result, place, self.columns, self.scaling, self.design, n_pairs, known)

    def without_rounding(self, result: Any, bounds: tuple[Any, Any] | None = None) -> Any:
        """The result with exact weights of the columns in memory that no pair sees."""
        varies = self.varying(result.w != 0.0)
        return replace(result, w=without_rounding(result.w, varies, bounds))

    def varying(self, candidates: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Whether pairs see each of these columns: a pass over parts, often less over memory."""
        if self.parts is None:
            return varying_columns(self.columns.rows, self._compared, candidates)
        with self.parts.opened(None) as data:
            varies: NDArray[np.bool_] = data.total(_varying_columns, candidates)
        return varies

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
        """The end of a training that minimises; the best iterate where it was to stop early.

        ``settings`` and ``n_pairs`` are those of `model_of`; ``best`` finds that iterate from the
        result where `Monitor.best` cannot; ``bounds`` are those of the weights.
        """
        doubt = doubt_of(result)
        if self.task.parameters.early_stopping:
            result = (best or self.monitor.best)(result)
        if self.parts is None:  # parts have looked while they read the rows
            result = self.without_rounding(result, bounds)
        model = self.model_of(result, n_pairs, settings)
        listed = self.task.preferences
        shown = {
            **optimum_attributes(result),
            "kkt_residual": result.kkt_residual,
            "history": {**result.history, **self.monitor.history},
            "n_pairs": _n_pairs(model) + (0 if listed is None else len(listed)),
        }
        return Trained(model, result, shown, self.monitor, result.converged, doubt)


def _n_pairs(model: LinearModel | AdditiveModel) -> int:
    return int(model.training["n_pairs"])  # type: ignore[arg-type]
