"""check: whether data are such as a model was trained on, before it scores them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, Literal

import numpy as np

from linrank import _core
from linrank.data.dataset import Dataset
from linrank.data.frames import column_names, feature_name
from linrank.data.rows import CsrRows, DenseRows, Rows, Scan, as_rows, check_values, resized
from linrank.errors import check_positive
from linrank.models.additive import AdditiveModel
from linrank.models.linear import LinearModel
from linrank.system.resources import resolve

Array = Any


def column_tallies(
    rows: Rows, floor: Array, ceiling: Array, n_jobs: int | None = None
) -> dict[str, Array]:
    """Missing values, mean, range, and what lies outside of a given range, of every column.

    ``n_missing`` and ``n_outside`` count values that are NaN, and values below ``floor`` or above
    ``ceiling``; ``mean``, ``low`` and ``high`` are of the values that are there, 0 where there is
    none; ``excess`` is how far outside the ``worst`` value lies, which is in row ``worst_row``;
    ``first_missing`` is the first row without a value, or -1. What CSR leaves out is 0.

    Examples
    --------
    >>> from linrank.data.rows import DenseRows
    >>> rows = DenseRows(np.array([[1.0, np.nan], [9.0, 2.0]]))
    >>> found = column_tallies(rows, np.zeros(2), np.full(2, 5.0))
    >>> found["n_missing"].tolist(), found["n_outside"].tolist(), found["worst"].tolist()[0]
    ([0, 1], [1, 0], 9.0)
    """
    n_threads = resolve(n_jobs)
    scan = Scan.of(rows, None, n_threads)
    known, is_there = scan.statistics, scan.n_missing < rows.shape[0]
    ends = {"low": np.where(is_there, known.low, 0.0), "high": np.where(is_there, known.high, 0.0)}
    strays = _core.find_strays(rows.core, floor, ceiling, n_threads)
    return {"n_missing": scan.n_missing, "mean": known.mean, **ends, **strays}


Severity = Literal["error", "warning", "note"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")


@dataclass(frozen=True)
class CheckFinding:
    """One way in which data differ from what a model was trained on.

    Attributes
    ----------
    code : str
        What it is: ``missing-feature``, ``unknown-features``, ``missing-values``,
        ``outside-range``, ``constant``, ``drift``, ``index-base``, ``no-signal``,
        ``no-statistics``.
    severity : {"error", "warning", "note"}
        ``error``: the model cannot score these data, or scores them wrongly.
    message : str
        The same in words.
    feature : str or None
        Its name, or its number as in the training file.
    values : mapping of str to numbers
        The numbers of the message.
    """

    code: str
    severity: Severity
    message: str
    feature: str | None = None
    values: Mapping[str, Any] = field(default_factory=dict)


class Findings(tuple[CheckFinding, ...]):
    """What `check` found, errors first, then by the importance of the feature."""

    __slots__ = ()

    def of(self, severity: Severity) -> list[CheckFinding]:
        """Those of one severity."""
        return [item for item in self if item.severity == severity]

    @property
    def ok(self) -> bool:
        """Whether there is no error among them."""
        return not self.of("error")

    def __str__(self) -> str:
        return "\n".join(f"{item.severity}: [{item.code}] {item.message}" for item in self)


FEW_ROWS = 0.01  # share of rows outside of the range of training that is no more than a note
MOST = 0.5  # share of the importance that the data cannot lack
DRIFT = 0.5  # deviations between the means of training and of these rows
NEGLIGIBLE = 1e-6  # share of what the largest feature moves a score by that nobody will see
ROUNDING = float(np.finfo(np.float32).eps)  # of values that were read in another precision


def check(
    data: Any,
    model: LinearModel | AdditiveModel,
    *,
    drift: float = DRIFT,
    outside: float = FEW_ROWS,
) -> Findings:
    """Compare data with what a model knows of its training data.

    Columns are matched by name where both have names, else by place. Only features that the model
    uses are looked at.

    Parameters
    ----------
    data : Dataset or matrix of shape (n_rows, n_columns)
        What is to be scored: a data set, NumPy or SciPy matrix, or data frame. NaN is a missing
        value.
    model : LinearModel or AdditiveModel
        The model that is to score it. Ranges and means are those of its training rows; a model
        that does not know them (of an older file, of a stream, of more than 20,000 features) is
        compared by its features only.
    drift : float, default=0.5
        A mean that has moved by more than so many deviations is a warning.
    outside : float, default=0.01
        Values outside of the range of training are a warning in more than this share of the rows,
        or where one lies farther out than that range is wide, else a note.

    Returns
    -------
    Findings
        Empty where nothing stands out; ``findings.ok`` where there is no error.

    Examples
    --------
    >>> from linrank import Dataset, LinearModel
    >>> model = LinearModel([0.5, -1.0], feature_names=["bm25", "age"])
    >>> data = Dataset.of([[1.0], [2.0]], [0, 1], feature_names=["bm25"])
    >>> [(item.code, item.feature) for item in check(data, model).of("error")]
    [('missing-feature', 'age'), ('no-signal', None)]
    """
    if not isinstance(model, (LinearModel, AdditiveModel)):
        raise TypeError(
            f"check compares data with a linear model or one of curves, got "
            f"{type(model).__name__}; a kernel sees distances between rows"
        )
    rows, names, base = _parts(data)
    check_positive("drift", drift)
    check_positive("outside", outside)
    return _ColumnChecks(model, rows, names, base, drift, outside).findings()


def _parts(data: Any) -> tuple[Rows, Sequence[str] | None, int | None]:
    """Rows, names of columns, and the number of the first column in the file."""
    if not isinstance(data, Dataset):
        return as_rows(data, check="missing"), column_names(data), None
    rows = data.rows
    if not isinstance(rows, (DenseRows, CsrRows)):
        raise TypeError(f"check reads rows in memory or of a store, got {rows!r}")
    check_values(rows, data.feature_names, missing=True)
    if data.filling is not None:  # the columns behind the features say where these were missing
        rows = resized(rows, data.filling.n_features)
    return rows, data.raw_feature_names, data.index_base


@dataclass(eq=False)
class _ColumnChecks:
    """A model beside the columns of some data."""

    model: Any
    rows: Rows
    names: Sequence[str] | None
    base: int | None
    drift: float
    outside: float

    def __post_init__(self) -> None:
        model, known = self.model, self.model.statistics
        if isinstance(model, LinearModel):
            is_used, self.weights = model.missing.uses(model.coef), ("the weight", model.coef)
            # |coef_j|·std_j, or |coef_j| where the deviations are not known.
            self.sizes = abs(model.coef) * (1.0 if known is None else np.sqrt(known.variance))
        else:
            is_used = model.is_used | (model.interactions is not None)
            # From the lowest point of each curve to the highest.
            self.sizes = np.array([np.ptp(model.curve(j)[1]) for j in range(model.n_features)])
            self.weights = ("a curve that spans", self.sizes)
        self.used = np.flatnonzero(is_used)
        self.column = np.where(self.used < self.rows.shape[1], self.used, -1)
        self.by_name = self.names is not None and model.feature_names is not None
        if self.by_name:
            place = {name: j for j, name in enumerate(self.names or ())}
            columns = [place.get(model.feature_names[j], -1) for j in self.used.tolist()]
            self.column = np.array(columns, dtype=np.int64)

    def findings(self) -> Findings:
        found = [*self._columns(), *self._values()]
        found += self._no_signal(found)
        if self.model.statistics is None:
            told = (
                "the model does not know the ranges of its training rows: values are not compared; "
                "train it again with this version for that"
            )
            found.append(CheckFinding("no-statistics", "note", told))
        order = {severity: k for k, severity in enumerate(SEVERITIES)}
        return Findings(sorted(found, key=lambda item: order[item.severity]))

    def _of(
        self, j: int, code: str, severity: Severity, message: str, **values: Any
    ) -> CheckFinding:
        """A finding on one feature, whose name begins the message."""
        name = self._name(j)
        return CheckFinding(code, severity, f"feature {name} {message}", name, values)

    def _name(self, j: int) -> str:
        base = self.model.training.get("index_base")
        return feature_name(self.model.feature_names, j, base, alone=False)

    def _columns(self) -> Iterator[CheckFinding]:
        """Columns that count from another number, that the data lack, or that the model does."""
        model, trained = self.model, self.model.training.get("index_base")
        is_moved = None not in (self.base, trained) and trained != self.base
        if is_moved and not self.by_name:
            told = (
                f"the first feature of these data has number {self.base}, that of the training "
                f"data {trained}: every feature meets the weight of its neighbor; read them with "
                f"zero_based={trained == 0} (--index-base {trained})"
            )
            values = {"data": self.base, "model": trained}
            yield CheckFinding("index-base", "error", told, values=values)
        what, weights = self.weights
        # A text that leaves a feature out in every row has as many columns as it needs.
        severity: Severity = "error" if self.by_name or self.base is None else "warning"
        counts = "is not among the columns" if self.by_name else "is in no row"
        end = "" if severity == "error" else "; it counts as 0"
        for j in self._by_importance(self.used[self.column < 0]):
            told = f"{counts}, and has {what} {weights[j]:.6g}{end}"
            yield self._of(j, "missing-feature", severity, told, weight=float(weights[j]))
        first = self.base or 0
        unknown = [str(j + first) for j in range(model.n_features, self.rows.shape[1])]
        if self.by_name:
            known = set(model.feature_names)
            unknown = [name for name in self.names or () if name not in known]
        if unknown:
            shown = ", ".join(unknown[:5])
            more = f" and {len(unknown) - 5:,} more" if len(unknown) > 5 else ""
            told = f"the model has not seen {shown}{more}; such features count nothing"
            values = {"features": unknown}
            yield CheckFinding("unknown-features", "warning", told, values=values)

    def _no_signal(self, found: list[CheckFinding]) -> Iterator[CheckFinding]:
        """Where most of what the model ranks by is not there, or the same in all rows."""
        dead = {item.feature for item in found if _is_dead(item)}
        is_dead = np.array([self._name(j) in dead for j in self.used.tolist()], dtype=bool)
        sizes = self.sizes[self.used]
        share = float(sizes[is_dead].sum() / (sizes.sum() or 1.0))
        if share > MOST:
            told = f"features that these data lack, or hold one value of, have {100 * share:.3g} % "
            told += "of the importance of all: are these the data of another model?"
            yield CheckFinding("no-signal", "error", told, values={"share": share})

    def _by_importance(self, features: Any) -> list[int]:
        return list(map(int, features[np.argsort(-self.sizes[features], kind="stable")]))

    def _score_change(self, j: int, end: float, worst: float) -> float:
        """By how much a value changes a score that lies beyond an end of the range of training."""
        if isinstance(self.model, LinearModel):
            return abs(float(self.model.coef[j])) * abs(worst - end)
        if self.model.interactions is not None:
            return float("inf")  # what they do beyond the range is not looked at
        _, heights = self.model.curves.polyline(j, *sorted((end, worst)))
        return float(np.ptp(heights))

    def _values(self) -> Iterator[CheckFinding]:
        """What the columns hold, in order of importance."""
        present = self.column >= 0
        features, columns = self.used[present], self.column[present]
        if not len(features):
            return
        n_columns, known = self.rows.shape[1], self.model.statistics
        floor, ceiling = np.full(n_columns, -np.inf), np.full(n_columns, np.inf)
        if known is not None:
            # The same value is not beyond, be it that training read it in float32 or these data.
            low, high = known.low[features], known.high[features]
            with np.errstate(over="ignore"):
                floor[columns] = low - ROUNDING * abs(low)
                ceiling[columns] = high + ROUNDING * abs(high)
        tallies = column_tallies(self.rows, floor, ceiling)
        place = dict(zip(features.tolist(), columns.tolist(), strict=True))
        for j in self._by_importance(features):
            of_column = {name: values[place[j]].item() for name, values in tallies.items()}
            found = SimpleNamespace(n_rows=self.rows.shape[0], **of_column)
            if found.n_missing:
                yield self._missing_values(j, found)
            if known is not None:
                ends = float(known.low[j]), float(known.high[j])
                if found.n_outside:
                    yield from self._outside(j, found, *ends)
                if found.low == found.high:
                    yield from self._constant(j, found, *ends)
                elif known.variance[j] > 0.0:
                    yield from self._drift(j, found)

    def _fill(self, j: int) -> float:
        values = self.model.missing.values
        return 0.0 if values is None else float(values[j])

    def _missing_values(self, j: int, found: SimpleNamespace) -> CheckFinding:
        known, missing = self.model.statistics, self.model.missing
        share = _share(found.n_missing, found.n_rows)
        text = f"is missing in {share}, first in row {found.first_missing:,} (from 0)"
        severity: Severity = "warning"
        if not missing.is_filled:
            severity = "error"
            text += ", and the model refuses missing values; train with missing='mean' or fill them"
        elif missing.weights is not None and missing.weights[j] == 0.0:
            text += ", which never happened in training: it counts as 0"
        elif found.n_missing == found.n_rows and known is not None and known.low[j] < known.high[j]:
            text += ", and was not in training: is it computed?"
        else:
            severity = "note"
        values = {"rows": found.n_missing, "share": found.n_missing / found.n_rows}
        values["first_row"] = found.first_missing
        return self._of(j, "missing-values", severity, text, **values)

    def _outside(
        self, j: int, found: SimpleNamespace, low: float, high: float
    ) -> Iterator[CheckFinding]:
        worst, row, largest = found.worst, found.worst_row, self.sizes[self.used].max()
        if self._score_change(j, high if worst > high else low, worst) <= NEGLIGIBLE * largest:
            return  # a constant of training whose weight is rounding, or a curve that ends flat
        where = f" in row {row:,} (from 0)" if row >= 0 else ""
        is_many = found.n_outside > self.outside * found.n_rows or found.excess > high - low
        ends = {"low": low, "high": high, "worst": worst, "worst_row": row if row >= 0 else None}
        values = {"rows": found.n_outside, "share": found.n_outside / found.n_rows, **ends}
        told = (
            f"lies outside of its training range, {low:.6g} to {high:.6g}, in "
            f"{_share(found.n_outside, found.n_rows)}; the worst value is {worst:.6g}{where}"
        )
        yield self._of(j, "outside-range", "warning" if is_many else "note", told, **values)

    def _constant(
        self, j: int, found: SimpleNamespace, low: float, high: float
    ) -> Iterator[CheckFinding]:
        missing, value = self.model.missing, found.low
        if found.n_rows < 2 or found.n_missing == found.n_rows or not low < high:
            return
        counts = missing.weights is None or missing.weights[j] == 0.0  # the same if it is missing
        if found.n_missing and missing.is_filled and not (counts and self._fill(j) == value):
            return  # what is missing differs from the rest
        ends = f"{low:.6g} to {high:.6g}"
        told = f"is {value:.6g} in all rows, and went from {ends} in training: is it computed?"
        yield self._of(j, "constant", "warning", told, value=value)

    def _drift(self, j: int, found: SimpleNamespace) -> Iterator[CheckFinding]:
        known, mean = self.model.statistics, found.mean
        if self.model.missing.is_filled:  # so were the training rows that the other mean is of
            mean += found.n_missing / found.n_rows * (self._fill(j) - mean)
        trained = float(known.mean[j])
        shift = float((mean - trained) / np.sqrt(known.variance[j]))
        if abs(shift) > self.drift:
            side = "above" if shift > 0 else "below"
            told = (
                f"has the mean {mean:.6g}, {abs(shift):.2g} deviations {side} that of training, "
                f"{trained:.6g}"
            )
            values = {"mean": mean, "trained": trained, "deviations": shift}
            yield self._of(j, "drift", "warning", told, **values)


def _is_dead(item: CheckFinding) -> bool:
    """Whether the feature tells nothing of these rows apart."""
    if item.code == "missing-values":
        return item.severity != "note" and item.values["share"] == 1.0
    return item.code in ("missing-feature", "constant")


def _share(n: int, total: int) -> str:
    return f"{n:,} of {total:,} rows ({100 * n / total:.3g} %)"
