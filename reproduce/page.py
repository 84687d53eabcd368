"""A page of results: our numbers next to the paper's, and which of its claims hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import problems
import report
from linrank.system.tables import Column, Table

RESULTS = Path(__file__).resolve().parent / "results"
# Below our tables on LETOR 2.0 next to those of papers that had LETOR 3.0.
OTHER_FEATURES = (
    "OHSUMED with 25 features for the paper's 45: differences in level are owed to them as well"
)
VERDICTS = ("holds", "holds in part", "does not hold", "open")


@dataclass(frozen=True)
class Claim:
    """A statement of the paper, what we find, and whether that is the same.

    ``holds`` is None where our data cannot decide: such a claim has no say in the verdict.
    """

    text: str
    holds: bool | None
    found: str

    def markdown(self) -> str:
        word = {True: "Holds", False: "Does not hold", None: "Open"}[
            None if self.holds is None else bool(self.holds)
        ]
        return f"- **{word}**: {self.text} *Here*: {self.found}"


@dataclass
class Page:
    """What a script returns.

    Parameters
    ----------
    title : str
        ``"Table 6: random forests and GBDT"``.
    claims : sequence of Claim
        What the paper concludes from the table or figure, each judged by our numbers.
    tables : sequence of Table
        Ours and the paper's numbers side by side, with their differences.
    differences : sequence of str
        In what our data and protocol differ from the paper's.
    pictures : mapping of str to Figure
        Matplotlib figures, written next to the page.
    """

    title: str
    claims: Sequence[Claim]
    tables: Sequence[Table]
    differences: Sequence[str]
    pictures: Mapping[str, Any] = field(default_factory=dict)

    @property
    def verdict(self) -> str:
        """One of `VERDICTS`."""
        judged = [claim.holds for claim in self.claims if claim.holds is not None]
        if not judged:
            return VERDICTS[3]
        if all(judged):
            return VERDICTS[0]
        return VERDICTS[1] if any(judged) else VERDICTS[2]

    def markdown(self, name: str, citation: str, origin: Sequence[str]) -> str:
        """The page; ``origin`` says when, where and how long it was measured."""
        shown = [f"![{picture}]({_link(name, picture)})" for picture in self.pictures]
        parts = [
            f"# {citation}, {self.title}",
            f"Verdict: **{self.verdict}**",
            "\n".join(claim.markdown() for claim in self.claims),
            "## Numbers",
            *(table.to_markdown() for table in self.tables),
            *shown,
            "## Differences in data and protocol",
            "\n".join(f"- {line}" for line in self.differences),
            "## Measured",
            "\n".join(f"- {line}" for line in origin),
        ]
        return "\n\n".join(parts) + "\n"

    def write(self, folder: Path, name: str, citation: str, origin: Sequence[str]) -> Path:
        """Write the page to ``folder/name.md``, with its new pictures next to it."""
        folder.mkdir(parents=True, exist_ok=True)
        for picture, figure in self.pictures.items():
            figure.savefig(folder / _link(name, picture), metadata={"Date": None})
        path = folder / f"{name}.md"
        path.write_text(self.markdown(name, citation, origin), encoding="utf-8")
        return path


def _link(name: str, picture: str) -> str:
    return f"{name}-{picture}.svg" if picture not in name else f"{name}.svg"


# ---- cells ------------------------------------------------------------------


def against(ours: float | None, paper: float | None, digits: int) -> tuple[str, str, str]:
    """Our number, the paper's and the difference; a dash where there is none."""
    return (
        "-" if ours is None else f"{ours:.{digits}f}",
        "-" if paper is None else f"{paper:.{digits}f}",
        "-" if ours is None or paper is None else f"{ours - paper:+.{digits}f}",
    )


def table(
    title: str, headings: Sequence[str], rows: Sequence[Sequence[str]], notes: Sequence[str] = ()
) -> Table:
    """A table whose columns of words lean to the left, and those of numbers to the right."""
    columns = [
        Column(heading, "left" if _are_words([row[k] for row in rows]) else "right")
        for k, heading in enumerate(headings)
    ]
    return Table(columns, rows, title, notes)


def _are_words(cells: Sequence[str]) -> bool:
    """Whether most of the filled cells begin with a letter."""
    filled = [cell for cell in cells if cell]
    return 2 * sum(cell[0].isalpha() for cell in filled) > len(filled)


def laid_out(one: report.Table) -> Table:
    """A table of an experiment, as it is."""
    return table(one.title, one.columns, one.cells(), one.notes)


# ---- measurements -----------------------------------------------------------


@dataclass(frozen=True)
class Measurement:
    """The tables of an experiment."""

    tables: list[report.Table]

    @property
    def pictures(self) -> dict[str, Any]:
        return {name: it for one in self.tables for name, it in one.pictures.items()}

    def rows(self, start: str, part: str = "") -> list[dict[str, Any]]:
        """The rows of the first table whose title starts so and has that part, by their columns."""
        for one in self.tables:
            if one.title.startswith(start) and part in one.title:
                return [dict(zip(one.columns, row, strict=True)) for row in one.rows]
        for one in self.tables:
            if one.title.endswith("skipped"):
                raise problems.Absent(one.rows[0][0])
        found = "; ".join(f"{one.title} {one.rows[:1]} {one.notes[:1]}" for one in self.tables)
        raise LookupError(f"no table {start!r} was measured; found: {found}")
