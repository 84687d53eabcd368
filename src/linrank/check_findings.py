"""Findings: in what data differ from those that a model was trained on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

__all__ = ["SEVERITIES", "CheckFinding", "Findings", "Severity"]

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


@dataclass(frozen=True)
class Findings(Sequence[CheckFinding]):
    """What `check` found, errors first, then by the importance of the feature."""

    items: tuple[CheckFinding, ...]

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, index: Any) -> Any:
        return self.items[index]

    def __iter__(self) -> Iterator[CheckFinding]:
        return iter(self.items)

    def of(self, severity: Severity) -> list[CheckFinding]:
        """Those of one severity."""
        return [item for item in self.items if item.severity == severity]

    @property
    def ok(self) -> bool:
        """Whether there is no error among them."""
        return not self.of("error")

    def __str__(self) -> str:
        return "\n".join(f"{item.severity}: [{item.code}] {item.message}" for item in self.items)
