"""What all ways of training share on the command line: files that must be right, and the end."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from linrank.cli.models import VALIDATED, write_model
from linrank.cli.reading import (
    check_metrics,
    metrics_for,
    read_and_score,
    read_data,
    read_preferences,
)
from linrank.cli.streams import STANDARD, check_apart, check_readable, check_writable

if TYPE_CHECKING:
    from linrank.cli.console import Console
    from linrank.data.dataset import Dataset
    from linrank.data.preferences import Preferences
    from linrank.metrics import Evaluation
    from linrank.models.kernel import KernelModel
    from linrank.models.linear import LinearModel

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


def check_preferences(args: argparse.Namespace, parser: argparse.ArgumentParser) -> None:
    """The same for preferences beside the data."""
    if args.preferences == STANDARD in (args.data, args.valid):
        parser.error("--preferences and other data cannot both be standard input")
    if args.preferences is None and (args.no_labels or args.across_queries):
        parser.error("--no-labels and --across-queries need --preferences FILE")
    if args.preferences not in (None, STANDARD):
        check_readable(args.preferences)


def read_training(args: argparse.Namespace, console: Console) -> tuple[Dataset, Preferences | None]:
    """The data, without labels if they are not to count, and the preferences beside them."""
    data = read_data(args.data, args, console)
    if args.preferences is None:
        return data, None
    preferences = read_preferences(args.preferences, data, args.across_queries)
    return (_without_labels(data) if args.no_labels else data), preferences


def _without_labels(data: Dataset) -> Dataset:
    """The same rows, all of one label: no pair comes from the labels."""
    from dataclasses import replace

    import numpy as np

    return replace(data, labels=np.zeros(data.n_rows))


def write_and_validate(
    model: LinearModel | KernelModel, args: argparse.Namespace, console: Console
) -> Evaluation | None:
    """Save a model; its measures on the file of ``--valid``, if there is one, and with it.

    In this order: a fault in the validation data must not cost the model.
    """
    write_model(model, args.model, console)
    if args.valid is None:
        return None
    result = _validate(model, args, console)
    if args.model != STANDARD:
        _with_measures(model, result).save(args.model)
    return result


def _with_measures(
    model: LinearModel | KernelModel, result: Evaluation
) -> LinearModel | KernelModel:
    """The model with its measures on the validation data, for `linrank inspect` to tell."""
    from dataclasses import replace

    measures = {f"{VALIDATED}{name}": value for name, value in result.items()}
    return replace(model, training={**model.training, **measures})


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


def iteration(state: dict[str, Any]) -> str:
    """What is shown of an iteration of Newton's method."""
    return (
        f"iteration {state['n_iter']:3d}  objective {state['objective']:.8g}  "
        f"gap {state['gap']:.2e}  {state['seconds']:.2f} s"
    )
