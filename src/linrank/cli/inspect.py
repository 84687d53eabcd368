"""``linrank inspect``: what is in a data file or a model, and what looks wrong."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from linrank.cli.arguments import add_reading, add_reporting, positive_int
from linrank.cli.console import Console, bytes_text
from linrank.cli.main import OK
from linrank.cli.models import is_model, read_model
from linrank.cli.reading import read_data
from linrank.cli.streams import show_standard, write_standard

if TYPE_CHECKING:
    from linrank.data.dataset import Dataset
    from linrank.judging.inspect import Finding, Profile

SHOWN_LABELS = 12  # more distinct labels than this are summarised

DESCRIPTION = """\
Describe a data file (rows, queries, labels, pairs, storage, features) and point out what looks
wrong in it; or describe a model: how and on what it was trained, what it does with missing values,
and its weights by importance, with the range of each feature in the training rows; of a kernel
model, its kernel, its support rows and the largest of their coefficients.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.description = DESCRIPTION
    parser.add_argument(
        "file", metavar="FILE", help="data file, store, model file, or - for stdin data"
    )
    parser.add_argument(
        "--top",
        type=_positive_or_all,
        default=15,
        metavar="N",
        help="weights to show, the most important first (default: 15), or all that are not zero",
    )
    add_reading(parser)
    add_reporting(parser)


def _positive_or_all(text: str) -> int | None:
    """An integer ≥ 1, or None for ``all``."""
    return None if text == "all" else positive_int(text)


def run(args: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    """Tell a model from data by its first byte, and describe it."""
    if is_model(args.file):
        from linrank.cli.model_card import describe_model

        report, lines = describe_model(read_model(args.file), args.top, args.file)
    else:
        from linrank.judging.inspect import Profile, findings

        console = Console(quiet=args.quiet, verbose=args.verbose)
        data = read_data(args.file, args, console, missing=args.missing or "keep")
        absent = _absent(data)
        profile = Profile(data.filled("zero") if absent else data)
        report = _data_report(profile, [*_missing_finding(data, absent), *findings(profile)])
        report["missing"] = absent
        lines = _data_lines(report)
    if args.json:
        import json

        write_standard(json.dumps(report, ensure_ascii=False) + "\n")
    else:
        show_standard("\n".join(lines) + "\n")
    return OK


def _absent(data: Dataset) -> dict[str, int]:
    """How many values are missing, by feature: those that lack any, the most first."""
    from linrank.data.missing import missing_counts

    counts = missing_counts(data.rows)
    names, base = data.feature_names, data.index_base or 0
    order = sorted(counts.nonzero()[0].tolist(), key=lambda j: -int(counts[j]))
    return {names[j] if names else str(j + base): int(counts[j]) for j in order}


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


def _data_report(profile: Profile, found: list[Finding]) -> dict[str, Any]:
    import numpy as np

    from linrank import __version__

    data, queries, columns = profile.data, profile.data.queries, profile.columns
    sizes, (labels, counts) = profile.rows_per_query, profile.labels
    n_cells = data.n_rows * data.n_features
    return {
        "command": "inspect",
        "linrank": __version__,
        "kind": "data",
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
        "findings": [{"code": finding.code, "message": finding.message} for finding in found],
    }


def _data_lines(report: dict[str, Any]) -> list[str]:
    sizes = report["rows_per_query"]
    n_useless = report["features_constant_in_every_query"]
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
            f"{report['repeated_rows']:,} rows ({report['conflicting_rows']:,} with another label)"
            if report["repeated_rows"]
            else "no row",
        ),
    ]
    lines = [f"{label:<10}{text}" for label, text in rows]
    if not report["rows_grouped_by_query"]:
        lines.append("note      the rows of a query are not together; they are grouped in memory")
    found = [f"look at   [{item['code']}] {item['message']}" for item in report["findings"]]
    return lines + (found or ["          nothing suspicious found"])


def _labels_text(histogram: dict[str, int]) -> str:
    if len(histogram) <= SHOWN_LABELS:
        return ", ".join(f"{float(value):g}: {n:,}" for value, n in histogram.items())
    values = [float(value) for value in histogram]
    return f"{len(values):,} distinct, from {values[0]:g} to {values[-1]:g}"
