"""check: whether data are such as a model was trained on, before it scores them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from linrank.check_findings import SEVERITIES, CheckFinding, Findings, Severity
from linrank.column_tallies import ColumnTallies
from linrank.data.dataset import Dataset
from linrank.data.frames import column_names
from linrank.data.rows import CsrRows, DenseRows, as_rows, check_values, resized
from linrank.model import LinearModel

if TYPE_CHECKING:
    from linrank.data.rows import Rows

__all__ = ["check"]

FEW_ROWS = 0.01  # share of rows outside of the range of training that is no more than a note
MOST = 0.5  # share of the importance that the data cannot lack
DRIFT = 0.5  # deviations between the means of training and of these rows
NEGLIGIBLE = 1e-6  # share of what the largest feature moves a score by that nobody will see
ROUNDING = float(np.finfo(np.float32).eps)  # of values that were read in another precision


def check(data: Any, model: LinearModel) -> Findings:
    """Compare data with what a model knows of its training data.

    Columns are matched by name where both have names, else by place. Only features that the model
    uses are looked at.

    Parameters
    ----------
    data : Dataset or matrix of shape (n_rows, n_columns)
        What is to be scored: a data set, NumPy or SciPy matrix, or data frame. NaN is a missing
        value.
    model : LinearModel
        The model that is to score it. Ranges and means are those of its training rows; a model
        that does not know them (of an older file, of a stream, of more than 20,000 features) is
        compared by its features only.

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
    if not isinstance(model, LinearModel):
        raise TypeError(
            f"check compares data with a linear model, got {type(model).__name__}; a kernel sees "
            "distances between rows, not single features"
        )
    rows, names, base = _parts(data)
    return _Comparison(model, rows, names, base).findings()


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


class _Comparison:
    """A model beside the columns of some data."""

    def __init__(
        self, model: LinearModel, rows: Rows, names: Sequence[str] | None, base: int | None
    ) -> None:
        self.model, self.rows, self.names, self.base = model, rows, names, base
        self.by_name = names is not None and model.feature_names is not None
        self.used = np.flatnonzero(model.missing.uses(model.coef))
        n_columns = rows.shape[1]
        if names is not None and model.feature_names is not None:
            place = {name: j for j, name in enumerate(names)}
            columns = [place.get(model.feature_names[j], -1) for j in self.used.tolist()]
            self.column = np.array(columns, dtype=np.int64)
        else:
            self.column = np.where(self.used < n_columns, self.used, -1)
        self._largest = float(self._sizes(self.used).max(initial=0.0))

    def findings(self) -> Findings:
        found = [*self._index_base(), *self._absent(), *self._unknown(), *self._values()]
        found += self._no_signal(found)
        if self.model.statistics is None:
            found.append(
                CheckFinding(
                    "no-statistics",
                    "note",
                    "the model does not know the ranges of its training rows: values are not "
                    "compared; train it again with this version for that",
                )
            )
        order = {severity: k for k, severity in enumerate(SEVERITIES)}
        return Findings(tuple(sorted(found, key=lambda item: order[item.severity])))

    def _name(self, j: int) -> str:
        names, base = self.model.feature_names, self.model.training.get("index_base")
        return names[j] if names else str(j + (base if isinstance(base, int) else 0))

    def _index_base(self) -> Iterator[CheckFinding]:
        trained = self.model.training.get("index_base")
        if self.by_name or self.base is None or trained is None or trained == self.base:
            return
        yield CheckFinding(
            "index-base",
            "error",
            f"the first feature of these data has number {self.base}, that of the training data "
            f"{trained}: every feature meets the weight of its neighbour; read them with "
            f"zero_based={trained == 0} (--index-base {trained})",
            values={"data": self.base, "model": trained},
        )

    def _absent(self) -> Iterator[CheckFinding]:
        """Features with a weight that the data lack."""
        absent = self.used[self.column < 0]
        for j in self._by_importance(absent):
            # A text that leaves a feature out in every row has as many columns as it needs.
            severity: Severity = "error" if self.by_name or self.base is None else "warning"
            counts = "is not among the columns" if self.by_name else "is in no row"
            yield CheckFinding(
                "missing-feature",
                severity,
                f"feature {self._name(j)} {counts}, and has the weight {self.model.coef[j]:.6g}"
                + ("" if severity == "error" else "; it counts as 0"),
                self._name(j),
                {"weight": float(self.model.coef[j])},
            )

    def _no_signal(self, found: list[CheckFinding]) -> Iterator[CheckFinding]:
        """Where most of what the model ranks by is not there, or the same in all rows."""
        dead = {item.feature for item in found if _is_dead(item)}
        is_dead = np.array([self._name(j) in dead for j in self.used.tolist()], dtype=bool)
        sizes = self._sizes(self.used)
        share = float(sizes[is_dead].sum() / (sizes.sum() or 1.0))
        if share > MOST:
            yield CheckFinding(
                "no-signal",
                "error",
                f"features that these data lack, or hold one value of, have {100 * share:.3g} % of "
                "the importance of all: are these the data of another model?",
                values={"share": share},
            )

    def _unknown(self) -> Iterator[CheckFinding]:
        n_known = self.model.n_features
        if self.names is not None and self.model.feature_names is not None:
            known = set(self.model.feature_names)
            unknown = [name for name in self.names if name not in known]
        else:
            unknown = [str(j + (self.base or 0)) for j in range(n_known, self.rows.shape[1])]
        if unknown:
            shown = ", ".join(unknown[:5])
            more = f" and {len(unknown) - 5:,} more" if len(unknown) > 5 else ""
            yield CheckFinding(
                "unknown-features",
                "warning",
                f"the model has not seen {shown}{more}; such features count nothing",
                values={"features": unknown},
            )

    def _by_importance(self, features: Any) -> list[int]:
        ordered: list[int] = features[np.argsort(-self._sizes(features), kind="stable")].tolist()
        return ordered

    def _sizes(self, features: Any) -> Any:
        """``|coef_j|·std_j``, or ``|coef_j|`` where the deviations are not known."""
        known, size = self.model.statistics, abs(self.model.coef[features])
        return size if known is None else size * np.sqrt(known.variance[features])

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
        tallies = ColumnTallies.of(self.rows, floor, ceiling)
        place = dict(zip(features.tolist(), columns.tolist(), strict=True))
        for j in self._by_importance(features):
            yield from self._missing_values(j, place[j], tallies)
            if known is not None:
                yield from self._outside(j, place[j], tallies)
                yield from self._constant(j, place[j], tallies)
                yield from self._drift(j, place[j], tallies)

    def _varied(self, j: int) -> bool:
        known = self.model.statistics
        return known is not None and bool(known.low[j] < known.high[j])

    def _fill(self, j: int) -> float:
        values = self.model.missing.values
        return 0.0 if values is None else float(values[j])

    def _fills_in(self, j: int, value: float) -> bool:
        """Whether a missing value counts the same as this one."""
        weights = self.model.missing.weights
        return self._fill(j) == value and (weights is None or weights[j] == 0.0)

    def _missing_values(self, j: int, c: int, tallies: ColumnTallies) -> Iterator[CheckFinding]:
        n_missing, row = int(tallies.n_missing[c]), int(tallies.first_missing[c])
        if n_missing == 0:
            return
        missing = self.model.missing
        text = f"feature {self._name(j)} is missing in {_share(n_missing, tallies.n_rows)}, "
        text += f"first in row {row:,} (from 0)"
        severity: Severity = "note"
        if not missing.is_filled:
            severity = "error"
            text += ", and the model refuses missing values; train with missing='mean' or fill them"
        elif missing.weights is not None and missing.weights[j] == 0.0:
            severity = "warning"
            text += ", which never happened in training: it counts as 0"
        elif n_missing == tallies.n_rows and self._varied(j):
            severity = "warning"
            text += ", and was not in training: is it computed?"
        values = {"rows": n_missing, "share": n_missing / tallies.n_rows, "first_row": row}
        yield CheckFinding("missing-values", severity, text, self._name(j), values)

    def _outside(self, j: int, c: int, tallies: ColumnTallies) -> Iterator[CheckFinding]:
        n_outside, known = int(tallies.n_outside[c]), self.model.statistics
        if n_outside == 0 or known is None:
            return
        if abs(self.model.coef[j]) * tallies.excess[c] <= NEGLIGIBLE * self._largest:
            return  # a constant of training whose weight is rounding
        low, high = float(known.low[j]), float(known.high[j])
        worst, row = float(tallies.worst[c]), int(tallies.worst_row[c])
        where = f" in row {row:,} (from 0)" if row >= 0 else ""
        is_many = n_outside > FEW_ROWS * tallies.n_rows or tallies.excess[c] > high - low
        yield CheckFinding(
            "outside-range",
            "warning" if is_many else "note",
            f"feature {self._name(j)} lies outside of its training range, {low:.6g} to "
            f"{high:.6g}, in {_share(n_outside, tallies.n_rows)}; the worst value is "
            f"{worst:.6g}{where}",
            self._name(j),
            {
                "rows": n_outside,
                "share": n_outside / tallies.n_rows,
                "low": low,
                "high": high,
                "worst": worst,
                "worst_row": row if row >= 0 else None,
            },
        )

    def _constant(self, j: int, c: int, tallies: ColumnTallies) -> Iterator[CheckFinding]:
        known, n_missing = self.model.statistics, int(tallies.n_missing[c])
        if known is None or tallies.n_rows < 2 or n_missing == tallies.n_rows:
            return
        if n_missing and self.model.missing.is_filled and not self._fills_in(j, tallies.low[c]):
            return  # what is missing differs from the rest
        if tallies.low[c] == tallies.high[c] and known.low[j] < known.high[j]:
            yield CheckFinding(
                "constant",
                "warning",
                f"feature {self._name(j)} is {tallies.low[c]:.6g} in all rows, and went from "
                f"{known.low[j]:.6g} to {known.high[j]:.6g} in training: is it computed?",
                self._name(j),
                {"value": float(tallies.low[c])},
            )

    def _drift(self, j: int, c: int, tallies: ColumnTallies) -> Iterator[CheckFinding]:
        known = self.model.statistics
        if known is None or known.variance[j] <= 0.0 or tallies.low[c] == tallies.high[c]:
            return
        mean = float(tallies.mean[c])
        if self.model.missing.is_filled:  # so were the training rows that the other mean is of
            share = float(tallies.n_missing[c] / tallies.n_rows)
            mean += share * (self._fill(j) - mean)
        shift = float((mean - known.mean[j]) / np.sqrt(known.variance[j]))
        if abs(shift) > DRIFT:
            yield CheckFinding(
                "drift",
                "warning",
                f"feature {self._name(j)} has the mean {mean:.6g}, {abs(shift):.2g} "
                f"deviations {'above' if shift > 0 else 'below'} that of training, "
                f"{known.mean[j]:.6g}",
                self._name(j),
                {
                    "mean": mean,
                    "trained": float(known.mean[j]),
                    "deviations": shift,
                },
            )


def _is_dead(item: CheckFinding) -> bool:
    """Whether the feature tells nothing of these rows apart."""
    if item.code == "missing-values":
        return item.severity != "note" and item.values["share"] == 1.0
    return item.code in ("missing-feature", "constant")


def _share(n: int, total: int) -> str:
    return f"{n:,} of {total:,} rows ({100 * n / total:.3g} %)"
