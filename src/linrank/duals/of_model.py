"""dual_matrix: from a trained model and its data to its dual variables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank import _core
from linrank.data.dataset import Dataset
from linrank.data.queries import Queries, query_weights
from linrank.duals.dual_matrix import (
    DualMatrix,
    Entries,
    FactorEntries,
    RectangleEntries,
    SquaredHingeEntries,
)
from linrank.duals.hinge import hinge_entries
from linrank.errors import check_positive
from linrank.lowrank.proximal import svt
from linrank.models.kernel import KernelModel
from linrank.models.linear import LinearModel
from linrank.options import LOSSES
from linrank.ranksvm.train import Problem

Array = NDArray[Any]

_SUPPORTED = (
    "a fitted RankSVM or RankSVMCV, a LinearModel of one, a FactorizedRankSVM fitted with "
    "keep_factors=True, or a RegularizedRankSVM fitted with keep_duals=True"
)
_SIZES = ("n_closest", "n_random", "seed")  # which pairs were chosen, where they were
_AS_TRAINED = (
    "dual variables belong to the training data: pass X, y and qid as they were given to fit, in "
    "the same order"
)


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

    With ``β = Σ α_ij (x_i - x_j)``, RankSVM's dual is to maximise ``e'α - ½‖β‖²`` over
    ``0 <= α_ij <= C ω_ij`` for the hinge, and ``e'α - ½‖β‖² - Σ α_ij²/(4Cω_ij)`` over ``α >= 0``
    for its square. At the optimum ``w = β``.

    - Squared hinge: ``α_ij = 2Cω_ij max(0, 1 - w·(x_i - x_j))``, as exact as w.
    - Hinge: α is at an end, ``Cω`` or 0, but for pairs whose margin is 1. Their fractions are found
      by maximising the dual over a band of pairs around that margin until `tol` is proved; where
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
    >>> dual = dual_matrix(RankSVM(C=10.0, loss="hinge").fit(X, y), X, y)
    >>> dual.full().round(6).tolist()  # row 2 is above row 1: margin 1
    [[0.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
    """
    linear = _linear_model(model)
    kind = _kind(model, linear)
    data = as_dataset(X, y, qid, group, sample_weight, n_jobs)
    _check_training_data(linear, data)
    check_positive("tol", tol)
    if thresholded and kind != "regularized":
        raise ValueError(
            f"thresholded=True is of RegularizedRankSVM, whose γ and λ say by how much; got a "
            f"{kind} model"
        )
    problem = _problem(linear, kind, data, query_weight, n_jobs)
    w = linear.scaling.unfold(linear.coef)
    threshold = _thresholding(linear) if thresholded else None
    entries = _entries(model, kind, problem, w, tol)
    return DualMatrix(problem, w, entries, kind=kind, threshold=threshold)


def _entries(model: Any, kind: str, problem: Problem, w: Array, tol: float) -> Entries:
    if kind == "factorized":
        return _of_these_rows(FactorEntries(_factors(model, problem)), problem, w)
    if kind == "regularized":
        return _of_these_rows(_regularized(model, problem), problem, w)
    if problem.loss == "hinge":
        return hinge_entries(problem, w, tol)
    return SquaredHingeEntries(problem.objective().at(w).parts[1].z, problem.C)


# ---- what the model is --------------------------------------------------------------------------


def _linear_model(model: Any) -> LinearModel:
    """The model of an estimator, or the model itself."""
    if isinstance(model, LinearModel):
        return model
    linear = getattr(model, "model_", None)
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
        name = type(model).__name__
        raise TypeError(
            f"this {name} was not trained on the dual of a RankSVM, or does not say how (loss and "
            f"C in its training); dual_matrix takes {_SUPPORTED}"
        )
    if training.get("n_preferences"):
        raise ValueError(
            f"the model was trained on {training['n_preferences']} listed preferences, which have "
            "no place in a matrix of labelled pairs; use a model of fit(X, y)"
        )
    if training.get("positive") or training.get("bounded"):
        raise ValueError(
            "the model was trained with bounds (positive or coef_bounds), where the weights are "
            "not Σ α_ij (x_i - x_j); use a model without bounds"
        )
    return "ranksvm"


# ---- what the data are --------------------------------------------------------------------------


def as_dataset(
    X: Any,
    y: Any,
    qid: Any,
    group: Any = None,
    sample_weight: Any = None,
    n_jobs: int | None = None,
) -> Dataset:
    if not isinstance(X, Dataset):
        return Dataset.of(X, y, qid=qid, group=group, sample_weight=sample_weight, n_jobs=n_jobs)
    given = {"y": y, "qid": qid, "group": group, "sample_weight": sample_weight}
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
    for name, value in found.items():
        trained = linear.training.get(name)
        if trained is not None and trained != value:
            what = name.removeprefix("n_")
            raise ValueError(
                f"the data have {value} {what}, the model was trained on {trained}; {_AS_TRAINED}"
            )


def _problem(
    linear: LinearModel, kind: str, data: Dataset, query_weight: Any, n_jobs: int | None
) -> Problem:
    """The RankSVM problem that the model was trained for; low-rank models are of the hinge's."""
    training: Mapping[str, Any] = linear.training
    weighing = {
        name: training[name]
        for name in ("pairs", *_SIZES, "pair_weighting", "query_normalization")
        if training.get(name) is not None
    }
    problem = Problem.of(
        linear.scaling.transformed(data, n_jobs=n_jobs),
        float(training["C"]),
        loss=str(training["loss"]) if kind == "ranksvm" else "hinge",
        scale=linear.scaling.factors,
        query_weight=query_weights(query_weight, data.queries),
        n_jobs=n_jobs,
        **weighing,
    )
    if problem.preferences is not None:
        raise ValueError(
            f"the model was trained on {training.get('n_pairs')} chosen pairs "
            f"(pairs={training['pairs']!r}), which are listed and have no place in a matrix; use a "
            "model of pairs='all', 'adjacent', or 'closest' with n_closest='auto'"
        )
    return problem


def _factors(model: Any, problem: Problem) -> Array:
    """The factors by position."""
    factors = getattr(model, "factors_", None)
    if factors is None:
        raise ValueError(
            f"this {type(model).__name__} has no factors_, which its α are made of; fit it with "
            "keep_factors=True and pass the estimator itself"
        )
    factors = np.asarray(factors, dtype=np.float64)
    n_rows = problem.rows.shape[0]
    if factors.ndim != 2 or len(factors) != n_rows:
        raise ValueError(f"factors_ has the shape {factors.shape}, but X has {n_rows} rows")
    if problem.pairs is None:
        raise ValueError("the labels make no pair, so there is no matrix")
    return problem.pairs.queries.gather(factors)


def _regularized(model: Any, problem: Problem) -> RectangleEntries:
    """The α that the training has kept."""
    duals = getattr(model, "duals_", None)
    if duals is None:
        raise ValueError(
            f"this {type(model).__name__} has no duals_, its α; fit it with keep_duals=True and "
            "pass the estimator itself"
        )
    own, n_rows = duals.pairs.queries, problem.rows.shape[0]
    if problem.pairs is None or own.n_rows != n_rows:
        raise ValueError(f"duals_ are of {own.n_rows} rows, but X has {n_rows}")
    if not _same_levels(own, problem.pairs.queries):
        raise ValueError(f"duals_ are of other queries or labels than these; {_AS_TRAINED}")
    return RectangleEntries(duals)


def _same_levels(one: Queries, other: Queries) -> bool:
    """Whether the rows have the same queries and levels."""
    return all(
        np.array_equal(getattr(one, name), getattr(other, name))
        for name in ("offsets", "levels", "order")
    )


def _of_these_rows(
    entries: FactorEntries | RectangleEntries, problem: Problem, w: Array
) -> FactorEntries | RectangleEntries:
    """The entries, unless ``β = Σ α_ij (x_i - x_j)`` of these rows is not the weights at all."""
    if problem.pairs is None:
        raise ValueError("the labels make no pair, so there is no matrix")
    queries = problem.pairs.queries
    net = entries.net(queries)
    rows, n_threads = problem.rows.core, problem.n_threads
    beta = _core.gradient(rows, net, queries.order, n_threads)
    if problem.scale is not None:
        beta = problem.scale * beta
    # With a large C the sums cancel: what rounding leaves of them is no sign of other rows.
    rounding = 1e-12 * float(np.abs(net).sum()) * _largest(problem)
    off = float(np.abs(beta - w).max(initial=0.0))
    if off > 1e-3 * float(np.abs(w).max(initial=0.0)) + rounding:
        raise ValueError(
            f"the dual variables do not belong to these rows: Σ α_ij (x_i - x_j) differs from the "
            f"weights by {off:.3g}; {_AS_TRAINED}"
        )
    return entries


def _largest(problem: Problem) -> float:
    """A bound of the absolute values of the scaled features."""
    X = problem.rows.to_user()
    raw = max(abs(float(X.max())), abs(float(X.min())))
    return raw if problem.scale is None else raw * float(problem.scale.max(initial=0.0))


def _thresholding(linear: LinearModel) -> Callable[[Array], Array]:
    """``A = SVT_{γ/2λ}(α)``, the matrix that the penalty of the training makes one of low rank."""
    training: Mapping[str, Any] = linear.training
    gamma, lam = float(training["gamma"]), float(training["lam"])
    return partial(svt, threshold=gamma / (2.0 * lam))
