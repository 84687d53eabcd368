"""linrank inspect FILE [options]

Describe a data file (rows, queries, labels, pairs, storage, features) and point out what looks
wrong in it; or describe a model: how and on what it was trained, what it does with missing values,
and its weights by importance, with the range of each feature in the training rows; of a kernel
model, its kernel, its support rows and the largest of their coefficients.
"""

from __future__ import annotations

import os
import time
from argparse import Namespace
from collections.abc import Mapping, Sequence
from math import isfinite
from typing import TYPE_CHECKING, Any

from linrank.cli.console import Console, Result
from linrank.cli.files import VALIDATED, is_model, read_data, read_model
from linrank.cli.options import Parser, add_common, declare, integer_from
from linrank.system import Column, Table, bytes_text, card, count

if TYPE_CHECKING:
    from linrank.data.dataset import Dataset
    from linrank.judging.inspect import Profile

SHOWN_LABELS = 12  # more distinct labels than this are summarized

OPTIONS = """
  FILE           data file, store, model file, or - for stdin data
  --top N:top=15  weights to show, the most important first (default: 15), or all that are not zero
"""


def configure(parser: Parser) -> None:
    """Declare the options."""
    declare(parser, OPTIONS, top=integer_from(1, "all"))
    add_common(parser)


def run(args: Namespace, console: Console) -> Result:
    """Tell a model from data by its first byte, and describe it."""
    if is_model(args.file):
        return _describe_model(args.file, None if args.top == "all" else args.top)
    return _describe_data(args, console)


# ---- data ---------------------------------------------------------------------------------------


def _describe_data(args: Namespace, console: Console) -> Result:
    from linrank.judging.inspect import Finding, Profile, findings

    data = read_data(args.file, args, console, missing=args.missing or "keep")
    absent = _missing_values(data)
    profile = Profile(data.fill("zero") if absent else data)
    found = findings(profile)
    if absent:
        found.insert(0, Finding("missing-values", _missing_message(absent, data.n_rows)))
    facts = {"kind": "data", **_data_facts(profile)}
    facts |= {"findings": [vars(finding) for finding in found], "missing": absent}
    return Result(facts, "\n".join(_data_lines(facts)))


def _missing_values(data: Dataset) -> dict[str, int]:
    """How many values are missing, by feature: those that lack any, the most first."""
    from linrank.data.frames import feature_name
    from linrank.system.resources import resolve

    counts = data.rows.scan(None, resolve(None)).n_missing
    names, base = data.feature_names, data.index_base
    order = sorted(counts.nonzero()[0].tolist(), key=lambda j: -int(counts[j]))
    return {feature_name(names, j, base, alone=False): int(counts[j]) for j in order}


def _missing_message(absent: dict[str, int], n_rows: int) -> str:
    shown = [f"{name!r} ({100 * n / n_rows:.3g} % of the rows)" for name, n in absent.items()]
    more = f" and {len(shown) - 3:,} others" if len(shown) > 3 else ""
    return (
        f"values are missing of {', '.join(shown[:3])}{more}; say with --missing what they mean "
        "when you train (here they count as 0)"
    )


def _data_facts(profile: Profile) -> dict[str, Any]:
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
        "labels": dict(zip(map(repr, labels.tolist()), counts.tolist(), strict=True)),
        "constant_features": int(columns.constant.sum()),
        "features_constant_in_every_query": int((~columns.varies_in_query).sum()),
        "repeated_rows": profile.repeats.n_rows,
        "conflicting_rows": profile.repeats.n_conflicts,
        "repeated_docids": profile.repeats.n_docids,
    }


def _data_lines(facts: dict[str, Any]) -> list[str]:
    sizes, n_useless = facts["rows_per_query"], facts["features_constant_in_every_query"]
    useless, repeated = "none: every feature varies within some query", "no row"
    if n_useless:
        useless = (
            f"{n_useless:,} features constant in every query, of which "
            f"{facts['constant_features']:,} in all rows"
        )
    if facts["repeated_rows"]:
        n_conflicts = facts["conflicting_rows"]
        repeated = f"{facts['repeated_rows']:,} rows ({n_conflicts:,} with another label)"
    values = [f"{float(value):g}" for value in facts["labels"]]
    labels = f"{len(values):,} distinct, from {values[0]} to {values[-1]}"
    if len(values) <= SHOWN_LABELS:
        counts = facts["labels"].values()
        labels = ", ".join(f"{value}: {n:,}" for value, n in zip(values, counts, strict=True))
    spread = f"mean {sizes['mean']:,.1f}, median {sizes['median']:,g}"
    n_single, n_level = facts["single_row_queries"], facts["single_level_queries"]
    weighted = ", weighted" if facts["has_weights"] else ""
    no_qid = "" if facts["has_qid"] else " (no qid in the file)"
    rows = [
        ("file", facts["source"]),
        ("rows", f"{facts['rows']:,}{weighted}"),
        ("features", f"{facts['features']:,}, {100 * facts['density']:.3g} % non-zero"),
        ("storage", f"{facts['storage']}, {bytes_text(facts['bytes'])}"),
        ("queries", f"{facts['queries']:,}{no_qid}"),
        ("", f"rows per query: {sizes['min']:,} to {sizes['max']:,}, {spread}"),
        ("", f"without pairs: {n_level:,} with one level, of which {n_single:,} with one row"),
        ("labels", labels),
        ("levels", f"at most {facts['levels_per_query_max']:,} in a query"),
        ("pairs", f"{facts['pairs']:,}"),
        ("no use", useless),
        ("repeated", repeated),
    ]
    if not facts["rows_grouped_by_query"]:
        rows.append(("note", "the rows of a query are not together; they are grouped in memory"))
    rows += [("look at", f"[{one['code']}] {one['message']}") for one in facts["findings"]]
    return card(rows if facts["findings"] else [*rows, ("", "nothing suspicious found")])


# ---- models -------------------------------------------------------------------------------------

# What a family has to say: facts for a program, lines for a person, and a table or a sentence.
Description = tuple[dict[str, Any], dict[str, str], str]

MISSING_TEXT = {
    "error": "refused",
    "zero": "count as 0",
    "mean": "count as the mean of the feature in the training rows",
    "indicator": "count as 0, and add a weight of their own",
}
SIZES = {"n_rows": ("row",), "n_queries": ("query", "queries"), "n_pairs": ("pair",)}


def _describe_model(path: str, top: int | None) -> Result:
    """What there is to say of a model, with its ``top`` largest numbers."""
    model = read_model(path)
    # A model itself has no date, so that training twice gives the same bytes.
    written = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(os.stat(path).st_mtime))
    describe = {"linear": _linear, "additive": _additive, "kernel": _kernel}[model.kind]
    own, lines, table = describe(model, top)
    facts = {
        "kind": "model",
        "family": model.kind,
        "trained_with": model.linrank_version,
        "scale": model.scaling.kind,
        "training": dict(model.training),
        "features": model.n_features,
        **own,
        "file": path,
        "written": written,
    }
    rows = {
        "model": f"{model.kind}, trained with linrank {model.linrank_version}",
        "file": f"{path}, of {written}",
        **lines,
        **_training_lines(dict(model.training)),
    }
    return Result(facts, "\n".join([*card(list(rows.items())), table]))


def _training_lines(training: dict[str, Any]) -> dict[str, str]:
    """What the model was trained and measured on, and all else that is known of its training."""
    known = {key: value for key, value in training.items() if value is not None}
    sizes = [count(known.pop(key), *words) for key, words in SIZES.items() if key in known]
    if "fingerprint" in known:
        sizes.append(f"fingerprint {known.pop('fingerprint')}")
    measures = {key: known.pop(key) for key in list(known) if key.startswith(VALIDATED)}
    lines = {
        "trained on": ", ".join(sizes),
        "validation": "   ".join(
            f"{key.removeprefix(VALIDATED)} {value:.4f}" for key, value in measures.items()
        ),
    }
    objective, gap = known.get("objective"), known.get("gap")
    if isinstance(objective, float) and isinstance(gap, float) and isfinite(gap):
        from linrank.solvers.result import distance_text

        known["gap"] = distance_text(objective, gap, bool(known.get("converged", True)))
    lines |= {key: _value_text(value) for key, value in known.items()}
    return {key: text for key, text in lines.items() if text}


def _value_text(value: Any) -> str:
    """A value for a reader; --json has all digits."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _largest(coef: Any, top: int | None) -> list[int]:
    """Where the numbers are that are not 0, the largest first."""
    import numpy as np

    nonzero = np.flatnonzero(coef)
    by_size = np.argsort(-np.abs(coef[nonzero]), kind="stable")
    places: list[int] = nonzero[by_size[:top]].tolist()
    return places


def _table(
    items: Sequence[Mapping[str, Any]],
    columns: Mapping[str, str],
    key: str,
    last: str,
    n_all: int,
    notes: Sequence[str] = (),
) -> str:
    """What a model knows, one item per line: texts by heading, then the name of the item."""
    n = len(items)
    which = f"the {n:,} largest of {n_all:,}" if n < n_all else f"all {n:,}"
    headings = [Column(name, "left" if name == "direction" else "right") for name in columns]
    headings.append(Column(f"{last}, {which} that are not zero", "left"))
    names = [str(item[key]) for item in items]
    rows = [
        [
            *(text.format(**item) for text in columns.values()),
            name if name.isprintable() else repr(name),
        ]
        for item, name in zip(items, names, strict=True)
    ]
    return Table(headings, rows, notes=notes).to_text()


def _linear(model: Any, top: int | None) -> Description:
    from linrank.data.frames import feature_name

    importance, known, missing = model.importances, model.statistics, model.missing
    order = abs(model.coef) if importance is None else importance
    # A weight without spread has no importance, and is shown all the same; so is a feature that
    # only counts where it is missing.
    used = _largest(order, None) + _largest(model.coef * (order == 0.0), None)
    if missing.weights is not None:
        used += _largest(missing.weights * (model.coef == 0.0), None)
    shown, base = used[:top], model.training.get("index_base")
    values: dict[str, Any] = {"weight": model.coef}
    columns, notes = {"weight": "{weight:+.6g}"}, []
    if missing.is_filled:
        values["if_missing"] = gains = missing.contributions(model.coef)
        if any(gains[shown]):
            columns["if missing"] = "{if_missing:+.4g}"
            notes.append("if missing: what a row gains that lacks the feature")
    if importance is not None:
        values |= {"importance": importance, "share": importance / (importance.sum() or 1.0)}
        columns["importance"] = "{share:.1%}"
        notes.append("importance: share of |weight| x deviation of the feature, of all features")
    if known is not None:
        values |= {"mean": known.mean, "std": known.variance**0.5}
        values |= {"low": known.low, "high": known.high}
        columns["training range"] = "{low:.4g} to {high:.4g}"
    weights = [
        {"feature": feature_name(model.feature_names, j, base, alone=False)}
        | {key: float(array[j]) for key, array in values.items()}
        for j in shown
    ]
    facts = {
        "missing": missing.kind,
        "nonzero_weights": model.n_nonzero,
        "density": model.density,
        "used_features": len(used),
        "weights": weights,
    }
    share = f"{model.n_nonzero:,} with a weight ({100 * model.density:.3g} %)"
    lines = {
        "features": f"{model.n_features:,}, {share}",
        "scale": model.scaling.kind,
        "missing values": MISSING_TEXT[missing.kind],
    }
    if not used:
        return facts, lines, "no feature has a weight: all rows score 0"
    return facts, lines, _table(weights, columns, "feature", "feature", len(used), notes)


def _additive(model: Any, top: int | None) -> Description:
    import numpy as np

    from linrank.data.frames import feature_name

    known, base = model.feature_names, model.training.get("index_base")
    points = [model.curve(j) for j in range(model.n_features)]
    spans = np.array([float(np.ptp(y)) for _, y in points])
    curves = [
        {
            "feature": feature_name(known, j, base, alone=False),
            "span": float(spans[j]),
            "direction": _direction(points[j][1]),
            "x": points[j][0].tolist(),
            "y": points[j][1].tolist(),
        }
        for j in _largest(spans, top)
    ]
    n_landmarks = 0 if model.interactions is None else int(model.interactions.coef.size)
    facts = {
        "missing": model.missing.kind,
        "nonzero_curves": model.n_nonzero,
        "density": model.density,
        "landmarks": n_landmarks,
        "curves": curves,
    }
    more = f", and interactions of {n_landmarks:,} landmarks" if n_landmarks else ""
    share = f"{model.n_nonzero:,} with a curve ({100 * model.density:.3g} %)"
    lines = {
        "features": f"{model.n_features:,}, {share}{more}",
        "missing values": MISSING_TEXT[model.missing.kind],
    }
    if not curves:
        return facts, lines, "no feature has a curve"
    columns = {
        "span": "{span:.6g}",
        "direction": "{direction}",
        "training range": "{x[0]:.4g} to {high:.4g}",
    }
    notes = ["span: largest less least value of the curve over the training range"]
    items = [curve | {"high": curve["x"][-1]} for curve in curves]
    return facts, lines, _table(items, columns, "feature", "feature", model.n_nonzero, notes)


def _direction(y: Any) -> str:
    """Whether a curve rises, falls or does both, but for rounding."""
    steps = y[1:] - y[:-1]
    least = 1e-12 * (y.max() - y.min())
    rises, falls = bool((steps > least).any()), bool((steps < -least).any())
    return "both" if rises and falls else "rises" if rises else "falls" if falls else "constant"


FORMULAS = {
    "rbf": "exp(-γ‖a - b‖²)",
    "poly": "(γ a·b + c)^degree",
    "sigmoid": "tanh(γ a·b + c)",
    "linear": "a·b",
    "precomputed": "given as a matrix",
}


def _kernel(model: Any, top: int | None) -> Description:
    import numpy as np

    rows, support, kernel, n_train = model.rows, model.support, model.kernel, model.n_train
    n_nonzero = int(np.count_nonzero(model.coef))
    coefficients = [
        {
            "term": i,
            "training_row": None if support is None else int(support[i]),
            "coefficient": float(model.coef[i]),
        }
        for i in _largest(model.coef, top)
    ]
    facts = {
        "kernel": kernel.name,
        "parameters": kernel.parameters,
        "support_rows": model.n_support,
        "training_rows": n_train,
        "storage": None if rows is None else rows.describe(),
        "bytes": 0 if rows is None else int(rows.nbytes),
        "nonzero_coefficients": n_nonzero,
        "coefficients": coefficients,
    }
    greek = {"gamma": "γ", "coef0": "c"}
    values = [f"{greek.get(name, name)} = {v:.6g}" for name, v in kernel.parameters.items()]
    of_all = f" of {n_train:,} ({100 * model.n_support / n_train:.3g} %)" if n_train else ""
    size = "" if rows is None else f"; {rows.describe()}, {bytes_text(int(rows.nbytes))}"
    columns = " columns, one for each training row" if kernel.name == "precomputed" else ""
    lines = {
        "kernel": ", ".join([f"{kernel.name}: {FORMULAS[kernel.name]}", *values]),
        "features": f"{model.n_features:,}{columns}",
        "support": f"{count(model.n_support, 'row')}{of_all}{size}",
        "scale": model.scaling.kind,
    }
    if not coefficients:
        return facts, lines, "no row has a coefficient: all rows score 0"
    key, row = ("term", "support row") if support is None else ("training_row", "training row")
    text = {"coefficient": "{coefficient:+.6g}"}
    return facts, lines, _table(coefficients, text, key, f"{row}, counted from 0", n_nonzero)
