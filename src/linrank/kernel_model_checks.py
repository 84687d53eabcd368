"""What a kernel model checks of its parts, whether they come from a training or from a file."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from linrank import _core
from linrank.checks import check_natural, check_one_of, check_positive, is_number
from linrank.data.frames import as_array
from linrank.data.rows import CsrRows, DenseRows, as_rows
from linrank.options import KERNELS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from linrank.data.rows import Rows
    from linrank.kernels.functions import Kernel

__all__ = ["check_kernel", "row_numbers", "support_rows", "vector"]

_NAMES = (*KERNELS, "callable", "fourier")


def check_kernel(kernel: Kernel) -> None:
    """Refuse names and parameters that no kernel has."""
    check_one_of("the name of a kernel", kernel.name, _NAMES)
    check_positive("gamma", kernel.gamma)
    check_natural("degree", kernel.degree)
    if not (is_number(kernel.coef0) and math.isfinite(kernel.coef0)):
        raise ValueError(f"coef0 must be a finite number, got {kernel.coef0!r}")
    if (kernel.function is not None) != (kernel.name == "callable"):
        raise ValueError(f"the kernel {kernel.name!r} and its function do not go together")


def vector(name: str, values: Any, size: int | None = None) -> NDArray[np.float64]:
    """A copy of finite numbers that cannot be changed."""
    vector = np.array(as_array(values, name), dtype=np.float64)
    if vector.ndim != 1 or size not in (None, vector.size):
        expected = "a vector" if size is None else f"the shape ({size},)"
        raise ValueError(f"{name} must have {expected}, got shape {vector.shape}")
    if not np.isfinite(vector).all():
        j = int(np.flatnonzero(~np.isfinite(vector))[0])
        raise ValueError(f"{name}[{j}] is {vector[j]}; it must be finite")
    vector.flags.writeable = False
    return vector


def row_numbers(support: Any, n_support: int, n_train: int | None) -> NDArray[np.int64]:
    """Distinct numbers of training rows, a copy that cannot be changed."""
    given = as_array(support, "support")
    if given.shape != (n_support,) or (given.size and given.dtype.kind not in "iu"):
        raise ValueError(
            f"support must be {n_support} row numbers, one for each coefficient, got "
            f"{given.dtype} of shape {given.shape}"
        )
    numbers = given.astype(np.int64)
    bad = (numbers < 0) | (numbers >= (np.iinfo(np.int64).max if n_train is None else n_train))
    if bad.any():
        j = int(np.argmax(bad))
        of = "" if n_train is None else f" of {n_train}"
        raise ValueError(f"support[{j}] is {numbers[j]}, which is no training row{of}")
    if np.unique(numbers).size != numbers.size:
        raise ValueError("support names a training row twice")
    numbers.flags.writeable = False
    return numbers


def support_rows(given: Any, n_support: int) -> Rows:
    """Rows, checked as those of data are: sparse ones index only columns that there are."""
    if given is None:
        raise ValueError("a model needs its support rows; only a precomputed kernel has none")
    # Without support rows every score is 0; as data, no rows would be an error.
    empty = isinstance(given, np.ndarray) and given.ndim == 2 and len(given) == 0
    rows: Rows = DenseRows(given.astype(np.float64)) if empty else as_rows(given)
    if rows.shape[0] != n_support:
        raise ValueError(f"{rows.shape[0]} support rows for {n_support} coefficients")
    if rows.shape[1] < 1:
        raise ValueError("the support rows have no features")
    if isinstance(rows, CsrRows) and int(rows.offsets[-1]) != len(rows.values):
        raise ValueError(
            f"the offsets of the support rows end at {rows.offsets[-1]}, there are "
            f"{len(rows.values)} values"
        )
    if not _core.columns_increase(rows.core, 1):
        raise ValueError("the columns of a sparse support row must increase")
    place = _core.first_non_finite(rows.core, 1)
    if place is not None:
        raise ValueError(f"support row {place[0]} is not finite in column {place[1]}")
    return rows
