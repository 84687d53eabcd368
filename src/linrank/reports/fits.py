"""The model that a report trains: a path over C, the choice on unseen queries, a certified fit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from linrank.models.linear import LinearModel
from linrank.ranksvm.path import as_Cs, solve_path
from linrank.ranksvm.train import train as train_ranksvm
from linrank.search.folds import Fold, deal
from linrank.search.grids import tune

if TYPE_CHECKING:
    from collections.abc import Callable

    from linrank.data.dataset import Dataset
    from linrank.data.scaling import Scaling
    from linrank.ranksvm.path import PathResult
    from linrank.search.tuning import Tuning
    from linrank.solvers.result import Result

# Scaled features and many pairs want a smaller C than features as they come: the grid of
# `ranksvm_path`, shifted. MSLR's best is near 2^-17, that of small sets up to 1.
AUTO_CS = tuple(2.0**k for k in range(-22, 6))

# Of the chosen model: its certificate is shown. The solver stops by an estimate, which the bound
# that is proven may lag behind: then it goes on to the next tolerance, a step or two further.
TOLERANCES = (1e-6, 1e-9, 1e-12)


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
    grid = as_Cs(AUTO_CS if isinstance(Cs, str) and Cs == "auto" else Cs)
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
    result = _certified(scaled, C, scaling, n_jobs)
    settings: dict[str, Any] = {
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


def _certified(data: Dataset, C: float, scaling: Scaling, n_jobs: int | None) -> Result:
    """The fit from zero, until its bound is as tight as the first tolerance."""
    found = train_ranksvm(data, C=C, tol=TOLERANCES[0], scale=scaling.factors, n_jobs=n_jobs)
    for tol in TOLERANCES[1:]:
        if found.gap <= TOLERANCES[0] * found.value or not found.converged:
            break
        further = train_ranksvm(data, C=C, tol=tol, scale=scaling.factors, n_jobs=n_jobs)
        found = further if further.converged else found
    return found
