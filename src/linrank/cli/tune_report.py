"""What ``linrank tune`` has to say: a summary, a table, JSON, a picture."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from linrank.cli.console import Console, count, seconds
from linrank.cli.streams import write_standard
from linrank.cli.train_report import data_summary, options_summary, say_optimum
from linrank.system.durable import replacing

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from linrank.data.dataset import Dataset
    from linrank.ranksvm.path import PathResult
    from linrank.search.tuning import Tuning

    Array = NDArray[Any]


def say_result(
    tuning: Tuning, path: PathResult, args: argparse.Namespace, took: float, console: Console
) -> None:
    """The summary on standard error."""
    console.clear()
    k, n_folds = tuning.chosen, len(tuning.scores)
    n_models = len(tuning.Cs) * (n_folds + 1)
    where = measured_on(args, n_folds)
    console.say("trained", f"{count(n_models, 'model')} in {seconds(took)}")
    console.say(
        "chosen", f"C = {tuning.Cs[k]:g}: {args.scoring} {tuning.mean_scores[k]:.4f} {where}"
    )
    say_optimum(path.objectives[k], path.gaps[k], console)
    if tuning.edge is not None:
        console.say("note", tuning.edge)
    if not path.converged[k]:
        console.warn(f"not converged: {path.messages[k]}")


def measured_on(args: argparse.Namespace, n_folds: int) -> str:
    """What models were measured on, in words."""
    return f"on {args.valid}" if args.valid is not None else f"over {n_folds} folds"


def table(tuning: Tuning, path: PathResult, scoring: str) -> str:
    """A line per C; the chosen one has a star."""
    folds = tuning.scores.std(axis=0, ddof=1) if len(tuning.scores) > 1 else None
    width, means = max(len(scoring), 9), tuning.mean_scores
    lines = [f"  {'C':>12}  {scoring:>{width}}  {'deviation':>9}  {'norm':>9}  {'objective':>13}"]
    for k, C in enumerate(tuning.Cs.tolist()):
        spread = "" if folds is None else f"{folds[k]:.4f}"
        lines.append(
            f"{'*' if k == tuning.chosen else ' '} {C:>12.6g}  {means[k]:>{width}.4f}  "
            f"{spread:>9}  {path.norms[k]:>9.4g}  {path.objectives[k]:>13.8g}"
        )
    return "\n".join(lines) + "\n"


def path_summary(
    tuning: Tuning, path: PathResult, args: argparse.Namespace, known: Mapping[str, Any]
) -> dict[str, Any]:
    """What the JSON report says of a path; ``known`` is what the model knows."""
    return {
        **options_summary(args, known),
        "n_pairs": known["n_pairs"],
        "C": float(tuning.Cs[tuning.chosen]),
        "path": {
            "C": tuning.Cs.tolist(),
            "mean_scores": tuning.mean_scores.tolist(),
            "scores": tuning.scores.tolist(),
            "objectives": path.objectives.tolist(),
            "duality_gaps": path.gaps.tolist(),
            "norms": path.norms.tolist(),
            "iterations": path.n_iter.tolist(),
            "hessian_products": path.n_hvp.tolist(),
            "converged": path.converged.tolist(),
        },
    }


def figure() -> Any:
    """A figure without a window; an error that names the extra where Matplotlib is missing."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError("--plot needs Matplotlib: pip install linrank[plot]") from None
    return Figure(figsize=(6.5, 9), layout="constrained")


def save(canvas: Any, path: str) -> None:
    """Write a figure in the format of the extension."""
    with replacing(path) as file:
        canvas.savefig(file, format=os.path.splitext(path)[1][1:].lower(), dpi=150)


def plot(
    path: PathResult,
    scores: Array,
    chosen: float,
    args: argparse.Namespace,
) -> None:
    """Draw the path to the file of ``--plot``."""
    from linrank import plots

    canvas = figure()
    plots.path(
        path,
        scores=scores,
        chosen=chosen,
        metric=args.scoring,
        axes=list(canvas.subplots(4, 1, sharex=True)),
    )
    save(canvas, args.plot)


def print_json(
    args: argparse.Namespace,
    data: Dataset,
    tuning: Tuning,
    details: dict[str, Any],
    times: tuple[float, float, float],
) -> None:
    """One object on standard output; ``details`` are of the solver: options, choice, grid."""
    import json

    from linrank import __version__

    start, read, tuned = times
    report = {
        "command": "tune",
        "linrank": __version__,
        "data": data_summary(data, args),
        "valid": args.valid,
        "folds": len(tuning.scores),
        "scoring": args.scoring,
        "convention": args.convention,
        "selection": args.selection,
        "score": float(tuning.mean_scores[tuning.chosen]),
        "at_edge": tuning.edge is not None,
        **details,
        "seconds": {
            "read": read - start,
            "tune": tuned - read,
            "total": time.perf_counter() - start,
        },
        "model": args.output,
    }
    write_standard(json.dumps(report, ensure_ascii=False) + "\n")
