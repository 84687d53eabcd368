"""linrank train DATA -o MODEL [--method NAME] [options]

Learn from DATA, write the model, and say how far from the optimum it is.

DATA is SVMlight text (label qid:Q 1:v 2:v ... # docid), plain or compressed; a
table (Parquet, Arrow, CSV, TSV) with columns by name; or a store, the folder of
`linrank convert`. - is standard input, or output for -o.

{methods}
"""

from __future__ import annotations

import math
import os
import sys
from argparse import Namespace
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from linrank.choices import ALGORITHMS, SELECTED_PAIRS, STREAM_SAMPLINGS
from linrank.cli import files, options
from linrank.cli.console import Clock, Console, Result
from linrank.cli.main import NOT_CONVERGED, OK, UsageError
from linrank.cli.options import STANDARD
from linrank.methods.base import METHODS, Method, Task, Trained, options_of
from linrank.system.resources import count, seconds

if TYPE_CHECKING:
    from linrank.dask.partitions import Partitions
    from linrank.data import Dataset, Preferences
    from linrank.io.store.store import Store
    from linrank.models.linear import Model

OUTPUT = "  -o, --output MODEL:{}  model file to write, or -"
PATIENCE = "--patience SECONDS:positive  fail when there is no worker for so long (default: 60)"
_LOCAL = "local:"
METRICS = ("ndcg@10", "map", "pairwise_accuracy")
MEASURES = f"""
  --valid FILE  also measure the model on this data file{options.metric_options(", ".join(METRICS))}
"""
# Options of what only some methods can do: learn from listed pairs, or from other places than
# memory. All but the first of a group need it.
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
  --steps-per-row R:positive  --stream: pairs drawn per row (default: 4)
  --checkpoint FILE   --stream: save the state there; if FILE exists, go on from it with the same
                      result
  --checkpoint-every SECONDS:natural  how often (default: 60; 0: behind every batch)""",
}


CLUSTER_RULES = f"""
--dask excludes --memory-limit: the workers have their own
--dask excludes --missing: it is decided when a store is written
--dask needs --solver newton or auto
--dask excludes --pairs {" or ".join(SELECTED_PAIRS)}: they look at all rows at once
"""
RULES = f"""{CLUSTER_RULES}
--dask excludes --preferences: they compare any two rows
--resume needs --checkpoint FILE, the weights to go on from
-m needs --valid FILE, the data to measure on
--passes needs --memory-limit or --stream
--stream excludes -c: λ = 1/(C·pairs), and nobody knows the pairs of a stream; give --alpha
--stream excludes --n-steps: a stream ends with its data; give --steps-per-row
--stream excludes --record: the objective is over all pairs, which a stream does not have
--stream excludes -e: the objective is over all pairs, which a stream does not have
--stream excludes --missing: it is learned from all rows; a stream is text, which has none missing
--stream needs --scale auto or none: others are known at the end of the data; scale these beforehand
--stream excludes --dtype float64: rows are kept as float32
--stream needs --algorithm {" or ".join(ALGORITHMS[:-1])}: others depend on the number of steps
--stream needs --sampling {" or ".join(STREAM_SAMPLINGS)}: others need all data
--checkpoint-every needs --checkpoint FILE
"""


def configure(parser: options.Parser, arguments: Sequence[str]) -> None:
    """Declare the options of the method that the arguments name, and those of all."""
    parameters = {name: method.parameters for name, method in METHODS.items()}
    options.add_method(parser, arguments, parameters, GROUPS)
    options.declare(parser, OUTPUT.format("last=") + MEASURES)
    options.add_common(parser, missing=False)


def run(args: Namespace, console: Console) -> Result:
    """Read, train, write, measure."""
    if getattr(args, "stream", False):
        from linrank.cli.stream import run_stream

        return run_stream(args, console)
    method = METHODS[args.method]
    parameters = options.parameters_of(args, method.parameters)
    is_store = uses_store(method, args)
    preferences = getattr(args, "preferences", None)
    if preferences is not None and is_store:
        raise UsageError("--preferences compare any two rows, which passes over a store cannot")
    check_place(args, is_store)
    check_trained_files(args, preferences)
    options.load(method.train)  # before the clock starts: the time of reading is not that of NumPy
    opened, clock = open_data(args, console, is_store)
    data, pairs = _with_preferences(opened, args, console)
    result = learn(method, data, parameters, pairs, args, console, clock)
    result.facts["data"]["preferences"] = pairs and len(pairs)
    return result


def learn(
    method: Method,
    data: Dataset | Store,
    parameters: Any,
    pairs: Preferences | None,
    args: Namespace,
    console: Console,
    clock: Clock,
) -> Result:
    """Train, say what came of it, and `finish`."""
    parameters.callback = console.progress(state_line)
    files.resolve_bounds(parameters, data)
    summary = files.data_summary(data, args)
    if getattr(args, "dask", None) is not None:
        summary["dask"] = args.dask
        trained = _train_on_cluster(method, data, parameters, args, console)
    else:
        trained = method.train(Task(data, parameters, preferences=pairs))
    took = clock.end("train")
    console.clear()
    description = method.describe(trained, parameters)
    for place, (label, text) in enumerate(description.lines):
        console.say(label, text if place else f"{text} in {seconds(took)}")
    warn_unless_done(trained, method, console)
    training = {"method": method.name, **description.facts}
    if "coef_bounds" in options_of(method.parameters):
        training["bounds"] = args.coef_bounds and args.coef_bounds.text
    return finish(trained.model, trained.is_done, summary, training, args, console, clock)


# ---- before the training ------------------------------------------------------------------------


def check_trained_files(args: Namespace, *others: str | None) -> None:
    """Fail on a misspelled file or metric; ``others`` are read beside data and validation data."""
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


# ---- places of the data -------------------------------------------------------------------------


def uses_store(method: Method, args: Namespace) -> bool:
    """Whether the data are to stay where they are: a limit or a cluster goes through a store."""
    is_limited = "store" in method.places and getattr(args, "memory_limit", None) is not None
    return is_limited or getattr(args, "dask", None) is not None


def check_place(args: Namespace, is_store: bool) -> None:
    """Fail on options that do not go with the place of the data."""
    if getattr(args, "dask", None) is not None:
        _check_cluster(args)
    if is_store and not os.path.isdir(args.data):
        if args.data != STANDARD:
            os.stat(args.data)
        raise UsageError(
            f"--memory-limit and --dask: {args.data} is no store; write one first: "
            f"linrank convert {args.data} -o STORE"
        )


def _check_cluster(args: Namespace) -> None:
    n_workers = args.dask.removeprefix(_LOCAL)
    checkpoint = getattr(args, "checkpoint", None)
    if args.dask.startswith(_LOCAL) and not (n_workers.isdecimal() and int(n_workers) > 0):
        raise UsageError(f"--dask {args.dask}: give a number of workers, as in {_LOCAL}2")
    if checkpoint is not None:
        check_checkpoint(checkpoint, args)


def check_checkpoint(path: str, args: Namespace) -> None:
    """Fail on a checkpoint that is a standard stream or the file of the model."""
    if path == STANDARD:
        raise UsageError("--checkpoint needs a file, not a standard stream (-)")
    # Neither need be there yet; the last checkpoint and then the model would replace it.
    if os.path.realpath(path) == os.path.realpath(args.output):
        raise UsageError(f"MODEL and --checkpoint are one file, {args.output}; name two")


def open_data(
    args: Namespace, console: Console, is_store: bool, **options: Any
) -> tuple[Any, Clock]:
    """The data, or their store, and the clock that started with reading; say what they are."""
    import linrank.io.svmlight  # noqa: F401  (the time of reading is not that of NumPy)

    clock = Clock()
    data: Any = _open_store(args) if is_store else None
    data = files.read_data(args.data, args, console, **options) if data is None else data
    took = clock.end("read")
    label, since = ("opened", "") if is_store else ("read", f" in {seconds(took)}")
    console.say(label, f"{files.describe_data(data)}{since}")
    return data, clock


def _open_store(args: Namespace) -> Store:
    """The store at ``DATA``; options that say how to read text have no place here."""
    from linrank.io.store.store import Store

    store = Store(args.data)
    if args.index_base != "auto":
        raise ValueError("--index-base is for text; a store has its features numbered")
    if getattr(args, "missing", None) is not None:
        raise ValueError("--missing is decided when a store is written; leave it out")
    return store


# ---- during and after it ------------------------------------------------------------------------


def state_line(state: dict[str, Any]) -> str:
    """What is shown of an iteration, or of a milestone of a descent."""
    is_descent = "n_steps" in state
    line = f"step {state['n_steps']:>11,}" if is_descent else f"iteration {state['n_iter']:3d}"
    return f"{line}{progress_text(state)}  {state['seconds']:.2f} s"


def progress_text(state: dict[str, Any]) -> str:
    """Objective and gap, where they are known."""
    shown = {"objective": ".8g", "gap": ".2e"}
    known = {name: how for name, how in shown.items() if math.isfinite(state.get(name, math.nan))}
    return "".join(f"  {name} {state[name]:{how}}" for name, how in known.items())


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


# ---- clusters -----------------------------------------------------------------------------------


def _train_on_cluster(
    method: Method, store: Any, parameters: Any, args: Namespace, console: Console
) -> Trained:
    """Train as the method does, the rows staying with the workers."""
    from linrank.dask.checkpoints import on_cluster

    kept = {"checkpoint": args.checkpoint, "resume": args.resume}
    with cluster_parts(method, store, parameters, args, console, **kept) as place:
        trained = on_cluster(method).train(Task(place, parameters))
    if place.n_before:
        console.say("resumed", f"{args.checkpoint}: after {place.n_before} iterations")
    return trained


@contextmanager
def cluster_parts(
    method: Method, store: Store, parameters: Any, args: Namespace, console: Console, **kept: Any
) -> Iterator[Partitions]:
    """The chunks of a store as partitions of the cluster of ``--dask``; ``kept`` as they take it.

    What the method cannot do there is refused before a cluster starts. One that was started here
    is ended.
    """
    from linrank.dask.clients import cluster_at
    from linrank.dask.partitions import Partitions, partitions_of

    assert method.recipe is not None
    method.recipe(parameters, Partitions.where, None)
    patience = 60.0 if args.patience is None else args.patience
    # By a path that means the same to processes that run in other folders.
    path = os.path.abspath(store.path)
    try:
        with cluster_at(args.dask, quiet=not args.verbose) as client:
            threads = client.nthreads()
            workers = count(len(threads), "worker")
            size = f"{workers}, {count(sum(threads.values()), 'thread')}"
            console.say("cluster", f"{args.dask}: {size if threads else 'no worker yet'}")
            kept |= {"client": client, "patience": patience, "n_jobs": args.jobs}
            with partitions_of(path, **kept) as place:
                yield place
    except KeyboardInterrupt:
        # The command ends. Futures that the traceback still holds are released after their client
        # is closed, and would each say so.
        sys.unraisablehook = lambda _: None
        raise
    console.clear()
    repeated = f", {place.n_repeated} repeated" if place.n_repeated else ""
    console.say("cluster", f"{place.n_rounds} rounds of tasks{repeated}")
