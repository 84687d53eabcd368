"""Figure 18: Domination Rank against PAMIR, topic by topic."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import spearmanr

from reproduce import official
from reproduce.page import Claim, Page, table
from reproduce.stevens import text
from reproduce.stevens.scatter import (
    EQUAL,
    Array,
    Points,
    against_each_other,
    draw_panels,
    evaluate_models,
)
from reproduce.stevens.sparsity import induction, pamir
from reproduce.stevens.tasks import Task, classes

FEWEST = 100  # reviews of a class that is a topic
ALMOST_ALL = 0.8
LEVEL = 0.05


def reproduce(quick: bool) -> Page:
    task = _task(quick)
    points = Points(
        *(np.concatenate(evaluate_models(fit, task.models)) for fit in (induction, pamir)),
    )
    n_positive = np.array([float((data.labels > 0).sum()) for data, _, _ in task.models])
    order = np.argsort(-n_positive)
    return Page(
        "Figure 18: performance on individual topics",
        claims(points, n_positive),
        [
            table(
                "Average precision by topic, most frequent first",
                ["relevant rows in training", "Domination Rank", "PAMIR", "difference"],
                [
                    [
                        *(f"{n_positive[i]:.0f}", f"{points.domination[i]:.4f}"),
                        *(f"{points.pamir[i]:.4f}", f"{points.difference[i]:+.4f}"),
                    ]
                    for i in order
                ],
                [task.about, "the thesis shows points and gives no numbers"],
            )
        ],
        [
            "a model for each topic, as in the thesis; Domination Rank by feature induction",
            "parameters of both by validation; PAMIR has 10^6 steps for each topic, where in the "
            "thesis the topics shared its steps, the frequent ones with more of them",
            *text.PROTOCOL[:2],
        ],
        {
            "scatter": draw_panels(
                [(task.name, against_each_other(points)), _by_frequency(points, n_positive)]
            )
        },
    )


def _task(quick: bool) -> Task:
    if official.path(text.OFFICIAL) is not None:
        return text.topics(quick)
    return classes(quick, FEWEST)


def claims(points: Points, n_positive: Array) -> list[Claim]:
    better = float(np.mean(points.difference < 0))
    rho, p = spearmanr(n_positive, points.difference)
    return [
        Claim(
            "PAMIR does slightly better on almost all topics.",
            better >= ALMOST_ALL,
            f"on {points.count(points.difference < 0)}; equal within {EQUAL:g} on "
            f"{points.count(abs(points.difference) <= EQUAL)}; mean difference "
            f"{points.difference.mean():+.4f}.",
        ),
        Claim(
            "Domination Rank does relatively better on the less frequent topics.",
            bool(rho < 0 and p < LEVEL),
            f"rank correlation of the difference with the frequency {rho:+.2f} (p {p:.2g}).",
        ),
    ]


def _by_frequency(points: Points, n_positive: Array) -> tuple[str, Any]:
    def draw(ax: Any) -> None:
        ax.axhline(0, color="0.6", lw=1)
        ax.scatter(n_positive, points.difference, s=18, lw=0, color="C0")
        ax.set(
            xscale="log", xlabel="relevant rows in training", ylabel="Domination Rank less PAMIR"
        )

    return "by frequency", draw
