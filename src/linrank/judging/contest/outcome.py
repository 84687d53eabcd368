"""The result of a contest: an entry for every method, and their comparison."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from linrank.judging.compare import Comparison, details, notes, overview
from linrank.judging.contest import outcome as presentation
from linrank.judging.contest.methods import Method
from linrank.judging.contest.process import Outcome
from linrank.judging.contest.runner import Rules
from linrank.metrics import Evaluation
from linrank.system.tables import Column, Sheet, Table

if TYPE_CHECKING:
    from linrank.judging.compare import Comparison


@dataclass(frozen=True, eq=False)
class Entry:
    """A method and what became of it.

    Attributes
    ----------
    method : Method
    outcomes : tuple of Outcome
        One for each fold.
    evaluation : Evaluation or None
        On the test queries of all folds; None if a fold has no model.
    """

    method: Method
    outcomes: tuple[Outcome, ...]
    evaluation: Evaluation | None = field(repr=False)

    @property
    def name(self) -> str:
        return self.method.name

    @property
    def has_result(self) -> bool:
        """Whether there was a model on every fold."""
        return self.evaluation is not None

    @property
    def fit_seconds(self) -> float | None:
        """Processor time of one fit with the chosen parameters, the mean of the folds."""
        times = [o.fit_seconds for o in self.outcomes if o.fit_seconds is not None]
        return sum(times) / len(times) if times else None

    @property
    def search_seconds(self) -> float:
        """Processor time of a search, the mean of the folds."""
        return sum(outcome.search_seconds for outcome in self.outcomes) / len(self.outcomes)

    @property
    def model_bytes(self) -> float | None:
        """Bytes of the saved model, the mean of the folds."""
        sizes = [o.size.n_bytes for o in self.outcomes if o.size is not None]
        return sum(sizes) / len(sizes) if sizes else None

    @property
    def remark(self) -> str:
        """What went wrong, and on how many folds; empty if nothing did."""
        bad = [(k, o) for k, o in enumerate(self.outcomes, start=1) if o.status != "done"]
        if not bad:
            return ""
        first, outcome = bad[0]
        says = outcome.why if outcome.status in ("cut", "missing") else _said(outcome)
        if len(self.outcomes) == 1 or outcome.status == "missing":
            return says
        if len(bad) == 1:
            return f"fold {first}: {says}"
        return f"{len(bad)} of {len(self.outcomes)} folds, fold {first} first: {says}"

    def to_dict(self) -> dict[str, Any]:
        """Plain Python values."""
        method = self.method
        return {
            "method": method.name,
            "family": method.family,
            "description": method.description,
            "grid": method.grid,
            "has_result": self.has_result,
            "remark": self.remark or None,
            "fit_seconds": self.fit_seconds,
            "search_seconds": self.search_seconds,
            "model_bytes": self.model_bytes,
            "metrics": None if self.evaluation is None else self.evaluation.to_dict()["means"],
            "folds": [outcome.to_dict() for outcome in self.outcomes],
        }


def _said(outcome: Outcome) -> str:
    return f"{outcome.status}: {outcome.why}"


@dataclass(frozen=True, eq=False)
class Contest:
    """Methods trained on the same data, measured on queries that none has seen, and compared.

    ``print(contest)`` shows it with a legend; a notebook shows it as HTML.

    Attributes
    ----------
    entries : tuple of Entry
        The methods in the order given, those without a result included.
    comparison : Comparison or None
        Of those with a result; None if there is none.
    metrics : tuple of str
        What was measured, the most important first.
    baseline : str
        What was asked to be compared with.
    rules : Rules
        scoring, convention, scale, seed and budget.
    protocol : str
        How the data were divided, in words.
    sources : tuple of str
        Where they came from.
    remarks : tuple of str
        What to know before trusting the table.
    seconds : float
        On the clock, all of it.
    """

    entries: tuple[Entry, ...]
    comparison: Comparison | None
    metrics: tuple[str, ...]
    baseline: str
    rules: Rules
    protocol: str
    sources: tuple[str, ...]
    remarks: tuple[str, ...]
    seconds: float

    def __getitem__(self, name: str) -> Entry:
        for entry in self.entries:
            if entry.name == name:
                return entry
        known = ", ".join(entry.name for entry in self.entries)
        raise KeyError(f"{name!r} did not take part; there are {known}")

    def to_text(self, width: int | None = None) -> str:
        """Return tables for a terminal, ``width`` columns wide: quality, cost, a legend."""
        return presentation.sheet(self).to_text(width)

    def to_markdown(self) -> str:
        """Return the tables of `to_text` in GitHub's Markdown."""
        return presentation.sheet(self).to_markdown()

    def to_html(self) -> str:
        """Return the tables of `to_text` as a ``<div>``, all escaped."""
        return presentation.sheet(self).to_html()

    def to_dict(self) -> dict[str, Any]:
        """Return plain Python values, ready for JSON; None for what is undefined."""
        rules = self.rules
        return {
            "protocol": self.protocol,
            "sources": list(self.sources),
            "baseline": self.baseline,
            "metrics": list(self.metrics),
            "scoring": rules.scoring,
            "convention": rules.convention.describe(),
            "scale": rules.scale,
            "budget": rules.budget,
            "seed": rules.seed,
            "seconds": self.seconds,
            "remarks": list(self.remarks),
            "methods": [entry.to_dict() for entry in self.entries],
            "comparison": None if self.comparison is None else self.comparison.to_dict(),
        }

    def _repr_html_(self) -> str:
        return self.to_html()

    def __str__(self) -> str:
        return self.to_text()

    def __repr__(self) -> str:
        n = sum(entry.has_result for entry in self.entries)
        return (
            f"<Contest of {len(self.entries)} methods, {n} with a result, {self.protocol}, "
            f"chosen by {self.rules.scoring}>"
        )


def sheet(contest: Contest) -> Sheet:
    """The tables one below the other, then the legend."""
    return Sheet(_tables(contest), legend_of(contest), "linrank-contest")


def _tables(contest: Contest) -> list[Table]:
    tables = []
    if contest.comparison is not None:
        tables.append(_quality(contest, contest.comparison))
        if len(contest.metrics) > 1:
            tables.append(_by_rank(overview(contest.comparison), contest.comparison))
    tables.append(_cost(contest))
    lost = [entry for entry in contest.entries if entry.remark]
    if lost:
        rows = [
            [entry.name, "counts" if entry.has_result else "no result", entry.remark]
            for entry in lost
        ]
        columns = [Column(name, "left") for name in ("method", "outcome", "why")]
        tables.append(Table(columns, rows, "What went wrong"))
    return tables


def _quality(contest: Contest, comparison: Comparison) -> Table:
    """The first metric, best method first; a row too for each method without a result."""
    table = details(comparison, contest.metrics[0])
    empty = [""] * (len(table.columns) - 2)
    lost = [[e.name, "—", *empty] for e in contest.entries if not e.has_result]
    for row in lost:
        row[-1] = "no result"
    title = f"{table.title}; {contest.protocol}; the best on validation by {contest.rules.scoring}"
    return replace(table, rows=[*table.rows, *lost], title=title)


def ranked(comparison: Comparison) -> list[int]:
    """Numbers of the methods, the best by the first metric first."""
    metric = comparison.metrics[0]
    sign = -1.0 if comparison.higher_is_better(metric) else 1.0
    means = [comparison.cells[method, metric].mean for method in comparison.methods]
    keys = [math.inf if math.isnan(mean) else sign * mean for mean in means]
    return sorted(range(len(keys)), key=keys.__getitem__)


def _by_rank(table: Table, comparison: Comparison) -> Table:
    return replace(table, rows=[table.rows[k] for k in ranked(comparison)])


def _cost(contest: Contest) -> Table:
    """Time, size and parameters, in the order of the first table."""
    headings = ["one fit", "search", "candidates", "model", "made of"]
    columns = [Column("method", "left"), *map(Column, headings), Column("chosen", "left")]
    names = [] if contest.comparison is None else list(contest.comparison.methods)
    order = [] if contest.comparison is None else [names[k] for k in ranked(contest.comparison)]
    entries = [contest[name] for name in order]
    rows = [_cost_row(entry) for entry in entries]
    rows += [
        [e.name, *[""] * 5, "no result: see below"] for e in contest.entries if not e.has_result
    ]
    n_folds = max(len(entry.outcomes) for entry in contest.entries)
    of_folds = f", means of {n_folds} folds" if n_folds > 1 else ""
    return Table(columns, rows, f"Cost of a model{of_folds}; processor time, one thread")


def _cost_row(entry: Entry) -> list[str]:
    sizes = [outcome.size for outcome in entry.outcomes if outcome.size is not None]
    n_parts = sum(size.n_parts for size in sizes) / len(sizes)
    n_candidates = max(outcome.n_candidates for outcome in entry.outcomes)
    return [
        entry.name + (" *" if entry.remark else ""),
        "" if entry.fit_seconds is None else _seconds(entry.fit_seconds),
        _seconds(entry.search_seconds),
        f"{n_candidates}",
        _bytes(entry.model_bytes or 0.0),
        _counted(n_parts, sizes[0].part),
        chosen(entry),
    ]


def chosen(entry: Entry) -> str:
    """The parameters: the value where folds agree, else the range or the values that occur."""
    parts = []
    for name in entry.outcomes[0].parameters:
        values = list(dict.fromkeys(outcome.parameters.get(name) for outcome in entry.outcomes))
        parts.append(f"{name} {_values(values)}")
    return ", ".join(parts)


def _values(values: Sequence[Any]) -> str:
    if len(values) == 1:
        return _value(values[0])
    if all(isinstance(value, (int, float)) for value in values):
        return f"{_value(min(values))}–{_value(max(values))}"
    return " or ".join(_value(value) for value in values)


def _value(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def _counted(number: float, things: str) -> str:
    return f"{number:,.0f} {things.removesuffix('s') if number == 1 else things}"


def _seconds(duration: float) -> str:
    if duration < 0.0995:
        return f"{1000 * duration:.0f} ms"
    return f"{duration:.1f} s" if duration < 99.5 else f"{duration:.0f} s"


def _bytes(size: float) -> str:
    units = ["B", "kB", "MB", "GB"]
    while size >= 999.5 and len(units) > 1:
        size, units = size / 1000, units[1:]
    return f"{size:.3g} {units[0]}"


def legend_of(contest: Contest) -> list[str]:
    """What the tables mean, and what to know before trusting them."""
    rules = contest.rules
    lines = [f"Note: {remark}." for remark in contest.remarks]
    if contest.comparison is not None:
        lines += notes(contest.comparison)
    lines += [
        f"chosen: each method's candidate with the best {rules.scoring} on the validation part; "
        "the test part is looked at once, with that model.",
        "one fit: with the chosen parameters; search: all candidates, validation included; model: "
        "its saved form.",
        f"features: scaled ({rules.scale}, from the training part) for linear methods and kernels, "
        "as they are for trees."
        if rules.scale != "none"
        else "features: as they are, for all methods.",
        f"seed {rules.seed}, budget {rules.budget:g} s for a method and fold; all of it took "
        f"{_seconds(contest.seconds)} on the clock.",
    ]
    if any(entry.has_result and entry.remark for entry in contest.entries):
        lines.append("*: the budget ended the search; the best candidate so far counts.")
    return lines
