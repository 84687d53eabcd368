"""Numbers out of the tables of benchmarks: ``"1.65 (1.52–2.07)"``, ``">= 20"``, ``"2.1e+03x"``."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

import report

Row = dict[str, Any]

_NUMBER = re.compile(r"[-+]?\d[\d,]*\.?\d*(?:[eE][-+]?\d+)?")


def rows(table: report.Table) -> list[Row]:
    """The rows, their cells by the heading of the column."""
    return [dict(zip(table.columns, row, strict=True)) for row in table.rows]


def number(cell: Any) -> float:
    """The first number of a cell; NaN where there is none."""
    found = _NUMBER.search(str(cell))
    return float(found.group().replace(",", "")) if found else np.nan


def seconds(cell: Any) -> float:
    """A time; infinite where the goal was not reached."""
    text = str(cell)
    return np.inf if text.startswith(("-", ">=")) else number(text)
