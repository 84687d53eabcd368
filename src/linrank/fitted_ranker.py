"""FittedRanker: what all estimators have in common that fit one model, scoring above all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from linrank.checks import check_one_of
from linrank.data.dataset import Dataset
from linrank.data.frames import as_array
from linrank.data.id_columns import check_no_query_ids
from linrank.data.preferences import Preferences
from linrank.data.rows import as_rows, check_values
from linrank.errors import NoPairsError
from linrank.metrics import rank_within_queries
from linrank.options import MISSING
from linrank.ranker import RankerMixin
from linrank.store.store import Store

if TYPE_CHECKING:
    import os

    from numpy.typing import NDArray

    from linrank.data.rows import Rows
    from linrank.solvers.result import Result

__all__ = ["FittedRanker"]


class FittedRanker(RankerMixin, BaseEstimator):  # type: ignore[misc]
    """Scores rows by ``model_``.

    A subclass has the parameter ``n_jobs``; its ``fit`` begins with `_training_data` and ends with
    `_adopt_model`.
    """

    _checked: ClassVar[str] = "finite"  # what `as_rows` checks before ``model_`` sees the rows
    __metadata_request__decision_function: ClassVar[dict[str, bool]] = {"qid": True}
    __metadata_request__predict: ClassVar[dict[str, bool]] = {"qid": True}

    def decision_function(self, X: Any, qid: Any = None) -> NDArray[np.float64]:
        """Scores of rows; within a query, higher is better.

        Parameters
        ----------
        X : matrix of shape (n_rows, n_features), or Dataset
            Raw rows; a data set has query ids of its own.
        qid : array of shape (n_rows,)
            Query of each row; only ``scale="query"`` looks at it, and needs it.
        """
        rows, qid = self._rows(X, qid)
        scores: NDArray[np.float64] = self.model_.predict(rows, qid=qid, n_jobs=self.n_jobs)
        return scores

    def predict(self, X: Any, qid: Any = None) -> NDArray[np.float64]:
        """The same scores as :meth:`decision_function`."""
        return self.decision_function(X, qid=qid)

    def rank(self, X: Any, qid: Any = None, k: int | None = None) -> NDArray[np.int64]:
        """Rank of each row within its query, from 1 for the highest score.

        Parameters
        ----------
        X : matrix of shape (n_rows, n_features), or Dataset
            Raw rows; a data set has query ids of its own.
        qid : array of shape (n_rows,)
            Query of each row. Required when the ranker was fitted with ``qid``.
        k : int or None
            Rows that do not make it to the first `k` get 0.

        Returns
        -------
        ndarray of shape (n_rows,)
            Ranks; equal scores rank in input order.
        """
        ids = X.qid if isinstance(X, Dataset) else qid
        self._check_qid("rank", ids)
        if k is not None and k < 1:
            raise ValueError(f"k must be >= 1, got {k}")
        scores = self.decision_function(X, qid=qid)
        ranks = rank_within_queries(scores, ids, n_jobs=self.n_jobs)
        return ranks if k is None else np.where(ranks > k, 0, ranks)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write ``model_`` to a file for :func:`linrank.load_model`."""
        check_is_fitted(self, "model_")
        self.model_.save(path)

    # ---- for fit ---------------------------------------------------------------------------------

    def _training_data(self, X: Any, y: Any, qid: Any, group: Any, sample_weight: Any) -> Dataset:
        if isinstance(X, (Store, Dataset)):
            own = {"y": y, "qid": qid, "group": group, "sample_weight": sample_weight}
            what = f"the store {X.path}" if isinstance(X, Store) else "the data set"
            for name in (name for name, value in own.items() if value is not None):
                raise ValueError(f"{name} is part of {what}, which is given alone: fit(X)")
            data = X.dataset(n_jobs=self.n_jobs) if isinstance(X, Store) else self._filled(X)
            self._note_columns(data)
            return data
        labels = None if y is None else column_or_1d(as_array(y, "y"), warn=True)
        data = Dataset.of(
            X,
            labels,
            qid=qid,
            group=group,
            sample_weight=sample_weight,
            missing=self._missing(),
            n_jobs=self.n_jobs,
        )
        if data.n_rows == 1:
            raise NoPairsError("X has 1 sample, n_samples=1; a pair takes two rows of one query")
        # Dataset has checked the values; scikit-learn's part is names and number of features.
        validate_data(self, X, labels, skip_check_array=True)
        return data

    def _filled(self, data: Dataset) -> Dataset:
        """A data set as the parameter ``missing`` wants it; one may have been filled in already."""
        missing = self._missing()
        if data.filling is None:
            check_values(
                data.rows, data.feature_names, missing=missing != "error", n_jobs=self.n_jobs
            )
            return data.filled(missing)
        if missing not in ("error", data.filling.kind):
            raise ValueError(
                f"missing={missing!r}, but the data set was filled in with {data.filling.kind!r}; "
                "leave one of them out, or load it with missing='keep'"
            )
        return data

    def _missing(self) -> str:
        """What happens to missing values in training: the estimators that fill them in say so."""
        missing = getattr(self, "missing", MISSING[0])
        check_one_of("missing", missing, MISSING)
        return str(missing)

    def _note_columns(self, data: Dataset) -> None:
        """Set what scikit-learn keeps of the columns, for data that it does not know."""
        filling = data.filling
        self.n_features_in_ = data.n_features if filling is None else filling.n_features
        if data.feature_names is not None:
            names = data.feature_names[: self.n_features_in_]
            self.feature_names_in_ = np.array(names, dtype=object)
        elif hasattr(self, "feature_names_in_"):  # of an earlier fit
            del self.feature_names_in_

    def _preferences(
        self,
        X: Any,
        pairs: Any,
        pair_weight: Any,
        qid: Any,
        across_queries: bool,
        y: Any,
        sample_weight: Any,
        query_weight: Any,
        group: Any,
    ) -> tuple[Dataset, Preferences]:
        """The arguments of ``fit_pairs``, checked: rows with labels, or without, and the pairs."""
        weights = {"sample_weight": sample_weight, "query_weight": query_weight}
        for name, given in weights.items() if y is None else ():
            if given is not None:
                raise ValueError(f"{name} weighs the pairs of y, but y is None; use pair_weight")
        labels = np.zeros(_n_rows(X)) if y is None else y
        data = self._training_data(X, labels, qid, group, sample_weight)
        preferences = Preferences.of(pairs, pair_weight, n_rows=data.n_rows)
        if data.qid is not None and not across_queries:
            preferences.check_queries(data.queries)
        return data, preferences

    def _adopt_model(self, model: Any, data: Dataset) -> None:
        """Set the attributes that every fit has."""
        self.model_ = model
        self.n_queries_ = model.training["n_queries"]
        self.needs_qid_ = data.qid is not None

    def _adopt_optimum(self, result: Result, model: Any, data: Dataset) -> None:
        """Set the attributes that every fit has which minimises over all its pairs."""
        self._adopt_model(model, data)
        self.n_iter_ = result.n_iter
        self.converged_ = result.converged
        self.objective_ = result.value
        self.duality_gap_ = result.gap
        self.history_ = result.history
        self.n_pairs_ = model.training["n_pairs"]

    def _rows(self, X: Any, qid: Any) -> tuple[Rows | Dataset, Any]:
        check_is_fitted(self)
        if isinstance(X, Dataset):
            if qid is not None:
                raise ValueError("qid is part of the data set; leave it out")
            return X, X.qid
        check_no_query_ids(X, getattr(self, "feature_names_in_", ()))
        rows = as_rows(X, n_jobs=self.n_jobs, check=self._checked)
        validate_data(self, X, reset=False, skip_check_array=True)
        if qid is None and self.model_.scaling.needs_queries and not self.needs_qid_:
            qid = np.zeros(rows.shape[0], dtype=np.int64)  # fitted without qid: all rows, one query
        return rows, qid


def _n_rows(X: Any) -> int:
    """Rows of anything like a matrix; what is none is refused by the checks that follow."""
    shape = getattr(X, "shape", None)
    if shape is not None:
        return int(shape[0]) if len(shape) else 0
    return len(X) if hasattr(X, "__len__") else 0
