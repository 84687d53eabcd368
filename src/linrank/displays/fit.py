"""Displays of a training: how it converged, and the models along a path."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from linrank import plots
from linrank.displays.base import Display
from linrank.plots.axes import BLUE, counted, readable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike


@dataclass(eq=False, repr=False)
class ConvergenceDisplay(Display):
    """How a fit came near to its optimum: :func:`linrank.plots.convergence`.

    Parameters
    ----------
    history : mapping
        ``history_`` of an estimator: ``"objective"``, ``"seconds"`` and, if it is certified,
        ``"gap"``, one entry per iteration. Of a stochastic fit with ``"n_steps"``, the objective
        is drawn against the steps.

    Examples
    --------
    >>> from linrank import ConvergenceDisplay, RankSVM, make_ranking
    >>> data = make_ranking(n_queries=20, n_features=3, random_state=0)
    >>> ranker = RankSVM(C=0.1).fit(data.X, data.y, qid=data.qid)
    >>> picture = ConvergenceDisplay.from_estimator(ranker).to_svg()
    """

    history: Mapping[str, Sequence[float]]

    @classmethod
    def from_estimator(cls, estimator: Any) -> ConvergenceDisplay:
        """Display of a fitted estimator: one with ``history_``, or the ``history`` of a result."""
        for name in ("history_", "history"):
            if isinstance(getattr(estimator, name, None), dict):
                return cls(getattr(estimator, name))
        raise TypeError(
            f"{type(estimator).__name__} has no history of one fit; fit an estimator of linrank "
            "first, or pass a history"
        )

    @property
    def title(self) -> str:
        """What the picture is."""
        return "Convergence"

    @property
    def description(self) -> str:
        """Iterations, objective and gap at the end."""
        history = self.history
        steps = counted(len(history["objective"]) - 1, "iteration")
        if "n_steps" in history:
            steps = counted(int(history["n_steps"][-1]), "step")
        gap = history.get("gap", ())
        certified = (
            f", certified to be within {gap[-1]:.3g} of the optimum"
            if len(gap) and np.isfinite(gap[-1])
            else ""
        )
        return f"After {steps} the objective is {history['objective'][-1]:.6g}{certified}."

    @property
    def _height(self) -> float:
        return 3.6

    def _draw(self, axes: Sequence[Axes], style: dict[str, Any]) -> None:
        if "n_steps" in self.history:
            plots.descent(self.history, ax=axes[0], **{"color": BLUE, **style})
        else:
            plots.convergence(self.history, ax=axes[0], **style)


@dataclass(eq=False, repr=False)
class PathDisplay(Display):
    """The models of a regularisation path: :func:`linrank.plots.path`.

    Parameters
    ----------
    path : PathResult
    scores : array (n_models,) or (n_folds, n_models), optional
        A measure of each model, drawn above the others.
    chosen : float, optional
        The C or alpha to mark.
    metric : str, default="score"
        The name of the measure.
    """

    path: Any
    scores: ArrayLike | None = None
    chosen: float | None = None
    metric: str = "score"

    @classmethod
    def from_estimator(cls, estimator: Any) -> PathDisplay:
        """Display of a fitted `RankSVMCV` or `DominationRankerCV`, with its scores and choice."""
        if not hasattr(estimator, "path_"):
            raise TypeError(
                "a path belongs to a fitted RankSVMCV or DominationRankerCV, got "
                f"{type(estimator).__name__}"
            )
        (chosen,) = estimator.best_params_.values()
        return cls(estimator.path_, estimator.scores_, chosen, str(estimator.scoring))

    @property
    def n_panels(self) -> int:
        """Four, or three without scores."""
        return 3 if self.scores is None else 4

    @property
    def title(self) -> str:
        """What the picture is."""
        return f"Regularisation path over {self._grid[0]}"

    @property
    def description(self) -> str:
        """The grid, the choice and its measure."""
        name, grid = self._grid
        told = f"{counted(len(grid), 'model')} for {name} from {min(grid):.3g} to {max(grid):.3g}."
        if self.scores is not None:
            mean = np.atleast_2d(np.asarray(self.scores, dtype=np.float64)).mean(axis=0)
            best = int(np.nanargmax(mean))
            at = f"at {name} = {grid[best]:.3g}"
            told += f" {readable(self.metric)} is {mean[best]:.4f} at most, {at}."
        return told + (f" Chosen: {name} = {self.chosen:.3g}." if self.chosen is not None else "")

    @property
    def _grid(self) -> tuple[str, Any]:
        return self.path.parameter, self.path.values

    @property
    def _one_axis(self) -> bool:
        return True

    @property
    def _height(self) -> float:
        return 0.7 + 1.4 * self.n_panels

    def _draw(self, axes: Sequence[Axes], style: dict[str, Any]) -> None:
        plots.path(
            self.path,
            scores=self.scores,
            chosen=self.chosen,
            metric=self.metric,
            axes=axes,
            **style,
        )
