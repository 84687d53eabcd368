"""Grids of C and γ for kernels, as users give them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank.checks import check_one_of
from linrank.data.dataset import Dataset
from linrank.grids import as_grid
from linrank.kernels.functions import Kernel
from linrank.options import KERNELS, WITH_GAMMA
from linrank.scaling import Scaling

__all__ = ["as_gammas", "as_kernel_Cs"]

Array = NDArray[Any]

_AUTO_CS = tuple(2.0**k for k in range(-15, 10, 2))
_AUTO_FACTORS = tuple(4.0**k for k in range(-3, 4))  # of γ, times that of gamma="scale"


def as_kernel_Cs(Cs: Any) -> Array:
    """The grid of C, ascending and each once; ``"auto"`` is 2^-15, 2^-13, ..., 2^9."""
    return as_grid("Cs", Cs, _AUTO_CS)


def as_gammas(gammas: Any, kernel: Any, data: Dataset, scale: str = "none") -> Array:
    """The grid of γ, ascending and each once.

    ``"auto"`` is 1/64, 1/16, ..., 64 times ``1 / (n_features·Var X)``, the γ that
    ``gamma="scale"`` takes from the rows, scaled as ``scale`` says. A kernel without γ has a grid
    of one, which says nothing.
    """
    if not callable(kernel):
        check_one_of("kernel", kernel, KERNELS)
    if kernel not in WITH_GAMMA:
        if not (isinstance(gammas, str) and gammas == "auto"):
            raise ValueError(
                f"kernel={kernel!r} has no gamma, got gammas={gammas!r}; leave them out, or use "
                f"the kernel {', '.join(WITH_GAMMA[:-1])} or {WITH_GAMMA[-1]}"
            )
        return np.array([1.0])
    if not isinstance(gammas, str):
        return as_grid("gammas", gammas, ())
    rows = Scaling.fit(scale, data.rows, weight=data.weight).applied(data).rows
    middle = Kernel.of(kernel, gamma="scale", rows=rows, weight=data.weight).gamma
    return as_grid("gammas", gammas, [middle * factor for factor in _AUTO_FACTORS])
