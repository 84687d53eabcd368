"""What a dataset looks like: its columns, its queries, its repeated rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank.data import CsrRows, Dataset, Missing, Queries, feature_name, varying_columns
from linrank.metrics import Convention, Evaluation, parse
from linrank.metrics import convention as named_convention
from linrank.metrics.evaluate import evaluate_queries
from linrank.models.linear import LinearModel
from linrank.pairs import Cells, distinct
from linrank.system.resources import cached_property, count, resolve

BLOCK = 1 << 20  # values looked at in one step
WORK = 1 << 28  # values compared for the agreement of features with labels: seconds


@dataclass(frozen=True)
class Columns:
    """Per feature: its range, its non-zero values, and whether it can order anything."""

    minimum: NDArray[np.float64]
    maximum: NDArray[np.float64]
    n_nonzero: NDArray[np.int64]
    varies_in_query: NDArray[np.bool_]  # False: equal on all rows of each query, no pair sees it

    @cached_property
    def constant(self) -> NDArray[np.bool_]:
        """One value in all rows."""
        return np.asarray(self.minimum == self.maximum)


@dataclass(frozen=True)
class Repeats:
    """Rows of a query that repeat an earlier row of it, in features or in document id."""

    n_rows: int  # the features are those of an earlier row of the query
    n_conflicts: int  # ... and its label is another one
    n_docids: int  # the docid is that of an earlier row of the query


@dataclass(frozen=True, eq=False)
class Profile:
    """The measurements behind ``linrank inspect``, each computed when first asked for."""

    data: Dataset

    @cached_property
    def columns(self) -> Columns:
        """Range and variation of every feature."""
        rows = self.data.rows
        found = rows.scan(None, resolve(None)).statistics
        varies = varying_columns(rows, self.data.queries)
        return Columns(found.low, found.high, found.n_nonzero, varies)

    @cached_property
    def labels(self) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """The distinct labels, ascending, and how many rows have each."""
        values, counts = np.unique(self.data.labels, return_counts=True)
        return values, counts.astype(np.int64)

    @cached_property
    def rows_per_query(self) -> NDArray[np.int64]:
        """The size of every query."""
        return np.diff(self.data.queries.offsets)

    @cached_property
    def row_hashes(self) -> NDArray[np.uint64]:
        """A number for the features of each row: the same for equal rows, however stored.

        ``Σ_j r_j·mix(x_ij)`` mod 2⁶⁴: different rows collide with probability about 2⁻⁶⁴.
        """
        rows = self.data.rows
        multiplier = _mix(np.arange(1, rows.shape[1] + 1)) | np.uint64(1)
        if isinstance(rows, CsrRows):
            terms = _mix(rows.values) * multiplier[rows.columns]
            total = np.concatenate((np.zeros(1, np.uint64), np.cumsum(terms, dtype=np.uint64)))
            return total[rows.offsets[1:]] - total[rows.offsets[:-1]]  # modulo 2⁶⁴
        hashes = np.empty(rows.shape[0], np.uint64)
        for block in _blocks(*rows.shape):
            hashes[block] = (_mix(rows.values[block]) * multiplier).sum(axis=1, dtype=np.uint64)
        return hashes

    @cached_property
    def repeats(self) -> Repeats:
        """Repeated rows and document ids, query by query."""
        queries, docids = self.data.queries, self.data.docids or []
        query = queries.query_of_rows()
        named = [(q, docid) for q, docid in zip(query.tolist(), docids, strict=False) if docid]
        keys = (self.data.labels, self.row_hashes, query)
        order = np.lexsort(keys)
        is_new_label, is_new_row, is_new_query = (np.diff(key[order]) != 0 for key in keys)
        same = ~(is_new_row | is_new_query)
        n_rows, n_conflicts = int(same.sum()), int((same & is_new_label).sum())
        return Repeats(n_rows, n_conflicts, len(named) - len(set(named)))

    def agreement(self, n_samples: int = 20_000) -> tuple[NDArray[np.float64], int]:
        """Per feature, the share of sampled pairs it orders as the label does; and their number.

        A pair that the feature ties counts for neither side; 1 or 0 means that the feature alone
        gives the label's order (or its reverse).
        """
        data, values = self.data, self.data.rows.to_user()
        per_row = data.rows.values.size // data.n_rows  # values that a row has on average
        n_samples = min(n_samples, max(1000, WORK // max(1, per_row)))
        upper, lower = sample_pairs(data.queries, n_samples)
        balance = np.zeros(data.n_features)  # pairs in order less those against
        for block in _blocks(len(upper), 2 * per_row if data.rows.is_sparse else per_row):
            # NumPy and SciPy both have these comparisons.
            up, down = values[upper[block]], values[lower[block]]
            ones = np.ones(up.shape[0])
            balance += ones @ (up > down) - ones @ (up < down)
        return 0.5 + 0.5 * balance / max(1, len(upper)), len(upper)


def sample_pairs(queries: Queries, n: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows (upper, lower) of ``n`` random pairs, the same every time; of all if there are fewer."""
    cells = Cells.of(queries)
    blocks = cells.beyond(0)
    if blocks.n_pairs > n:
        numbers = distinct(blocks.n_pairs, n, np.random.default_rng(0))
    else:
        numbers = np.arange(blocks.n_pairs)
    upper, lower = blocks.pairs(numbers)
    return cells.rows[upper], cells.rows[lower]


def _blocks(n_rows: int, width: int) -> Iterator[slice]:
    step = max(1, BLOCK // max(width, 1))
    for start in range(0, n_rows, step):
        yield slice(start, min(start + step, n_rows))


def _mix(values: NDArray[Any]) -> NDArray[np.uint64]:
    """Scramble the bits of each number; 0 (and -0) to 0, so that dense and CSR rows agree."""
    return _scramble((values.astype(np.float64) + 0.0).view(np.uint64))


def _scramble(bits: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Every bit depends on all lower ones, twice; 0 stays 0."""
    bits = bits * np.uint64(0x9E3779B97F4A7C15)
    bits ^= bits >> np.uint64(29)
    bits *= np.uint64(0xBF58476D1CE4E5B9)
    bits ^= bits >> np.uint64(32)
    return bits


SCALE_RATIO = 1e3  # ranges further apart than this make one C unfit for all features
FLOAT32_INTEGERS = 2.0**24  # beyond it float32 no longer tells whole numbers apart
LABEL_AGREEMENT = 0.99  # share of pairs that no honest feature orders like the label
MANY_GRADES = 30  # 2^label is the gain of NDCG: beyond this one document outweighs all others


@dataclass(frozen=True)
class Finding:
    """One observation that deserves a second look."""

    code: str
    message: str
    grave: bool = False


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
    return [*_of_queries(profile), *_of_features(profile), *_of_rows(profile)]


def _of_queries(profile: Profile) -> Iterator[Finding]:
    queries, n_single = profile.data.queries, int((profile.rows_per_query == 1).sum())
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


def _of_features(profile: Profile) -> Iterator[Finding]:
    columns, (share, n_pairs) = profile.columns, profile.agreement()
    tells = np.flatnonzero(np.maximum(share, 1 - share) >= LABEL_AGREEMENT)
    if len(tells) and n_pairs >= 100:
        yield Finding(
            "label-like-feature",
            f"{_features(profile, tells)} order{'s' if len(tells) == 1 else ''} at least "
            f"{100 * LABEL_AGREEMENT:g} % of the pairs as the label does: "
            "is the label among the features?",
        )
    span = (columns.maximum - columns.minimum)[columns.varies_in_query]
    if len(span) and span.max() > SCALE_RATIO * span.min():
        yield Finding(
            "scales-differ",
            f"the ranges of the features differ by a factor of {span.max() / span.min():.0e}; "
            "training evens them out, but for sparse rows or --scale none",
        )
    largest = np.maximum(np.abs(columns.minimum), np.abs(columns.maximum))
    huge = np.flatnonzero(largest > FLOAT32_INTEGERS)
    if len(huge) and profile.data.rows.dtype == np.float32:
        yield Finding(
            "huge-values",
            f"{_features(profile, huge)}: values up to {largest[huge].max():.2g}, where float32 no "
            "longer tells whole numbers apart; consider --dtype float64",
        )
    same_in_query = np.flatnonzero(~columns.varies_in_query & ~columns.constant)
    if len(same_in_query) and profile.data.qid is not None:
        yield Finding(
            "constant-in-query",
            f"{_features(profile, same_in_query)}: the same value in all rows of each query; "
            "no pair sees it, its weight will be 0",
        )


def _of_rows(profile: Profile) -> Iterator[Finding]:
    (values, _), repeats = profile.labels, profile.repeats
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
    if repeats.n_conflicts:
        rows = count(repeats.n_conflicts, "row repeats", "rows repeat")
        yield Finding(
            "conflicting-rows",
            f"{rows} the features of another row of the query with another label: no model can "
            "order those pairs",
        )
    if repeats.n_docids:
        rows = count(repeats.n_docids, "row repeats", "rows repeat")
        yield Finding("repeated-docid", f"{rows} a document id of the query")


def _features(profile: Profile, columns: NDArray[np.int64] | Sequence[int], limit: int = 5) -> str:
    """``feature 3``, ``features 3, 7, 9`` or ``features 3, 7, 9, 12, 20 and 41 more``."""
    names, base = profile.data.feature_names, profile.data.index_base
    shown = [feature_name(names, int(j), base, alone=False) for j in columns[:limit]]
    more = f" and {len(columns) - limit:,} more" if len(columns) > limit else ""
    return f"feature{'s' if len(columns) > 1 else ''} {', '.join(shown)}{more}"


@dataclass(frozen=True)
class Overlap:
    """Queries of a dataset that another one has as well.

    Attributes
    ----------
    n_queries : int
        Queries of the dataset.
    n_ids : int
        Those whose id is an id of the other.
    n_rows : int
        Those whose rows, features and labels, are the rows of a query of the other: proof that
        the same query is in both, whatever its id.
    example : object
        The id of one of them, one with equal rows where there is one; None if there are none.
    """

    n_queries: int
    n_ids: int
    n_rows: int
    example: Any

    def __bool__(self) -> bool:
        return bool(self.n_ids or self.n_rows)

    def message(self, own: str, other: str) -> str:
        """What the two share: the very rows, which proves it, or ids only."""
        such = "" if self.example is None else f", such as {self.example}"
        leak = "what is learned leaks into what is measured, and the results are too good"
        if self.n_rows:
            are = "is" if self.n_rows == 1 else "are"
            return (
                f"{self.n_rows:,} of the {self.n_queries:,} queries of {own} {are} in {other} "
                f"too, row by row{such}: {leak}"
            )
        occurs = "occurs" if self.n_ids == 1 else "occur"
        return (
            f"{self.n_ids:,} of the {self.n_queries:,} query ids of {own} also {occurs} in "
            f"{other}{such}, with other rows: if they are the same queries, {leak}; if every file "
            "numbers its own queries from the beginning, there is no harm"
        )


def shared_queries(data: Dataset, other: Dataset) -> Overlap:
    """The queries of ``data`` that ``other`` has as well.

    Queries without ids are compared by their rows alone, and so is a query of rows that all look
    the same.

    Examples
    --------
    >>> from linrank.data.dataset import Dataset
    >>> train = Dataset.of([[1.0], [2.0], [3.0], [4.0]], [0, 1, 0, 1], qid=["a", "a", "b", "b"])
    >>> test = Dataset.of([[3.0], [4.0], [5.0], [6.0]], [0, 1, 0, 1], qid=["b", "b", "c", "c"])
    >>> shared_queries(test, train)
    Overlap(n_queries=2, n_ids=1, n_rows=1, example='b')
    """
    by_id = np.zeros(data.queries.n_queries, bool)
    ids, others = data.queries.ids, other.queries.ids
    if ids is not None and others is not None:
        known = set(others.tolist())
        by_id = np.array([one in known for one in ids.tolist()], bool)
    by_rows = np.isin(_contents(data), _contents(other))
    example = None
    for found in (by_id & by_rows, by_rows, by_id):
        if example is None and found.any() and ids is not None:
            example = ids.tolist()[int(np.argmax(found))]
    return Overlap(len(by_id), int(by_id.sum()), int(by_rows.sum()), example)


def _contents(data: Dataset) -> NDArray[np.uint64]:
    """A number for the rows of each query, whatever their order; equal rows, equal numbers.

    Row hashes are mixed with the labels and once more before they are summed, modulo 2⁶⁴.
    """
    queries = data.queries
    # A row of zeros counts as well: one of them is not two.
    hashes = _scramble(Profile(data).row_hashes + np.uint64(1)) + _mix(data.labels)
    by_position = queries.gather(_scramble(hashes))
    return np.asarray(np.add.reduceat(by_position, queries.offsets[:-1], dtype=np.uint64))


def judge(
    data: Dataset, scores: Any, metrics: Any, rules: Convention, n_jobs: int | None = None
) -> Evaluation:
    """The measures of scores of the rows of a dataset."""
    docid = data.all_docids if rules.ties == "docid" else None
    options: dict[str, Any] = {"convention": rules, "docid": docid, "n_jobs": n_jobs}
    return evaluate_queries(data.queries, data.labels, scores, metrics=metrics, **options)


def signed_measure(
    data: Dataset, scores: Any, metric: str, rules: Convention, n_jobs: int | None = None
) -> float:
    """One measure of scores, signed so that higher is better; -∞ where it is undefined."""
    measure = parse(metric)
    (value,) = judge(data, scores, measure, rules, n_jobs).values()
    if np.isnan(value):
        return -np.inf
    return value if measure.higher_is_better else 0.0 - value


# ---- features alone -----------------------------------------------------------------------------

CANDIDATES = 200  # features that are tried as rankers; of more, those that agree most with labels


def best_feature(
    train: Dataset, scoring: str, convention: str | Convention, n_jobs: int | None = None
) -> tuple[int, float]:
    """The feature that alone ranks the queries best by ``scoring``: its column, and ±1.

    Of more than 200 features, those are tried that order most of 20,000 sampled pairs as the labels
    do, or fewest. Equal values are averaged over their orders: rows that a file lists by label must
    not help.
    """
    rules = named_convention(convention, ties="average")
    share, _ = Profile(train).agreement()
    candidates = np.argsort(-np.abs(share - 0.5), kind="stable")[:CANDIDATES]
    rows = replace(train, feature_names=None)
    best, best_value = (int(candidates[0]), 1.0), -np.inf
    for j in candidates.tolist():
        for sign in (1.0, -1.0):
            scores = unit_model(train.n_features, j, sign).predict(rows, n_jobs=n_jobs)
            value = signed_measure(train, scores, scoring, rules, n_jobs)
            if value > best_value:
                best, best_value = (j, sign), value
    return best


def unit_model(n_features: int, place: int, sign: float) -> LinearModel:
    """The model that ranks by one feature, the largest values first, or the smallest.

    A missing value counts as 0.
    """
    coef = np.zeros(n_features)
    coef[place] = sign
    return LinearModel(coef, missing=Missing("zero"))
