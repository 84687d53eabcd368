"""linrank clicks LOG --features JUDGMENTS -o MODEL [options]

Join the records of LOG (session, query, document, position, clicked) to the rows of
JUDGMENTS by query and document, estimate how often each position is looked at, and
learn from what was clicked over what was not, clicks weighted by what that says.

LOG is a table (Parquet, Arrow, CSV, TSV), its columns known by name, as session_id,
query, url, rank, click. JUDGMENTS has a row for each query and document, with ids and
features; labels are not learned from.

The model behind it: a result is clicked if it is looked at and attracts, and whether it
is looked at depends on its position alone. Propensities can be told from the log only
where results have moved between positions.

The training is that of `linrank train`.
"""

from __future__ import annotations

import re
from argparse import ArgumentTypeError, Namespace
from typing import TYPE_CHECKING

from linrank.cli import files, options
from linrank.cli.console import Console, Result
from linrank.cli.main import UsageError
from linrank.cli.options import STANDARD
from linrank.cli.train import MEASURES, check_trained_files, learn, open_data
from linrank.methods.base import METHODS
from linrank.system.resources import count, seconds

if TYPE_CHECKING:
    from collections.abc import Callable

    from linrank.clicks.impressions import Impressions, JoinedLog
    from linrank.data import Array
    from linrank.data.preferences import Preferences

METHOD = METHODS["ranksvm"]
PROPENSITIES = ("harvest", "position-model", "click-rates", "power-law", "none")
STRATEGIES = ("clicked-over-skipped", "clicked-over-others", "clicked-over-next-skipped")
ROLES = ("session", "query", "document", "position", "clicked", "count")
MAX_WEIGHT = 20.0
RULES = """
-m needs --valid FILE, the data to measure on
--eta needs --propensity power-law
--max-weight excludes --propensity none: it bounds inverse propensities
"""
UNWEIGHTED = "none: every click weighs the same, and what was shown on top wins by being seen"

OPTIONS = f"""
  LOG
  --features@data JUDGMENTS:str=  data with query ids, document ids and features: a table, text, or
      a store
  -o, --output MODEL:output=  model file to write, or -
from clicks to preferences:
  --log-columns ROLE=NAME,...:columns  columns of LOG that have other names: {", ".join(ROLES)}
  --propensity HOW:str={PROPENSITIES[0]}  harvest (default: from rows shown at neighboring
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


def configure(parser: options.Parser) -> None:
    """Declare the options."""
    options.declare(parser, OPTIONS, columns=log_columns, strategy=STRATEGIES)
    options.add_parameters(parser, METHOD.parameters, "options of the training")
    options.declare(parser, MEASURES)
    options.add_common(parser, missing=False, features="--columns")


def log_columns(text: str) -> dict[str, str]:
    """``query=q,document=url`` as a mapping."""
    pairs = [part.partition("=")[::2] for part in text.split(",")]
    for role, name in pairs:
        if role not in ROLES or not name:
            raise ArgumentTypeError(f"{role!r} of {text!r}: give ROLE=NAME, of {', '.join(ROLES)}")
    return dict(pairs)


def run(args: Namespace, console: Console) -> Result:
    """Read, join, estimate, train, write."""
    parameters = options.parameters_of(args, METHOD.parameters)
    _check(args)

    from linrank.clicks import click_preferences
    from linrank.clicks.impressions import join_log

    options.load(METHOD.train)
    data, clock = open_data(args, console, is_store=False, labeled=False)
    with files.in_options(console, _name_columns):
        joined = join_log(args.log, data, **(args.log_columns or {}))
    impressions = joined.impressions
    if args.positions is not None:
        impressions = impressions.top(args.positions)
    _say_joined(joined, impressions, clock.end("join"), console)
    propensity = _propensity(args, impressions, console)
    preferences = click_preferences(
        impressions,
        args.strategy.replace("-", "_"),
        propensity=propensity,
        max_weight=None if propensity is None else args.max_weight,
    )
    bound = "" if propensity is None else f", weights at most {args.max_weight:g} per click"
    strategy = args.strategy.replace("-", " ")
    console.say("pairs", f"{len(preferences):,} preferences between rows, {strategy}{bound}")
    _write_parts(args, propensity, preferences)
    clock.end("prefer")
    rows = files.without_labels(data)
    result = learn(METHOD, rows, parameters, preferences, args, console, clock)
    result.facts["log"] = {
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
    return result


def _check(args: Namespace) -> None:
    """Fail on what can be known to be wrong now rather than after training."""
    if STANDARD in (args.log, args.data, args.valid):
        raise UsageError("LOG, --features and --valid are files, not standard input")
    options.fill_in(args, {"eta": 1.0, "max_weight": MAX_WEIGHT})
    others = (args.log, None if args.propensity in PROPENSITIES else args.propensity)
    check_trained_files(args, *others)
    inputs = [args.data, args.valid, *others]
    files.check_files(inputs, args.write_preferences, args.write_propensities)


def _name_columns(message: str) -> str:
    """What the join says, of ``--log-columns query=NAME`` and not of ``query=``."""
    text = re.sub(r"\b(qid|docid)=", r"--\1", message)
    return re.sub(rf"(?<![-\w])({'|'.join(ROLES)})=", r"--log-columns \1=", text)


def _say_joined(joined: JoinedLog, impressions: Impressions, took: float, console: Console) -> None:
    """What the records are, and those that found no row."""
    lists = count(0 if impressions.offsets is None else len(impressions.offsets) - 1, "list")
    rows = count(len(set(impressions.rows_needed("clicks").tolist())), "row")
    clicks = count(int(impressions.clicked.sum()), "click")
    records = f"{len(impressions):,} of {joined.n_records:,} records"
    size = f"{records}, {clicks}, {lists}, {rows} shown, in {seconds(took)}"
    console.say("joined", f"{joined.source}: {size}")
    if set(joined.columns) != set(joined.columns.values()):
        columns = ", ".join(f"{role} {name!r}" for role, name in joined.columns.items())
        console.say("columns", columns)
    if joined.n_lost:
        console.warn(f"{joined.source}: {joined.describe_lost()}")


def _propensity(args: Namespace, impressions: Impressions, console: Console) -> Array | None:
    """The chance that each position is looked at; None where clicks are taken as they are."""
    import numpy as np

    from linrank import clicks
    from linrank.clicks.propensity import as_propensity

    how = args.propensity
    estimates: dict[str, Callable[[], Array]] = {
        "harvest": lambda: clicks.harvest(impressions),
        "position-model": lambda: clicks.fit_position_model(impressions).propensity,
        "click-rates": lambda: clicks.click_rates(impressions),
        "power-law": lambda: clicks.power_law(impressions.n_positions, args.eta),
    }
    if how == "none":
        console.say("looks", UNWEIGHTED)
        return None
    if how not in estimates:
        found = as_propensity(np.array(files.read_text(how).split(), dtype=np.float64))
    else:
        try:
            found = estimates[how]()
        except ValueError as error:
            raise ValueError(
                f"--propensity {how}: {error}; --positions N leaves out lower positions, "
                "--propensity power-law guesses 1/rank, and none takes clicks as they are"
            ) from None
    assumed = {
        "power-law": "a guess, not of this log",
        "click-rates": "right only if results were in random order",
    }.get(how, "relative to the largest; looks depend on the position alone")
    chances = " ".join(f"{p:.3g}" for p in found)
    console.say("looks", f"by {how}, from position 1 on: {chances} ({assumed})")
    return found


def _write_parts(args: Namespace, propensity: Array | None, preferences: Preferences) -> None:
    """Write what was made of the log on the way, where that is asked for."""
    if args.write_propensities is not None and propensity is not None:
        lines = "".join(f"{p!r}\n" for p in propensity.tolist())
        files.write_lines(args.write_propensities, [lines])
    if args.write_preferences is not None:
        weights = [1.0] * len(preferences) if preferences.weight is None else preferences.weight
        columns = preferences.winners.tolist(), preferences.losers.tolist(), list(weights)
        pairs = (f"{i} {j} {float(w)!r}\n" for i, j, w in zip(*columns, strict=True))
        files.write_lines(args.write_preferences, ["".join(pairs)])
