"""Small models of every kind, rows to score, and their scores by the definition."""

import numpy as np

from linrank import LinearModel
from linrank.data.missing import Missing

KINDS = ("error", "zero", "mean", "indicator")
NAMES = ("bm25", "Title length", 'the "best"', "select", "größe", "a.b", "x]y", "it's")


def missing_of(kind, n_features, rng):
    """A policy of this kind with random numbers."""
    values = rng.normal(size=n_features) * 3 if kind == "mean" else None
    weights = None
    if kind == "indicator":
        weights = np.where(rng.random(n_features) < 0.7, rng.normal(size=n_features), 0.0)
    return Missing(kind, values, weights)


def model_of(kind="error", names=NAMES, seed=0, **options):
    """A model with weights of many magnitudes, one of them 0 where there are several."""
    rng = np.random.default_rng(seed)
    coef = rng.normal(size=len(names)) * 10.0 ** rng.uniform(-4, 4, len(names))
    if len(names) > 2:
        coef[2] = 0.0
    return LinearModel(coef, names, missing=missing_of(kind, len(names), rng), **options)


def rows_of(n_rows, n_features, missing=True, seed=1, dtype=np.float64):
    """Rows with zeros, missing values (unless there are to be none) and extremes among them."""
    rng = np.random.default_rng(seed)
    shape = (n_rows, n_features)
    X = rng.normal(size=shape) * 10.0 ** rng.uniform(-6, 6, shape)
    X[rng.random(shape) < 0.2] = 0.0
    extreme = rng.random(shape) < 0.01
    X[extreme] = rng.choice([1e20, -1e20, 1e-20, -1e-20], int(extreme.sum()))
    if missing:
        X[rng.random(shape) < 0.15] = np.nan
        X[0] = np.nan
    return X.astype(dtype)


def truth(model, X, unit):
    """Scores by the definition, and how far those may be off that are computed in `unit`.

    A sum of d products, each rounded and then added in any order, is off by at most
    γ Σ_j |w_j x_j| with γ = (d + 3) u / (1 - (d + 3) u): d - 1 additions, the product, the
    rounding of the weight and that of what a missing value adds (Higham, section 3.1).
    """
    added = model.missing.contributions(model.coef)
    terms = np.where(np.isnan(X), added, X.astype(np.longdouble) * model.coef)
    k = (X.shape[1] + 3) * unit
    bound = k / (1 - k) * np.abs(terms).sum(axis=1)
    return terms.sum(axis=1), bound


def assert_scores(scores, model, X, unit, factor=1.0):
    """Scores are within the bound of the definition's, and so in their order.

    Where ``t_i - t_j > b_i + b_j`` then ``s_i > s_j``: sorted by s, no ``t - b`` of an earlier
    row exceeds the ``t + b`` of a later one.
    """
    expected, bound = truth(model, X, unit)
    expected, bound = expected * factor, bound * factor
    assert np.isfinite(np.asarray(scores, dtype=np.float64)).all()
    off = np.abs(np.asarray(scores, dtype=np.longdouble) - expected)
    assert (off <= bound).all(), f"row {int(np.argmax(off - bound))}"
    order = np.argsort(scores, kind="stable")
    reached = np.maximum.accumulate((expected - bound)[order])
    assert (reached <= (expected + bound)[order]).all()


def code_in(instructions):
    """The indented lines of a text: the code that it shows."""
    lines = (line for line in instructions.splitlines() if line.startswith("    ") or not line)
    return "\n".join(line[4:] for line in lines)
