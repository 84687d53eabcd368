"""fit_kernel: from data and parameters to a kernel model, exact or approximate."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from linrank.data.rows import DenseRows
from linrank.data.scaling import Scaling
from linrank.errors import check_one_of
from linrank.kernels.functions import Kernel
from linrank.models.kernel import KernelModel
from linrank.options import APPROXIMATIONS, KERNEL, SELECTED_PAIRS

if TYPE_CHECKING:
    from linrank.data.dataset import Dataset
    from linrank.data.preferences import Preferences
    from linrank.solvers.result import Callback, Result

# What a model knows of the options; how much memory there was is not part of it.
_TOLD = ("C", *(name for name in KERNEL if name != "memory_limit"))


def fit_kernel(
    data: Dataset,
    *,
    kernel: Any,
    gamma: Any = "scale",
    degree: int = 3,
    coef0: float = 0.0,
    scale: str = "none",
    approximation: str | None = None,
    n_components: int | None = None,
    preferences: Preferences | None = None,
    n_jobs: int | None = None,
    callback: Callback | None = None,
    **options: Any,
) -> tuple[KernelModel, Result]:
    """Scale the rows, train, and make a model of what was learnt.

    Parameters
    ----------
    data : Dataset
        Raw rows, or the kernel matrix if the kernel is precomputed.
    kernel, gamma, degree, coef0
        As `Kernel.of` takes them.
    scale : str
        One of ``linrank.options.SCALES``.
    approximation : {None, "nystroem", "fourier"}
        None trains by `linrank.kernels.train.train_kernel`, the others by
        `linrank.kernels.approximation.train_approximate`.
    n_components : int, optional
        Size of the approximation, None leaves it to the training; not looked at without one.
    preferences, n_jobs, callback, **options
        As the training takes them.

    Returns
    -------
    model : KernelModel
        Which scores raw rows.
    result : KernelResult or ApproximateResult
        What the training returned.
    """
    check_one_of("approximation", approximation, APPROXIMATIONS)
    check_kernel_rows(kernel, scale, data)
    scaling = Scaling.fit(scale, data.rows, weight=data.weight, n_jobs=n_jobs)
    scaled = scaling.applied(data, n_jobs=n_jobs)
    function = Kernel.of(
        kernel, gamma=gamma, degree=degree, coef0=coef0, rows=scaled.rows, weight=data.weight
    )
    arguments = {
        **options,
        "kernel": function,
        "preferences": preferences,
        "n_jobs": n_jobs,
        "callback": callback,
    }
    settings = {name: options[name] for name in _TOLD if name in options}
    result: Result
    if approximation is None:
        from linrank.kernels.train import train_kernel

        result = train_kernel(scaled, **arguments)
    else:
        from linrank.kernels.approximation import train_approximate

        result = train_approximate(
            scaled, approximation=approximation, n_components=n_components, **arguments
        )
        settings["approximation"] = approximation
    if approximation is not None or options.get("pairs") in SELECTED_PAIRS:
        settings["seed"] = options.get("seed")  # nothing else is random
    if preferences is not None:
        settings["n_preferences"] = len(preferences)
    if data.index_base is not None:
        settings["index_base"] = data.index_base
    return KernelModel.of(result, scaled, scaling, function, **settings), result


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
