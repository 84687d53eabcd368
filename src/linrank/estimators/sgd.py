"""SGDRanker, the scikit-learn face of stochastic descent."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import column_or_1d, validate_data

from linrank.data import UNSAID, Dataset, Rows, as_array, check_no_query_ids, column_names
from linrank.errors import check_positive
from linrank.estimators.base import LinearRanker, MethodRanker
from linrank.methods import SGD
from linrank.methods.base import Trained
from linrank.methods.parameters import SGDParameters
from linrank.methods.sgd import attributes_of, average_of
from linrank.models.linear import LinearModel
from linrank.stochastic.descent import Learner
from linrank.stochastic.streaming import StreamTrainer
from linrank.stochastic.train import DescentResult, regularization
from linrank.system.seeds import seed_of

# Parameters that a stream is opened with, and keeps.
_OPTIONS = (
    "algorithm",
    "alpha",
    "aggressiveness",
    "sampling",
    "average",
    "steps_per_row",
    "buffer_mb",
)


class SGDRanker(MethodRanker, LinearRanker, SGDParameters):
    """Linear ranker by stochastic descent on pairs drawn at random.

    Draws `n_steps` pairs "i above j" of one query, one after the other, and lets each change the
    weights by a multiple of ``x_i - x_j``: the time does not depend on the number of rows. The
    algorithms with a step size minimize

    ``λ/2 ‖w‖² + Σ ω_ij l(w·(x_i - x_j)) / Σ ω_ij``,

    with the weights ω of `sampling` and the loss ``l(z) = max(0, 1 - z)`` of the hinge, or
    ``log(1 + e^-z)`` for ``logistic``. Over the same pairs this is RankSVM's objective with
    ``loss="hinge"``, divided by ``C p``, when ``λ = 1/(C p)`` and ``p = Σ ω_ij``.

    Parameters
    ----------
    algorithm : {"pegasos", "sgd-svm", "pa", "romma", "logistic", "hybrid"}, default="pegasos"
        ``sgd-svm``: step ``η_t = 1/(λt)``, and w shrinks by ``1 - η_t λ``. ``pegasos``: the same,
        then w is scaled back to the ball ``‖w‖ <= 1/√λ``. ``logistic``: the same step sizes with
        the logistic loss. ``pa``: the smallest change that gives the pair a margin of 1, or
        `aggressiveness` times ``x_i - x_j`` if that is less. ``romma``: the shortest v with
        ``v·(x_i - x_j) >= 1`` and ``v·w >= ‖w‖²`` takes the place of w. ``hybrid``: ``pa`` first,
        ``pegasos`` after, by a plan for `n_steps` steps. The weights of ``pa`` and ``romma`` do not
        converge to a minimum.
    alpha : float or None, default=None
        λ, > 0; 1e-4 if neither it nor `C` is given. For ``pa`` and ``romma`` it counts in the
        recorded objective only.
    C : float or None, default=None
        In place of `alpha`: ``λ = 1/(C p)``, the C of RankSVM.
    aggressiveness : float, default=1.0
        Largest step of ``pa``, > 0: what its literature calls C.
    n_steps : int, default=100_000
        Pairs to draw, >= 1.
    sampling : {"pairs", "query", "query-level", "roc", "rejection"}, default="pairs"
        ``pairs``: every pair with the same probability, that is ω = 1 times the weights given to
        ``fit``. ``query``: every query with the same probability, then every pair of it.
        ``query-level``: a query, two of its levels, a row of each, all uniform. ``roc``: a row with
        a label > 0 against one without, whatever the query. ``rejection``: as ``pairs``, by drawing
        rows until two make a pair; needs no index.
    average : {False, True, "weighted", "uniform"}, default=False
        Return an average of the weights over the steps: each step t counting t (True,
        ``"weighted"``), or all the same. That of ``hybrid`` is over the steps after its switch.
    tol : float or None, default=None
        Stop early, when the objective has not fallen by this share of itself for two milestones:
        the recorded one, or with validation data that of pairs sampled there. Milestones at which
        the weights are worse than none, as early ones may be, do not count. None takes all
        `n_steps`.
    record : {None, "exact", "sampled"}, default=None
        The objective to compute at milestones, four in each power of ten steps: over all pairs (the
        hinge only), or over a fixed sample of 16,384.
    scale : {"auto", "none", "standard", "minmax", "query"}, default="auto"
        Train on scaled features, as in :class:`linrank.RankSVM`. The scaled rows are a copy: as
        much memory again as the values of `X`, or of the chunks at work with `memory_limit`.
    missing : {"error", "zero", "mean", "indicator"}, default="error"
        What a missing value, NaN or null, means; kept in the model, so that it means the same when
        scoring. ``"error"`` refuses it; ``"zero"`` reads 0; ``"mean"`` reads the mean of the
        feature in the training rows; ``"indicator"`` reads 0 and learns what a missing value is
        worth, for each feature that has some in the training rows.
    warm_start : bool, default=False
        Start at the ``coef_`` of the previous fit, with step sizes that do not erase it.
    early_stopping : bool, default=False
        Stop once `scoring` on the validation data has not improved for `n_iter_no_change`
        milestones, and keep the best weights. Needs validation data in ``fit``.
    n_iter_no_change : int, default=5
        Patience of `early_stopping`, >= 1, in milestones.
    scoring : str or callable, default="ndcg@10"
        Measure of the validation data, by name or as a function: see :func:`linrank.evaluate`.
    steps_per_row : float, default=4.0
        Steps of ``partial_fit`` for each row, > 0.
    buffer_mb : float, default=64
        Memory, in millions of bytes, of the rows that ``partial_fit`` remembers, > 0.
    passes : int or None, default=None
        With `memory_limit`: how often to go through the chunks, >= 1, each time in an order drawn
        anew. None: once for each quarter of a step a row, rounded up.
    memory_limit : int, float, str or None, default=None
        For a :class:`linrank.Store`: bytes, or a size such as ``"1.5GB"``, that the fit may take
        beyond what the process holds when it begins. Pairs are then drawn chunk by chunk, the next
        chunk read meanwhile. The same bits for any limit. None takes the store as a whole, and
        draws from all of it.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the pairs. With an integer, the same data give the same bits, on any number of
        threads.
    callback : callable or None, default=None
        Called at every milestone with a dict of the latest entries of ``history_`` and ``w``;
        returning True stops.
    n_jobs : int or None, default=None
        Threads of the recorded objective and of scoring; None or -1 means all cores. The steps
        themselves follow each other on one thread.
    verbose : int, default=0
        Report each milestone when positive: to the logger ``linrank`` if it is set up for INFO,
        else to standard error, in a notebook to standard output.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Coefficients of the raw features; ``decision_function(X) = X @ coef_`` unless
        ``scale="query"``. Read-only.
    alpha_ : float
        The λ that was used.
    n_steps_ : int
        Steps taken; by all calls of ``partial_fit`` together.
    stopped_ : {"n_steps", "tolerance", "callback", "stream"}
        Why the descent ended.
    objective_ : float
        The objective at the end, nan if it was not recorded.
    duality_gap_ : float
        Certified upper bound of its distance to the minimum; nan unless ``record="exact"``.
    loss_ : float
        Mean loss that the steps met, every pair before it changed the weights.
    history_ : dict of lists
        ``n_steps``, ``objective``, ``gap``, ``loss`` and ``seconds`` at the milestones, if anything
        asked for them; with validation data also ``val_<scoring>``.
    best_iteration_ : int
        Where ``history_["val_<scoring>"]`` is best; only with validation data.
    n_pairs_, n_queries_ : int
        Pairs that could be drawn, and queries, of the training data; of a stream, a query counts
        again when it comes back after the buffer has forgotten it.
    needs_qid_, n_features_in_, feature_names_in_, model_ : as in RankSVM

    Examples
    --------
    >>> from linrank import SGDRanker
    >>> X = [[0.0, 1.0], [1.0, 1.0], [2.0, 0.0], [5.0, 1.0], [4.0, 0.0]]
    >>> ranker = SGDRanker(n_steps=1000, random_state=0)
    >>> ranker = ranker.fit(X, [0, 1, 2, 1, 0], qid=["a", "a", "a", "b", "b"])
    >>> ranker.rank(X, qid=["a", "a", "a", "b", "b"]).tolist()
    [3, 2, 1, 1, 2]
    """

    method = SGD
    __metadata_request__partial_fit: ClassVar[dict[str, bool]] = {"qid": True}

    def partial_fit(self, X: Any, y: Any, *, qid: Any = UNSAID) -> SGDRanker:
        """Learn from some more rows.

        Rows of whole or partial queries may come in any order, a few or many at a time. New rows
        make pairs among themselves and with the rows of their query that a buffer of `buffer_mb`
        remembers; `steps_per_row` steps are taken for each of them. After :meth:`fit`, goes on from
        its weights. `n_steps`, `tol`, `record`, `early_stopping`, `callback` and `verbose` are for
        ``fit`` only; `C`, `scale` and ``algorithm="hybrid"``, which need to know the whole of the
        data, are refused.

        Parameters
        ----------
        X : matrix of shape (n_rows, n_features)
            NumPy or SciPy matrix or data frame; the buffer keeps float32.
        y : array of shape (n_rows,)
            Real labels.
        qid : array of shape (n_rows,)
            Query of each row, in all calls or in none. None: all rows ever given are one query.

        Returns
        -------
        SGDRanker
            The estimator. Before the first pair there is nothing to predict with.

        Examples
        --------
        >>> from linrank import SGDRanker
        >>> ranker = SGDRanker(random_state=0)
        >>> for _ in range(50):
        ...     ranker = ranker.partial_fit([[0.0], [1.0]], [0, 1], qid=["a", "a"])
        >>> bool(ranker.coef_[0] > 0), ranker.n_steps_
        (True, 400)
        """
        labels = None if y is None else column_or_1d(as_array(y, "y"), warn=True)
        is_unsaid, qid = qid is UNSAID, None if qid is UNSAID else qid
        self._check_stream(qid)
        if qid is None:
            check_no_query_ids(X)
        is_new = not hasattr(self, "n_features_in_")
        try:
            validate_data(self, X, labels, reset=is_new, skip_check_array=True)
            stream = self._stream if hasattr(self, "_stream") else self._open_stream()
            stream.feed(X, labels, qid)
        except BaseException:  # an interrupt too
            if is_new:  # rows that were refused do not say what the next ones must look like
                for name in ("n_features_in_", "feature_names_in_"):
                    self.__dict__.pop(name, None)
            raise
        if is_new and is_unsaid and labels is not None:
            self._warn_of_one_query(labels, len(labels), len(np.unique(labels)))
        self._stream: StreamTrainer = stream
        self.needs_qid_ = qid is not None
        self._stream_options = self._kept_options()
        if stream.counts.pairs > 0:
            self._adopt_stream(column_names(X))
        return self

    def _check_stream(self, qid: Any) -> None:
        """Refuse what a stream cannot do, and what has changed since it was opened."""
        if self.C is not None:
            raise ValueError(
                f"partial_fit cannot use C={self.C}: λ = 1/(C p) needs the number p of pairs, "
                "which a stream does not know; set alpha, and C=None"
            )
        if self.scale not in ("auto", "none"):  # a stream takes features as they are
            raise ValueError(
                f"partial_fit cannot use scale={self.scale!r}, which needs all rows; scale X "
                "before and set scale='none'"
            )
        if self.missing != "error":
            raise ValueError(
                f"partial_fit cannot use missing={self.missing!r}, which is learnt from all rows; "
                "fill them in before and set missing='error'"
            )
        if self.algorithm == "hybrid":
            raise ValueError(
                "partial_fit cannot use algorithm='hybrid', which plans its switch by n_steps; use "
                "'pegasos' or 'pa'"
            )
        if hasattr(self, "needs_qid_") and self.needs_qid_ != (qid is not None):
            told, now = ("with", "without") if self.needs_qid_ else ("without", "with")
            raise ValueError(f"rows came {told} qid before and now {now}; give qid always or never")
        for name, value in getattr(self, "_stream_options", {}).items():
            if getattr(self, name) != value:
                raise ValueError(
                    f"{name} was {value!r} when the stream began and is {getattr(self, name)!r} "
                    "now; set it back, or begin anew with sklearn.base.clone"
                )

    def _kept_options(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in _OPTIONS}

    def _open_stream(self) -> StreamTrainer:
        alpha = regularization(self.alpha)
        steps = getattr(self, "n_steps_", 0)
        learner = Learner(self.algorithm, alpha, self.aggressiveness, float(steps))
        for name in ("buffer_mb", "steps_per_row"):
            check_positive(name, getattr(self, name))
        stream = StreamTrainer(
            [learner],
            average=average_of(self),
            seed=seed_of(self.random_state),
            sampling=self.sampling,
            memory=int(self.buffer_mb * 1e6),
            steps_per_row=self.steps_per_row,
        )
        if hasattr(self, "coef_"):
            if self.model_.scaling.needs_queries:
                raise ValueError(
                    "partial_fit cannot go on from a fit with scale='query', whose weights are for "
                    "rows scaled within their query; begin anew with sklearn.base.clone"
                )
            if self.model_.missing.is_filled:
                raise ValueError(
                    "partial_fit cannot go on from a fit that fills in missing values; begin anew "
                    "with sklearn.base.clone"
                )
            stream.descent.grow(self.coef_.size)
            stream.descent.become(0, learner, self.coef_)
        self._steps_before = steps
        return stream

    def _adopt_stream(self, names: tuple[str, ...] | None) -> None:
        """Set the attributes of a fit from the state of the stream."""
        stream = self._stream
        stream.descent.check_finite()
        result = DescentResult(
            w=stream.weights()[0],
            alpha=stream.descent.learners[0].alpha,
            n_steps=self._steps_before + stream.n_steps,
            objective=math.nan,
            gap=math.nan,
            loss=float(stream.descent.mean_losses()[0]),
            stopped="stream",
            message="took the steps of all rows so far",
            n_pairs=stream.counts.pairs,
            history={},
        )
        training = {
            **self._kept_options(),
            "average": average_of(self),
            **result.summary,
            "n_rows": stream.counts.rows,
        }
        if names is None and hasattr(self, "feature_names_in_"):  # of rows before these
            names = tuple(map(str, self.feature_names_in_))
        self._set_attributes(attributes_of(result))
        self.model_ = LinearModel(result.w, names, training=training)
        self.coef_, self.intercept_ = self.model_.coef, 0.0
        self.n_queries_ = stream.buffer.n_new_queries

    def _adopt_trained(self, trained: Trained, data: Dataset) -> None:
        for name in ("_stream", "_stream_options", "_steps_before"):  # a fit begins anew
            self.__dict__.pop(name, None)
        super()._adopt_trained(trained, data)

    def _rows(self, X: Any, qid: Any) -> tuple[Rows | Dataset, Any]:
        if hasattr(self, "_stream") and not hasattr(self, "model_"):
            self._stream.check_pairs("partial_fit so far")
        return super()._rows(X, qid)
