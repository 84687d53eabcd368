"""DominationRanker, the scikit-learn face of the domination loss."""

from __future__ import annotations

from linrank.data.rows import Rows
from linrank.domination.train import choose_solver
from linrank.estimators.base import MethodRanker, SparseRanker
from linrank.methods import DOMINATION
from linrank.methods.parameters import DominationParameters


class DominationRanker(MethodRanker, SparseRanker, DominationParameters):
    """Sparse linear ranker by the domination loss: every row is to beat all rows below it at once.

    Minimizes ``F(w) = Σ_q c_q Σ_i u_i log(1 + Σ_j u_j exp(w·(x_j - x_i) + s_i - s_j)) + α pen(w)``,
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
          so k between neighboring layers;
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
    tol : float or None, default=None
        Stop when `duality_gap_` is at most ``tol·F``, without a penalty when a sweep lowers F by
        less than that; None for 1e-4. With `feature_induction` it is the gap of each round, and the
        least promise of a feature that enters.
    max_iter : int or None, default=None
        Sweeps over the features at most, >= 1, or Newton steps; None for 1000, or 100.
    scale : {"auto", "none", "standard", "minmax", "query"}, default="auto"
        As in :class:`RankSVM`. The penalty is on the weights of the scaled features.
    curves, n_knots, interactions
        As in :class:`RankSVM`: an additive model, of which the l1 penalty keeps few columns.
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
    scoring : str or callable, default="ndcg@10"
        Measure of the validation data, by name or as a function: see :func:`linrank.evaluate`.
    random_state : int, None, RandomState or Generator, default=None
        Of `negative_sampling`; nothing else is random.
    memory_limit : int, float, str or None, default=None
        As in :class:`RankSVM`, of a :class:`linrank.Store` with ``penalty="l2"``: bytes that the
        fit may take beyond what the process holds when it begins.
    device : str, default="cpu"
        As in :class:`RankSVM`, for Newton's method with ``penalty="l2"``: rows and products with
        them are on the device, the loss is swept on the host.
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

    method = DOMINATION

    def _prepare_rows(self, rows: Rows) -> None:
        """Make what fits on the same rows can share, before they begin side by side."""
        solver = choose_solver(self.solver, self.penalty, self.feature_induction)
        if solver == "coordinate" and self.negative_sampling in (None, 1.0):
            rows.by_column  # noqa: B018  (kept by the rows)
