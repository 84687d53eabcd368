"""Files that say more of the rows of a data file: those beside a text, as LightGBM and XGBoost have
them, and preferences."""

from __future__ import annotations

import math
import os
import re
from array import array
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from linrank.data import Array, Dataset, Preferences, as_weights, first_true, keep_queries
from linrank.errors import DataFormatError
from linrank.io.blocks import open_blocks
from linrank.io.formats import COMPRESSIONS
from linrank.system.durable import naming

ENDINGS = (".query", ".group", ".weight", ".position")
_LARGEST = 2.0**40  # rows of a query: more fit nowhere, and their sum stays an integer
_IGNORE = "remove one, or ignore the files beside the data with sidecars=False"


def attach(data: Dataset, path: Any, note: Callable[[str], object]) -> Dataset:
    """The data with what the files beside it say.

    They are named like the data (with or without the ending of a compression) and end in
    ``.query`` or ``.group`` (the number of rows of each query, in order), ``.weight`` (a number per
    row, or per query) and ``.position`` (a number per row); one number per line.
    """
    found = files_beside(path)
    told = [found[ending] for ending in ENDINGS[:2] if ending in found]
    if len(told) > 1:
        raise DataFormatError(f"{told[0]} and {told[1]} both tell the queries; {_IGNORE}")
    for ending, name in found.items():
        what, given, add = {
            ".weight": ("weights", data.weight, _with_weights),
            ".position": ("positions", data.position, _with_positions),
        }.get(ending, ("the queries", data.qid, _with_queries))
        if given is not None:
            some = "query ids" if given is data.qid else "some"
            raise DataFormatError(f"{name} tells {what}, and {data.source} has {some}; {_IGNORE}")
        with naming(name), open(name, encoding="utf-8", errors="backslashreplace") as file:
            data = add(data, name, parse_numbers(file.read(), name))
        note(f"read beside {os.fsdecode(path)}: {name}")
    return data


def files_beside(path: Any) -> dict[str, str]:
    """The files beside a text that `attach` would read, by their endings."""
    path = os.fsdecode(path)
    stem, last = os.path.splitext(path)
    stems = (path, stem) if last.lower() in COMPRESSIONS else (path,)
    found = {}
    for ending in ENDINGS:
        name = next((s + ending for s in stems if os.path.isfile(s + ending)), None)
        if name is not None:
            found[ending] = name
    return found


def _with_positions(data: Dataset, name: str, positions: Array) -> Dataset:
    if len(positions) != data.n_rows:
        raise DataFormatError(
            f"{name}: {len(positions):,} positions for the {data.n_rows:,} rows of {data.source}"
        )
    return replace(data, position=positions)


def _with_queries(data: Dataset, name: str, sizes: Array) -> Dataset:
    is_size = (sizes == np.floor(sizes)) & (sizes >= 1) & (sizes <= _LARGEST)
    if (line := first_true(~is_size)) is not None:
        raise DataFormatError(f"{name}:{line + 1}: {sizes[line]:g} is no number of rows of a query")
    if int(sizes.sum()) != data.n_rows:
        raise DataFormatError(
            f"{name}: its {len(sizes):,} queries have {int(sizes.sum()):,} rows together, "
            f"{data.source} has {data.n_rows:,}"
        )
    return replace(data, qid=np.repeat(np.arange(len(sizes)), sizes.astype(np.int64)))


def _with_weights(data: Dataset, name: str, weights: Array) -> Dataset:
    """Weights u of rows, or c of queries: a pair weighs ``u_i u_j``, so u = √c in a query."""
    queries = data.queries
    if len(weights) not in (data.n_rows, queries.n_queries):
        raise DataFormatError(
            f"{name}: {len(weights):,} weights for the {data.n_rows:,} rows and "
            f"{queries.n_queries:,} queries of {data.source}"
        )
    if (line := first_true(weights < 0)) is not None:
        raise DataFormatError(f"{name}:{line + 1}: the weight {weights[line]:g} is below 0")
    if len(weights) != data.n_rows:
        weights = queries.scatter(np.repeat(np.sqrt(weights), np.diff(queries.offsets)))
    return keep_queries(data, weight=as_weights(weights, data.n_rows, name))


def parse_numbers(text: str, name: str, what: str = "number", hint: str = "") -> Array:
    """One finite number per line of a text; an error names the line, and says what is wanted."""
    lines = text.rstrip().split("\n") if text.strip() else []
    numbers = np.full(len(lines), np.nan)
    try:
        numbers[:] = list(map(float, lines))
    except ValueError:  # of which line?
        for row, line in enumerate(lines):
            with suppress(ValueError):
                numbers[row] = float(line)
    if (bad := first_true(~np.isfinite(numbers))) is not None:
        found = f"expected one {what}, got {lines[bad][:60]!r}{hint}"
        raise DataFormatError(f"{name}:{bad + 1}: {found}")
    return numbers


# ---- preferences as text: a winner and a loser per line, by row number, perhaps a weight ---------

_NUMBER = re.compile(rb"\+?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")
_MOST_DIGITS = 18  # of a row number: fits 64 bits


def load_preferences(source: Any, *, n_rows: int | None = None) -> Preferences:
    """Read preferences from text, plain or compressed.

    Every line is ``winner loser`` or ``winner loser weight``: row numbers from 0 of the data that
    the preferences speak of, and a weight >= 0, 1 if left out. What follows a ``#`` is a comment;
    lines without anything else are skipped. It is the format of CatBoost's pairs.

    Parameters
    ----------
    source : path, "-" for standard input, or binary file
        Where to read.
    n_rows : int, optional
        Rows of the data; a row beyond is an error.

    Returns
    -------
    Preferences
        With the line of each pair, for messages.

    Raises
    ------
    DataFormatError
        With file and line of the first fault.

    Examples
    --------
    >>> import io
    >>> found = load_preferences(io.BytesIO(b"4 0  # a comment\\n3 1 0.5\\n"))
    >>> found.pairs.tolist(), found.weight.tolist()
    ([[4, 0], [3, 1]], [1.0, 0.5])
    """
    text, n_lines = open_blocks(source), 0
    pairs, weights, lines = array("q"), array("d"), array("q")
    for block, _ in text.blocks:
        for line in bytes(block).removesuffix(b"\n").split(b"\n"):
            n_lines += 1
            fields = line.partition(b"#")[0].split()
            if not fields:
                continue
            try:
                winner, loser, weight = _preference(fields, n_rows)
            except ValueError as error:
                raise DataFormatError(f"{text.name}:{n_lines}: {error}") from None
            pairs.extend((winner, loser))
            weights.append(weight)
            lines.append(n_lines)
    if not lines:
        raise DataFormatError(
            f"{text.name}: no preferences; expected lines 'winner loser [weight]'"
        )
    rows: Array = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    weighing: Array = np.array(weights)
    if not weighing.any():
        raise DataFormatError(f"{text.name}: all weights are zero; at least one must be > 0")
    return Preferences(
        np.ascontiguousarray(rows[:, 0]),
        np.ascontiguousarray(rows[:, 1]),
        None if (weighing == 1.0).all() else weighing,
        lines=np.array(lines),
        source=text.name,
    )


def _preference(fields: list[bytes], n_rows: int | None) -> tuple[int, int, float]:
    """Winner, loser and weight of the fields of a line; ValueError without its place."""
    if not 2 <= len(fields) <= 3:
        raise ValueError(
            f"expected 'winner loser [weight]', got {len(fields)} "
            f"column{'s' if len(fields) > 1 else ''}"
        )
    winner, loser = _row(fields[0], "winner", n_rows), _row(fields[1], "loser", n_rows)
    if winner == loser:
        raise ValueError(f"row {winner} is compared with itself")
    if len(fields) == 2:
        return winner, loser, 1.0
    weight = float(fields[2]) if _NUMBER.fullmatch(fields[2]) else math.nan
    if not math.isfinite(weight):
        raise ValueError(f"the weight is {_quote(fields[2])}; weights are finite numbers >= 0")
    return winner, loser, weight


def _row(field: bytes, what: str, n_rows: int | None) -> int:
    if not field.isdigit():
        raise ValueError(f"the {what} is {_quote(field)}, not a row number (0, 1, 2, ...)")
    row = int(field) if len(field) <= _MOST_DIGITS else 10**_MOST_DIGITS
    if row >= (10**_MOST_DIGITS if n_rows is None else n_rows):
        limit = "" if n_rows is None else f"; the data have rows 0 to {n_rows - 1}"
        raise ValueError(f"there is no row {_quote(field)} for the {what}{limit}")
    return row


def _quote(field: bytes) -> str:
    """A field of the text for a message, cut if it is long."""
    return repr(field[:40].decode("utf-8", "replace") + ("..." if len(field) > 40 else ""))
