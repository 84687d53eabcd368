"""``linrank compare TEST --models ... --scores ...``: a comparison of what is there already."""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING, Any

from linrank.cli.compare_report import show
from linrank.cli.console import Console
from linrank.cli.main import OK
from linrank.cli.models import read_model
from linrank.cli.reading import kept_missing, read_data, read_scores, score_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from linrank.data.dataset import Dataset
    from linrank.models.kernel import KernelModel
    from linrank.models.linear import LinearModel


def run_models(args: argparse.Namespace) -> int:
    """Read the rows once, score them with every model, compare."""
    from linrank.judging.compare import compare
    from linrank.judging.contest.contest import usual_metrics

    console = Console(quiet=args.quiet, verbose=args.verbose)
    names = names_of([*args.models, *args.scores])
    if args.baseline is not None and args.baseline not in names:
        raise ValueError(
            f"--baseline {args.baseline} is none of those compared: {', '.join(names)}"
        )
    models = [read_model(path) for path in args.models]
    data = _read(args, models, console)
    scores = [score_rows(model, data, args, console) for model in models]
    scores += [_matching(path, data) for path in args.scores]
    comparison = compare(
        data.labels,
        dict(zip(names, scores, strict=True)),
        qid=data.qid,
        metrics=args.metrics or usual_metrics([data]),
        convention=args.convention,
        docid=_docids(data),
        baseline=args.baseline,
        correction=None if args.correction == "none" else args.correction,
        random_state=args.seed,
        n_jobs=args.jobs,
    )
    show(comparison, args, console)
    return OK


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


def _read(
    args: argparse.Namespace, models: Sequence[LinearModel | KernelModel], console: Console
) -> Dataset:
    """The rows, features counted as the models count them."""
    bases = [model.training.get("index_base") for model in models]
    known = {base for base in bases if base is not None}
    if len(known) > 1 and args.index_base == "auto":
        zero, one = (args.models[bases.index(base)] for base in (0, 1))
        raise ValueError(
            f"{zero} counts features from 0 and {one} from 1, and the rows are read one way; say "
            "which with --index-base, or write the scores of each with linrank predict and use "
            "--scores"
        )
    options: dict[str, Any] = {"missing": kept_missing(args, *models)}
    if known and args.index_base == "auto":
        options["zero_based"] = known == {0}
    if args.n_features is not None:
        options["n_features"] = args.n_features
    (path,) = args.files
    names = {model.feature_names for model in models if model.feature_names is not None}
    if len(names) == 1:
        options["known"] = next(iter(names))
    data = read_data(path, args, console, **options)
    if len(names) > 1 and data.feature_names is not None:
        raise ValueError(
            f"the models know different features, and {path} is read for one of them; write the "
            "scores of each with linrank predict and use --scores"
        )
    return data


def _matching(path: str, data: Dataset) -> NDArray[np.float64]:
    scores = read_scores(path)
    if len(scores) != data.n_rows:
        raise ValueError(
            f"{path} has {len(scores):,} scores, {data.source} has {data.n_rows:,} rows; one score "
            "per row is needed, in the same order"
        )
    return scores


def _docids(data: Dataset) -> list[str] | None:
    docids = data.docids
    return None if docids is None or None in docids else [docid or "" for docid in docids]
