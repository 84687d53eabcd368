"""What looks wrong in a dataset, and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from linrank.data.profile import Profile

__all__ = ["Finding", "findings"]

SCALE_RATIO = 1e3  # ranges further apart than this make one C unfit for all features
FLOAT32_INTEGERS = 2.0**24  # beyond it float32 no longer tells whole numbers apart
LABEL_AGREEMENT = 0.99  # share of pairs that no honest feature orders like the label
MANY_GRADES = 30  # 2^label is the gain of NDCG: beyond this one document outweighs all others


@dataclass(frozen=True)
class Finding:
    """One observation that deserves a second look."""

    code: str
    message: str


def findings(profile: Profile) -> list[Finding]:
    """Everything suspicious, the gravest first.

    Parameters
    ----------
    profile : Profile
        The measurements of the dataset.

    Returns
    -------
    list of Finding
        Empty when nothing stands out.
    """
    checks = (_queries, _label_like, _scales, _useless, _labels, _repeats)
    return [finding for check in checks for finding in check(profile)]


def _queries(profile: Profile) -> Iterator[Finding]:
    queries = profile.data.queries
    sizes = profile.rows_per_query
    n_single = int((sizes == 1).sum())
    if queries.n_pairs == 0:
        yield Finding("no-pairs", "no query has two different labels: there is nothing to train on")
    if profile.data.qid is None:
        yield Finding("no-qid", "no qid: all rows are compared with each other, as one query")
    elif n_single > max(1, queries.n_queries // 2):
        yield Finding(
            "qid-like-row-id",
            f"{n_single:,} of {queries.n_queries:,} queries have a single row: "
            "qid looks like a row or document id",
        )
    share = queries.pairs_per_query.max(initial=0) / max(queries.n_pairs, 1)
    if queries.n_queries >= 10 and share > 0.5:
        yield Finding(
            "dominant-query",
            f"one query holds {100 * share:.0f} % of the pairs and rules the model; "
            "consider --query-normalization pairs",
        )


def _label_like(profile: Profile) -> Iterator[Finding]:
    share, n_pairs = profile.agreement()
    if n_pairs < 100:
        return
    tells = np.flatnonzero(np.maximum(share, 1 - share) >= LABEL_AGREEMENT)
    if len(tells):
        yield Finding(
            "label-like-feature",
            f"{_named(profile, tells)} order{'s' if len(tells) == 1 else ''} at least "
            f"{100 * LABEL_AGREEMENT:g} % of the pairs as the label does: "
            "is the label among the features?",
        )


def _scales(profile: Profile) -> Iterator[Finding]:
    columns = profile.columns
    span = columns.span[columns.varies_in_query]
    if len(span) and span.max() > SCALE_RATIO * span.min():
        yield Finding(
            "scales-differ",
            f"the ranges of the features differ by a factor of {span.max() / span.min():.0e}; "
            "consider --scale standard",
        )
    largest = np.maximum(np.abs(columns.minimum), np.abs(columns.maximum))
    huge = np.flatnonzero(largest > FLOAT32_INTEGERS)
    if len(huge):
        yield Finding(
            "huge-values",
            f"{_named(profile, huge)}: values up to {largest[huge].max():.2g}, where float32 no "
            "longer tells whole numbers apart; consider --dtype float64 and --scale standard",
        )


def _useless(profile: Profile) -> Iterator[Finding]:
    columns = profile.columns
    same_in_query = np.flatnonzero(~columns.varies_in_query & ~columns.constant)
    if len(same_in_query) and profile.data.qid is not None:
        yield Finding(
            "constant-in-query",
            f"{_named(profile, same_in_query)}: the same value in all rows of each query; "
            "no pair sees it, its weight will be 0",
        )


def _labels(profile: Profile) -> Iterator[Finding]:
    values, _ = profile.labels
    if values[0] < 0:
        yield Finding(
            "negative-label",
            f"labels go down to {values[0]:g}; training is unaffected, metrics with gain "
            "2^label - 1 need labels ≥ 0",
        )
    if values[-1] > MANY_GRADES:
        yield Finding(
            "large-label",
            f"labels go up to {values[-1]:g}; training only uses their order, but with gain "
            "2^label - 1 NDCG sees the largest ones alone",
        )


def _repeats(profile: Profile) -> Iterator[Finding]:
    repeats = profile.repeats
    if repeats.n_conflicts:
        yield Finding(
            "conflicting-rows",
            f"{_rows(repeats.n_conflicts)} the features of another row of the query with another "
            "label: no model can order those pairs",
        )
    if repeats.n_docids:
        yield Finding(
            "repeated-docid",
            f"{_rows(repeats.n_docids)} a document id of the query",
        )


def _rows(number: int) -> str:
    return "1 row repeats" if number == 1 else f"{number:,} rows repeat"


def _named(profile: Profile, columns: NDArray[np.int64] | Sequence[int], limit: int = 5) -> str:
    """``feature 3``, ``features 3, 7, 9`` or ``features 3, 7, 9, 12, 20 and 41 more``."""
    names, base = profile.data.feature_names, profile.data.index_base
    # Without names the number in the file, or of the column.
    shown = [names[j] if names else str(j + (base or 0)) for j in columns[:limit]]
    more = f" and {len(columns) - limit:,} more" if len(columns) > limit else ""
    return f"feature{'s' if len(columns) > 1 else ''} {', '.join(shown)}{more}"
