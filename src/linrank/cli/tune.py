"""``linrank tune``: the parameters that rank unseen queries best, for every method with a grid."""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import os
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from linrank.cli import options, reading, streams
from linrank.cli.console import Console
from linrank.cli.main import NOT_CONVERGED, OK
from linrank.cli.train import PATIENCE
from linrank.methods.base import AUTO, METHODS, Method, Task
from linrank.options import N_FOLDS, WITH_GAMMA
from linrank.system.durable import replacing
from linrank.system.resources import count, seconds
from linrank.system.tables import Column, Table

if TYPE_CHECKING:
    from linrank.data.dataset import Dataset
    from linrank.search.folds import Fold

METRICS = ("ndcg@10", "pairwise_accuracy")  # the second where labels below 0 rule out the first
PICTURES = (".png", ".svg", ".pdf")
PATHS, GRIDS = ("ranksvm", "domination"), ("kernel",)  # what can be drawn of a search

CLUSTER = f"""
  --dask ADDRESS  search a store by a Dask cluster: tcp://host:8786, or local:N processes
  {PATIENCE}"""

DESCRIPTION = """\
Train a grid of models and take the one that ranks unseen queries best: on
--valid FILE, or on each of --folds parts of the queries of DATA in turn. The
table on standard output has the measure of every model. The model for -o is
trained on all of DATA, which is a file, a store, or - for standard input.

A GRID is LOW:HIGH, each value twice the one before, LOW:HIGH:FACTOR, or a list,
as in 0.01,0.1,1; a number may be a power, as in 2^-3.

{methods}
"""


def configure(parser: options.Parser, arguments: Sequence[str]) -> None:
    """Declare the options of the method that the arguments name, and those of all."""
    searched = {name: method for name, method in METHODS.items() if method.search is not None}
    asked = AUTO.name if "--auto" in arguments else options.method_asked(arguments, parser)
    if asked is not None and asked not in searched:
        parser.error(f"--method {asked} has no grid; tune takes {', '.join(searched)}")
    method = searched[asked or next(iter(searched))]
    parser.usage = "linrank tune DATA [-o MODEL] [--method NAME] [options]"
    shown = searched.values() if asked is None else [method]
    parser.description = DESCRIPTION.format(methods=options.list_methods(shown, "tune"))
    parser.add_argument("data", metavar="DATA", help=argparse.SUPPRESS)
    options.declare(parser, "  -o, --output MODEL  model file to write, or -")
    parser.add_argument(
        "--method", metavar="NAME", default=method.name, help=f"(default: {next(iter(searched))})"
    )
    parser.add_argument(
        "--auto", dest="method", action="store_const", const=AUTO.name, help="as --method auto"
    )
    parts = parser.add_mutually_exclusive_group()
    options.declare(parts, "  --valid FILE  measure on this data file")
    options.declare(parts, "  --folds N:folds  or on each of N folds of the queries (default: 5)")
    options.add_metrics(parser, default=METRICS[0], selects="alone")
    if method.name in (*PATHS, *GRIDS):
        options.declare(parser, "  --plot FILE  draw what was measured: .png, .svg or .pdf")
    assert method.search is not None
    options.add_parameters(parser, method.search, f"options of {method.name}")
    clustered = [other.name for other in searched.values() if "cluster" in other.places]
    if method.name in clustered:
        options.declare(parser, "cluster" + CLUSTER)
    options.add_reading(parser, missing=False)
    options.add_reporting(parser)
    owners = {"--plot": options.belongs_to((*PATHS, *GRIDS))}
    owners |= dict.fromkeys(options.flags_in(CLUSTER), options.belongs_to(clustered))
    options.add_owners(parser, lambda other: other.search, owners)


def run(args: Namespace, parser: ArgumentParser) -> int:
    """Read, train the grid on every fold, measure, choose, train on all data, write."""
    method, args.plot = METHODS[args.method], getattr(args, "plot", None)
    assert method.search is not None
    assert method.path is not None
    parameters = options.parameters_of(args, parser, method.search)
    is_limited = "store" in method.places and getattr(args, "memory_limit", None) is not None
    is_store = is_limited or getattr(args, "dask", None) is not None
    _check(args, parser, is_store)

    # Loaded before the clock starts: the time of reading is not that of NumPy.
    import linrank.io.svmlight  # noqa: F401

    options.load(method.path)
    start = time.perf_counter()
    console = Console(quiet=args.quiet, verbose=args.verbose)
    data: Any = (
        reading.open_store(args) if is_store else reading.read_data(args.data, args, console)
    )
    args.scoring = (args.metrics or METRICS)[0]
    if not is_store:
        args.scoring = reading.metrics_for(data, args.metrics, METRICS, args.convention, console)[0]
    parameters.scoring = args.scoring
    reading.resolve_bounds(parameters, data)
    with _place(method, data, parameters, args, console) as (where, folds):
        read = time.perf_counter()
        console.say("read", f"{reading.describe_data(data)} in {seconds(read - start)}")
        progress = console.progress(lambda state: _line(state, len(folds)))
        judging = {"convention": args.convention, "progress": progress}
        found = method.path(Task(where, parameters), folds, **judging)
    tuned = time.perf_counter()
    told = method.describe(found.trained, _chosen_parameters(method, parameters, found))
    _say(found, told.lines[1:], args, tuned - read, console)
    if args.output is not None:
        streams.write_model(found.trained.model, args.output, console)
    if args.plot is not None:
        _plot(found, args)
        console.say("plotted", args.plot)
    if args.json:
        _print_json(args, data, found, told.facts, (start, read, tuned))
    elif args.output != streams.STANDARD:
        streams.show_standard(_table(found, args.scoring))
    return OK if found.trained.is_done else NOT_CONVERGED


# ---- before the search --------------------------------------------------------------------------


def _check(args: Namespace, parser: ArgumentParser, is_store: bool) -> None:
    """Fail on what can be known to be wrong now rather than after the search."""
    if args.json and args.output == streams.STANDARD:
        parser.error("--json and a model on standard output (-) exclude each other")
    if args.data == args.valid == streams.STANDARD:
        parser.error("DATA and --valid cannot both be standard input")
    if args.selection == "one_se" and args.valid is not None:
        parser.error("--selection one_se needs the spread over folds; leave out --valid")
    if getattr(args, "dask", None) is not None:
        from linrank.cli.cluster import check_cluster

        check_cluster(args, parser)
    elif getattr(args, "patience", None) is not None:
        parser.error("--patience needs --dask")
    if is_store and not os.path.isdir(args.data):
        streams.check_readable(args.data)
        parser.error(
            f"--memory-limit and --dask: {args.data} is no store; write one first: "
            f"linrank convert {args.data} -o STORE"
        )
    if is_store and args.valid is not None:
        parser.error("--memory-limit and --dask deal a store into --folds; leave out --valid")
    if args.plot == streams.STANDARD:
        parser.error("--plot needs the name of a file")
    if args.plot is not None and not args.plot.lower().endswith(PICTURES):
        parser.error(f"--plot {args.plot}: the name must end in {', '.join(PICTURES)}")
    for output in (args.output, args.plot):
        streams.check_output(output, args.data, args.valid)
    if args.plot is not None and find_spec("matplotlib") is None:
        raise ImportError("--plot needs Matplotlib: pip install matplotlib")
    streams.check_inputs(args.valid)
    reading.check_metrics(args.metrics, args.convention, selects=True)
    if args.metrics and len(args.metrics) > 1:
        others = ",".join(args.metrics[1:])
        parser.error(
            f"-m: tune chooses by one metric, {args.metrics[0]}; measure the model by {others} "
            f"with linrank evaluate -m {others}"
        )


@contextmanager
def _place(
    method: Method, data: Any, parameters: Any, args: Namespace, console: Console
) -> Iterator[tuple[Any, Any]]:
    """What the method is to look at, wherever it lies, and the folds of it."""
    n_folds = args.folds or N_FOLDS
    if getattr(args, "dask", None) is not None:
        from linrank.cli.cluster import cluster_parts
        from linrank.parts.validation import folds_of

        with cluster_parts(method, data, parameters, args, console, keep=True) as place:
            yield place, folds_of(n_folds, place)
    elif hasattr(data, "n_chunks"):
        from linrank.parts.passes import StoreParts
        from linrank.parts.validation import folds_of
        from linrank.system.resources import resolve

        parts = StoreParts(data, args.memory_limit, resolve(args.jobs))
        yield parts, folds_of(n_folds, parts)
    elif args.valid is None:
        from linrank.search.folds import deal

        yield data, deal(data, n_folds)
    else:
        yield data, [_validation(data, args, console)]


def _validation(data: Dataset, args: Namespace, console: Console) -> Fold:
    """The data of ``--valid`` to measure models of all rows on."""
    from linrank.search.folds import Fold

    # Features are counted as in the training data, whatever this file happens to lack.
    how: dict[str, Any] = {"known": data.raw_feature_names, "filling": data.filling}
    how |= reading.counted_from(data.index_base, args)
    valid = reading.read_data(args.valid, args, console, **how)
    reading.check_qids(data, valid)
    if valid.n_features > data.n_features:
        console.warn(
            f"{valid.source} has features that {data.source} has not: {valid.n_features:,} against "
            f"{data.n_features:,}; they count nothing"
        )
    return Fold(None, valid)


# ---- after it -----------------------------------------------------------------------------------


def _chosen_parameters(method: Method, parameters: Any, found: Any) -> Any:
    """The parameters of one model: those of the search, and the chosen ones."""
    names = {field.name for field in dataclasses.fields(method.parameters)}
    shared = [f.name for f in dataclasses.fields(parameters) if f.name in names]
    values = {name: getattr(parameters, name) for name in shared}
    # A kind of model is no parameter: the method that chooses among kinds describes it by itself.
    chosen = {name: value for name, value in found.best_params.items() if name in names}
    return method.parameters(**{**values, **chosen})


def _line(state: dict[str, Any], n_folds: int) -> str:
    """What is shown of a model."""
    told = f"{state['n_done']} of {state['n_total']} models  fold {state['fold'] + 1} of {n_folds}"
    for name, value in state.items():
        if name not in ("n_done", "n_total", "fold", "objective", "gap", "n_nonzero", "score"):
            told += f"  {name} {_value(value)}"
    told += f"  objective {state['objective']:.8g}" if "objective" in state else ""
    told += f"  gap {state['gap']:.2e}" if "gap" in state else ""
    return told + (f"  {count(state['n_nonzero'], 'weight')}" if "n_nonzero" in state else "")


def _value(value: Any) -> str:
    return value if isinstance(value, str) else f"{value:.6g}"


def _say(
    found: Any, lines: Sequence[tuple[str, str]], args: Namespace, took: float, console: Console
) -> None:
    """The summary on standard error; ``lines`` are of the chosen model."""
    console.clear()
    n_on_all = 1 if found.path is None else len(found.mean_scores)
    n_models = count(found.scores.size + n_on_all, "model")
    console.say("trained", f"{n_models} by {args.method} in {seconds(took)}")
    place = ", ".join(f"{name} = {_value(value)}" for name, value in _axes_of(found).items())
    where = f"on {args.valid}" if args.valid is not None else f"over {len(found.scores)} folds"
    console.say("chosen", f"{place}: {args.scoring} {found.score:.4f} {where}")
    for label, text in lines:
        console.say(label, text)
    for told in found.edges:
        console.say("note", told)
    if found.open is not None:
        console.warn(options.in_flags(found.open, METHODS[args.method].parameters))
    if not found.trained.is_done:
        doubt = found.trained.doubt or f"did not converge: {found.trained.result.message}"
        console.warn(options.in_flags(doubt, METHODS[args.method].parameters))


def _axes_of(found: Any) -> dict[str, Any]:
    """The chosen value of each axis; that of γ says nothing where the kernel has none."""
    kernel = getattr(found.trained.model, "kernel", None)
    has_gamma = kernel is not None and kernel.name in WITH_GAMMA
    return {
        name: value for name, value in found.best_params.items() if name != "gamma" or has_gamma
    }


def _table(found: Any, scoring: str) -> str:
    """A line per model; the chosen one has a star."""
    axes, path = _axes_of(found), found.path
    spread = found.scores.std(axis=0, ddof=1) if len(found.scores) > 1 else None
    chosen = found.chosen if isinstance(found.chosen, tuple) else (found.chosen,)
    rows = []
    for place in itertools.product(*map(range, found.mean_scores.shape)):
        values = {name: found.grid[name][k] for name, k in zip(found.grid, place, strict=True)}
        row = {"": "*" if place == chosen else "", **{name: _value(values[name]) for name in axes}}
        if path is not None and path.parameter != "C":
            row["weights"] = str(path.n_nonzero[place[0]])
        row[scoring] = f"{found.mean_scores[place]:.4f}"
        row["deviation"] = "" if spread is None else f"{spread[place]:.4f}"
        if path is not None:
            row["norm"] = f"{path.norms[place[0]]:.4g}"
            row["objective"] = f"{path.objectives[place[0]]:.8g}"
        rows.append(row)
    cells = [list(row.values()) for row in rows]
    return Table([Column(name) for name in rows[0]], cells).to_text() + "\n"


def _print_json(
    args: Namespace, data: Any, found: Any, facts: dict[str, Any], times: tuple[float, float, float]
) -> None:
    """One object on standard output; ``facts`` are of the chosen model."""
    start, read, tuned = times
    if "coef_bounds" in args:
        facts = {**facts, "bounds": args.coef_bounds and args.coef_bounds.text}
    report = {
        "method": args.method,
        "data": reading.data_summary(data, args),
        "valid": args.valid,
        "folds": len(found.scores),
        "scoring": args.scoring,
        "convention": args.convention,
        "selection": found.selection,
        "score": found.score,
        "at_edge": bool(found.edges),
        **facts,
        **dict.fromkeys(found.grid),
        **_axes_of(found),
        **_grid(found),
        "seconds": {
            "read": read - start,
            "tune": tuned - read,
            "total": time.perf_counter() - start,
        },
        "model": args.output,
    }
    streams.write_standard(streams.json_report("tune", report))


def _grid(found: Any) -> dict[str, Any]:
    """What the JSON report says of the models: a path, or a grid."""
    axes = {name: list(found.grid[name]) for name in _axes_of(found)}
    measures = {"mean_scores": found.mean_scores.tolist(), "scores": found.scores.tolist()}
    path = found.path
    if path is None:
        told = {
            name: found.facts[key].tolist() for key, name in FACTS.items() if key in found.facts
        }
        return {"grid": {**{f"{name}s": axes.get(name) for name in found.grid}, **measures, **told}}
    return {
        "path": {
            **axes,
            **measures,
            "nonzero_weights": path.n_nonzero.tolist(),
            "objectives": path.objectives.tolist(),
            "duality_gaps": path.gaps.tolist(),
            "norms": path.norms.tolist(),
            "iterations": path.n_iter.tolist(),
            "hessian_products": path.n_hvp.tolist(),
            "converged": path.converged.tolist(),
        }
    }


FACTS = {"n_iter": "iterations", "converged": "converged"}


def _plot(found: Any, args: Namespace) -> None:
    """Draw the path, or the grid, to the file of ``--plot``."""
    from linrank.displays import GridDisplay, PathDisplay

    if args.method in PATHS:
        (chosen,) = found.best_params.values()
        figure = PathDisplay(found.path, found.scores, chosen, args.scoring).to_figure()
    else:
        grid = GridDisplay(found.Cs, found.gammas, found.mean_scores, found.chosen, args.scoring)
        figure = grid.to_figure(width=3.0 + 0.6 * len(found.Cs))
    with replacing(args.plot) as file:
        figure.savefig(file, format=os.path.splitext(args.plot)[1][1:].lower(), dpi=150)
