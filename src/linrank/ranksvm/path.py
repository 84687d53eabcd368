"""Regularization paths: the models of a whole grid of C for the price of a few fits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from linrank import _core
from linrank.choices import AUTO, LOSSES, PAIR_WEIGHTINGS, SOLVERS
from linrank.data import Array, Dataset, Scaling, first_true, without_rounding
from linrank.errors import check_numbers, warn
from linrank.ranksvm import train as ranksvm
from linrank.ranksvm.train import Problem, path_preconditioner
from linrank.solvers.continuation import follow
from linrank.solvers.result import Callback, Result

if TYPE_CHECKING:
    from typing_extensions import Self


def as_grid(name: str, values: Any, auto: Sequence[float]) -> Array:
    """The values of the parameter ``name`` > 0, ascending and each once; ``"auto"`` is ``auto``.

    Examples
    --------
    >>> print(as_grid("alphas", [1, 0.01, 1], auto=[0.1]), as_grid("alphas", "auto", auto=[0.1]))
    [0.01 1.  ] [0.1]
    """
    wrong = f"{name} must be 'auto' or numbers > 0, got {values!r}"
    if isinstance(values, str):
        if values != "auto":
            raise ValueError(wrong)
        values = auto
    try:
        grid = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(wrong) from None
    if grid.ndim != 1 or grid.size == 0:
        raise ValueError(f"{name} must be a non-empty list of numbers > 0, got shape {grid.shape}")
    if (k := first_true(~(np.isfinite(grid) & (grid > 0)))) is not None:
        raise ValueError(f"{name}[{k}] is {grid[k]:g}; all must be finite and > 0")
    return np.unique(grid)


def train_path(
    data: Dataset,
    Cs: Sequence[float],
    *,
    tol: float | None = None,
    max_iter: int | None = None,
    n_rounds: int = 1,
    solver: str = SOLVERS[0],
    callback: Callback | None = None,
    **options: Any,
) -> Iterator[Result]:
    """Minimize the objective of `ranksvm.train` for every C of the ascending ``Cs``.

    ``options`` are its losses: kinds and weights of pairs, scale, query_weight, bounds, n_jobs.
    Results are in the scaled space, and ``converged`` means a certified gap of at most ``tol·F``.
    """
    for C in Cs:
        check_numbers(C, tol, max_iter)
    ranksvm.check_choices(solver=solver, **options)
    loss = options.get("loss", LOSSES[0])
    weighting = options.get("pair_weighting", PAIR_WEIGHTINGS[0])
    if weighting not in PAIR_WEIGHTINGS:  # the same weights for every C
        options["swaps"], _ = ranksvm.swapped_pairs(data, weighting, n_rounds, **options)
    is_smooth = solver == "newton" and loss == "squared_hinge" and options.get("bounds") is None
    tol = tol or ranksvm.default_tol(loss, solver if solver == "bundle" else SOLVERS[0])
    if not is_smooth:
        options |= {"solver": solver, "max_iter": max_iter}
        by_gap = solver == "bundle" or loss == "hinge"
        fit = partial(ranksvm.train, data, **options)
        return one_by_one(fit, Cs, tol, callback, by_gap=by_gap)
    problem = Problem.of(data, Cs[0], **options)
    return follow_path(problem, Cs, tol, max_iter, callback)


def follow_path(
    problem: Any, Cs: Sequence[float], tol: float, max_iter: int | None, callback: Callback | None
) -> Iterator[Result]:
    """The minimizers of a problem of the squared hinge, wherever its rows are, for every C."""
    return follow(
        problem.objective().at(np.zeros(problem.rows.shape[1])),
        Cs,
        preconditioner=path_preconditioner(problem),
        tol=tol,
        max_iter=100 if max_iter is None else max_iter,
        callback=callback,
    )


def one_by_one(
    fit: Callable[..., Result],
    Cs: Sequence[float],
    tol: float,
    callback: Callback | None,
    *,
    by_gap: bool,
) -> Iterator[Result]:
    """The minimizers by ``fit(C=, tol=, w0=, callback=)``, from the last, to a certified gap.

    ``by_gap`` says whether the gap is what ``fit`` itself stops at.
    """
    w = None
    own = tol if by_gap else 1e-15  # other rules than the gap are not to stop it
    for C in Cs:
        asked = False

        def watch(state: dict[str, Any], C: float = C) -> bool:
            nonlocal asked
            asked = callback is not None and bool(callback({**state, "C": C}))
            return asked or state["gap"] <= tol * state["objective"]

        result = fit(C=C, tol=own, w0=w, callback=watch)
        if result.gap <= tol * result.value:
            message = f"certified F - F* <= {tol:g}·F"
            result = replace(result, converged=True, stopped="tolerance", message=message)
        else:
            result = replace(result, converged=False)
        yield result
        if asked:
            return
        w = result.w


GRID = tuple(2.0**k for k in range(-10, 15))  # the values of C that are tried, times C="auto"


@dataclass(frozen=True, eq=False, repr=False)
class PathResult:
    """The models for a grid of C or of alpha, from the simplest on.

    Attributes
    ----------
    parameter : {"C", "alpha"}
        What the grid is of.
    values : float64 array (n_models,)
        The weights C of the pair losses, ascending, or alpha of the penalty, descending; ``Cs`` or
        ``alphas`` are the same.
    coefs : float64 array (n_models, n_features)
        Coefficients of the raw features; row k is what ``RankSVM(C=Cs[k])`` or
        ``DominationRanker(alpha=alphas[k])`` has as ``coef_``, to within its gap. Dense, zeros
        included: 50 models of 60,000 features take 24 MB.
    objectives : float64 array (n_models,)
        ``F(w)`` of each.
    gaps : float64 array (n_models,)
        Certified: ``F(w) - min F <= gap``.
    norms : float64 array (n_models,)
        ``‖w‖``, of the scaled features where there is a scaling: what the objective sees.
    n_iter, n_hvp : int64 arrays (n_models,)
        Newton steps, or sweeps of coordinate descent, and Hessian products spent on each; 0 where
        the model before was certified for this one too.
    converged : bool array (n_models,)
        Whether the gap is at most ``tol·F``.
    messages : tuple of str
        Why each ended.
    history : tuple of dicts
        The iterates of each, as in ``history_`` of the estimators; seconds since the start of that
        model.
    results : tuple of Result
        What the solver returned, in the scaled space.
    """

    parameter: str
    values: Array
    coefs: Array
    objectives: Array
    gaps: Array
    norms: Array
    n_iter: Array
    n_hvp: Array
    converged: Array
    messages: tuple[str, ...]
    history: tuple[dict[str, list[float]], ...]
    results: tuple[Result, ...]

    @classmethod
    def of(
        cls,
        values: Array,
        results: Sequence[Result],
        scaling: Scaling,
        varies: Array,
        *,
        bounds: tuple[Array, Array] | None = None,
        parameter: str = "C",
    ) -> Self:
        """The results of a solver with their weights folded back to the raw features.

        ``varies`` and ``bounds`` are those of `linrank.data.bounds.without_rounding`.
        """
        results = [replace(r, w=without_rounding(r.w, varies, bounds)) for r in results]
        coefs = np.zeros((len(results), len(varies)))
        for coef, result in zip(coefs, results, strict=True):
            coef[:] = scaling.fold(result.w)
        if scaling.factors is None:  # the same numbers need no second copy
            results = [replace(r, w=coef) for r, coef in zip(results, coefs, strict=True)]
        return cls(
            parameter=parameter,
            values=values[: len(results)],
            coefs=coefs,
            objectives=np.array([r.value for r in results]),
            gaps=np.array([r.gap for r in results]),
            norms=np.array([np.sqrt(_core.dot(r.w, r.w)) for r in results]),
            n_iter=np.array([r.n_iter for r in results], dtype=np.int64),
            n_hvp=np.array([r.n_hvp for r in results], dtype=np.int64),
            converged=np.array([r.converged for r in results], dtype=bool),
            messages=tuple(r.message for r in results),
            history=tuple(r.history for r in results),
            results=tuple(results),
        )

    @property
    def Cs(self) -> Array:
        """The grid of a path over C."""
        return self._grid_of("C")

    @property
    def alphas(self) -> Array:
        """The grid of a path over alpha."""
        return self._grid_of("alpha")

    def _grid_of(self, name: str) -> Array:
        if name != self.parameter:
            raise AttributeError(f"this is a path over {self.parameter}: it has {self.parameter}s")
        return self.values

    @property
    def n_nonzero(self) -> Array:
        """Coefficients other than 0 of each model."""
        return np.count_nonzero(self.coefs, axis=1)

    @property
    def seconds(self) -> Array:
        """Wall time spent on each model."""
        return np.array([history["seconds"][-1] for history in self.history])

    @property
    def sparse_coefs(self) -> Any:
        """``coefs`` as a ``scipy.sparse.csr_array``."""
        from scipy.sparse import csr_array

        return csr_array(self.coefs)

    @property
    def doubt(self) -> str:
        """What to say of models whose gap stayed above the tolerance; empty if there is none."""
        open_ = np.flatnonzero(~self.converged)
        if not open_.size or self.results[open_[-1]].stopped == "callback":
            return ""
        k, name = int(open_[0]), self.parameter
        return (
            f"the gap of {open_.size} of {len(self)} values of {name} is above the tolerance, "
            f"{name}={self.values[k]:g} the first of them: {self.messages[k]}"
        )

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        """How many models there are, their grid, and whether they are certified."""
        ends = [f"{value:.4g}" for value in self.values[[0, -1]]] if len(self) else ["none"]
        return (
            f"<{type(self).__name__}: {len(self)} models, {self.parameter} {' to '.join(ends)}, "
            f"{self.coefs.shape[1]:,} features, {np.count_nonzero(self.converged)} certified>"
        )


def as_Cs(Cs: Any, unit: Callable[[], float] | None = None, step: int = 1) -> Array:
    """The grid as an ascending float64 array, each value once.

    ``unit`` finds the C that "auto" is, and is called for that grid alone: 2^-10, 2^-9, ..., 2^14
    times that, or every ``step`` of them where each C is a training of its own. Without it the
    grid is checked only.
    """
    is_auto = isinstance(Cs, str) and Cs == AUTO
    middle = 1.0 if unit is None or not is_auto else unit()
    return as_grid("Cs", Cs, [middle * factor for factor in GRID[::step]])


def warn_unless_certified(path: PathResult) -> None:
    """Warn of the models whose gap stayed above the tolerance."""
    if path.doubt:
        from linrank.errors import ConvergenceWarning  # which loads scikit-learn

        warn(path.doubt, ConvergenceWarning)


def reporting(
    results: Iterable[Result], progress: Callable[[Result], None] | None
) -> Iterator[Result]:
    """The results, each told to ``progress`` as it comes."""
    for result in results:
        if progress is not None:
            progress(result)
        yield result
