"""QueryScaler: features scaled within each query, as a step of a scikit-learn pipeline."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from linrank.data.dataset import check_no_query_ids
from linrank.data.queries import Queries
from linrank.data.rows import CsrRows, Rows, as_rows
from linrank.data.scaling import Scaling
from linrank.errors import check_one_of

_KINDS = ("range", "minmax", "standard")


class QueryScaler(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Scale every feature within each query.

    Scores of one query can be on another scale than those of the next, as those of BM25 are for
    short and long queries. With the lowest, highest and mean value and the standard deviation of
    feature j over the rows of query q,

    - ``range``: ``x_ij / (high_qj - low_qj)``, what ``RankSVM(scale="query")`` trains on;
    - ``minmax``: ``(x_ij - low_qj) / (high_qj - low_qj)``, from 0 to 1: the form in which LETOR's
      files come, RankLib's ``-norm linear``;
    - ``standard``: ``(x_ij - mean_qj) / std_qj``, RankLib's ``-norm zscore``.

    A feature that is constant within a query becomes 0 there. A ranker that compares the rows of a
    query cannot see what is subtracted: ``range`` and ``minmax`` train the same linear model.

    Nothing is learnt: rows are scaled by the rows of their query that come with them, so whole
    queries must come together, in ``transform`` too.

    Parameters
    ----------
    kind : {"minmax", "range", "standard"}, default="minmax"
        The formula. Sparse rows stay sparse by ``range`` alone.
    n_jobs : int or None, default=None
        Threads; None or -1 means all cores available to the process.

    Attributes
    ----------
    needs_qid_ : bool
        Whether ``fit`` was given query ids, so that ``transform`` needs them.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, when `X` had string column names.

    Examples
    --------
    >>> from linrank import QueryScaler
    >>> X = [[1.0, 5.0], [3.0, 5.0], [10.0, 0.0], [20.0, 1.0], [30.0, 4.0]]
    >>> QueryScaler().fit_transform(X, qid=["a", "a", "b", "b", "b"])
    array([[0.  , 0.  ],
           [1.  , 0.  ],
           [0.  , 0.  ],
           [0.5 , 0.25],
           [1.  , 1.  ]])
    """

    __metadata_request__fit: ClassVar[dict[str, bool]] = {"qid": True}
    __metadata_request__transform: ClassVar[dict[str, bool]] = {"qid": True}

    def __init__(self, kind: str = "minmax", *, n_jobs: int | None = None) -> None:
        self.kind = kind
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any = None, *, qid: Any = None) -> QueryScaler:
        """Note the features, and whether there are queries.

        Parameters
        ----------
        X : matrix of shape (n_rows, n_features)
            NumPy or SciPy matrix or data frame.
        y : ignored
        qid : array of shape (n_rows,)
            Query of each row, of any hashable type and in any order. None: all rows are one query.
        """
        check_one_of("kind", self.kind, _KINDS)
        if qid is None:
            check_no_query_ids(X)
        self._rows(X)
        validate_data(self, X, skip_check_array=True)
        self.needs_qid_ = qid is not None
        return self

    def transform(self, X: Any, *, qid: Any = None) -> Any:
        """Scale rows, query by query.

        Parameters
        ----------
        X : matrix of shape (n_rows, n_features)
            Rows of whole queries.
        qid : array of shape (n_rows,)
            Query of each row. Required when the scaler was fitted with ``qid``.

        Returns
        -------
        ndarray or csr_array of shape (n_rows, n_features)
            float32 stays float32; a frame where ``set_output`` asks for one.
        """
        check_is_fitted(self)
        check_one_of("kind", self.kind, _KINDS)
        if qid is None and self.needs_qid_:
            raise ValueError(
                "transform() needs qid, because this QueryScaler was fitted with qid. In a "
                "pipeline, call sklearn.set_config(enable_metadata_routing=True) and pass qid= to "
                "fit, predict and score"
            )
        check_no_query_ids(X, getattr(self, "feature_names_in_", ()))
        rows = self._rows(X)
        validate_data(self, X, reset=False, skip_check_array=True)
        queries = Queries.of(np.zeros(rows.shape[0]), qid, n_jobs=self.n_jobs)
        if self.kind == "range":
            return Scaling("query").transform(rows, queries, n_jobs=self.n_jobs).to_user()
        return _shifted(rows.values, queries, self.kind)

    def fit_transform(self, X: Any, y: Any = None, *, qid: Any = None) -> Any:
        """The same as ``fit(X, qid=qid).transform(X, qid=qid)``."""
        return self.fit(X, y, qid=qid).transform(X, qid=qid)

    def _rows(self, X: Any) -> Rows:
        rows = as_rows(X, n_jobs=self.n_jobs)
        if isinstance(rows, CsrRows) and self.kind != "range":
            raise ValueError(
                f"kind={self.kind!r} subtracts from every value, which would fill the sparse X; "
                "use kind='range', or X.toarray()"
            )
        return rows

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.kind == "range"
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _shifted(values: NDArray[Any], queries: Queries, kind: str) -> NDArray[Any]:
    """``(x - shift) / width`` of dense rows, in double, rounded once; 0 where constant."""
    x = queries.gather(values).astype(np.float64)
    starts, sizes = queries.offsets[:-1], np.diff(queries.offsets)
    low = np.minimum.reduceat(x, starts, axis=0)
    high = np.maximum.reduceat(x, starts, axis=0)
    is_constant = low == high  # told exactly: a variance may round to something else than 0
    with np.errstate(over="ignore", invalid="ignore"):
        shift = low if kind == "minmax" else np.add.reduceat(x, starts) / sizes[:, None]
        x -= np.repeat(shift, sizes, axis=0)
        width = high - low
        if kind == "standard":
            # The largest to about 1, by a power of two: squares neither vanish nor overflow.
            largest = np.maximum.reduceat(np.abs(x), starts, axis=0)
            x = np.ldexp(x, -np.repeat(np.frexp(largest)[1], sizes, axis=0))
            width = np.sqrt(np.add.reduceat(x * x, starts, axis=0) / sizes[:, None])
        width[is_constant] = np.inf
        x /= np.repeat(width, sizes, axis=0)
    beyond = np.flatnonzero(~(np.isfinite(width) | is_constant).all(axis=0))
    if beyond.size:
        raise ValueError(
            f"feature {beyond[0]} spans more than double precision can hold within a query; "
            "rescale it before"
        )
    return queries.scatter(x.astype(values.dtype))
