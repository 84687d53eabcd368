"""What all methods of linear models do before and after they solve."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from linrank.data.dataset import Dataset
from linrank.data.queries import query_weights
from linrank.data.scaling import Scaling
from linrank.io.store.store import Store
from linrank.methods.base import Task, Trained
from linrank.models.linear import LinearModel
from linrank.options import SELECTED_PAIRS
from linrank.search.monitor import Monitor
from linrank.system.resources import count, resolve

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from linrank.models.additive import AdditiveModel
    from linrank.models.design import Design, Shape
    from linrank.parts.parts import Parts
    from linrank.solvers.result import Result


Line = tuple[str, str]

LOOSE = 0.01  # a bound wider than this share of F needs a word: the truth may be far smaller


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
    remedy = "" if result.stopped == "max_iter" else "; raise tol to accept it"
    return f"did not converge: {result.message}{remedy}"


def relative_gap(result: Result) -> float:
    """The certified bound on ``F - F*`` as a share of F."""
    return result.gap / result.value if result.value > 0 else 0.0


def optimum_line(result: Result) -> Line:
    """The objective, and how far from its minimum it is at most."""
    share = f"{result.gap:.2g} ({relative_gap(result):.1e} of it)"
    told = f"objective {result.value:.10g}, at most {share} above the minimum"
    return "optimum", f"{told}: certified by the dual"


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


@dataclass(frozen=True, eq=False)
class Ground:
    """A task made ready: the columns and scaling of its rows, and who watches the iterates.

    ``columns`` is the data set, with the columns of ``design`` in place of its rows where there is
    one, or what is known of the columns of ``parts`` without their rows; ``parts`` is None in
    memory.
    """

    task: Task
    columns: Dataset
    scaling: Scaling
    monitor: Monitor
    parts: Parts | None = None
    design: Design | None = None

    @classmethod
    def of(cls, task: Task) -> Ground:
        """The scaling of all rows: one pass, or none where their statistics are known."""
        p, data, parts, design = task.parameters, task.data, None, None
        sets: Sequence[Dataset] = task.sets
        shape = shape_of(p)
        if shape is not None:
            design = shape.fit(data, p.n_jobs)
            data, *sets = (design.dataset(each, p.n_jobs) for each in (data, *sets))
        if isinstance(data, Dataset):
            columns = data
            scale = p.scale if design is None else "none"  # its columns have variance 1
            scaling = Scaling.fit(scale, data.rows, weight=data.weight, n_jobs=p.n_jobs)
        else:
            from linrank.parts.parts import StoreParts
            from linrank.parts.path import scaling_of  # costs 40 ms, and few need it

            is_store = isinstance(data, Store)
            parts = StoreParts(data, p.memory_limit, resolve(p.n_jobs)) if is_store else data
            columns, scaling = parts.columns, scaling_of(parts, p.scale)
        monitor = Monitor.of(p, sets, scaling, columns.filling, has_weights=design is None)
        return cls(task, columns, scaling, monitor, parts, design)

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
        if model is not None and (self.design is not None or hasattr(model, "curves")):
            raise ValueError("curves cannot start from an earlier fit; set warm_start=False")
        if not isinstance(model, LinearModel):
            return model
        n_features = self.columns.n_features if filling is None else filling.n_features
        if model.coef.size != n_features:
            raise ValueError(
                f"warm_start=True, but X has {n_features} features and the previous fit had "
                f"{model.coef.size}; set warm_start=False"
            )
        return self.scaling.unfold(model.missing.joined(model.coef, filling))

    def model_of(
        self, result: Any, n_pairs: int | None, settings: Mapping[str, Any]
    ) -> LinearModel | AdditiveModel:
        """The model of a result; ``n_pairs`` where the data cannot tell it without a pass."""
        parts = self.parts
        if parts is None:
            if self.task.preferences is not None:
                settings = {**settings, "n_preferences": len(self.task.preferences)}
            known = {**settings, **self._index_base}
            linear = LinearModel.of(result, self.columns, self.scaling, **known)
            return linear if self.design is None else self.design.model(linear, self.task.data)
        sizes = {"n_rows": parts.n_rows, "n_queries": parts.n_queries, "n_pairs": n_pairs}
        known = {**settings, **sizes, **self._index_base}
        model = LinearModel.of_sizes(result, self.columns.feature_names, self.scaling, **known)
        return model.knowing(parts.statistics)

    @property
    def _index_base(self) -> dict[str, int]:
        """The number of the first feature in the file, for those who read the model's features."""
        base = (self.parts or self.columns).index_base
        return {} if base is None else {"index_base": base}

    def conclude(
        self,
        result: Any,
        settings: Mapping[str, Any],
        *,
        n_pairs: int | None = None,
        best: Callable[[Any], Any] | None = None,
    ) -> Trained:
        """The end of a training that minimises; the best iterate where it was to stop early.

        ``settings`` and ``n_pairs`` are those of `model_of`; ``best`` finds that iterate from the
        result where `Monitor.best` cannot.
        """
        doubt = doubt_of(result)
        if self.task.parameters.early_stopping:
            result = (best or self.monitor.best)(result)
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
