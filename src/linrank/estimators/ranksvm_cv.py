"""RankSVMCV: RankSVM that chooses its C by cross-validation over queries."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from linrank.data.queries import query_weights
from linrank.estimators.base import ExactRanker
from linrank.io.store.outline import columns_of
from linrank.metrics import parse_scoring
from linrank.parts.path import path_of_parts
from linrank.parts.search import folds_of, tune_parts
from linrank.parts.stores import StoreParts, is_limited, recipe_of
from linrank.ranksvm.path import as_Cs, solve_path, warn_unless_certified
from linrank.search.folds import as_folds
from linrank.search.monitor import folds_or_validation, tell
from linrank.search.ranksvm import tune
from linrank.system.threads import resolve

if TYPE_CHECKING:
    from linrank.io.store.store import Store
    from linrank.ranksvm.path import PathResult
    from linrank.search.ranksvm import Tuning


class RankSVMCV(ExactRanker):
    """Linear RankSVM whose C is the one that ranks unseen queries best.

    For every fold a whole regularisation path is fitted on the other folds and all its models are
    measured on the fold; the C with the largest mean is taken, and the model is fitted on all data.

    Parameters
    ----------
    Cs : "auto" or array of float, default="auto"
        The grid, values > 0; ``"auto"`` is 2^-15, 2^-14, ..., 2^10.
    cv : None, int, splitter, list of pairs, or tuple, default=None
        How validation rows are set apart. An integer k stands for ``QueryKFold(k)``, None for 5
        folds; without `qid`, all rows are one query and are dealt out by label. A splitter gets
        the query ids as groups; a list holds pairs (train, test) of row numbers. A tuple
        ``(X_val, y_val, qid_val)`` is a validation set: one path on all the training data.
    scoring : str, default="ndcg@10"
        The measure, by a name that :func:`linrank.evaluate` knows. An error, of which less is
        better, has a minus sign in the scores.
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
    scale : {"none", "standard", "minmax", "query"}, default="none"
        Feature scaling, fitted on the training part of each fold.
    missing : {"error", "zero", "mean", "indicator"}, default="error"
        What a missing value, NaN or null, means; kept in the model, so that it means the same when
        scoring. ``"error"`` refuses it; ``"zero"`` reads 0; ``"mean"`` reads the mean of the
        feature in the training rows; ``"indicator"`` reads 0 and learns what a missing value is
        worth, for each feature that has some in the training rows.
    query_normalization : {None, "pairs"}, default=None
        ``"pairs"`` makes every query count the same.
    positive, coef_bounds
        Bounds of the coefficients, as in :class:`linrank.RankSVM`; every C is then a fit of its
        own, from the last.
    random_state : int, RandomState, Generator or None, default=None
        Of the pairs drawn for ``pairs="closest"`` and ``"pruned"``.
    memory_limit : int, float, str or None, default=None
        As in :class:`linrank.RankSVM`: what the process may have in memory, for a
        :class:`linrank.Store`. Folds share its rows, and are the same for any limit.
    n_jobs : int or None, default=None
        Threads in all, over folds and inside them. The result does not depend on it.
    verbose : int, default=0
        Report each model when positive: to the logger ``linrank`` if it is set up for INFO, else
        to standard error.

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
    ((3, 26), True)
    """

    def __init__(
        self,
        Cs: Any = "auto",
        *,
        cv: Any = None,
        scoring: str = "ndcg@10",
        selection: str = "best",
        loss: str = "squared_hinge",
        pairs: str = "all",
        n_closest: int | str = "auto",
        n_random: int | str = "auto",
        pair_weighting: str = "uniform",
        solver: str = "newton",
        tol: float | None = None,
        max_iter: int | None = None,
        scale: str = "none",
        missing: str = "error",
        query_normalization: str | None = None,
        positive: bool = False,
        coef_bounds: Any = None,
        random_state: Any = None,
        memory_limit: float | str | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.Cs = Cs
        self.cv = cv
        self.scoring = scoring
        self.selection = selection
        self.loss = loss
        self.pairs = pairs
        self.n_closest = n_closest
        self.n_random = n_random
        self.pair_weighting = pair_weighting
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.scale = scale
        self.missing = missing
        self.query_normalization = query_normalization
        self.positive = positive
        self.coef_bounds = coef_bounds
        self.random_state = random_state
        self.memory_limit = memory_limit
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
    ) -> RankSVMCV:
        """Choose C and learn ``coef_`` with it.

        Parameters
        ----------
        X, y, qid, sample_weight, query_weight, group
            The training data, as in :meth:`RankSVM.fit`, or a store. Weights count in training,
            not in the measure.
        eval_set, eval_qid, eval_group : validation data as XGBoost, LightGBM and PyTerrier pass it
            ``eval_set=[(X, y), ...]`` with the ids or sizes of each; the choice is made on the
            last one, in place of the folds of `cv`, which must be None.

        Returns
        -------
        RankSVMCV
            The fitted estimator.
        """
        grid = as_Cs(self.Cs)
        parse_scoring(self.scoring)
        cv = folds_or_validation(self.cv, eval_set, eval_qid, eval_group)
        own = {"qid": qid, "group": group, "sample_weight": sample_weight}
        if is_limited(X, y, self.memory_limit, **own):
            return self._fit_in_passes(X, cv, grid, query_weight)
        data = self._training_data(X, y, qid, group, sample_weight)
        training = self._options()
        options = {
            **training,
            "scale": self.scale,
            "positive": self.positive,
            "coef_bounds": self.coef_bounds,
            "query_weight": query_weights(query_weight, data.queries),
            "n_jobs": self.n_jobs,
        }
        tuning = tune(
            data,
            as_folds(cv, data, X),
            grid,
            scoring=self.scoring,
            selection=self.selection,
            progress=report_model if self.verbose > 0 else None,
            **options,
        )
        path, scaling = solve_path(data, grid, **options)
        settings = self._settings(training) | {"scoring": self.scoring}
        model = tuning.model(path, data, scaling, **settings)
        self._adopt(path.results[tuning.chosen], model, data)
        return self._adopt_tuning(tuning, path)

    def _fit_in_passes(self, store: Store, cv: Any, grid: Any, query_weight: Any) -> RankSVMCV:
        """The same over a store that is read pass after pass."""
        training = self._options()
        settings = self._settings(training) | {"scoring": self.scoring}
        kinds = ("loss", "pairs", "pair_weighting", "query_normalization", "solver")
        recipe = recipe_of(query_weight, **{name: training[name] for name in kinds})
        parts = StoreParts(store, self.memory_limit, resolve(self.n_jobs))
        names = ("tol", "max_iter", "scale", "positive", "coef_bounds")
        options = {name: getattr(self, name) for name in names}
        tuning = tune_parts(
            parts,
            folds_of(cv, parts),
            recipe,
            grid,
            scoring=self.scoring,
            selection=self.selection,
            progress=report_model if self.verbose > 0 else None,
            **options,
        )
        found = path_of_parts(parts, recipe, grid, **options)
        columns = columns_of(store)
        self._note_columns(columns)
        result = found.path.results[tuning.chosen]
        self._adopt(result, found.model(result, parts, **settings, **tuning.choice), columns)
        return self._adopt_tuning(tuning, found.path)

    def _adopt_tuning(self, tuning: Tuning, path: PathResult) -> RankSVMCV:
        """Set the attributes of the choice, after those of the model; warn where it is doubtful."""
        chosen = tuning.chosen
        if tuning.edge is not None:
            warnings.warn(tuning.edge, UserWarning, stacklevel=3)
        warn_unless_certified(path)
        self.n_iter_ = int(path.n_iter[: chosen + 1].sum())
        self.C_ = float(tuning.Cs[chosen])
        self.Cs_ = tuning.Cs
        self.scores_, self.mean_scores_ = tuning.scores, tuning.mean_scores
        self.best_score_ = float(tuning.mean_scores[chosen])
        self.path_ = path
        return self


def report_model(state: dict[str, Any]) -> None:
    """One line per model."""
    tell(
        f"linrank: fold {state['fold'] + 1}, C {state['C']:g}, "
        f"objective {state['objective']:.6g}, gap {state['gap']:.6g}"
    )
