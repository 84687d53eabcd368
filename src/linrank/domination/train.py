"""Training for the domination loss: checks the options, makes the problem, calls the solver."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np

from linrank.choices import DOMINATION, DOMINATION_SOLVERS, PENALTIES
from linrank.data import Array, Dataset, without_offsets
from linrank.domination.coordinate import Descent, Log, descend
from linrank.domination.induction import induce
from linrank.domination.layering import Layering, describe_margin
from linrank.domination.problem import DominationProblem
from linrank.errors import check_natural, check_one_of, check_positive, check_share, is_number
from linrank.ranksvm.train import Plannable, plan
from linrank.solvers.newton import newton
from linrank.solvers.result import Callback, Result
from linrank.system.resources import resolve, useful_threads


def check_parameters(
    *,
    penalty: str = "l1",
    alpha: float = 1.0,
    solver: str = "auto",
    feature_induction: int | None = None,
    negative_sampling: float | None = None,
    tol: float | None = None,
    max_iter: int | None = None,
) -> None:
    """Raise ValueError for a value, or a combination of values, that `train` does not take."""
    check_one_of("penalty", penalty, PENALTIES)
    check_one_of("solver", solver, DOMINATION_SOLVERS)
    if not (is_number(alpha) and 0.0 <= alpha < float("inf")):
        raise ValueError(f"alpha must be a finite number >= 0, got {alpha!r}")
    if alpha == 0.0 and penalty != "none":
        raise ValueError(
            f"alpha must be > 0 with penalty={penalty!r}, got {alpha!r}; for no penalty use "
            "penalty='none'"
        )
    if solver == "newton" and penalty != "l2":
        raise ValueError(
            f"solver='newton' needs penalty='l2', got penalty={penalty!r}; use solver='coordinate'"
        )
    if solver == "newton" and feature_induction is not None:
        raise ValueError(
            "solver='newton' trains all features at once and cannot go with feature_induction="
            f"{feature_induction!r}; use solver='coordinate'"
        )
    check_natural(
        "feature_induction", feature_induction, ", or None for all features", optional=True
    )
    check_natural("max_iter", max_iter, optional=True)
    check_positive("tol", tol, optional=True)
    check_share("negative_sampling", negative_sampling, " of the rows")


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
        As given to `train`; of the options at least ``linrank.choices.DOMINATION``.
    """
    layers, pooled = options["layers"], bool(options["pooled"])
    told: dict[str, str | float | bool | None] = {
        "method": "domination",
        "alpha": alpha,
        **{name: options[name] for name in DOMINATION},
        "solver": choose_solver(
            options["solver"], options["penalty"], options["feature_induction"]
        ),
        "layers": layers if isinstance(layers, str) else "function",
        "margin": describe_margin(options["margin"]),
        "pooled": pooled,
        "seed": None if options["negative_sampling"] is None else seed,
    }
    if data is not None:
        told["n_pairs"] = Layering.of(data, layers=layers, pooled=pooled).n_pairs
    return told


def sample_negatives(layering: Layering, share: float, rng: np.random.Generator) -> Layering:
    """The same layering with a share of the lowest layer of each query, drawn at random.

    ``ceil(share·n)`` of the n rows are kept, and each weighs ``n/kept`` times as much: sums over
    the layer keep their expectation, so that alpha means what it means on all rows.
    """
    queries = layering.queries
    lengths = np.diff(queries.offsets)
    query = np.repeat(np.arange(queries.n_queries), lengths)
    is_lowest = queries.levels == 0
    lowest = np.flatnonzero(is_lowest)
    shuffled = lowest[np.argsort(rng.random(len(lowest)), kind="stable")]
    by_query = shuffled[np.argsort(query[shuffled], kind="stable")]
    sizes = np.bincount(query[lowest], minlength=queries.n_queries)
    # A query of one layer has no part in the loss: none of its rows is needed, but one stays.
    quota = np.where(queries.n_levels > 1, np.ceil(share * sizes), np.minimum(sizes, 1))
    place = np.arange(len(by_query)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    is_kept = ~is_lowest
    is_kept[by_query[place < quota[query[by_query]]]] = True
    kept = np.flatnonzero(is_kept)
    ratio = sizes / np.maximum(quota, 1.0)
    weight = np.where(is_lowest, ratio[query], 1.0)[kept]
    part = replace(
        queries,  # no layer has lost all of its rows
        offsets=np.concatenate([[0], np.cumsum(np.bincount(query[kept], minlength=len(lengths)))]),
        order=kept if queries.order is None else queries.order[kept],
        levels=np.ascontiguousarray(queries.levels[kept]),
    )
    return layering.on(part, kept, weight)


# ---- the l2 penalty, by the Newton method that RankSVM uses -------------------------------------

# What is measured in units of the objective or of its gradient.
_UNITS = ("value", "objective", "gap", "decrement", "gradient_norm", "kkt_residual")


def minimize_ridge(
    problem: Plannable,
    *,
    alpha: float,
    w0: Array | None = None,
    tol: float = 1e-6,
    max_iter: int = 100,
    callback: Callback | None = None,
) -> Result:
    """Minimize ``F(w) = L(X D w) + alpha‖w‖²``; stop when the certified gap is at most ``tol·F``.

    The solver minimizes ``F/(2 alpha) = ½‖w‖² + C·L`` with ``C = 1/(2 alpha)``; everything that is
    reported is in the units of F. The gap is at most ``‖∇F‖²/(4 alpha)``.

    Parameters
    ----------
    problem : Plannable
        With this C, wherever its rows are.
    alpha : float
        Weight of the penalty, > 0.
    w0 : float64 array (n_features,), optional
        Where to start; otherwise 0, or the optimum on a sample of many rows.
    tol : float
        Largest gap, relative to F.
    max_iter : int
        Largest number of Newton steps.
    callback : callable, optional
        Called with a dict of the history's entries, "w" and "n_iter" after every iteration; a true
        value stops the solver.
    """
    started = time.perf_counter()
    start, preconditioner = plan(problem, w0)

    def in_units(found: dict[str, Any]) -> dict[str, Any]:
        return {k: 2.0 * alpha * v if k in _UNITS else v for k, v in found.items()}

    result = newton(
        problem.objective(),
        start,
        preconditioner=preconditioner,
        tol=tol,
        max_iter=max_iter,
        callback=None if callback is None else lambda entry: callback(in_units(entry)),
        started=started,
        certified=True,
    )
    arrays = {key: np.array(values) for key, values in result.history.items()}
    history = {key: values.tolist() for key, values in in_units(arrays).items()}
    return replace(result, **in_units(vars(result)) | {"history": history})


# ---- training -----------------------------------------------------------------------------------

TOLERANCE = 1e-4  # of the certified gap, relative to F
SWEEPS = 1000  # of coordinate descent
STEPS = 100  # of Newton's method
_CHECKED = ("penalty", "alpha", "negative_sampling")


def train(
    data: Dataset,
    *,
    solver: str = "auto",
    feature_induction: int | None = None,
    tol: float | None = None,
    max_iter: int | None = None,
    w0: Array | None = None,
    callback: Callback | None = None,
    **asked: Any,
) -> Result:
    """Minimize ``F(w) = L(XDw) + alpha·pen(w)``, L the domination loss of `Layering`.

    Parameters
    ----------
    data : Dataset
        Rows, labels, queries, row weights.
    solver : {"auto", "coordinate", "newton"}
        ``"newton"`` is for l2 only; ``"auto"`` takes it there, and coordinate descent elsewhere.
    feature_induction : int, optional
        Features that enter at a time, chosen by what they promise; all from the start if None.
    tol : float, optional
        Stop when the certified gap is at most ``tol·F``; 1e-4 if None.
    max_iter : int, optional
        Sweeps at most, or Newton steps; 1000 or 100 if None.
    w0 : float64 array, optional
        Start; zero if None.
    callback : callable, optional
        Called with the state of each iterate; stops by returning True.
    **asked
        What is minimized, as `make_problem` takes it.
    """
    checked = {name: asked[name] for name in _CHECKED if name in asked}
    check_parameters(
        solver=solver, feature_induction=feature_induction, tol=tol, max_iter=max_iter, **checked
    )
    log = Log(callback, time.perf_counter())
    problem = make_problem(data, **asked)
    tol = TOLERANCE if tol is None else tol
    if choose_solver(solver, problem.penalty, feature_induction) == "newton":
        steps = max_iter or STEPS
        return minimize_ridge(
            problem, alpha=problem.alpha, w0=w0, tol=tol, max_iter=steps, callback=callback
        )
    if problem.rows.device is not None:
        raise ValueError(
            "coordinate descent reads columns on the host, and the rows are on "
            f"{problem.rows.device}; use solver='newton' without feature_induction, or device='cpu'"
        )
    descent, n_sweeps = Descent(problem, w0), max_iter or SWEEPS
    if feature_induction is not None:
        return induce(descent, feature_induction, tol=tol, max_iter=n_sweeps, log=log)
    return descend(descent, tol=tol, max_iter=n_sweeps, log=log)


def make_problem(
    data: Dataset,
    *,
    penalty: str = "l1",
    alpha: float = 1.0,
    scale: Array | None = None,
    negative_sampling: float | None = None,
    seed: int = 0,
    n_jobs: int | None = None,
    **layering: Any,
) -> DominationProblem:
    """The problem of these data.

    Parameters
    ----------
    data : Dataset
        Rows, labels, queries, row weights.
    penalty : {"l1", "l2", "none"}
        ``‖w‖₁``, ``‖w‖²`` or nothing.
    alpha : float
        Weight of the penalty.
    scale : float64 array (n_features,), optional
        The diagonal of D.
    negative_sampling : float, optional
        Share of the lowest layer of each query that is kept.
    seed : int
        Of the sampling.
    n_jobs : int, optional
        Threads; None for all cores. The result does not depend on it.
    **layering
        layers, margin, pooled and query_weight, as in `Layering.of`.
    """
    made = Layering.of(data, **layering)
    if negative_sampling is not None and negative_sampling < 1.0:
        made = sample_negatives(made, negative_sampling, np.random.default_rng(seed))
    n_threads = useful_threads(data.rows.nbytes, resolve(n_jobs))
    rows = without_offsets(data.rows) if data.rows.device is None else data.rows
    return DominationProblem(rows, made, penalty, float(alpha), scale, n_threads)


def certify(result: Result, problem: DominationProblem) -> Result:
    """The result with the gap and the residual at its ``w``, all features counted.

    What a history says of an iterate of feature induction is of the features that had entered by
    then.
    """
    point = problem.at(result.w)
    residual = point.kkt_residual
    return replace(result, gap=point.gap, gradient_norm=residual, kkt_residual=residual)
