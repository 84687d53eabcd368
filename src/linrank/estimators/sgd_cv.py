"""SGDRankerCV: SGDRanker that chooses its λ and its algorithm by cross-validation over queries."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from linrank.data.queries import query_weights
from linrank.data.scaling import Scaling
from linrank.estimators.base import DescentRanker
from linrank.metrics import parse_scoring
from linrank.models.linear import LinearModel
from linrank.search.folds import as_folds
from linrank.search.monitor import folds_or_validation
from linrank.search.sgd import as_algorithms, as_alphas, tune_sgd
from linrank.stochastic.train import check_descent, descend
from linrank.system.seeds import seed_of

if TYPE_CHECKING:
    from linrank.data.dataset import Dataset
    from linrank.search.sgd import SGDTuning
    from linrank.stochastic.train import DescentResult


class SGDRankerCV(DescentRanker):
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
    scoring : str, default="ndcg@10"
        The measure, by a name that :func:`linrank.evaluate` knows. An error, of which less is
        better, has a minus sign in the scores.
    selection : {"best", "one_se"}, default="best"
        ``best``: the largest mean over folds; among equals the first algorithm and the largest λ.
        ``one_se``: the largest λ, of the same algorithm, within one standard error of it.
    aggressiveness, n_steps, sampling, average, record
        As in :class:`linrank.SGDRanker`; `record` is for the model on all data.
    scale : {"none", "standard", "minmax", "query"}, default="none"
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

    Attributes
    ----------
    alpha_, algorithm_ : float, str
        What was chosen.
    alphas_ : ndarray of shape (n_alphas,)
        The grid of λ, descending: the most regularised first.
    algorithms_ : tuple of str
        The algorithms tried.
    scores_ : ndarray of shape (n_folds, n_algorithms, n_alphas)
        The measure on each fold.
    mean_scores_ : ndarray of shape (n_algorithms, n_alphas)
        Its mean over folds.
    best_score_ : float
        The mean of what was chosen.
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

    def __init__(
        self,
        alphas: Any = "auto",
        *,
        algorithms: Any = "pegasos",
        cv: Any = None,
        scoring: str = "ndcg@10",
        selection: str = "best",
        aggressiveness: float = 1.0,
        n_steps: int = 100_000,
        sampling: str = "pairs",
        average: bool | str = False,
        record: str | None = None,
        scale: str = "none",
        missing: str = "error",
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.alphas = alphas
        self.algorithms = algorithms
        self.cv = cv
        self.scoring = scoring
        self.selection = selection
        self.aggressiveness = aggressiveness
        self.n_steps = n_steps
        self.sampling = sampling
        self.average = average
        self.record = record
        self.scale = scale
        self.missing = missing
        self.random_state = random_state
        self.n_jobs = n_jobs

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
    ) -> SGDRankerCV:
        """Choose λ and algorithm, and learn ``coef_`` with them.

        Parameters
        ----------
        X, y, qid, sample_weight, query_weight, group
            The training data, as in :meth:`SGDRanker.fit`. Weights count in training, not in the
            measure.
        eval_set, eval_qid, eval_group : validation data as XGBoost, LightGBM and PyTerrier pass it
            ``eval_set=[(X, y), ...]`` with the ids or sizes of each; the choice is made on the
            last one, in place of the folds of `cv`, which must be None.

        Returns
        -------
        SGDRankerCV
            The fitted estimator.
        """
        algorithms, alphas = as_algorithms(self.algorithms), as_alphas(self.alphas)
        for algorithm in algorithms:
            check_descent(algorithm, self.n_steps, self.record, None)
        parse_scoring(self.scoring)
        cv = folds_or_validation(self.cv, eval_set, eval_qid, eval_group)
        data = self._training_data(X, y, qid, group, sample_weight)
        options: dict[str, Any] = {
            "n_steps": self.n_steps,
            "sampling": self.sampling,
            "average": self._average(),
            "aggressiveness": self.aggressiveness,
            "seed": seed_of(self.random_state),
            "query_weight": query_weights(query_weight, data.queries),
            "n_jobs": self.n_jobs,
        }
        tuning = tune_sgd(
            data,
            as_folds(cv, data, X),
            algorithms,
            alphas,
            scale=self.scale,
            scoring=self.scoring,
            selection=self.selection,
            **options,
        )
        scaling = Scaling.fit(self.scale, data.rows, weight=data.weight, n_jobs=self.n_jobs)
        algorithm, alpha = tuning.rule
        result = descend(
            scaling.applied(data, n_jobs=self.n_jobs),
            algorithm=algorithm,
            alpha=alpha,
            record=self.record,
            **options,
        )
        return self._finish(tuning, result, scaling, data, options["seed"])

    def _finish(
        self, tuning: SGDTuning, result: DescentResult, scaling: Scaling, data: Dataset, seed: int
    ) -> SGDRankerCV:
        if tuning.edge is not None:
            warnings.warn(tuning.edge, UserWarning, stacklevel=3)
        self.algorithm_, _ = tuning.rule
        self.algorithms_, self.alphas_ = tuning.algorithms, tuning.alphas
        self.scores_, self.mean_scores_ = tuning.scores, tuning.mean_scores
        self.best_score_ = float(tuning.mean_scores[tuning.chosen])
        settings: dict[str, Any] = {
            "algorithm": self.algorithm_,
            "aggressiveness": self.aggressiveness,
            "sampling": self.sampling,
            "average": self._average(),
            "record": self.record,
            "seed": seed,
            "scoring": self.scoring,
            "score": self.best_score_,
        }
        self._adopt(result, LinearModel.of(result, data, scaling, **settings), data)
        return self
