"""LowRankRanker: what the estimators share that train on duals of low rank."""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from linrank.errors import ConvergenceWarning
from linrank.linear_ranker import LinearRanker
from linrank.model import LinearModel
from linrank.monitor import Monitor
from linrank.scaling import Scaling
from linrank.seeds import seed_of
from linrank.weights import query_weights

if TYPE_CHECKING:
    from collections.abc import Callable

    from linrank.data.dataset import Dataset
    from linrank.solvers.result import Result

__all__ = ["LowRankRanker"]


class LowRankRanker(LinearRanker):
    """Trains on the dual of RankSVM, whose variables form a matrix of low rank per query.

    A subclass names its method, the parameters beside ``C`` that go to the training as they are,
    and says whether the training takes a seed; it has ``C``, ``scale``, ``early_stopping``,
    ``random_state`` and what `Monitor` asks for too.
    Its ``fit`` calls `_fit`, and sets what the result has beyond the attributes of `_adopt`.
    """

    _method: ClassVar[str]
    _passed_on: ClassVar[tuple[str, ...]]
    _is_random: ClassVar[bool]

    def _fit(
        self, train: Callable[..., Any], data: Dataset, sets: list[Dataset], query_weight: Any
    ) -> Any:
        """Train, validate, warn; the outcome, after the attributes that both methods have."""
        scaling = Scaling.fit(self.scale, data.rows, weight=data.weight, n_jobs=self.n_jobs)
        monitor = Monitor.of(self, sets, scaling, data.filling)
        options = {name: getattr(self, name) for name in ("C", *self._passed_on)}
        if self._is_random:
            options["seed"] = seed_of(self.random_state)
        run = partial(
            train,
            scaling.transformed(data, n_jobs=self.n_jobs),
            **options,
            scale=scaling.factors,
            query_weight=query_weights(query_weight, data.queries),
            n_jobs=self.n_jobs,
        )
        result = run(callback=monitor if monitor.is_needed else None)
        if result.stopped in ("max_iter", "precision"):
            message = f"{type(self).__name__} did not converge: {result.message}"
            warnings.warn(message, ConvergenceWarning, stacklevel=4)
        if self.early_stopping:
            result = _best(result, monitor, run)
        self._adopt_validation(monitor)
        settings = {"method": self._method, **options}
        self._adopt(result, LinearModel.of(result, data, scaling, **settings), data)
        self.history_ = {**result.history, **monitor.history}
        return result

    def _adopt(self, result: Result, model: LinearModel, data: Dataset) -> None:
        """Set the attributes of a fit."""
        self._adopt_model(model, data)
        self.n_iter_ = result.n_iter
        self.converged_ = result.converged
        self.objective_ = result.value
        self.duality_gap_ = result.gap
        self.n_pairs_ = data.queries.n_pairs

    def _adopt_optional(self, name: str, value: Any) -> None:
        """Set an attribute that a fit may lack; None forgets that of an earlier fit."""
        if value is not None:
            setattr(self, name, value)
        elif hasattr(self, name):
            delattr(self, name)


def _best(result: Any, monitor: Monitor, run: Callable[..., Any]) -> Any:
    """The iterate that the validation data liked best, with all that belongs to it.

    Another iterate than the one kept is reached by training once more: the same seed gives the same
    bits, and keeping the duals of the best one would cost their memory twice in every fit.
    """
    best = monitor.best_iteration
    if best == result.kept:
        return result
    found = run(callback=lambda state: state["n_iter"] >= best)
    return replace(
        found,
        n_iter=result.n_iter,
        converged=False,
        stopped="callback",
        message=f"iteration {best} had the best {monitor.keys[-1]}",
        history=result.history,
    )
