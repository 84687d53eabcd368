"""Dataset: rows, labels and query ids, validated once, at construction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from linrank.checks import check_one_of
from linrank.data.filling import Filling
from linrank.data.frames import check_names, column_names
from linrank.data.id_columns import check_no_query_ids
from linrank.data.queries import Queries, as_ids, as_sizes
from linrank.data.rows import Rows, as_rows, check_values
from linrank.data.vectors import as_labels, as_weights
from linrank.lazy import cached_property
from linrank.options import MISSING
from linrank.threads import resolve

__all__ = ["Comments", "Dataset"]

Array = NDArray[Any]


class Comments(Protocol):
    """The comments of a file, one per row."""

    def __len__(self) -> int: ...
    def docid(self, i: int) -> str | None: ...
    def select(self, index: Any) -> Comments: ...


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
    comments : Comments or None
        Comments of the file, if it had any.
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
    comments: Comments | None = None
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
    def raw_feature_names(self) -> tuple[str, ...] | None:
        """The names without those of the columns that `filling` added."""
        if self.feature_names is None or self.filling is None:
            return self.feature_names
        return self.feature_names[: self.filling.n_features]

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

    def select(self, rows_index: Any) -> Dataset:
        """Return the rows of ``rows_index`` (integers, a boolean mask or a slice) as a dataset."""
        index = rows_index if isinstance(rows_index, slice) else np.asarray(rows_index)
        if not isinstance(index, slice) and index.size == 0:
            index = index.astype(np.int64)
        return Dataset(
            self.rows.take(index),
            self.labels[index],
            None if self.qid is None else self.qid[index],
            None if self.weight is None else self.weight[index],
            self.feature_names,
            None if self.comments is None else self.comments.select(index),
            self.source,
            self.index_base,
            None if self.position is None else self.position[index],
            self.filling,
        )

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
            `linrank.data.filling` describes, or, with ``"keep"``, left for a model to score that
            knows what to do with them.
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
        names = column_names(X)
        if qid is None and group is None:
            # With one query over everything the id column would be learnt from; inside its own
            # query it is constant and harmless.
            check_no_query_ids(X)
        check_one_of("missing", missing, (*MISSING, "keep"))
        rows = as_rows(X, n_jobs=n_jobs, check="later")
        if not rows.is_finite(resolve(n_jobs)):
            check_values(rows, names, missing=missing != "error", n_jobs=n_jobs)
        n_rows = rows.shape[0]
        labels = as_labels(y, n_rows)
        if qid is not None:
            qid = as_ids(qid, n_rows)
        elif group is not None:
            sizes = as_sizes(group, n_rows)
            qid = np.repeat(np.arange(len(sizes)), sizes)
        weight = None if sample_weight is None else as_weights(sample_weight, n_rows)
        if feature_names is not None:
            names = _check_names(feature_names, rows.shape[1])
        check_names(names or ())
        data = cls(rows, labels, qid, weight, names)
        # Grouped now, so that a missing or unhashable id is found here, on the threads of the call.
        data.__dict__["queries"] = Queries.of(labels, qid, n_jobs=n_jobs)
        return data.filled(missing)

    def filled(self, missing: str) -> Dataset:
        """The data with missing values filled in by a policy, learnt from these rows.

        ``"error"`` and ``"keep"`` leave them as they are: `of` and ``load`` have checked them.
        """
        if missing in ("error", "keep"):
            return self
        return Filling.fit(missing, self.rows, self.weight).dataset(self)


def _check_names(names: Sequence[str], n_features: int) -> tuple[str, ...]:
    if isinstance(names, str) or not all(isinstance(name, str) for name in names):
        raise TypeError(f"feature_names must be a sequence of strings, got {names!r}")
    if len(names) != n_features:
        raise ValueError(f"X has {n_features} columns but feature_names has {len(names)} names")
    return tuple(names)
