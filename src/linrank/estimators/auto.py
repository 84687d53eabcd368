"""The estimator that chooses among kinds of models."""

from __future__ import annotations

from typing import Any

from linrank.estimators.base import LinearRanker
from linrank.estimators.search import SearchRanker
from linrank.methods.base import AUTO
from linrank.methods.parameters import AutoSearch
from linrank.metrics import parse
from linrank.system.tables import Column, Table


class AutoRanker(SearchRanker, LinearRanker, AutoSearch):
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
