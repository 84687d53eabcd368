"""Kernel: the function k(a, b), of single rows as of whole blocks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from linrank import _core
from linrank.choices import KERNEL_PARAMETERS, KERNELS, WITH_GAMMA
from linrank.data import Array, Dataset, DenseRows, Rows
from linrank.errors import check_natural, check_one_of, check_positive, did_you_mean, is_number
from linrank.system.resources import PickledFields, cached_property, useful_threads


@dataclass(frozen=True)
class Kernel(PickledFields):
    """``k(a, b)``, symmetric and positive semidefinite.

    Attributes
    ----------
    name : {"rbf", "poly", "sigmoid", "linear", "precomputed", "callable"}
        ``exp(-γ‖a - b‖²)``, ``(γ a·b + c)^degree``, ``tanh(γ a·b + c)``, ``a·b``; of
        "precomputed" the rows are those of the kernel matrix themselves.
    gamma, coef0 : float
        γ > 0 and c.
    degree : int
        Of "poly", >= 1.
    function : callable or None
        Of "callable": two blocks of rows, as NumPy or CSR arrays, to the matrix of their kernel.

    Notes
    -----
    Sums are float64 whatever the rows are. ``k(a, b)`` and ``k(b, a)`` are the same bits, and so is
    any result for any number of threads. Distances of dense rows are sums of squared differences;
    those of two sparse blocks, a quarter full or less, come from products and norms, with an
    absolute error of about ``1e-16 (‖a‖² + ‖b‖²)``. ``k(a, a) = 1`` of "rbf" is exact in both.

    Examples
    --------
    >>> import numpy as np
    >>> from linrank.data.rows import as_rows
    >>> rows = as_rows(np.array([[0.0, 0.0], [3.0, 4.0]]))
    >>> Kernel.of("poly", gamma=1.0, degree=2, coef0=1.0).matrix(rows, rows)
    array([[  1.,   1.],
           [  1., 676.]])
    >>> Kernel.of("linear").product(rows, rows, np.array([1.0, 2.0]))
    array([ 0., 50.])
    """

    name: str
    gamma: float = 1.0
    degree: int = 3
    coef0: float = 0.0
    function: Callable[[Any, Any], Any] | None = None

    @classmethod
    def of(
        cls,
        kernel: Any,
        *,
        gamma: Any = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        rows: Rows | None = None,
        weight: Array | None = None,
    ) -> Kernel:
        """The kernel of an estimator's parameters, checked.

        Parameters
        ----------
        kernel : str or callable
            A name of `linrank.choices.KERNELS`, or a function of two blocks of rows.
        gamma : float, "scale" or "auto"
            γ > 0; "scale" is ``1 / (n_features · Var X)``, the variance over all entries of
            ``rows``, zeros of sparse ones included; "auto" is ``1 / n_features``. Unused by
            "linear", "precomputed" and callables.
        degree, coef0 : int, float
            Of "poly" (>= 1), and of "poly" and "sigmoid" (finite).
        rows : Rows, optional
            Those that γ is taken from.
        weight : float64 array (n_rows,), optional
            How often each of them counts; a row of weight 2 counts as two, one of weight 0 as none.

        Raises
        ------
        ValueError
            That names the parameter, what it may be, and what it was.
        """
        if callable(kernel):
            return cls("callable", function=kernel)
        if not isinstance(kernel, str) or kernel not in KERNELS:
            raise ValueError(
                f"kernel must be one of {', '.join(map(repr, KERNELS))} or a callable, "
                f"got {kernel!r}{did_you_mean(str(kernel).lower(), KERNELS)}"
            )
        check_natural("degree", degree)
        if not (is_number(coef0) and np.isfinite(coef0)):
            raise ValueError(f"coef0 must be a finite number, got {coef0!r}")
        if isinstance(gamma, str):
            check_one_of("gamma", gamma, ("scale", "auto"))
        else:
            check_positive("gamma", gamma, "; or use 'scale' or 'auto'")
        width = _gamma(gamma, rows, weight) if kernel in WITH_GAMMA else 1.0
        return cls(kernel, width, int(degree), float(coef0))

    @property
    def parameters(self) -> dict[str, float]:
        """The parameters that the kernel has, by name."""
        return {name: getattr(self, name) for name in KERNEL_PARAMETERS.get(self.name, ())}

    @cached_property
    def core(self) -> Any:
        """What the core takes, None for kernels that are not its own."""
        if self.name in ("precomputed", "callable"):
            return None
        return _core.kernel_function(self.name, self.gamma, self.degree, self.coef0)

    def matrix(self, A: Rows, B: Rows, n_threads: int = 1) -> Array:
        """``K(A, B)`` in full, float64 of shape (rows of A, rows of B)."""
        if self.name == "precomputed":
            return _wide(A)
        if self.core is None:
            return self._call(A, B)
        flat: Array = _core.kernel_matrix(
            self.core, A.core, B.core, _threads(A.shape[0] * B.shape[0], A, n_threads)
        )
        self._check_finite(flat, A, B)
        return flat.reshape(A.shape[0], B.shape[0])

    def product(
        self, A: Rows, B: Rows, v: Array, n_threads: int = 1, *, block_bytes: int = 1 << 24
    ) -> Array:
        """``K(A, B) v`` for one vector: the matrix is never held.

        Tile by tile; that of a callable in blocks of ``block_bytes``, a row at least.
        """
        v = np.ascontiguousarray(v, dtype=np.float64)
        if self.core is None:
            step = max(1, block_bytes // (8 * max(1, B.shape[0])))
            parts = [
                self.matrix(A.take(slice(i, i + step)), B) @ v for i in range(0, A.shape[0], step)
            ]
            return np.concatenate(parts)
        result: Array = _core.kernel_product(
            self.core, A.core, B.core, v, _threads(A.shape[0] * B.shape[0], A, n_threads)
        )
        self._check_finite(result, A, B)
        return result

    def diagonal(self, A: Rows, n_threads: int = 1) -> Array:
        """``k(a, a)`` of every row, the same bits as in `matrix`."""
        if self.name == "rbf":
            return np.ones(A.shape[0])
        if self.name == "precomputed":
            return np.ascontiguousarray(_wide(A).diagonal())
        if self.core is None:
            # A call is dear and so are entries: squares of 32 rows, of which the diagonal is kept.
            blocks = [A.take(slice(i, i + 32)) for i in range(0, A.shape[0], 32)]
            return np.concatenate([self._call(one, one).diagonal() for one in blocks])
        found: Array = _core.kernel_diagonal(
            self.core, A.core, _threads(16 * A.shape[0], A, n_threads)
        )
        self._check_finite(found, A, A)
        return found

    def _call(self, A: Rows, B: Rows) -> Array:
        assert self.function is not None
        found = self.function(A.to_user(), B.to_user())
        name = getattr(self.function, "__name__", type(self.function).__name__)
        if hasattr(found, "toarray"):
            found = found.toarray()
        try:
            if np.iscomplexobj(found):  # NumPy would drop the imaginary part
                raise TypeError("complex numbers")
            found = np.asarray(found, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"kernel {name!r} must return a matrix of real numbers, "
                f"got {type(found).__name__}: {error}"
            ) from error
        expected = (A.shape[0], B.shape[0])
        if found.shape != expected:
            raise ValueError(
                f"kernel {name!r} must return one number for each pair of rows: {expected} for "
                f"blocks of {expected[0]} and {expected[1]} rows, got shape {found.shape}"
            )
        if not np.isfinite(found).all():
            i, j = np.argwhere(~np.isfinite(found))[0]
            raise ValueError(
                f"kernel {name!r} returned {found[i, j]} for rows {i} and {j} of its two blocks; "
                "it must be finite"
            )
        return found

    def _check_finite(self, values: Array, A: Rows, B: Rows) -> None:
        """Raise ValueError where a kernel has overflown; rbf of dense rows cannot."""
        if not (self.name == "rbf" and (isinstance(A, DenseRows) or isinstance(B, DenseRows))):
            self.check_finite(values)

    def check_finite(self, values: Array) -> None:
        """Raise ValueError where a value of the kernel, or a sum of them, is not finite."""
        with np.errstate(all="ignore"):
            if np.isfinite(values.sum()) or np.isfinite(values).all():
                return
        smaller = "use a smaller gamma or degree, or " if self.name == "poly" else ""
        remedy = f"{smaller}scale the columns (scale='standard')"
        raise ValueError(f"{self.describe()} overflows on these rows; {remedy}")

    def describe(self) -> str:
        """The kernel in words, as in ``rbf (gamma=0.5)``."""
        settings = ", ".join(f"{name}={value:.6g}" for name, value in self.parameters.items())
        return f"kernel {self.name!r}" + (f" ({settings})" if settings else "")


def _gamma(gamma: Any, rows: Rows | None, weight: Array | None) -> float:
    """γ as a number."""
    if not isinstance(gamma, str):
        return float(gamma)
    if rows is None:
        raise ValueError(f"gamma={gamma!r} is taken from the rows; give a number > 0")
    n_features = rows.shape[1]
    if gamma == "auto":
        return 1.0 / n_features
    # The variance of all entries: that within the columns, and that between them.
    found = rows.scan(weight).statistics
    variance = float(np.mean(found.variance) + np.var(found.mean))
    return 1.0 / (n_features * variance) if variance > 0 else 1.0


def _wide(rows: Rows) -> Array:
    """The rows as a float64 matrix, a view where they are one."""
    matrix = rows.values if isinstance(rows, DenseRows) else rows.to_user().toarray()
    return matrix.astype(np.float64, copy=False)


def _threads(n_entries: int, rows: Rows, n_threads: int) -> int:
    """One thread where the work is small: an entry is worth some 16 bytes, plus those of a row."""
    return useful_threads(n_entries * (16 + rows.nbytes / max(1, rows.shape[0])), n_threads)


def check_kernel_rows(kernel: Any, scale: str, data: Dataset) -> None:
    """Fail on rows that are no kernel matrix, where they should be one."""
    if not (isinstance(kernel, str) and kernel == "precomputed"):
        return
    if scale != "none":
        raise ValueError(
            f"scale={scale!r} scales features, and a precomputed kernel has none; use "
            "scale='none', and scale the rows before the kernel is computed"
        )
    if not isinstance(data.rows, DenseRows):
        raise TypeError(
            "a precomputed kernel must be a dense matrix, got a sparse one; pass X.toarray()"
        )
    n, m = data.rows.shape
    if n != m:
        raise ValueError(
            "a precomputed kernel must be a square matrix, training rows by training rows, got "
            f"{n} × {m}; pass K(X, X) to fit and K(X_test, X) to predict"
        )
