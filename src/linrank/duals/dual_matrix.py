"""dual_matrix: the dual variables of a trained model, arranged as one matrix for each query."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import numpy as np

from linrank import _core
from linrank.choices import LOSSES
from linrank.data import Array, Dataset, query_weights
from linrank.duals.entries import Cells, Entries, PairEntries, hinge_entries
from linrank.errors import check_positive
from linrank.lowrank.proximal import svt
from linrank.models.kernel import KernelModel
from linrank.models.linear import LinearModel
from linrank.pairs import Pairs
from linrank.ranksvm.train import Problem
from linrank.system.resources import cached_property

_SUPPORTED = (
    "a fitted RankSVM or RankSVMCV, a LinearModel of one, a FactorizedRankSVM fitted with "
    "keep_factors=True, or a RegularizedRankSVM fitted with keep_duals=True"
)
# Which pairs were chosen, where they were, and how heavily they count.
_CHOICE = ("pairs", "n_closest", "n_random", "seed", "pair_weighting", "query_normalization")
_AS_TRAINED = (
    "dual variables belong to the training data: pass X, y and qid as they were given to fit, in "
    "the same order"
)


# Singular values up to this share of the largest count as 0. It is above what the rounding of α
# and the accuracy to which fractions are found leave behind (about 1e-9), and far below what a
# single dual variable makes in a query of thousands of rows.
RANK_TOL = 1e-6


@dataclass(frozen=True, eq=False)
class Block:
    """The dual variables of one query: ``values[a, b]`` is α of ``rows[a]`` and ``columns[b]``.

    Attributes
    ----------
    query : query id
        None where there were no ids.
    rows, columns : int64 arrays (m,) and (n,)
        Row numbers in X: those above the lowest level, and those below the highest, both by
        ascending level.
    values : float64 array (m, n)
        α, 0 where the labels make no pair.
    is_pair : bool array (m, n)
        Where they make one.
    members : int64 array (l_q,)
        All rows of the query, in the order of X.
    """

    query: Any
    rows: Array
    columns: Array
    values: Array
    is_pair: Array
    members: Array

    @property
    def n_rows(self) -> int:
        """Rows of the query, the size of its square matrix."""
        return len(self.members)

    @property
    def n_pairs(self) -> int:
        """Pairs of the query."""
        return int(self.is_pair.sum())

    @cached_property
    def singular_values(self) -> Array:
        """Singular values, descending: those of the square matrix but for zeros."""
        return np.linalg.svd(self.values, compute_uv=False)

    def rank(self, tol: float = RANK_TOL) -> int:
        """Number of singular values above ``tol`` times the largest."""
        return singular_rank(self.singular_values, tol)

    def full(self) -> Array:
        """The square matrix of the query, its rows and columns in the order of `members`."""
        matrix = np.zeros((self.n_rows, self.n_rows))
        rows, columns = (np.searchsorted(self.members, part) for part in (self.rows, self.columns))
        matrix[np.ix_(rows, columns)] = self.values
        return matrix


def singular_rank(singular: Array, tol: float) -> int:
    """Number of ``singular`` values, descending, above ``tol`` times the first."""
    return int((singular > tol * singular[0]).sum()) if len(singular) else 0


@dataclass(frozen=True, eq=False, repr=False)
class DualMatrix:
    """The dual variables α of a model as one matrix for each query, made when looked at.

    ``A_q[i, j] = α_ij`` where row i is above row j in query q, 0 elsewhere. Only the rectangle
    of rows above the lowest level × rows below the highest can be other than 0: that is a `Block`,
    and the rank of the matrix cannot exceed its shorter side. Iterating gives the blocks of the
    queries with pairs, one at a time; nothing is kept of them.

    Made by :func:`linrank.dual_matrix`.

    Attributes
    ----------
    query_ids : list
        Ids of the queries that have pairs, by first appearance.
    loss : {"hinge", "squared_hinge"}
        Whose dual it is.
    kind : {"ranksvm", "factorized", "regularized"}
        What the model was trained by.
    C : float
        Weight of the losses: ``α <= C ω`` for the hinge.
    entries : callable
        α of the cells of a query.
    """

    problem: Problem
    w: Array
    entries: Entries
    kind: str = "ranksvm"
    threshold: Callable[[Array], Array] | None = None

    @property
    def loss(self) -> str:
        return self.problem.loss

    @property
    def C(self) -> float:
        return self.problem.C

    # ---- blocks ----------------------------------------------------------------------------------

    @property
    def pairs(self) -> Pairs:
        """The pairs that have dual variables, with their weights."""
        return _pairs(self.problem)

    @cached_property
    def _numbers(self) -> list[int]:
        """Numbers of the queries with pairs."""
        return [int(q) for q in np.flatnonzero(self.pairs.queries.n_levels > 1)]

    @cached_property
    def query_ids(self) -> list[Any]:
        """Ids of the queries with pairs; ``[None]`` without ids."""
        ids = self.pairs.queries.ids
        return [None if ids is None else ids[q].item() for q in self._numbers]

    def __len__(self) -> int:
        return len(self._numbers)

    def __iter__(self) -> Iterator[Block]:
        return (self._block(q) for q in self._numbers)

    def block(self, query: Any = None) -> Block:
        """The block of a query, by its id; without ids, or of a single query, by none.

        Parameters
        ----------
        query : query id, optional
            As given in ``qid``; with ``group``, the number of the query from 0.
        """
        if query is None and len(self) == 1:
            return next(iter(self))
        if query not in self.query_ids:
            raise KeyError(
                f"no query {query!r} with pairs among {len(self)}: a query has a block if its rows "
                "have at least two different labels; see query_ids"
            )
        return self._block(self._numbers[self.query_ids.index(query)])

    def full(self, query: Any = None) -> Array:
        """The square matrix of a query, its rows and columns in the order of X."""
        return self.block(query).full()

    def _block(self, q: int) -> Block:
        queries = self.pairs.queries
        cells = Cells.of(self.pairs, q)
        alpha = self.entries(cells)
        values = alpha if self.threshold is None else self.threshold(alpha)
        order = np.arange(queries.n_rows) if queries.order is None else queries.order
        members = order[queries.offsets[q] : queries.offsets[q + 1]]
        id_ = None if queries.ids is None else queries.ids[q].item()
        rows, columns = order[cells.top], order[cells.bottom]
        return Block(id_, rows, columns, values, cells.is_pair, members)

    # ---- certificate -----------------------------------------------------------------------------

    @cached_property
    def _sums(self) -> tuple[float, float, Array]:
        """``(e'α, Σ α²/4Cω, β)`` by a pass over the blocks; β in the scaled space."""
        pairs = self.pairs
        linear = quadratic = 0.0
        net = np.zeros(pairs.queries.n_rows)  # β = Σ_i net_i x_i
        for q in self._numbers:
            cells = Cells.of(pairs, q)
            alpha = self.entries(cells)
            linear += float(alpha.sum())
            if self.loss == "squared_hinge":
                used = cells.weight > 0.0
                quadratic += float((alpha[used] ** 2 / cells.weight[used]).sum()) / (4.0 * self.C)
            net[cells.top] += alpha.sum(axis=1)
            net[cells.bottom] -= alpha.sum(axis=0)
        problem = self.problem
        beta = _core.gradient(problem.rows.core, net, pairs.queries.order, problem.n_threads)
        return linear, quadratic, beta if problem.scale is None else problem.scale * beta

    @property
    def beta(self) -> Array:
        """``β = Σ α_ij (x_i - x_j)`` of the scaled rows: at the optimum the weights themselves."""
        return self._sums[2]

    def check_rows(self) -> None:
        """Raise ValueError unless β is about the weights: else α are those of other rows."""
        linear, _, beta = self._sums
        X, scale = self.problem.rows.to_user(), self.problem.scale
        largest = max(abs(float(X.max())), abs(float(X.min())))
        largest *= 1.0 if scale is None else float(scale.max(initial=0.0))
        # With a large C the sums cancel: what rounding leaves of them is no sign of other rows.
        rounding = 2e-12 * linear * largest
        off = float(np.abs(beta - self.w).max(initial=0.0))
        if off > 1e-3 * float(np.abs(self.w).max(initial=0.0)) + rounding:
            raise ValueError(
                f"the dual variables do not belong to these rows: Σ α_ij (x_i - x_j) differs from "
                f"the weights by {off:.3g}; {_AS_TRAINED}"
            )

    @property
    def value(self) -> float:
        """The dual objective, a lower bound of the optimum of RankSVM with this loss.

        ``e'α - ½‖β‖²``, for the squared hinge less ``Σ α²/4Cω``. It is that of α also where the
        blocks are thresholded.
        """
        linear, quadratic, beta = self._sums
        return linear - 0.5 * float(beta @ beta) - quadratic

    @cached_property
    def primal(self) -> float:
        """``½‖w‖² + C Σ ω l(1 - w·(x_i - x_j))`` at the weights of the model."""
        return float(self.problem.unsmoothed().at(self.w).primal)

    @property
    def gap(self) -> float:
        """`primal` - `value` >= 0, which holds both the model's error and that of α.

        Of low-rank models it does not go to 0: their α are not those of the RankSVM optimum.
        """
        return max(0.0, self.primal - self.value)

    def __repr__(self) -> str:
        """What it is of, and how large; the certificate is not computed for it."""
        of = self.kind + (", thresholded" if self.threshold is not None else "")
        return f"<DualMatrix of {of}: {self.loss}, C={self.C:g}, {len(self)} queries with pairs>"


# ---- from a model and its data ------------------------------------------------------------------


def dual_matrix(
    model: Any,
    X: Any,
    y: Any = None,
    qid: Any = None,
    *,
    group: Any = None,
    sample_weight: Any = None,
    query_weight: Any = None,
    thresholded: bool = False,
    tol: float = 1e-9,
    n_jobs: int | None = None,
) -> DualMatrix:
    """The dual variables of a trained model, one matrix for each query.

    With ``β = Σ α_ij (x_i - x_j)``, RankSVM's dual is to maximize ``e'α - ½‖β‖²`` over
    ``0 <= α_ij <= C ω_ij`` for the hinge, and ``e'α - ½‖β‖² - Σ α_ij²/(4Cω_ij)`` over ``α >= 0``
    for its square. At the optimum ``w = β``.

    - Squared hinge: ``α_ij = 2Cω_ij max(0, 1 - w·(x_i - x_j))``, as exact as w.
    - Hinge: α is at an end, ``Cω`` or 0, but for pairs whose margin is 1. Their fractions are found
      by maximizing the dual over a band of pairs around that margin until `tol` is proved; where
      the band cannot be listed, α is the Huber point with the largest dual value. More pairs than
      features with a margin of 1 have more than one optimal α; that nearest to the middle is found.
    - Factorized: ``α_ij = <v_i, v_j>``. Regularized: what the training has found.

    ``value`` and ``gap`` of the result say how near to optimal α is.

    Parameters
    ----------
    model : RankSVM, RankSVMCV, LinearModel, FactorizedRankSVM or RegularizedRankSVM
        Fitted, with bounds on neither side and without listed preferences. The low-rank estimators
        must have kept their variables: ``keep_factors=True``, ``keep_duals=True``.
    X, y, qid, group, sample_weight, query_weight
        The training data, as they were given to ``fit``. X may be a `Dataset`, which brings the
        labels and ids.
    thresholded : bool, default=False
        Of a RegularizedRankSVM: blocks are ``A = SVT_{γ/2λ}(α)``, whose rank the penalty
        holds down, in place of α itself.
    tol : float, default=1e-9
        Of the hinge: how near to its optimum the dual is to be, relative to the objective.
    n_jobs : int, optional
        Threads; None for all cores.

    Returns
    -------
    DualMatrix

    Examples
    --------
    >>> from linrank import RankSVM, dual_matrix
    >>> X, y = [[0.0], [1.0], [2.0]], [0, 0, 1]
    >>> ranker = RankSVM(C=10.0, loss="hinge", scale="none").fit(X, y)
    >>> dual = dual_matrix(ranker, X, y)
    >>> dual.full().round(6).tolist()  # row 2 is above row 1: margin 1
    [[0.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
    """
    linear = _linear_model(model)
    kind = _kind(model, linear)
    data = as_dataset(X, n_jobs, y=y, qid=qid, group=group, sample_weight=sample_weight)
    _check_training_data(linear, data)
    check_positive("tol", tol)
    if thresholded and kind != "regularized":
        raise ValueError(
            f"thresholded=True is of RegularizedRankSVM, whose γ and λ say by how much; got a "
            f"{kind} model"
        )
    problem = _problem(linear, kind, data, query_weight, n_jobs)
    w = linear.scaling.unfold(linear.coef)
    if kind == "ranksvm":
        if problem.loss == "hinge":
            return DualMatrix(problem, w, hinge_entries(problem, w, tol))
        z = problem.objective().at(w).parts[1].z
        return DualMatrix(problem, w, PairEntries.of_squared_hinge(z, problem.C))
    threshold, training = None, cast("dict[str, Any]", linear.training)
    if thresholded:
        threshold = partial(svt, threshold=training["gamma"] / (2.0 * training["lam"]))
    entries = (_factor_entries if kind == "factorized" else _kept_entries)(model, problem)
    dual = DualMatrix(problem, w, entries, kind=kind, threshold=threshold)
    dual.check_rows()
    return dual


def _linear_model(model: Any) -> LinearModel:
    """The model of an estimator, or the model itself."""
    linear = model if isinstance(model, LinearModel) else getattr(model, "model_", None)
    if isinstance(linear, LinearModel):
        return linear
    if hasattr(model, "fit") and linear is None:
        from sklearn.exceptions import NotFittedError

        raise NotFittedError(f"this {type(model).__name__} is not fitted yet; call fit first")
    if isinstance(model, KernelModel) or isinstance(linear, KernelModel):
        raise TypeError(
            f"a {type(model).__name__} has no weights from which the duals of its pairs could be "
            f"told: it keeps their sum at each support row; dual_matrix takes {_SUPPORTED}"
        )
    raise TypeError(f"dual_matrix takes {_SUPPORTED}; got {type(model).__name__}")


def _kind(model: Any, linear: LinearModel) -> str:
    """What trained the model: "ranksvm", "factorized" or "regularized"; refuses all others."""
    training = linear.training
    method = training.get("method", "ranksvm")
    if method in ("factorized", "regularized"):
        return str(method)
    if method != "ranksvm" or training.get("loss") not in LOSSES or not training.get("C"):
        raise TypeError(
            f"this {type(model).__name__} was not trained on the dual of a RankSVM, or does not "
            f"say how (loss and C in its training); dual_matrix takes {_SUPPORTED}"
        )
    if training.get("n_preferences"):
        raise ValueError(
            f"the model was trained on {training['n_preferences']} listed preferences, which have "
            "no place in a matrix of labeled pairs; use a model of fit(X, y)"
        )
    if training.get("positive") or training.get("bounded"):
        raise ValueError(
            "the model was trained with bounds (positive or coef_bounds), where the weights are "
            "not Σ α_ij (x_i - x_j); use a model without bounds"
        )
    return "ranksvm"


def as_dataset(X: Any, n_jobs: int | None, **given: Any) -> Dataset:
    """The training data: X if it is a `Dataset`, else made of it and what was given beside."""
    if not isinstance(X, Dataset):
        return Dataset.of(X, n_jobs=n_jobs, **given)
    for name, value in given.items():
        if value is not None:
            raise ValueError(f"X is a Dataset, which brings its own {name}; leave {name} out")
    return X


def _check_training_data(linear: LinearModel, data: Dataset) -> None:
    """Refuse data that cannot be those of the training: α of other rows would mean nothing."""
    if data.n_features != linear.n_features:
        raise ValueError(
            f"X has {data.n_features} features, the model {linear.n_features}; pass the data that "
            "it was trained on"
        )
    found = {"n_rows": data.n_rows, "n_queries": data.queries.n_queries}
    if linear.training.get("pairs", "all") == "all":
        found["n_pairs"] = data.queries.n_pairs
    check_sizes(linear.training, found)


def check_sizes(training: Mapping[str, Any], found: Mapping[str, int]) -> None:
    """Refuse data that have not the sizes that the training has noted."""
    for name, value in found.items():
        if (trained := training.get(name)) not in (None, value):
            sizes = f"the data have {value} {name.removeprefix('n_')}"
            raise ValueError(f"{sizes}, the model was trained on {trained}; {_AS_TRAINED}")


def choice_of_pairs(training: Mapping[str, Any]) -> dict[str, Any]:
    """Of the settings of a training, those that say which pairs it used and how heavily."""
    return {name: training[name] for name in _CHOICE if training.get(name) is not None}


def _problem(
    linear: LinearModel, kind: str, data: Dataset, query_weight: Any, n_jobs: int | None
) -> Problem:
    """The RankSVM problem that the model was trained for; low-rank models are of the hinge's."""
    training = cast("dict[str, Any]", linear.training)
    settings = {"scale": linear.scaling.factors, **choice_of_pairs(training)}
    settings["loss"] = str(training["loss"]) if kind == "ranksvm" else "hinge"
    settings["query_weight"] = query_weights(query_weight, data.queries)
    scaled = linear.scaling.transformed(data, n_jobs=n_jobs)
    problem = Problem.of(scaled, float(training["C"]), n_jobs=n_jobs, **settings)
    if problem.preferences is not None:
        raise ValueError(
            f"the model was trained on {training.get('n_pairs')} chosen pairs "
            f"(pairs={training['pairs']!r}), which are listed and have no place in a matrix; use a "
            "model of pairs='all', 'adjacent', or 'closest' with n_closest='auto'"
        )
    return problem


def _factor_entries(model: Any, problem: Problem) -> Entries:
    """``α_ij = <v_i, v_j>`` of the factors v that the training has kept."""
    kept = getattr(model, "factors_", None)
    if kept is None:
        raise ValueError(
            f"this {type(model).__name__} has no factors_, which its α are made of; fit it with "
            "keep_factors=True and pass the estimator itself"
        )
    rows = np.asarray(kept, dtype=np.float64)
    n_rows = problem.rows.shape[0]
    if rows.ndim != 2 or len(rows) != n_rows:
        raise ValueError(f"factors_ has the shape {rows.shape}, but X has {n_rows} rows")
    v = _pairs(problem).queries.gather(rows)
    return lambda cells: np.where(cells.is_pair, v[cells.top] @ v[cells.bottom].T, 0.0)


def _kept_entries(model: Any, problem: Problem) -> Entries:
    """The α that the training has kept: `Rectangles`, whose blocks lie as `Cells` do."""
    duals = getattr(model, "duals_", None)
    if duals is None:
        raise ValueError(
            f"this {type(model).__name__} has no duals_, its α; fit it with keep_duals=True and "
            "pass the estimator itself"
        )
    own, these = duals.pairs.queries, _pairs(problem).queries
    if own.n_rows != these.n_rows:
        raise ValueError(f"duals_ are of {own.n_rows} rows, but X has {these.n_rows}")
    names = ("offsets", "levels", "order")
    if not all(np.array_equal(getattr(own, name), getattr(these, name)) for name in names):
        raise ValueError(f"duals_ are of other queries or labels than these; {_AS_TRAINED}")
    place = {query: k for k, query in enumerate(duals.query.tolist())}

    def entries(cells: Cells) -> Array:
        # A query without a block, all of whose pairs have weight 0, has α = 0.
        k = place.get(cells.query)
        return np.zeros(cells.weight.shape) if k is None else np.array(duals.block(k))

    return entries


def _pairs(problem: Problem) -> Pairs:
    """The pairs of a problem of labels, which has some."""
    assert isinstance(problem.pairs, Pairs)
    return problem.pairs
