"""KernelRankSVMCV: KernelRankSVM that chooses C and γ by cross-validation over queries."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from linrank.data.queries import query_weights
from linrank.errors import ConvergenceWarning
from linrank.estimators.kernel import KernelRanker
from linrank.metrics import parse_scoring
from linrank.search.folds import as_folds
from linrank.search.kernel import fit_chosen, tune_kernel
from linrank.search.kernel_fit import check_kernel_rows
from linrank.search.kernel_folds import as_gammas, as_kernel_Cs
from linrank.search.monitor import folds_or_validation, tell
from linrank.system.seeds import seed_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from linrank.search.kernel import KernelTuning
    from linrank.solvers.result import Result


class KernelRankSVMCV(KernelRanker):
    """RankSVM with a kernel, with the C and the γ that rank unseen queries best.

    For each γ the kernel matrix of all rows is computed once. Every fold trains on its part of it
    for ascending C, each model from the last, and is measured on another part; the (C, γ) with the
    largest mean is taken, and a :class:`linrank.KernelRankSVM` is fitted with it on all data.

    Parameters
    ----------
    kernel : {"rbf", "poly", "sigmoid", "linear", "precomputed"} or callable, default="rbf"
        As in :class:`linrank.KernelRankSVM`. The last three kinds have no γ, and one grid.
    Cs : "auto" or array of float, default="auto"
        The grid of C, values > 0; ``"auto"`` is 2^-15, 2^-13, ..., 2^9.
    gammas : "auto" or array of float, default="auto"
        The grid of γ, values > 0; ``"auto"`` is 1/64, 1/16, 1/4, 1, 4, 16 and 64 times the γ of
        ``gamma="scale"``, which is ``1 / (n_features Var X)``.
    cv : None, int, splitter, list of pairs, or tuple, default=None
        How validation rows are set apart, as in :class:`linrank.RankSVMCV`: a number of folds, None
        for 5. A tuple ``(X_val, y_val, qid_val)`` is a validation set: the grid is trained once, on
        all the training data. Of a precomputed kernel, ``X_val`` is ``K(valid, train)``.
    scoring : str, default="ndcg@10"
        The measure, by a name that :func:`linrank.evaluate` knows. An error, of which less is
        better, has a minus sign in the scores.
    selection : {"best", "one_se"}, default="best"
        ``best``: the largest mean over folds; among equals the smallest C, then the smallest γ.
        ``one_se``: of the models within one standard error of it that have neither a larger C nor
        a larger γ, the one of the smallest C, and with that of the smallest γ.
    degree, coef0, loss, pairs, n_closest, n_random, pair_weighting, query_normalization, tol, \
max_iter
        As in :class:`linrank.KernelRankSVM`. Pairs are chosen within the training part of each
        fold.
    memory_limit : int, float, str or None, default=None
        Bytes for kernel matrices in all, those of folds that are trained side by side included;
        None for half of what is free. Where the matrix of all rows and that of a fold do not fit
        together, every fold computes its own, block by block for every product if need be.
    scale : {"none", "standard", "minmax", "query"}, default="none"
        Feature scaling, fitted on the training part of each fold. With ``"standard"`` and
        ``"minmax"`` the folds have different kernels, and each computes its own.
    random_state : int, None, RandomState or Generator, default=None
        As in :class:`linrank.KernelRankSVM`, the same for every model.
    n_jobs : int or None, default=None
        Threads in all, over folds and inside them.
    verbose : int, default=0
        Report each model when positive: to the logger ``linrank`` if it is set up for INFO, else
        to standard error.

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

    def __init__(
        self,
        kernel: str | Callable[[Any, Any], Any] = "rbf",
        *,
        Cs: Any = "auto",
        gammas: Any = "auto",
        cv: Any = None,
        scoring: str = "ndcg@10",
        selection: str = "best",
        degree: int = 3,
        coef0: float = 0.0,
        loss: str = "squared_hinge",
        pairs: str = "all",
        n_closest: int | str = "auto",
        n_random: int | str = "auto",
        pair_weighting: str = "uniform",
        query_normalization: str | None = None,
        memory_limit: int | float | str | None = None,
        tol: float | None = None,
        max_iter: int | None = None,
        scale: str = "none",
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.kernel = kernel
        self.Cs = Cs
        self.gammas = gammas
        self.cv = cv
        self.scoring = scoring
        self.selection = selection
        self.degree = degree
        self.coef0 = coef0
        self.loss = loss
        self.pairs = pairs
        self.n_closest = n_closest
        self.n_random = n_random
        self.pair_weighting = pair_weighting
        self.query_normalization = query_normalization
        self.memory_limit = memory_limit
        self.tol = tol
        self.max_iter = max_iter
        self.scale = scale
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        qid: Any = None,
        sample_weight: Any = None,
        query_weight: Any = None,
        group: Any = None,
        eval_set: Any = None,
        eval_qid: Any = None,
        eval_group: Any = None,
    ) -> KernelRankSVMCV:
        """Choose C and γ, and learn β with them.

        Parameters
        ----------
        X, y, qid, sample_weight, query_weight, group
            The training data, as in :meth:`KernelRankSVM.fit`. Weights count in training, not in
            the measure.
        eval_set, eval_qid, eval_group : validation data as XGBoost, LightGBM and PyTerrier pass it
            ``eval_set=[(X, y), ...]`` with the ids or sizes of each; the choice is made on the
            last one, in place of the folds of `cv`, which must be None.

        Returns
        -------
        KernelRankSVMCV
            The fitted estimator.
        """
        Cs = as_kernel_Cs(self.Cs)
        parse_scoring(self.scoring)
        cv = folds_or_validation(self.cv, eval_set, eval_qid, eval_group)
        data = self._training_data(X, y, qid, group, sample_weight)
        check_kernel_rows(self.kernel, self.scale, data)
        options = {
            **self._options(),
            **{name: getattr(self, name) for name in ("kernel", "degree", "coef0", "scale")},
            "seed": seed_of(self.random_state),
            "query_weight": query_weights(query_weight, data.queries),
            "n_jobs": self.n_jobs,
        }
        tuning = tune_kernel(
            data,
            as_folds(cv, data, X),
            as_gammas(self.gammas, self.kernel, data, self.scale),
            Cs,
            scoring=self.scoring,
            selection=self.selection,
            progress=_report if self.verbose > 0 else None,
            **options,
        )
        model, result = fit_chosen(tuning, data, scoring=self.scoring, **options)
        self._adopt(result, model, data)
        return self._finish(tuning, result)

    def _finish(self, tuning: KernelTuning, result: Result) -> KernelRankSVMCV:
        for told in tuning.edges:
            warnings.warn(told, UserWarning, stacklevel=3)
        if tuning.open is not None:
            warnings.warn(tuning.open, ConvergenceWarning, stacklevel=3)
        if not result.converged:
            message = f"KernelRankSVMCV did not converge on all data: {result.message}"
            warnings.warn(message, ConvergenceWarning, stacklevel=3)
        self.C_, self.Cs_, self.gammas_ = tuning.C, tuning.Cs, tuning.gammas
        self.scores_, self.mean_scores_ = tuning.scores, tuning.mean_scores
        self.best_score_ = tuning.score
        return self


def _report(state: dict[str, Any]) -> None:
    """One line per model."""
    tell(
        f"linrank: fold {state['fold'] + 1}, gamma {state['gamma']:g}, C {state['C']:g}, "
        f"objective {state['objective']:.6g}, gap {state['gap']:.6g}"
    )
