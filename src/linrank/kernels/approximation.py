"""Kernel rankers for many rows: a linear RankSVM on features that approximate the kernel."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, cast

from numpy.typing import NDArray

from linrank.checks import check_natural, check_one_of
from linrank.data.dataset import Dataset
from linrank.data.rows import Rows
from linrank.kernels.feature_memory import Room
from linrank.kernels.fourier import FourierMap
from linrank.kernels.functions import Kernel
from linrank.kernels.mapped_rows import FeatureMap, MappedRows
from linrank.kernels.nystroem import NystroemMap
from linrank.options import APPROXIMATIONS
from linrank.ranksvm import train
from linrank.solvers.result import Result
from linrank.threads import resolve

__all__ = ["ApproximateResult", "train_approximate"]

Array = NDArray[Any]

_COMPONENTS = 512  # unless told


@dataclass(frozen=True, eq=False)
class ApproximateResult(Result):
    """The outcome of a fit on approximate features; ``w`` are the weights of the features.

    Attributes
    ----------
    rows : DenseRows or CsrRows
        Landmarks ``x_k`` (nystroem) or frequencies ``ω_k`` (fourier).
    coef : float64 array
        ``c`` of the ranker ``Σ c_k k(x_k, x)``, or the amplitudes of ``Σ c_k cos(ω_k·x - δ_k)``.
    phases : float64 array or None
        ``δ`` (fourier).
    support : int64 array or None
        The landmarks by number of row (nystroem).
    is_streamed : bool
        Whether the features were computed for every product, for want of memory.
    """

    rows: Rows
    coef: Array
    phases: Array | None
    support: Array | None
    is_streamed: bool


def train_approximate(
    data: Dataset,
    *,
    kernel: Kernel,
    approximation: str = "nystroem",
    n_components: int | None = None,
    seed: int = 0,
    memory_limit: int | float | str | None = None,
    n_jobs: int | None = None,
    **options: Any,
) -> ApproximateResult:
    """Train a linear RankSVM on features z with ``z(a)·z(b) ≈ k(a, b)``.

    Parameters
    ----------
    data : Dataset
        Scaled rows, labels, queries.
    kernel : Kernel
        k; "rbf" for fourier, any but "precomputed" for nystroem.
    approximation : {"nystroem", "fourier"}
        Features by `NystroemMap` or by `FourierMap`.
    n_components : int, optional
        Number of features, 512 if None or as many as there are rows; even for fourier.
    seed : int
        Of landmarks or frequencies, and of random pairs.
    memory_limit : int, float or str, optional
        Bytes for features and Hessians beside the data; half of what is free if None. Features
        that do not fit are computed again for every product.
    n_jobs : int, optional
        Threads; None for all cores. The result does not depend on it.
    **options
        C, loss, pairs, tol, ... of `linrank.ranksvm.train`.
    """
    n_components = _checked(data, kernel, approximation, n_components)
    n_threads = resolve(n_jobs)
    room = Room.of(memory_limit, data.rows, n_components)
    features = _features(data, kernel, approximation, n_components, room, seed, n_threads)
    mapped = MappedRows(data.rows, features, room.capacity, n_blocks=room.n_blocks)
    rows = mapped if room.is_streamed else mapped.stored(slice(None), n_threads)
    # `train` asks no more of rows than streamed ones have; a data set in general is stored.
    mapped_data = replace(data, rows=cast(Any, rows), feature_names=None)
    result = train(mapped_data, seed=seed, n_jobs=n_jobs, **options)
    known = {field.name: getattr(result, field.name) for field in fields(Result)}
    return ApproximateResult(
        **known,
        rows=features.rows,
        coef=features.coef(result.w),
        phases=features.phases(result.w) if isinstance(features, FourierMap) else None,
        support=features.support,
        is_streamed=room.is_streamed,
    )


def _features(
    data: Dataset,
    kernel: Kernel,
    approximation: str,
    n_components: int,
    room: Room,
    seed: int,
    n_threads: int,
) -> FeatureMap:
    if approximation == "fourier":
        room.check_frequencies()
        return FourierMap.of(kernel, data.n_features, n_components, seed=seed)
    return NystroemMap.of(
        kernel, data.rows, n_components, room.n_candidates, seed=seed, n_threads=n_threads
    )


def _checked(data: Dataset, kernel: Kernel, approximation: str, n_components: Any) -> int:
    """The number of features, all of it checked."""
    check_one_of("approximation", approximation, APPROXIMATIONS[1:])
    if kernel.name == "precomputed":
        raise ValueError(
            f"approximation={approximation!r} computes the kernel of rows with landmarks or "
            "frequencies; kernel='precomputed' leaves no rows to do so: use approximation=None"
        )
    if approximation == "fourier" and kernel.name != "rbf":
        raise ValueError(
            f"approximation='fourier' has the frequencies of kernel='rbf' only, got "
            f"kernel={kernel.name!r}; use approximation='nystroem'"
        )
    if n_components is None:
        return _COMPONENTS if approximation == "fourier" else min(_COMPONENTS, data.n_rows)
    check_natural("n_components", n_components, " or None")
    if approximation == "nystroem" and n_components > data.n_rows:
        raise ValueError(
            f"n_components={n_components} landmarks are more than the {data.n_rows} rows they are "
            "chosen from; use at most so many, or approximation=None"
        )
    if approximation == "fourier" and n_components % 2:
        raise ValueError(
            f"n_components={n_components} is odd, but every frequency has a cosine and a sine; "
            f"use {n_components + 1}"
        )
    return int(n_components)
