"""The result of a contest: an entry for every method, and their comparison."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from numpy.typing import NDArray

from linrank.judging.compare import Comparison, best_first, details, notes, overview
from linrank.judging.contest.methods import Contestant, Size
from linrank.metrics import Convention, Evaluation
from linrank.system.resources import bytes_text, seconds
from linrank.system.tables import Column, Sheet, Table, Tabled


@dataclass(frozen=True)
class Rules:
    """What is the same for all jobs.

    Attributes
    ----------
    scoring, convention, scale, seed
        As in `linrank.judging.contest.methods.Trial`.
    budget : float
        Seconds on the clock for each job.
    """

    scoring: str
    convention: Convention
    scale: str
    seed: int
    budget: float


@dataclass(frozen=True, eq=False)
class Outcome:
    """What became of one method on one fold.

    Attributes
    ----------
    status : {"done", "cut", "over budget", "failed", "missing"}
        ``cut``: the budget ended the search, and the best candidate so far counts. The last three
        have no model.
    why : str
        What went wrong, in words; empty if nothing did.
    parameters : dict
        Of the chosen candidate.
    score : float or None
        The measure that the candidate was chosen by, higher is better.
    fit_seconds : float or None
        Processor time of one fit with the chosen parameters.
    search_seconds : float
        Processor time of the whole search, validation included.
    n_candidates : int
        Candidates that were judged.
    size : Size or None
    scores : float64 array or None
        Of the test rows, the rows of each query together.
    """

    status: str
    why: str = ""
    parameters: dict[str, Any] = field(default_factory=dict)
    score: float | None = None
    fit_seconds: float | None = None
    search_seconds: float = 0.0
    n_candidates: int = 0
    size: Size | None = None
    scores: NDArray[Any] | None = field(default=None, repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Plain Python values, without the scores."""
        size = self.size
        return {
            "status": self.status,
            "why": self.why or None,
            "parameters": self.parameters,
            "validation_score": self.score,
            "fit_seconds": self.fit_seconds,
            "search_seconds": self.search_seconds,
            "n_candidates": self.n_candidates,
            "model_bytes": None if size is None else size.n_bytes,
            "model_parts": None if size is None else {size.part: size.n_parts},
        }


def _mean(values: Sequence[float | None]) -> float | None:
    """Of those that are known."""
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


@dataclass(frozen=True, eq=False)
class Entry:
    """A method and what became of it.

    Attributes
    ----------
    method : Contestant
    outcomes : tuple of Outcome
        One for each fold.
    evaluation : Evaluation or None
        On the test queries of all folds; None if a fold has no model.
    """

    method: Contestant
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
        return _mean([outcome.fit_seconds for outcome in self.outcomes])

    @property
    def search_seconds(self) -> float:
        """Processor time of a search, the mean of the folds."""
        return _mean([outcome.search_seconds for outcome in self.outcomes]) or 0.0

    @property
    def model_bytes(self) -> float | None:
        """Bytes of the saved model, the mean of the folds."""
        return _mean([None if o.size is None else o.size.n_bytes for o in self.outcomes])

    @property
    def remark(self) -> str:
        """What went wrong, and on how many folds; empty if nothing did."""
        bad = [(k, o) for k, o in enumerate(self.outcomes, start=1) if o.status != "done"]
        if not bad:
            return ""
        first, outcome = bad[0]
        is_plain = outcome.status in ("cut", "missing")
        says = outcome.why if is_plain else f"{outcome.status}: {outcome.why}"
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
            "grid": method.candidates,
            "has_result": self.has_result,
            "remark": self.remark or None,
            "fit_seconds": self.fit_seconds,
            "search_seconds": self.search_seconds,
            "model_bytes": self.model_bytes,
            "metrics": None if self.evaluation is None else self.evaluation.to_dict()["means"],
            "folds": [outcome.to_dict() for outcome in self.outcomes],
        }


@dataclass(frozen=True, eq=False)
class Contest(Tabled):
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
    selection : str
        What candidates were chosen by: the validation part, or cross-validation.
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
    selection: str
    sources: tuple[str, ...]
    remarks: tuple[str, ...]
    seconds: float

    def __getitem__(self, name: str) -> Entry:
        for entry in self.entries:
            if entry.name == name:
                return entry
        known = ", ".join(entry.name for entry in self.entries)
        raise KeyError(f"{name!r} did not take part; there are {known}")

    def sheet(self) -> Sheet:
        """Quality, cost, what went wrong, and a legend."""
        return Sheet(_tables(self), legend_of(self), "linrank-contest")

    def to_dict(self) -> dict[str, Any]:
        """Return plain Python values, ready for JSON; None for what is undefined."""
        return {
            "protocol": self.protocol,
            "selection": self.selection,
            "sources": list(self.sources),
            "baseline": self.baseline,
            "metrics": list(self.metrics),
            **vars(self.rules),
            "convention": self.rules.convention.describe(),
            "seconds": self.seconds,
            "remarks": list(self.remarks),
            "methods": [entry.to_dict() for entry in self.entries],
            "comparison": None if self.comparison is None else self.comparison.to_dict(),
        }

    def __repr__(self) -> str:
        n = sum(entry.has_result for entry in self.entries)
        return (
            f"<Contest of {len(self.entries)} methods, {n} with a result, {self.protocol}, "
            f"chosen by {self.rules.scoring}>"
        )


def _tables(contest: Contest) -> list[Table]:
    tables = []
    if contest.comparison is not None:
        tables.append(_quality(contest, contest.comparison))
        if len(contest.metrics) > 1:
            ranked = best_first(contest.comparison, contest.metrics[0])
            tables.append(overview(contest.comparison, ranked))
    tables.append(_cost(contest))
    lost = [entry for entry in contest.entries if entry.remark]
    if lost:
        rows = [[e.name, "counts" if e.has_result else "no result", e.remark] for e in lost]
        columns = [Column(name, "left") for name in ("method", "outcome", "why")]
        tables.append(Table(columns, rows, "What went wrong"))
    return tables


def _quality(contest: Contest, comparison: Comparison) -> Table:
    """The first metric, best method first; a row too for each method without a result."""
    table = details(comparison, contest.metrics[0])
    empty = [""] * (len(table.columns) - 3)
    lost = [[e.name, "—", *empty, "no result"] for e in contest.entries if not e.has_result]
    chosen = f"the best {contest.selection} by {contest.rules.scoring}"
    title = f"{table.title}; {contest.protocol}; {chosen}"
    return replace(table, rows=[*table.rows, *lost], title=title)


def _cost(contest: Contest) -> Table:
    """Time, size and parameters, in the order of the first table."""
    headings = ["one fit", "search", "candidates", "model", "made of"]
    columns = [Column("method", "left"), *map(Column, headings), Column("chosen", "left")]
    best = contest.comparison
    names = [] if best is None else best_first(best, contest.metrics[0])
    rows = [_cost_row(contest[name]) for name in names]
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
        "" if entry.fit_seconds is None else seconds(entry.fit_seconds),
        seconds(entry.search_seconds),
        f"{n_candidates}",
        bytes_text(round(entry.model_bytes or 0)),
        _counted(n_parts, sizes[0].part),
        chosen(entry),
    ]


def chosen(entry: Entry) -> str:
    """The candidates: of those alike, the range or the values that occur, and on how many folds."""
    alike: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for outcome in entry.outcomes:
        alike.setdefault(tuple(outcome.parameters), []).append(outcome.parameters)
    parts = []
    for names, found in alike.items():
        values = {name: list(dict.fromkeys(each[name] for each in found)) for name in names}
        told = ", ".join(f"{name} {_values(values[name])}" for name in names) or "defaults"
        parts.append(told if len(alike) == 1 else f"{told} ({_counted(len(found), 'folds')})")
    return "; ".join(parts)


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


def legend_of(contest: Contest) -> list[str]:
    """What the tables mean, and what to know before trusting them."""
    rules = contest.rules
    lines = [f"Note: {remark}." for remark in contest.remarks]
    if contest.comparison is not None:
        lines += notes(contest.comparison)
    lines += [
        f"chosen: each method's candidate with the best {rules.scoring} {contest.selection}, the "
        "same for all methods; trained on the training part; the test part is looked at once, with "
        "that model. candidates: how many were tried, each method's defaults among them.",
        "one fit: with the chosen parameters; search: all candidates, judging included; model: its "
        "saved form.",
        f"features: scaled ({rules.scale}, from the training part) for linear methods and kernels, "
        "as they are for trees."
        if rules.scale != "none"
        else "features: as they are, for all methods.",
        f"seed {rules.seed}, budget {rules.budget:g} s for a method and fold; all of it took "
        f"{seconds(contest.seconds)} on the clock.",
    ]
    if any(entry.has_result and entry.remark for entry in contest.entries):
        lines.append("*: the budget ended the search; the best candidate so far counts.")
    return lines
