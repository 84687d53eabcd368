"""``linrank clicks``: from a click log and the features of what was shown to a model."""

from __future__ import annotations

import argparse
import re
import time
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from typing import TYPE_CHECKING, Any

from linrank.cli import options, reading, streams
from linrank.cli.console import Console
from linrank.cli.main import NOT_CONVERGED, OK
from linrank.cli.train import METRICS, check_files, state_line, tell_trained, write_and_validate
from linrank.methods.base import METHODS, Task
from linrank.system.resources import count, seconds

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from linrank.clicks.impressions import Impressions, JoinedLog
    from linrank.data.preferences import Preferences

METHOD = METHODS["ranksvm"]
PROPENSITIES = ("harvest", "position-model", "click-rates", "power-law", "none")
STRATEGIES = ("clicked-over-skipped", "clicked-over-others", "clicked-over-next-skipped")
ROLES = ("session", "query", "document", "position", "clicked", "count")
MAX_WEIGHT = 20.0

OPTIONS = f"""
  --log-columns ROLE=NAME,...:columns  columns of LOG that have other names: {", ".join(ROLES)}
  --propensity HOW:str={PROPENSITIES[0]}  harvest (default: from rows shown at neighbouring
      positions), position-model (by likelihood), click-rates (of results in random order),
      power-law (a guess, 1/rank^η), none (clicks as they are), or a file with a number for each
      position
  --eta η:nonnegative    of power-law (default: 1)
  --positions N:count    use records of the first N positions (default: all)
  --max-weight W:positive  bound of 1 / propensity (default: {MAX_WEIGHT:g})
  --strategy NAME:strategy={STRATEGIES[0]}  what a click is preferred to: {", ".join(STRATEGIES)}
      (default: the first)
  --write-preferences FILE  also write 'winner loser weight' lines
  --write-propensities FILE  also write one number for each position
"""
DESCRIPTION = """\
Join the records of LOG (session, query, document, position, clicked) to the rows of
JUDGMENTS by query and document, estimate how often each position is looked at, and
learn from what was clicked over what was not, clicks weighted by what that says.

LOG is a table (Parquet, Arrow, CSV, TSV), its columns known by name, as session_id,
query, url, rank, click. JUDGMENTS has a row for each query and document, with ids and
features; labels are not learnt from.

The model behind it: a result is clicked if it is looked at and attracts, and whether it
is looked at depends on its position alone. Propensities can be told from the log only
where results have moved between positions.

The training is that of `linrank train`.
"""


def configure(parser: options.Parser) -> None:
    """Declare the options."""
    parser.usage = "linrank clicks LOG --features JUDGMENTS -o MODEL [options]"
    parser.description = DESCRIPTION
    parser.add_argument("log", metavar="LOG", help=argparse.SUPPRESS)
    group = parser.add_argument_group("from clicks to preferences")
    group.add_argument(
        "--features",
        dest="data",
        metavar="JUDGMENTS",
        required=True,
        help="data with query ids, document ids and features: a table, text, or a store",
    )
    group.add_argument(
        *("-o", "--output"),
        dest="model",
        metavar="MODEL",
        required=True,
        help="the model; - for stdout",
    )
    options.declare(group, OPTIONS, columns=log_columns, strategy=STRATEGIES)
    options.add_parameters(parser, METHOD.parameters, "options of the training")
    options.declare(parser, "  --valid FILE  also measure the model on this data file")
    options.add_metrics(parser, default=", ".join(METRICS))
    options.add_reading(parser, missing=False, features="--columns")
    options.add_reporting(parser)


def log_columns(text: str) -> dict[str, str]:
    """``query=q,document=url`` as a mapping."""
    pairs = [part.partition("=")[::2] for part in text.split(",")]
    for role, name in pairs:
        if role not in ROLES or not name:
            raise ArgumentTypeError(f"{role!r} of {text!r}: give ROLE=NAME, of {', '.join(ROLES)}")
    return dict(pairs)


def run(args: Namespace, parser: ArgumentParser) -> int:
    """Read, join, estimate, train, write."""
    parameters = options.parameters_of(args, parser, METHOD.parameters)
    _check(args, parser)

    from linrank.clicks import click_preferences
    from linrank.clicks.impressions import join_log

    options.load(METHOD.train)
    start = time.perf_counter()
    console = Console(quiet=args.quiet, verbose=args.verbose)
    data = reading.read_data(args.data, args, console, labelled=False)
    read = time.perf_counter()
    console.say("read", f"{reading.describe_data(data)} in {seconds(read - start)}")
    with reading.in_options(console, _spelt):
        joined = join_log(args.log, data, **(args.log_columns or {}))
    impressions = joined.impressions
    if args.positions is not None:
        impressions = impressions.top(args.positions)
    _tell_joined(joined, impressions, time.perf_counter() - read, console)
    propensity = _propensity(args, impressions)
    console.say("looks", _told_propensities(propensity, args.propensity))
    preferences = click_preferences(
        impressions,
        args.strategy.replace("-", "_"),
        propensity=propensity,
        max_weight=None if propensity is None else args.max_weight,
    )
    console.say(
        "pairs",
        f"{len(preferences):,} preferences between rows, {args.strategy.replace('-', ' ')}"
        + ("" if propensity is None else f", weights at most {args.max_weight:g} per click"),
    )
    _write_parts(args, propensity, preferences)
    parameters.callback = console.progress(state_line)
    reading.resolve_bounds(parameters, data)
    begun = time.perf_counter()
    trained = METHOD.train(Task(reading.without_labels(data), parameters, preferences=preferences))
    told = tell_trained(trained, METHOD, parameters, time.perf_counter() - begun, console)
    evaluation = write_and_validate(trained.model, args, console)
    if args.json:
        facts = _facts(joined, impressions, propensity, preferences)
        report = {
            "log": facts,
            "data": reading.data_summary(data, args),
            "training": told.facts,
            "valid": None if evaluation is None else evaluation.to_dict()["means"],
            "model": args.model,
        }
        streams.write_standard(streams.json_report("clicks", report))
    return OK if trained.is_done else NOT_CONVERGED


def _check(args: Namespace, parser: ArgumentParser) -> None:
    """Fail on what can be known to be wrong now rather than after training."""
    if args.eta is not None and args.propensity != "power-law":
        parser.error(f"--eta needs --propensity power-law, not {args.propensity}")
    if args.max_weight is not None and args.propensity == "none":
        parser.error("--max-weight bounds inverse propensities, and --propensity is none")
    options.fill_in(args, {"eta": 1.0, "max_weight": MAX_WEIGHT})
    if args.propensity not in PROPENSITIES:
        streams.check_readable(args.propensity)
    for path in filter(None, (args.log, args.data, args.valid)):
        if path == streams.STANDARD:
            parser.error("LOG, --features and --valid are files, not standard input")
        streams.check_readable(path)
    others = (args.log, args.propensity)
    for output in (args.write_preferences, args.write_propensities):
        streams.check_output(output, args.data, args.valid, *others)
    check_files(args, parser, *others)


def _spelt(message: str) -> str:
    """What the join says, of ``--log-columns query=NAME`` and not of ``query=``."""
    text = re.sub(r"\b(qid|docid)=", r"--\1", message)
    return re.sub(rf"(?<![-\w])({'|'.join(ROLES)})=", r"--log-columns \1=", text)


def _tell_joined(
    joined: JoinedLog, impressions: Impressions, took: float, console: Console
) -> None:
    n_lists = 0 if impressions.offsets is None else len(impressions.offsets) - 1
    rows = len(set(impressions.rows_needed("clicks").tolist()))
    console.say(
        "joined",
        f"{joined.source}: {len(impressions):,} of {joined.n_records:,} records, "
        f"{count(int(impressions.clicked.sum()), 'click')}, {count(n_lists, 'list')}, "
        f"{count(rows, 'row')} shown, in {seconds(took)}",
    )
    if set(joined.columns) != set(joined.columns.values()):
        columns = ", ".join(f"{role} {name!r}" for role, name in joined.columns.items())
        console.say("columns", columns)
    if joined.n_lost:
        console.warn(f"{joined.source}: {joined.describe_lost()}")


def _propensity(args: Namespace, impressions: Impressions) -> NDArray[Any] | None:
    """The chance that each position is looked at; None where clicks are taken as they are."""
    import numpy as np

    from linrank import clicks
    from linrank.clicks.propensity import as_propensity

    how = args.propensity
    if how == "none":
        return None
    if how == "power-law":
        return clicks.power_law(impressions.n_positions, args.eta)
    if how not in PROPENSITIES:
        return as_propensity(np.array(streams.read_text(how).split(), dtype=np.float64))
    try:
        if how == "harvest":
            return clicks.harvest(impressions)
        if how == "click-rates":
            return clicks.click_rates(impressions)
        return clicks.fit_position_model(impressions).propensity
    except ValueError as error:
        raise ValueError(
            f"--propensity {how}: {error}; --positions N leaves out lower positions, --propensity "
            "power-law guesses 1/rank, and none takes clicks as they are"
        ) from None


def _told_propensities(propensity: NDArray[Any] | None, how: str) -> str:
    if propensity is None:
        return "none: every click weighs the same, and what was shown on top wins by being seen"
    told = " ".join(f"{p:.3g}" for p in propensity)
    assumed = {
        "power-law": "a guess, not of this log",
        "click-rates": "right only if results were in random order",
    }.get(how, "relative to the largest; looks depend on the position alone")
    return f"by {how}, from position 1 on: {told} ({assumed})"


def _write_parts(
    args: Namespace, propensity: NDArray[Any] | None, preferences: Preferences
) -> None:
    if args.write_propensities is not None and propensity is not None:
        lines = "".join(f"{p!r}\n" for p in propensity.tolist())
        streams.write_lines(args.write_propensities, [lines])
    if args.write_preferences is not None:
        weights = [1.0] * len(preferences) if preferences.weight is None else preferences.weight
        columns = preferences.winners.tolist(), preferences.losers.tolist(), list(weights)
        told = (f"{i} {j} {float(w)!r}\n" for i, j, w in zip(*columns, strict=True))
        streams.write_lines(args.write_preferences, ["".join(told)])


def _facts(
    joined: JoinedLog,
    impressions: Impressions,
    propensity: NDArray[Any] | None,
    preferences: Preferences,
) -> dict[str, Any]:
    return {
        "source": joined.source,
        "columns": joined.columns,
        "records": joined.n_records,
        "records_of_other_queries": joined.n_other_queries,
        "records_of_other_documents": joined.n_other_documents,
        "used": len(impressions),
        "clicks": int(impressions.clicked.sum()),
        "propensity": None if propensity is None else propensity.tolist(),
        "preferences": len(preferences),
    }
