"""KernelRanker: what the estimators share that learn a sum of kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from linrank.fitted_ranker import FittedRanker
from linrank.options import KERNEL

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from sklearn.utils import Tags

    from linrank.data.dataset import Dataset
    from linrank.kernel_model import KernelModel
    from linrank.solvers.result import Result

__all__ = ["KernelRanker"]


class KernelRanker(FittedRanker):
    """Scores rows by ``Σ β_i k(x_i, x)``.

    A subclass has the parameters ``kernel`` and ``linrank.options.KERNEL``; its ``fit`` ends with
    `_adopt`.
    """

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

    def _options(self) -> dict[str, Any]:
        """The parameters that go to the training as they are."""
        return {name: getattr(self, name) for name in KERNEL}

    def _adopt(self, result: Result, model: KernelModel, data: Dataset) -> None:
        """Set the attributes of a fit."""
        self._adopt_optimum(result, model, data)
        self.dual_coef_: NDArray[np.float64] = model.coef
        self.support_ = model.support
        self.n_support_ = len(model.coef)
        self.gamma_ = model.kernel.gamma
