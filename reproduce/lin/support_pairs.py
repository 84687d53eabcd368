"""Which pairs are support vectors, by closeness: Figures 1 and 2 of Lin et al. (2013).

RankSVM with the RBF kernel on a half of bodyfat, γ = 1/number of features; α of all pairs from
order-closest to farthest, for growing C, and for growing noise in the labels at C = 1000.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

import problems
from linrank import (
    KernelRankSVM,
    SupportDistribution,
    SupportDistributionDisplay,
    support_distribution,
)
from report import Table
from reproduce.lin.halves import split

Array = NDArray[Any]

CS = (1.0, 100.0, 1000.0, 10000.0)  # the paper names C = 1 and larger ones
NOISES = (0.0, 0.1, 1.0)
NOISY_C = 1000.0
TOL = 1e-4
NEAR = 10  # order differences up to it are counted separately from the 1-closest


def distribution(X: Array, y: Array, C: float, loss: str) -> tuple[SupportDistribution, float]:
    """α of all pairs, and the certified gap of the training relative to its objective."""
    training = {"loss": loss, "tol": TOL, "max_iter": 1000, "scale": "none"}
    ranker = KernelRankSVM(C=C, gamma="auto", pair_weighting="uniform", **training)
    ranker.set_params(query_normalization=None).fit(X, y, qid=None)
    return support_distribution(ranker, X, y), ranker.duality_gap_ / ranker.objective_


def measure(quick: bool) -> list[Table]:
    try:
        half = split("bodyfat", 0)
    except problems.Absent as absent:
        return [Table("Figures 1 and 2 skipped", ["reason"], [[str(absent)]])]
    X, y = half.X, half.y
    rng = np.random.default_rng(0)
    noisy = {noise: y + noise * y.std() * rng.standard_normal(len(y)) for noise in NOISES}
    tables = []
    for loss in ("hinge", "squared_hinge"):
        by_C = {f"C = {C:g}": (y, C) for C in (CS[:2] if quick else CS)}
        by_noise = {
            f"noise {noise:g}": (noisy[noise], NOISY_C) for noise in NOISES[-1 if quick else 0 :]
        }
        tables.append(
            pair_table(f"Figure 1: bodyfat by C, {loss}", f"support_C_{loss}", X, by_C, loss)
        )
        tables.append(
            pair_table(
                f"Figure 2: bodyfat by noise, {loss}", f"support_noise_{loss}", X, by_noise, loss
            )
        )
    return tables


def pair_table(
    title: str, picture: str, X: Array, cases: dict[str, tuple[Array, float]], loss: str
) -> Table:
    table = Table(
        title,
        [
            *("case", "pairs", "1-closest", "with α > 0 (%)", "1-closest with α > 0 (%)"),
            *("of Σα: 1-closest (%)", f"of Σα: difference <= {NEAR} (%)"),
            *("largest difference with α > 0", "gap"),
        ],
        notes=[
            "the paper's half has 7862 pairs, 138 of them 1-closest",
            "noise: a normal variable with that share of the target's deviation is added to it",
        ],
    )
    figure = Figure(figsize=(4.0 * len(cases), 3.4), layout="constrained")
    panels = np.atleast_1d(figure.subplots(1, len(cases)))
    for ax, (name, (y, C)) in zip(panels, cases.items(), strict=True):
        found, gap = distribution(X, y, C, loss)
        SupportDistributionDisplay(found).plot(ax)
        ax.set_title(f"{name}: {found.support_share:.1%} have α > 0")
        is_near = found.difference == 1
        near = 100.0 * found.n_support[is_near].sum() / found.n_closest
        table.add(
            name,
            int(found.n_pairs.sum()),
            found.n_closest,
            100.0 * found.support_share,
            near,
            100.0 * found.up_to(1)["alpha"],
            100.0 * found.up_to(NEAR)["alpha"],
            int(found.difference[found.n_support > 0].max(initial=0)),
            f"{gap:.1g}",
        )
    table.pictures[picture] = figure
    return table
