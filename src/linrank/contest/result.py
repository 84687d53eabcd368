"""The result of a contest: an entry for every method, and their comparison."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from linrank.comparison import Comparison
from linrank.contest import presentation
from linrank.contest.methods import Method
from linrank.contest.process import Outcome
from linrank.contest.runner import Rules
from linrank.metrics import Evaluation

__all__ = ["Contest", "Entry"]


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
        return presentation.text(self, width)

    def to_markdown(self) -> str:
        """Return the tables of `to_text` in GitHub's Markdown."""
        return presentation.markdown(self)

    def to_html(self) -> str:
        """Return the tables of `to_text` as a ``<div>``, all escaped."""
        return presentation.html(self)

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
