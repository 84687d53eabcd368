"""``python -m linrank.demo [FOLDER]``: the whole path on a small sample, in a few seconds.

Makes the queries of a small shop, trains linear RankSVMs over a range of C, chooses one on folds of
the training queries, and compares it on the test queries with what anyone could do without
learning, and with curves in place of straight lines. Writes the model and a report, one HTML page,
to the folder.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from linrank.data.missing import Filling
from linrank.data.synthetic import make_sample
from linrank.methods.base import Task, method_named
from linrank.metrics import evaluate
from linrank.reports import Report, report
from linrank.system.tables import Column, Table

if TYPE_CHECKING:
    from linrank.data.dataset import Dataset
    from linrank.metrics import Evaluation
    from linrank.reports.material import Training

METRICS = ("ndcg@1", "ndcg@5", "ndcg@10", "map", "mrr", "pairwise_accuracy")
CHOSEN_BY = "ndcg@10"
GRID = tuple(4.0**k for k in range(-6, 3))


@dataclass(frozen=True)
class Demo:
    """What the demo found: everything that is printed and reported."""

    parts: dict[str, Dataset]
    page: Report
    test: dict[str, Evaluation]  # by ranker
    seconds: float

    @property
    def training(self) -> Training:
        """The path, the choice and the model of it."""
        training = self.page.material.training
        assert training is not None  # as there are training data
        return training


def run(seed: int = 0) -> Demo:
    """Make the sample, train, choose and compare; the seed is of the data and the random order."""
    start = time.perf_counter()
    sample = make_sample(random_state=seed)
    filling = Filling.fit("mean", sample["train"].rows)
    train, test = (filling.dataset(sample[name]) for name in ("train", "test"))
    page = report(
        test,
        train=train,
        Cs=GRID,
        scoring=CHOSEN_BY,
        metrics=METRICS,
        title="How well does RankSVM rank the products of a small shop?",
    )
    method = method_named("ranksvm")
    parameters = method.parameters(curves="quantile", missing="mean")
    curves = method.train(Task(train, parameters)).model
    random_order, curved = (
        evaluate(test.y, scores, qid=test.qid, metrics=METRICS)
        for scores in (np.random.default_rng(seed).random(test.n_rows), curves.predict(test))
    )
    learned_last = dict(reversed(page.material.evaluations.items()))
    results = {"random order": random_order, **learned_last, "RankSVM, curves": curved}
    return Demo({"train": train, "test": test}, page, results, time.perf_counter() - start)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the demo, print its tables, write its folder."""
    parser = argparse.ArgumentParser(prog="python -m linrank.demo", description=__doc__)
    parser.add_argument("folder", nargs="?", default="linrank-demo", metavar="FOLDER")
    folder = parser.parse_args(argv).folder
    if os.path.exists(folder) and not os.path.isdir(folder):
        parser.error(f"{folder} is a file; name a folder for the model and the report")
    os.makedirs(folder, exist_ok=True)
    print("making the queries of a small shop, training, judging ...", file=sys.stderr)
    demo = run()
    print("\n\n".join([*_texts(demo), f"made, trained and measured in {demo.seconds:.1f} s"]))
    print("wrote " + "\n      ".join(_write(demo, folder)))
    return 0


def _texts(demo: Demo) -> list[str]:
    """What was learned from, the path, the test, and the certificate of the choice."""
    path, tuning = demo.training.tuning.path, demo.training.tuning
    sizes = (
        f"{name} {d.n_rows:,} {d.queries.n_queries:,} {d.n_features} {d.queries.n_pairs:,}".split()
        for name, d in demo.parts.items()
    )
    columns = path.Cs, path.objectives, path.gaps / path.objectives, path.norms, tuning.mean_scores
    models = (
        [f"{C:g}", f"{objective:.6g}", f"{gap:.1e}", f"{norm:.4g}", f"{score:.4f}", chosen]
        for k, (C, objective, gap, norm, score) in enumerate(zip(*columns, strict=True))
        for chosen in ["<- chosen" if k == tuning.chosen else ""]
    )
    measures = ([name, *(f"{of[m]:.4f}" for m in METRICS)] for name, of in demo.test.items())
    objective, gap = demo.training.result.value, demo.training.result.gap
    return [
        _table(["data", "rows", "queries", "features", "pairs"], sizes),
        _table(["C", "objective", "gap/objective", "norm", f"{CHOSEN_BY} in folds", ""], models),
        _table(["test queries", *METRICS], measures),
        f"certificate for C = {demo.training.tuning.C:g}\n"
        f"objective    F(w) = {objective:.10g}\n"
        f"lower bound  D    = {objective - gap:.10g}   (the dual: no w does better)\n"
        f"gap      F(w) - D = {gap:.3g}, that is {gap / objective:.1e} of F",
    ]


def _table(headings: list[str], rows: Iterable[list[str]]) -> str:
    first, *others = headings
    return Table([Column(first, "left"), *map(Column, others)], list(rows)).to_text()


def _write(demo: Demo, folder: str) -> list[str]:
    """The files of the folder, by path."""
    if importlib.util.find_spec("matplotlib") is None:
        print("\nno pictures: they need Matplotlib, pip install matplotlib", file=sys.stderr)
    model, page = (os.path.join(folder, name) for name in ("model.json", "report.html"))
    demo.training.model.save(model)
    demo.page.save(page)
    return [model, page]


if __name__ == "__main__":
    raise SystemExit(main())
