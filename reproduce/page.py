"""A page of results: our numbers beside the paper's, what holds of its claims, and why not."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

import problems
import report
from linrank.system.tables import Column, Table
from reproduce import ROOT

RESULTS = Path(__file__).resolve().parent / "results"
KEPT = ROOT / "benchmarks" / "results"
# Below tables of ours on LETOR 2.0 beside those of papers that had LETOR 3.0.
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
    pictures : mapping of str to Figure or Path
        Matplotlib figures, kept beside the page, or files that are linked.
    kept : Measured, optional
        Where the numbers come from, if they were not measured for this page.
    """

    title: str
    claims: Sequence[Claim]
    tables: Sequence[Table]
    differences: Sequence[str]
    pictures: Mapping[str, Any] = field(default_factory=dict)
    kept: Measured | None = None

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
        shown = [f"![{picture}]({_link(name, picture, it)})" for picture, it in self._pictures()]
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
        """Keep the page as ``folder/name.md``, its new pictures beside it."""
        folder.mkdir(parents=True, exist_ok=True)
        for picture, it in self._pictures():
            if not isinstance(it, Path):
                it.savefig(folder / _link(name, picture, it), metadata={"Date": None})
        path = folder / f"{name}.md"
        path.write_text(self.markdown(name, citation, origin), encoding="utf-8")
        return path

    def _pictures(self) -> list[tuple[str, Any]]:
        return list(self.pictures.items())


def _link(name: str, picture: str, it: Any) -> str:
    if isinstance(it, Path):  # kept by a benchmark
        return f"../../{it.relative_to(ROOT).as_posix()}"
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
    """A table of a benchmark, as it is."""
    return table(one.title, one.columns, one.cells(), one.notes)


# ---- measurements of the benchmarks -----------------------------------------


@dataclass(frozen=True)
class Measured:
    """The tables of a benchmark, new or kept, and the circumstances of the kept ones."""

    tables: list[report.Table]
    environment: Mapping[str, Any] | None
    seconds: float | None

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

    @property
    def source(self) -> Measured | None:
        """Itself where it was kept: the ``kept`` of a page."""
        return None if self.environment is None else self


def measured(benchmark: str, quick: bool, kept: bool, **options: Any) -> Measured:
    """Run a benchmark, or read the tables that its last run has left in ``benchmarks/results``.

    Options go to its ``measure`` where it is run.
    """
    if not kept:
        return Measured(import_module(benchmark).measure(quick, **options), None, None)
    folder = _kept_folder()
    found = json.loads((folder / "results.json").read_text(encoding="utf-8"))[benchmark]
    tables = [
        report.Table(
            one["title"],
            one["columns"],
            one["rows"],
            one["notes"],
            {name: folder / f"{name}.svg" for name in one["pictures"]},
        )
        for one in found["measured"]["tables"]
    ]
    return Measured(tables, found["environment"], found["seconds"])


def _kept_folder() -> Path:
    folders = sorted(path.parent for path in KEPT.glob("*/results.json"))
    if not folders:
        raise FileNotFoundError(f"no kept results in {KEPT}: run without --kept")
    return folders[0]
