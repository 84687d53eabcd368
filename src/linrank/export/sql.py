"""A linear model as SQL: a scoring expression, or a query that ranks the rows of a table.

The expression is ``Σ_j w_j x_j`` over the columns x_j with a weight. A column that is NULL adds
``w_j v_j + c_j`` instead, by COALESCE, where the model fills in missing values; where it refuses
them the score is NULL. Weights are doubles with an exponent, which is what makes a number
approximate (a double, not a decimal) in standard SQL, and their digits read back to the same bits.
PostgreSQL reads them as decimals: beside a column of doubles they become doubles, beside integers
they are exact.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from linrank.data.curves import Function
from linrank.errors import did_you_mean
from linrank.export.artefact import Artefact, fill_text
from linrank.export.form import Form
from linrank.export.names import refuse
from linrank.export.steps import decisions


def _in_mysql(character: str, is_last: bool) -> bool:
    return "\0" < character <= "\uffff" and not (is_last and character in " \t\n\v\f\r")


def _in_bigquery(character: str, is_last: bool) -> bool:
    """Whether a column of BigQuery may have it: a letter, mark, digit, connector or dash, ..."""
    category = unicodedata.category(character)
    return category[0] in "LMN" or category in ("Pc", "Pd") or character in "&%=+:'<>#| "


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
    takes : function
        Whether a column name may have a character, which may be its last.
    rule : str
        Which these are, as the end of "names there have".
    """

    name: str
    opening: str
    closing: str
    longest: int | None
    folds_case: bool
    takes: Callable[[str, bool], bool] = lambda character, is_last: character != "\0"
    rule: str = "no NUL, which ends the text of a query"

    def quote(self, name: str, what: str = "feature") -> str:
        """A name as it stands in a query; `what` is called so, for the error about a bad one.

        Examples
        --------
        >>> dialect_of("sqlserver").quote("a[1]")
        '[a[1]]]'
        """
        reason = self._refusal(name)
        if reason:
            refuse(f"sql, dialect {self.name},", what, name, reason)
        return self.opening + name.replace(self.closing, 2 * self.closing) + self.closing

    def quote_path(self, path: str) -> str:
        """The name of a table, the parts of ``catalogue.schema.table`` quoted one by one."""
        return ".".join(self.quote(part, "table") for part in path.split("."))

    def _refusal(self, name: str) -> str:
        """Why no column there can have this name; empty where one can."""
        if not name:
            return "it is empty"
        if self.longest is not None and len(name) > self.longest:
            return f"it has {len(name)} characters, the limit is {self.longest}"
        for place, character in enumerate(name):
            if not self.takes(character, place == len(name) - 1):
                found = f"{character!r} (U+{ord(character):04X}) at place {place}"
                return f"it has {found}; names there have {self.rule}"
        return ""


DIALECTS = {
    dialect.name: dialect
    for dialect in (
        Dialect("ansi", '"', '"', None, False),
        Dialect(
            name="mysql",
            opening="`",
            closing="`",
            longest=64,
            folds_case=True,
            takes=_in_mysql,
            rule="characters of the Basic Multilingual Plane but NUL, and no blank at the end",
        ),
        Dialect(
            name="bigquery",
            opening="`",
            closing="`",
            longest=300,
            folds_case=True,
            takes=_in_bigquery,
            rule="letters, marks, digits, blanks, connectors, dashes and & % = + : ' < > # | only",
        ),
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


# A parser nests a + b + c + ... as deep as it is long, and SQLite and DuckDB stop at a depth of
# 1000. Sums of sums, 32 terms in each, are of depth 64 for a thousand features, 96 for 30,000; and
# their rounding errors grow with that depth rather than with the number of features.
_TERMS = 32
_POSTGRESQL = 63  # bytes of a name
_PLUS = "\n    + "


def write(
    form: Form,
    name: str,
    *,
    dialect: str = "ansi",
    table: str | None = None,
    qid: str | None = None,
    docid: str | None = None,
) -> Artefact:
    """The model as an expression, or as a query where a table is named.

    Parameters
    ----------
    form : Form
        The weights, by the names of columns.
    name : str
        The query adds the columns ``NAME_score`` and ``NAME_rank``.
    dialect : {"ansi", "mysql", "bigquery", "sqlserver"}
        How names are quoted.
    table : str or None
        Table or view to rank, ``schema.table`` where needed; None writes the expression alone.
    qid : str or None
        Column with the query of a row: ranks count within each. Needs `table`.
    docid : str or None
        Column that breaks ties of equal scores. Needs `table`.
    """
    spoken = dialect_of(dialect)
    _check_options(table=table, qid=qid, docid=docid)
    warnings = _warnings(form, spoken)
    if table is None:
        text = f"({_expression(form, spoken)})\n"  # for it may become part of a larger one
    else:
        text = _query(form, spoken, name, table, qid, docid)
    instructions = _instructions(form, spoken, name, table, qid)
    return Artefact("sql", {"model.sql": text.encode()}, instructions, warnings)


def _check_options(**columns: Any) -> None:
    for option, value in columns.items():
        if value is not None and not isinstance(value, str):
            raise TypeError(f"{option} must be a name, got {value!r}")
        if value is not None and columns["table"] is None:
            raise ValueError(f"{option}={value!r} is for ranking a table; name it by table=")


def literal(value: float) -> str:
    """A double of SQL: the shortest digits that read back the same, with an exponent.

    Examples
    --------
    >>> literal(0.5), literal(-1e-7)
    ('0.5e0', '-1e-07')
    """
    digits = repr(float(value))
    return digits if "e" in digits else f"{digits}e0"


def _warnings(form: Form, dialect: Dialect) -> tuple[str, ...]:
    """What to say of columns that a database may take for one; an error where it surely does."""
    warnings = []
    same = _find_alike(form.names, str.casefold)
    if same is not None:
        told = f"the features {same[0]!r} and {same[1]!r} differ in their capitals only"
        if dialect.folds_case:
            raise ValueError(
                f"{told}, which are one column in dialect {dialect.name!r}; tell them apart by "
                "feature_map"
            )
        warnings.append(
            f"{told}: two columns in PostgreSQL and Oracle, one in SQLite and DuckDB; tell them "
            "apart by feature_map"
        )
    same = _find_alike(form.names, lambda name: name.encode()[:_POSTGRESQL])
    if dialect.longest is None and same is not None:  # PostgreSQL cuts longer ones without a word
        warnings.append(
            f"the features {same[0][:20]!r}... and {same[1][:20]!r}... have their first "
            f"{_POSTGRESQL} bytes in common, which is all that PostgreSQL keeps of a name; "
            "tell them apart by feature_map"
        )
    return tuple(warnings)


def _find_alike(names: Iterable[str], key: Callable[[str], Any]) -> tuple[str, str] | None:
    """Two names that the key makes the same, if there are any."""
    first: dict[Any, str] = {}
    for name in names:
        other = first.setdefault(key(name), name)
        if other != name:
            return other, name
    return None


def _expression(form: Form, dialect: Dialect, owner: str = "", query: str = "") -> str:
    """The sum; `owner` is the alias of the table that the columns are of, with its dot.

    `query` is the column of the queries within which features are scaled, if they are.
    """
    columns = [owner + dialect.quote(name) for name in form.names]
    if form.curves is not None:
        parts: Any = zip(columns, form.curves, form.added, strict=True)
        return _sum([_curve(*each) for each in parts])
    weights = form.weights.tolist()
    if query:
        fill = [None] * len(columns) if form.missing == "error" else form.fill.tolist()
        scaled = zip(columns, weights, fill, strict=True)
        return _sum([_scaled_term(column, w, value, query) for column, w, value in scaled])
    return _sum([_term(*each) for each in zip(columns, weights, form.added, strict=True)])


def _term(column: str, weight: float, added: float | None) -> str:
    """``w·x``, or what a missing value adds where x is NULL."""
    if added is None:
        return f"{literal(weight)} * {column}"
    if weight == 0.0:
        return f"CASE WHEN {column} IS NULL THEN {literal(added)} ELSE 0e0 END"
    return f"COALESCE({literal(weight)} * {column}, {literal(added)})"


def _scaled_term(column: str, weight: float, fill: float | None, query: str) -> str:
    """``w·x / (max x - min x)`` over the rows of the query, 0 where x is the same in all of them.

    Missing values are filled in before, as in training; indicators cannot be scaled within queries.
    """
    value = column if fill is None else f"COALESCE({column}, {literal(fill)})"
    over = f"OVER (PARTITION BY {query})"
    width = f"NULLIF(MAX({value}) {over} - MIN({value}) {over}, 0)"
    term = f"COALESCE({literal(weight)} * {value} / {width}, 0e0)"
    if fill is None:  # a NULL is not to turn into the 0 of a constant feature
        return f"CASE WHEN {column} IS NOT NULL THEN {term} END"
    return term


def _curve(column: str, curve: Function, added: float | None) -> str:
    """``f(x)``, or what a missing value adds where x is NULL."""
    absent = "NULL" if added is None else literal(added)
    known = decisions(
        curve, column, literal, "CASE WHEN {x} > {knot} THEN {above} ELSE {below} END"
    )
    return f"CASE WHEN {column} IS NULL THEN {absent} ELSE {known} END"


def _sum(terms: Sequence[str]) -> str:
    """All terms added, at most `_TERMS` in a row."""
    if len(terms) <= _TERMS:
        return _PLUS.join(terms)
    parts = [_sum(terms[begin : begin + _TERMS]) for begin in range(0, len(terms), _TERMS)]
    return _sum([f"({part})" for part in parts])


def _query(
    form: Form, dialect: Dialect, name: str, table: str, qid: str | None, docid: str | None
) -> str:
    """All columns of the table, the score and the rank, the best first.

    The score is computed in a query of its own, so that it can be named in the order; columns
    carry the alias of their table, since SQLite reads an unknown "name" without one as a text.
    """
    score, rank = (
        dialect.quote(_name_column(form, name, what), "model") for what in ("score", "rank")
    )
    query = "" if qid is None else dialect.quote(qid, "qid")
    partition = f"PARTITION BY scored.{query} " if query else ""
    order = f"scored.{score} DESC"
    if form.missing == "error":  # databases differ on where NULL goes: last
        order = f"CASE WHEN scored.{score} IS NULL THEN 1 ELSE 0 END, {order}"
    if docid is not None:
        order += f", scored.{dialect.quote(docid, 'docid')}"
    scaled_in = f"listed.{query}" if form.scale == "query" and query else ""
    lines = [
        "SELECT scored.*,",
        f"  ROW_NUMBER() OVER ({partition}ORDER BY {order}) AS {rank}",
        "FROM (",
        "  SELECT listed.*,",
        f"    {_expression(form, dialect, 'listed.', scaled_in)} AS {score}",
        f"  FROM {dialect.quote_path(table)} listed",
        ") scored",
        f"ORDER BY {f'scored.{query}, ' if query else ''}{rank}",
    ]
    return "\n".join(lines) + "\n"


def _name_column(form: Form, name: str, what: str) -> str:
    """The name of a column that the query adds."""
    column = f"{name}_{what}"
    if column.casefold() in {feature.casefold() for feature in form.names}:
        raise ValueError(
            f"the query would add a column {column!r}, and a feature is called that; pass another "
            "name="
        )
    return column


def _instructions(
    form: Form, dialect: Dialect, name: str, table: str | None, qid: str | None
) -> str:
    return fill_text(
        "sql",
        "expression" if table is None else "table",
        "refused" if form.missing == "error" else "filled",
        "text",
        table=table,
        name=name,
        within="of the whole table" if qid is None else f"within each {qid}",
        dialect=repr(dialect.name),
        factor=""
        if form.factor == 1.0
        else f" Scores are those of the model times {form.factor!r}; the order is the same.",
    )
