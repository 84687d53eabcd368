"""LinearRanker: what fitted linear estimators have in common.

ExactRanker adds what those share that minimise over pairs, DescentRanker what those share that
learn from sampled ones, SparseRanker what those share that minimise the domination loss.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from linrank.fitted_ranker import FittedRanker
from linrank.options import AVERAGES, DOMINATION, SELECTED_PAIRS, TRAINING
from linrank.seeds import seed_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from linrank.data.dataset import Dataset
    from linrank.data.filling import Filling
    from linrank.export.artefact import Artefact
    from linrank.model import LinearModel
    from linrank.monitor import Monitor
    from linrank.scaling import Scaling
    from linrank.solvers.result import Result
    from linrank.stochastic.training import DescentResult

__all__ = ["DescentRanker", "ExactRanker", "LinearRanker", "SparseRanker"]


class LinearRanker(FittedRanker):
    """Scores rows by coefficients, and explains the scores by them."""

    _checked = "later"  # the model finds values that are not finite by their scores

    def explain(self, X: Any, qid: Any = None, pair: tuple[int, int] | None = None) -> Any:
        """What each feature contributes: ``coef_ ∘ x``, or ``coef_ ∘ (x_i - x_j)``.

        Parameters
        ----------
        X : matrix of shape (n_rows, n_features)
            Raw rows.
        qid : array of shape (n_rows,)
            Query of each row; only ``scale="query"`` looks at it.
        pair : (int, int) or None
            Two rows of `X` to compare.

        Returns
        -------
        ndarray or scipy.sparse.csr_array
            Of shape (n_rows, n_features), each row summing to its score; with `pair` a vector that
            sums to the score of row i less that of row j.
        """
        rows, qid = self._rows(X, qid)
        return self.model_.explain(rows, qid=qid, pair=pair)

    def export(self, target: str, **options: Any) -> Artefact:
        """``model_`` for a search engine or another program: :meth:`linrank.LinearModel.export`."""
        from linrank.export.targets import export

        check_is_fitted(self, "model_")
        return export(self.model_, target, **options)

    # ---- for fit ---------------------------------------------------------------------------------

    def _start(
        self, scaling: Scaling, n_features: int, filling: Filling | None = None
    ) -> NDArray[np.float64] | None:
        """Where ``warm_start``, of the estimators that have it, lets the weights begin."""
        if not (self.warm_start and hasattr(self, "coef_")):
            return None
        n_features = n_features if filling is None else filling.n_features
        if self.coef_.size != n_features:
            raise ValueError(
                f"warm_start=True, but X has {n_features} features and the previous fit had "
                f"{self.coef_.size}; set warm_start=False"
            )
        return scaling.unfold(self.model_.missing.joined(self.coef_, filling))

    def _adopt_model(self, model: LinearModel, data: Dataset) -> None:
        super()._adopt_model(model, data)
        self.coef_ = model.coef

    def _adopt_validation(self, monitor: Monitor) -> None:
        """Set which iterate was best; without validation data, forget that of an earlier fit."""
        if monitor.keys:
            self.best_iteration_ = monitor.best_iteration
        elif hasattr(self, "best_iteration_"):
            del self.best_iteration_


class ExactRanker(LinearRanker):
    """Minimises over pairs by one of ``linrank.options.SOLVERS``.

    A subclass has the parameters ``linrank.options.TRAINING``, ``random_state``, ``positive`` and
    ``coef_bounds`` too; its ``fit`` ends with `_adopt`.
    """

    def _options(self) -> dict[str, Any]:
        """The parameters that go to the training as they are, and the seed where it needs one."""
        options = {name: getattr(self, name) for name in TRAINING}
        if self.pairs in SELECTED_PAIRS:
            options["seed"] = seed_of(self.random_state)
        return options

    def _settings(self, options: dict[str, Any]) -> dict[str, Any]:
        """What the model is to know of the parameters; ``options`` are those of the training."""
        return options | {
            "positive": bool(self.positive),
            "bounded": self.coef_bounds is not None,
        }

    def _adopt(self, result: Result, model: LinearModel, data: Dataset) -> None:
        """Set the attributes of a fit."""
        self._adopt_optimum(result, model, data)
        self.kkt_residual_ = result.kkt_residual


class DescentRanker(LinearRanker):
    """Learns from sampled pairs.

    A subclass has the parameter ``average`` too; its ``fit`` ends with `_adopt`.
    """

    def _average(self) -> str | None:
        """The one of ``linrank.options.AVERAGES`` that the parameter stands for, None for none."""
        if self.average is None or isinstance(self.average, bool | np.bool_):
            return AVERAGES[0] if self.average else None
        if self.average not in AVERAGES:
            expected = ", ".join(map(repr, AVERAGES))
            raise ValueError(
                f"average must be False, True or one of {expected}, got {self.average!r}"
            )
        return str(self.average)

    def _adopt(self, result: DescentResult, model: LinearModel, data: Dataset) -> None:
        """Set the attributes of a fit."""
        self._adopt_model(model, data)
        self._adopt_result(result)

    def _adopt_result(self, result: DescentResult) -> None:
        """Set those that tell of the descent."""
        self.alpha_ = result.alpha
        self.n_steps_ = result.n_steps
        self.stopped_ = result.stopped
        self.objective_ = result.objective
        self.duality_gap_ = result.gap
        self.loss_ = result.loss
        self.history_ = result.history
        self.n_pairs_ = result.n_pairs


class SparseRanker(LinearRanker):
    """Minimises the domination loss with a penalty, most of its weights being 0.

    A subclass has the parameters ``linrank.options.DOMINATION`` too; its ``fit`` ends with
    `_adopt`.
    """

    @property
    def sparse_coef_(self) -> Any:
        """``coef_`` as a ``scipy.sparse.csr_array`` of shape (1, n_features)."""
        from scipy.sparse import csr_array

        check_is_fitted(self, "coef_")
        return csr_array(self.coef_.reshape(1, -1))

    def _options(self) -> dict[str, Any]:
        """The parameters that go to the training as they are."""
        return {name: getattr(self, name) for name in DOMINATION}

    def _adopt(self, result: Result, model: LinearModel, data: Dataset) -> None:
        """Set the attributes of a fit."""
        self._adopt_optimum(result, model, data)
        self.n_nonzero_, self.density_ = model.n_nonzero, model.density
        self.kkt_residual_ = result.kkt_residual
