"""Tables for people: the same cells as plain text, Markdown and HTML."""

from __future__ import annotations

import os
import textwrap
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any, Literal

Align = Literal["left", "right"]


class Markup(str):
    """A cell that is HTML already."""

    __slots__ = ()


@dataclass(frozen=True)
class Column:
    """A column: its heading, and the side that its cells lean to (numbers to the right)."""

    heading: str
    align: Align = "right"


@dataclass(frozen=True)
class Table:
    """Cells under headings, all text already; notes below say what they mean.

    Parameters
    ----------
    columns : sequence of Column
    rows : sequence of sequences of str
        As many cells in each as there are columns.
    title : str
        A line above the table; none when empty.
    notes : sequence of str
        Lines below it.
    """

    columns: Sequence[Column]
    rows: Sequence[Sequence[str]] = ()
    title: str = ""
    notes: Sequence[str] = field(default=())

    def __post_init__(self) -> None:
        for k, row in enumerate(self.rows):
            if len(row) != len(self.columns):
                raise ValueError(
                    f"row {k} of the table has {len(row)} cells for {len(self.columns)} columns"
                )

    def to_text(self, width: int | None = None) -> str:
        """Return columns padded to their widest cell, for a terminal.

        With a ``width``, columns that do not fit come in further blocks below, each after the
        first column again; the title is wrapped, the notes are the caller's.
        """
        rows = self._pad_all([[column.heading for column in self.columns], *self.rows])
        blocks = [
            "\n".join("  ".join(row[k] for k in block).rstrip() for row in rows)
            for block in self._blocks([text_width(cell) for cell in rows[0]], width)
        ]
        title = self.title if width is None else textwrap.fill(self.title, width)
        return "\n".join([*([title, ""] if title else []), "\n\n".join(blocks), *self.notes])

    def _blocks(self, widths: Sequence[int], width: int | None) -> list[list[int]]:
        """Numbers of the columns of each block."""
        if width is None or not widths:
            return [list(range(len(widths)))]
        blocks, used = [[0]], widths[0]
        for k, needed in enumerate(widths[1:], start=1):
            used += 2 + needed
            if used > width and len(blocks[-1]) > 1:
                blocks.append([0])
                used = widths[0] + 2 + needed
            blocks[-1].append(k)
        return blocks

    def to_markdown(self) -> str:
        """Return a table of GitHub's Markdown; notes become a list."""
        rows = [[column.heading for column in self.columns], *self.rows]
        padded = self._pad_all([[_cell(cell) for cell in row] for row in rows])
        lines = [f"| {' | '.join(row)} |" for row in padded]
        dashes = [
            "-" * (len(cell) + 1) + (":" if column.align == "right" else "-")
            for cell, column in zip(padded[0], self.columns, strict=True)
        ]
        lines.insert(1, f"|{'|'.join(dashes)}|")
        title = [f"**{_cell(self.title)}**", ""] if self.title else []
        notes = ["", *(f"- {note}" for note in self.notes)] if self.notes else []
        return "\n".join([*title, *lines, *notes])

    def to_html(self) -> str:
        """Return a ``<table class="linrank">``, every cell escaped that is no `Markup`."""
        title = f"<caption>{escape(self.title)}</caption>" if self.title else ""
        heading = self._html_row("th", [column.heading for column in self.columns])
        body = "\n".join(self._html_row("td", row) for row in self.rows)
        notes = "".join(f"<li>{escape(note)}</li>" for note in self.notes)
        return (
            f'<table class="linrank">{title}<thead>{heading}</thead>\n<tbody>{body}</tbody></table>'
            + (f'\n<ul class="notes">{notes}</ul>' if notes else "")
        )

    def _html_row(self, tag: str, row: Sequence[str]) -> str:
        cells = "".join(
            f'<{tag} style="text-align:{column.align}">'
            f"{cell if isinstance(cell, Markup) else escape(cell)}</{tag}>"
            for column, cell in zip(self.columns, row, strict=True)
        )
        return f"<tr>{cells}</tr>"

    def _pad_all(self, rows: Sequence[Sequence[str]]) -> list[list[str]]:
        widths = [max(text_width(row[k]) for row in rows) for k in range(len(self.columns))]
        return [
            [
                _pad(cell, width, column.align)
                for column, cell, width in zip(self.columns, row, widths, strict=True)
            ]
            for row in rows
        ]


class Tabled:
    """What is shown as tables and a legend: printed as text, in a notebook as HTML.

    A subclass has ``tables()``, and ``legend()`` if they need one.
    """

    def tables(self) -> Sequence[Table]:
        """Return the tables."""
        raise NotImplementedError(f"{type(self).__name__} does not say what its tables are")

    def legend(self) -> Sequence[str]:
        """Return the lines below the last table."""
        return ()

    def to_text(self, width: int | None = None) -> str:
        """Return tables for a terminal, ``width`` columns wide, and a legend."""
        lines = 100 if width is None else min(width, 100)
        legend = "\n".join(
            textwrap.fill(note, lines, subsequent_indent="  ", break_long_words=False)
            for note in self.legend()
        )
        tables = [table.to_text(width) for table in self.tables()]
        return "\n\n".join([*tables, legend] if legend else tables)

    def to_markdown(self) -> str:
        """Return the tables of `to_text` in GitHub's Markdown, the legend as a list."""
        legend = "\n".join(f"- {note}" for note in self.legend())
        tables = [table.to_markdown() for table in self.tables()]
        return "\n\n".join([*tables, legend] if legend else tables)

    def to_html(self) -> str:
        """Return tables and legend in one ``<div>``, all escaped; wide tables scroll inside it."""
        tables = "\n".join(
            f'<div style="overflow-x:auto">{table.to_html()}</div>' for table in self.tables()
        )
        legend = "".join(f"<li>{escape(note)}</li>" for note in self.legend())
        notes = f'\n<ul class="notes">{legend}</ul>' if legend else ""
        with open(os.path.join(os.path.dirname(__file__), "tables.css"), encoding="utf-8") as file:
            style = file.read()
        css_class = f"linrank-sheet linrank-{type(self).__name__.lower()}"
        return f'<div class="{css_class}">\n<style>\n{style}</style>\n{tables}{notes}\n</div>'

    def _repr_html_(self) -> str:
        return self.to_html()

    def __str__(self) -> str:
        return self.to_text()


def frame_of(columns: Mapping[str, Any]) -> Any:
    """Return a pandas DataFrame of columns by name."""
    try:
        import pandas
    except ImportError:
        raise ImportError("to_frame needs pandas: pip install pandas") from None
    return pandas.DataFrame(columns)


def card(rows: Sequence[tuple[str, str]]) -> list[str]:
    """Lines ``name  text``, the texts below each other."""
    width = 2 + max((text_width(name) for name, _ in rows), default=0)
    return [_pad(name, width, "left") + text for name, text in rows]


def text_width(text: str) -> int:
    """Columns of a terminal that ``text`` takes: accents none, ideographs two."""
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1
        for c in text
    )


def _pad(text: str, width: int, align: Align) -> str:
    spaces = " " * (width - text_width(text))
    return text + spaces if align == "left" else spaces + text


def _cell(text: str) -> str:
    """A bar or a line break would end the cell."""
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("\n", " ")
