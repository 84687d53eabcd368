"""``linrank tune --method domination``: the α that ranks unseen queries best."""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING, Any

from linrank.cli.choosing import read_folds
from linrank.cli.console import Console, count, seconds
from linrank.cli.main import NOT_CONVERGED, OK
from linrank.cli.models import write_model
from linrank.cli.reading import read_data
from linrank.cli.streams import STANDARD, show_standard
from linrank.cli.train_report import describe_data
from linrank.cli.tune_report import measured_on, plot, print_json
from linrank.options import CURVATURES, DOMINATION_PATH

if TYPE_CHECKING:
    from linrank.data.dataset import Dataset
    from linrank.models.linear import LinearModel
    from linrank.ranksvm.path import PathResult
    from linrank.search.folds import Fold
    from linrank.search.tuning import Tuning

_REPORTED = tuple(name for name in DOMINATION_PATH if name != "curvature")


def run_domination(args: argparse.Namespace) -> int:
    """Read, solve the paths, measure, choose, write."""
    # Loaded before the clock starts: the time of reading is not that of NumPy.
    import linrank.io.svmlight
    import linrank.search.domination  # noqa: F401

    start = time.perf_counter()
    console = Console(quiet=args.quiet, verbose=args.verbose)
    data = read_data(args.data, args, console)
    folds = read_folds(data, args, console)
    read = time.perf_counter()
    console.say("read", f"{describe_data(data)} in {seconds(read - start)}")
    tuning, path, model = _search(data, folds, args, console)
    tuned = time.perf_counter()
    _say_result(tuning, path, args, tuned - read, console)
    if args.output is not None:
        write_model(model, args.output, console)
    if args.plot is not None:
        plot(path, tuning.scores, tuning.alpha, args)
        console.say("plotted", args.plot)
    if args.json:
        print_json(args, data, tuning, _summary(tuning, path, args), (start, read, tuned))
    elif args.output != STANDARD:
        show_standard(_table(tuning, path, args.scoring))
    return OK if path.converged[tuning.chosen] else NOT_CONVERGED


def _search(
    data: Dataset, folds: list[Fold], args: argparse.Namespace, console: Console
) -> tuple[Tuning, PathResult, LinearModel]:
    from linrank.domination.path import PathProblem, as_alphas
    from linrank.domination.train import describe_parameters
    from linrank.models.linear import LinearModel
    from linrank.search.domination import tune_domination

    # The curvature changes the time only, and has no option.
    solving = {name: getattr(args, name) for name in _REPORTED} | {"curvature": CURVATURES[0]}
    options = {**solving, "scale": args.scale, "seed": args.seed, "n_jobs": args.jobs}
    whole = PathProblem.of(data, **options)
    tuning = tune_domination(
        data,
        folds,
        as_alphas(args.alphas, whole.problem, args.n_alphas, args.eps),
        scoring=args.scoring,
        convention=args.convention,
        selection=args.selection,
        max_features=args.max_features,
        progress=console.progress(lambda state: _line(state, len(folds))),
        **options,
    )
    path = whole.solve(tuning.alphas)
    settings = describe_parameters(
        data, alpha=tuning.alpha, seed=args.seed, **solving, feature_induction=None
    )
    known = {
        "scoring": args.scoring,
        "score": float(tuning.mean_scores[tuning.chosen]),
        "index_base": data.index_base,
    }
    result = path.results[tuning.chosen]
    return tuning, path, LinearModel.of(result, data, whole.scaling, **settings, **known)


def _line(state: dict[str, Any], n_folds: int) -> str:
    """What is shown of a model."""
    return (
        f"{state['n_done']} of {state['n_total']} models  fold {state['fold'] + 1} of {n_folds}  "
        f"α {state['alpha']:.6g}  objective {state['objective']:.8g}  "
        f"{count(state['n_nonzero'], 'weight')}"
    )


def _say_result(
    tuning: Tuning,
    path: PathResult,
    args: argparse.Namespace,
    took: float,
    console: Console,
) -> None:
    """The summary on standard error."""
    console.clear()
    k, n_folds = tuning.chosen, len(tuning.scores)
    where = measured_on(args, n_folds)
    n_models = count(len(tuning.alphas) * (n_folds + 1), "model")
    console.say("trained", f"{n_models} by the domination loss, {args.penalty}, in {seconds(took)}")
    best = f"{args.scoring} {tuning.mean_scores[k]:.4f}"
    console.say("chosen", f"α = {tuning.alpha:g}: {best} {where}")
    n_features = path.coefs.shape[1]
    share = 100 * path.n_nonzero[k] / n_features
    console.say(
        "weights", f"{path.n_nonzero[k]:,} of {count(n_features, 'feature')} ({share:.3g} %)"
    )
    if tuning.edge is not None:
        console.say("note", tuning.edge)
    if not path.converged[k]:
        console.warn(f"not converged: {path.messages[k]}")


def _table(tuning: Tuning, path: PathResult, scoring: str) -> str:
    """A line per alpha, the sparsest model first; the chosen one has a star."""
    spread = tuning.scores.std(axis=0, ddof=1) if len(tuning.scores) > 1 else None
    width, means = max(len(scoring), 9), tuning.mean_scores
    head = f"  {'alpha':>12}  {'weights':>8}  {scoring:>{width}}  {'deviation':>9}"
    lines = [f"{head}  {'objective':>13}"]
    for k, alpha in enumerate(tuning.alphas.tolist()):
        deviation = "" if spread is None else f"{spread[k]:.4f}"
        lines.append(
            f"{'*' if k == tuning.chosen else ' '} {alpha:>12.6g}  {path.n_nonzero[k]:>8}  "
            f"{means[k]:>{width}.4f}  {deviation:>9}  {path.objectives[k]:>13.8g}"
        )
    return "\n".join(lines) + "\n"


def _summary(tuning: Tuning, path: PathResult, args: argparse.Namespace) -> dict[str, Any]:
    """What the JSON report says of a path."""
    return {
        "method": args.method,
        "scale": args.scale,
        **{name: getattr(args, name) for name in _REPORTED},
        "seed": args.seed,
        "max_features": args.max_features,
        "alpha": tuning.alpha,
        "nonzero_weights": int(path.n_nonzero[tuning.chosen]),
        "path": {
            "alpha": tuning.alphas.tolist(),
            "mean_scores": tuning.mean_scores.tolist(),
            "scores": tuning.scores.tolist(),
            "nonzero_weights": path.n_nonzero.tolist(),
            "objectives": path.objectives.tolist(),
            "duality_gaps": path.gaps.tolist(),
            "norms": path.norms.tolist(),
            "iterations": path.n_iter.tolist(),
            "converged": path.converged.tolist(),
        },
    }
