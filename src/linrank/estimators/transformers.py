"""Transformers of features: QueryScaler scales within queries, PivotedTfidf weighs term counts."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from linrank.data import Array, CsrRows, Queries, Rows, Scaling, as_rows, check_no_query_ids
from linrank.data.frames import first_true, is_frame, sparse_part, to_matrix
from linrank.errors import check_natural, check_one_of

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
        return _shift_and_divide(rows.values, queries, self.kind)

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


def _shift_and_divide(values: Array, queries: Queries, kind: str) -> Array:
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
    if (j := first_true(~(np.isfinite(width) | is_constant).all(axis=0))) is not None:
        raise ValueError(
            f"feature {j} spans more than double precision can hold within a query; "
            "rescale it before"
        )
    return queries.scatter(x.astype(values.dtype))


_FLOATS = (np.float64, np.float32)


class PivotedTfidf(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Weigh term counts by pivoted document length and inverse document frequency.

    With ``d_ij`` the count of term j in document i, ``m_i`` the number of different terms of
    document i and ``d̂_i`` the mean of its counts over these terms,

    ``x_ij = idf_j · (1 + log d_ij) / (1 + log d̂_i) / (1 - slope + slope·m_i/μ̂)``

    with ``idf_j = log(m/r_j)``, where ``m`` is the number of training documents, ``r_j`` how many
    of them contain term j, and ``μ̂`` the mean of ``m_i`` over them. Short documents are at an
    advantage over long ones by cosine or raw counts; the last factor takes back a part of it,
    `slope`, about the mean length as pivot (Singhal, Buckley & Mitra 1996).

    Parameters
    ----------
    slope : float, default=0.3
        How much of the length counts, from 0 (not at all) to 1 (division by ``m_i/μ̂``).
    min_count : int, default=1
        The dictionary: the terms that occur at least so often in the training documents together.
        All others are taken as absent from every document; their columns are kept, and empty.

    Attributes
    ----------
    idf_ : ndarray of shape (n_features,)
        ``log(m/r_j)``; 0 for terms outside the dictionary, those never seen in ``fit`` included.
    in_dictionary_ : bool ndarray of shape (n_features,)
        Which terms are in the dictionary.
    mean_unique_terms_ : float
        ``μ̂``, empty documents included.
    n_features_in_ : int
        Number of terms.
    feature_names_in_ : ndarray of shape (n_features,)
        The terms, where ``X`` in ``fit`` was a data frame with string columns.

    Notes
    -----
    A document without terms of the dictionary becomes a row of zeros, a term of every training
    document a column of zeros. A sparse matrix stays sparse (CSR), without stored zeros; float32
    stays float32.

    Examples
    --------
    >>> from sklearn.feature_extraction.text import CountVectorizer
    >>> from sklearn.pipeline import make_pipeline
    >>> from linrank import PivotedTfidf
    >>> texts = ["green tea", "black tea, black pepper", "red pepper"]
    >>> features = make_pipeline(CountVectorizer(), PivotedTfidf())
    >>> X = features.fit_transform(texts)
    >>> X.shape, X.nnz
    ((3, 5), 7)
    >>> features.get_feature_names_out().tolist()
    ['black', 'green', 'pepper', 'red', 'tea']
    """

    def __init__(self, *, slope: float = 0.3, min_count: int = 1) -> None:
        self.slope = slope
        self.min_count = min_count

    def fit(self, X: Any, y: Any = None) -> PivotedTfidf:
        """Learn the document frequencies and the mean number of terms.

        Parameters
        ----------
        X : matrix of shape (n_documents, n_terms)
            Counts, whole numbers >= 0, as `CountVectorizer` gives them; sparse or dense.
        y : ignored
        """
        self._check_parameters()
        counts = self._counts(X, reset=True)
        n_documents, n_terms = counts.shape
        totals = np.bincount(counts.indices, weights=counts.data, minlength=n_terms)
        known = totals >= max(1, self.min_count)
        frequency = np.bincount(counts.indices, minlength=n_terms)
        self.idf_ = np.where(known, np.log(n_documents / np.maximum(frequency, 1)), 0.0)
        self.in_dictionary_ = known
        self.mean_unique_terms_ = float(known[counts.indices].sum() / n_documents)
        return self

    def transform(self, X: Any) -> Any:
        """Weigh the counts of documents, as the training documents say.

        Parameters
        ----------
        X : matrix of shape (n_documents, n_terms)
            Counts, as in ``fit``.

        Returns
        -------
        ndarray or CSR matrix of shape (n_documents, n_terms)
            Sparse where `X` is.
        """
        check_is_fitted(self)
        counts = self._counts(X, reset=False)
        counts.data[~self.in_dictionary_[counts.indices]] = 0.0
        counts.eliminate_zeros()
        weights = self._weights(counts)
        weights.eliminate_zeros()  # terms of every document
        return weights if sparse.issparse(X) else weights.toarray()

    def _weights(self, counts: Any) -> Any:
        """``x_ij`` for counts of terms of the dictionary, in place."""
        n_unique = np.diff(counts.indptr)
        d = counts.data.astype(np.float64)
        n_tokens = np.bincount(np.repeat(np.arange(len(n_unique)), n_unique), d, len(n_unique))
        # Documents without terms have no entry that would meet these factors.
        level = 1.0 + np.log(np.maximum(n_tokens, 1.0) / np.maximum(n_unique, 1))
        length = 1.0 - self.slope + self.slope * (n_unique / (self.mean_unique_terms_ or 1.0))
        x = self.idf_[counts.indices] * (1.0 + np.log(d)) / np.repeat(level * length, n_unique)
        counts.data = x.astype(counts.dtype)
        return counts

    def _counts(self, X: Any, *, reset: bool) -> Any:
        """A CSR copy of checked counts, without duplicates and stored zeros."""
        options: dict[str, Any] = {"accept_sparse": "csr", "dtype": _FLOATS}
        if is_frame(X) and sparse_part(X) is None:
            # scikit-learn would widen float32 columns of polars and pyarrow.
            validate_data(self, X, reset=reset, skip_check_array=True)
            checked: Any = check_array(to_matrix(X), estimator=self, input_name="X", **options)
        else:
            checked = validate_data(self, X, reset=reset, **options)
        counts: Any = sparse.csr_array(checked) if not sparse.issparse(X) else checked.copy()
        counts.sum_duplicates()
        self._check_counts(counts)
        counts.eliminate_zeros()
        return counts

    def _check_counts(self, counts: Any) -> None:
        """Raise for the first entry that is no count, with its place."""
        k = first_true((counts.data < 0) | (counts.data != np.floor(counts.data)))
        if k is None:
            return
        row = int(np.searchsorted(counts.indptr, k, side="right")) - 1
        column, value = int(counts.indices[k]), counts.data[k]
        names: Array | None = getattr(self, "feature_names_in_", None)
        named = "" if names is None else f" ({names[column]!r})"
        # scikit-learn looks for its own words where a value is below zero.
        kind = "Negative values in data: " if value < 0 else ""
        raise ValueError(
            f"{kind}X has {value:g} at row {row}, column {column}{named}; the input of "
            f"{type(self).__name__} is counts of terms, whole numbers >= 0, as CountVectorizer "
            "gives them"
        )

    def _check_parameters(self) -> None:
        if not isinstance(self.slope, Real) or not 0.0 <= self.slope <= 1.0:
            raise ValueError(f"slope must be a number from 0 to 1, got {self.slope!r}")
        check_natural("min_count", self.min_count)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        tags.input_tags.categorical = True  # the one tag that says whole numbers
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
