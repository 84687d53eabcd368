"""linrank report TEST (--train DATA | --model MODEL) [-o FILE] [options]

Judge a model on the queries of TEST and write what there is to see to one HTML file, which needs no
network: measures with intervals, query by query, the worst queries with the features that are to
blame, weights, training, data. With --train a linear RankSVM is trained, C chosen on --valid or on
folds; with --model that model, or a file of scores, is judged. It is compared with --against, or
with the best single feature of the training data.
"""

from __future__ import annotations

import os
from argparse import Namespace
from typing import TYPE_CHECKING, Any

from linrank.choices import N_FOLDS, SCALES
from linrank.cli import files, options
from linrank.cli.console import Console, Result
from linrank.cli.main import NOT_CONVERGED, OK, UsageError
from linrank.cli.options import STANDARD
from linrank.methods.parameters import GRID_OF_C
from linrank.system.resources import bytes_text

if TYPE_CHECKING:
    from linrank.data.dataset import Dataset
    from linrank.reports import Report

_METRICS = options.metric_options(
    "ndcg, map, mrr and pairwise accuracy; ndcg@10 chooses", "chooses C and begins the page"
)
OPTIONS = f"""
  TEST               labeled rows to judge by: a file, a store, or - for stdin
  -o, --output FILE:output=report.html  page to write, or - (default: report.html)
{_METRICS}
what is judged:
  --model FILE       this model, or these scores of TEST
  --train FILE       a model learned from these data
  --valid FILE       with --train: choose C on these data
  --against FILE     compare with this model or these scores
training, with --train and without --model:
  --Cs GRID:grid     as in tune (default: {GRID_OF_C})
  --folds N:folds    without --valid, choose C on each of N folds of the queries (default: 5)
  --scale NAME:scale  scaling of the features: {", ".join(SCALES)} (default: auto, as in train)
  --save-model MODEL  write the model that is trained
the page:
  --title TEXT       of the page
  --names FILE       names of the features, one per line, the first one first
  --worst N:natural=5  queries to explain (default: 5)
  --seed N:natural=0  of the resampling (default: 0)
"""
RULES = """
--valid needs --train: it is what C is chosen on
--folds excludes --valid: C is chosen on one of them
--Cs excludes --model: it is for a model that is trained here
--folds excludes --model: they are for a model that is trained here
--scale excludes --model: it is for a model that is trained here
--save-model excludes --model: it is for a model that is trained here
"""


def configure(parser: options.Parser) -> None:
    """Declare the options."""
    options.declare(parser, OPTIONS, scale=SCALES)
    options.add_common(parser)


def run(args: Namespace, console: Console) -> Result:
    """Read, train or load, judge, write."""
    _check(args)
    page = _report(args, console)
    console.clear()
    for caveat in page.material.caveats:
        if caveat.grave:
            console.warn(f"{caveat.message} [{caveat.code}]")
    html = page.to_html()
    n_bytes = len(html.encode())
    files.write_lines(args.output, [html])
    if args.output != STANDARD:
        console.say("wrote", f"{args.output}, {bytes_text(n_bytes)}")
    training = page.material.training
    if args.save_model is not None and training is not None:
        files.write_model(training.model, args.save_model, console)
    facts = {"output": args.output, "model_file": args.save_model, "bytes": n_bytes}
    is_done = training is None or training.result.converged
    return Result(facts | page.to_dict(), status=OK if is_done else NOT_CONVERGED)


def _check(args: Namespace) -> None:
    """Fail on what can be known to be wrong now rather than after training."""
    if args.model is None and args.train is None:
        raise UsageError("give --model MODEL to judge, or --train DATA to learn one from")
    if args.save_model == args.output:
        raise UsageError(f"-o and --save-model both name {args.output}; name two files")
    if args.save_model == STANDARD and args.json:
        raise UsageError("--json and a model on standard output (-) exclude each other")
    inputs = [args.test, args.train, args.valid, args.model, args.against, args.names]
    files.check_metrics(args.metrics, args.convention, selects=True)
    files.check_files(inputs, args.output, args.save_model)


def _report(args: Namespace, console: Console) -> Report:
    from linrank.reports import report

    model, against = (_read_judged(args, name) for name in ("model", "against"))
    train, valid, test = _read_parts(args, model, console)
    return report(
        test,
        train=train,
        valid=valid,
        model=model,
        against=against,
        model_name=_short(args.model),
        against_name=_short(args.against),
        scoring=(args.metrics or [None])[0],
        **{name: getattr(args, name) for name in ("metrics", "convention", "title")},
        Cs=args.Cs if args.Cs is not None else "auto",
        scale=args.scale or SCALES[0],
        n_folds=args.folds or N_FOLDS,
        feature_names=None if args.names is None else _names(args.names),
        n_worst=args.worst,
        random_state=args.seed,
        n_jobs=args.jobs,
        progress=console.tell,
    )


def _read_parts(
    args: Namespace, model: Any, console: Console
) -> tuple[Dataset | None, Dataset | None, Dataset]:
    """Training, validation and test data; features of all counted as in the first that is known."""
    how = files.like_training(model, args) if hasattr(model, "training") else {}
    train = valid = None
    if args.train is not None:
        kept = {"missing": how["missing"]} if how else {}
        train = files.read_data(args.train, args, console, **kept)
        like = files.like_data(train, args)
        if like.pop("filling") is not None:  # the report fills in the others as these were
            like["missing"] = "keep"
        how = {**like, **how, "known": like["known"]}
    if args.valid is not None:
        valid = files.read_data(args.valid, args, console, **how)
    test = files.read_data(args.test, args, console, **how)
    parts = [part for part in (train, valid, test) if part is not None]
    for part in parts:
        files.check_qids(parts[0], part)
    for part in parts:
        console.say("read", files.describe_data(part))
    return train, valid, test


def _read_judged(args: Namespace, option: str) -> Any:
    """The model of a file, or its scores; None where the option is not given."""
    path = getattr(args, option)
    if path == STANDARD:
        raise ValueError(f"--{option} - : a model or scores must be a file here")
    if path is None:
        return None
    return files.read_model(path) if files.is_model(path) else files.read_scores(path)


def _short(path: str | None) -> str | None:
    """A file as the page calls it: without folders, and without the usual endings."""
    name = os.path.basename(path or "")
    return name.removesuffix(".json").removesuffix(".txt") or path


def _names(path: str) -> list[str]:
    """One name per line; empty lines at the end do not count."""
    lines = files.read_text(path).rstrip().splitlines()
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            raise ValueError(f"{path}:{number}: a name is missing; give one for each feature")
    return [line.strip() for line in lines]
