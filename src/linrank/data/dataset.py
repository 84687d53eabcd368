"""Dataset: rows, labels and query ids, validated once, at construction."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from linrank.choices import COLUMN_NAMES, MISSING
from linrank.data import frames
from linrank.data.missing import Filling
from linrank.data.queries import Queries, as_ids, as_sizes
from linrank.data.rows import Array, CsrRows, DenseRows, Rows, as_rows, check_values, join_offsets
from linrank.data.words import Comments, Words, naming_documents
from linrank.errors import DataWarning, check_one_of, warn
from linrank.system.device import check_device, device_of
from linrank.system.resources import cached_property, check_fits, resolve

# As tables spell them, in any case. In a matrix of features `group`, `query`, `y` or `target` may
# well be one: these are known by their values.
_NAMES = frozenset(COLUMN_NAMES["qid"]) - {"group", "query"}
_LABELS = frozenset(COLUMN_NAMES["label"]) - {"y", "target"}
_FEWEST_EQUAL = 20  # rows: fewer may agree by chance


def check_no_query_ids(X: Any, known: Iterable[str] | None = None) -> None:
    """Raise ValueError for a table that holds query ids beside its features.

    Trained on as one query, the rows would be told apart by the query they belong to, and at
    scoring a column of ids would stand where another feature stood.

    Parameters
    ----------
    X : Any
        Features; what is no table has no names and passes.
    known : iterable of str or None
        Features of a model that is to score `X`: it was trained on these columns, whatever they
        are called. None while training.
    """
    if not frames.is_frame(X):
        return
    trained_on = () if known is None else tuple(known)
    for name in frames.all_column_names(X):
        if not isinstance(name, str) or name.lower() not in _NAMES or name in trained_on:
            continue
        if known is None:
            raise ValueError(
                f"X has a column named {name!r} but qid is None; pass it as qid=X[{name!r}] and "
                "drop the column from X (rename it if it is a feature)"
            )
        raise ValueError(
            f"X has a column named {name!r}, which the model was not trained on; drop it from X "
            f"(pass it as qid=X[{name!r}] where a method takes qid)"
        )


def warn_of_leaks(data: Dataset) -> None:
    """Warn of columns that are the labels or the query ids, by their names or value for value."""
    rows, names = data.rows, data.feature_names
    for what, values, known in (("y", data.labels, _LABELS), ("qid", data.qid, _NAMES)):
        if values is None:
            continue
        found = dict.fromkeys(j for j, n in enumerate(names or ()) if n.lower() in known)
        is_number = values.dtype.kind in "iuf" and len(values) >= _FEWEST_EQUAL
        if is_number and (values != values[0]).any():
            found |= dict.fromkeys(_columns_like(rows, values))
        if found:
            told = ", ".join(repr(names[j]) if names else str(j) for j in list(found)[:5])
            warn(
                f"X has the column {told}{' and more' if len(found) > 5 else ''}, which seems to "
                f"be {what} itself and is learned from as a feature: drop it from X",
                DataWarning,
            )


def _columns_like(rows: Any, values: Array) -> list[int]:
    """The columns that hold these values, row by row; others drop out within a few rows."""
    n_columns = rows.shape[1]
    left, begin, size = np.arange(n_columns), 0, 64
    while begin < len(values) and left.size:
        part = slice(begin, begin + size)
        wanted = values[part].astype(rows.dtype)
        block = rows.take(part) if rows.device is None else rows.stored(part, 1)
        if isinstance(block, DenseRows):
            is_same = (block.values[:, left] == wanted[:, None]).all(axis=0)
        else:
            of_row = np.repeat(wanted, np.diff(block.offsets))
            agrees = block.values == of_row
            n_agreeing = np.bincount(block.columns[agrees & (of_row != 0)], minlength=n_columns)
            n_wrong = np.bincount(block.columns[~agrees], minlength=n_columns)
            is_same = ((n_agreeing == np.count_nonzero(wanted)) & (n_wrong == 0))[left]
        left, begin, size = left[is_same], begin + size, 4 * size
    return list(map(int, left))


_EXACT = 2**53  # integers up to here are float64 numbers


def join_rows(parts: Sequence[Rows]) -> Rows:
    """All rows of the parts: dense if all are, of the same columns then, else CSR.

    A copy, unless there is one part only.

    Examples
    --------
    >>> join_rows([DenseRows(np.eye(2)), DenseRows(np.ones((1, 2)))]).to_user().tolist()
    [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]
    """
    if len(parts) == 1:
        return parts[0]
    dense = [part for part in parts if isinstance(part, DenseRows)]
    if len(dense) == len(parts):
        return DenseRows(np.concatenate([part.values for part in dense]))
    sparse = list(map(as_sparse, parts))
    return CsrRows(
        np.concatenate([part.values for part in sparse]),
        np.concatenate([part.columns for part in sparse]),
        join_offsets([part.offsets for part in sparse]),
        max(part.n_columns for part in sparse),
    )


def as_sparse(rows: Rows) -> CsrRows:
    """The rows as CSR: of dense ones the entries that are not 0; NaN is not.

    Examples
    --------
    >>> as_sparse(DenseRows(np.array([[0.0, 2.0], [3.0, 0.0]]))).columns.tolist()
    [1, 0]
    """
    if isinstance(rows, CsrRows):
        return rows
    row, column = np.nonzero(rows.values)
    offsets = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=rows.shape[0]))])
    values = rows.values[row, column]
    return CsrRows(values, column.astype(np.int32), offsets, rows.shape[1])


def as_dense(rows: Rows) -> DenseRows:
    """All values, zeros where a sparse matrix has none; MemoryError where they do not fit."""
    if isinstance(rows, DenseRows):
        return rows
    n_rows, n_columns = rows.shape
    size = n_rows * n_columns * rows.dtype.itemsize
    check_fits(size, f"{n_rows:,} dense rows of {n_columns:,} columns", "use storage='csr'")
    values = np.zeros(rows.shape, rows.dtype)
    values[np.repeat(np.arange(n_rows), np.diff(rows.offsets)), rows.columns] = rows.values
    return DenseRows(values)


def as_stored(rows: Rows, storage: str) -> Rows:
    """The rows as ``"dense"`` or ``"csr"``; ``"auto"``: as they are."""
    if storage == "auto":
        return rows
    return as_dense(rows) if storage == "dense" else as_sparse(rows)


def join_ids(parts: Sequence[Array]) -> Array:
    """Query ids of consecutive parts, no two different ones made equal.

    NumPy would write numbers as strings, and 2⁵³ and 2⁵³ + 1 as one float64.

    Examples
    --------
    >>> join_ids([np.array([2**53, 2**53 + 1]), np.array([0.0])]).tolist()
    [9007199254740992, 9007199254740993, 0.0]
    """
    kinds = {a.dtype.kind for a in parts}
    integers = (a for a in parts if a.dtype.kind in "iu" and len(a))
    # Float64 may not tell these apart.
    are_beyond = (int(a.max()) > _EXACT or int(a.min()) < -_EXACT for a in integers)
    if len(kinds) > 1 and (kinds & set("OUS") or {"i", "u"} <= kinds or any(are_beyond)):
        parts = [a.astype(object) for a in parts]
    return np.concatenate(list(parts))


def join_optional(parts: Sequence[Array | None]) -> Array | None:
    """The concatenation of what all parts have, or none of them."""
    given = [part for part in parts if part is not None]
    return np.concatenate(given) if given else None


@dataclass(frozen=True, eq=False)
class Dataset:
    """A ranking problem. Build one with `Dataset.of` or ``linrank.load``: both check everything.

    Attributes
    ----------
    rows : DenseRows or CsrRows
        The features, one row per document.
    labels : float64 array (n_rows,)
        Labels in input order; a pair (i, j) has ``labels[i] > labels[j]`` in one query.
    qid : array (n_rows,) or None
        Query id of each row; None means that all rows are one query.
    weight : float64 array (n_rows,) or None
        Weight u_i of each row; a pair weighs ``u_i u_j``.
    feature_names : tuple of str or None
        Name of each column, if the input had names.
    comments : Words or None
        Comments of the file, if it had any, or the documents of a table, of which "" is none.
    source : str
        Where the data came from, for messages.
    index_base : int or None
        The number that the first column has in the file, 0 or 1; None for arrays. Data for the
        same model must be read with the same one.
    position : array (n_rows,) or None
        Where each row was shown, if the input says so; for click logs.
    filling : Filling or None
        How missing values were filled in, if the input may have had some: the columns of `rows`
        are then the features and the indicators of ``missing="indicator"``.
    """

    rows: Rows
    labels: Array
    qid: Array | None = None
    weight: Array | None = None
    feature_names: tuple[str, ...] | None = None
    comments: Words | None = None
    source: str = "<array>"
    index_base: int | None = None
    position: Array | None = None
    filling: Filling | None = None

    @property
    def X(self) -> Any:
        """The features as a NumPy array or a ``scipy.sparse.csr_array``, not a copy."""
        return self.rows.to_user()

    @property
    def y(self) -> Array:
        """The labels."""
        return self.labels

    @property
    def n_rows(self) -> int:
        return self.rows.shape[0]

    @property
    def n_features(self) -> int:
        return self.rows.shape[1]

    @property
    def n_raw_features(self) -> int:
        """The number of features without the columns that `filling` added."""
        return self.n_features if self.filling is None else self.filling.n_features

    @property
    def raw_feature_names(self) -> tuple[str, ...] | None:
        """The names without those of the columns that `filling` added."""
        names = self.feature_names
        return None if names is None else names[: self.n_raw_features]

    @cached_property
    def queries(self) -> Queries:
        """The rows grouped by query and the labels ranked; computed on first use."""
        return Queries.of(self.labels, self.qid)

    @property
    def docids(self) -> list[str | None] | None:
        """The document id of each row, where the comments of the file name one."""
        if self.comments is None:
            return None
        return [self.comments.docid(i) for i in range(self.n_rows)]

    @property
    def all_docids(self) -> list[str] | None:
        """Document ids, by which trec_eval breaks ties; None unless every row has one."""
        docids = self.docids
        return None if docids is None or None in docids else [docid or "" for docid in docids]

    def select(self, rows_index: Any) -> Dataset:
        """Return the rows of ``rows_index`` (integers, a boolean mask or a slice) as a dataset."""
        index = rows_index if isinstance(rows_index, slice) else np.asarray(rows_index)
        if not isinstance(index, slice) and index.size == 0:
            index = index.astype(np.int64)
        names = ("labels", "qid", "weight", "position")
        arrays = {name: array for name in names if (array := getattr(self, name)) is not None}
        part = replace(
            self,
            rows=self.rows.take(index),
            comments=None if self.comments is None else self.comments.select(index),
            **{name: array[index] for name, array in arrays.items()},
        )
        known: Queries | None = self.__dict__.get("queries")
        if known is not None and not isinstance(index, slice) and index.dtype.kind in "iu":
            queries = known.of_rows(index)
            if queries is not None:  # as folds have them: nothing to be grouped anew
                part.__dict__["queries"] = queries
        return part

    def __repr__(self) -> str:
        """Where it is from and how it is stored; the arrays themselves would fill pages."""
        queries = "one query" if self.qid is None else f"{self.queries.n_queries} queries"
        return f"<Dataset {self.source}: {queries}; {self.rows.describe()}>"

    @classmethod
    def of(
        cls,
        X: Any,
        y: Any,
        *,
        qid: Any = None,
        group: Any = None,
        sample_weight: Any = None,
        feature_names: Sequence[str] | None = None,
        missing: str = "error",
        device: str = "cpu",
        n_jobs: int | None = None,
    ) -> Dataset:
        """Build a dataset from arrays or tables and check all of it.

        Parameters
        ----------
        X : array, scipy.sparse matrix or array, pandas, polars or pyarrow table
            Features; see `linrank.data.rows.as_rows` for what is copied.
        y : array (n_rows,)
            Real labels, higher is better.
        qid : array (n_rows,) of any hashable type, optional
            Query of each row, in any order. Without ``qid`` and ``group``, one query.
        group : integers (n_queries,), optional
            Sizes of consecutive queries instead of ``qid``.
        sample_weight : array (n_rows,), optional
            Weights u_i >= 0; a pair weighs ``u_i u_j``, so a weight of 2 equals repeating the row.
        feature_names : sequence of str, optional
            Names of the columns; taken from ``X`` if it has string column names.
        missing : {"error", "zero", "mean", "indicator", "keep"}, default="error"
            What happens to missing values, NaN or null: they are refused, or filled in as
            `linrank.data.missing` describes, or, with ``"keep"``, left for a model to score that
            knows what to do with them.
        device : str, default="cpu"
            ``"cuda"``, ``"cuda:1"`` and so on: rows are copied to this device and checked there.
            ``"cpu"`` leaves them where they are.
        n_jobs : int, optional
            Threads of the checks; None uses all cores.

        Examples
        --------
        >>> data = Dataset.of([[0.0], [1.0], [2.0]], [0, 1, 1], qid=["a", "a", "b"])
        >>> data.n_rows, data.queries.n_queries, data.queries.n_pairs
        (3, 2, 1)
        """
        if qid is not None and group is not None:
            raise ValueError("give qid (one id per row) or group (sizes), not both")
        names = frames.column_names(X)
        if qid is None and group is None:
            # With one query over everything the id column would be learned from; inside its own
            # query it is constant and harmless.
            check_no_query_ids(X)
        check_one_of("missing", missing, (*MISSING, "keep"))
        rows = as_rows(X, n_jobs=n_jobs, check="later")
        if missing == MISSING[0]:  # else they are filled in first
            rows = rows_on(device, rows)
        n_rows = rows.shape[0]
        labels = frames.as_labels(y, n_rows)
        if qid is not None:
            qid = as_ids(qid, n_rows)
        elif group is not None:
            sizes = as_sizes(group, n_rows)
            qid = np.repeat(np.arange(len(sizes)), sizes)
        weight = None if sample_weight is None else frames.as_weights(sample_weight, n_rows)
        if not rows.is_finite(weight, resolve(n_jobs)):
            check_values(rows, names, missing=missing != "error", n_jobs=n_jobs)
        if feature_names is not None:
            names = _check_names(feature_names, rows.shape[1])
        frames.check_names(names or ())
        data = cls(rows, labels, qid, weight, names)
        warn_of_leaks(data)
        # Grouped now, so that a missing or unhashable id is found here, on the threads of the call.
        data.__dict__["queries"] = Queries.of(labels, qid, n_jobs=n_jobs)
        return data.fill(missing).on(device)

    def on(self, device: str) -> Dataset:
        """The same data, their rows on a device, ``"cuda:1"``; ``"cpu"``: where they are."""
        rows = rows_on(device, self.rows)
        return self if rows is self.rows else self._with_rows(rows)

    def without_scan(self) -> Dataset:
        """The same data, without what a scan of its rows has found."""
        return self._with_rows(self.rows.without_scan())

    def _with_rows(self, rows: Rows) -> Dataset:
        """The same of these rows, with what is known of its queries."""
        data = copy.copy(self)
        object.__setattr__(data, "rows", rows)
        return data

    def fill(self, missing: str) -> Dataset:
        """The data with missing values filled in by a policy, learned from these rows.

        ``"error"`` and ``"keep"`` leave them as they are: `of` and ``load`` have checked them. Data
        that were filled in before, as those of a store may be, cannot be by another policy.
        """
        if missing in ("error", "keep") or (self.filling and self.filling.kind == missing):
            return self
        if self.filling is not None:
            raise ValueError(
                f"missing={missing!r}, but the missing values of {self.source} were filled in by "
                f"missing={self.filling.kind!r} before; leave it out"
            )
        if self.rows.device is not None:
            raise ValueError(
                f"missing={missing!r} fills in values on the host, and the rows are on "
                f"{self.rows.device}; pass a copy on the host, with device='cuda'"
            )
        return Filling.fit(missing, self.rows, self.weight).dataset(self)


def rows_on(device: str, rows: Any) -> Any:
    """The rows, on a device that is not ``"cpu"``; checked to be no other than theirs."""
    check_device(device)
    if device == "cpu" or (device == "cuda" and rows.device is not None):
        return rows
    from linrank.data.device_rows import on_device  # few have a device

    return on_device(rows, device_of(device))


def _check_names(names: Sequence[str], n_features: int) -> tuple[str, ...]:
    if isinstance(names, str) or not all(isinstance(name, str) for name in names):
        raise TypeError(f"feature_names must be a sequence of strings, got {names!r}")
    if len(names) != n_features:
        raise ValueError(f"X has {n_features} columns but feature_names has {len(names)} names")
    return tuple(names)


def join_datasets(parts: Sequence[Dataset]) -> Dataset:
    """All rows of data sets that follow one another; a single one is not copied.

    A part without comments among others has empty ones.
    """
    if len(parts) == 1:
        return parts[0]
    comments, ids = None, [part.qid for part in parts if part.qid is not None]
    if any(part.comments is not None for part in parts):
        each = (part.comments or Comments.of([""] * part.n_rows) for part in parts)
        comments = Comments.join(list(each))
    return replace(
        parts[0],
        rows=join_rows([part.rows for part in parts]),
        labels=np.concatenate([part.labels for part in parts]),
        qid=join_ids(ids) if ids else None,
        weight=join_optional([part.weight for part in parts]),
        position=join_optional([part.position for part in parts]),
        comments=comments,
    )


def as_comments(data: Dataset, first_row: int, where: str) -> Comments:
    """The comments of a text as they were; documents of a table as LETOR files name them.

    ``first_row`` is the number of the first row, and ``where`` the place they are for, in messages.
    """
    if isinstance(data.comments, Comments):
        return data.comments
    return naming_documents(data.docids or (), first_row, where)
