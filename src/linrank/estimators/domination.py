"""DominationRanker, the scikit-learn face of the domination loss: parameters in, attributes out."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from linrank.data.queries import query_weights
from linrank.data.scaling import Scaling
from linrank.domination.induction import InductionResult
from linrank.domination.train import certified, choose_solver, describe_parameters, train
from linrank.errors import ConvergenceWarning
from linrank.estimators.base import SparseRanker
from linrank.estimators.callbacks import CallbackSupport, with_callbacks
from linrank.io.store.outline import columns_of
from linrank.models.linear import LinearModel
from linrank.parts.stores import fit_domination, is_limited, model_of
from linrank.search.monitor import Monitor, validation_sets
from linrank.system.seeds import seed_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from linrank.data.dataset import Dataset
    from linrank.data.rows import Rows
    from linrank.io.store.store import Store
    from linrank.solvers.result import Result


class DominationRanker(CallbackSupport, SparseRanker):
    """Sparse linear ranker by the domination loss: every row is to beat all rows below it at once.

    Minimises ``F(w) = Σ_q c_q Σ_i u_i log(1 + Σ_j u_j exp(w·(x_j - x_i) + s_i - s_j)) + α pen(w)``,
    where j runs over the rows of lower layers than i in its query, s are margins, u and c the
    weights of rows and queries. A row counts as beaten when *any* row below it comes near, so that
    the loss looks at the top of the list, unlike a sum over pairs. With the l1 penalty most
    coefficients are 0.

    Parameters
    ----------
    penalty : {"l1", "l2", "none"}, default="l1"
        ``pen(w)``: ``‖w‖₁``, ``‖w‖²`` (not half of it) or 0.
    alpha : float, default=1.0
        Weight of the penalty, > 0; not looked at with ``penalty="none"``. F is a sum over rows:
        training on every query twice equals half of `alpha`. From the largest ``|∂L(0)/∂w_j|`` on,
        l1 leaves no coefficient.
    margin : None, float, str, tuple, callable or array, default=None
        The margins s, or one for each pair of layers. With ``y_i`` the label of row i and s = 0 in
        the lowest layer of each query:

        - a number k: ``s_i = k·k(i)``, where ``k(i) = 0, 1, ...`` is the layer of i in its query,
          so k between neighbouring layers;
        - ``"linear"`` or ``("linear", k1, k2)``: ``s_i = k1·y_i + k2``;
        - ``"log"`` or ``("log", k1, k2)``: ``s_i = k1·log(y_i) + k2``, of labels > 0;

        where k1 = 1 and k2 = 0 unless given. Without that rule for the lowest layer: a function
        that takes the labels and returns s; an array of s, one for each row; or a square array
        ``Δ`` over the layers of the data, ascending, in which ``Δ[a, b]`` is what layer a must have
        over layer b.
    layers : {"labels", "binary"} or callable, default="labels"
        ``"labels"``: every label is a layer. ``"binary"``: labels > 0 above the rest. A function
        takes the labels and returns a number for each row, larger in higher layers.
    pooled : bool, default=False
        Train as if all rows were of one query.
    solver : {"auto", "coordinate", "newton"}, default="auto"
        ``coordinate``: coordinate descent. ``newton``: Newton's method, for l2. ``auto``: newton
        for l2 without `feature_induction`, else coordinate.
    feature_induction : int or None, default=None
        Start without features and add this many at a time, those that promise the largest decrease
        of F, until none promises more than ``tol·F``. None trains all features.
    negative_sampling : float or None, default=None
        Keep this share of the lowest layer of each query, drawn at random, and weigh it up to the
        whole.
    curvature : {"local", "range", "paper"}, default="local"
        What bounds the second derivative along a feature in a step of coordinate descent. Changes
        the time, not the minimum. ``local`` follows the second derivative, and makes Newton steps
        between sweeps; ``range`` (a quarter of the squared range for each row) and ``paper`` (the
        published one) are plain descents, for comparison.
    order : {"sequential", "shuffled"}, default="sequential"
        Of the features in a sweep of coordinate descent.
    tol : float or None, default=None
        Stop when `duality_gap_` is at most ``tol·F``, without a penalty when a sweep lowers F by
        less than that; None for 1e-4. With `feature_induction` it is the gap of each round, and the
        least promise of a feature that enters.
    max_iter : int or None, default=None
        Sweeps over the features at most, >= 1, or Newton steps; None for 1000, or 100.
    scale : {"none", "standard", "minmax", "query"}, default="none"
        As in :class:`RankSVM`. The penalty is on the weights of the scaled features.
    missing : {"error", "zero", "mean", "indicator"}, default="error"
        What a missing value, NaN or null, means; kept in the model, so that it means the same when
        scoring. ``"error"`` refuses it; ``"zero"`` reads 0; ``"mean"`` reads the mean of the
        feature in the training rows; ``"indicator"`` reads 0 and learns what a missing value is
        worth, for each feature that has some in the training rows.
    warm_start : bool, default=False
        Start at the ``coef_`` of the previous fit instead of at 0.
    early_stopping : bool, default=False
        Stop once `scoring` on the validation data has not improved for `n_iter_no_change`
        iterations, and keep the best iterate. Needs validation data in ``fit``.
    n_iter_no_change : int, default=5
        Patience of `early_stopping`, >= 1.
    scoring : str, default="ndcg@10"
        Measure of the validation data, by a name that :func:`linrank.evaluate` knows.
    random_state : int, None, RandomState or Generator, default=None
        Of `negative_sampling` and of ``order="shuffled"``; nothing else is random.
    memory_limit : int, float, str or None, default=None
        As in :class:`RankSVM`: bytes that the process may have in memory, for a
        :class:`linrank.Store` with ``penalty="l2"``.
    callback : callable or None, default=None
        Called after every iteration with a dict of the latest entries of ``history_`` and ``w``;
        returning True stops.
    n_jobs : int or None, default=None
        Threads; None or -1 means all cores available to the process.
    verbose : int, default=0
        Report each iteration when positive, as in :class:`RankSVM`.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Coefficients of the raw features. Read-only.
    sparse_coef_ : scipy.sparse.csr_array of shape (1, n_features)
        The same without its zeros.
    n_nonzero_ : int
        Coefficients that are not 0.
    density_ : float
        Their share of all.
    objective_ : float
        ``F`` at the solution.
    duality_gap_ : float
        Certified upper bound of ``F - F*``; infinite without a penalty, where there may be no
        minimum.
    kkt_residual_ : float
        Length of the shortest subgradient of F: 0 at the optimum.
    n_iter_ : int
        Sweeps over the features, or Newton steps.
    converged_ : bool
        Whether `tol` was reached.
    history_ : dict of lists
        Objective, gap, non-zero coefficients, seconds and so on by iteration, which is a Newton
        step or a few sweeps; with validation data also ``val_<scoring>``.
    best_iteration_ : int
        Where ``history_["val_<scoring>"]`` is best; only with validation data.
    rounds_ : tuple of linrank.domination.induction.Round
        With `feature_induction`: which features entered in each round, what they promised, the
        objective, the non-zero coefficients and, with validation data, `scoring` after it.
    feature_order_ : ndarray of shape (n_entered,)
        With `feature_induction`: the features by entry.
    n_pairs_ : int
        Pairs of a row and one that it is to dominate, of the training data.
    n_queries_, needs_qid_, n_features_in_, feature_names_in_, model_ : as in RankSVM

    Examples
    --------
    >>> from linrank import DominationRanker
    >>> X = [[0.0, 1.0], [1.0, 1.0], [2.0, 0.0], [5.0, 1.0], [4.0, 0.0]]
    >>> ranker = DominationRanker(alpha=0.1)
    >>> ranker = ranker.fit(X, [0, 1, 2, 1, 0], qid=["a", "a", "a", "b", "b"])
    >>> ranker.rank(X, qid=["a", "a", "a", "b", "b"]).tolist()
    [3, 2, 1, 1, 2]
    """

    def __init__(
        self,
        penalty: str = "l1",
        alpha: float = 1.0,
        *,
        margin: Any = None,
        layers: Any = "labels",
        pooled: bool = False,
        solver: str = "auto",
        feature_induction: int | None = None,
        negative_sampling: float | None = None,
        curvature: str = "local",
        order: str = "sequential",
        tol: float | None = None,
        max_iter: int | None = None,
        scale: str = "none",
        missing: str = "error",
        warm_start: bool = False,
        early_stopping: bool = False,
        n_iter_no_change: int = 5,
        scoring: str = "ndcg@10",
        random_state: Any = None,
        memory_limit: float | str | None = None,
        callback: Callable[[dict[str, Any]], bool | None] | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.penalty = penalty
        self.alpha = alpha
        self.margin = margin
        self.layers = layers
        self.pooled = pooled
        self.solver = solver
        self.feature_induction = feature_induction
        self.negative_sampling = negative_sampling
        self.curvature = curvature
        self.order = order
        self.tol = tol
        self.max_iter = max_iter
        self.scale = scale
        self.missing = missing
        self.warm_start = warm_start
        self.early_stopping = early_stopping
        self.n_iter_no_change = n_iter_no_change
        self.scoring = scoring
        self.random_state = random_state
        self.memory_limit = memory_limit
        self.callback = callback
        self.n_jobs = n_jobs
        self.verbose = verbose

    @with_callbacks
    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        qid: Any = None,
        sample_weight: Any = None,
        query_weight: Any = None,
        group: Any = None,
        X_val: Any = None,
        y_val: Any = None,
        qid_val: Any = None,
        eval_set: Any = None,
        eval_qid: Any = None,
        eval_group: Any = None,
    ) -> DominationRanker:
        """Learn ``coef_`` from labelled rows.

        Parameters
        ----------
        X : matrix of shape (n_rows, n_features), Dataset or Store
            NumPy or SciPy matrix or data frame; float32 stays float32. A data set or store has
            labels, query ids and weights of its own.
        y : array of shape (n_rows,)
            Real labels; only their order within a query matters, unless `margin` or `layers` say
            otherwise.
        qid : array of shape (n_rows,)
            Query of each row, of any hashable type and in any order. None: all rows are one query.
        sample_weight : array of shape (n_rows,)
            Row weights ``u >= 0``: a weight of 2 equals repeating the row.
        query_weight : mapping from query id to weight, or array
            Query weights ``c >= 0``, as in :meth:`RankSVM.fit`. Not with `pooled`.
        group : array of shape (n_queries,)
            Sizes of consecutive queries, in place of `qid`.
        X_val, y_val, qid_val : validation data
            `scoring` is computed on them at every iteration.
        eval_set, eval_qid, eval_group : validation data as XGBoost, LightGBM and PyTerrier pass it
            ``eval_set=[(X, y), ...]`` with the ids or sizes of each; the last one steers
            `early_stopping`.

        Returns
        -------
        DominationRanker
            The fitted estimator.
        """
        given = (X_val, y_val, qid_val, eval_set, eval_qid, eval_group)
        own = {"qid": qid, "group": group, "sample_weight": sample_weight}
        if is_limited(X, y, self.memory_limit, **own):
            return self._fit_in_passes(X, given, query_weight)
        data = self._training_data(X, y, qid, group, sample_weight)
        sets = validation_sets(data, *given)
        scaling = Scaling.fit(self.scale, data.rows, weight=data.weight, n_jobs=self.n_jobs)
        monitor = Monitor.of(self, sets, scaling, data.filling)
        scaled = scaling.transformed(data, n_jobs=self.n_jobs)
        options: dict[str, Any] = {
            "alpha": self.alpha,
            **self._options(),
            "scale": scaling.factors,
            "query_weight": query_weights(query_weight, data.queries),
            "seed": seed_of(self.random_state),
            "n_jobs": self.n_jobs,
        }
        result = train(
            scaled,
            **options,
            w0=self._start(scaling, data.n_features, data.filling),
            callback=monitor if monitor.is_needed else None,
        )
        self._tell(result, monitor)
        if self.early_stopping:
            best = monitor.best(result)
            is_other = best is not result and self.feature_induction is not None
            result = certified(best, scaled, **options) if is_other else best
        return self._finish(result, data, scaling, monitor, options["seed"])

    def _fit_in_passes(
        self, store: Store, validation: tuple[Any, ...], query_weight: Any
    ) -> DominationRanker:
        columns = columns_of(store)
        sets = validation_sets(columns, *validation)
        options = {"alpha": self.alpha, **self._options()}
        settings = describe_parameters(None, seed=0, **options)
        result, n_pairs, scaling, monitor = fit_domination(store, sets, self, options, query_weight)
        model = model_of(store, result, scaling, settings, n_pairs)
        self._tell(result, monitor)
        if self.early_stopping:
            best = monitor.best(result)
            model = model if best is result else model.moved_to(best, columns, scaling)
            result = best
        self._note_columns(columns)
        self._adopt_validation(monitor)
        self._adopt(result, model, columns)
        self.history_ = {**result.history, **monitor.history}
        return self

    def _prepare_rows(self, rows: Rows) -> None:
        """Make what fits on the same rows can share, before they begin side by side."""
        solver = choose_solver(self.solver, self.penalty, self.feature_induction)
        if solver == "coordinate" and self.negative_sampling in (None, 1.0):
            rows.by_column  # noqa: B018  (kept by the rows)

    def _tell(self, result: Result, monitor: Monitor) -> None:
        """Warn of what did not converge, and keep the rounds of feature induction."""
        if result.stopped in ("max_iter", "precision"):
            remedy = "" if result.stopped == "max_iter" else "; raise tol to accept it"
            message = f"DominationRanker did not converge: {result.message}{remedy}"
            warnings.warn(message, ConvergenceWarning, stacklevel=4)
        if isinstance(result, InductionResult):
            if monitor.keys:
                result = result.validated(monitor.history[monitor.keys[-1]])
            self.rounds_, self.feature_order_ = result.rounds, result.order
        elif hasattr(self, "rounds_"):  # of an earlier fit
            del self.rounds_, self.feature_order_

    def _finish(
        self, result: Result, data: Dataset, scaling: Scaling, monitor: Monitor, seed: int
    ) -> DominationRanker:
        self._adopt_validation(monitor)
        settings = describe_parameters(data, alpha=self.alpha, seed=seed, **self._options())
        self._adopt(result, LinearModel.of(result, data, scaling, **settings), data)
        self.history_ = {**result.history, **monitor.history}
        return self
