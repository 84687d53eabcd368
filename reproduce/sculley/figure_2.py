"""Figure 2 of Sculley (2009): the RankSVM objective by the number of stochastic steps."""

from __future__ import annotations

import report
from reproduce.cells import number, rows
from reproduce.page import Claim, Measurement, Page, laid_out
from reproduce.sculley import convergence
from reproduce.sculley.sets import with_official

STEADY = ("pegasos", "sgd-svm")
HASTY = ("pa", "romma")
Rows = dict[str, dict[str, str]]  # by algorithm, then by column


def reproduce(quick: bool) -> Page:
    found = Measurement(convergence.measure(quick, folds=with_official(convergence.FOLDS)))
    return Page(
        title="Figure 2: convergence of the objective",
        claims=_claims(found.tables),
        tables=[laid_out(one) for one in found.tables],
        differences=[
            "The paper prints the figure without numbers to compare with ours.",
            "hp_2003 cannot be had; fold 1 of MQ2008 and of OHSUMED stand in for it, and it is "
            "measured where its files are. λ is that of the exact RankSVM with the best validation "
            "MAP, as in the paper; OHSUMED chooses 1, so strong that there is little to learn, and "
            "a second λ of 1e-4 makes it harder.",
            "Objectives are exact sums over all pairs, three seeds; F* is the exact optimum, which "
            "the paper did not have.",
            "Averaged variants and the hybrid are linrank's; the paper's last paragraph proposes "
            "the latter.",
        ],
        pictures=found.pictures,
    )


def _claims(tables: list[report.Table]) -> list[Claim]:
    """By setting (set and λ), from the tables of the training and of the test part."""
    parts: dict[str, dict[str, Rows]] = {"train": {}, "test": {}}
    for one in tables:
        title = one.title.split(":")[0]
        for part, settings in parts.items():
            if f", {part}," in title:
                settings[title.replace(f", {part}", "")] = {r["algorithm"]: r for r in rows(one)}
    train, test = parts["train"], parts["test"]
    decades = {name: [c for c in by["pa"] if c.startswith("10^")] for name, by in train.items()}
    near = {
        name: max(number(by[a].get("10^6", by[a][decades[name][-1]])) for a in STEADY)
        for name, by in train.items()
    }
    stays = {
        name: max(number(by[a]["median at the end"]) for a in STEADY) for name, by in test.items()
    }
    early = {a: [name for name, by in train.items() if _is_ahead(by, a, "10^2")] for a in HASTY}
    worse = {a: [name for name, by in train.items() if _grows(by[a])] for a in HASTY}
    n = len(train)
    return [
        Claim(
            "SGD-SVM and Pegasos converge to stable values on training data within 10^6 steps.",
            all(value <= 2 for value in near.values()),
            f"after 10^6 steps they are at most {max(near.values()):.2g}% above the optimum.",
        ),
        Claim(
            "Continued training of these does not degrade the test objective.",
            all(value <= 1 for value in stays.values()),
            f"at the end at most {max(stays.values()):.2g}% above that of the optimal weights.",
        ),
        Claim(
            "Passive-aggressive steps and ROMMA give much better values than the others at small "
            "numbers of steps.",
            all(len(names) == n for names in early.values()),
            f"after 100 steps pa is ahead of both in {len(early['pa'])} of {n} settings, ROMMA in "
            f"{len(early['romma'])}; not where λ is large.",
        ),
        Claim(
            "Both degrade with more training, ROMMA especially rapidly.",
            all(len(names) >= n - 1 for names in worse.values()),
            f"pa ends above its best value in {len(worse['pa'])} of {n} settings by more than a "
            f"fifth, ROMMA in {len(worse['romma'])}, there by orders of magnitude.",
        ),
        Claim(
            "It may be fruitful to combine both (left to future work).",
            all(
                number(by["hybrid"]["10^3"]) <= min(number(by[a]["10^3"]) for a in (*STEADY, "pa"))
                for name, by in train.items()
                if "λ = 1:" not in f"{name}:"
            ),
            "after 1,000 steps linrank's hybrid is below pegasos, sgd-svm and pa wherever λ is "
            "not 1.",
        ),
    ]


def _is_ahead(by: Rows, algorithm: str, column: str) -> bool:
    return number(by[algorithm][column]) < min(number(by[other][column]) for other in STEADY)


def _grows(row: dict[str, str]) -> bool:
    """Whether the excess at the end is more than a fifth above the best one."""
    return number(row["median at the end"]) > 1.2 * number(row["best median"])
