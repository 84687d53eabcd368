"""Cross-validation by query: one ``qid=`` for splitter, fit and score."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import sklearn
from numpy.typing import NDArray
from sklearn.model_selection import BaseCrossValidator, GroupShuffleSplit
from sklearn.utils import _safe_indexing, check_random_state, indexable
from sklearn.utils.metadata_routing import MetadataRequest, get_routing_for_object

from linrank.data import Dataset, Queries, query_folds
from linrank.estimators.base import RankerMixin, n_rows_of
from linrank.metrics import Metric, evaluate, parse, parse_scoring
from linrank.metrics import convention as named_convention


class QueryKFold(BaseCrossValidator):  # type: ignore[misc]
    """K folds that keep every query whole, with about the same number of rows each.

    It asks metadata routing for ``qid``, so that
    ``GridSearchCV(..., cv=QueryKFold()).fit(X, y, qid=qid)`` needs nothing else. Called by hand,
    the ids are the third argument: ``QueryKFold().split(X, y, qid)``.

    Parameters
    ----------
    n_splits : int, default=5
        Number of folds, >= 2.
    shuffle : bool, default=False
        Deal the queries out in random order. Otherwise the largest come first, which balances the
        folds best and always gives the same ones.
    random_state : int, RandomState or None, default=None
        Seed for `shuffle`.

    Examples
    --------
    >>> from linrank import QueryKFold
    >>> qid = ["a", "a", "b", "c", "c", "c"]
    >>> for train, test in QueryKFold(n_splits=2).split(qid, groups=qid):
    ...     print(train, test)
    [0 1 2] [3 4 5]
    [3 4 5] [0 1 2]
    """

    __metadata_request__split: ClassVar[dict[str, str]] = {"groups": "qid"}

    def __init__(
        self, n_splits: int = 5, *, shuffle: bool = False, random_state: Any = None
    ) -> None:
        if isinstance(n_splits, bool) or not isinstance(n_splits, (int, np.integer)):
            raise TypeError(f"n_splits must be an integer, got {n_splits!r}")
        if n_splits < 2:
            raise ValueError(f"n_splits must be >= 2, got {n_splits}")
        if random_state is not None and not shuffle:
            raise ValueError("random_state has no effect without shuffle=True; pass both")
        self.n_splits = int(n_splits)
        self.shuffle = shuffle
        self.random_state = random_state

    def split(
        self, X: Any, y: Any = None, groups: Any = None
    ) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
        """Row indices of training and test part of every fold.

        Parameters
        ----------
        X : matrix of shape (n_rows, n_features)
            Only its length matters.
        y : ignored
        groups : array of shape (n_rows,)
            Query id of each row, of any hashable type, in any order.
        """
        if groups is None:
            raise ValueError(
                "QueryKFold needs query ids. Call sklearn.set_config(enable_metadata_routing=True) "
                "and pass qid= to fit (or params={'qid': qid}); or split(X, y, qid) by hand"
            )
        queries = Queries.of(np.zeros(n_rows_of(X)), qid=groups)
        order = None
        if self.shuffle:
            order = check_random_state(self.random_state).permutation(queries.n_queries)
        fold = query_folds(queries, self.n_splits, order)
        for number in range(self.n_splits):
            yield np.flatnonzero(fold != number), np.flatnonzero(fold == number)

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Number of folds."""
        return self.n_splits


def train_test_split(
    *arrays: Any,
    qid: Any = None,
    test_size: float | int | None = None,
    train_size: float | int | None = None,
    random_state: Any = None,
) -> list[Any]:
    """Training and test rows of random queries, none of them in both: scikit-learn's, by query.

    Parameters
    ----------
    *arrays : Dataset, or arrays, frames, sparse matrices and lists of the same length
        What to split. Rows keep their order.
    qid : array of shape (n_rows,), or str
        Query of each row, of any hashable type and in any order, or the name of a column of the
        first frame. A data set has its own.
    test_size, train_size : float, int or None
        A share of the queries, or how many of them. Together at most all; a quarter is for the
        test where both are None.
    random_state : int, RandomState or None, default=None
        Seed of the draw.

    Returns
    -------
    list
        Training and test part of each of `arrays` and then of `qid`, if it is an array.

    Examples
    --------
    >>> from linrank import make_ranking, train_test_split
    >>> data = make_ranking(n_queries=20, random_state=0)
    >>> X, X_test, y, y_test, qid, qid_test = train_test_split(
    ...     data.X, data.y, qid=data.qid, random_state=0)
    >>> len(set(qid)), len(set(qid_test)), set(qid) & set(qid_test)
    (15, 5, set())
    >>> train, test = train_test_split(data, test_size=3, random_state=0)
    >>> test.queries.n_queries
    3
    """
    if not arrays:
        raise ValueError("there is nothing to split; pass a data set, or X, y and qid=")
    ids, parts = qid, list(arrays)
    if isinstance(arrays[0], Dataset):
        if len(arrays) > 1 or qid is not None:
            raise ValueError("a data set has labels and query ids of its own; pass it alone")
        ids = arrays[0].qid
    elif isinstance(qid, str):
        ids = arrays[0][qid]
    elif qid is not None:
        parts.append(qid)
    if ids is None:
        raise ValueError(
            "train_test_split needs qid, the query of each row; if all rows are one query, split "
            "them by sklearn.model_selection.train_test_split"
        )
    parts = parts if isinstance(parts[0], Dataset) else indexable(*parts)
    n_rows = parts[0].n_rows if isinstance(parts[0], Dataset) else n_rows_of(parts[0])
    queries = Queries.of(np.zeros(n_rows), qid=ids)
    if queries.n_queries < 2:
        raise ValueError("all rows are of one query, which cannot be in both parts")
    number = queries.query_of_rows()
    if test_size is None and train_size is None:
        test_size = 0.25
    splitter = GroupShuffleSplit(
        1, test_size=test_size, train_size=train_size, random_state=random_state
    )
    both = next(splitter.split(number, groups=number))
    if isinstance(parts[0], Dataset):
        return [parts[0].select(rows) for rows in both]
    return [_safe_indexing(part, rows) for part in parts for rows in both]


@dataclass(frozen=True)
class RankingScorer:
    """A scikit-learn scorer that computes a ranking measure per query.

    It asks metadata routing for ``qid`` and refuses to score without. Build one with
    :func:`ranking_scorer`.
    """

    metric: Metric
    convention: str = "linrank"

    def __call__(self, estimator: Any, X: Any, y: Any, *, qid: Any = None) -> float:
        if qid is None:
            raise ValueError(
                f"{self!r} got no qid. Call sklearn.set_config(enable_metadata_routing=True) and "
                "pass qid= to fit (or params={'qid': qid}); if all rows are one query, pass "
                "qid=numpy.zeros(len(y))"
            )
        scores = _scores(estimator, X, qid)
        values = evaluate(y, scores, qid=qid, metrics=(self.metric,), convention=self.convention)
        value = float(next(iter(values.values())))
        return value if parse(self.metric).higher_is_better else 0.0 - value

    def __repr__(self) -> str:
        convention = "" if self.convention == "linrank" else f", convention={self.convention!r}"
        metric = self.metric if isinstance(self.metric, str) else str(parse(self.metric))
        return f"ranking_scorer({metric!r}{convention})"

    def get_metadata_routing(self) -> MetadataRequest:
        """What scikit-learn is to pass: ``qid``."""
        request = MetadataRequest(owner=self)
        request.score.add_request(param="qid", alias=True)
        return request


def ranking_scorer(metric: Metric = "ndcg@10", *, convention: str = "linrank") -> RankingScorer:
    """A scorer for ``scoring=`` of scikit-learn's tools, with ``qid`` requested.

    Parameters
    ----------
    metric : str or callable, default="ndcg@10"
        A measure that :func:`linrank.evaluate` knows, or a function of the labels and scores of a
        query. Of an error, less is better: it gets a minus
        sign, as everywhere in scikit-learn.
    convention : str, default="linrank"
        Its convention.

    Examples
    --------
    >>> from linrank import ranking_scorer
    >>> ranking_scorer("map")
    ranking_scorer('map')
    """
    # A misspelt name is to fail here, not once per fold of a grid search.
    parse_scoring(metric), named_convention(convention)
    return RankingScorer(metric, convention)


def _scores(estimator: Any, X: Any, qid: Any) -> Any:
    """The scores of any estimator; ``qid`` goes along where it is asked for."""
    method = "decision_function" if hasattr(estimator, "decision_function") else "predict"
    if isinstance(estimator, RankerMixin):
        takes_qid = not isinstance(X, Dataset)  # which has ids of its own
    else:
        # A pipeline or search forwards parameters only when routing is on.
        routing = sklearn.get_config()["enable_metadata_routing"]
        takes_qid = routing and get_routing_for_object(estimator).consumes(method, ["qid"])
    return getattr(estimator, method)(X, **({"qid": qid} if takes_qid else {}))
