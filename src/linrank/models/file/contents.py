"""What a model file holds, and how much of it at most."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from linrank.data.statistics import ColumnStatistics

Scalar = str | int | float | bool | None

FORMAT = "linrank-model"
VERSION = 4  # the newest that is read; a file is of the oldest version that can say what it says
LISTS, SPARSE = 1, 2  # versions: all arrays as lists; some by the indices and values of non-zeros
KERNEL = 3  # the version that brought kernel models
PROVENANCE = 4  # the version that brought missing values and statistics of the training rows
MAX_INLINE_FEATURES = 1_000_000  # beyond, the arrays go to a safetensors file, unless sparse
MAX_SPARSE_FEATURES = 2**24  # of arrays by indices and values: a short file must not take 8 GB
MAX_FEATURES = 2**30
MAX_ROWS = 2**40  # of the training data of a kernel model: a number only, no memory goes with it
MAX_JSON_BYTES = 2**28
RESAVE = "restore the file from a copy, or train and save the model again"
FOREIGN = "pass a file written by save() of a linrank model or by linrank train"


@dataclass(frozen=True, eq=False)
class Contents:
    """The fields of a linear model, as plain values and arrays."""

    coef: NDArray[np.float64]
    feature_names: Sequence[str] | None
    scaling: str
    factors: NDArray[np.float64] | None
    training: Mapping[str, Scalar]
    linrank_version: str
    missing: str = "error"
    filled: NDArray[np.float64] | None = None  # values of missing="mean", weights of "indicator"
    statistics: ColumnStatistics | None = None


@dataclass(frozen=True, eq=False)
class KernelContents:
    """The fields of a kernel model, as plain values and arrays.

    ``arrays`` holds those that there are of "rows", or "values", "columns" and "offsets" of sparse
    ones, "coef", "phases", "support" and "factors".
    """

    kernel: Mapping[str, Scalar]
    n_features: int
    n_support: int
    n_train: int | None
    arrays: Mapping[str, NDArray[Any]]
    feature_names: Sequence[str] | None
    scaling: str
    training: Mapping[str, Scalar]
    linrank_version: str


class Invalid(Exception):
    """What is wrong with some contents, before it is said which file they came from."""

    def __init__(self, problem: str, remedy: str = RESAVE) -> None:
        super().__init__(problem)
        self.problem, self.remedy = problem, remedy
