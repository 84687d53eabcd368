"""linrank compare TRAIN [VALID] TEST [-o FILE] [options]

Train every method on the same data, choose among its defaults and other candidates, measure it on
test queries that it has not seen, and compare all of them with one: time, size, metrics with
intervals, significance. VALID chooses if it has 200 queries, else cross-validation over TRAIN. Each
method of each fold runs in its own process, -j at a time.

  linrank compare TRAIN [VALID] TEST              one split
  linrank compare --fold-files S1 S2 S3 S4 S5     LETOR's rotation: three train, one chooses, one
                                                  tests
  linrank compare TEST --models A.json B.json --scores C.txt      no training
"""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from linrank.choices import N_FOLDS
from linrank.cli import files, options
from linrank.cli.console import Console, Result, json_report, terminal_width
from linrank.cli.main import FAILED, OK, UsageError
from linrank.cli.options import STANDARD
from linrank.system import Column, Table, seconds

if TYPE_CHECKING:
    from linrank.data.dataset import Dataset
    from linrank.judging.compare import Comparison
    from linrank.judging.contest import Contest
    from linrank.models.linear import Model


FORMATS = (".txt", ".md", ".html", ".json")

SCALES = ("auto", "standard", "minmax", "none")
SELECTIONS = ("auto", "validation", "cross-validation")

OPTIONS = f"""
  [FILE...]            TRAIN [VALID] TEST, or TEST
  --fold-files S...    subsets of whole queries instead
  --models MODEL...    models to compare
  --scores FILE...     scores to compare, one per row
{options.metric_options("ndcg@10, map and pairwise_accuracy", "chooses parameters")}
  -o, --output FILE    write the tables: {", ".join(FORMATS)}
  --n-features N:count  features of every file, where some leave out the last ones because they
                       are 0
methods:
  --methods A,B,...:features  train these (default: all)
  --without A,B,...:features  train all but these
  --list-methods       say which there are
  --selection WAY:selection  on what to choose: validation (VALID), cross-validation (folds of
                       TRAIN), or auto (default), VALID if it has 200 queries
  --folds N:folds      cross-validation over N folds of the queries (default: 5)
  --scale NAME:scale   of the features, for linear methods and kernels; trees get them as they are
                       (default: auto, as in train)
  --budget SECONDS:positive  for one method on one fold; the best so far counts (default: 300)
  --seed N:natural=0   of everything random (default: 0)
comparing:
  --baseline NAME      compare with this (default: ranksvm)
  --correction {{holm,bonferroni,bh,none}}:str=holm  of p for the number of comparisons (default:
                       holm)
"""


RULES = "--folds excludes --selection validation: they are for cross-validation"


def configure(parser: options.Parser) -> None:
    """Declare the options."""
    options.declare(parser, OPTIONS, selection=SELECTIONS, scale=SCALES)
    options.add_common(parser, jobs="processes of one thread each")


def run(args: Namespace, console: Console) -> Result:
    """List, compare what is there, or train and compare."""
    if args.list_methods:
        return _list_methods()
    _check(args)
    if args.correction == "none":
        args.correction = None
    at_hand = args.models or args.scores
    result = _compare_models(args, console) if at_hand else _run_contest(args, console)
    facts = result.to_dict()
    if args.output is not None:
        files.write_lines(args.output, [_in_format(result, facts, args.output.lower())])
        console.say("saved", args.output)
    is_empty = facts.get("comparison", facts) is None
    return Result(facts, result.to_text(terminal_width(1)), FAILED if is_empty else OK)


def _list_methods() -> Result:
    """All methods, and whether their packages are here."""
    from linrank.judging.candidates import contestants

    methods, rows = [], []
    for one in contestants().values():
        row = [one.name, one.family, one.description, one.candidates]
        facts = dict(zip(("name", "family", "description", "grid"), row, strict=True))
        methods.append({**facts, "installed": not one.is_missing})
        row[1] += " (not installed)" if one.is_missing else ""
        rows.append(row)
    columns = [Column(name, "left") for name in ("method", "by", "what it is", "candidates")]
    return Result({"methods": methods}, Table(columns, rows).to_text(terminal_width(1)))


def _in_format(result: Contest | Comparison, facts: dict[str, Any], path: str) -> str:
    """The tables as the name of the file says."""
    if path.endswith(".json"):
        return json_report("compare", facts)
    if path.endswith(".html"):
        page = files.read_text(os.path.join(os.path.dirname(__file__), "compare.html"))
        return page.replace("$body", result.to_html())
    return (result.to_markdown() if path.endswith(".md") else result.to_text()) + "\n"


def _check(args: Namespace) -> None:
    """Fail on what can be known to be wrong now rather than after the training."""
    at_hand = args.models or args.scores
    if at_hand and (args.fold_files or len(args.file) != 1):
        raise UsageError("with --models or --scores, give one FILE: the rows to rank")
    if args.fold_files and args.file:
        raise UsageError("give the files after --fold-files, or TRAIN VALID TEST, not both")
    if not at_hand and not args.fold_files and len(args.file) not in (2, 3):
        raise UsageError(
            f"give TRAIN VALID TEST or TRAIN TEST, got {len(args.file)} files; or --fold-files "
            "S1 S2 ...; or TEST --models A.json ..."
        )
    if args.fold_files and len(args.fold_files) < 3:
        n_files = len(args.fold_files)
        raise UsageError(f"--fold-files needs at least 3 files (LETOR has 5), got {n_files}")
    training = ("methods", "without", "selection", "folds", "scale", "budget")
    for name in options.find_given(args, training) if at_hand else ():
        raise UsageError(f"--{name} is for training; --models and --scores are compared as is")
    inputs = [*args.file, *args.fold_files, *args.models, *args.scores]
    if not at_hand and STANDARD in inputs:
        raise UsageError("the files cannot be standard input: there are several")
    if args.output == STANDARD:
        raise UsageError("-o needs the name of a file; the tables are on standard output anyway")
    if args.output is not None and not args.output.lower().endswith(FORMATS):
        raise UsageError(f"--output {args.output}: the name must end in {', '.join(FORMATS)}")
    files.check_metrics(args.metrics, args.convention, selects=not at_hand)
    files.check_files(inputs, args.output)


# ---- methods that are trained -------------------------------------------------------------------


def _run_contest(args: Namespace, console: Console) -> Contest:
    from linrank.judging.candidates import BASELINE, chosen_methods
    from linrank.judging.contest import compare_methods

    methods = "all" if args.methods is None else args.methods
    baseline = args.baseline or BASELINE
    # A slip of the pen is found before anything is read.
    chosen = chosen_methods(methods, args.without or (), baseline)
    parts = _read_parts(args.fold_files or args.file, args, console)
    data: dict[str, Any] = {"folds": parts}
    if not args.fold_files:
        valid = parts[1] if len(parts) == 3 else None
        data = {"train": parts[0], "valid": valid, "test": parts[-1]}
    with console.warnings():
        contest = compare_methods(
            **data,
            methods=chosen,
            baseline=baseline,
            metrics=args.metrics,
            scoring=(args.metrics or [None])[0],
            convention=args.convention,
            selection=args.selection or SELECTIONS[0],
            n_folds=args.folds or N_FOLDS,
            scale=args.scale or SCALES[0],
            budget=args.budget or 300.0,
            correction=args.correction,
            random_state=args.seed,
            n_jobs=args.jobs,
            progress=_contest_progress(console),
        )
    console.clear()
    return contest


def _read_parts(paths: Sequence[str], args: Namespace, console: Console) -> list[Dataset]:
    """The files, the features of all as those of the first."""
    how: dict[str, Any] = {"n_features": args.n_features}
    parts: list[Dataset] = []
    for path in paths:
        data = files.read_data(path, args, console, **how)
        console.say("read", files.describe_data(data))
        parts.append(data)
        how.update(filling=parts[0].filling, known=parts[0].raw_feature_names)
    return parts


def _contest_progress(console: Console) -> Callable[[dict[str, Any]], None]:
    """What is shown of a contest on its way."""

    def show_state(state: dict[str, Any]) -> None:
        done = f"{state['n_done']} of {state['n_total']} fits"
        if state["event"] == "running":
            left = state["seconds_left"]
            wait = "" if left is None else f"{left:.0f} s" if left < 90 else f"{left / 60:.0f} min"
            estimate = f"  about {wait} left" if wait else ""
            console.status(f"{done}{estimate}  {', '.join(state['running']) or 'comparing'}")
            return
        name = f"{state['method']}, fold {state['fold']}"
        if state["status"] == "done":
            score = f"{state['scoring']} {abs(state['score']):.4f}"
            console.detail(f"{done}  {name}: chosen by {score} in {seconds(state['seconds'])}")
        else:
            console.say(state["status"], f" {name}: {state['why']}")

    return show_state


# ---- models and scores at hand ------------------------------------------------------------------


def _compare_models(args: Namespace, console: Console) -> Comparison:
    """Read the rows once, score them with every model, compare."""
    from linrank.judging.compare import compare
    from linrank.judging.contest import usual_metrics

    names = names_of([*args.models, *args.scores])
    if args.baseline is not None and args.baseline not in names:
        raise ValueError(
            f"--baseline {args.baseline} is none of those compared: {', '.join(names)}"
        )
    models = [files.read_model(path) for path in args.models]
    data = _read_rows(models, args, console)
    scores = [files.score_rows(model, data, args, console) for model in models]
    scores += [files.read_scores_of(path, data) for path in args.scores]
    return compare(
        data.labels,
        dict(zip(names, scores, strict=True)),
        qid=data.qid,
        metrics=args.metrics or usual_metrics([data]),
        convention=args.convention,
        docid=data.all_docids,
        baseline=args.baseline,
        correction=args.correction,
        random_state=args.seed,
        n_jobs=args.jobs,
    )


def names_of(paths: Sequence[str]) -> list[str]:
    """Names for files: without folder and extension if these tell them apart, else as given."""
    short = [os.path.splitext(os.path.basename(path))[0] or path for path in paths]
    names = [
        name if short.count(name) == 1 else path for name, path in zip(short, paths, strict=True)
    ]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"{twice} is given twice; compare each file once")
    return names


def _read_rows(models: Sequence[Model], args: Namespace, console: Console) -> Dataset:
    """The rows, features counted as the models count them."""
    bases = [model.training.get("index_base") for model in models]
    if {0, 1} <= set(bases) and args.index_base == "auto":
        zero, one = (args.models[bases.index(base)] for base in (0, 1))
        raise ValueError(
            f"{zero} counts features from 0 and {one} from 1, and the rows are read one way; say "
            "which with --index-base, or write the scores of each with linrank predict and use "
            "--scores"
        )
    base = next((base for base in bases if base is not None), None)
    names = {tuple(model.feature_names) for model in models if model.feature_names is not None}
    data = files.read_data(
        args.file[0],
        args,
        console,
        n_features=args.n_features,
        missing=files.missing_for(models, args),
        known=next(iter(names)) if len(names) == 1 else None,
        **files.index_options(base, args),
    )
    if len(names) > 1 and data.feature_names is not None:
        raise ValueError(
            f"the models know different features, and {data.source} is read for one of them; write "
            "the scores of each with linrank predict and use --scores"
        )
    return data
