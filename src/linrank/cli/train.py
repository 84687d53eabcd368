"""``linrank train``: data in, model out, and how far from the optimum it is, for every method."""

from __future__ import annotations

import argparse
import math
import os
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from linrank.cli import options, reading, streams
from linrank.cli.console import Console
from linrank.cli.main import NOT_CONVERGED, OK
from linrank.methods.base import METHODS, Description, Method, Task, Trained
from linrank.methods.parameters import PairLosses, options_of
from linrank.system.resources import count, seconds

if TYPE_CHECKING:
    from linrank.data.preferences import Preferences
    from linrank.metrics import Evaluation
    from linrank.models.linear import Model

METRICS = ("ndcg@10", "map", "pairwise_accuracy")

DESCRIPTION = """\
Learn from DATA, write the model, and say how far from the optimum it is.

DATA is SVMlight text (label qid:Q 1:v 2:v ... # docid), plain or compressed; a
table (Parquet, Arrow, CSV, TSV) with columns by name; or a store, the folder of
`linrank convert`. - is standard input, or output for -o.

{methods}
"""

PATIENCE = "--patience SECONDS:positive  fail when there is no worker for so long (default: 60)"

# Options of what only some methods can do: learn from listed pairs, or from other places than
# memory.
GROUPS = {
    "preferences": """
  --preferences FILE  also learn from pairs of rows from 0 on: 'winner loser [weight]' per line
  --no-labels         learn from the preferences only
  --across-queries    preferences may compare two queries""",
    "cluster": f"""
  --dask ADDRESS      train on a store by a Dask cluster: tcp://host:8786, or local:N processes
  --checkpoint FILE   save the weights of each iteration there
  --resume            go on from the weights in --checkpoint
  {PATIENCE}""",
    "stream": """
  --stream            read DATA batch by batch and never hold all of it; --passes times
  --memory@memory_limit SIZE:size_in_bytes
  --steps-per-row R:positive  --stream: pairs drawn a row (default: 4)
  --checkpoint FILE   --stream: save the state there; if FILE exists, go on from it with the same
                      result
  --checkpoint-every SECONDS:natural  how often (default: 60; 0: behind every batch)""",
}


def configure(parser: options.Parser, arguments: Sequence[str]) -> None:
    """Declare the options of the method that the arguments name, and those of all."""
    asked = options.method_asked(arguments, parser)
    method = METHODS[asked or next(iter(METHODS))]
    parser.usage = "linrank train DATA -o MODEL [--method NAME] [options]"
    shown = METHODS.values() if asked is None else [method]
    parser.description = DESCRIPTION.format(methods=options.list_methods(shown, "train"))
    parser.add_argument("data", metavar="DATA", help=argparse.SUPPRESS)
    options.add_output(parser, "MODEL", "model file to write, or -")
    parser.add_argument(
        "--method", metavar="NAME", default=method.name, help=f"(default: {next(iter(METHODS))})"
    )
    options.add_parameters(parser, method.parameters, f"options of {method.name}")
    owners: dict[str, str] = {}
    for title, own in GROUPS.items():
        names = [other.name for other in METHODS.values() if _offers(other, title)]
        owners |= dict.fromkeys(options.flags_in(own), options.belongs_to(names))
        if _offers(method, title):
            options.declare(parser, title + own)
    options.declare(parser, "  --valid FILE  also measure the model on this data file")
    options.add_metrics(parser, default=", ".join(METRICS))
    options.add_reading(parser, missing=False)
    options.add_reporting(parser)
    options.add_owners(parser, lambda other: other.parameters, owners)


def _offers(method: Method, group: str) -> bool:
    """Whether a method has a group of options; listed pairs need a loss of a pair."""
    return group in method.places or (
        group == "preferences" and issubclass(method.parameters, PairLosses)
    )


def run(args: Namespace, parser: ArgumentParser) -> int:
    """Read, train, write, measure."""
    method, args.model = METHODS[args.method], options.output_of(args, parser, "MODEL", None)
    if getattr(args, "stream", False):
        from linrank.cli.stream import run_stream

        return run_stream(args, parser)
    parameters = options.parameters_of(args, parser, method.parameters)
    is_cluster = getattr(args, "dask", None) is not None
    is_store = is_cluster or ("store" in method.places and parameters.memory_limit is not None)
    _check(args, parser, is_store)

    # Loaded before the clock starts: the time of reading is not that of NumPy.
    import linrank.io.svmlight  # noqa: F401

    options.load(method.train)
    start = time.perf_counter()
    console = Console(quiet=args.quiet, verbose=args.verbose)
    data: Any = (
        reading.open_store(args) if is_store else reading.read_data(args.data, args, console)
    )
    read = time.perf_counter()
    took = "" if is_store else f" in {seconds(read - start)}"
    console.say("opened" if is_store else "read", f"{reading.describe_data(data)}{took}")
    data, preferences = _with_preferences(data, args, console)
    parameters.callback = console.progress(state_line)
    reading.resolve_bounds(parameters, data)
    if is_cluster:
        from linrank.cli.cluster import train_on_cluster

        trained = train_on_cluster(method, data, parameters, args, console)
    else:
        trained = method.train(Task(data, parameters, preferences=preferences))
    done = time.perf_counter()
    told = tell_trained(trained, method, parameters, done - read, console)
    evaluation = write_and_validate(trained.model, args, console)
    if args.json:
        summary = {
            **reading.data_summary(data, args),
            "preferences": preferences and len(preferences),
        }
        if is_cluster:
            summary["dask"] = args.dask
        training = {"method": method.name, **told.facts}
        if "coef_bounds" in options_of(method.parameters):
            training["bounds"] = args.coef_bounds and args.coef_bounds.text
        print_json(args, summary, training, evaluation, (start, read, done))
    return OK if trained.is_done else NOT_CONVERGED


# ---- before the training ------------------------------------------------------------------------


def _check(args: Namespace, parser: ArgumentParser, is_store: bool) -> None:
    """Fail on what can be known to be wrong now rather than after training."""
    preferences = getattr(args, "preferences", None)
    if preferences is None and options.given(args, ("no_labels", "across_queries")):
        parser.error("--no-labels and --across-queries need --preferences FILE")
    if preferences is not None:
        if preferences == streams.STANDARD in (args.data, args.valid):
            parser.error("--preferences and other data cannot both be standard input")
        if is_store:
            parser.error("--preferences compare any two rows, which passes over a store cannot")
        streams.check_inputs(preferences)
    if getattr(args, "dask", None) is not None:
        from linrank.cli.cluster import check_cluster

        check_cluster(args, parser)
    else:
        needing = options.flags_in(GROUPS["cluster"] + GROUPS["stream"])
        names = [name[2:].replace("-", "_") for name in needing]
        for name in options.given(args, names):
            needed = "--dask" if hasattr(args, "dask") else "--stream"
            parser.error(f"{options.flag(name)} needs {needed}")
    if is_store and not os.path.isdir(args.data):
        streams.check_readable(args.data)
        parser.error(
            f"{args.data} is no store, which passes within a limit and clusters read; write one "
            f"first: linrank convert {args.data} -o STORE"
        )
    check_files(args, parser, preferences)


def check_files(args: Namespace, parser: ArgumentParser, *others: str | None) -> None:
    """Fail on a misspelt file or metric.

    ``others`` are files that are read beside the data and the validation data.
    """
    if args.json and args.model == streams.STANDARD:
        parser.error("--json and a model on standard output (-) exclude each other")
    if args.data == args.valid == streams.STANDARD:
        parser.error("DATA and --valid cannot both be standard input")
    if args.metrics and args.valid is None:
        parser.error("-m needs --valid FILE, the data to measure on")
    streams.check_output(args.model, args.data, args.valid, *others)
    streams.check_inputs(args.valid)
    if args.valid is not None:
        reading.check_metrics(args.metrics, args.convention)


def _with_preferences(
    data: Any, args: Namespace, console: Console
) -> tuple[Any, Preferences | None]:
    """The data, without labels if they are not to count, and the preferences beside them."""
    if getattr(args, "preferences", None) is None:
        return data, None
    from linrank.io.sidecars import load_preferences

    preferences = load_preferences(args.preferences, n_rows=data.n_rows)
    if data.qid is not None and not args.across_queries:
        preferences.check_queries(data.queries)
    console.say("read", f"{preferences.source}: {count(len(preferences), 'preference')}")
    return (reading.without_labels(data) if args.no_labels else data), preferences


# ---- during and after it ------------------------------------------------------------------------


def tell_trained(
    trained: Trained, method: Method, parameters: Any, took: float, console: Console
) -> Description:
    """What is to be known of a training, and a warning if it is not done."""
    console.clear()
    told = method.describe(trained, parameters)
    for place, (label, text) in enumerate(told.lines):
        console.say(label, text if place else f"{text} in {seconds(took)}")
    if not trained.is_done:
        doubt = trained.doubt or f"did not converge: {trained.result.message}"
        console.warn(options.in_flags(doubt, method.parameters))
    return told


def state_line(state: dict[str, Any]) -> str:
    """What is shown of an iteration, or of a milestone of a descent."""
    is_descent = "n_steps" in state
    told = f"step {state['n_steps']:>11,}" if is_descent else f"iteration {state['n_iter']:3d}"
    if math.isfinite(state["objective"]):
        told += f"  objective {state['objective']:.8g}"
    if math.isfinite(state.get("gap", math.nan)):
        told += f"  gap {state['gap']:.2e}"
    return f"{told}  {state['seconds']:.2f} s"


def write_and_validate(model: Model, args: Namespace, console: Console) -> Evaluation | None:
    """Save a model; its measures on the file of ``--valid``, if there is one, and with it.

    In this order: a fault in the validation data must not cost the model.
    """
    streams.write_model(model, args.model, console)
    if args.valid is None:
        return None
    from dataclasses import replace

    from linrank.metrics import evaluate

    data, scores = reading.read_and_score(model, args.valid, args, console)
    result = evaluate(
        data.labels,
        scores,
        qid=data.qid,
        metrics=reading.metrics_for(data, args.metrics, METRICS, args.convention, console),
        convention=args.convention,
        n_jobs=args.jobs,
    )
    console.say("valid", "   ".join(f"{name} {value:.4f}" for name, value in result.items()))
    if args.model != streams.STANDARD:
        # For `linrank inspect` to tell.
        measures = {f"{streams.VALIDATED}{name}": value for name, value in result.items()}
        replace(model, training={**model.training, **measures}).save(args.model)
    return result


def print_json(
    args: Namespace,
    data: dict[str, Any],
    training: dict[str, Any],
    evaluation: Evaluation | None,
    times: tuple[float, float, float],
) -> None:
    """One object on standard output."""
    start, read, trained = times
    report = {
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
    streams.write_standard(streams.json_report("train", report))
