"""``python -m linrank.demo [FOLDER]``: the whole path on made-up data, in a few seconds.

Generates queries, splits them into training, validation and test, trains linear RankSVMs over a
range of C, chooses one on the validation queries, and compares it on the test queries with what
anyone could do without learning. Writes the model and a report, one HTML page, to the folder.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from linrank.data.synthetic import make_ranking
from linrank.metrics import evaluate
from linrank.reports.build import Report, report
from linrank.system.tables import Column, Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from linrank.data.dataset import Dataset
    from linrank.metrics import Evaluation
    from linrank.reports.fits import Training

METRICS = ("ndcg@1", "ndcg@5", "ndcg@10", "map", "mrr", "pairwise_accuracy")
CHOSEN_BY = "ndcg@10"
GRID = tuple(10.0**k for k in range(-6, 2))
SEED = 20
SHARES = {"training": 0.6, "validation": 0.2, "test": 0.2}


@dataclass(frozen=True)
class Demo:
    """What the demo found: everything that is printed and reported."""

    parts: dict[str, Dataset]
    page: Report
    training: Training
    test: dict[str, Evaluation]  # by ranker
    seconds: float


def run(n_queries: int = 1000, n_features: int = 30, seed: int = SEED) -> Demo:
    """Generate, split, train, choose and compare.

    Parameters
    ----------
    n_queries : int, default=1000
        Queries in all; 60 % train, 20 % choose C, 20 % test.
    n_features : int, default=30
        Features of each row.
    seed : int
        Of the data, the split and the random ranker.
    """
    start = time.perf_counter()
    data = make_ranking(n_queries=n_queries, n_features=n_features, random_state=seed)
    train, valid, test = _split(data, np.random.default_rng(seed))
    page = report(
        test,
        train=train,
        valid=valid,
        Cs=GRID,
        scoring=CHOSEN_BY,
        metrics=METRICS,
        title="linrank demo: a ranker learnt from generated queries",
    )
    training = page.material.training
    if training is None:
        raise RuntimeError("a report with training data trains")
    random = np.random.default_rng(seed).random(test.n_rows)
    learnt_last = dict(reversed(page.material.evaluations.items()))
    results = {
        "random order": evaluate(test.y, random, qid=test.qid, metrics=METRICS),
        **learnt_last,
    }
    parts = {"train": train, "valid": valid, "test": test}
    return Demo(parts, page, training, results, time.perf_counter() - start)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the demo, print its tables, write its folder."""
    parser = argparse.ArgumentParser(prog="python -m linrank.demo", description=__doc__)
    parser.add_argument("folder", nargs="?", default="linrank-demo", metavar="FOLDER")
    folder = parser.parse_args(argv).folder
    if os.path.exists(folder) and not os.path.isdir(folder):
        parser.error(f"{folder} is a file; name a folder for the model and the report")
    os.makedirs(folder, exist_ok=True)
    demo = run()
    texts = [_data_text(demo), _path_text(demo), _test_text(demo), _certificate_text(demo)]
    print("\n\n".join([*texts, f"generated, trained and measured in {demo.seconds:.1f} s"]))
    print("wrote " + "\n      ".join(_write(demo, folder)))
    return 0


def _split(data: Dataset, rng: np.random.Generator) -> list[Dataset]:
    """Whole queries to each part: rows of one query are never on both sides."""
    queries = data.queries
    part = rng.choice(3, size=queries.n_queries, p=list(SHARES.values()))
    part_of_row = queries.scatter(np.repeat(part, np.diff(queries.offsets)))
    return [
        replace(data.select(np.flatnonzero(part_of_row == k)), source=f"generated {name} queries")
        for k, name in enumerate(SHARES)
    ]


def _data_text(demo: Demo) -> str:
    rows = [
        [
            name,
            *(f"{n:,}" for n in (d.n_rows, d.queries.n_queries, d.n_features, d.queries.n_pairs)),
        ]
        for name, d in demo.parts.items()
    ]
    return _table(["data", "rows", "queries", "features", "pairs"], rows)


def _path_text(demo: Demo) -> str:
    path, tuning = demo.training.path, demo.training.tuning
    rows = [
        [
            f"{C:g}",
            f"{path.objectives[k]:.6g}",
            f"{path.gaps[k] / path.objectives[k]:.1e}",
            f"{path.norms[k]:.4g}",
            f"{tuning.mean_scores[k]:.4f}",
            "<- chosen" if k == tuning.chosen else "",
        ]
        for k, C in enumerate(path.Cs.tolist())
    ]
    return _table(["C", "objective", "gap/objective", "norm", f"valid {CHOSEN_BY}", ""], rows)


def _test_text(demo: Demo) -> str:
    rows = [[name, *(f"{of[m]:.4f}" for m in METRICS)] for name, of in demo.test.items()]
    return _table(["test queries", *METRICS], rows)


def _table(headings: list[str], rows: list[list[str]]) -> str:
    first, *others = headings
    return Table([Column(first, "left"), *map(Column, others)], rows).to_text()


def _certificate_text(demo: Demo) -> str:
    objective, gap = demo.training.result.value, demo.training.result.gap
    return (
        f"certificate for C = {demo.training.C:g}\n"
        f"objective    F(w) = {objective:.10g}\n"
        f"lower bound  D    = {objective - gap:.10g}   (the dual: no w does better)\n"
        f"gap      F(w) - D = {gap:.3g}, that is {gap / objective:.1e} of F"
    )


def _write(demo: Demo, folder: str) -> list[str]:
    """The files of the folder, by path."""
    if importlib.util.find_spec("matplotlib") is None:
        print("\nno pictures: they need Matplotlib, pip install linrank[plot]", file=sys.stderr)
    model, page = (os.path.join(folder, name) for name in ("model.json", "report.html"))
    demo.training.model.save(model)
    demo.page.save(page)
    return [model, page]


if __name__ == "__main__":
    raise SystemExit(main())
