"""linrank tune DATA [-o MODEL] [--method NAME] [options]

Train a grid of models and take the one that ranks unseen queries best: on
--valid FILE, or on each of --folds parts of the queries of DATA in turn. The
table on standard output has the measure of every model. The model for -o is
trained on all of DATA, which is a file, a store, or - for standard input.

A GRID is LOW:HIGH, each value twice the one before, LOW:HIGH:FACTOR, or a list,
as in 0.01,0.1,1; a number may be a power, as in 2^-3.

{methods}
"""

from __future__ import annotations

import dataclasses
import itertools
from argparse import Namespace
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from linrank.choices import N_FOLDS, WITH_GAMMA
from linrank.cli import files, options, train
from linrank.cli.console import Console, Result
from linrank.cli.main import NOT_CONVERGED, OK, UsageError
from linrank.cli.options import STANDARD
from linrank.methods import AUTO
from linrank.methods.base import METHODS, Method, Task
from linrank.system import Column, Table, count, seconds

if TYPE_CHECKING:
    from linrank.data.dataset import Dataset
    from linrank.search.folds import Fold

RULES = f"""{train.CLUSTER_RULES}
--folds excludes --valid: models are measured on one of them
--valid excludes --selection one_se: that needs the spread over folds
"""
METRICS = ("ndcg@10", "pairwise_accuracy")  # the second where labels below 0 rule out the first

OPTIONS = f"""
{train.OUTPUT.format("output")}
  --valid FILE  measure on this data file
  --folds N:folds  or on each of N folds of the queries (default: 5)
{options.metric_options(METRICS[0], "alone")}
"""
CLUSTER = f"""
  --dask ADDRESS  search a store by a Dask cluster: tcp://host:8786, or local:N processes
  {train.PATIENCE}"""


def configure(parser: options.Parser, arguments: Sequence[str]) -> None:
    """Declare the options of the method that the arguments name, and those of all."""
    searches = {name: method.search for name, method in METHODS.items() if method.search}
    options.add_method(parser, arguments, searches, {"cluster": CLUSTER})
    parser.add_argument(
        "--auto", dest="method", action="store_const", const=AUTO.name, help="as --method auto"
    )
    options.declare(parser, OPTIONS)
    options.add_common(parser, missing=False)


def run(args: Namespace, console: Console) -> Result:
    """Read, train the grid on every fold, measure, choose, train on all data, write."""
    method = METHODS[args.method]
    assert method.search is not None
    assert method.path is not None
    parameters = options.parameters_of(args, method.search)
    is_store = train.uses_store(method, args)
    _check(args, is_store)
    options.load(method.path)  # before the clock starts: the time of reading is not that of NumPy

    data, clock = train.open_data(args, console, is_store)
    scoring = (args.metrics or METRICS)[0]
    if not is_store:
        scoring = files.metrics_for(data, args.metrics, METRICS, args.convention, console)[0]
    parameters.scoring = scoring
    files.resolve_bounds(parameters, data)
    with _place(method, data, parameters, args, console) as (where, folds):
        progress = console.progress(lambda state: _line(state, len(folds)))
        judging = {"convention": args.convention, "progress": progress}
        found = method.path(Task(where, parameters), folds, **judging)
    console.clear()
    n_on_all = 1 if found.path is None else len(found.mean_scores)
    n_models, took = count(found.scores.size + n_on_all, "model"), seconds(clock.end("tune"))
    console.say("trained", f"{n_models} by {args.method} in {took}")
    chosen = method.describe(found.trained, _parameters_of_choice(method, parameters, found))
    _say(found, chosen.lines[1:], scoring, args, console)
    if args.output is not None:
        files.write_model(found.trained.model, args.output, console)
    if "coef_bounds" in args:
        chosen.facts["bounds"] = args.coef_bounds and args.coef_bounds.text
    facts = {
        "method": args.method,
        "data": files.data_summary(data, args),
        "valid": args.valid,
        "folds": len(found.scores),
        "scoring": scoring,
        "convention": args.convention,
        "selection": found.selection,
        "score": found.score,
        "at_edge": bool(found.edges),
        **chosen.facts,
        **dict.fromkeys(found.grid),
        **_values_of_choice(found),
        **_measures(found),
        "seconds": clock.seconds(),
        "model": args.output,
    }
    table = "" if args.output == STANDARD else _table(found, scoring)
    return Result(facts, table, OK if found.trained.is_done else NOT_CONVERGED)


# ---- before the search --------------------------------------------------------------------------


def _check(args: Namespace, is_store: bool) -> None:
    """Fail on what can be known to be wrong now rather than after the search."""
    if is_store and args.valid is not None:
        raise UsageError("--memory-limit and --dask deal a store into --folds; leave out --valid")
    if args.metrics and len(args.metrics) > 1:
        first, *rest = args.metrics
        raise UsageError(
            f"-m: tune chooses by one metric, {first}; measure the model by {','.join(rest)} "
            f"with linrank evaluate -m {','.join(rest)}"
        )
    train.check_place(args, is_store)
    files.check_metrics(args.metrics, args.convention, selects=True)
    files.check_files([args.data, args.valid], args.output)


@contextmanager
def _place(
    method: Method, data: Any, parameters: Any, args: Namespace, console: Console
) -> Iterator[tuple[Any, Any]]:
    """What the method is to look at, wherever it lies, and the folds of it."""
    n_folds = args.folds or N_FOLDS
    if getattr(args, "dask", None) is not None:
        from linrank.parts.validation import folds_of

        with train.cluster_parts(method, data, parameters, args, console, keep=True) as place:
            yield place, folds_of(n_folds, place)
    elif hasattr(data, "n_chunks"):
        from linrank.parts import StoreParts, folds_of
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

    valid = files.read_data(args.valid, args, console, **files.like_data(data, args))
    files.check_qids(data, valid)
    if valid.n_features > data.n_features:
        console.warn(
            f"{valid.source} has features that {data.source} has not: {valid.n_features:,} against "
            f"{data.n_features:,}; they count nothing"
        )
    return Fold(None, valid)


# ---- during and after it ------------------------------------------------------------------------


def _line(state: dict[str, Any], n_folds: int) -> str:
    """What is shown of a model."""
    line = f"{state['n_done']} of {state['n_total']} models  fold {state['fold'] + 1} of {n_folds}"
    for name, value in state.items():
        if name not in ("n_done", "n_total", "fold", "objective", "gap", "n_nonzero", "score"):
            line += f"  {name} {_value(value)}"
    line += train.progress_text(state)
    return line + (f"  {count(state['n_nonzero'], 'weight')}" if "n_nonzero" in state else "")


def _value(value: Any) -> str:
    return value if isinstance(value, str) else f"{value:.6g}"


def _parameters_of_choice(method: Method, parameters: Any, found: Any) -> Any:
    """The parameters of one model: those of the search, and the chosen ones.

    A kind of model is no parameter: the method that chooses among kinds describes it by itself.
    """
    names = {field.name for field in dataclasses.fields(method.parameters)}
    values = {f.name: getattr(parameters, f.name) for f in dataclasses.fields(parameters)}
    values |= found.best_params
    return method.parameters(**{name: values[name] for name in names & set(values)})


def _say(
    found: Any, lines: Sequence[tuple[str, str]], scoring: str, args: Namespace, console: Console
) -> None:
    """The summary on standard error; ``lines`` are of the chosen model."""
    chosen = ", ".join(
        f"{name} = {_value(value)}" for name, value in _values_of_choice(found).items()
    )
    where = f"on {args.valid}" if args.valid is not None else f"over {len(found.scores)} folds"
    console.say("chosen", f"{chosen}: {scoring} {found.score:.4f} {where}")
    for label, text in lines:
        console.say(label, text)
    for text in found.edges:
        console.say("note", text)
    method = METHODS[args.method]
    if found.open is not None:
        console.warn(options.in_flags(found.open, method.parameters))
    train.warn_unless_done(found.trained, method, console)


def _values_of_choice(found: Any) -> dict[str, Any]:
    """The chosen value of each axis; that of γ says nothing where the kernel has none."""
    kernel = getattr(found.trained.model, "kernel", None)
    has_gamma = kernel is not None and kernel.name in WITH_GAMMA
    return {
        name: value for name, value in found.best_params.items() if name != "gamma" or has_gamma
    }


def _table(found: Any, scoring: str) -> str:
    """A line per model; the chosen one has a star."""
    axes, path = _values_of_choice(found), found.path
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
    return Table([Column(name) for name in rows[0]], cells).to_text()


# What the JSON report says of every model: its name there, and of a path or of a grid.
OF_PATH = {
    "nonzero_weights": "n_nonzero",
    "objectives": "objectives",
    "duality_gaps": "gaps",
    "norms": "norms",
    "iterations": "n_iter",
    "hessian_products": "n_hvp",
    "converged": "converged",
}
OF_GRID = {"iterations": "n_iter", "converged": "converged"}


def _measures(found: Any) -> dict[str, Any]:
    """What the JSON report says of the models: a path, or a grid."""
    axes: dict[str, Any] = {name: list(found.grid[name]) for name in _values_of_choice(found)}
    scores = {"mean_scores": found.mean_scores.tolist(), "scores": found.scores.tolist()}
    if found.path is not None:
        facts = {name: getattr(found.path, key).tolist() for name, key in OF_PATH.items()}
        return {"path": {**axes, **scores, **facts}}
    facts = {n: found.facts[key].tolist() for n, key in OF_GRID.items() if key in found.facts}
    return {"grid": {**{f"{name}s": axes.get(name) for name in found.grid}, **scores, **facts}}
