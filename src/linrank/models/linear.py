"""LinearModel: what a fit leaves behind, able to score raw rows, explain them and be saved."""

from __future__ import annotations

import math
import operator
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from linrank import __version__, _core
from linrank.data.dataset import Dataset, check_no_query_ids
from linrank.data.frames import as_array, check_names, column_names
from linrank.data.missing import Filling, Missing, contributions, scores_with_missing
from linrank.data.queries import Queries
from linrank.data.rows import ColumnStatistics, CsrRows, DenseRows, Rows, as_rows, check_values
from linrank.data.scaling import Scaling
from linrank.models import file as model_file
from linrank.pairs import chosen_sizes
from linrank.system.resources import resolve

if TYPE_CHECKING:
    from typing_extensions import Self

    from linrank.export.artefact import Artefact
    from linrank.models.additive import AdditiveModel
    from linrank.models.kernel import KernelModel

    Model: TypeAlias = "LinearModel | AdditiveModel | KernelModel"

Scalar = str | int | float | bool | None


def vector(name: str, values: Any, size: int | None = None) -> NDArray[np.float64]:
    """A copy of finite numbers that cannot be changed."""
    vector = np.array(as_array(values, name), dtype=np.float64)
    if vector.ndim != 1 or size not in (None, vector.size):
        expected = "a vector" if size is None else f"the shape ({size},)"
        raise ValueError(f"{name} must have {expected}, got shape {vector.shape}")
    if not np.isfinite(vector).all():
        j = int(np.argmin(np.isfinite(vector)))
        raise ValueError(f"{name}[{j}] is {vector[j]}; it must be finite")
    vector.flags.writeable = False
    return vector


def _as_names(names: Any, n_features: int) -> list[str]:
    """Feature names as a list, one for each feature: a frame selects its columns by it."""
    checked = list(names)
    for name in checked:
        if not isinstance(name, str):
            raise TypeError(f"feature names must be strings, got {name!r}")
    check_names(checked)
    if len(checked) != n_features:
        raise ValueError(f"{len(checked)} feature names for {n_features} features")
    return checked


def _scalar(key: Any, value: Any) -> Scalar:
    """A plain Python value; None for a number that JSON cannot hold."""
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, int | str):
        return value
    raise TypeError(f"training[{key!r}] must be a number, a string or None, got {value!r}")


def raw_rows(
    X: Any, feature_names: Sequence[str] | None, n_jobs: int | None = None, check: str = "finite"
) -> Rows:
    """The rows of what a model is to score, whose names, if it has any, are those of the model."""
    if isinstance(X, Dataset):
        check_same_names(X.feature_names, feature_names)
        if check == "finite":  # it may have been read with missing="keep"
            check_values(X.rows, feature_names, n_jobs=n_jobs)
        return X.rows
    check_no_query_ids(X, feature_names or ())
    check_same_names(column_names(X), feature_names)
    return as_rows(X, n_jobs=n_jobs, check=check)


def check_same_names(names: Sequence[str] | None, expected: Sequence[str] | None) -> None:
    """Refuse columns in another order than those that a model was trained on."""
    if names is None or expected is None or list(names) == list(expected):
        return
    if len(names) != len(expected):
        is_wide = len(names) > len(expected)
        more, fewer = (names, set(expected)) if is_wide else (expected, set(names))
        odd = [name for name in more if name not in fewer]
        if odd:
            told = ", ".join(map(repr, odd[:5])) + (" and more" if len(odd) > 5 else "")
            raise ValueError(
                f"X has {len(names)} columns, the model {len(expected)} features; "
                f"{'it was not trained on' if is_wide else 'X lacks'} {told}: "
                "select its features, X[model.feature_names]"
            )
    for j, (got, known) in enumerate(zip(names, expected, strict=False)):
        if got != known:
            raise ValueError(
                f"feature {j} is {got!r}, the model was trained with {known!r} there; "
                "select the columns in the order of model.feature_names"
            )


def has_non_finite(scores: NDArray[np.float64]) -> bool:
    """Whether any of the scores is NaN or infinite."""
    with np.errstate(over="ignore", invalid="ignore"):
        total = scores.sum()  # a finite sum has finite terms, and needs no array of answers
    return not (math.isfinite(total) or bool(np.isfinite(scores).all()))


def check_scores(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """The scores of finite rows; those that are none, which nothing can be ranked by, are refused.

    Finite values and coefficients may have products, or sums of them, beyond float64.
    """
    if has_non_finite(scores):
        is_bad = ~np.isfinite(scores)
        row = int(np.argmax(is_bad))
        raise ValueError(
            f"the score of row {row} is {scores[row]} ({int(is_bad.sum())} such rows): its values "
            "times the coefficients are beyond the largest float64, 1.8e308; divide such features "
            "by their size before training and scoring, or drop these rows"
        )
    return scores


def queries_of(X: Any, n_rows: int, qid: Any) -> Queries:
    """How rows are grouped, for a model that scales within queries."""
    if isinstance(X, Dataset):
        return X.queries
    if qid is None:
        raise ValueError(
            "this model scales every feature within its query (scale='query'), so scoring "
            "needs qid: one query id per row"
        )
    return Queries.of(np.zeros(n_rows), qid=qid)


def summary_of(result: Outcome, data: Dataset, settings: Mapping[str, Scalar]) -> dict[str, Scalar]:
    """Settings and outcome of a training run, and the size of its data."""
    sizes = {"n_rows": data.n_rows, "n_queries": data.queries.n_queries}
    return {**settings, **result.summary, **sizes}


def sizes_of_pairs(queries: Queries, training: Mapping[str, Scalar]) -> dict[str, Scalar]:
    """How many pairs were compared, of each kind where there are kinds; None for other kinds."""
    asked: Any = {name: training.get(name, "auto") for name in ("n_closest", "n_random")}
    none: dict[str, Scalar] = {name: None for name in asked if name in training}
    return none | chosen_sizes(queries, str(training.get("pairs", "all")), **asked)


MAX_FEATURES = 20_000  # beyond, statistics would make up most of the model


def fingerprint(data: Dataset) -> str:
    """A checksum of rows, labels, weights and grouping: the same for the same data in any format.

    Ids and names are no part of it. It tells data apart by accident, not by intent: CRC-32C.

    Examples
    --------
    >>> from linrank.data.dataset import Dataset
    >>> fingerprint(Dataset.of([[1.0], [2.0]], [0, 1], qid=["a", "a"]))
    'crc32c:467e1d01'
    """
    check, queries = data.rows.scan(data.weight).checksum, data.queries
    assert check is not None  # as that of rows on a device
    for array in (data.labels, data.weight, queries.offsets, queries.order):
        if array is not None:
            check = _core.crc32c(np.ascontiguousarray(array).view(np.uint8), check)
    return f"crc32c:{check:08x}"


_BLOCK_ROWS = 1 << 14  # of rows with missing values that are scored at a time


def score_blocks(
    rows: Rows, step: int, scores: Callable[[Any], NDArray[Any]]
) -> NDArray[np.float64]:
    """``scores`` of all rows, ``step`` of them at a time."""
    found = np.empty(rows.shape[0])
    for begin in range(0, rows.shape[0], step):
        block = slice(begin, begin + step)
        found[block] = scores(rows.take(block))
    return found


class Outcome(Protocol):
    """What a training run hands over."""

    @property
    def w(self) -> NDArray[Any]:
        """The weights, in the scaled space."""

    @property
    def summary(self) -> Mapping[str, Scalar]:
        """What there is to say of the run."""


class SavedModel(ABC):
    """What all models share: names and a history that are checked, a size, a file."""

    kind: ClassVar[str]  # of the file
    shown: ClassVar[tuple[str, ...]]  # what the short form says of the training, where it applies
    feature_names: Sequence[str] | None
    scaling: Scaling
    training: Mapping[str, Scalar]
    linrank_version: str

    @property
    @abstractmethod
    def n_features(self) -> int:
        """Number of features of a row."""

    @property
    def sizes(self) -> list[str]:
        """What the short form says of the model itself."""
        return [f"{self.n_features} features"]

    @property
    def contents(self) -> dict[str, Any]:
        """The fields of the model file."""
        return {
            "linrank": self.linrank_version,
            "n_features": self.n_features,
            "scaling": self.scaling.kind,
            "factors": self.scaling.factors,
            "training": self.training,
            "feature_names": self.feature_names,
        }

    @classmethod
    def _shared_fields(cls, contents: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments of the constructor that are the same for all kinds of files."""
        known = {"linrank_version": contents["linrank"]}
        return known | {name: contents[name] for name in ("feature_names", "training")}

    def __repr__(self) -> str:
        """Size and training in a line."""
        history = [f"{key}={self.training[key]!r}" for key in self.shown if key in self.training]
        return f"<{type(self).__name__} {', '.join([*self.sizes, *history])}>"

    def _keep(self, **values: Any) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def _check_shared(self) -> None:
        """Keep names and training as plain values, and check that sizes agree."""
        if self.feature_names is not None:
            self._keep(feature_names=_as_names(self.feature_names, self.n_features))
        training = {str(key): _scalar(key, value) for key, value in self.training.items()}
        self._keep(training=training)
        factors = self.scaling.factors
        if factors is not None and factors.shape != (self.n_features,):
            raise ValueError(f"{factors.size} scaling factors for {self.n_features} features")

    def _size_error(self, n_features: int) -> ValueError:
        return ValueError(
            f"the rows have {n_features} features, the model {self.n_features}; when reading a "
            f"file, pass n_features={self.n_features}"
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model as JSON, to be read by :func:`load_model`.

        The file is written whole or not at all. Of mostly zeros only the others are written.
        Arrays of additive and kernel models, and those of more than a million numbers, are in
        base64. A model with a callable as kernel cannot be saved: a file holds no code.
        """
        model_file.write(self.kind, self.contents, path)

    def to_json(self) -> bytes:
        """The bytes of the file that `save` would write."""
        return model_file.encode(self.kind, self.contents)

    def export(
        self,
        target: str,
        *,
        name: str = "linrank",
        feature_map: Mapping[Any, Any] | str | os.PathLike[str] | None = None,
        **options: Any,
    ) -> Artefact:
        """The model as a search engine, a database or another program takes it.

        Parameters
        ----------
        target : str
            One of ``linrank.export.TARGETS``.
        name : str
            What the model is to be called there.
        feature_map : mapping, path or None
            Names of features in the engine by names in the model, or by numbers as in the training
            file; or a file of them, a JSON object or lines of two columns.
        **options
            Options that the target has of its own.

        Returns
        -------
        Artefact
            The files, with a text on where to put them and the request that uses them. It orders
            rows as the model does; where it cannot, an :class:`linrank.ExportWarning` says why.
        """
        from linrank.export.targets import export

        return export(self, target, name=name, feature_map=feature_map, **options)


class FeatureModel(SavedModel):
    """What linear and additive models share: rows of raw features come in, engines get them."""

    missing: Missing
    statistics: ColumnStatistics | None

    @property
    @abstractmethod
    def is_used(self) -> NDArray[np.bool_]:
        """Whether each feature has a part in any score."""

    @property
    @abstractmethod
    def n_nonzero(self) -> int:
        """Number of features that have a part in any score but for interactions."""

    @property
    def density(self) -> float:
        """Share of the features that have a part in any score but for interactions."""
        return self.n_nonzero / self.n_features

    @property
    def contents(self) -> dict[str, Any]:
        """The fields of the model file."""
        shared, known = super().contents | self.missing.contents, self.statistics
        if known is None:
            return shared
        found = {f"statistics.{f.name}": getattr(known, f.name) for f in fields(known)}
        return shared | found | {"statistics.n_nonzero": known.n_nonzero.astype(np.float64)}

    @classmethod
    def _shared_fields(cls, contents: Mapping[str, Any]) -> dict[str, Any]:
        known = {"missing": Missing.of_contents(contents), "statistics": _statistics_of(contents)}
        return super()._shared_fields(contents) | known

    def with_statistics(self, statistics: ColumnStatistics | None) -> Self:
        """The model with statistics of its training rows, which may be elsewhere.

        They are 0 for features that the model does not use: one of few weights stays a small file.
        """
        if statistics is not None:
            known = statistics.of_first(self.n_features)
            is_kept = known.n_columns <= MAX_FEATURES and known.weight > 0.0
            is_kept = is_kept and bool(np.isfinite(known.variance).all())
            statistics = known.mask(self.is_used) if is_kept else None
        return replace(self, statistics=statistics)  # type: ignore[type-var]

    def with_training_data(self, data: Dataset) -> Self:
        """The model with the statistics and the fingerprint of its training data."""
        rows = data.rows
        if rows.device is not None:  # whose values nobody has read one after the other
            return self.with_statistics(rows.scan(data.weight).statistics)
        if not isinstance(rows, (DenseRows, CsrRows)) or len(rows.values) == 0:
            return self  # computed by blocks, or the outline of a store
        training = {**self.training, "fingerprint": fingerprint(data)}
        model = self.with_statistics(rows.scan(data.weight).statistics)
        return replace(model, training=training)  # type: ignore[type-var]

    def _check_shared(self) -> None:
        super()._check_shared()
        self.missing.check_size(self.n_features)
        if self.statistics is not None and self.statistics.n_columns != self.n_features:
            raise ValueError(
                f"statistics of {self.statistics.n_columns} columns for {self.n_features} features"
            )

    def _own_filling(self, data: Dataset) -> Filling | None:
        """How a data set was filled in, if that is how the model does it."""
        filling, own = data.filling, self.missing
        if filling is None:
            return None
        if filling.n_features != self.n_features:
            raise self._size_error(filling.n_features)
        values = filling.values is own.values or (
            filling.values is not None
            and own.values is not None
            and np.array_equal(filling.values, own.values)
        )
        if filling.kind != own.kind or not values:
            raise ValueError(
                f"the missing values of {data.source} were filled in by missing={filling.kind!r} "
                f"from that data, the model was trained with missing={own.kind!r} on other data; "
                "load it with missing='keep', and the model fills them in (of a store: load what "
                "it was made of)"
            )
        return filling

    def _raw_rows(self, X: Any) -> Rows:
        rows = raw_rows(X, self.feature_names, check="later")
        if rows.shape[1] != self.n_features:
            raise self._size_error(rows.shape[1])
        return rows

    def explain(self, X: Any, *, qid: Any = None, pair: tuple[int, int] | None = None) -> Any:
        """What every feature contributes to a score, or to the difference of two.

        Parameters
        ----------
        X : Dataset or matrix of shape (n_rows, n_features)
            Raw rows.
        qid : array of shape (n_rows,) or None
            Query of each row, when the scaling is by query.
        pair : (int, int) or None
            Two rows of `X` to compare.

        Returns
        -------
        ndarray or scipy.sparse.csr_array
            Without `pair`, the ``x_ij·coef_j`` or ``f_j(x_ij)`` of all rows, which sum to the
            scores along each row; interactions, if there are any, are one more column. With
            ``pair=(i, j)``, those of row i less those of row j, which sum to
            ``score(i) - score(j)``. A missing value contributes what `missing` says.
        """
        rows = self._explained_rows(X, qid)
        if pair is None:
            return self._terms(rows)
        i, j = (rows.take(slice(k, k + 1)) for k in _as_pair(pair, rows.shape[0]))
        difference = self._terms(i) - self._terms(j)
        return (difference if isinstance(difference, np.ndarray) else difference.toarray())[0]

    @abstractmethod
    def _terms(self, rows: Rows) -> Any:
        """What each feature, and interactions, add to each score: a row for each row."""

    def _explained_rows(self, X: Any, qid: Any) -> Rows:
        if isinstance(X, Dataset) and X.filling is not None:
            raise ValueError(
                f"the missing values of {X.source} have been filled in; load it with "
                "missing='keep' to have them explained too"
            )
        rows = self._raw_rows(X)
        self._check_values(rows, None)
        return rows

    def _check_values(self, rows: Rows, n_jobs: int | None) -> None:
        missing = self.missing.is_filled
        check_values(rows, self.feature_names, missing=missing, n_jobs=n_jobs)


@dataclass(frozen=True, eq=False, repr=False)
class LinearModel(FeatureModel):
    """A linear ranking function, ``score(x) = x·coef``; higher is better.

    Parameters
    ----------
    coef : array of shape (n_features,)
        Coefficients of the raw features: a scaling by columns is folded in.
    feature_names : list of str or None
        Names of the features, in order: ``frame[model.feature_names]`` are its columns.
    scaling : Scaling
        How the features were scaled. With ``scaling.kind == "query"``, `coef` applies to rows
        divided by the range of each feature within their query, so scoring needs ``qid``.
    training : mapping of str to str, int, float, bool or None
        Summary of the training run: ``C``, ``solver``, ``objective``, ``gap`` and so on.
    linrank_version : str
        The version of linrank that trained the model.
    missing : Missing
        What the model does with missing values. A value x_j that is there adds ``coef_j x_j`` to
        the score, a missing one ``missing.contributions(coef)[j]``.
    statistics : ColumnStatistics or None
        Mean, variance and range of the raw training features that the model uses, 0 for others;
        None where they are not known, or too many to keep (more than 20,000 features).

    Examples
    --------
    >>> from linrank import LinearModel
    >>> model = LinearModel([0.5, -1.0], feature_names=["bm25", "age"])
    >>> model.predict([[2.0, 1.0], [4.0, 0.0]])
    array([0., 2.])
    """

    coef: NDArray[np.float64]
    feature_names: Sequence[str] | None = None
    scaling: Scaling = field(default_factory=Scaling)
    training: Mapping[str, Scalar] = field(default_factory=dict)
    linrank_version: str = __version__
    missing: Missing = field(default_factory=Missing)
    statistics: ColumnStatistics | None = None
    kind = "linear"
    shown = (
        *("method", "n_components", "constraint", "gamma", "lam", "C", "solver", "algorithm"),
        *("penalty", "alpha", "n_steps", "n_pairs", "n_preferences"),
    )

    def __post_init__(self) -> None:
        self._keep(coef=vector("coef", self.coef))
        if self.coef.size == 0:
            raise ValueError("coef must be a non-empty vector, got shape (0,)")
        self._check_shared()
        if self.missing.weights is not None:
            self.scaling.check_indicators()

    @property
    def importances(self) -> NDArray[np.float64] | None:
        """``|coef_j|·std_j``: by how much a feature usually moves a score, in the training rows.

        None where the deviations are not known, or not those of what the weights apply to.
        """
        if self.statistics is None or self.scaling.needs_queries:
            return None
        found: NDArray[np.float64] = np.abs(self.coef) * np.sqrt(self.statistics.variance)
        return found

    @classmethod
    def of(
        cls, result: Outcome, data: Dataset, scaling: Scaling, **settings: Scalar
    ) -> LinearModel:
        """The model of a training run: ``coef = d ∘ w`` and what there is to say about the run."""
        training = summary_of(result, data, settings)
        if "n_pairs" not in training:
            training |= sizes_of_pairs(data.queries, training)
        return cls.of_columns(result, data, scaling, training).with_training_data(data)

    @classmethod
    def of_columns(
        cls,
        result: Outcome,
        columns: Dataset | None,
        scaling: Scaling,
        training: Mapping[str, Scalar],
    ) -> LinearModel:
        """The model of a run whose rows may be elsewhere: of ``columns`` only their names count,
        and how missing values were filled in; None where the model is to know neither."""
        filling = None if columns is None else columns.filling
        names = None if columns is None else columns.raw_feature_names
        coef, missing = Missing.split(scaling.fold(result.w), filling)
        return cls(coef, names, scaling.of_first(coef.size), training, missing=missing)

    @property
    def n_features(self) -> int:
        """Number of features of a row."""
        return int(self.coef.size)

    @property
    def is_used(self) -> NDArray[np.bool_]:
        """Whether each feature has a weight, or one where it is missing."""
        return self.missing.uses(self.coef)

    @property
    def n_nonzero(self) -> int:
        """Number of features whose coefficient is not 0."""
        return int(np.count_nonzero(self.coef))

    @property
    def sizes(self) -> list[str]:
        """What the short form says of the model itself."""
        found = super().sizes
        if self.n_nonzero < self.n_features:
            found.append(f"{self.n_nonzero} with a weight")
        return [*found, f"scale={self.scaling.kind!r}"]

    @property
    def contents(self) -> dict[str, Any]:
        """The fields of the model file."""
        return super().contents | {"coef": self.coef}

    @classmethod
    def from_contents(cls, contents: Mapping[str, Any]) -> LinearModel:
        """The model of a file; raises ValueError or TypeError for what no model can be."""
        scaling = Scaling(contents["scaling"], contents["factors"])
        return cls(contents["coef"], scaling=scaling, **cls._shared_fields(contents))

    def predict(self, X: Any, *, qid: Any = None, n_jobs: int | None = None) -> NDArray[np.float64]:
        """Scores of rows, higher is better.

        Parameters
        ----------
        X : Dataset or matrix of shape (n_rows, n_features)
            Raw rows: a dataset, NumPy or SciPy matrix, or data frame. NaN and null are missing
            values, which `missing` allows or refuses. Of a matrix on a CUDA device the scores are
            there too, as a CuPy array; rows are scored there that need neither their query nor
            values filled in.
        qid : array of shape (n_rows,) or None
            Query of each row; needed (and looked at) only when the scaling is by query. A dataset
            brings its own.
        n_jobs : int or None
            Threads; None means all cores.
        """
        if isinstance(X, Dataset) and X.filling is not None:
            return self._scores_of_filled(X, n_jobs)
        # The rows are read once. A value that is not finite makes a score that is not: only then
        # is it looked for. What CSR leaves out is 0.
        rows = self._raw_rows(X)
        if rows.device is not None:
            return self._scores_on_device(rows)
        if self.scaling.needs_queries:
            rows = self._scaled_rows(rows, X, qid, n_jobs)
        n_threads = resolve(n_jobs)
        scores: NDArray[np.float64] = _core.scores(rows.core, self.coef, None, n_threads)
        if has_non_finite(scores):
            self._check_values(rows, n_jobs)
            self._complete(scores, rows)
            check_scores(scores)
        return scores

    def _scores_on_device(self, rows: Any) -> Any:
        """Scores of rows on a device, where they stay."""
        if self.scaling.needs_queries or self.missing.is_filled:
            is_query = self.scaling.needs_queries
            asked = "scale='query'" if is_query else f"missing={self.missing.kind!r}"
            raise ValueError(
                f"rows {rows.describe()} cannot be scored by a model with {asked}; pass predict a "
                "copy on the host, cupy.asnumpy(X) or tensor.cpu()"
            )
        scores = rows.score(self.coef, None)
        if not rows.device.is_finite(scores):
            check_values(rows, self.feature_names)
            check_scores(rows.device.get(scores))
        return scores

    def _explained_rows(self, X: Any, qid: Any) -> Rows:
        rows = super()._explained_rows(X, qid)
        return self._scaled_rows(rows, X, qid, None) if self.scaling.needs_queries else rows

    def _terms(self, rows: Rows) -> Any:
        return contributions(rows, self.coef, self.missing).to_user()

    def _scores_of_filled(self, data: Dataset, n_jobs: int | None) -> NDArray[np.float64]:
        """Scores of rows that were filled in as those that the model was trained on."""
        check_same_names(data.raw_feature_names, self.feature_names)
        coef = self.missing.join(self.coef, self._own_filling(data))
        scaling = Scaling(self.scaling.kind) if self.scaling.needs_queries else Scaling()
        plain = replace(data, filling=None, feature_names=None)
        return LinearModel(coef, scaling=scaling).predict(plain, n_jobs=n_jobs)

    def _scaled_rows(self, rows: Rows, X: Any, qid: Any, n_jobs: int | None) -> Rows:
        """The rows divided by their ranges within queries, missing values filled in before."""
        self._check_values(rows, n_jobs)
        queries = queries_of(X, rows.shape[0], qid)
        return self.scaling.transform(self.missing.fill(rows), queries, n_jobs=n_jobs)

    def _complete(self, scores: NDArray[np.float64], rows: Rows) -> None:
        """Put in the scores of the rows that lack values, block by block."""
        lacking = np.flatnonzero(np.isnan(scores))
        added = self.missing.contributions(self.coef)
        for begin in range(0, lacking.size, _BLOCK_ROWS):
            index = lacking[begin : begin + _BLOCK_ROWS]
            scores[index] = scores_with_missing(rows.take(index), self.coef, added)


def load_model(path: str | os.PathLike[str]) -> Model:
    """Read a model saved by ``save`` of a linear, an additive or a kernel model.

    Parameters
    ----------
    path : str or path
        The JSON file.

    Returns
    -------
    LinearModel, AdditiveModel or KernelModel
        Equal to the saved one, bit for bit.

    Raises
    ------
    ModelFormatError
        When the file is damaged, not a linrank model, or of a newer version. Nothing in a model
        file is ever executed.
    """
    return model_file.read(path, _from_contents)


def _from_contents(contents: dict[str, Any]) -> Model:
    kind = contents["kind"]
    model = getattr(import_module(f"linrank.models.{kind}"), f"{kind.capitalize()}Model")
    found: Model = model.from_contents(contents)
    return found


def _statistics_of(contents: Mapping[str, Any]) -> ColumnStatistics | None:
    """The statistics of a file, if it has them."""
    found = {f.name: contents[f"statistics.{f.name}"] for f in fields(ColumnStatistics)}
    absent = [name for name, value in found.items() if value is None]
    if len(absent) == len(found):
        return None
    if absent:
        raise ValueError(f"'statistics.{absent[0]}' is null, but other statistics are given")
    for name, value in found.items():
        if not np.isfinite(value).all():
            raise ValueError(f"'statistics.{name}' holds a number that is not finite")
    counts, n_rows = found["n_nonzero"], found["n_rows"]
    if found["weight"] <= 0.0 or (found["variance"] < 0.0).any():
        raise ValueError("the statistics have a weight or a variance that no rows have")
    if (counts < 0.0).any() or (counts > n_rows).any() or (counts % 1.0).any():
        raise ValueError(f"'statistics.n_nonzero' counts no rows from 0 to {n_rows}")
    return ColumnStatistics(**{**found, "n_nonzero": counts.astype(np.int64)})


def _as_pair(pair: Any, n_rows: int) -> tuple[int, int]:
    try:
        i, j = map(operator.index, pair)
    except (TypeError, ValueError):
        raise TypeError(f"pair must be two row numbers (i, j), got {pair!r}") from None
    for index in (i, j):
        if not -n_rows <= index < n_rows:
            raise ValueError(f"pair names row {index}, but there are {n_rows} rows")
    return i % n_rows, j % n_rows
