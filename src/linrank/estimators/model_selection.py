"""Cross-validation by query: one ``qid=`` for splitter, fit and score."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import sklearn
from sklearn.model_selection import BaseCrossValidator
from sklearn.utils import check_random_state
from sklearn.utils.metadata_routing import MetadataRequest, get_routing_for_object

from linrank.data.dataset import Dataset
from linrank.data.queries import Queries, query_folds
from linrank.estimators.base import RankerMixin
from linrank.metrics import convention as named_convention
from linrank.metrics import evaluate, parse, parse_scoring

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray


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
        fold = self._fold_of_row(X, groups)
        for number in range(self.n_splits):
            yield np.flatnonzero(fold != number), np.flatnonzero(fold == number)

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Number of folds."""
        return self.n_splits

    def _fold_of_row(self, X: Any, groups: Any) -> NDArray[np.int64]:
        if groups is None:
            raise ValueError(
                "QueryKFold needs query ids. Call sklearn.set_config(enable_metadata_routing=True) "
                "and pass qid= to fit (or params={'qid': qid}); or split(X, y, qid) by hand"
            )
        n_rows = X.shape[0] if hasattr(X, "shape") else len(X)
        queries = Queries.of(np.zeros(n_rows), qid=groups)
        order = None
        if self.shuffle:
            order = check_random_state(self.random_state).permutation(queries.n_queries)
        return query_folds(queries, self.n_splits, order)


@dataclass(frozen=True)
class RankingScorer:
    """A scikit-learn scorer that computes a ranking measure per query.

    It asks metadata routing for ``qid`` and refuses to score without. Build one with
    :func:`ranking_scorer`.
    """

    metric: str
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
        value = float(values[self.metric])
        return value if parse(self.metric).higher_is_better else 0.0 - value

    def __repr__(self) -> str:
        convention = "" if self.convention == "linrank" else f", convention={self.convention!r}"
        return f"ranking_scorer({self.metric!r}{convention})"

    def get_metadata_routing(self) -> MetadataRequest:
        """What scikit-learn is to pass: ``qid``."""
        request = MetadataRequest(owner=self)
        request.score.add_request(param="qid", alias=True)
        return request


def ranking_scorer(metric: str = "ndcg@10", *, convention: str = "linrank") -> RankingScorer:
    """A scorer for ``scoring=`` of scikit-learn's tools, with ``qid`` requested.

    Parameters
    ----------
    metric : str, default="ndcg@10"
        A measure that :func:`linrank.evaluate` knows. Of an error, less is better: it gets a minus
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
