"""The model that a report trains: a path over C, the choice on unseen queries, a certified fit."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from linrank.methods.base import Task, Trained, method_named
from linrank.search.folds import Fold, deal

if TYPE_CHECKING:
    from collections.abc import Callable

    from linrank.data.dataset import Dataset
    from linrank.models.linear import LinearModel
    from linrank.ranksvm.path import PathResult
    from linrank.search.tuning import Tuning
    from linrank.solvers.result import Result

METHOD = "ranksvm"  # of those that are registered, one with a path over C

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
    method = method_named(METHOD)
    assert method.search is not None
    assert method.path is not None
    grid = AUTO_CS if isinstance(Cs, str) and Cs == "auto" else Cs
    folds = deal(data, n_folds) if valid is None else [Fold(None, valid)]
    search = method.search(Cs=grid, scale=scale, scoring=scoring, n_jobs=n_jobs)
    found = method.path(
        Task(data, search),
        folds,
        convention=convention,
        progress=lambda state: tell(
            f"training: {state['n_done']} of {state['n_total']} models, C {state['C']:.6g}"
        ),
    )
    tell("training: the chosen model")

    def fit(tol: float) -> Trained:
        chosen = method.parameters(**found.best_params, tol=tol, scale=scale, n_jobs=n_jobs)
        return method.train(Task(data, chosen))

    trained = _certified(fit)
    known = {**trained.model.training, "scoring": scoring, "score": found.score}
    model: Any = replace(trained.model, training=known)
    where = f"{n_folds} folds of the training queries" if valid is None else "the validation data"
    return Training(model, found, found.path, trained.result, found.C, where)


def _certified(fit: Callable[[float], Trained]) -> Trained:
    """The fit from zero, until its bound is as tight as the first tolerance."""
    found = fit(TOLERANCES[0])
    for tol in TOLERANCES[1:]:
        result = found.result
        if result.gap <= TOLERANCES[0] * result.value or not result.converged:
            break
        further = fit(tol)
        found = further if further.is_done else found
    return found
