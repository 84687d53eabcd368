"""Parameters of training for the domination loss: which it takes, and what a model says of them."""

from __future__ import annotations

from typing import Any

from linrank.checks import check_natural, check_one_of, check_positive, is_number
from linrank.data.dataset import Dataset
from linrank.layering import Layering
from linrank.margins import describe_margin
from linrank.options import CURVATURES, DOMINATION, DOMINATION_SOLVERS, METHODS, ORDERS, PENALTIES

__all__ = ["check_parameters", "choose_solver", "describe_parameters"]


def check_parameters(
    *,
    penalty: str = "l1",
    alpha: float = 1.0,
    solver: str = "auto",
    feature_induction: int | None = None,
    negative_sampling: float | None = None,
    curvature: str = "local",
    order: str = "sequential",
    tol: float | None = None,
    max_iter: int | None = None,
) -> None:
    """Raise ValueError for a value, or a combination of values, that `train` does not take."""
    check_one_of("penalty", penalty, PENALTIES)
    check_one_of("solver", solver, DOMINATION_SOLVERS)
    check_one_of("curvature", curvature, CURVATURES)
    check_one_of("order", order, ORDERS)
    _check_alpha(alpha, penalty)
    _check_newton(solver, penalty, feature_induction)
    if feature_induction is not None:
        check_natural("feature_induction", feature_induction, ", or None for all features")
    if max_iter is not None:
        check_natural("max_iter", max_iter)
    if tol is not None:
        check_positive("tol", tol)
    share = negative_sampling
    if share is not None and not (is_number(share) and 0.0 < share <= 1.0):
        raise ValueError(
            f"negative_sampling must be a share of the rows > 0 and <= 1, or None, got {share!r}"
        )


def choose_solver(solver: str, penalty: str, feature_induction: int | None) -> str:
    """The solver that ``"auto"`` stands for: newton for l2 over all features, else coordinate."""
    if solver != "auto":
        return solver
    return "newton" if penalty == "l2" and feature_induction is None else "coordinate"


def describe_parameters(
    data: Dataset | None, *, alpha: float, seed: int, **options: Any
) -> dict[str, str | float | bool | None]:
    """What a model is to know of its training, as plain values.

    Parameters
    ----------
    data : Dataset or None
        What it was trained on, for the number of pairs; None where that is counted elsewhere.
    alpha, seed, **options
        As given to `train`; of the options at least ``linrank.options.DOMINATION``.
    """
    layers, pooled = options["layers"], bool(options["pooled"])
    is_random = options["order"] == "shuffled" or options["negative_sampling"] is not None
    told: dict[str, str | float | bool | None] = {
        "method": METHODS[1],
        "alpha": alpha,
        **{name: options[name] for name in DOMINATION},
        "solver": choose_solver(
            options["solver"], options["penalty"], options["feature_induction"]
        ),
        "layers": layers if isinstance(layers, str) else "function",
        "margin": describe_margin(options["margin"]),
        "pooled": pooled,
        "seed": seed if is_random else None,
    }
    if data is not None:
        told["n_pairs"] = Layering.of(data, layers=layers, pooled=pooled).n_pairs
    return told


def _check_alpha(alpha: Any, penalty: str) -> None:
    if not (is_number(alpha) and 0.0 <= alpha < float("inf")):
        raise ValueError(f"alpha must be a finite number >= 0, got {alpha!r}")
    if alpha == 0.0 and penalty != "none":
        raise ValueError(
            f"alpha must be > 0 with penalty={penalty!r}, got {alpha!r}; for no penalty use "
            "penalty='none'"
        )


def _check_newton(solver: str, penalty: str, feature_induction: int | None) -> None:
    if solver != "newton":
        return
    if penalty != "l2":
        raise ValueError(
            f"solver='newton' needs penalty='l2', got penalty={penalty!r}; use solver='coordinate'"
        )
    if feature_induction is not None:
        raise ValueError(
            "solver='newton' trains all features at once and cannot go with feature_induction="
            f"{feature_induction!r}; use solver='coordinate'"
        )
