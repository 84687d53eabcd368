"""The model that a report trains: a path over C, the choice on unseen queries, a certified fit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from linrank.model import LinearModel
from linrank.path import as_Cs, solve_path
from linrank.ranksvm import train as train_ranksvm
from linrank.tuning import tune
from linrank.validation import Fold, deal

if TYPE_CHECKING:
    from collections.abc import Callable

    from linrank.data.dataset import Dataset
    from linrank.path import PathResult
    from linrank.solvers.result import Result
    from linrank.tuning import Tuning

__all__ = ["Training", "train"]

TOLERANCE = 1e-6  # of the chosen model: its certificate is shown, and costs a step or two


@dataclass(frozen=True, eq=False)
class Training:
    """How the model came to be.

    Attributes
    ----------
    model : LinearModel
        Trained on all training data with the chosen C.
    tuning : Tuning
        The measure of every C on unseen queries.
    path : PathResult
        The models of all C on all training data.
    result : Result
        The fit of the chosen C from zero: its history is the convergence that is shown.
    C : float
        The chosen one.
    judged_on : str
        What C was chosen on, in words.
    """

    model: LinearModel
    tuning: Tuning
    path: PathResult
    result: Result
    C: float
    judged_on: str


def train(
    data: Dataset,
    valid: Dataset | None,
    *,
    Cs: Any,
    scale: str,
    n_folds: int,
    scoring: str,
    convention: str,
    n_jobs: int | None,
    tell: Callable[[str], None],
) -> Training:
    """Train a linear RankSVM (squared hinge, all pairs) for every C and take the best one."""
    grid = as_Cs(Cs)
    folds = deal(data, n_folds) if valid is None else [Fold(None, valid)]
    tuning = tune(
        data,
        folds,
        grid,
        scoring=scoring,
        convention=convention,
        scale=scale,
        n_jobs=n_jobs,
        progress=lambda state: tell(
            f"training: {state['n_done']} of {state['n_total']} models, C {state['C']:.6g}"
        ),
    )
    tell("training: the path of all training queries")
    path, scaling = solve_path(data, grid, scale=scale, n_jobs=n_jobs)
    C = float(grid[tuning.chosen])
    scaled = scaling.transformed(data, n_jobs=n_jobs)
    result = train_ranksvm(scaled, C=C, tol=TOLERANCE, scale=scaling.factors, n_jobs=n_jobs)
    settings = {
        "C": C,
        "loss": "squared_hinge",
        "pairs": "all",
        "solver": "newton",
        "scoring": scoring,
        "score": float(tuning.mean_scores[tuning.chosen]),
        "index_base": data.index_base,
    }
    model = LinearModel.of(result, data, scaling, **settings)
    where = f"{n_folds} folds of the training queries" if valid is None else "the validation data"
    return Training(model, tuning, path, result, C, where)
