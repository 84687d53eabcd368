"""Table 1 of Sculley (2009): AUC and training time on large single queries."""

from __future__ import annotations

import time
from functools import partial

import numpy as np

import report
from linrank.system.tables import Table
from reproduce import official
from reproduce.cells import number, rows
from reproduce.page import Claim, Measurement, Page, laid_out, table
from reproduce.sculley import single_queries

# Learner of the paper: our row, ROC area, seconds.
PAPER = {
    "SVM-struct-rank": ("", "0.9992", "30,716.33"),
    "SVM-perf-roc": ("exact, hinge", "0.9992", "31.92"),
    "SPD Pass-Aggr": ("pa", "0.9990", "0.22"),
    "SPD SGD-SVM": ("sgd-svm", "0.9992", "0.20"),
    "SPD Pegasos": ("pegasos", "0.9992", "0.20"),
}
STOCHASTIC = ("pa", "sgd-svm", "pegasos")


def reproduce(quick: bool) -> Page:
    real = _official()
    sets = single_queries.SETS if real is None else (*single_queries.SETS[:-1], lambda _: real)
    found = Measurement(single_queries.measure(quick, sets=sets))
    tables = [one for one in found.tables if "AUC" in one.title]
    whole = [_whole(real or single_queries.rcv1(0.1 if quick else 1.0))]
    return Page(
        title="Table 1: ROC area and training time on RCV1",
        claims=_claims(tables, whole),
        tables=[_beside(tables[-1]), *whole, *map(laid_out, found.tables)],
        differences=_differences(found),
    )


def _official() -> single_queries.Case | None:
    """RCV1's topic E311; a fifth of the training rows validates."""
    parts = official.read({"train": "RCV1/train.svm", "test": "RCV1/test.svm"})
    if parts is None:
        return None
    data = single_queries.replace_labels(parts["train"], parts["train"].labels > 0)
    test = single_queries.replace_labels(parts["test"], parts["test"].labels > 0)
    is_vali = np.random.default_rng(1).integers(5, size=data.n_rows) == 0
    return single_queries.Case("RCV1, E311", data.select(~is_vali), data.select(is_vali), test)


def _beside(one: report.Table) -> Table:
    """Our rows of the largest set next to the paper's."""
    ours = {row["method"].split(", gap")[0]: row for row in rows(one)}
    cells = []
    for learner, (name, area, took) in PAPER.items():
        row = ours.get(name)
        if row is None:
            cells.append([learner, "-", "-", area, "-", took])
            continue
        seconds = number(row["ms, index and steps"]) / 1e3
        cells.append([learner, name, row["test AUC"], area, f"{seconds:.4g}", took])
    return table(
        f"{one.title.split(':')[0]} next to E311 of RCV1",
        ["learner of the paper", "here", "ROC area", "paper", "train, s", "paper, s"],
        cells,
        [
            "ROC area of stochastic methods after 100,000 steps; their seconds until the test area "
            "is within 0.002 of the exact one's, index included; the paper's after 100,000 steps",
            "SVM-struct-rank is not run: its time grows with the number of pairs",
        ],
    )


def _whole(case: single_queries.Case) -> Table:
    """As many steps as in the paper, with the parameter that suits most sets."""
    cells = []
    for learner, (name, _, took) in PAPER.items():
        if name in STOCHASTIC:
            fit = partial(single_queries.one, case, name, 0.01, 100_000, 1)
            taken = report.seconds(fit, 3, time.process_time)
            cells.append([learner, f"{np.median(taken):.3f}", took])
    return table(
        f"{case.name}: processor time of the index and 100,000 steps",
        ["learner of the paper", "train, s", "paper, s"],
        cells,
        ["median of 3"],
    )


def _claims(tables: list[report.Table], whole: list[Table]) -> list[Claim]:
    by_set = {one.title.split(":")[0]: {r["method"]: r for r in rows(one)} for one in tables}
    large = list(by_set.values())[-1]
    exact = {
        name: max(number(r["test AUC"]) for m, r in by.items() if m.startswith("exact"))
        for name, by in by_set.items()
    }
    lost = {
        name: exact[name] - min(number(by[m]["test AUC"]) for m in STOCHASTIC)
        for name, by in by_set.items()
    }
    slowest = max(number(large[m]["ms, index and steps"]) for m in STOCHASTIC) / 1e3
    took = f"at most {slowest:.3g} s on the largest set, until the area is reached"
    for one in whole:
        slowest = max(float(row[1]) for row in one.rows)
        took += f"; {slowest:.3g} s for 100,000 steps"
    ratios, others = (
        [number(by[m]["exact hinge / this"]) for by in part for m in STOCHASTIC]
        for part in ([large], list(by_set.values())[:-1])
    )
    return [
        Claim(
            "Stochastic methods have the ROC area of RankSVM (0.9990 to 0.9992 against 0.9992).",
            all(value <= 0.003 for value in lost.values()),
            "after 100,000 steps the worst of the three loses "
            + ", ".join(f"{value:+.4f} ({name})" for name, value in lost.items())
            + "; less than 0 is better.",
        ),
        Claim(
            "They take at most 0.22 s whatever the number of rows.",
            slowest <= 0.22 if whole else None,  # the paper's are those of 100,000 steps
            f"{took}.",
        ),
        Claim(
            "They are more than 150 times as fast as the RankSVM that is made for ROC area.",
            min(ratios) >= 150,
            f"{min(ratios):,.0f} to {max(ratios):,.0f} times as fast as linrank's exact hinge on "
            f"the largest set; {min(others):.2g} to {max(others):.2g} times on the small ones, "
            "which exact training finishes in milliseconds.",
        ),
    ]


def _differences(found: Measurement) -> list[str]:
    return [
        "RCV1 with its topics cannot be had. A generated set of its size stands in for it "
        "(804,414 bags of words, 47,236 features, 0.2% positive, the paper's split); its best "
        "area is 0.99, not 0.9992. Official files are used where they are found.",
        "Four real sets are measured as well; they are smaller, and exact training takes "
        "milliseconds there.",
        "λ is chosen on validation rows, the paper's by cross-validation.",
        "Exact RankSVM is linrank's, certified to a relative gap of 1e-3, not SVM-perf.",
    ]
