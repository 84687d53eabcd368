"""RankSVM with duals of low rank against RankSVM on LETOR folds: Tables 2 to 5 of Xu et al. (2019).

Test MAP and NDCG@1, 3, 5 of five folds, parameters by MAP on the validation part; differences to
RankSVM with the hinge are paired by query. The grids are described in the notes of the tables: the
baselines have at least as many candidates as the methods that are to beat them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import product

import numpy as np

import problems
from linrank.data.dataset import Dataset
from linrank.judging.significance import correct_p_values
from linrank.lowrank.factorized import train_factorized
from linrank.lowrank.regularized import train_regularized
from linrank.ranksvm.train import train
from report import Table
from reproduce.xu.protocol import (
    MEASURES,
    SETS,
    Array,
    Candidate,
    Outcome,
    Parts,
    Row,
    choose,
    compare_rows,
)

SEEDS = (1, 2, 3)
# Of C times the number of pairs of the training part, so that a value means the same on every
# fold; below the first, all duals are at their bound and the direction of w no longer changes.
FINE = tuple(10.0 ** np.arange(-1.5, 6.01, 1 / 6))
COARSE = tuple(10.0 ** np.arange(-1.0, 6.1, 0.5))
TOL_EXACT, TOL_FACTORIZED, TOL_REGULARIZED = 1e-4, 1e-5, 1e-6  # relative; of f the fall an epoch
RANKS = (1, 5, 20)
SPARSE = tuple(10.0 ** np.arange(0.0, 6.1, 1.0))
GAMMAS = (1.0, 10.0, 100.0)
RIDGES = (0.05, 0.5)  # λ·C of the regularized method
WIDE = 100  # features beyond which it has a shorter grid
HINGE, SQUARED = "RankSVM, hinge", "RankSVM, squared hinge"
BOX, BALL, REGULARIZED = "Factorized, box", "Factorized, ball", "Regularized"

# MAP, NDCG@1, 3, 5 of Tables 2 to 5, with their deviations where given.
PAPER = {
    "OHSUMED": {
        "RSVM": ("0.4427", "0.5289", "0.4553", "0.4392"),
        "Fac-RSVM": ("0.4518 ± 0.057", "0.5671 ± 0.100", "0.5113 ± 0.087", "0.4889 ± 0.045"),
        "Reg-RSVM": ("0.4480 ± 0.063", "0.5553 ± 0.063", "0.4946 ± 0.089", "0.4723 ± 0.072"),
    },
    "MQ2007": {
        "RSVM": ("0.4442", "0.3821", "0.3796", "0.3890"),
        "Fac-RSVM": ("0.4645 ± 0.017", "0.4098 ± 0.028", "0.4103 ± 0.036", "0.4179 ± 0.029"),
        "Reg-RSVM": ("0.4500 ± 0.015", "0.3728 ± 0.023", "0.3871 ± 0.026", "0.3947 ± 0.024"),
    },
    "MQ2008": {
        "RSVM": ("0.4713", "0.3686", "0.4277", "0.4730"),
        "Fac-RSVM": ("0.4723 ± 0.043", "0.3690 ± 0.050", "0.4361 ± 0.046", "0.4764 ± 0.048"),
        "Reg-RSVM": ("0.4755 ± 0.039", "0.3690 ± 0.034", "0.4315 ± 0.034", "0.4719 ± 0.060"),
    },
    "MSLR sample": {
        "Fac-RSVM, whole WEB10K": (
            *("0.5875 ± 0.003", "0.2891 ± 0.006", "0.3205 ± 0.003", "0.3219 ± 0.003"),
        ),
        "Reg-RSVM, whole WEB10K": (
            *("0.5819 ± 0.002", "0.2651 ± 0.005", "0.2932 ± 0.004", "0.3051 ± 0.006"),
        ),
    },
}


def measure(quick: bool, sets: Mapping[str, Callable[[], Sequence[Parts]]] = SETS) -> list[Table]:
    """Two tables of each set: its means, and the differences to the baseline."""
    tables = []
    for name, make in sets.items():
        try:
            folds = make()[: 1 if quick else 5]
        except problems.Absent as absent:
            tables.append(Table(f"{name} skipped", ["reason"], [[str(absent)]]))
            continue
        rows = [_row(method, folds, quick) for method in METHODS]
        tables += [means(name, rows), tests(name, rows)]
    return tables


def _row(method: str, folds: Sequence[Parts], quick: bool) -> Row:
    """All folds and seeds of a method, as many at once as there are cores."""
    candidates, seeds = METHODS[method]
    seeds = seeds[:1] if quick else seeds

    def outcome(job: tuple[int, Parts]) -> Outcome:
        seed, parts = job
        return choose(parts, _thin(candidates(parts["train"], seed), quick))

    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        found = list(pool.map(outcome, product(seeds, folds)))
    n_folds = len(folds)
    return Row(method, [found[k : k + n_folds] for k in range(0, len(found), n_folds)])


def _thin(candidates: Iterator[Candidate], quick: bool) -> Iterator[Candidate]:
    """The first three in a quick run."""
    for k, candidate in enumerate(candidates):
        if quick and k == 3:
            return
        yield candidate


# ---- the methods ------------------------------------------------------------


def exact(loss: str) -> Callable[[Dataset, int], Iterator[Candidate]]:
    """RankSVM for all C, each from the optimum of the one before; no seed plays a part."""

    def candidates(data: Dataset, _: int) -> Iterator[Candidate]:
        w: Array | None = None
        for value in FINE:
            C = value / data.queries.n_pairs
            w = train(data, C=C, loss=loss, tol=TOL_EXACT, w0=w, n_jobs=1).w
            yield f"10^{np.log10(value):.1f}", w

    return candidates


def factorized(constraint: str) -> Callable[[Dataset, int], Iterator[Candidate]]:
    """All C and K, each from its own random start: the problem is not convex."""

    def candidates(data: Dataset, seed: int) -> Iterator[Candidate]:
        for value in COARSE:
            for n_components in RANKS:
                found = train_factorized(
                    data,
                    n_components=n_components,
                    C=value / data.queries.n_pairs,
                    constraint=constraint,
                    tol=TOL_FACTORIZED,
                    seed=seed,
                    n_jobs=1,
                )
                yield f"10^{np.log10(value):.1f}, K {n_components}", found.w

    return candidates


def regularized(data: Dataset, _: int) -> Iterator[Candidate]:
    """All C, γ and λ·C. With α = C·a the penalty is C(γ‖·‖_* + λC‖a - ·‖²), hence the unit."""
    short = data.n_features > WIDE  # there a fit takes seconds
    for value in SPARSE[1:5] if short else SPARSE:
        C = value / data.queries.n_pairs
        for gamma in GAMMAS:
            for ridge in RIDGES[1:] if short else RIDGES:
                found = train_regularized(
                    data,
                    gamma=gamma,
                    lam=ridge / C,
                    C=C,
                    tol=TOL_REGULARIZED,
                    n_jobs=1,
                )
                yield f"10^{np.log10(value):.1f}, γ {gamma:g}, λC {ridge:g}", found.w


METHODS: dict[str, tuple[Callable[[Dataset, int], Iterator[Candidate]], Sequence[int]]] = {
    HINGE: (exact("hinge"), SEEDS[:1]),
    SQUARED: (exact("squared_hinge"), SEEDS[:1]),
    BOX: (factorized("box"), SEEDS),
    BALL: (factorized("ball"), SEEDS),
    REGULARIZED: (regularized, SEEDS[:1]),
}


# ---- the tables -------------------------------------------------------------


def means(name: str, rows: Sequence[Row]) -> Table:
    n_folds = len(rows[0].runs[0])
    table = Table(
        f"{name}: test measures, mean ± deviation of {n_folds} folds, parameters by validation MAP",
        ["method", "candidates", "validation MAP", *MEASURES, "MAP by seed", "chosen"],
        notes=[
            "LETOR's rules: gain 2^y - 1, discount 1/log2(max(2, i)), relevant from label 1 on, a "
            "query without relevant rows counts 0, equal scores in the order of the file",
            f"chosen: C·pairs in each fold, of the first seed; RankSVM {len(FINE)} values from "
            f"{FINE[0]:.2g} to {FINE[-1]:.2g}; factorized {len(COARSE)} from {COARSE[0]:.2g} to "
            f"{COARSE[-1]:.2g}, K {_join(RANKS)}, run to convergence; regularized {len(SPARSE)} "
            f"from {SPARSE[0]:.2g} to {SPARSE[-1]:.2g}, γ {_join(GAMMAS)}, λC {_join(RIDGES)}",
            f"stopped at a relative gap of {TOL_EXACT:g} (RankSVM) and {TOL_REGULARIZED:g} "
            f"(regularized), and when an epoch lowers f by less than {TOL_FACTORIZED:g} of it",
            "more candidates find more luck on the validation queries: the baselines have no fewer "
            "than the others, and validation MAP is shown next to the test MAP",
            f"factorized: mean of the seeds {_join(SEEDS)}, each with separate parameters",
            f"regularized, beyond {WIDE} features (MSLR): only C·pairs {SPARSE[1]:g} to "
            f"{SPARSE[4]:g} and λC {RIDGES[1]:g}, for time",
            "the grids of C are as first written, but for the values above 10^5, which were "
            "added for the factorized and regularized methods; γ first ended at 50, which four of "
            "five folds of OHSUMED chose: the test measures of those trials had been seen",
        ],
    )
    for row in rows:
        spread = row.by_fold.std(axis=0, ddof=1) if n_folds > 1 else np.zeros(len(MEASURES))
        maps = row.by_run[:, 0]
        table.add(
            row.method,
            row.runs[0][0].n_candidates,
            f"{row.validation:.4f}",
            *(f"{m:.4f} ± {s:.3f}" for m, s in zip(row.by_fold.mean(axis=0), spread, strict=True)),
            f"{maps.min():.4f}–{maps.max():.4f}" if len(maps) > 1 else "",
            row.chosen,
        )
    for method, values in PAPER[name].items():
        table.add(f"{method}, paper", "", "", *values, "", "")
    return table


def tests(name: str, rows: Sequence[Row]) -> Table:
    base, others = rows[0], rows[1:]
    found = [one for row in others for one in compare_rows(row, base)]
    table = Table(
        f"{name}: {len(base.by_query)} test queries, difference to {base.method}",
        ["method", "measure", "difference", "95% interval", "p, t test", "p, Holm"],
        notes=[
            "paired by query over all folds; interval: bootstrap of the mean; t test two-sided; "
            f"Holm: corrected for the {len(found)} comparisons of this table",
        ],
    )
    for one, p in zip(found, correct_p_values([one.p for one in found]), strict=True):
        table.add(
            one.method,
            one.measure,
            f"{one.mean:+.4f}",
            f"{one.low:+.4f} .. {one.high:+.4f}",
            f"{one.p:.2g}",
            f"{p:.2g}",
        )
    return table


def _join(values: Sequence[float]) -> str:
    return ", ".join(f"{value:g}" for value in values)
