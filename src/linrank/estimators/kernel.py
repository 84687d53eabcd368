"""KernelRankSVM: RankSVM on all pairs with a kernel, as a scikit-learn estimator."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from linrank.data.dataset import Dataset
from linrank.estimators.base import FittedRanker, PairRanker
from linrank.methods import KERNEL
from linrank.methods.parameters import KernelParameters
from linrank.models.kernel import KernelModel


class KernelRanker(FittedRanker):
    """Scores rows by ``Σ β_i k(x_i, x)``."""

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        # Splits of a kernel matrix take the same rows and columns of it.
        tags.input_tags.pairwise = self.kernel == "precomputed"
        tags.input_tags.sparse = self.kernel != "precomputed"
        return tags

    @property
    def support_vectors_(self) -> Any:
        """The rows that ``dual_coef_`` belongs to, as the kernel sees them: scaled.

        A NumPy array or a ``scipy.sparse.csr_array``; there are none of a precomputed kernel.
        """
        check_is_fitted(self, "model_")
        if self.model_.rows is None:
            raise AttributeError(
                "a precomputed kernel has no rows: support_ has the numbers of those that count"
            )
        return self.model_.rows.to_user()

    # ---- for fit ---------------------------------------------------------------------------------

    def _adopt_model(self, model: KernelModel, data: Dataset) -> None:
        super()._adopt_model(model, data)
        self.dual_coef_: NDArray[np.float64] = model.coef
        self.support_ = model.support
        self.n_support_ = len(model.coef)
        self.gamma_ = model.kernel.gamma


class KernelRankSVM(PairRanker, KernelRanker, KernelParameters):
    """Ranker by RankSVM with a kernel, exact on all pairs, none of which is listed.

    Scores are ``f(x) = Σ_i β_i k(x_i, x)`` over the training rows. With ``Q_ij = k(x_i, x_j)`` and
    the scores ``s = Qβ`` of the training rows, it minimizes

    ``F(β) = ½ β'Qβ + C Σ_q Σ_(i above j in q) ω_ij l(1 - (s_i - s_j))``,

    where ``i above j`` means a larger label in the same query, ``ω_ij = c_q u_i u_j`` is made of
    the weights of the query and of the rows, and ``l`` is the loss: :class:`RankSVM` in the space
    of the kernel. Within each query ``Σ β_i = 0``; a row none of whose pairs is violated has
    ``β_i = 0``, and no part in the model.

    Parameters
    ----------
    kernel : {"rbf", "poly", "sigmoid", "linear", "precomputed"} or callable, default="rbf"
        ``k(a, b)``: ``exp(-γ‖a - b‖²)``, ``(γ a·b + coef0)^degree``, ``tanh(γ a·b + coef0)``,
        ``a·b``. "precomputed": `X` is the matrix Q itself in ``fit``, and ``K(X_test, X_train)`` in
        ``predict``. A function gets two matrices and returns the kernel of all rows of the one with
        all of the other. Q must be symmetric and positive semidefinite, which the sigmoid need not
        be; it is checked.
    gamma : float, "scale" or "auto", default="scale"
        γ > 0; "scale" is ``1 / (n_features Var X)``, "auto" ``1 / n_features``.
    degree : int, default=3
        Of "poly", >= 1.
    coef0 : float, default=0.0
        Of "poly" and "sigmoid".
    C : float or "auto", default="auto"
        Weight of the pair losses, > 0.
    loss : {"squared_hinge", "hinge"}, default="squared_hinge"
        ``l(ξ) = max(0, ξ)²`` or ``max(0, ξ)``.
    pairs : {"all", "adjacent", "closest", "pruned"}, default="all"
        Which pairs count: all, or a part of them, as in :class:`RankSVM`.
    n_closest, n_random : int or "auto", default="auto"
        How many pairs "closest" and "pruned" take, as in :class:`RankSVM`.
    pair_weighting : {"auto", "uniform", "grade_diff", "gain_diff"}, default="auto"
        Another factor of ``ω_ij``: ``y_i - y_j``, or ``2^y_i - 2^y_j``.
    query_normalization : {"auto", None, "pairs"}, default="auto"
        ``"pairs"`` divides ``c_q`` by the sum of ``ω_ij`` over the pairs of the query.
    approximation : {None, "nystroem"}, default=None
        None is exact, and takes a time of O(n²) for n rows, and memory if there is any. "nystroem"
        learns a sum over `n_components` rows only: a linear RankSVM on rows that are mapped.
    n_components : int or None, default=None
        Size of the approximation, >= 1; None for 512 or fewer rows. The exact fit does not look
        at it.
    memory_limit : int, float, str or None, default=None
        Bytes that the fit may take beyond what the process holds when it begins: those of Q and
        what belongs to it, or of the mapped rows. None for half of what is free. Where Q does not
        fit, it is computed again, block by block, for every product: slower,
        and the same model.
    tol : float or None, default=None
        Stop when `duality_gap_`, a certified bound on ``F(β) - F*``, is at most ``tol·F(β)``; None
        for 1e-4, and for 1e-3 of the hinge.
    max_iter : int or None, default=None
        Newton steps at most, >= 1; None for 100, and for 500 of the hinge in an exact fit.
    scale : {"auto", "none", "standard", "minmax", "query"}, default="auto"
        How features are scaled before the kernel sees them, as in :class:`RankSVM`; part of the
        model, which scores raw rows.
    random_state : int, None, RandomState or Generator, default=None
        Of random pairs and of approximations; an exact fit on all pairs does not depend on it.
    callback : callable or None, default=None
        Called after every iteration with a dict of the latest entries of ``history_`` and ``w``,
        the coefficients β; returning True stops.
    device : str, default="cpu"
        Where an exact fit computes: "cuda", "cuda:1" and so on is a device that CuPy finds. It has
        Q in its memory as far as that fits, `memory_limit` being a part of that, and sweeps over
        the pairs of labels. Rows that lie on a device are computed with there.
    n_jobs : int or None, default=None
        Threads; None or -1 means all cores available to the process.
    verbose : int, default=0
        Report each iteration when positive, as in :class:`RankSVM`.

    Attributes
    ----------
    dual_coef_ : ndarray of shape (n_support,)
        β of the rows that have one. Read-only. Where Q is singular another β may give the same
        scores.
    support_ : ndarray of shape (n_support,)
        Their numbers in the training data.
    support_vectors_ : matrix of shape (n_support, n_features)
        The rows themselves, scaled: the landmarks with "nystroem".
    n_support_ : int
        How many there are.
    gamma_ : float
        γ as a number.
    objective_ : float
        ``F(β)``.
    duality_gap_ : float
        Certified upper bound of ``F(β) - F*``; of an approximation, in its own space.
    n_iter_ : int
        Newton steps.
    converged_ : bool
        Whether `tol` was reached.
    history_ : dict of lists
        Objective, gap, seconds and so on by iteration, from ``β = 0`` on. The last step is carried
        further until rows without a violated pair have ``β_i = 0``: `objective_` may lie below.
    n_pairs_, n_queries_ : int
        Pairs that were compared, and queries, of the training data.
    needs_qid_ : bool
        Whether the fit used query ids, so that ``score`` and ``rank`` need them.
    n_features_in_ : int
        Number of features; of a precomputed kernel, of training rows.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, when `X` had string column names.
    model_ : KernelModel
        The model itself, independent of scikit-learn.

    Examples
    --------
    The best rows are those in the middle, which no linear model can say:

    >>> from linrank import KernelRankSVM
    >>> X = [[-2.0], [-1.0], [0.0], [1.0], [2.0]]
    >>> ranker = KernelRankSVM(gamma=0.5, C=10.0, random_state=0).fit(X, [0, 1, 2, 1, 0])
    >>> ranker.rank([[3.0], [1.5], [0.1]]).tolist()
    [3, 2, 1]
    """

    method = KERNEL
