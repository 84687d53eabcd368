"""KernelModel: a sum of kernels at support rows, able to score raw rows and be saved."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from linrank import __version__, _core
from linrank.choices import KERNELS
from linrank.data.dataset import Dataset
from linrank.data.device_rows import DeviceRows
from linrank.data.frames import as_array
from linrank.data.rows import CsrRows, DenseRows, Rows, as_rows
from linrank.data.scaling import Scaling
from linrank.errors import check_natural, check_one_of, check_positive, is_number
from linrank.kernels.device_kernel import score_rows
from linrank.kernels.functions import Kernel
from linrank.models import linear as linear_model
from linrank.models.linear import Outcome, Scalar, vector
from linrank.system.resources import resolve

Array = NDArray[Any]


_NAMES = (*KERNELS, "callable")


def check_kernel(kernel: Kernel) -> None:
    """Refuse names and parameters that no kernel has."""
    check_one_of("the name of a kernel", kernel.name, _NAMES)
    check_positive("gamma", kernel.gamma)
    check_natural("degree", kernel.degree)
    if not (is_number(kernel.coef0) and math.isfinite(kernel.coef0)):
        raise ValueError(f"coef0 must be a finite number, got {kernel.coef0!r}")
    if (kernel.function is not None) != (kernel.name == "callable"):
        raise ValueError(f"the kernel {kernel.name!r} and its function do not go together")


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


_SCALED_BYTES = 1 << 26  # of rows that are scaled at a time, a copy
_TILE = 1024  # they are a whole number of tiles of so many rows


@dataclass(frozen=True, eq=False, repr=False)
class KernelModel(linear_model.SavedModel):
    """A ranking function ``score(x) = Σ_i coef_i k(x_i, x)``; higher is better.

    Parameters
    ----------
    rows : matrix of shape (n_support, n_features), DenseRows, CsrRows or None
        The support rows x_i, scaled as `scaling` says; None for the kernel ``"precomputed"``.
    coef : array of shape (n_support,)
        The coefficients β_i. There may be none: then every score is 0.
    kernel : Kernel
        The function k.
    support : array of shape (n_support,) or None
        The number of each support row in the training data, from 0.
    n_train : int or None
        Rows of the training data; needed for a precomputed kernel, whose rows to score have so
        many columns.
    feature_names : sequence of str or None
        Names of the features, in order.
    scaling : Scaling
        How raw rows are scaled before the kernel sees them. ``"query"`` needs ``qid`` for that.
    training : mapping of str to str, int, float, bool or None
        Summary of the training run: ``C``, ``loss``, ``objective``, ``gap`` and so on.
    linrank_version : str
        The version of linrank that trained the model.

    Examples
    --------
    >>> from linrank import KernelModel
    >>> from linrank.kernels.functions import Kernel
    >>> model = KernelModel([[0.0], [1.0]], [-1.0, 2.0], Kernel("rbf", gamma=0.5))
    >>> model.predict([[0.0], [1.0]]).round(3)
    array([0.213, 1.393])
    """

    rows: Rows | None
    coef: NDArray[np.float64]
    kernel: Kernel
    support: NDArray[np.int64] | None = None
    n_train: int | None = None
    feature_names: Sequence[str] | None = None
    scaling: Scaling = field(default_factory=Scaling)
    training: Mapping[str, Scalar] = field(default_factory=dict)
    linrank_version: str = __version__
    kind = "kernel"
    shown = ("C", "loss", "pairs", "approximation", "n_pairs", "n_preferences")

    def __post_init__(self) -> None:
        check_kernel(self.kernel)
        self._keep(coef=vector("coef", self.coef))
        n_support = self.coef.size
        if self.n_train is not None:
            check_natural("n_train", self.n_train)
            self._keep(n_train=int(self.n_train))
        if self.support is not None:
            self._keep(support=row_numbers(self.support, n_support, self.n_train))
        self._keep(rows=self._check_rows())
        self._check_shared()

    def _check_rows(self) -> Rows | None:
        if self.kernel.name != "precomputed":
            return support_rows(self.rows, self.coef.size)
        if self.rows is not None:
            raise ValueError("a model with a precomputed kernel takes no rows")
        if self.support is None or self.n_train is None:
            raise ValueError("a model with a precomputed kernel needs support and n_train")
        if self.scaling.kind != "none":
            raise ValueError(
                f"a precomputed kernel cannot be scaled by scale={self.scaling.kind!r}; scale the "
                "rows that it is computed from"
            )
        return None

    @classmethod
    def of(
        cls, result: Outcome, data: Dataset, scaling: Scaling, kernel: Kernel, **settings: Scalar
    ) -> KernelModel:
        """The model of a training run: the rows whose coefficient is not 0, copied.

        Parameters
        ----------
        result : KernelResult or ApproximateResult
            What the training returned. One with ``rows`` says of itself what it is a sum of.
        data : Dataset
            What it was trained on: rows that are scaled already, or the square kernel matrix.
        scaling : Scaling
            How they were scaled.
        kernel : Kernel
            The kernel of the training.
        **settings
            What else to keep in ``training``.
        """
        training = _summary(result, data, settings)
        parts: dict[str, Any] = {"n_train": data.n_rows, "feature_names": data.feature_names}
        rows = getattr(result, "rows", None)
        if rows is not None:
            parts["support"] = getattr(result, "support", None)
            coef = result.coef  # type: ignore[attr-defined]
        else:
            beta = np.asarray(result.w, dtype=np.float64)
            parts["support"] = support = np.flatnonzero(beta)
            coef = beta[support]
            rows = None if kernel.name == "precomputed" else data.rows.take(support)
        return cls(rows, coef, kernel, scaling=scaling, training=training, **parts)

    @property
    def sizes(self) -> list[str]:
        """What the short form says of the model itself."""
        told = [self.kernel.name, *(f"{k}={v:g}" for k, v in self.kernel.parameters.items())]
        return [
            *told,
            f"{self.n_support} support rows",
            *super().sizes,
            f"scale={self.scaling.kind!r}",
        ]

    @property
    def n_support(self) -> int:
        """Number of support rows."""
        return int(self.coef.size)

    @property
    def n_features(self) -> int:
        """Number of features of a row; for a precomputed kernel, of training rows."""
        if self.rows is not None:
            return self.rows.shape[1]
        return int(self.n_train or 0)

    def predict(self, X: Any, *, qid: Any = None, n_jobs: int | None = None) -> NDArray[np.float64]:
        """Scores of rows, higher is better.

        Neither the kernel matrix nor a scaled copy of all rows is ever made, the copy but for the
        scaling by query, which needs the whole of each query.

        Parameters
        ----------
        X : Dataset or matrix of shape (n_rows, n_features)
            Raw rows: a dataset, NumPy or SciPy matrix, or data frame. For a precomputed kernel, the
            matrix ``K(rows, training rows)`` of shape (n_rows, n_train).
        qid : array of shape (n_rows,) or None
            Query of each row; needed (and looked at) only when the scaling is by query. A dataset
            brings its own.
        n_jobs : int or None
            Threads; None means all cores.
        """
        rows = linear_model.raw_rows(X, self.feature_names, n_jobs)
        self._check_width(rows.shape[1])
        return linear_model.check_scores(self._scores_of(rows, X, qid, n_jobs))

    def _scores_of(self, rows: Rows, X: Any, qid: Any, n_jobs: int | None) -> NDArray[np.float64]:
        """The scores of raw rows, those of X."""
        n_threads = resolve(n_jobs)
        if self.support is not None and self.kernel.name == "precomputed":
            beta = np.zeros(self.n_features)  # as many as the matrix has columns
            beta[self.support] = self.coef
            return rows.scores(beta, None, n_threads)
        if isinstance(rows, DeviceRows):
            is_there = self.kernel.core is not None and not self.scaling.needs_queries
            if is_there and self.rows is not None and self.coef.size:
                return score_rows(self.kernel, rows, self.rows, self.coef, self.scaling.factors)
            rows = rows.stored(slice(None), n_threads)  # what only the host can do
        if self.scaling.needs_queries:
            queries = linear_model.queries_of(X, rows.shape[0], qid)
            return self._scores(self.scaling.transform(rows, queries, n_jobs=n_jobs), n_threads)
        if self.scaling.factors is None:
            return self._scores(rows, n_threads)
        row_bytes = max(1, rows.values.nbytes // max(1, rows.shape[0]))
        step = max(1, _SCALED_BYTES // row_bytes // _TILE) * _TILE
        return linear_model.score_blocks(
            rows, step, lambda block: self._scores(self.scaling.rows(block), n_threads)
        )

    def _check_width(self, n_columns: int) -> None:
        if n_columns == self.n_features:
            return
        if self.kernel.name == "precomputed":
            raise ValueError(
                f"the matrix has {n_columns} columns, the model was trained on {self.n_features} "
                "rows; a precomputed kernel needs K(rows, training rows), one column for each of "
                "these, support row or not"
            )
        raise self._size_error(n_columns)

    def _scores(self, rows: Rows, n_threads: int) -> NDArray[np.float64]:
        """The scores of scaled rows."""
        if self.rows is None or self.coef.size == 0:
            return np.zeros(rows.shape[0])
        return np.asarray(self.kernel.product(rows, self.rows, self.coef, n_threads))

    def explain(self, *_: Any, **__: Any) -> NoReturn:
        """Refuse: a kernel model has no contributions of features."""
        raise TypeError(
            "the score of a kernel model is Σ_i coef_i k(x_i, x), no sum over features, so there "
            "is nothing to share out among them; explain a LinearModel (RankSVM), or compare "
            "predict() on rows with a feature changed"
        )

    @property
    def contents(self) -> dict[str, Any]:
        """The fields of the model file."""
        kernel, rows = self.kernel, self.rows
        if kernel.name == "callable":
            raise ValueError(
                "a model whose kernel is a Python function cannot be saved, since a model file "
                "holds no code; train with kernel='precomputed' on the matrix of that function"
            )
        contents = super().contents | {
            "kernel": kernel.name,
            **{name: getattr(kernel, name) for name in _PARAMETERS},
            **{name: getattr(self, name) for name in (*_SAVED, "n_support")},
        }
        if isinstance(rows, DenseRows):
            contents["rows"] = rows.values
        elif rows is not None:
            contents |= {name: getattr(rows, name) for name in _CSR}
        for name in ("support", "offsets"):
            contents[name] = _narrow(contents.get(name))
        return contents

    @classmethod
    def from_contents(cls, contents: Mapping[str, Any]) -> KernelModel:
        """The model of a file; raises ValueError or TypeError for what no model can be."""
        check_one_of("kernel", contents["kernel"], KERNELS)
        model = cls(
            rows=_rows_of(contents),
            kernel=Kernel(contents["kernel"], **{name: contents[name] for name in _PARAMETERS}),
            scaling=Scaling(contents["scaling"], contents["factors"]),
            **{name: contents[name] for name in _SAVED},
            **cls._shared_fields(contents),
        )
        if model.n_features != contents["n_features"]:
            raise ValueError(
                f"n_features is {contents['n_features']}, but a precomputed kernel of "
                f"{contents['n_train']} training rows has as many columns"
            )
        return model


# What a file has under the names that the kernel, the model and sparse rows give it.
_PARAMETERS = ("gamma", "degree", "coef0")
_SAVED = ("coef", "support", "n_train")
_CSR = ("values", "columns", "offsets")


def _rows_of(contents: Mapping[str, Any]) -> Rows | None:
    """The support rows of a file; the model checks what is in them."""
    given = tuple(name for name in ("rows", *_CSR) if contents[name] is not None)
    if given not in ((), ("rows",), _CSR):
        raise ValueError(f"has {', '.join(given)}; support rows are 'rows', or all of {_CSR}")
    if given != _CSR:
        return DenseRows(contents["rows"]) if given else None
    values, columns, offsets = (contents[name] for name in _CSR)
    if len(values) != len(columns):
        raise ValueError(f"'values' has {len(values)} entries, 'columns' {len(columns)}")
    return CsrRows(values, columns, offsets.astype(np.int64, copy=False), contents["n_features"])


def _narrow(numbers: NDArray[Any] | None) -> NDArray[Any] | None:
    """Row numbers or offsets, in 32 bits where that is enough."""
    if numbers is None or (numbers.size > 0 and int(numbers.max()) > np.iinfo(np.int32).max):
        return numbers
    return numbers.astype(np.int32)


def _summary(result: Outcome, data: Dataset, settings: Mapping[str, Scalar]) -> dict[str, Scalar]:
    training = linear_model.summary_of(result, data, settings)
    if "n_pairs" in settings:  # numbers of pairs that were found, no longer those asked for
        return training
    sizes: dict[str, Any] = linear_model.sizes_of_pairs(data.queries, training)
    sizes["n_pairs"] += training.get("n_preferences", 0)
    sizes["n_pairs"] = training.get("n_pairs", sizes["n_pairs"])  # a run may have counted
    return training | sizes
