"""How databases write the name of a column, and which names they refuse.

A name is always quoted, so that reserved words, spaces and capitals are no matter:

    ansi        "a ""b"" c"    PostgreSQL, SQLite, DuckDB, Oracle, Snowflake, Trino, ...
    mysql       `a ``b`` c`    MySQL 8, MariaDB
    bigquery    `a 'b' c`      names with a quote of this kind do not exist there
    sqlserver   [a [b]] c]     SQL Server, Azure SQL
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass

from linrank.export.engine_names import refuse
from linrank.nearest import did_you_mean

__all__ = ["DIALECTS", "Dialect", "dialect_of"]

# What columns of BigQuery may have beside letters, marks, digits, connectors and dashes.
_FLEXIBLE = frozenset("&%=+:'<>#| ")


@dataclass(frozen=True)
class Dialect:
    """The names of one kind of database.

    Attributes
    ----------
    name : str
        What the option ``dialect`` says.
    opening, closing : str
        Quotes around a name; a closing one within it is doubled.
    longest : int or None
        Characters that a name may have; None where databases of this dialect differ.
    folds_case : bool
        Whether columns that differ in their capitals only are the same column.
    """

    name: str
    opening: str
    closing: str
    longest: int | None
    folds_case: bool

    def quoted(self, name: str, what: str = "feature") -> str:
        """A name as it stands in a query; `what` is called so, for the error about a bad one.

        Examples
        --------
        >>> dialect_of("sqlserver").quoted("a[1]")
        '[a[1]]]'
        """
        reason = self._refusal(name)
        if reason:
            refuse(f"sql, dialect {self.name},", what, name, reason)
        return self.opening + name.replace(self.closing, 2 * self.closing) + self.closing

    def quoted_path(self, path: str) -> str:
        """The name of a table, the parts of ``catalogue.schema.table`` quoted one by one."""
        return ".".join(self.quoted(part, "table") for part in path.split("."))

    def same_columns(self, names: Iterable[str]) -> tuple[str, str] | None:
        """Two names that differ in their capitals only, if there are any."""
        first: dict[str, str] = {}
        for name in names:
            other = first.setdefault(name.casefold(), name)
            if other != name:
                return other, name
        return None

    def _refusal(self, name: str) -> str:
        """Why no column of such a database can have this name; empty where one can."""
        if not name:
            return "it is empty"
        if self.longest is not None and len(name) > self.longest:
            return f"it has {len(name)} characters, the limit is {self.longest}"
        if self.name == "mysql" and name[-1] in " \t\n\v\f\r":
            return "names there must not end with a space, nor a tab or line end"
        for character in name:
            reason = self._reason(character)
            if reason:
                return f"{character!r} (U+{ord(character):04X}) {reason}"
        return ""

    def _reason(self, character: str) -> str:
        """Why a name must not have this character; empty where it may."""
        if character == "\0":
            return "ends the text of a query"
        if self.name == "mysql" and ord(character) > 0xFFFF:
            return "lies beyond the Basic Multilingual Plane"
        if self.name == "bigquery" and not _in_bigquery(character):
            return "is not among those of its column names"
        return ""


def _in_bigquery(character: str) -> bool:
    category = unicodedata.category(character)
    return category[0] in "LMN" or category in ("Pc", "Pd") or character in _FLEXIBLE


DIALECTS = {
    dialect.name: dialect
    for dialect in (
        Dialect("ansi", '"', '"', None, False),
        Dialect("mysql", "`", "`", 64, True),
        Dialect("bigquery", "`", "`", 300, True),
        Dialect("sqlserver", "[", "]", 128, True),
    )
}


def dialect_of(name: str) -> Dialect:
    """The dialect of this name."""
    if name in DIALECTS:
        return DIALECTS[name]
    expected = ", ".join(map(repr, DIALECTS))
    raise ValueError(
        f"dialect must be one of {expected}, got {name!r}{did_you_mean(name, DIALECTS)}"
    )
