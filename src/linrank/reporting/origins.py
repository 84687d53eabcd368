"""What all of it rests on: the data in numbers, and how the page was made."""

from __future__ import annotations

import platform
from typing import TYPE_CHECKING

import numpy as np

from linrank import __version__
from linrank.reporting import pictures
from linrank.reporting.html import absent, clear, figure, paragraph, section, table, text
from linrank.reporting.numbers import count
from linrank.tables import Column, Table

if TYPE_CHECKING:
    from linrank.data.profile import Profile
    from linrank.reporting.gather import Material

__all__ = ["data", "footer", "method"]

SHOWN_LABELS = 8  # more distinct labels than this are summarised
_WORDS = {"train": "training", "valid": "validation", "test": "test"}


def data(material: Material) -> str:
    """The section on data."""
    parts = material.parts
    columns = [Column("", "left"), *(Column(_WORDS[name], "left") for name in parts)]
    by_part = [_facts(profile) for profile in material.profiles.values()]
    rows = [[fact, *(facts[fact] for facts in by_part)] for fact in by_part[0]]
    svg = pictures.labels(material)
    caption = "How many documents have each label, and how many documents a query has."
    drawn = figure(svg, f"Test data. {caption}") if svg else absent(pictures.MISSING)
    return section("data", "The data", _lede(material), table(Table(columns, rows)), drawn)


def _lede(material: Material) -> str:
    if "train" not in material.parts:
        return (
            "What the numbers rest on. <code>--train</code> adds the training data, and looks for "
            "test queries among them."
        )
    overlap = material.overlaps.get(("test", "train"))
    if overlap is None:
        return (
            "What the numbers rest on. No test query is among the training queries, neither by its "
            "id nor by its rows."
        )
    if overlap.n_rows:
        found = "<strong>Test queries are among the training queries.</strong>"
        return f"What the numbers rest on. {found}"
    return "What the numbers rest on. Test and training queries share ids, but no rows."


def _facts(profile: Profile) -> dict[str, str]:
    data, sizes = profile.data, profile.rows_per_query
    queries, n_useless = data.queries, int(np.count_nonzero(~profile.columns.varies_in_query))
    return {
        "source": clear(data.source),
        "queries": f"{queries.n_queries:,}" + ("" if data.qid is not None else " (no qid)"),
        "documents": f"{data.n_rows:,}",
        "documents per query": f"{sizes.min():,} to {sizes.max():,}, median {np.median(sizes):,g}",
        "features": f"{data.n_features:,}",
        "features without use": f"{n_useless:,}",
        "pairs of different labels": f"{queries.n_pairs:,}",
        "queries without a pair": f"{int(np.count_nonzero(queries.n_levels == 1)):,}",
        "labels": _labels(profile),
    }


def _labels(profile: Profile) -> str:
    values, counts = profile.labels
    if len(values) > SHOWN_LABELS:
        return f"{len(values):,} distinct, {values[0]:g} to {values[-1]:g}"
    shares = 100.0 * counts / counts.sum()
    return ", ".join(f"{v:g}: {share:.0f} %" for v, share in zip(values, shares, strict=True))


def method(material: Material) -> str:
    """The section that says how to read and repeat the page."""
    options, comparison = material.options, material.comparison
    words = [
        f"<strong>Judged:</strong> {text(material.ranking.name)}, {text(material.ranking.about)}."
    ]
    if material.against is not None:
        words.append(
            f"<strong>Against:</strong> {text(material.against.name)}, "
            f"{text(material.against.about)}."
        )
    words += [
        f"<strong>Measures:</strong> {text(comparison.convention.describe())}.",
        "<strong>Worst queries:</strong> by the first measure, then by wrong pairs. The wrong "
        "pairs shown cost most DCG, (2<sup>y</sup> − 1 of one less that of the other) × (discount "
        "of one place less that of the other), no document twice; labels below 0 or above 30 count "
        "as y itself. The score of a linear model is a "
        "sum over features, so the difference of two scores is the sum of weight × "
        "difference of values.",
        f"<strong>Seeds:</strong> resampling {options.seed}. The same files and options give the "
        "same numbers.",
    ]
    lede = "What was computed, so that it can be checked and repeated."
    return section("method", "How this page was made", lede, *map(paragraph, words))


def footer(material: Material, date: str) -> str:
    """Version, date, size."""
    n_queries = count(material.test.queries.n_queries, "test query", "test queries")
    return (
        f"Made by linrank {text(__version__)} with Python {platform.python_version()} on "
        f"{text(date)} from {n_queries}. This file is complete: it loads nothing, runs no script."
    )
