"""``linrank inspect``: what is in a data file or a model, and what looks wrong."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from math import isfinite
from typing import TYPE_CHECKING, Any

from linrank.cli.console import Console
from linrank.cli.main import OK
from linrank.cli.options import add_reading, add_reporting, declare, positive_int
from linrank.cli.reading import read_data
from linrank.cli.streams import (
    VALIDATED,
    is_model,
    json_report,
    read_model,
    show_standard,
    write_standard,
)
from linrank.system.resources import bytes_text, count
from linrank.system.tables import Column, Table, card

if TYPE_CHECKING:
    from linrank.data.dataset import Dataset
    from linrank.judging.inspect import Finding, Profile
    from linrank.models.additive import AdditiveModel
    from linrank.models.kernel import KernelModel
    from linrank.models.linear import LinearModel, Model


SHOWN_LABELS = 12  # more distinct labels than this are summarised

OPTIONS = """
  FILE           data file, store, model file, or - for stdin data
  --top N:top=15  weights to show, the most important first (default: 15), or all that are not zero
"""
DESCRIPTION = """\
Describe a data file (rows, queries, labels, pairs, storage, features) and point out what looks
wrong in it; or describe a model: how and on what it was trained, what it does with missing values,
and its weights by importance, with the range of each feature in the training rows; of a kernel
model, its kernel, its support rows and the largest of their coefficients.
"""


def configure(parser: ArgumentParser) -> None:
    """Declare the options."""
    parser.description = DESCRIPTION
    declare(parser, OPTIONS, top=lambda text: None if text == "all" else positive_int(text))
    add_reading(parser)
    add_reporting(parser)


def run(args: Namespace, parser: ArgumentParser) -> int:
    """Tell a model from data by its first byte, and describe it."""
    if is_model(args.file):
        report, lines = _describe_model(read_model(args.file), args.top, args.file)
    else:
        from linrank.judging.inspect import Profile, findings

        console = Console(quiet=args.quiet, verbose=args.verbose)
        data = read_data(args.file, args, console, missing=args.missing or "keep")
        absent = _absent(data)
        profile = Profile(data.filled("zero") if absent else data)
        found = [*_missing_finding(data, absent), *findings(profile)]
        report = {"kind": "data", **_data_report(profile)}
        report |= {"findings": [vars(finding) for finding in found], "missing": absent}
        lines = _data_lines(report)
    if args.json:
        write_standard(json_report("inspect", report))
    else:
        show_standard("\n".join(lines) + "\n")
    return OK


def _absent(data: Dataset) -> dict[str, int]:
    """How many values are missing, by feature: those that lack any, the most first."""
    from linrank.data.frames import feature_name
    from linrank.system.resources import resolve

    counts = data.rows.scan(None, resolve(None)).n_missing
    names, base = data.feature_names, data.index_base
    order = sorted(counts.nonzero()[0].tolist(), key=lambda j: -int(counts[j]))
    return {feature_name(names, j, base, alone=False): int(counts[j]) for j in order}


def _missing_finding(data: Dataset, absent: dict[str, int]) -> list[Finding]:
    from linrank.judging.inspect import Finding

    if not absent:
        return []
    shown = [f"{name!r} ({100 * n / data.n_rows:.3g} % of the rows)" for name, n in absent.items()]
    more = f" and {len(shown) - 3:,} others" if len(shown) > 3 else ""
    return [
        Finding(
            "missing-values",
            f"values are missing of {', '.join(shown[:3])}{more}; say with --missing what they "
            "mean when you train (here they count as 0)",
        )
    ]


def _data_report(profile: Profile) -> dict[str, Any]:
    import numpy as np

    data, queries, columns = profile.data, profile.data.queries, profile.columns
    sizes, (labels, counts) = profile.rows_per_query, profile.labels
    n_cells = data.n_rows * data.n_features
    return {
        "source": data.source,
        "rows": data.n_rows,
        "features": data.n_features,
        "storage": data.rows.describe(),
        "bytes": int(data.rows.nbytes),
        "density": int(columns.n_nonzero.sum()) / max(n_cells, 1),
        "queries": queries.n_queries,
        "has_qid": data.qid is not None,
        "has_weights": data.weight is not None,
        "rows_grouped_by_query": queries.order is None,
        "pairs": queries.n_pairs,
        "rows_per_query": {
            "min": int(sizes.min()),
            "median": float(np.median(sizes)),
            "mean": float(sizes.mean()),
            "max": int(sizes.max()),
        },
        "single_row_queries": int((sizes == 1).sum()),
        "single_level_queries": int((queries.n_levels == 1).sum()),
        "levels_per_query_max": int(queries.n_levels.max()),
        "labels": {
            repr(value): n for value, n in zip(labels.tolist(), counts.tolist(), strict=True)
        },
        "constant_features": int(columns.constant.sum()),
        "features_constant_in_every_query": int((~columns.varies_in_query).sum()),
        "repeated_rows": profile.repeats.n_rows,
        "conflicting_rows": profile.repeats.n_conflicts,
        "repeated_docids": profile.repeats.n_docids,
    }


def _data_lines(report: dict[str, Any]) -> list[str]:
    sizes = report["rows_per_query"]
    n_useless = report["features_constant_in_every_query"]
    n_repeated = report["repeated_rows"]
    rows = [
        ("file", report["source"]),
        ("rows", f"{report['rows']:,}{', weighted' if report['has_weights'] else ''}"),
        ("features", f"{report['features']:,}, {100 * report['density']:.3g} % non-zero"),
        ("storage", f"{report['storage']}, {bytes_text(report['bytes'])}"),
        ("queries", f"{report['queries']:,}{'' if report['has_qid'] else ' (no qid in the file)'}"),
        (
            "",
            f"rows per query: {sizes['min']:,} to {sizes['max']:,}, mean {sizes['mean']:,.1f}, "
            f"median {sizes['median']:,g}",
        ),
        (
            "",
            f"without pairs: {report['single_level_queries']:,} with one level, of which "
            f"{report['single_row_queries']:,} with one row",
        ),
        ("labels", _labels_text(report["labels"])),
        ("levels", f"at most {report['levels_per_query_max']:,} in a query"),
        ("pairs", f"{report['pairs']:,}"),
        (
            "no use",
            f"{n_useless:,} features constant in every query, of which "
            f"{report['constant_features']:,} in all rows"
            if n_useless
            else "none: every feature varies within some query",
        ),
        (
            "repeated",
            f"{n_repeated:,} rows ({report['conflicting_rows']:,} with another label)"
            if n_repeated
            else "no row",
        ),
    ]
    if not report["rows_grouped_by_query"]:
        rows.append(("note", "the rows of a query are not together; they are grouped in memory"))
    rows += [("look at", f"[{one['code']}] {one['message']}") for one in report["findings"]]
    return card(rows if report["findings"] else [*rows, ("", "nothing suspicious found")])


def _labels_text(histogram: dict[str, int]) -> str:
    if len(histogram) <= SHOWN_LABELS:
        return ", ".join(f"{float(value):g}: {n:,}" for value, n in histogram.items())
    values = [float(value) for value in histogram]
    return f"{len(values):,} distinct, from {values[0]:g} to {values[-1]:g}"


FORMULAS = {
    "rbf": "exp(-γ‖a - b‖²)",
    "poly": "(γ a·b + c)^degree",
    "sigmoid": "tanh(γ a·b + c)",
    "linear": "a·b",
    "precomputed": "given as a matrix",
}


def _describe_model(model: Model, top: int | None, path: str) -> tuple[dict[str, Any], list[str]]:
    """What there is to say of a model, as values and as lines; its ``top`` largest numbers."""
    import os
    import time

    from linrank.models.additive import AdditiveModel
    from linrank.models.linear import LinearModel

    # A model itself has no date, so that training twice gives the same bytes.
    written = time.gmtime(os.stat(path).st_mtime)
    if isinstance(model, LinearModel):
        family, own, told = "linear", _linear_report(model, top), _linear_lines
    elif isinstance(model, AdditiveModel):
        family, own, told = "additive", _additive_report(model, top), _additive_lines
    else:
        family, own, told = "kernel", _kernel_report(model, top), _kernel_lines
    report = {
        "kind": "model",
        "family": family,
        "trained_with": model.linrank_version,
        "scale": model.scaling.kind,
        "training": dict(model.training),
        "features": model.n_features,
        **own,
        "file": path,
        "written": time.strftime("%Y-%m-%d %H:%M UTC", written),
    }
    rows = {
        "model": f"{family}, trained with linrank {report['trained_with']}",
        "file": f"{path}, of {report['written']}",
    }
    own_rows, table = told(report)
    return report, [*_card({**rows, **own_rows}, report["training"]), table]


def _largest(coef: Any, top: int | None) -> list[int]:
    """Where the numbers are that are not 0, the largest first."""
    import numpy as np

    nonzero = np.flatnonzero(coef)
    by_size = np.argsort(-np.abs(coef[nonzero]), kind="stable")
    places: list[int] = nonzero[by_size[:top]].tolist()
    return places


def _card(rows: dict[str, Any], training: dict[str, Any]) -> list[str]:
    """The lines on a model: what is known of all, then what its training says."""
    training = dict(training)
    rows |= _data_rows(training)
    objective, gap = training.get("objective"), training.get("gap")
    if isinstance(objective, float) and isinstance(gap, float) and isfinite(gap):
        from linrank.solvers.result import distance_text

        converged = bool(training.get("converged", True))
        training = training | {"gap": distance_text(objective, gap, converged)}
    rows |= {key: value for key, value in training.items() if value is not None}
    return card([(key, _shown(value)) for key, value in rows.items()])


def _shown(value: Any) -> str:
    """A value for a reader; --json has all digits."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _which(n_shown: int, n_nonzero: int) -> str:
    shown = f"the {n_shown:,} largest of {n_nonzero:,}"
    return f"{shown if n_shown < n_nonzero else f'all {n_shown:,}'} that are not zero"


# ---- linear models ------------------------------------------------------------------------------


def _linear_report(model: LinearModel, top: int | None) -> dict[str, Any]:
    importance = model.importances
    order = abs(model.coef) if importance is None else importance
    # A weight without spread has no importance, and is told all the same; so is a feature that
    # only counts where it is missing.
    shown = _largest(order, None) + _largest(model.coef * (order == 0.0), None)
    if model.missing.weights is not None:
        shown += _largest(model.missing.weights * (model.coef == 0.0), None)
    return {
        "missing": model.missing.kind,
        "nonzero_weights": model.n_nonzero,
        "density": model.density,
        "used_features": len(shown),
        "weights": _weights(model, importance, shown[:top]),
    }


def _weights(model: LinearModel, importance: Any, features: list[int]) -> list[dict[str, Any]]:
    """What is known of some features, a column of numbers for each kind of it."""
    from linrank.data.frames import feature_name

    names, known = model.feature_names, model.statistics
    base = model.training.get("index_base")
    columns: dict[str, Any] = {"weight": model.coef}
    if importance is not None:
        total = float(importance.sum()) or 1.0
        columns |= {"importance": importance, "share": importance / total}
    if known is not None:
        columns |= {"mean": known.mean, "std": known.variance**0.5}
        columns |= {"low": known.low, "high": known.high}
    if model.missing.is_filled:
        columns["if_missing"] = model.missing.contributions(model.coef)
    return [
        {
            "feature": feature_name(names, j, base, alone=False),
            **{key: float(values[j]) for key, values in columns.items()},
        }
        for j in features
    ]


MISSING_TEXT = {
    "error": "refused",
    "zero": "count as 0",
    "mean": "count as the mean of the feature in the training rows",
    "indicator": "count as 0, and add a weight of their own",
}


def _linear_lines(report: dict[str, Any]) -> tuple[dict[str, str], str]:
    rows = {
        "features": f"{report['features']:,}, {report['nonzero_weights']:,} with a weight "
        f"({100 * report['density']:.3g} %)",
        "scale": report["scale"],
        "missing values": MISSING_TEXT[report["missing"]],
    }
    if report["used_features"] == 0:
        return rows, "no feature has a weight: all rows score 0"
    return rows, _weight_table(report)


def _data_rows(training: dict[str, Any]) -> dict[str, str]:
    """What the model was trained and measured on; taken out of the summary of the training."""
    sizes = [
        count(training.pop(f"n_{name}"), *words)
        for name, words in _SIZES.items()
        if training.get(f"n_{name}") is not None
    ]
    mark = training.pop("fingerprint", None)
    rows = {"trained on": ", ".join(sizes + ([f"fingerprint {mark}"] if mark else []))}
    prefix = VALIDATED
    measures = {key: training.pop(key) for key in list(training) if key.startswith(prefix)}
    rows["validation"] = "   ".join(
        f"{key.removeprefix(prefix)} {value:.4f}" if isinstance(value, float) else str(value)
        for key, value in measures.items()
    )
    return {key: text for key, text in rows.items() if text}


_SIZES = {"rows": ("row",), "queries": ("query", "queries"), "pairs": ("pair",)}


def _weight_table(report: dict[str, Any]) -> str:
    """A table of the weights, by importance where that is known."""
    items = report["weights"]
    has_missing = any(item.get("if_missing") for item in items)
    kinds = {"weight": "{weight:+.6g}"}
    kinds |= {"if missing": "{if_missing:+.4g}"} if has_missing else {}
    kinds |= {"importance": "{share:.1%}"} if "share" in items[0] else {}
    kinds |= {"training range": "{low:.4g} to {high:.4g}"} if "low" in items[0] else {}
    rows = [
        [
            *(kind.format(**item) for kind in kinds.values()),
            _printable(item["feature"]),
        ]
        for item in items
    ]
    notes = ["if missing: what a row gains that lacks the feature"] if has_missing else []
    if "importance" in kinds:
        notes.append("importance: share of |weight| x deviation of the feature, of all features")
    last = Column(f"feature, {_which(len(items), report['used_features'])}", "left")
    return Table([*map(Column, kinds), last], rows, notes=notes).to_text()


def _printable(name: str) -> str:
    return name if name.isprintable() else repr(name)


# ---- additive models ----------------------------------------------------------------------------


def _additive_report(model: AdditiveModel, top: int | None) -> dict[str, Any]:
    import numpy as np

    from linrank.data.frames import feature_name

    points = [model.curve(j) for j in range(model.n_features)]
    spans = np.array([float(np.ptp(y)) for _, y in points])
    known, base = model.feature_names, model.training.get("index_base")
    names = [feature_name(known, j, base, alone=False) for j in range(model.n_features)]
    interactions = model.interactions
    return {
        "missing": model.missing.kind,
        "nonzero_curves": model.n_nonzero,
        "density": model.density,
        "landmarks": 0 if interactions is None else int(interactions.coef.size),
        "curves": [
            {
                "feature": names[j],
                "span": float(spans[j]),
                "direction": _direction(points[j][1]),
                "x": points[j][0].tolist(),
                "y": points[j][1].tolist(),
            }
            for j in _largest(spans, top)
        ],
    }


def _direction(y: Any) -> str:
    """Whether a curve rises, falls or does both, but for rounding."""
    steps = y[1:] - y[:-1]
    least = 1e-12 * (y.max() - y.min())
    rises, falls = bool((steps > least).any()), bool((steps < -least).any())
    return "both" if rises and falls else "rises" if rises else "falls" if falls else "constant"


def _additive_lines(report: dict[str, Any]) -> tuple[dict[str, str], str]:
    more = f", and interactions of {report['landmarks']:,} landmarks" * bool(report["landmarks"])
    rows = {
        "features": f"{report['features']:,}, {report['nonzero_curves']:,} with a curve "
        f"({100 * report['density']:.3g} %){more}",
        "missing values": MISSING_TEXT[report["missing"]],
    }
    items = report["curves"]
    if not items:
        return rows, "no feature has a curve"
    rows_of_table = [
        [
            f"{item['span']:.6g}",
            item["direction"],
            f"{item['x'][0]:.4g} to {item['x'][-1]:.4g}",
            _printable(item["feature"]),
        ]
        for item in items
    ]
    last = Column(f"feature, {_which(len(items), report['nonzero_curves'])}", "left")
    columns = [Column("span"), Column("direction", "left"), Column("training range"), last]
    notes = ["span: largest less least value of the curve over the training range"]
    return rows, Table(columns, rows_of_table, notes=notes).to_text()


# ---- kernel models ------------------------------------------------------------------------------


def _kernel_report(model: KernelModel, top: int | None) -> dict[str, Any]:
    import numpy as np

    rows, support = model.rows, model.support
    return {
        "kernel": model.kernel.name,
        "parameters": model.kernel.parameters,
        "support_rows": model.n_support,
        "training_rows": model.n_train,
        "storage": None if rows is None else rows.describe(),
        "bytes": 0 if rows is None else int(rows.nbytes),
        "nonzero_coefficients": int(np.count_nonzero(model.coef)),
        "coefficients": [
            {
                "term": i,
                "training_row": None if support is None else int(support[i]),
                "coefficient": float(model.coef[i]),
            }
            for i in _largest(model.coef, top)
        ],
    }


def _kernel_lines(report: dict[str, Any]) -> tuple[dict[str, str], str]:
    name = report["kernel"]
    greek = {"gamma": "γ", "coef0": "c"}
    values = [f"{greek.get(k, k)} = {v:.6g}" for k, v in report["parameters"].items()]
    rows = {
        "kernel": ", ".join([f"{name}: {FORMULAS[name]}", *values]),
        "features": f"{report['features']:,}",
        "support": _support_text(report),
        "scale": report["scale"],
    }
    if name == "precomputed":
        rows["features"] = f"{report['features']:,} columns, one for each training row"
    if report["nonzero_coefficients"] == 0:
        return rows, "no row has a coefficient: all rows score 0"
    what = "training row, counted from 0"
    if report["coefficients"][0]["training_row"] is None:
        what = "support row, counted from 0"
    which = _which(len(report["coefficients"]), report["nonzero_coefficients"])
    terms = [
        [
            f"{item['coefficient']:+.6g}",
            str(item["term"] if item["training_row"] is None else item["training_row"]),
        ]
        for item in report["coefficients"]
    ]
    last = Column(f"{what}, {which}", "left")
    return rows, Table([Column("coefficient"), last], terms).to_text()


def _support_text(report: dict[str, Any]) -> str:
    n_support, n_train = report["support_rows"], report["training_rows"]
    text = count(n_support, "row")
    text += f" of {n_train:,} ({100 * n_support / n_train:.3g} %)" if n_train else ""
    if report["storage"] is None:
        return text
    return f"{text}; {report['storage']}, {bytes_text(report['bytes'])}"
