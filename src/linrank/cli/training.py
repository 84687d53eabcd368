"""What all ways of training share on the command line: files that must be right, and the end."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from linrank.cli.measuring import check_metrics, metrics_for
from linrank.cli.models import write_model
from linrank.cli.reading import read_and_score
from linrank.cli.streams import STANDARD, check_apart, check_readable, check_writable

if TYPE_CHECKING:
    from linrank.cli.console import Console
    from linrank.kernel_model import KernelModel
    from linrank.metrics import Evaluation
    from linrank.model import LinearModel

__all__ = ["METRICS", "check_files", "write_and_validate"]

METRICS = ("ndcg@10", "map", "pairwise_accuracy")


def check_files(
    args: argparse.Namespace, parser: argparse.ArgumentParser, *others: str | None
) -> None:
    """Fail on a misspelt file or metric now rather than after training.

    ``others`` are files that are read beside the data and the validation data.
    """
    if args.json and args.model == STANDARD:
        parser.error("--json and a model on standard output (-) exclude each other")
    if args.data == args.valid == STANDARD:
        parser.error("DATA and --valid cannot both be standard input")
    if args.metrics and args.valid is None:
        parser.error("--scoring needs --valid FILE, the data to measure on")
    check_writable(args.model)
    check_apart(args.model, args.data, args.valid, *others)
    if args.valid is None:
        return
    if args.valid != STANDARD:
        check_readable(args.valid)
    check_metrics(args.metrics, args.convention)


def write_and_validate(
    model: LinearModel | KernelModel, args: argparse.Namespace, console: Console
) -> Evaluation | None:
    """Save a model; its measures on the file of ``--valid``, if there is one.

    In this order: a fault in the validation data must not cost the model.
    """
    write_model(model, args.model, console)
    return None if args.valid is None else _validate(model, args, console)


def _validate(
    model: LinearModel | KernelModel, args: argparse.Namespace, console: Console
) -> Evaluation:
    """The measures of a model on the file of ``--valid``, said and returned."""
    from linrank.metrics import evaluate

    data, scores = read_and_score(model, args.valid, args, console)
    result = evaluate(
        data.labels,
        scores,
        qid=data.qid,
        metrics=metrics_for(data, args.metrics, METRICS, args.convention, console),
        convention=args.convention,
        n_jobs=args.jobs,
    )
    console.say("valid", "   ".join(f"{name} {value:.4f}" for name, value in result.items()))
    return result
