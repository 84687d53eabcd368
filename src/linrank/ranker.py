"""RankerMixin: what scikit-learn has to know of an estimator that ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from sklearn.utils.validation import check_is_fitted

from linrank.data.dataset import Dataset
from linrank.metrics import evaluate
from linrank.metrics.concordance import weighted_pairwise_accuracy

if TYPE_CHECKING:
    from sklearn.utils import Tags

__all__ = ["RankerMixin"]

_ACCURACY = "pairwise_accuracy"


class RankerMixin:
    """Mixin for estimators that learn to rank rows within queries.

    It gives them scikit-learn's tags, a ``score`` and a request for ``qid``, so that one
    ``qid=`` reaches ``fit`` and ``score`` through metadata routing. The estimator provides
    ``decision_function(X, qid=None)`` and sets ``needs_qid_`` in ``fit``: whether it was fitted
    with query ids.
    """

    _estimator_type = "ranker"
    __metadata_request__fit: ClassVar[dict[str, bool]] = {"qid": True}
    __metadata_request__score: ClassVar[dict[str, bool]] = {"qid": True}

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.estimator_type = "ranker"
        tags.target_tags.required = True
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = getattr(self, "missing", "error") != "error"
        return tags

    def score(self, X: Any, y: Any = None, *, qid: Any = None, sample_weight: Any = None) -> float:
        """Share of the pairs that the scores put in the right order.

        Parameters
        ----------
        X : matrix of shape (n_rows, n_features), or Dataset
            Raw rows; a data set has labels, query ids and weights of its own.
        y : array of shape (n_rows,)
            Labels; a pair is two rows of one query with different labels.
        qid : array of shape (n_rows,)
            Query of each row. Required when the ranker was fitted with ``qid``.
        sample_weight : array of shape (n_rows,)
            Row weights ``u``; the pair (i, j) counts ``u_i·u_j``.

        Returns
        -------
        float
            Pooled over all pairs; a pair of equal scores is an error.
        """
        if isinstance(X, Dataset):
            given = {"y": y, "qid": qid, "sample_weight": sample_weight}
            for name in (name for name, value in given.items() if value is not None):
                raise ValueError(f"{name} is part of the data set; leave it out")
            y, qid, sample_weight = X.labels, X.qid, X.weight
        self._check_qid("score", qid)
        own_qid = None if isinstance(X, Dataset) else qid
        scores = self.decision_function(X, qid=own_qid)  # type: ignore[attr-defined]
        if sample_weight is not None:
            return weighted_pairwise_accuracy(y, scores, sample_weight, qid)
        return float(evaluate(y, scores, qid=qid, metrics=_ACCURACY)[_ACCURACY])

    def _check_qid(self, method: str, qid: Any) -> None:
        """Refuse to compare rows across queries: that would give a wrong number, silently."""
        check_is_fitted(self)
        if qid is None and self.needs_qid_:  # type: ignore[attr-defined]
            raise ValueError(
                f"{method}() needs qid, because this {type(self).__name__} was fitted with qid. In "
                "cross-validation, call sklearn.set_config(enable_metadata_routing=True) and pass "
                "qid= to fit (or params={'qid': qid}), so that qid reaches score too"
            )
