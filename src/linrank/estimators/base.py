"""FittedRanker: what all estimators have in common that fit one model, scoring above all."""

from __future__ import annotations

import inspect
import os
import sys
import weakref
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from linrank.choices import MISSING
from linrank.data.dataset import Dataset, check_no_query_ids
from linrank.data.frames import as_array
from linrank.data.missing import Filling
from linrank.data.preferences import Preferences
from linrank.data.queries import UNSAID, Queries, warn_of_one_query
from linrank.data.rows import Rows, as_rows, check_values
from linrank.errors import (
    ConvergenceWarning,
    DataWarning,
    NoPairsError,
    check_one_of,
    did_you_mean,
    warn,
)
from linrank.io.store.store import Store, columns_of, is_limited
from linrank.methods.base import Method, Task, Trained
from linrank.methods.parameters import RowsPlaced
from linrank.metrics import evaluate, parse, rank_within_queries
from linrank.metrics.evaluate import weighted_pairwise_accuracy
from linrank.models.linear import LinearModel
from linrank.search.folds import validation_sets
from linrank.system.resources import resolve

if TYPE_CHECKING:
    from typing_extensions import Self

    from linrank.export.artefact import Artefact
    from linrank.models.additive import AdditiveModel
    from linrank.parts.parts import Parts

_WRITE_AGAIN = "leave it out, or write the store again with it"

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
                "qid= to fit (or params={'qid': qid}), so that qid reaches score too; elsewhere "
                "pass scoring=functools.partial(ranking_scorer('ndcg@10'), qid=qid)"
            )


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
        return self.model_.predict(rows, qid=qid, n_jobs=self.n_jobs)

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
        is_unsaid, qid = qid is UNSAID and group is None, None if qid is UNSAID else qid
        data = self._check_data(X, y, qid, group, sample_weight)
        if is_unsaid and data.qid is None:
            levels = int(data.queries.n_levels.max())
            self._warn_of_one_query(data.labels, data.n_rows, levels)
        return data

    def _warn_of_one_query(self, labels: NDArray[np.float64], n_rows: int, n_levels: int) -> None:
        search, _ = _cross_validation()
        if _is_first(search):
            more = "" if search is None else _GROUPS_ALONE
            warn_of_one_query(f"{type(self).__name__}.fit", labels, n_rows, n_levels, more)

    def _check_data(self, X: Any, y: Any, qid: Any, group: Any, sample_weight: Any) -> Dataset:
        if isinstance(X, (Store, Dataset)):
            own = {"y": y, "qid": qid, "group": group, "sample_weight": sample_weight}
            what = f"the store {X.path}" if isinstance(X, Store) else "the data set"
            for name in (name for name, value in own.items() if value is not None):
                raise ValueError(f"{name} is part of {what}, which is given alone: fit(X)")
            if isinstance(X, Store):
                self._check_policy(X.filling, f"the store {X.path}", _WRITE_AGAIN)
                data = X.dataset(n_jobs=self.n_jobs)
            else:
                data = self._fill_missing(X.without_scan())  # its rows may have been written to
            self._note_columns(data)
            return data
        labels = None if y is None else column_or_1d(as_array(y, "y"), warn=True)
        data = Dataset.of(
            X,
            labels,
            qid=qid,
            group=group,
            sample_weight=sample_weight,
            missing=self._missing_policy(),
            device=self.device if isinstance(self, RowsPlaced) else "cpu",
            n_jobs=self.n_jobs,
        )
        if data.n_rows == 1:
            raise NoPairsError("X has 1 sample, n_samples=1; a pair takes two rows of one query")
        # Dataset has checked the values; scikit-learn's part is names and number of features.
        validate_data(self, X, labels, skip_check_array=True)
        return data

    def _fill_missing(self, data: Dataset) -> Dataset:
        """A data set as the parameter ``missing`` wants it; one may have been filled in already."""
        missing = self._missing_policy()
        if data.filling is None:
            if not data.rows.is_finite(data.weight, resolve(self.n_jobs)):
                check_values(
                    data.rows, data.feature_names, missing=missing != "error", n_jobs=self.n_jobs
                )
            return data.fill(missing)
        remedy = "leave one of them out, or load it with missing='keep'"
        self._check_policy(data.filling, "the data set", remedy)
        return data

    def _check_policy(self, filling: Filling | None, what: str, remedy: str) -> None:
        """Refuse another ``missing`` than the data had when they were filled in, if they were."""
        missing, kind = self._missing_policy(), None if filling is None else filling.kind
        if missing not in ("error", kind):
            was = "not filled in" if kind is None else f"filled in with {kind!r}"
            raise ValueError(f"missing={missing!r}, but {what} was {was}; {remedy}")

    def _columns_of(self, store: Store) -> Dataset:
        """The columns of a store, which decides what happens to missing values."""
        self._check_policy(store.filling, f"the store {store.path}", _WRITE_AGAIN)
        return columns_of(store)

    def _missing_policy(self) -> str:
        """What happens to missing values in training: the estimators that fill them in say so."""
        missing = getattr(self, "missing", MISSING[0])
        check_one_of("missing", missing, MISSING)
        return str(missing)

    def _note_columns(self, data: Dataset) -> None:
        """Set what scikit-learn keeps of the columns, for data that it does not know."""
        self.n_features_in_ = data.n_raw_features
        if data.feature_names is not None:
            names = data.feature_names[: self.n_features_in_]
            self.feature_names_in_ = np.array(names, dtype=object)
        elif hasattr(self, "feature_names_in_"):  # of an earlier fit
            del self.feature_names_in_

    def _adopt_model(self, model: Any, data: Dataset) -> None:
        """Set the attributes that every fit has."""
        self.model_ = model
        self.n_queries_ = model.training["n_queries"]
        self.needs_qid_ = data.qid is not None
        self.__dict__.pop("_fitted_queries", None)
        if self.needs_qid_ and _cross_validation()[1]:
            self._fitted_queries = data.queries

    def _adopt_trained(self, trained: Trained, data: Dataset) -> None:
        """Set the attributes of the fit."""
        self._adopt_model(trained.model, data)
        monitor = trained.monitor
        best = monitor.best_iteration if monitor is not None and monitor.keys else None
        self._set_attributes({"best_iteration": best, **trained.attributes})

    def _set_attributes(self, values: Mapping[str, Any]) -> None:
        """Set ``name_`` for each name; None takes away that of an earlier fit."""
        for name, value in values.items():
            if value is not None:
                setattr(self, f"{name}_", value)
            elif hasattr(self, f"{name}_"):
                delattr(self, f"{name}_")

    def _rows(self, X: Any, qid: Any) -> tuple[Rows | Dataset, Any]:
        check_is_fitted(self)
        if isinstance(X, Dataset):
            if qid is not None:
                raise ValueError("qid is part of the data set; leave it out")
            return X, X.qid
        check_no_query_ids(X, getattr(self, "feature_names_in_", ()))
        rows = as_rows(X, n_jobs=self.n_jobs, check=self._checked)
        validate_data(self, X, reset=False, skip_check_array=True)
        if qid is not None and hasattr(self, "_fitted_queries"):
            self._check_whole_queries(Queries.of(np.zeros(rows.shape[0]), qid))
        if qid is None and self.model_.scaling.needs_queries and not self.needs_qid_:
            qid = np.zeros(rows.shape[0], dtype=np.int64)  # fitted without qid: all rows, one query
        return rows, qid

    def _check_whole_queries(self, queries: Queries) -> None:
        """Warn of queries that folds have split: part of their rows was learnt from.

        A query that is scored with as many rows as it was fitted with is one of the training part.
        """
        search, is_fold = _cross_validation()
        fitted = _sizes(self._fitted_queries)
        if not is_fold or len(fitted) == 1:  # the rows of a single query are what is split
            return
        is_split = any(fitted.get(id_, size) != size for id_, size in _sizes(queries).items())
        if is_split and _is_first(search):
            warn(_SPLIT, DataWarning)


_SPLIT = (
    "the folds split queries: some rows of a query are learnt from and others scored, so that the "
    "score is that of queries which the ranker has seen. Keep queries whole with "
    "cv=linrank.QueryKFold(5), or GroupKFold and groups=qid beside qid="
)
_GROUPS_ALONE = (
    ". In cross-validation, groups= reaches the splitter alone: call "
    "sklearn.set_config(enable_metadata_routing=True) and pass qid= to fit of the search, or "
    "params={'qid': qid} to cross_validate, with cv=linrank.QueryKFold(5)"
)


_warned: weakref.WeakSet[Any] = weakref.WeakSet()  # searches


def _cross_validation() -> tuple[Any, bool]:
    """The search or estimator of scikit-learn's cross-validation that calls this, None for none;
    and whether that is on a fold. No argument tells of either."""
    frame, search, is_fold = sys._getframe(1), None, False
    while frame is not None:
        package, _, module = frame.f_globals.get("__name__", "").rpartition(".")
        if package == "sklearn.model_selection":
            search = frame.f_locals.get("self", frame.f_locals.get("estimator", search))
            is_fold |= module == "_validation"
        frame = frame.f_back  # type: ignore[assignment]
    return search, is_fold


def _is_first(search: Any) -> bool:
    """Whether no fit of this search has warned: each is called as if it were the only one."""
    if search is None:
        return True
    is_first = search not in _warned
    _warned.add(search)
    return is_first


def _sizes(queries: Queries) -> dict[Any, int]:
    ids = () if queries.ids is None else queries.ids.tolist()
    return dict(zip(ids, np.diff(queries.offsets).tolist(), strict=True))


_OF_SCORES = "scores have no offset: train on what is left, or leave it out"
_UNWEIGHTED = "measures weigh no rows: leave it out"
_OF_MEASURES = "measure and cut-off are one name: {0}(scoring='ndcg@10')"
_WARM = "pass {0}(warm_start=True) where it has that, and call fit again"
# Arguments of ``fit`` of LightGBM and XGBoost, and what is to be done here.
_FOREIGN = {
    "base_margin": _OF_SCORES,
    "base_margin_eval_set": _OF_SCORES,
    "callbacks": "pass {0}(callback=function), or {0}(early_stopping=True, n_iter_no_change=5)",
    "categorical_feature": "make a column of each category, as sklearn's OneHotEncoder does",
    "early_stopping_rounds": "pass {0}(early_stopping=True, n_iter_no_change={1})",
    "eval_at": _OF_MEASURES,
    "eval_init_score": _OF_SCORES,
    "eval_metric": _OF_MEASURES,
    "eval_names": "history_ calls the sets val0_..., val1_... in their order: leave it out",
    "eval_sample_weight": _UNWEIGHTED,
    "feature_name": "names are the columns of a data frame, or those of a Dataset",
    "feature_weights": "multiply the columns of X, or pass penalty or bounds to {0}",
    "init_model": _WARM,
    "init_score": _OF_SCORES,
    "sample_weight_eval_set": _UNWEIGHTED,
    "verbose": "pass {0}(verbose={1})",
    "xgb_model": _WARM,
}


def check_foreign(ranker: Any, others: Mapping[str, Any]) -> None:
    """Refuse arguments of other libraries that ask for what the parameters do not say already."""
    kind = type(ranker).__name__
    for name, value in others.items():
        if name not in _FOREIGN:
            hint = did_you_mean(name, inspect.signature(ranker.fit).parameters)
            raise TypeError(f"{kind}.fit() got an unexpected keyword argument {name!r}{hint}")
        if value is None or (isinstance(value, str) and value == "auto"):  # their defaults
            continue
        if not _is_said_already(ranker, name, value, others):
            raise TypeError(f"{kind}.fit() has no {name}; {_FOREIGN[name].format(kind, value)}")


def _is_said_already(ranker: Any, name: str, value: Any, others: Mapping[str, Any]) -> bool:
    """Whether an argument of another library says what a parameter says."""
    if name == "verbose":
        return bool(value) == bool(getattr(ranker, "verbose", 0))
    if name == "early_stopping_rounds":
        return getattr(ranker, "early_stopping", False) and bool(value == ranker.n_iter_no_change)
    if name in ("eval_metric", "eval_at"):
        metric, cutoffs = others.get("eval_metric") or "ndcg", others.get("eval_at")
        cutoff = "" if cutoffs is None else f"@{'-'.join(map(str, np.atleast_1d(cutoffs)))}"
        try:
            return bool(parse(f"{metric}{cutoff}") == parse(ranker.scoring))
        except (AttributeError, ValueError):
            return False
    return False


def n_rows_of(X: Any) -> int:
    """Rows of anything like a matrix; what is none is refused by the checks that follow."""
    shape = getattr(X, "shape", None)
    if shape is not None:
        return int(shape[0]) if len(shape) else 0
    return len(X) if hasattr(X, "__len__") else 0


class MethodRanker(FittedRanker):
    """The fit of every estimator that trains one model, written once.

    A subclass inherits its ``__init__`` from the parameters of ``method``.
    """

    method: ClassVar[Method]

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        qid: Any = UNSAID,
        sample_weight: Any = None,
        query_weight: Any = None,
        group: Any = None,
        X_val: Any = None,
        y_val: Any = None,
        qid_val: Any = None,
        eval_set: Any = None,
        eval_qid: Any = None,
        eval_group: Any = None,
        **others: Any,
    ) -> Self:
        """Learn from labeled rows.

        Parameters
        ----------
        X : matrix of shape (n_rows, n_features), Dataset or Store
            NumPy or SciPy matrix or data frame; float32 stays float32. A data set or store has
            labels, query ids and weights of its own.
        y : array of shape (n_rows,)
            Real labels; only their order within a query matters, unless a parameter says otherwise.
        qid : array of shape (n_rows,)
            Query of each row, of any hashable type and in any order. None: all rows are one query.
            So they are if it is left out, with a warning where the labels look graded.
        sample_weight : array of shape (n_rows,)
            Row weights ``u >= 0``: a weight of 2 equals repeating the row.
        query_weight : mapping from query id to weight, or array
            Query weights ``c >= 0``. An array has an element for each query, in order of first
            appearance (or of `group`), or for each row, constant within each query.
        group : array of shape (n_queries,)
            Sizes of consecutive queries, in place of `qid`.
        X_val, y_val, qid_val : validation data
            `scoring` is computed on them at every iteration.
        eval_set, eval_qid, eval_group : validation data as XGBoost, LightGBM and PyTerrier pass it
            ``eval_set=[(X, y), ...]`` with the ids or sizes of each; the last one steers
            `early_stopping`.
        **others
            Of LightGBM's and XGBoost's ``fit``: a TypeError names the parameter that does the
            same, unless the argument has its default or says what that parameter says.

        Returns
        -------
        self
            The fitted estimator.
        """
        check_foreign(self, others)
        own = {"qid": qid, "group": group, "sample_weight": sample_weight}
        validation = (X_val, y_val, qid_val, eval_set, eval_qid, eval_group)
        is_stored = "store" in self.method.places and (
            isinstance(X, Store) or self.memory_limit is not None
        )
        if is_stored and is_limited(X, y, self.memory_limit, **own):
            columns = self._columns_of(X)
            sets = self._validation_sets(columns, validation)
            self._train(X, columns, sets, query_weight)
            self._note_columns(columns)
            return self
        data = self._training_data(X, y, **own)
        return self._train(data, data, self._validation_sets(data, validation), query_weight)

    def _validation_sets(self, data: Dataset, given: tuple[Any, ...]) -> tuple[Dataset, ...]:
        if all(part is None for part in given):
            return ()
        if not hasattr(self, "scoring"):
            raise TypeError(f"{type(self).__name__} takes no validation data; leave it out")
        return tuple(validation_sets(data, *given))

    def _train(
        self,
        data: Dataset | Store | Parts,
        columns: Dataset,
        sets: tuple[Dataset, ...],
        query_weight: Any,
        preferences: Preferences | None = None,
    ) -> Self:
        """Let the method train, and set the attributes of the fit."""
        is_warm = getattr(self, "warm_start", False) and hasattr(self, "model_")
        start = self.model_ if is_warm else None
        trained = self.method.train(Task(data, self, sets, query_weight, preferences, start))
        if trained.doubt:
            warn(f"{type(self).__name__} {trained.doubt}", ConvergenceWarning)
        self._adopt_trained(trained, columns)
        return self


class PairRanker(MethodRanker):
    """Learns from listed pairs too."""

    def fit_pairs(
        self,
        X: Any,
        pairs: Any,
        *,
        pair_weight: Any = None,
        qid: Any = UNSAID,
        across_queries: bool = False,
        y: Any = None,
        sample_weight: Any = None,
        query_weight: Any = None,
        group: Any = None,
        X_val: Any = None,
        y_val: Any = None,
        qid_val: Any = None,
    ) -> Self:
        """Learn from preferences, "this row above that one", alone or beside labels.

        Minimizes the regularizer plus ``C Σ_t ω_t l(1 - (s_win - s_lose))``, s the scores and l the
        loss of a pair, and with `y` the same plus the pair losses of the labels, as in :meth:`fit`.

        Parameters
        ----------
        X : matrix of shape (n_rows, n_features)
            NumPy or SciPy matrix or data frame, or a kernel matrix, as in :meth:`fit`. Of a data
            set, given with its query ids, the labels do not count: `pairs` alone are learnt from.
        pairs : integers of shape (n_pairs, 2), or Preferences
            Rows of `X`, from 0: the winner, then the loser. A pair given twice counts twice; a pair
            and its reverse may both be given, and each pulls its way.
        pair_weight : array of shape (n_pairs,)
            Weights ``ω >= 0``; ones if None.
        qid : array of shape (n_rows,)
            Query of each row. A pair must then lie within a query, unless `across_queries`.
        across_queries : bool, default=False
            Whether pairs may compare rows of different queries.
        y : array of shape (n_rows,)
            Labels, if the pairs that they make are to count as well. Labels that make none (all
            equal within every query) add nothing.
        sample_weight, query_weight : arrays
            Weights of the pairs of `y`, as in :meth:`fit`; they do not touch `pairs`.
        group : array of shape (n_queries,)
            Sizes of consecutive queries, in place of `qid`.
        X_val, y_val, qid_val : validation data
            Labeled rows; `scoring` is computed on them at every iteration. Linear models only.

        Returns
        -------
        self
            The fitted estimator; ``n_pairs_`` counts both kinds of pairs.

        Examples
        --------
        >>> from linrank import RankSVM
        >>> X = [[0.0, 1.0], [1.0, 1.0], [2.0, 0.0]]
        >>> RankSVM().fit_pairs(X, [[2, 1], [1, 0]]).rank(X).tolist()
        [3, 2, 1]
        """
        weights = {"sample_weight": sample_weight, "query_weight": query_weight}
        for name, given in weights.items() if y is None else ():
            if given is not None:
                raise ValueError(f"{name} weighs the pairs of y, but y is None; use pair_weight")
        if isinstance(X, (Store, Dataset)):
            data = self._training_data(X, y, qid, group, sample_weight)
            data = replace(data, labels=np.zeros(data.n_rows))
        else:
            labels = np.zeros(n_rows_of(X)) if y is None else y
            data = self._training_data(X, labels, qid, group, sample_weight)
        preferences = Preferences.of(pairs, pair_weight, n_rows=data.n_rows)
        if data.qid is not None and not across_queries:
            preferences.check_queries(data.queries)
        sets = self._validation_sets(data, (X_val, y_val, qid_val, None, None, None))
        return self._train(data, data, sets, query_weight, preferences)


class LinearRanker(FittedRanker):
    """Scores rows by coefficients, and explains the scores by them."""

    coef_: NDArray[np.float64]
    _checked = "later"  # the model finds values that are not finite by their scores

    def explain(self, X: Any, qid: Any = None, pair: tuple[int, int] | None = None) -> Any:
        """What each feature contributes: ``coef_ ∘ x``, or ``coef_ ∘ (x_i - x_j)``.

        Parameters
        ----------
        X : matrix of shape (n_rows, n_features)
            Raw rows.
        qid : array of shape (n_rows,)
            Query of each row; only ``scale="query"`` looks at it.
        pair : (int, int) or None
            Two rows of `X` to compare.

        Returns
        -------
        ndarray or scipy.sparse.csr_array
            Of shape (n_rows, n_features), each row summing to its score; with `pair` a vector that
            sums to the score of row i less that of row j.
        """
        rows, qid = self._rows(X, qid)
        return self.model_.explain(rows, qid=qid, pair=pair)

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """The share of each feature in ``|coef_j|·std_j``, by which it usually moves a score.

        The deviations are those of the training rows; a model that lacks them, as one of more than
        20,000 features, of a cluster or with ``scale="query"``, has no such attribute.
        """
        check_is_fitted(self, "model_")
        found = getattr(self.model_, "importances", None)
        if found is None:
            raise AttributeError(
                f"this {type(self).__name__} has no feature_importances_: its model has no weights "
                "of features with known deviations; see permutation_importance in the guide"
            )
        total = float(found.sum())
        return found / total if total > 0.0 else found

    def export(self, target: str, **options: Any) -> Artefact:
        """``model_`` for a search engine or another program: :meth:`linrank.LinearModel.export`."""
        from linrank.export.targets import export

        check_is_fitted(self, "model_")
        return export(self.model_, target, **options)

    def _adopt_model(self, model: LinearModel | AdditiveModel, data: Dataset) -> None:
        super()._adopt_model(model, data)
        coef = getattr(model, "coef", None)  # curves have none
        self._set_attributes({"coef": coef, "intercept": None if coef is None else 0.0})


class SparseRanker(LinearRanker):
    """A linear ranker most of whose weights are 0."""

    @property
    def sparse_coef_(self) -> Any:
        """``coef_`` as a ``scipy.sparse.csr_array`` of shape (1, n_features)."""
        from scipy.sparse import csr_array

        check_is_fitted(self, "coef_")
        return csr_array(self.coef_.reshape(1, -1))
