"""``python -m linrank.demo [FOLDER]``: the whole path on made-up data, in a few seconds.

Generates queries, splits them into training, validation and test, trains linear RankSVMs over a
range of C, chooses one on the validation queries, and compares it on the test queries with what
anyone could do without learning. Writes the model, the plots and a report to the folder.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from linrank.datasets import make_ranking
from linrank.estimators import RankSVM
from linrank.metrics import evaluate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from linrank.data.dataset import Dataset
    from linrank.metrics import Evaluation

__all__ = ["main", "run"]

METRICS = ("ndcg@1", "ndcg@5", "ndcg@10", "map", "mrr", "pairwise_accuracy")
CHOSEN_BY = "ndcg@10"
GRID = tuple(10.0**k for k in range(-6, 2))
SEED = 20


@dataclass(frozen=True)
class Demo:
    """What the demo found: everything that is printed, drawn and reported."""

    parts: dict[str, Dataset]
    path: list[tuple[RankSVM, float]]  # (fitted for one C, its validation metric)
    best: RankSVM
    test: dict[str, Evaluation]  # by ranker
    single: int  # the feature that ranks best alone
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
    parts = _split(data, np.random.default_rng(seed))
    path = [_fit(parts["train"], parts["valid"], C) for C in GRID]
    best = max(path, key=lambda fitted: fitted[1])[0]
    sign, single = _best_feature(parts["train"])
    test = parts["test"]
    rankers = {
        "random order": np.random.default_rng(seed).random(test.n_rows),
        f"best single feature (x[{single}])": sign * _column(test, single),
        f"RankSVM, C = {best.C:g}": best.decision_function(test.X),
    }
    results = {name: _measure(test, scores) for name, scores in rankers.items()}
    return Demo(parts, path, best, results, single, time.perf_counter() - start)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the demo, print its tables, write its folder."""
    parser = argparse.ArgumentParser(prog="python -m linrank.demo", description=__doc__)
    parser.add_argument("folder", nargs="?", default="linrank-demo", metavar="FOLDER")
    folder = parser.parse_args(argv).folder
    if os.path.exists(folder) and not os.path.isdir(folder):
        parser.error(f"{folder} is a file; name a folder for the plots and the report")
    os.makedirs(folder, exist_ok=True)
    demo = run()
    sections = [_data_text(demo), _path_text(demo), _test_text(demo), _certificate_text(demo)]
    print("\n\n".join(sections))
    written = _write(demo, sections, folder)
    print("\nwrote " + "\n      ".join(written))
    return 0


def _split(data: Dataset, rng: np.random.Generator) -> dict[str, Dataset]:
    """Whole queries to each part: rows of one query are never on both sides."""
    queries = data.queries
    part = rng.choice(3, size=queries.n_queries, p=(0.6, 0.2, 0.2))
    part_of_row = queries.scatter(np.repeat(part, np.diff(queries.offsets)))
    return {
        name: data.select(np.flatnonzero(part_of_row == k))
        for k, name in enumerate(("train", "valid", "test"))
    }


def _fit(train: Dataset, valid: Dataset, C: float) -> tuple[RankSVM, float]:
    ranker = RankSVM(C=C, scale="standard").fit(train.X, train.y, qid=train.qid)
    return ranker, _measure(valid, ranker.decision_function(valid.X))[CHOSEN_BY]


def _best_feature(train: Dataset) -> tuple[float, int]:
    """The sign and the number of the feature that alone ranks the training queries best."""
    candidates = [
        (_measure(train, sign * _column(train, j))[CHOSEN_BY], sign, j)
        for j in range(train.n_features)
        for sign in (1.0, -1.0)
    ]
    _, sign, j = max(candidates)
    return sign, j


def _column(data: Dataset, j: int) -> NDArray[np.float64]:
    return np.asarray(data.X[:, j], dtype=np.float64)


def _measure(data: Dataset, scores: NDArray[np.float64]) -> Evaluation:
    return evaluate(data.y, scores, qid=data.qid, metrics=METRICS)


def _data_text(demo: Demo) -> str:
    lines = [f"{'data':<8}{'rows':>8}{'queries':>9}{'features':>10}{'pairs':>10}"]
    for name, data in demo.parts.items():
        queries = data.queries
        lines.append(
            f"{name:<8}{data.n_rows:>8,}{queries.n_queries:>9,}{data.n_features:>10,}"
            f"{queries.n_pairs:>10,}"
        )
    return "\n".join(lines)


def _path_text(demo: Demo) -> str:
    head = f"{'C':<8}{'objective':>14}{'gap/objective':>15}{'iterations':>12}{'seconds':>9}"
    lines = [head + f"{'valid ' + CHOSEN_BY:>16}"]
    for ranker, value in demo.path:
        lines.append(
            f"{ranker.C:<8g}{ranker.objective_:>14.6g}"
            f"{ranker.duality_gap_ / ranker.objective_:>15.1e}{ranker.n_iter_:>12}"
            f"{ranker.history_['seconds'][-1]:>9.3f}{value:>16.4f}"
            f"{'  <- chosen' if ranker is demo.best else ''}"
        )
    return "\n".join(lines)


def _test_text(demo: Demo) -> str:
    width = 2 + max(map(len, demo.test))
    lines = [f"{'test queries':<{width}}" + "".join(f"  {name:>7}" for name in METRICS)]
    for name, result in demo.test.items():
        values = (f"  {result[metric]:>{max(7, len(metric))}.4f}" for metric in METRICS)
        lines.append(f"{name:<{width}}" + "".join(values))
    return "\n".join(lines)


def _certificate_text(demo: Demo) -> str:
    best = demo.best
    objective, gap = best.objective_, best.duality_gap_
    return (
        f"certificate for C = {best.C:g}\n"
        f"objective    F(w) = {objective:.10g}\n"
        f"lower bound  D    = {objective - gap:.10g}   (the dual: no w does better)\n"
        f"gap      F(w) - D = {gap:.3g}, that is {gap / objective:.1e} of F"
    )


def _write(demo: Demo, sections: list[str], folder: str) -> list[str]:
    """The files of the folder, by path."""
    model = os.path.join(folder, "model.json")
    demo.best.save(model)
    plots = _plots(demo, folder)
    report = os.path.join(folder, "report.html")
    with open(report, "w", encoding="utf-8") as file:
        file.write(_html(demo, sections, plots))
    return [model, *plots.values(), report]


def _plots(demo: Demo, folder: str) -> dict[str, str]:
    """Title and path of each picture; none without Matplotlib, which is said."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        print("\nno plots: they need Matplotlib, pip install linrank[plot]", file=sys.stderr)
        return {}
    from linrank import plots

    best, ranked = demo.best, list(demo.test.values())[-1]
    spread = np.std(demo.parts["train"].X, axis=0, dtype=np.float64)
    drawings: dict[str, tuple[str, Any]] = {
        "convergence": ("Convergence", lambda ax: plots.convergence(best.history_, ax=ax)),
        "weights": ("Weights", lambda ax: plots.weights(best.coef_, spread=spread, ax=ax)),
        "ndcg": (
            "NDCG@10 of the test queries",
            lambda ax: plots.query_histogram(ranked.per_query[CHOSEN_BY], metric=CHOSEN_BY, ax=ax),
        ),
    }
    written = {}
    for name, (title, draw) in drawings.items():
        figure = Figure(figsize=(7, 4.5), layout="constrained")
        draw(figure.subplots())
        written[title] = os.path.join(folder, f"{name}.png")
        figure.savefig(written[title], dpi=144)
    return written


def _html(demo: Demo, sections: list[str], plots: dict[str, str]) -> str:
    """One page without links to anything: tables as text, pictures inside."""
    import base64
    from html import escape

    pictures = []
    for title, path in plots.items():
        with open(path, "rb") as file:
            data = base64.b64encode(file.read()).decode("ascii")
        pictures.append(f'<img alt="{escape(title)}" src="data:image/png;base64,{data}">')
    texts = "\n".join(f"<pre>{escape(section)}</pre>" for section in sections)
    return PAGE.format(seconds=f"{demo.seconds:.1f}", texts=texts, pictures="\n".join(pictures))


PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>linrank demo</title>
<style>
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; }}
pre {{ background: #f5f5f5; padding: 1rem; overflow-x: auto; font-size: 14px; }}
img {{ max-width: 100%; display: block; margin: 1.5rem 0; }}
</style>
<h1>linrank demo</h1>
<p>Linear RankSVM on generated queries: generated, trained and measured in {seconds} s.</p>
{texts}
{pictures}
</html>
"""


if __name__ == "__main__":
    raise SystemExit(main())
