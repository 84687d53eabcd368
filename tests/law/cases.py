"""Random fits, hostile on purpose, and what the judge says of their certificates.

A case is a function of a random generator. It makes a small problem, fits it by a public call, and
returns what was `Claimed`; it raises `Refused` where the fit was refused with a clear error.
"""

from __future__ import annotations

import tempfile
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

import linrank
import papers
from law.judge import Real, features_of, judge_domination, judge_pairs
from linrank.errors import NoPairsError


@dataclass(frozen=True)
class Claimed:
    """What a fit says of itself, and what the judge says of its weights."""

    objective: float
    gap: float
    converged: bool
    tol: float | None  # None where convergence is another promise
    value: Any  # F at the weights, in long double
    least: Any  # the lowest F that was found
    told: dict[str, Any]

    def faults(self) -> list[str]:
        """What of it is not true."""
        off = max(self.value, Real(self.objective)) - self.least
        found = []
        if not (np.isfinite(self.objective) and self.gap >= 0.0 and self.objective >= 0.0):
            found.append("no numbers")
        if not off <= self.gap:
            found.append(f"F - F* is {float(off):.6g}, above the gap")
        if not abs(Real(self.objective) - self.value) <= self.gap:
            found.append("the objective is off by more than the gap")
        if self.converged and self.tol is not None:
            is_there = self.value - self.least <= Real(self.tol) * self.value * Real(1 + 1e-9)
            found += [] if is_there else ["not converged"]
        return found


def pick(rng, *choices):
    return choices[int(rng.integers(len(choices)))]


def columns(rng, n_rows):
    """A matrix of hostile columns: far scales, offsets, outliers, duplicates, few values."""
    n = int(rng.integers(1, 6))
    kind = pick(rng, "normal", "normal", "integers", "binary", "heavy")
    if kind == "integers":
        X = rng.integers(-3, 4, (n_rows, n)).astype(float)
    elif kind == "binary":
        X = rng.integers(0, 2, (n_rows, n)).astype(float)
    else:
        X = rng.normal(size=(n_rows, n))
        if kind == "heavy":
            X[rng.random((n_rows, n)) < 0.1] *= 10.0 ** rng.uniform(1, 8)
    reach = pick(rng, None, None, (-2, 2), (-1, 9), (-6, 14), (0, 0.1))
    if reach is not None:
        X = X * 10.0 ** rng.uniform(*reach, n)
    if rng.random() < 0.1:
        X = X * 10.0 ** rng.uniform(-6, 14)
    if rng.random() < 0.25:
        j = int(rng.integers(n))
        X[:, j] += 10.0 ** rng.uniform(0, 9) * (np.abs(X[:, j]).max() + 1e-3)
    if rng.random() < 0.1:
        X[int(rng.integers(n_rows))] = X[int(rng.integers(n_rows))]
    if n > 1 and rng.random() < 0.1:
        X[:, 1] = X[:, 0] * pick(rng, 1.0, -2.0, 1.0 + 1e-9)
    return X


def data(rng, most_rows=9):
    """(X, y, qid, weight)."""
    sizes = rng.integers(2, most_rows + 1, int(rng.integers(1, 4)))
    qid = np.repeat(np.arange(len(sizes)), sizes)
    X = columns(rng, len(qid))
    levels = int(pick(rng, 2, 2, 3, 5, 0))
    if rng.random() < 0.35:  # separable, but for ties
        scores = X @ (rng.normal(size=X.shape[1]) / (np.abs(X).max(axis=0) + 1e-300))
        places = np.argsort(np.argsort(scores))
        y = scores if levels == 0 else levels * places // len(scores)
    else:
        y = rng.normal(size=len(qid)) if levels == 0 else rng.integers(0, levels, len(qid))
    weight = None
    if rng.random() < 0.3:
        weight = 10.0 ** rng.uniform(*pick(rng, (-6, 6), (-1, 1), (-12, 0)), len(qid))
        weight[rng.random(len(qid)) < 0.1] = 0.0
    if rng.random() < 0.3:
        X = X.astype(np.float32)
    return X, np.asarray(y, dtype=float), qid, weight


def stored_as(rng, X):
    return sp.csr_array(X) if rng.random() < 0.2 else X


def listed(y, qid, weight, weighting="uniform", adjacent=False, query_weight=None):
    """Pairs (winner, loser) and their weights, in long double."""
    above = (y[:, None] > y[None, :]) & (qid[:, None] == qid[None, :])
    pairs = np.argwhere(above)
    i, j = pairs.T
    if adjacent:
        level = np.zeros(len(y), dtype=int)
        for q in np.unique(qid):
            level[qid == q] = np.unique(y[qid == q], return_inverse=True)[1]
        kept = level[i] == level[j] + 1
        pairs, i, j = pairs[kept], i[kept], j[kept]
    omega = np.ones(len(pairs), Real)
    if weight is not None:
        u = weight.astype(Real)
        omega = omega * u[i] * u[j]
    if weighting != "uniform":
        gain = y.astype(Real) if weighting == "grade_diff" else np.exp2(y.astype(Real))
        omega = omega * (gain[i] - gain[j])
    if query_weight is not None:
        omega = omega * query_weight[qid[i]].astype(Real)
    return pairs, omega


def number(rng, low, high):
    return float(10.0 ** rng.uniform(low, high))


class Refused(Exception):
    """The fit was refused with a clear error: there is nothing to judge."""


def quietly(fit, *data, **options):
    """The outcome of a fit."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return fit(*data, **options)
        except (NoPairsError, ValueError, FloatingPointError) as error:
            if not str(error):
                raise
            raise Refused from error


def by_scale(ranker, factors):
    """The weights of scaled features, and the factors."""
    coef = ranker.coef_.astype(Real)
    d = np.ones_like(coef) if factors is None else factors.astype(Real)
    with np.errstate(divide="ignore", invalid="ignore"):
        w = np.where(d > 0, coef / d, 0)
    return w, d


def bounds_of(rng, n):
    """Bounds of the coefficients, or none."""
    if rng.random() < 0.55:
        return {}, None, None
    if rng.random() < 0.5:
        return {"positive": True}, np.zeros(n), np.full(n, np.inf)
    lower = np.array([pick(rng, -np.inf, -number(rng, -6, 2), 0.0) for _ in range(n)])
    upper = np.array([pick(rng, np.inf, number(rng, -6, 2), 0.0) for _ in range(n)])
    if rng.random() < 0.2:
        lower = np.minimum(np.full(n, number(rng, -4, 0)), upper)
    return {"coef_bounds": (lower, upper)}, lower, upper


def stopping(rng):
    options: dict[str, Any] = {}
    if rng.random() < 0.6:
        options["tol"] = float(pick(rng, 1e-1, 1e-2, 1e-3, 1e-5, 1e-7, 1e-9, 1e-12))
    if rng.random() < 0.2:
        options["max_iter"] = int(rng.integers(1, 5))
    return options


def tolerance(options, loss="squared_hinge", solver="newton"):
    default = 1e-4 if (loss, solver) == ("squared_hinge", "newton") else 1e-3
    return options.get("tol", default)


def judged(ranker, X, pairs, omega, told, *, limits=({},), tol=None, scale=1, weights=None):
    """What a fit of pairs claims, and the judge's verdict on its weights.

    ``omega`` are the weights of the pairs beside C, ``limits`` as `bounds_of` returns them.
    """
    loss = told.get("loss", "squared_hinge")
    w = ranker.coef_.astype(Real) if weights is None else weights
    c = Real(told["C"]) * omega
    values, least = judge_pairs(X, pairs, c, loss, [w], *limits[1:], scale=scale)
    return _claimed(ranker, values[0], least, tol, {**told, **limits[0]})


def _claimed(ranker, value, least, tol, told):
    claims = (ranker.objective_, ranker.duality_gap_, ranker.converged_)
    return Claimed(*claims, tol, value, least, told)


def some_pairs(rng):
    """The options of most problems: C, loss, and when to stop."""
    loss = pick(rng, "squared_hinge", "hinge")
    return {"C": number(rng, -4, 4), "loss": loss, **stopping(rng)}


def linear(rng):
    X, y, qid, weight = data(rng)
    options = some_pairs(rng)
    options["solver"] = pick(rng, "newton", "newton", "newton", "newton", "bundle")
    is_newton = options["solver"] == "newton"
    limits, lower, upper = bounds_of(rng, X.shape[1]) if is_newton else ({}, None, None)
    weighting, adjacent = pick(rng, "uniform", "uniform", "grade_diff"), rng.random() < 0.15
    options["scale"] = pick(rng, "none", "none", "none", "standard", "minmax")
    options |= {"pair_weighting": weighting, "pairs": "adjacent" if adjacent else "all"}
    ranker = papers.RankSVM(**options, **limits, n_jobs=1)
    quietly(ranker.fit, stored_as(rng, X), y, qid=qid, sample_weight=weight)
    factors = ranker.model_.scaling.factors
    w, d = by_scale(ranker, factors)
    pairs, omega = listed(y, qid, weight, weighting, adjacent)
    tol = tolerance(options, options["loss"], options["solver"])
    ends = (limits, *_scaled(lower, upper, factors))
    return judged(ranker, X, pairs, omega, options, limits=ends, tol=tol, scale=d, weights=w)


def _scaled(lower, upper, factors):
    if lower is None or factors is None:
        return lower, upper
    with np.errstate(divide="ignore", invalid="ignore"):
        ends = ((lower, -np.inf), (upper, np.inf))
        return [np.where(factors > 0, end / factors, inf) for end, inf in ends]


def published(rng):
    """The published solvers, whose tolerance is one of the gradient."""
    X, y, qid, weight = data(rng)
    solver = pick(rng, "tron", "prsvm", "prsvm+")
    options = {"C": number(rng, -3, 3), "solver": solver, **stopping(rng)}
    if rng.random() < 0.3:
        loss = pick(rng, "squared_hinge", "hinge")
        options |= {"solver": "bundle", "counting": "avl", "loss": loss}
    ranker = linrank.published.PublishedRankSVM(**options)
    tol = tolerance(options, "hinge") if options["solver"] == "bundle" else None
    quietly(ranker.fit, X, y, qid=qid, sample_weight=weight)
    return judged(ranker, X, *listed(y, qid, weight), options, tol=tol)


def preferences(rng):
    X, _, _, _ = data(rng)
    n = X.shape[0]
    pairs = rng.integers(0, n, (int(rng.integers(1, 25)), 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    if len(pairs) == 0:
        raise Refused
    weight = 10.0 ** rng.uniform(-6, 6, len(pairs)) if rng.random() < 0.4 else None
    options, limits = some_pairs(rng), bounds_of(rng, X.shape[1])
    ranker = papers.RankSVM(**options, **limits[0], n_jobs=1)
    omega = np.ones(len(pairs), Real) if weight is None else weight.astype(Real)
    how = {"limits": limits, "tol": tolerance(options, options["loss"])}
    quietly(ranker.fit_pairs, stored_as(rng, X), pairs, pair_weight=weight)
    return judged(ranker, X, pairs, omega, options, **how)


def path(rng):
    X, y, qid, weight = data(rng)
    loss = pick(rng, "squared_hinge", "squared_hinge", "hinge")
    Cs = np.sort(10.0 ** rng.uniform(-4, 4, 3))
    options = {"Cs": Cs, "loss": loss, **stopping(rng)}
    limits, lower, upper = bounds_of(rng, X.shape[1])
    given = {"sample_weight": weight, "n_jobs": 1, **options, **limits}
    found = quietly(papers.ranksvm_path, X, y, qid, **given)
    k = int(rng.integers(3))
    pairs, omega = listed(y, qid, weight)
    c = Real(found.Cs[k]) * omega
    values, least = judge_pairs(X, pairs, c, loss, [found.coefs[k].astype(Real)], lower, upper)
    tol, told = tolerance(options, loss), {**options, **limits, "C": found.Cs[k]}
    claims = (found.objectives[k], found.gaps[k], bool(found.converged[k]))
    return Claimed(*claims, tol, values[0], least, told)


def kernel(rng):
    X, y, qid, weight = data(rng, most_rows=6)
    name = pick(rng, "rbf", "rbf", "poly", "linear")
    loss = pick(rng, "squared_hinge", "hinge")
    options = {"kernel": name, "gamma": number(rng, -3, 2), "C": number(rng, -3, 3), "loss": loss}
    options |= {"degree": int(rng.integers(1, 4)), "coef0": float(pick(rng, 0.0, 1.0))}
    options |= stopping(rng)
    X = X / max(float(np.abs(X).max()) / number(rng, -1, 1), 1e-300)
    ranker = papers.KernelRankSVM(**options, n_jobs=1, random_state=0)
    quietly(ranker.fit, X, y, qid=qid, sample_weight=weight)
    rows = np.asarray(X, dtype=Real)
    products = rows @ rows.T
    gamma = Real(ranker.gamma_)
    square = ((rows[:, None, :] - rows[None, :, :]) ** 2).sum(axis=2)
    Q = {
        "rbf": lambda: np.exp(-gamma * square),
        "poly": lambda: (gamma * products + Real(options["coef0"])) ** options["degree"],
        "linear": lambda: products,
    }[name]()
    beta = np.zeros(len(rows), Real)
    beta[ranker.support_] = ranker.dual_coef_
    features = features_of(Q)
    pairs, omega = listed(y, qid, weight)
    c = Real(options["C"]) * omega
    _, least = judge_pairs(features, pairs, c, loss, [features.T @ beta])
    s = Q @ beta
    slack = np.maximum(0, 1 - (s[pairs[:, 0]] - s[pairs[:, 1]]))
    value = beta @ s / 2 + (c * (slack**2 if loss == "squared_hinge" else slack)).sum()
    return _claimed(ranker, value, min(least, value), tolerance(options, loss), options)


def domination(rng):
    X, y, qid, weight = data(rng, most_rows=7)
    penalty = pick(rng, "l1", "l2")
    options = {"penalty": penalty, "alpha": number(rng, -3, 3), **stopping(rng)}
    if penalty == "l2" and rng.random() < 0.3:
        options["solver"] = "coordinate"
    X = X / (np.abs(X).max(axis=0).astype(float) + 1e-300) * 10.0 ** rng.uniform(-3, 3, X.shape[1])
    ranker = papers.DominationRanker(**options, n_jobs=1)
    quietly(ranker.fit, X, y, qid=qid, sample_weight=weight)
    u = np.ones(len(y), Real) if weight is None else weight.astype(Real)
    layer = np.unique(y, return_inverse=True)[1]
    problem = (X, qid, layer, u, u, penalty, options["alpha"])
    values, least = judge_domination(*problem, [ranker.coef_.astype(Real)])
    return _claimed(ranker, values[0], least, options.get("tol", 1e-4), options)


def store(rng):
    """The same problems in passes over a store, or mapped from it."""
    X, y, qid, weight = data(rng)
    options, limits = some_pairs(rng), bounds_of(rng, X.shape[1])
    passes = {"memory_limit": "8GB"} if rng.random() < 0.7 else {}
    ranker = papers.RankSVM(**options, **limits[0], **passes, n_jobs=1)
    how = {"limits": limits, "tol": tolerance(options, options["loss"])}
    with tempfile.TemporaryDirectory(prefix="linrank-law-") as folder:
        given = quietly(linrank.Dataset.of, X, y, qid=qid, sample_weight=weight)
        quietly(linrank.convert, given, folder + "/data.store", chunk_bytes=256)
        quietly(ranker.fit, linrank.Store(folder + "/data.store"))
    return judged(ranker, X, *listed(y, qid, weight), {**options, **passes}, **how)


def stochastic(rng):
    """Weights of a descent, whose gap is certified for what they are."""
    X, y, qid, _ = data(rng)
    options = {"alpha": number(rng, -4, 1), "n_steps": int(rng.integers(1, 2000))}
    options |= {"random_state": 0, "record": "exact"}
    X = X / (np.abs(X).max() + 1e-300)
    ranker = papers.SGDRanker(**options)
    quietly(ranker.fit, X, y, qid=qid)
    pairs, omega = listed(y, qid, None)
    alpha = Real(options["alpha"])
    c = omega / (alpha * len(pairs))
    values, least = judge_pairs(X, pairs, c, "hinge", [ranker.coef_.astype(Real)])
    found = (alpha * values[0], alpha * least)
    return Claimed(ranker.objective_, ranker.duality_gap_, False, None, *found, options)


def factorized(rng):
    X, y, qid, weight = data(rng)
    options = {"C": number(rng, -3, 2), "n_components": int(rng.integers(1, 4)), "random_state": 0}
    X = X / (np.abs(X).max() + 1e-300)
    ranker = papers.FactorizedRankSVM(**options, max_iter=int(rng.integers(1, 60)))
    quietly(ranker.fit, X, y, qid=qid, sample_weight=weight)
    # What is certified is that of RankSVM, and there is no promise of a tolerance.
    ranker.objective_, ranker.converged_ = ranker.hinge_objective_, False
    return judged(ranker, X, *listed(y, qid, weight), {**options, "loss": "hinge"})


def cluster(rng, client=None):
    """The same problems on a cluster, in partitions of whole queries."""
    import dask.array as da

    import linrank.dask

    X, y, qid, weight = data(rng)
    X = np.asarray(X, dtype=np.float64)
    options, limits = some_pairs(rng), bounds_of(rng, X.shape[1])
    sizes = tuple(np.bincount(qid).tolist())
    blocks = [da.from_array(a, chunks=(sizes,)) for a in (y, qid)]
    given = {} if weight is None else {"sample_weight": da.from_array(weight, chunks=(sizes,))}
    rows = da.from_array(X, chunks=(sizes, X.shape[1]))
    settings = papers.settings_of(linrank.dask.RankSVM, **options, **limits[0])
    ranker = linrank.dask.RankSVM(**settings, client=client)
    how = {"limits": limits, "tol": tolerance(options, options["loss"])}
    quietly(ranker.fit, rows, blocks[0], qid=blocks[1], **given)
    return judged(ranker, X, *listed(y, qid, weight), options, **how)


KINDS = (linear, published, preferences, path, kernel, domination, store, stochastic, factorized)
CASES = {make.__name__: make for make in (*KINDS, cluster)}


def run(name, seed, numbers, **options):
    """(fits that were judged, that were refused, faults) of the random cases of these numbers."""
    n_judged = n_refused = 0
    faults = []
    for k in numbers:
        try:
            claimed = CASES[name](np.random.default_rng([seed, k]), **options)
        except Refused:
            n_refused += 1
            continue
        n_judged += 1
        faults += [(name, seed, k, fault, claimed) for fault in claimed.faults()]
    return n_judged, n_refused, faults
