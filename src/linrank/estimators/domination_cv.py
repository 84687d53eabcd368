"""DominationRankerCV: DominationRanker that chooses its alpha by cross-validation over queries."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from linrank.data.queries import query_weights
from linrank.domination.path import PathProblem, as_alphas, check_path, warn_unless_certified
from linrank.domination.train import describe_parameters
from linrank.estimators.base import SparseRanker
from linrank.metrics import parse_scoring
from linrank.models.linear import LinearModel
from linrank.options import DOMINATION_PATH
from linrank.search.domination import tune_domination
from linrank.search.folds import as_folds
from linrank.search.monitor import folds_or_validation, tell
from linrank.system.seeds import seed_of

if TYPE_CHECKING:
    from linrank.data.dataset import Dataset
    from linrank.data.scaling import Scaling
    from linrank.domination.path import DominationPathResult
    from linrank.search.domination import DominationTuning


class DominationRankerCV(SparseRanker):
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
    scoring : str, default="ndcg@10"
        The measure, by a name that :func:`linrank.evaluate` knows. An error, of which less is
        better, has a minus sign in the scores.
    selection : {"best", "one_se"}, default="best"
        ``best``: the largest mean over folds, the largest alpha among equals. ``one_se``: the
        largest alpha within one standard error of it.
    margin, layers, pooled, solver, negative_sampling, curvature, order
        As in :class:`linrank.DominationRanker`. Margins by row go with their rows into the folds.
    tol : float or None, default=None
        Largest certified gap of every model, relative to its objective; 1e-4 if None.
    max_iter : int or None, default=None
        Sweeps at most for each alpha, or Newton steps; 1000 or 100 if None.
    scale : {"none", "standard", "minmax", "query"}, default="none"
        Feature scaling, fitted on the training part of each fold.
    missing : {"error", "zero", "mean", "indicator"}, default="error"
        What a missing value, NaN or null, means; kept in the model, so that it means the same when
        scoring. ``"error"`` refuses it; ``"zero"`` reads 0; ``"mean"`` reads the mean of the
        feature in the training rows; ``"indicator"`` reads 0 and learns what a missing value is
        worth, for each feature that has some in the training rows.
    random_state : int, None, RandomState or Generator, default=None
        Of `negative_sampling` and of ``order="shuffled"``.
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
    n_nonzeros_ : ndarray of shape (n_folds, n_alphas)
        Coefficients other than 0 of the models of each fold; those of the models on all data are
        in ``path_.n_nonzero``.
    path_ : DominationPathResult
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

    def __init__(
        self,
        penalty: str = "l1",
        alphas: Any = "auto",
        *,
        n_alphas: int = 50,
        eps: float | None = None,
        max_features: int | None = None,
        cv: Any = None,
        scoring: str = "ndcg@10",
        selection: str = "best",
        margin: Any = None,
        layers: Any = "labels",
        pooled: bool = False,
        solver: str = "auto",
        negative_sampling: float | None = None,
        curvature: str = "local",
        order: str = "sequential",
        tol: float | None = None,
        max_iter: int | None = None,
        scale: str = "none",
        missing: str = "error",
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.penalty = penalty
        self.alphas = alphas
        self.n_alphas = n_alphas
        self.eps = eps
        self.max_features = max_features
        self.cv = cv
        self.scoring = scoring
        self.selection = selection
        self.margin = margin
        self.layers = layers
        self.pooled = pooled
        self.solver = solver
        self.negative_sampling = negative_sampling
        self.curvature = curvature
        self.order = order
        self.tol = tol
        self.max_iter = max_iter
        self.scale = scale
        self.missing = missing
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
    ) -> DominationRankerCV:
        """Choose alpha and learn ``coef_`` with it.

        Parameters
        ----------
        X, y, qid, sample_weight, query_weight, group
            The training data, as in :meth:`DominationRanker.fit`. Weights count in training, not
            in the measure.
        eval_set, eval_qid, eval_group : validation data as XGBoost, LightGBM and PyTerrier pass it
            ``eval_set=[(X, y), ...]`` with the ids or sizes of each; the choice is made on the
            last one, in place of the folds of `cv`, which must be None.

        Returns
        -------
        DominationRankerCV
            The fitted estimator.
        """
        check_path(
            penalty=self.penalty,
            n_alphas=self.n_alphas,
            eps=self.eps,
            max_features=self.max_features,
        )
        parse_scoring(self.scoring)
        cv = folds_or_validation(self.cv, eval_set, eval_qid, eval_group)
        data = self._training_data(X, y, qid, group, sample_weight)
        options: dict[str, Any] = {
            **self._options(),
            "scale": self.scale,
            "seed": seed_of(self.random_state),
            "query_weight": query_weights(query_weight, data.queries),
            "n_jobs": self.n_jobs,
        }
        whole = PathProblem.of(data, **options)
        tuning = tune_domination(
            data,
            as_folds(cv, data, X),
            as_alphas(self.alphas, whole.problem, self.n_alphas, self.eps),
            scoring=self.scoring,
            selection=self.selection,
            max_features=self.max_features,
            progress=_report if self.verbose > 0 else None,
            **options,
        )
        path = whole.solve(tuning.alphas)
        return self._finish(tuning, path, whole.scaling, data, options["seed"])

    def _options(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in DOMINATION_PATH}

    def _finish(
        self,
        tuning: DominationTuning,
        path: DominationPathResult,
        scaling: Scaling,
        data: Dataset,
        seed: int,
    ) -> DominationRankerCV:
        if tuning.edge is not None:
            warnings.warn(tuning.edge, UserWarning, stacklevel=3)
        warn_unless_certified(path)
        chosen = tuning.chosen
        self.alpha_, self.alphas_ = tuning.alpha, tuning.alphas
        self.scores_, self.mean_scores_ = tuning.scores, tuning.mean_scores
        self.best_score_ = float(tuning.mean_scores[chosen])
        self.n_nonzeros_ = tuning.n_nonzero
        self.path_ = path
        options = {**self._options(), "feature_induction": None}
        settings = describe_parameters(data, alpha=self.alpha_, seed=seed, **options)
        settings |= {"scoring": self.scoring, "score": self.best_score_}
        result = path.results[chosen]
        self._adopt(result, LinearModel.of(result, data, scaling, **settings), data)
        self.n_iter_ = int(path.n_iter[: chosen + 1].sum())
        return self


def _report(state: dict[str, Any]) -> None:
    """One line per model."""
    tell(
        f"linrank: fold {state['fold'] + 1}, alpha {state['alpha']:g}, "
        f"objective {state['objective']:.6g}, gap {state['gap']:.6g}, "
        f"{state['n_nonzero']} weights"
    )
