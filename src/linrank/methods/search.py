"""The searches of all methods, the choice and the model on all data, and paths over C."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from linrank import _core
from linrank.choices import PAIR_WEIGHTINGS
from linrank.data import Array, Dataset, query_weights
from linrank.domination.path import DominationPathResult
from linrank.io.store.store import Store, is_limited
from linrank.methods import FACTORIZED, KERNEL, SGD, domination, ranksvm
from linrank.methods.base import Method, Task, Trained, defaults_of, takes, values_of
from linrank.methods.description import optimum_attributes
from linrank.methods.ground import Ground, settle
from linrank.methods.kernel import tune_kernel, with_host_rows
from linrank.methods.parameters import DominationPath, RankSVMPath
from linrank.methods.sgd import tune_sgd
from linrank.metrics import parse
from linrank.parts import Facts, measure_parts, train_path_parts
from linrank.ranksvm.path import PathResult, as_Cs, reporting, warn_unless_certified
from linrank.search import FoldRun, Judged, Judging, Models, Sweep, Tuning, affordable_folds
from linrank.solvers.result import Callback, Result
from linrank.system.seeds import seed_of


@dataclass(frozen=True, eq=False, kw_only=True)
class Found(Tuning):
    """What a search has found: the choice, and the model that was trained with it on all data.

    Attributes
    ----------
    trained : Trained
        That model, and what estimators show of it.
    path : PathResult or None
        The path on all data, where the method follows one.
    """

    trained: Trained
    path: PathResult | None = None

    @classmethod
    def of(cls, tuning: Tuning, trained: Trained, path: PathResult | None = None) -> Found:
        """The choice and what came of it."""
        return cls(**vars(tuning), trained=trained, path=path)

    @property
    def model(self) -> Any:
        """The model of the choice."""
        return self.trained.model

    @property
    def result(self) -> Any:
        """What the solver returned for it."""
        return self.trained.result


# ---- along a path -------------------------------------------------------------------------------


@dataclass(frozen=True)
class PathSearch:
    """A search along a path over a ``parameter``, "C" or "alpha".

    The ``method`` is a module with

    - ``recipe_of``, as that of the `Method`;
    - ``check_path(parameters)``, which refuses those that no path can be made of;
    - ``grid_of(ground)``: the values, for all rows;
    - ``path_options(ground)``: what is asked of a path wherever the rows are;
    - ``path_in_memory(ground, values, **options)``: the results, and which columns pairs see;
    - ``path_settings(ground, value)``: what the model of the chosen value is to know;
    - ``path_attributes(model, tuning, parameters)``: what estimators show beyond what all do;
    - ``parameters_of_part(parameters, data, rows)``: the parameters for some rows of a data set.

    A fold holds ``n_copies`` of its training rows.
    """

    parameter: str
    method: Any
    n_copies: int = 1
    result: type[PathResult] = PathResult

    def follow(
        self,
        ground: Ground,
        values: Array,
        *,
        progress: Callable[[Result], None] | None = None,
        callback: Callback | None = None,
    ) -> tuple[PathResult, int | None]:
        """The models of the values, each from the last; the number of pairs where a pass told it.

        ``progress`` is called with each result.
        """
        options = {**self.method.path_options(ground), "callback": callback}
        n_pairs, varies = None, np.ones(ground.columns.n_features, dtype=bool)
        if ground.place.dataset is None:  # parts have looked what varies while they read the rows
            where = (ground.place, ground.recipe, ground.scaling, values.tolist())
            results, n_pairs = train_path_parts(*where, progress=progress, **options)
        else:
            found, varies = self.method.path_in_memory(ground, values, **options)
            results = list(reporting(found, progress))
        how: dict[str, Any] = {"bounds": options.get("bounds"), "parameter": self.parameter}
        return self.result.of(values, results, ground.scaling, varies, **how), n_pairs

    def tune(self, ground: Ground, folds: Any, grid: Array, judging: Judging) -> Tuning:
        """Measure the models of every fold's path, wherever the rows are."""
        whole, p = ground.place.dataset, ground.task.parameters
        # Elsewhere one fold at a time has the disk or all workers busy.
        most = 1 if whole is None else max(1, affordable_folds(whole) // self.n_copies)
        sweep = Sweep({self.parameter: grid}, folds, judging, most=most, n_jobs=p.n_jobs)

        def train(run: FoldRun) -> Judged:
            rows, valid = run.fold.train, run.fold.valid
            part = ground.part(rows, run.n_threads)
            if whole is not None and rows is not None:
                own = self.method.parameters_of_part(p, whole, rows)
                part = replace(part, task=replace(part.task, parameters=own))

            def report(result: Result) -> None:
                n_nonzero = {"n_nonzero": int(np.count_nonzero(result.w))}
                run.report(result, **(n_nonzero if self.parameter == "alpha" else {}))

            path, _ = self.follow(part, grid, progress=report, callback=run.is_cancelled)
            facts = {"n_nonzero": path.n_nonzero} if self.parameter == "alpha" else {}
            models = Models(path.coefs, part.scaling, part.design)
            if whole is None and not isinstance(valid, Dataset):
                return measure_parts(ground.place, valid, models, run.k, judging), facts
            return run.judge(models, valid if whole is None else whole), facts

        return sweep.tuning(sweep.run(train))

    def __call__(self, task: Task, folds: Any, **judging: Any) -> Found:
        """A path per fold, the choice among its values, and a path on all data.

        Parameters
        ----------
        task : Task
            Its data lie anywhere; its parameters are those of `RankSVMSearch`, or of
            `DominationSearch`.
        folds : sequence of Fold
            Training and validation parts.
        **judging
            ``convention`` and ``progress``, as `linrank.search.tuning.Judging` has them.
        """
        self.method.check_path(task.parameters)
        ground = Ground.of(task, self.method.recipe_of)
        p = ground.task.parameters
        tuning = self.tune(ground, folds, self.method.grid_of(ground), _judging_of(p, judging))
        path, n_pairs = self.follow(ground, tuning.grid[self.parameter])
        k = tuning.chosen
        result = path.results[k]
        settings = self.method.path_settings(ground, tuning.best_params[self.parameter])
        known = {**settings, "scoring": str(parse(p.scoring)), **tuning.choice}
        model = ground.model_of(result, n_pairs, known)
        shown = {
            **optimum_attributes(result),
            "history": result.history,
            "n_pairs": model.training["n_pairs"],
            "n_iter": int(path.n_iter[: k + 1].sum()),  # all steps up to the choice count
            "kkt_residual": result.kkt_residual,
            **self.method.path_attributes(model, tuning, p),
        }
        return Found.of(tuning, Trained(model, result, shown, is_done=result.converged), path)


search_ranksvm = PathSearch("C", ranksvm)
# A fold has its rows by column, too.
search_domination = PathSearch("alpha", domination, n_copies=2, result=DominationPathResult)


@takes(RankSVMPath)
def ranksvm_path(
    X: Any,
    y: Any = None,
    qid: Any = None,
    *,
    group: Any = None,
    sample_weight: Any = None,
    query_weight: Any = None,
    callback: Callback | None = None,
    **parameters: Any,
) -> PathResult:
    """Fit ``RankSVM`` for many C at once, each model certified to ``tol``.

    For every C the objective is ``½‖w‖² + C Σ ω_ij l(1 - w·(x_i - x_j))``, as in
    :class:`linrank.RankSVM`. Each model starts from that of the C before; with the squared hinge,
    25 of them cost about as much as five fits.

    Parameters
    ----------
    X, y, qid, group, sample_weight, query_weight
        The data, as in :meth:`linrank.RankSVM.fit`; a :class:`linrank.Store` stands for all but
        query_weight.
    Cs : "auto" or array of float
        Weights of the pair losses, > 0; sorted, and each used once. ``"auto"`` is 2^-10, 2^-9,
        ..., 2^14 times the C of ``RankSVM(C="auto")``.
    loss, pairs, n_closest, n_random, pair_weighting, n_rounds, solver
        As in :class:`linrank.RankSVM`. The squared hinge by ``newton`` is what the path is fast
        for; other combinations fit one C after the other, each from the last.
    tol : float or None, default=None
        Each model is improved until its certified duality gap is at most ``tol·F(w)``: 1e-4 if
        None, or 1e-3 for the hinge and for ``solver="bundle"``. For the squared hinge this is
        stricter than the `tol` of ``RankSVM``, which looks at an estimate.
    max_iter : int or None, default=None
        Steps at most for each C; 100 if None, of the bundle 2000.
    scale, query_normalization
        As in :class:`linrank.RankSVM`; the scaling is folded into ``coefs``.
    positive, coef_bounds
        Bounds of the coefficients, as in :class:`linrank.RankSVM`; every C is then a fit of its
        own, from the last.
    random_state : int, RandomState, Generator or None, default=None
        Of the pairs drawn for ``pairs="closest"`` and ``"pruned"``, the same for every C.
    memory_limit : int, float, str or None, default=None
        As in :class:`linrank.RankSVM`: bytes beyond what the process holds already, for a store
        that is then read pass after pass.
    device : str, default="cpu"
        As in :class:`linrank.RankSVM`.
    n_jobs : int or None, default=None
        Threads; None or -1 means all cores. The result does not depend on it.
    callback : callable or None
        Called with the state of each iterate, ``"C"`` included; returning True ends the path with
        the values of C that are done.

    Returns
    -------
    PathResult

    Examples
    --------
    >>> from linrank import make_ranking, ranksvm_path
    >>> data = make_ranking(n_queries=20, n_features=3, random_state=0)
    >>> path = ranksvm_path(data.X, data.y, data.qid, Cs=[0.01, 0.1, 1])
    >>> path.coefs.shape, bool((path.gaps <= 1e-4 * path.objectives).all())
    ((3, 3), True)
    """
    data = {"X": X, "y": y, "qid": qid, "group": group, "sample_weight": sample_weight}
    return certified_path(_path_task(RankSVMPath(**parameters), query_weight, **data), callback)


@takes(DominationPath)
def domination_path(
    X: Any,
    y: Any = None,
    qid: Any = None,
    *,
    group: Any = None,
    sample_weight: Any = None,
    query_weight: Any = None,
    callback: Callback | None = None,
    **parameters: Any,
) -> PathResult:
    """Fit ``DominationRanker`` for many alphas, from the largest down, each certified to ``tol``.

    Each model starts from that of the alpha before. With l1, the strong rule says which features
    can get a weight at all: only these are looked at on the way, and the certificate of every
    model is that of all features.

    Parameters
    ----------
    X, y, qid, group, sample_weight, query_weight
        The data, as in :meth:`linrank.DominationRanker.fit`; a :class:`linrank.Store` stands for
        all but query_weight.
    alphas : "auto" or array of float
        Weights of the penalty, > 0; sorted, and each used once. ``"auto"``: `n_alphas` values,
        equal factors apart, down to `eps` times the largest; this is ``‖∇L(0)‖_∞`` for l1, at and
        above which all weights are 0, and for l2 the alpha at which weights of 0 are certified to
        be within 1 % of the minimum.
    n_alphas : int, default=50
        Number of them if "auto".
    eps : float or None, default=None
        Smallest alpha relative to the largest if "auto": 1e-3 if None, with l2 1e-6.
    max_features : int or None, default=None
        End the path with the first model that has more coefficients than this.
    penalty : {"l1", "l2"}, default="l1"
        As in :class:`linrank.DominationRanker`; without a penalty there is no path.
    margin, layers, pooled, solver, negative_sampling
        As in :class:`linrank.DominationRanker`.
    tol : float or None, default=None
        Largest certified gap of each model, relative to its objective; 1e-4 if None.
    max_iter : int or None, default=None
        Sweeps at most for each alpha, or Newton steps; 1000 or 100 if None.
    scale : {"none", "auto", "standard", "minmax", "query"}, default="none"
        Feature scaling, folded into ``coefs``.
    random_state : int, None, RandomState or Generator, default=None
        Of `negative_sampling`.
    memory_limit : int, float, str or None, default=None
        As in :class:`linrank.DominationRanker`, for a store and the l2 penalty.
    n_jobs : int or None, default=None
        Threads; None or -1 means all cores. The result does not depend on it.
    callback : callable or None
        Called with the state of each iterate, ``"alpha"`` included; returning True ends the path
        with the alphas that are done.

    Returns
    -------
    DominationPathResult

    Examples
    --------
    >>> from linrank import domination_path, make_ranking
    >>> data = make_ranking(n_queries=20, n_features=5, random_state=0)
    >>> path = domination_path(data.X, data.y, data.qid, n_alphas=10)
    >>> path.coefs.shape, int(path.n_nonzero[0]), bool(path.converged.all())
    ((10, 5), 0, True)
    """
    data = {"X": X, "y": y, "qid": qid, "group": group, "sample_weight": sample_weight}
    task = _path_task(DominationPath(**parameters), query_weight, **data)
    return certified_path(task, callback, search_domination)


def _path_task(asked: Any, query_weight: Any, X: Any, y: Any, **own: Any) -> Task:
    """The task of a path over rows in memory, or over a store within a limit."""
    if not is_limited(X, y, asked.memory_limit, **own):
        X = X.dataset() if isinstance(X, Store) else Dataset.of(X, y, **own, n_jobs=asked.n_jobs)
    return Task(X, asked, query_weight=query_weight)


def certified_path(
    task: Task, callback: Callback | None = None, search: PathSearch = search_ranksvm
) -> PathResult:
    """The path of a task wherever its rows are; a warning where a gap is too wide."""
    method = search.method
    method.check_path(task.parameters)
    ground = Ground.of(task, method.recipe_of)
    follow = partial(search.follow, ground, method.grid_of(ground), callback=callback)
    path, _ = _core.keep_threads(follow)
    warn_unless_certified(path)
    return path


# ---- model by model -----------------------------------------------------------------------------

# From a settled task, what decided on its settings, folds, judging and a seed.
Tune = Callable[[Task, Facts | None, Any, Judging, int], Tuning]


def search_models(method: Method, tune: Tune, task: Task, folds: Any, **judging: Any) -> Found:
    """The models of a grid, measured by ``tune``, and the chosen one on all data.

    That one is trained by the method itself, as the folds were.
    """
    task, facts = settle(task)
    p = task.parameters
    seed = seed_of(p.random_state)
    tuning = tune(task, facts, folds, _judging_of(p, judging), seed)
    trained = _train(method, replace(task, data=task.data.dataset), seed, **tuning.best_params)
    known: dict[str, Any] = {"scoring": str(parse(p.scoring)), "score": tuning.score}
    model = replace(trained.model, training={**trained.model.training, **known})
    return Found.of(tuning, replace(trained, model=model))


def search_grid(method: Method, task: Task, folds: Any, **judging: Any) -> Found:
    """Every model of a fold by itself, whatever the method, and the chosen one on all data."""
    given = {name: getattr(task.parameters, f"{name}s") for name in method.grid}
    grid = {
        name: values if isinstance(values[0], str) else np.array(values)
        for name, values in given.items()
    }

    def tune(task: Task, facts: Facts | None, *how: Any) -> Tuning:
        return _tune_each(method, grid, task, *how)

    return search_models(method, tune, task, folds, **judging)


def _tune_factorized(
    task: Task, facts: Facts | None, folds: Any, judging: Judging, seed: int
) -> Tuning:
    """Every C of a fold by itself, from the start that the seed draws."""
    p, weight = task.parameters, query_weights(task.query_weight, task.data.dataset.queries)
    options = {**values_of(p, ("scale", "query_normalization")), "query_weight": weight}
    options["pair_weighting"] = PAIR_WEIGHTINGS[0]
    grid = as_Cs(p.Cs, lambda: ranksvm.unit_in_memory(task.data, facts, options), step=2)
    return _tune_each(FACTORIZED, {"C": grid}, task, folds, judging, seed)


def search_kernel(task: Task, folds: Any, **judging: Any) -> Found:
    """The models of a grid of γ and C, of rows on the host, and the chosen one on all data."""
    return search_models(KERNEL, tune_kernel, with_host_rows(task), folds, **judging)


search_sgd = partial(search_models, SGD, tune_sgd)
search_factorized = partial(search_models, FACTORIZED, _tune_factorized)


def _tune_each(
    method: Method, grid: dict[str, Any], task: Task, folds: Any, judging: Judging, seed: int
) -> Tuning:
    """The models of a grid, each trained by the method itself."""
    data, p = task.data.dataset, task.parameters
    weights = query_weights(task.query_weight, data.queries)
    sweep = Sweep(grid, folds, judging, most=affordable_folds(data), n_jobs=p.n_jobs)

    def train(run: FoldRun) -> Judged:
        part, weight = run.part(data, weights)
        valid = run.fold.valid
        held_out = valid if isinstance(valid, Dataset) else data.select(valid)
        own: dict[str, Any] = {"n_jobs": run.n_threads}
        if "callback" in defaults_of(method.parameters):
            own["callback"] = run.is_cancelled
        scores, converged = [], []
        for place in product(*(np.asarray(values).tolist() for values in grid.values())):
            point = dict(zip(grid, place, strict=True))
            trained = _train(method, Task(part, p, query_weight=weight), seed, **point, **own)
            if run.is_cancelled():  # the fault of another fold is about to be told
                break
            scores.append(trained.model.predict(held_out, n_jobs=run.n_threads))
            converged.append(trained.is_done)
            run.report(trained.result)
        facts = {"converged": np.array(converged)}
        return run.judge_scores(np.array(scores), np.array(scores), held_out), facts

    return sweep.tuning(sweep.run(train))


def _train(method: Method, task: Task, seed: int, **own: Any) -> Trained:
    """One model by the parameters that a search shares with the method, and its ``own``."""
    shared = tuple(
        name for name in defaults_of(method.parameters) if hasattr(task.parameters, name)
    )
    given = {**values_of(task.parameters, shared), "random_state": seed, "verbose": 0, **own}
    return method.train(replace(task, parameters=method.parameters(**given)))


def _judging_of(parameters: Any, judging: dict[str, Any]) -> Judging:
    return Judging(**{**values_of(parameters, ("scoring", "selection")), **judging})
