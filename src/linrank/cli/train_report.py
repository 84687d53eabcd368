"""What ``linrank train`` says of its data and of its result."""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from linrank.cli.console import Console
from linrank.system.words import bytes_text, count, seconds
from linrank.cli.streams import write_standard
from linrank.options import TRAINING

if TYPE_CHECKING:
    from linrank.data.dataset import Dataset
    from linrank.metrics import Evaluation
    from linrank.solvers.result import Result

LOOSE = 0.01  # a bound wider than this share of F needs a word: the truth may be far smaller


def describe_data(data: Dataset) -> str:
    """Source and size of a dataset in a line."""
    queries = data.queries
    return (
        f"{data.source}: {count(data.n_rows, 'row')}, "
        f"{count(queries.n_queries, 'query', 'queries')}{' (no qid)' if data.qid is None else ''}, "
        f"{count(queries.n_pairs, 'pair')}; "
        f"{data.rows.describe()}, {bytes_text(data.rows.nbytes)}"
    )


def say_result(result: Result, args: argparse.Namespace, took: float, console: Console) -> None:
    """Work, optimum and convergence on standard error."""
    console.clear()
    work = count(result.n_iter, "iteration")
    if result.n_hvp:
        work += f", {count(result.n_hvp, 'Hessian product')}"
    console.say(
        "trained",
        f"{args.solver}, {args.loss.replace('_', ' ')}, C = {args.C:g}: {work} in {seconds(took)}",
    )
    say_optimum(result.value, result.gap, console)
    n_nonzero = _n_nonzero(result)
    if n_nonzero < result.w.size:
        share = f"{100 * n_nonzero / result.w.size:.3g} %"
        console.say("weights", f"{n_nonzero:,} of {count(result.w.size, 'feature')} ({share})")
    if result.converged and relative_gap(result) > LOOSE:
        scale = "--scale standard or " if args.scale == "none" else ""
        console.say(
            "note",
            "this bound is proven but can be loose: it grows with the square of the gradient, "
            f"whatever the curvature; {scale}a smaller -e tightens it",
        )
    say_convergence(result, console)


def say_optimum(value: float, gap: float, console: Console) -> None:
    """The objective, and how far from its minimum it is at most."""
    share = gap / value if value > 0 else 0.0
    console.say(
        "optimum",
        f"objective {value:.10g}, at most {gap:.2g} ({share:.1e} of it) above the minimum: "
        "certified by the dual",
    )


def say_convergence(result: Result, console: Console) -> None:
    """Whether the tolerance was reached, or why not."""
    if result.converged:
        console.say("converged", result.message)
    else:
        console.warn(f"not converged: {result.message}")


def relative_gap(result: Result) -> float:
    """The certified bound on ``F - F*`` as a share of F."""
    return result.gap / result.value if result.value > 0 else 0.0


def _n_nonzero(result: Result) -> int:
    return int((result.w != 0.0).sum())


def data_summary(data: Dataset, args: argparse.Namespace) -> dict[str, Any]:
    """What the JSON reports say of the training data."""
    return {
        "source": args.data,
        "rows": data.n_rows,
        "queries": data.queries.n_queries,
        "features": data.n_features,
        "pairs": data.queries.n_pairs,
        "storage": data.rows.describe(),
        "bytes": int(data.rows.nbytes),
    }


def options_summary(args: argparse.Namespace, known: Mapping[str, Any]) -> dict[str, Any]:
    """What they say of the options of training, `C` left out; ``known`` is what the model knows."""
    options = {name: getattr(args, name) for name in (*TRAINING, "scale", "positive", "bounds")}
    return options | {name: known.get(name) for name in ("n_closest", "n_random", "seed")}


def training_summary(
    result: Result, args: argparse.Namespace, known: Mapping[str, Any]
) -> dict[str, Any]:
    """What the JSON report says of a run of an exact solver; ``known`` is what the model knows."""
    return {
        "C": args.C,
        **options_summary(args, known),
        "n_pairs": known["n_pairs"],
        "objective": result.value,
        "duality_gap": result.gap,
        "relative_gap": relative_gap(result),
        "gradient_norm": result.gradient_norm,
        "kkt_residual": result.kkt_residual,
        "nonzero_weights": _n_nonzero(result),
        "iterations": result.n_iter,
        "hessian_products": result.n_hvp,
        "converged": result.converged,
        "stopped": result.stopped,
        "message": result.message,
    }


def print_json(
    args: argparse.Namespace,
    data: dict[str, Any],
    training: dict[str, Any],
    evaluation: Evaluation | None,
    times: tuple[float, float, float],
) -> None:
    """One object on standard output."""
    import json

    from linrank import __version__

    start, read, trained = times
    report = {
        "command": "train",
        "linrank": __version__,
        "data": data,
        "training": training,
        "seconds": {
            "read": read - start,
            "train": trained - read,
            "total": time.perf_counter() - start,
        },
        "valid": None
        if evaluation is None
        else {
            "source": args.valid,
            "convention": args.convention,
            "metrics": evaluation.to_dict()["means"],
        },
        "model": args.model,
    }
    write_standard(json.dumps(report, ensure_ascii=False) + "\n")
