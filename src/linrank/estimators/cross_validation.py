"""The estimators that search: one fit over folds, and a face for each method."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np

from linrank.data.dataset import Dataset
from linrank.data.queries import UNSAID
from linrank.errors import ConvergenceWarning, warn
from linrank.estimators.base import FittedRanker, LinearRanker, SparseRanker, check_foreign
from linrank.estimators.kernel import KernelRanker
from linrank.io.store.store import is_limited
from linrank.methods import AUTO, DOMINATION, FACTORIZED, KERNEL, RANKSVM, SGD
from linrank.methods import parameters as of
from linrank.methods.base import Method, Task
from linrank.methods.ground import tell
from linrank.metrics import parse
from linrank.parts.parts import MemoryParts, Parts
from linrank.parts.passes import StoreParts
from linrank.parts.validation import folds_of
from linrank.ranksvm.path import PathResult
from linrank.search.folds import folds_or_validation
from linrank.search.tuning import Tuning
from linrank.system.resources import resolve
from linrank.system.tables import Column, Table

if TYPE_CHECKING:
    from typing_extensions import Self


class SearchRanker(FittedRanker):
    """The fit of every estimator that chooses its parameters on unseen rows, written once.

    A subclass inherits its ``__init__`` from the parameters ``method.search``.
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
        eval_set: Any = None,
        eval_qid: Any = None,
        eval_group: Any = None,
        **others: Any,
    ) -> Self:
        """Choose on unseen rows, and learn from all of them with what was chosen.

        Parameters
        ----------
        X, y, qid, sample_weight, query_weight, group
            The training data, as in :meth:`RankSVM.fit`, a data set or a store. Weights count in
            training, not in the measure.
        eval_set, eval_qid, eval_group : validation data as XGBoost, LightGBM and PyTerrier pass it
            ``eval_set=[(X, y), ...]`` with the ids or sizes of each; the choice is made on the
            last one, in place of the folds of `cv`, which must be None.
        **others
            Of LightGBM's and XGBoost's ``fit``, as in :meth:`RankSVM.fit`.

        Returns
        -------
        self
            The fitted estimator.
        """
        check_foreign(self, others)
        cv = folds_or_validation(self.cv, eval_set, eval_qid, eval_group)
        own = {"qid": qid, "group": group, "sample_weight": sample_weight}
        place: Parts
        in_passes = "store" in self.method.places and hasattr(self, "memory_limit")
        if in_passes and is_limited(X, y, self.memory_limit, **own):
            place = StoreParts(X, self.memory_limit, resolve(self.n_jobs))
            self._note_columns(self._columns_of(X))
        else:
            place = MemoryParts(self._training_data(X, y, **own), resolve(self.n_jobs))
        return self._search(place, place.columns, folds_of(cv, place, X), query_weight)

    def _search(self, data: Any, columns: Dataset, folds: Any, query_weight: Any) -> Self:
        """Let the method choose and train, and set the attributes of the fit."""
        task, search = Task(data, self, query_weight=query_weight), cast(Any, self.method.path)
        found = search(task, folds, progress=report_model if self.verbose > 0 else None)
        self._adopt_choice(found, found.path)
        if found.trained.doubt:
            warn(f"{type(self).__name__} {found.trained.doubt}", ConvergenceWarning)
        self._adopt_trained(found.trained, columns)
        return self

    def _adopt_choice(self, tuning: Tuning, path: PathResult | None) -> None:
        """Set the attributes of the choice; warn where it is doubtful."""
        for said in tuning.edges:
            warn(said)
        for doubt in (tuning.open, None if path is None else path.doubt):
            if doubt:
                warn(doubt, ConvergenceWarning)
        for name, values in tuning.grid.items():
            setattr(self, f"{name}s_", values)
            setattr(self, f"{name}_", tuning.best_params[name])
        self.scores_, self.mean_scores_ = tuning.scores, tuning.mean_scores
        self.best_score_, self.best_params_ = tuning.score, tuning.best_params
        self.cv_results_ = tuning.cv_results
        self.best_index_ = int(
            np.ravel_multi_index(np.atleast_1d(tuning.chosen), self.mean_scores_.shape)
        )
        if path is not None:
            self.path_ = path


def report_model(state: dict[str, Any]) -> None:
    """One line per model."""
    told = [f"fold {state['fold'] + 1}"]
    for name, value in state.items():
        if name not in _TOLD_LATER:
            told.append(f"{name} {value if isinstance(value, str) else format(value, 'g')}")
    told += [f"{key} {state[key]:.6g}" for key in ("objective", "gap", "score") if key in state]
    told += [f"{state['n_nonzero']} weights"] if "n_nonzero" in state else []
    tell(", ".join(told))


_TOLD_LATER = ("fold", "objective", "gap", "score", "n_nonzero", "n_done", "n_total")


class RankSVMCV(SearchRanker, LinearRanker, of.RankSVMSearch):
    """Linear RankSVM whose C is the one that ranks unseen queries best.

    For every fold a whole regularization path is fitted on the other folds and all its models are
    measured on the fold; the C with the largest mean is taken, and the model is fitted on all data.

    Parameters
    ----------
    Cs : "auto" or array of float, default="auto"
        The grid, values > 0; ``"auto"`` is 2^-10, 2^-9, ..., 2^14 times the C that
        ``RankSVM(C="auto")`` takes from all data.
    cv : None, int, splitter, list of pairs, or tuple, default=None
        How validation rows are set apart. An integer k stands for ``QueryKFold(k)``, None for 5
        folds; without `qid`, all rows are one query and are dealt out by label. A splitter gets
        the query ids as groups; a list holds pairs (train, test) of row numbers. A tuple
        ``(X_val, y_val, qid_val)`` is a validation set: one path on all the training data.
    scoring : str or callable, default="ndcg@10"
        The measure, by name or as a function, as :func:`linrank.evaluate` takes it. An error, of
        which less is better, has a minus sign in the scores.
    selection : {"best", "one_se"}, default="best"
        ``best``: the largest mean over folds, the smallest C among equals. ``one_se``: the
        smallest C within one standard error of it.
    loss, pairs, n_closest, n_random, pair_weighting, solver
        As in :class:`linrank.RankSVM`; the path is fast for the squared hinge by ``newton``. A
        number of pairs holds for the training part of each fold as for all data.
    tol : float or None, default=None
        Certified duality gap of every model, relative to its objective: 1e-4 if None, or 1e-3 for
        the hinge and for ``solver="bundle"``.
    max_iter : int or None, default=None
        Steps at most for each C; 100 if None, of the bundle 2000.
    scale : {"auto", "none", "standard", "minmax", "query"}, default="auto"
        Feature scaling, fitted on the training part of each fold.
    missing : {"error", "zero", "mean", "indicator"}, default="error"
        What a missing value, NaN or null, means; kept in the model, so that it means the same when
        scoring. ``"error"`` refuses it; ``"zero"`` reads 0; ``"mean"`` reads the mean of the
        feature in the training rows; ``"indicator"`` reads 0 and learns what a missing value is
        worth, for each feature that has some in the training rows.
    query_normalization : {"auto", None, "pairs"}, default="auto"
        ``"pairs"`` makes every query count the same. What is ``"auto"`` here or in `scale` and
        `pair_weighting` is decided once, by all data, as in :class:`linrank.RankSVM`.
    curves, n_knots, interactions, increasing, decreasing
        As in :class:`linrank.RankSVM`; knots are of the training part of each fold, and the rows of
        ``path_.coefs`` have a weight for each column.
    positive, coef_bounds
        Bounds of the coefficients, as in :class:`linrank.RankSVM`; every C is then a fit of its
        own, from the last.
    random_state : int, RandomState, Generator or None, default=None
        Of the pairs drawn for ``pairs="closest"`` and ``"pruned"``, and of `interactions`.
    memory_limit : int, float, str or None, default=None
        As in :class:`linrank.RankSVM`, of a :class:`linrank.Store`: bytes that the search may take
        beyond what the process holds when it begins. Folds share its rows, and are the same for
        any limit.
    device : str, default="cpu"
        As in :class:`linrank.RankSVM`; on a device, folds are cut and measured there too.
    n_jobs : int or None, default=None
        Threads in all, over folds and inside them. The result does not depend on it.
    verbose : int, default=0
        Report each model when positive: to the logger ``linrank`` if it is set up for INFO, else
        to standard error, in a notebook to standard output.

    Attributes
    ----------
    C_ : float
        The chosen C.
    Cs_ : ndarray of shape (n_C,)
        The grid, ascending.
    scores_ : ndarray of shape (n_folds, n_C)
        The measure on each fold.
    mean_scores_ : ndarray of shape (n_C,)
        Its mean over folds.
    best_score_ : float
        The mean of ``C_``.
    best_params_, cv_results_ : dict
        The choice by name, and the whole grid as in scikit-learn's ``GridSearchCV``.
    path_ : PathResult
        The path on all training data; ``coef_`` is its row of ``C_``.
    coef_, objective_, duality_gap_, kkt_residual_, converged_, history_, model_ : as in RankSVM
        Of the model for ``C_``.
    n_iter_ : int
        Newton steps on the path up to ``C_``.
    n_pairs_, n_queries_, needs_qid_, n_features_in_, feature_names_in_ : as in RankSVM
        Of the training data.

    Examples
    --------
    >>> from linrank import RankSVMCV, make_ranking
    >>> data = make_ranking(n_queries=60, n_features=4, noise=0.5, random_state=0)
    >>> ranker = RankSVMCV(cv=3).fit(data.X, data.y, qid=data.qid)
    >>> ranker.scores_.shape, ranker.C_ in ranker.Cs_
    ((3, 25), True)
    """

    method = RANKSVM


class SGDRankerCV(SearchRanker, LinearRanker, of.SGDSearch):
    """Linear ranker by stochastic descent with the λ that ranks unseen queries best.

    For every fold, the models of the whole grid learn from the same pairs of the other folds, in
    one pass, and are measured on the fold; the λ and the algorithm with the largest mean are taken,
    and a model is fitted with them on all data. A model of the grid equals the one that
    :class:`linrank.SGDRanker` would fit alone, up to rounding.

    Parameters
    ----------
    alphas : "auto" or array of float, default="auto"
        The grid of λ, values > 0; ``"auto"`` is 1, 0.1, ..., 1e-7.
    algorithms : str or sequence of str, default="pegasos"
        The algorithms to try, each with every λ; see :class:`linrank.SGDRanker`.
    cv : None, int, splitter, list of pairs, or tuple, default=None
        How validation rows are set apart, as in :class:`linrank.RankSVMCV`: a number of folds, None
        for 5. A tuple ``(X_val, y_val, qid_val)`` is a validation set: the grid is trained once, on
        all the training data.
    scoring : str or callable, default="ndcg@10"
        The measure, by name or as a function, as :func:`linrank.evaluate` takes it. An error, of
        which less is better, has a minus sign in the scores.
    selection : {"best", "one_se"}, default="best"
        ``best``: the largest mean over folds; among equals the first algorithm and the largest λ.
        ``one_se``: the largest λ, of the same algorithm, within one standard error of it.
    aggressiveness, n_steps, sampling, average, record
        As in :class:`linrank.SGDRanker`; `record` is for the model on all data.
    scale : {"auto", "none", "standard", "minmax", "query"}, default="auto"
        Feature scaling, fitted on the training part of each fold. Each fold that is being trained
        then has a scaled copy of the rows; with ``"none"``, and `qid` given, none is made.
    missing : {"error", "zero", "mean", "indicator"}, default="error"
        What a missing value, NaN or null, means; kept in the model, so that it means the same when
        scoring. ``"error"`` refuses it; ``"zero"`` reads 0; ``"mean"`` reads the mean of the
        feature in the training rows; ``"indicator"`` reads 0 and learns what a missing value is
        worth, for each feature that has some in the training rows.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the pairs, the same for every fold and for the model on all data.
    n_jobs : int or None, default=None
        Threads in all, over folds and inside them. The result does not depend on it.
    verbose : int, default=0
        Report each model when positive, once its fold is done, as in :class:`linrank.RankSVMCV`.

    Attributes
    ----------
    alpha_, algorithm_ : float, str
        What was chosen.
    alphas_ : ndarray of shape (n_alphas,)
        The grid of λ, descending: the most regularized first.
    algorithms_ : tuple of str
        The algorithms tried.
    scores_ : ndarray of shape (n_folds, n_algorithms, n_alphas)
        The measure on each fold.
    mean_scores_ : ndarray of shape (n_algorithms, n_alphas)
        Its mean over folds.
    best_score_ : float
        The mean of what was chosen.
    best_params_, cv_results_ : dict
        The choice by name, and the whole grid as in scikit-learn's ``GridSearchCV``.
    coef_, objective_, duality_gap_, loss_, history_, stopped_, n_steps_, model_ : as in SGDRanker
        Of the model on all data.
    n_pairs_, n_queries_, needs_qid_, n_features_in_, feature_names_in_ : as in SGDRanker
        Of the training data.

    Examples
    --------
    >>> from linrank import SGDRankerCV, make_ranking
    >>> data = make_ranking(n_queries=60, n_features=4, noise=0.5, random_state=0)
    >>> ranker = SGDRankerCV([1e-3, 1e-4, 1e-5], cv=3, scale="standard", random_state=0)
    >>> ranker = ranker.fit(data.X, data.y, qid=data.qid)
    >>> ranker.scores_.shape, ranker.alpha_ in ranker.alphas_
    ((3, 1, 3), True)
    """

    method = SGD


class DominationRankerCV(SearchRanker, SparseRanker, of.DominationSearch):
    """Sparse linear ranker by the domination loss whose alpha ranks unseen queries best.

    For every fold a whole path of alphas is fitted on the other folds and all its models are
    measured on the fold; the alpha with the largest mean is taken, and the model is fitted on all
    data. With ``selection="one_se"`` it is the sparsest that the folds cannot tell from that.

    Parameters
    ----------
    penalty : {"l1", "l2"}, default="l1"
        As in :class:`linrank.DominationRanker`.
    alphas : "auto" or array of float, default="auto"
        The grid, values > 0. ``"auto"``: `n_alphas` values, equal factors apart, from the alpha
        at which all training data leave no coefficient (l2: hardly any) down to `eps` times that;
        the same for all folds.
    n_alphas : int, default=50
        Number of them if "auto".
    eps : float or None, default=None
        Smallest alpha relative to the largest if "auto": 1e-3 if None, with l2 1e-6.
    max_features : int or None, default=None
        End each path with the first model of more coefficients than this, and leave out the alphas
        that not all folds have come to.
    cv : None, int, splitter, list of pairs, or tuple, default=None
        How validation rows are set apart, as in :class:`linrank.RankSVMCV`: 5 folds if None, a
        number of folds, a splitter that takes query ids as groups, pairs (train, test) of row
        numbers, or validation data ``(X_val, y_val, qid_val)``.
    scoring : str or callable, default="ndcg@10"
        The measure, by name or as a function, as :func:`linrank.evaluate` takes it. An error, of
        which less is better, has a minus sign in the scores.
    selection : {"best", "one_se"}, default="best"
        ``best``: the largest mean over folds, the largest alpha among equals. ``one_se``: the
        largest alpha within one standard error of it.
    margin, layers, pooled, solver, negative_sampling
        As in :class:`linrank.DominationRanker`. Margins by row go with their rows into the folds.
    memory_limit : int, float, str or None, default=None
        As in :class:`linrank.RankSVMCV`, of a :class:`linrank.Store` with ``penalty="l2"``: it is
        read pass after pass, and folds share its rows.
    tol : float or None, default=None
        Largest certified gap of every model, relative to its objective; 1e-4 if None.
    max_iter : int or None, default=None
        Sweeps at most for each alpha, or Newton steps; 1000 or 100 if None.
    scale : {"auto", "none", "standard", "minmax", "query"}, default="auto"
        Feature scaling, fitted on the training part of each fold.
    curves, n_knots, interactions
        As in :class:`linrank.RankSVM`; knots are of the training part of each fold.
    missing : {"error", "zero", "mean", "indicator"}, default="error"
        What a missing value, NaN or null, means; kept in the model, so that it means the same when
        scoring. ``"error"`` refuses it; ``"zero"`` reads 0; ``"mean"`` reads the mean of the
        feature in the training rows; ``"indicator"`` reads 0 and learns what a missing value is
        worth, for each feature that has some in the training rows.
    random_state : int, None, RandomState or Generator, default=None
        Of `negative_sampling`.
    n_jobs : int or None, default=None
        Threads in all, over folds and inside them. The result does not depend on it.
    verbose : int, default=0
        Report each model when positive, as in :class:`linrank.RankSVMCV`.

    Attributes
    ----------
    alpha_ : float
        The chosen alpha.
    alphas_ : ndarray of shape (n_alphas,)
        The grid, descending.
    scores_ : ndarray of shape (n_folds, n_alphas)
        The measure on each fold.
    mean_scores_ : ndarray of shape (n_alphas,)
        Its mean over folds.
    best_score_ : float
        The mean of ``alpha_``.
    best_params_, cv_results_ : dict
        The choice by name, and the whole grid as in scikit-learn's ``GridSearchCV``.
    n_nonzeros_ : ndarray of shape (n_folds, n_alphas)
        Coefficients other than 0 of the models of each fold; those of the models on all data are
        in ``path_.n_nonzero``.
    path_ : PathResult
        The path on all training data; ``coef_`` is its row of ``alpha_``.
    coef_, sparse_coef_, n_nonzero_, density_, model_ : as in DominationRanker
        Of the model for ``alpha_``.
    objective_, duality_gap_, kkt_residual_, converged_, history_ : as in DominationRanker
        Of its training.
    n_iter_ : int
        Sweeps or steps on the path up to ``alpha_``.
    n_pairs_, n_queries_, needs_qid_, n_features_in_, feature_names_in_ : as in DominationRanker
        Of the training data.

    Examples
    --------
    >>> from linrank import DominationRankerCV, make_ranking
    >>> data = make_ranking(n_queries=60, n_features=6, noise=1.0, random_state=0)
    >>> ranker = DominationRankerCV(n_alphas=20, cv=3).fit(data.X, data.y, qid=data.qid)
    >>> ranker.scores_.shape, ranker.alpha_ in ranker.alphas_
    ((3, 20), True)
    """

    method = DOMINATION


class FactorizedRankSVMCV(SearchRanker, LinearRanker, of.FactorizedSearch):
    """RankSVM with the hinge and factorized duals, with the C that ranks unseen queries best.

    Every C is trained on every fold, from the start that `random_state` draws, and measured on the
    rows left out; the C with the largest mean is taken, and a :class:`linrank.FactorizedRankSVM` is
    fitted with it on all data.

    Parameters
    ----------
    Cs : "auto" or array of float, default="auto"
        The grid, values > 0; ``"auto"`` is 2^-10, 2^-8, ..., 2^14 times what ``C="auto"`` would be
        in :class:`linrank.RankSVM`.
    n_components, constraint, tol, max_iter, query_normalization
        As in :class:`linrank.FactorizedRankSVM`.
    cv : None, int, splitter, list of pairs, or tuple, default=None
        How validation rows are set apart, as in :class:`linrank.RankSVMCV`: a number of folds, None
        for 5. A tuple ``(X_val, y_val, qid_val)`` is a validation set: the grid is trained once, on
        all the training data.
    scoring : str or callable, default="ndcg@10"
        The measure, by name or as a function, as :func:`linrank.evaluate` takes it. An error, of
        which less is better, has a minus sign in the scores.
    selection : {"best", "one_se"}, default="best"
        ``best``: the largest mean over folds, the smallest C among equals. ``one_se``: the
        smallest C within one standard error of it.
    scale : {"auto", "none", "standard", "minmax", "query"}, default="auto"
        Feature scaling, fitted on the training part of each fold.
    missing : {"error", "zero", "mean", "indicator"}, default="error"
        What a missing value, NaN or null, means, as in :class:`linrank.RankSVM`.
    random_state : int, None, RandomState or Generator, default=None
        Of the start and of the order of the queries, the same for every model.
    n_jobs : int or None, default=None
        Threads in all, over folds and inside them. The result does not depend on it.
    verbose : int, default=0
        Report each model when positive, as in :class:`linrank.RankSVMCV`.

    Attributes
    ----------
    C_ : float
        The chosen C.
    Cs_ : ndarray of shape (n_C,)
        The grid, ascending.
    scores_ : ndarray of shape (n_folds, n_C)
        The measure on each fold.
    mean_scores_ : ndarray of shape (n_C,)
        Its mean over folds.
    best_score_ : float
        The mean of ``C_``.
    best_params_, cv_results_ : dict
        The choice by name, and the whole grid as in scikit-learn's ``GridSearchCV``.
    coef_, objective_, lower_bound_, hinge_objective_, duality_gap_, kkt_residual_, n_iter_, \
converged_, history_, model_ : as in FactorizedRankSVM
        Of the model on all data.
    n_pairs_, n_queries_, needs_qid_, n_features_in_, feature_names_in_ : as in FactorizedRankSVM
        Of the training data.

    Examples
    --------
    >>> from linrank import FactorizedRankSVMCV, make_ranking
    >>> data = make_ranking(n_queries=20, n_features=4, noise=0.5, random_state=0)
    >>> ranker = FactorizedRankSVMCV([0.01, 0.1, 1.0], n_components=2, cv=3, random_state=0)
    >>> ranker = ranker.fit(data.X, data.y, qid=data.qid)
    >>> ranker.scores_.shape, ranker.C_ in ranker.Cs_
    ((3, 3), True)
    """

    method = FACTORIZED


class KernelRankSVMCV(SearchRanker, KernelRanker, of.KernelSearch):
    """RankSVM with a kernel, with the C and the γ that rank unseen queries best.

    For each γ the kernel matrix of all rows is computed once. Every fold trains on its part of it
    for ascending C, each model from the last, and is measured on another part; the (C, γ) with the
    largest mean is taken, and a :class:`linrank.KernelRankSVM` is fitted with it on all data.

    Parameters
    ----------
    kernel : {"rbf", "poly", "sigmoid", "linear", "precomputed"} or callable, default="rbf"
        As in :class:`linrank.KernelRankSVM`. The last three kinds have no γ, and one grid.
    Cs : "auto" or array of float, default="auto"
        The grid of C, values > 0; ``"auto"`` is 2^-10, 2^-8, ..., 2^14 times that of
        ``KernelRankSVM(C="auto")``.
    gammas : "auto" or array of float, default="auto"
        The grid of γ, values > 0; ``"auto"`` is 1/64, 1/16, 1/4, 1, 4, 16 and 64 times the γ of
        ``gamma="scale"``, which is ``1 / (n_features Var X)``.
    cv : None, int, splitter, list of pairs, or tuple, default=None
        How validation rows are set apart, as in :class:`linrank.RankSVMCV`: a number of folds, None
        for 5. A tuple ``(X_val, y_val, qid_val)`` is a validation set: the grid is trained once, on
        all the training data. Of a precomputed kernel, ``X_val`` is ``K(valid, train)``.
    scoring : str or callable, default="ndcg@10"
        The measure, by name or as a function, as :func:`linrank.evaluate` takes it. An error, of
        which less is better, has a minus sign in the scores.
    selection : {"best", "one_se"}, default="best"
        ``best``: the largest mean over folds; among equals the smallest C, then the smallest γ.
        ``one_se``: of the models within one standard error of it that have neither a larger C nor
        a larger γ, the one of the smallest C, and with that of the smallest γ.
    degree, coef0, loss, pairs, n_closest, n_random, pair_weighting, query_normalization, tol, \
max_iter
        As in :class:`linrank.KernelRankSVM`. Pairs are chosen within the training part of each
        fold.
    memory_limit : int, float, str or None, default=None
        Bytes that the search may take beyond what the process holds when it begins, for kernel
        matrices, those of folds side by side included; None for half of what is free. Where the
        matrix of all rows and that of a fold do not fit together, every fold computes its own,
        block by block for every product if need be.
    device : str, default="cpu"
        As in :class:`linrank.KernelRankSVM`; on a device, folds are trained one after the other.
    scale : {"auto", "none", "standard", "minmax", "query"}, default="auto"
        Feature scaling, fitted on the training part of each fold. With ``"standard"`` and
        ``"minmax"`` the folds have different kernels, and each computes its own.
    random_state : int, None, RandomState or Generator, default=None
        As in :class:`linrank.KernelRankSVM`, the same for every model.
    n_jobs : int or None, default=None
        Threads in all, over folds and inside them.
    verbose : int, default=0
        Report each model when positive: to the logger ``linrank`` if it is set up for INFO, else
        to standard error, in a notebook to standard output.

    Attributes
    ----------
    C_, gamma_ : float
        What was chosen.
    Cs_, gammas_ : ndarrays
        The grids, ascending.
    scores_ : ndarray of shape (n_folds, n_gammas, n_C)
        The measure on each fold.
    mean_scores_ : ndarray of shape (n_gammas, n_C)
        Its mean over folds.
    best_score_ : float
        The mean of what was chosen.
    best_params_, cv_results_ : dict
        The choice by name, and the whole grid as in scikit-learn's ``GridSearchCV``.
    dual_coef_, support_, support_vectors_, n_support_ : as in KernelRankSVM
        Of the model on all data.
    objective_, duality_gap_, n_iter_, converged_, history_, model_ : as in KernelRankSVM
        Of the model on all data.
    n_pairs_, n_queries_, needs_qid_, n_features_in_, feature_names_in_ : as in KernelRankSVM
        Of the training data.

    Examples
    --------
    >>> import numpy as np
    >>> from linrank import KernelRankSVMCV
    >>> X = np.random.default_rng(0).normal(size=(90, 2))
    >>> y = -np.abs(X).sum(axis=1)  # best in the middle
    >>> ranker = KernelRankSVMCV(Cs=[0.01, 0.1, 1], gammas=[0.01, 0.1, 1, 10], cv=3,
    ...                          scoring="pairwise_accuracy", random_state=0).fit(X, y)
    >>> ranker.scores_.shape, ranker.best_score_ > 0.8
    ((3, 4, 3), True)
    """

    method = KERNEL


class AutoRanker(SearchRanker, LinearRanker, of.AutoSearch):
    """The model, of several kinds, that ranks unseen queries best by a metric of yours.

    Tried on the same folds of queries, from the simplest on: few weights (the domination loss with
    the l1 penalty), linear, linear with pairs weighted by the metric, a curve of each feature, and
    curves with interactions of all features; each with five weights of the losses. Features are
    scaled. What was chosen is trained on all rows.

    Parameters
    ----------
    metric : str or callable, default="ndcg@10"
        What is to be high on unseen queries. A measure of ranked lists also weighs the pairs, its
        cut-off doubled.
    time_limit : float or None, default=None
        Seconds. A kind of model that would take longer, as far as can be told from the one before,
        is not tried; the first two always are.
    selection : {"best", "one_se"}, default="best"
        The best mean, or the simplest model whose mean is within one standard error of it.
    cv : int, folds or validation data, default=None
        As in :class:`RankSVMCV`; None for 5 folds of queries.
    missing : {"error", "zero", "mean", "indicator"}, default="error"
        As in :class:`RankSVM`.
    scale : str
        Ignored: features are always scaled.
    random_state : int, default=None
        Of the landmarks of interactions.
    n_jobs : int or None, default=None
        Threads; None for all cores.
    verbose : int, default=0
        1 prints a line for each model.

    Attributes
    ----------
    model_ : LinearModel or AdditiveModel
        The chosen model.
    tried_ : tuple of dict
        What was tried: "model", "told", "score" (its best mean), "weight" and "seconds", or
        "skipped", the reason why not. ``print(ranker.summary())`` shows it.
    best_params_ : dict
        "model" and "weight", that is C times the weights of all pairs.
    best_score_, cv_results_, scores_, mean_scores_
        As in :class:`RankSVMCV`, over kinds of models and weights.

    Examples
    --------
    >>> from linrank import AutoRanker, make_ranking
    >>> data = make_ranking(n_queries=30, n_features=5, random_state=0)
    >>> ranker = AutoRanker("ndcg@5", cv=3).fit(data)
    >>> len(ranker.tried_), sorted(ranker.best_params_)
    (5, ['model', 'weight'])
    """

    method = AUTO

    def _adopt_choice(self, tuning: Any, path: Any) -> None:
        super()._adopt_choice(tuning, path)
        self.tried_ = tuning.tried

    def summary(self) -> str:
        """What was tried, how it ranked unseen queries, and which was chosen."""
        rows = [
            [
                "*" if one["model"] == self.best_params_["model"] else "",
                one["told"],
                f"{one['score']:.4f}" if "score" in one else one["skipped"],
                f"{one['weight']:g}" if "weight" in one else "",
                f"{one['seconds']:.2f} s" if "seconds" in one else "",
            ]
            for one in self.tried_
        ]
        names = ("", "model", str(parse(self.metric)), "best weight", "time")
        columns = [Column(name, "left" if k < 2 else "right") for k, name in enumerate(names)]
        chosen = f"chosen: weight {self.best_params_['weight']:g}, {self.selection}"
        return Table(columns, rows, notes=[chosen]).to_text()
