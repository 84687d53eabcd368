"""``linrank train``: data in, model out, and how far from the optimum it is, for every method."""

from __future__ import annotations

import argparse
import math
from argparse import Namespace
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from linrank.cli import files, options, places
from linrank.cli.console import Clock, Console, Result
from linrank.cli.main import NOT_CONVERGED, OK, UsageError
from linrank.cli.options import STANDARD
from linrank.methods.base import METHODS, Method, Task, Trained
from linrank.methods.parameters import PairLosses, options_of
from linrank.system.resources import count, seconds

if TYPE_CHECKING:
    from linrank.data.preferences import Preferences
    from linrank.models.linear import Model

METRICS = ("ndcg@10", "map", "pairwise_accuracy")

DESCRIPTION = """\
Learn from DATA, write the model, and say how far from the optimum it is.

DATA is SVMlight text (label qid:Q 1:v 2:v ... # docid), plain or compressed; a
table (Parquet, Arrow, CSV, TSV) with columns by name; or a store, the folder of
`linrank convert`. - is standard input, or output for -o.

{methods}
"""

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
  {places.PATIENCE}""",
    "stream": """
  --stream            read DATA batch by batch and never hold all of it; --passes times
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
    options.add_output(parser, "MODEL", "model file to write, or -", last=True)
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


def run(args: Namespace, console: Console) -> Result:
    """Read, train, write, measure."""
    if getattr(args, "stream", False):
        from linrank.cli.stream import run_stream

        return run_stream(args, console)
    method = METHODS[args.method]
    parameters = options.parameters_of(args, method.parameters)
    is_store = places.is_store(method, args)
    _check(args, is_store)
    options.load(method.train)  # before the clock starts: the time of reading is not that of NumPy
    opened, clock = places.open_data(args, console, is_store)
    data, preferences = _with_preferences(opened, args, console)
    parameters.callback = console.progress(state_line)
    files.resolve_bounds(parameters, data)
    summary = {**files.data_summary(data, args), "preferences": preferences and len(preferences)}
    if getattr(args, "dask", None) is not None:
        summary["dask"] = args.dask
        trained = places.train_on_cluster(method, data, parameters, args, console)
    else:
        trained = method.train(Task(data, parameters, preferences=preferences))
    training = {"method": method.name}
    training |= describe_trained(trained, method, parameters, clock.end("train"), console)
    if "coef_bounds" in options_of(method.parameters):
        training["bounds"] = args.coef_bounds and args.coef_bounds.text
    return finish(trained.model, trained.is_done, summary, training, args, console, clock)


# ---- before the training ------------------------------------------------------------------------


def _check(args: Namespace, is_store: bool) -> None:
    """Fail on what can be known to be wrong now rather than after training."""
    preferences = getattr(args, "preferences", None)
    if preferences is None and options.given(args, ("no_labels", "across_queries")):
        raise UsageError("--no-labels and --across-queries need --preferences FILE")
    if preferences is not None and is_store:
        raise UsageError("--preferences compare any two rows, which passes over a store cannot")
    places.check_place(args, is_store, GROUPS)
    check_trained_files(args, preferences)


def check_trained_files(args: Namespace, *others: str | None) -> None:
    """Fail on a misspelt file or metric; ``others`` are read beside data and validation data."""
    if args.metrics and args.valid is None:
        raise UsageError("-m needs --valid FILE, the data to measure on")
    if args.valid is not None:
        files.check_metrics(args.metrics, args.convention)
    files.check_files([*others, args.data, args.valid], args.output)


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
    return (files.without_labels(data) if args.no_labels else data), preferences


# ---- during and after it ------------------------------------------------------------------------


def state_line(state: dict[str, Any]) -> str:
    """What is shown of an iteration, or of a milestone of a descent."""
    is_descent = "n_steps" in state
    line = f"step {state['n_steps']:>11,}" if is_descent else f"iteration {state['n_iter']:3d}"
    if math.isfinite(state["objective"]):
        line += f"  objective {state['objective']:.8g}"
    if math.isfinite(state.get("gap", math.nan)):
        line += f"  gap {state['gap']:.2e}"
    return f"{line}  {state['seconds']:.2f} s"


def describe_trained(
    trained: Trained, method: Method, parameters: Any, took: float, console: Console
) -> dict[str, Any]:
    """Say what is to be known of a training, and warn if it is not done; the facts of it."""
    console.clear()
    description = method.describe(trained, parameters)
    for place, (label, text) in enumerate(description.lines):
        console.say(label, text if place else f"{text} in {seconds(took)}")
    warn_unless_done(trained, method, console)
    return description.facts


def warn_unless_done(trained: Trained, method: Method, console: Console) -> None:
    """Warn of a solver that stopped before its tolerance."""
    if not trained.is_done:
        doubt = trained.doubt or f"did not converge: {trained.result.message}"
        console.warn(options.in_flags(doubt, method.parameters))


def finish(
    model: Model,
    is_done: bool,
    data: dict[str, Any],
    training: dict[str, Any],
    args: Namespace,
    console: Console,
    clock: Clock,
) -> Result:
    """Save a model, measure it on the file of ``--valid``, if there is one; the report on all.

    In this order: a fault in the validation data must not cost the model.
    """
    files.write_model(model, args.output, console)
    report = {"data": data, "training": training, "valid": None, "model": args.output}
    if args.valid is not None:
        metrics = _validate(model, args, console)
        convention = {"convention": args.convention, "metrics": metrics}
        report["valid"] = {"source": args.valid, **convention}
    report["seconds"] = clock.seconds()
    return Result(report, status=OK if is_done else NOT_CONVERGED)


def _validate(model: Model, args: Namespace, console: Console) -> dict[str, Any]:
    """The measures of a model on the file of ``--valid``, which its file then tells."""
    from dataclasses import replace

    from linrank.metrics import evaluate

    data, scores = files.read_and_score(model, args.valid, args, console)
    metrics = files.metrics_for(data, args.metrics, METRICS, args.convention, console)
    how = {"metrics": metrics, "convention": args.convention, "n_jobs": args.jobs}
    result = evaluate(data.labels, scores, qid=data.qid, **how)
    console.say("valid", "   ".join(f"{name} {value:.4f}" for name, value in result.items()))
    if args.output != STANDARD:
        # For `linrank inspect` to show.
        measures = {f"{files.VALIDATED}{name}": value for name, value in result.items()}
        replace(model, training={**model.training, **measures}).save(args.output)
    means: dict[str, Any] = result.to_dict()["means"]
    return means
