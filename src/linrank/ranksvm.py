"""Training a linear RankSVM: puts data, loss, solver and preconditioner together."""

from __future__ import annotations

import numbers
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank import _core
from linrank.bounds import Box
from linrank.data.dataset import Dataset
from linrank.data.preferences import Preferences
from linrank.data.queries import Queries
from linrank.data.rows import DenseRows, Rows
from linrank.errors import NoPairsError
from linrank.losses.base import ScoreLoss
from linrank.losses.hinge import Hinge, Huber
from linrank.losses.preferences import PreferenceHinge, PreferenceHuber, PreferenceSquaredHinge
from linrank.losses.squared_hinge import SquaredHinge
from linrank.objective import Ridge, Risk, Sum
from linrank.options import LOSSES, PAIR_WEIGHTINGS, PAIRS, PUBLISHED, SOLVERS
from linrank.pairs import Pairs
from linrank.published import method as published
from linrank.sampling import sample_preferences, sample_queries
from linrank.solvers.bounded import bounded_newton
from linrank.solvers.bundle import bundle
from linrank.solvers.newton import Preconditioner, newton
from linrank.solvers.preconditioner import Diagonal, Explicit, Plain, Sampled
from linrank.solvers.result import Callback, Result
from linrank.solvers.smoothing import Sharpening
from linrank.solvers.tron import tron
from linrank.threads import resolve

__all__ = [
    "check_choices",
    "check_numbers",
    "choose_pairs",
    "hessian_price",
    "problem_of",
    "train",
    "without_matrix",
]

Array = NDArray[Any]

_SAMPLE_SEED = 20140401  # of the preconditioner only: the optimum does not depend on it
_ROUGH = 1e-2  # tolerance on the sample that gives the start
_NARROW = 1e-5  # tolerance of the hinge below which bands get so steep that products need doubles
_WIDE = 0.5  # band of the smoothed hinge in the Hessian of a sample


@dataclass(frozen=True, eq=False)
class _Problem:
    """The RankSVM objective and what it takes to make a smaller one of it."""

    rows: Rows
    pairs: Pairs | None  # of the labels; None if there are none
    C: float
    scale: Array | None
    n_threads: int
    loss: str = "squared_hinge"
    preferences: Preferences | None = None
    box: Box | None = None

    @property
    def newton(self) -> Callable[..., Result]:
        """The method for this domain."""
        return newton if self.box is None else bounded_newton

    @property
    def n_rows(self) -> int:
        """Rows that are compared with others, at most."""
        if self.pairs is not None:
            return self.pairs.queries.n_rows
        return min(self.rows.shape[0], 2 * len(self.preferences or ()))

    @property
    def longest_query(self) -> int:
        """Rows of the longest query with pairs to find; 0 if all are listed."""
        return 0 if self.pairs is None else int(np.diff(self.pairs.queries.offsets).max())

    def objective(self, epsilon: float = 1.0) -> Sum:
        """``F``, with the hinge smoothed within ``epsilon`` of its kink."""
        if self.loss != "hinge":
            return self.sum_of(SquaredHinge, PreferenceSquaredHinge)
        return self.sum_of(
            lambda pairs, n_threads: Huber(pairs, epsilon, n_threads),
            lambda listed, n_rows, n_threads: PreferenceHuber(listed, n_rows, epsilon, n_threads),
        )

    def unsmoothed(self) -> Sum:
        """``F`` with its kinks, for a method that does not need curvature."""
        if self.loss != "hinge":
            return self.objective()
        return self.sum_of(Hinge, PreferenceHinge)

    def published(self, method: str, counting: str | None) -> Sum:
        """``F`` as a published method computes it: sparse rows in double, one thread."""
        rows = published.sparse_doubles(self.rows)
        return replace(self, rows=rows, n_threads=1).sum_of(
            lambda pairs, _: published.published_loss(pairs, self.loss, method, counting),
            PreferenceHinge if self.loss == "hinge" else PreferenceSquaredHinge,
        )

    def sum_of(
        self,
        of_pairs: Callable[[Pairs, int], ScoreLoss],
        of_preferences: Callable[[Preferences, int, int], ScoreLoss],
    ) -> Sum:
        """``½‖w‖²`` and the risks of the pairs of labels and of the preferences, if there are."""
        losses = []
        if self.pairs is not None:
            losses.append(of_pairs(self.pairs, self.n_threads))
        if self.preferences is not None:
            losses.append(of_preferences(self.preferences, self.rows.shape[0], self.n_threads))
        return Sum(Ridge(self.box), *(Risk(self.rows, loss, self.C, self.scale) for loss in losses))

    def sharpening(self, tol: float) -> Sharpening | None:
        """From the smoothed hinge to the hinge; None where nothing is smoothed."""
        return Sharpening(self.objective, tol) if self.loss == "hinge" else None

    def sample(self, n_rows: int) -> _Problem:
        """The same problem on about ``n_rows`` rows, its loss scaled up to the whole."""
        whole = self.pairs
        if whole is None:
            return self._with_preferences_of(self, n_rows / self.n_rows)
        queries, positions, row_weight = sample_queries(whole.queries, n_rows, _SAMPLE_SEED)
        if whole.row_weight is not None:
            row_weight = row_weight * whole.row_weight[positions]
        query_weight = None
        if whole.query_weight is not None:
            first = np.searchsorted(whole.queries.offsets, positions, side="right") - 1
            query_weight = whole.query_weight[first[queries.offsets[:-1]]]
        gain = None if whole.gain is None else whole.gain[positions]
        pairs = Pairs(queries, row_weight, query_weight, gain, whole.adjacent)
        n_bytes = self.rows.nbytes * queries.n_rows / whole.queries.n_rows
        weight = pairs.total_weight()
        sample = replace(
            self,
            pairs=pairs,
            C=self.C * whole.total_weight() / weight if weight > 0 else self.C,
            n_threads=_useful_threads(n_bytes, self.n_threads),
        )
        return sample._with_preferences_of(self, n_rows / self.n_rows)

    def _with_preferences_of(self, whole: _Problem, share: float) -> _Problem:
        """The same problem with a share of the preferences, which keep their weight in all."""
        if whole.preferences is None:
            return self
        some = sample_preferences(whole.preferences, share, _SAMPLE_SEED, whole.C / self.C)
        n_threads = _useful_threads(share * self.rows.nbytes, self.n_threads)
        return replace(self, preferences=some, n_threads=n_threads)


def train(
    data: Dataset,
    *,
    C: float = 1.0,
    loss: str = "squared_hinge",
    pairs: str = "all",
    pair_weighting: str = "uniform",
    solver: str = "newton",
    counting: str | None = None,
    tol: float | None = None,
    max_iter: int | None = None,
    scale: Array | None = None,
    query_weight: Array | None = None,
    query_normalization: str | None = None,
    preferences: Preferences | None = None,
    bounds: tuple[Array, Array] | None = None,
    w0: Array | None = None,
    n_jobs: int | None = None,
    callback: Callback | None = None,
) -> Result:
    """Minimise ``F(w) = ½‖w‖² + C Σ ω_ij l(1 - w·D(x_i - x_j))`` over pairs (i above j).

    Parameters
    ----------
    data : Dataset
        Rows, labels, queries; its row weights u enter ``ω_ij = c_q u_i u_j``.
    C : float, default=1.0
        Weight of the pair losses, > 0.
    loss : {"squared_hinge", "hinge"}
        ``l(ξ) = max(0, ξ)²`` or ``max(0, ξ)``.
    pairs : {"all", "adjacent"}
        ``"adjacent"`` compares neighbouring levels of a query only.
    pair_weighting : {"uniform", "grade_diff", "gain_diff"}
        Further factor of ``ω_ij``: 1, ``y_i - y_j`` or ``2^y_i - 2^y_j``.
    solver : {"newton", "bundle", "tron", "prsvm", "prsvm+"}
        ``"bundle"`` cuts planes; the last three are published methods, on one thread: ``"tron"``
        is the baseline, ``"prsvm"`` lists the pairs, ``"prsvm+"`` takes the levels one by one.
    counting : str, optional
        How tron and bundle count violated pairs: one of `linrank.published.COUNTINGS`. None is
        ``"selection-tree"`` for tron, and newton's own way for bundle.
    tol : float, optional
        newton: stop when the estimate of ``F - F*`` is at most ``tol·F`` (1e-4 if None); for the
        hinge, when the certified gap is (1e-3 if None).
        bundle: when the certified gap is, for both losses (1e-3 if None).
        Published methods: stop when ``‖∇F(w)‖ <= tol·‖∇F(0)‖`` (1e-3 if None).
    max_iter : int, optional
        Outer iterations; if None 100, of the bundle, whose iterations are cheap, 2000.
    scale : float64 array (n_features,), optional
        The diagonal of D; columns are multiplied on the fly.
    query_weight : float64 array (n_queries,), optional
        The factors c_q, in the order of ``data.queries``.
    query_normalization : {None, "pairs"}
        ``"pairs"`` divides c_q by ``Σ ω_ij`` of the query's pairs: each query counts once.
    preferences : Preferences, optional
        Pairs of rows of ``data``, with weights ω of their own; their losses are added. Labels that
        make no pair are no error then.
    bounds : (lower, upper), float64 arrays (n_features,), optional
        ``lower <= w <= upper``, ±inf where an end is open; newton only. They bind w, not ``D w``.
    w0 : float64 array, optional
        Start; zero if None. Clipped to the bounds.
    n_jobs : int, optional
        Threads; None for all cores. The result does not depend on it.
    callback : callable, optional
        Called with the state of each iterate; stops the solver by returning True.

    Returns
    -------
    Result
    """
    check_numbers(C, tol, max_iter)
    check_choices(loss, pairs, pair_weighting, solver, query_normalization)
    if bounds is not None and solver != "newton":
        raise ValueError(f"solver={solver!r} cannot keep bounds; use solver='newton'")
    published.check_counting(solver, counting)
    started = time.perf_counter()
    problem = problem_of(
        data,
        C,
        loss=loss,
        preferences=preferences,
        bounds=bounds,
        pairs=pairs,
        pair_weighting=pair_weighting,
        scale=scale,
        query_weight=query_weight,
        query_normalization=query_normalization,
        n_jobs=n_jobs,
    )
    if max_iter is None:
        max_iter = 2000 if solver == "bundle" else 100
    if solver != "newton":
        is_ours = solver == "bundle" and counting is None
        return (bundle if solver == "bundle" else tron)(
            problem.unsmoothed() if is_ours else problem.published(solver, counting),
            np.zeros(data.n_features) if w0 is None else np.array(w0, dtype=np.float64),
            tol=1e-3 if tol is None else tol,
            max_iter=max_iter,
            callback=callback,
            started=started,
        )
    if tol is None:
        tol = 1e-3 if loss == "hinge" else 1e-4
    if loss == "hinge" and tol < _NARROW and isinstance(data.rows, DenseRows):
        problem = replace(problem, rows=_doubles(data.rows))
    w0, preconditioner = _plan(problem, w0)
    return problem.newton(
        problem.objective(),
        w0,
        preconditioner=preconditioner,
        tol=tol,
        max_iter=max_iter,
        callback=callback,
        started=started,
        sharpen=problem.sharpening(tol),
    )


def problem_of(
    data: Dataset,
    C: float,
    *,
    loss: str = "squared_hinge",
    preferences: Any = None,
    bounds: tuple[Array, Array] | None = None,
    scale: Array | None = None,
    n_jobs: int | None = None,
    **weighing: Any,
) -> _Problem:
    """The problem of these data; ``weighing`` are the options of `choose_pairs`."""
    if preferences is not None:
        preferences = Preferences.of(preferences, n_rows=data.n_rows)
    chosen = _graded_pairs(data, preferences is None, **weighing)
    n_threads = _useful_threads(data.rows.nbytes, resolve(n_jobs))
    box = None if bounds is None else Box(*bounds)
    return _Problem(data.rows, chosen, float(C), scale, n_threads, loss, preferences, box)


def _graded_pairs(data: Dataset, is_needed: bool, **options: Any) -> Pairs | None:
    """The pairs of the labels; None where there are none and none are needed."""
    try:
        return choose_pairs(data, **options)
    except NoPairsError:
        if is_needed:
            raise
        return None


def choose_pairs(
    data: Dataset,
    *,
    pairs: str = "all",
    pair_weighting: str = "uniform",
    query_weight: Array | None = None,
    query_normalization: str | None = None,
) -> Pairs:
    """The pairs of the labels and their weights; `NoPairsError` if there are none to learn from."""
    queries = data.queries
    if queries.n_pairs == 0:
        raise NoPairsError(_no_pairs_message(queries))
    row_weight = None if data.weight is None else np.ascontiguousarray(queries.gather(data.weight))
    gain = None if pair_weighting == "uniform" else _gain(data, pair_weighting)
    chosen = Pairs(queries, row_weight, None, gain, pairs == "adjacent")
    chosen = _weighted(chosen, query_weight, query_normalization)
    if chosen.total_weight() <= 0:
        raise NoPairsError(
            "all pairs have weight zero; check sample_weight and query_weight, and that labels are "
            f"not too small for pair_weighting={pair_weighting!r}"
        )
    return chosen


def _gain(data: Dataset, pair_weighting: str) -> Array:
    """g by position, counted from the lowest label of each query: only differences matter."""
    queries = data.queries
    grade = queries.gather(data.labels)
    if pair_weighting == "gain_diff":
        if grade.max() > 500:
            raise ValueError(
                f"pair_weighting='gain_diff' takes 2^label, and the label {grade.max():g} is too "
                "large for it; use pair_weighting='grade_diff', or labels up to 500"
            )
        grade = np.exp2(grade)
    lowest = np.minimum.reduceat(grade, queries.offsets[:-1])
    gain: Array = grade - np.repeat(lowest, np.diff(queries.offsets))
    return gain


def _useful_threads(n_bytes: float, n_threads: int) -> int:
    """One thread where a product takes less than half a millisecond: starting others costs more."""
    return n_threads if n_bytes >= 4_000_000 else 1


def _plan(problem: _Problem, w0: Array | None) -> tuple[Array, Preconditioner]:
    """Start and preconditioner for the regime of the data.

    While the explicit Hessian costs no more than some tens of products it is the safest choice and
    needs no tuning; beyond, the Hessian of a sample of 50 rows a feature; where even a Cholesky
    factor, ``n³/6``, is out of proportion, the diagonal, or nothing if rows are few. Where a
    twentieth of the rows still determines the features, the optimum on them is a first guess that
    saves outer iterations, and their Hessian comes before all others but the diagonal.
    """
    n_rows, n = problem.n_rows, problem.rows.shape[1]
    start = np.zeros(n) if w0 is None else np.array(w0, dtype=np.float64)
    cheap = without_matrix(problem)
    if cheap is not None:
        return start, cheap
    price = hessian_price(problem.rows)
    patience, n_sample, guess = price // 2 + 2, n_rows // 20, None
    if problem.loss == "hinge":
        patience = 2  # the Hessian of a narrow band ages within a step
    if n_sample >= 30 * n:
        part = problem.sample(n_sample)
        if w0 is None:
            start = part.newton(
                part.objective(),
                start,
                preconditioner=Explicit(patience),
                tol=_ROUGH,
                sharpen=part.sharpening(_ROUGH),
            ).w
        sample = part.objective(_WIDE)
        guess = Sampled(
            lambda m: sample if m == n_sample else problem.sample(m).objective(_WIDE),
            n_sample,
            start,
        )
    if guess is not None and problem.longest_query >= _core.LONG_QUERY:
        return start, guess  # the core builds the Hessian of a query on one thread
    if price <= 30 or n_rows < 100 * n:
        return start, Explicit(patience, guess)
    return start, guess or Sampled(lambda m: problem.sample(m).objective(_WIDE), 50 * n, start)


def without_matrix(problem: _Problem) -> Preconditioner | None:
    """A preconditioner for more features than a Cholesky factor is worth; None below that."""
    n_rows, n = problem.n_rows, problem.rows.shape[1]
    if n <= 4000 and (n <= 300 or n_rows >= 2 * n):
        return None
    if 2 * n_rows < n:
        return Plain()
    return Diagonal(memory=min(24, int(_entries(problem.rows) * n_rows / n) + 1))


def hessian_price(rows: Rows) -> int:
    """Cost of the explicit Hessian in Hessian products; the ns a row were fitted to timings."""
    n = rows.shape[1]
    entries = _entries(rows)
    product = 12 + 0.35 * entries if isinstance(rows, DenseRows) else 12 + 1.5 * entries
    return max(1, round((100 + n * n / 60) / product))


def _entries(rows: Rows) -> float:
    """Entries of a row, of float32 and an index of 32 bits; wider ones count more."""
    return rows.nbytes / (4 if isinstance(rows, DenseRows) else 8) / max(1, rows.shape[0])


def _doubles(rows: DenseRows) -> DenseRows:
    """The same rows in double, where a copy is cheap: Hessian products then are exact to double."""
    if rows.dtype == np.float64 or rows.nbytes > 1 << 28:
        return rows
    return DenseRows(rows.values.astype(np.float64))


def _weighted(pairs: Pairs, query_weight: Array | None, normalization: str | None) -> Pairs:
    """The same pairs with the factors c_q."""
    weight = None if query_weight is None else np.ascontiguousarray(query_weight, dtype=np.float64)
    if normalization == "pairs":
        total = pairs.weight_by_query()
        inverse = np.divide(1.0, total, out=np.zeros_like(total), where=total > 0)
        weight = inverse if weight is None else weight * inverse
    return replace(pairs, query_weight=weight)


def check_numbers(C: float, tol: float | None, max_iter: int | None) -> None:
    """Raise ValueError for a number that `train` does not take."""
    if not _is_positive(C):
        raise ValueError(f"C must be a finite number > 0, got {C!r}")
    if tol is not None and not _is_positive(tol):
        raise ValueError(f"tol must be a finite number > 0, got {tol!r}")
    if max_iter is not None and not (isinstance(max_iter, numbers.Integral) and max_iter >= 1):
        raise ValueError(f"max_iter must be an integer >= 1, got {max_iter!r}")


def check_choices(
    loss: str, pairs: str, pair_weighting: str, solver: str, query_normalization: str | None
) -> None:
    """Raise ValueError for a name that `train` does not know."""
    _check_one_of("loss", loss, LOSSES)
    _check_one_of("pairs", pairs, PAIRS)
    _check_one_of("pair_weighting", pair_weighting, PAIR_WEIGHTINGS)
    _check_one_of("solver", solver, SOLVERS)
    _check_one_of("query_normalization", query_normalization, (None, "pairs"))
    given = (loss, pairs, pair_weighting)
    if solver in PUBLISHED and given != (LOSSES[0], PAIRS[0], PAIR_WEIGHTINGS[0]):
        raise ValueError(
            f"solver={solver!r} is a published method: loss='squared_hinge', pairs='all', "
            f"pair_weighting='uniform'; got {given}. Use solver='newton'"
        )


def _check_one_of(name: str, value: Any, known: tuple[Any, ...]) -> None:
    if value not in known:
        names = [repr(one) for one in known]
        raise ValueError(f"{name} must be {', '.join(names[:-1])} or {names[-1]}, got {value!r}")


def _is_positive(value: Any) -> bool:
    return isinstance(value, numbers.Real) and 0.0 < float(value) < float("inf")


def _no_pairs_message(queries: Queries) -> str:
    if queries.n_queries == 1:
        return (
            f"all {queries.n_rows} rows have the same label, so no pair can be formed; "
            "check the labels"
        )
    return (
        f"none of the {queries.n_queries} queries has two different labels; "
        "check that qid is not a row id and that labels vary inside a query"
    )
