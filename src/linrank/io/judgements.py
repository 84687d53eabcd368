"""Files that tell of rows what their data file does not: judgements (qrels) and preferences."""

from __future__ import annotations

import math
import os
import re
from array import array
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank import _core
from linrank.data.dataset import Dataset
from linrank.data.preferences import Preferences
from linrank.data.words import Words
from linrank.errors import DataFormatError
from linrank.io.blocks import open_blocks
from linrank.io.trec import Qrels, load_qrels

Array = NDArray[Any]
UNJUDGED = ("zero", "drop", "error")


def judged(data: Dataset, qrels: Any, unjudged: str = "zero") -> Dataset:
    """Return the rows with the relevance of (query, document) as their labels.

    Ids are compared as text, letter by letter: query 7 of a file is query "7" of the judgements.

    Parameters
    ----------
    data : Dataset
        Rows with query and document ids; their labels do not matter.
    qrels : Qrels, path or mapping
        Judgements, the name of a file of them, or ``{query: {document: relevance}}``.
    unjudged : {"zero", "drop", "error"}
        What becomes of rows without a judgement: label 0, as trec_eval counts them, or left out,
        or an error that names the first.

    Raises
    ------
    ValueError
        Rows have no ids, or none of them is judged.

    Examples
    --------
    >>> from linrank.data.words import Comments
    >>> text = np.frombuffer(b"ab", np.uint8)
    >>> data = Dataset.of([[1.0], [2.0]], [0, 0], qid=[7, 7])
    >>> data = replace(data, comments=Comments(text, np.array([0, 1, 2])))
    >>> judged(data, {"7": {"b": 2}}).labels, judged(data, {"7": {"b": 2}}, "drop").X
    (array([0., 2.]), array([[2.]]))
    """
    if unjudged not in UNJUDGED:
        raise ValueError(f"unjudged must be one of {', '.join(UNJUDGED)}, got {unjudged!r}")
    table = as_qrels(qrels)
    row = _judgements(data, table)
    found = row >= 0
    if not found.any():
        raise ValueError(_nothing_in_common(data, table))
    if unjudged == "error" and not found.all():
        first = int(np.argmin(found))
        raise ValueError(
            f"{data.source}: row {first}, document {_documents(data)[first]!r} of query "
            f"{_query(data, first)!r}, is not judged in {table.source or 'the qrels'}; judge it, "
            "or choose unjudged='zero' or 'drop'"
        )
    labels = np.where(found, table.relevance[row], 0.0)
    with_labels = replace(data, labels=labels)
    return with_labels.select(found) if unjudged == "drop" and not found.all() else with_labels


def as_qrels(qrels: Any) -> Qrels:
    """Judgements as users give them."""
    if isinstance(qrels, Qrels):
        return qrels
    if isinstance(qrels, Mapping):
        return Qrels.from_dict(qrels)
    if isinstance(qrels, (str, os.PathLike)) or hasattr(qrels, "read"):
        return load_qrels(qrels)
    raise TypeError(
        "qrels must be a Qrels, the path of a file or {query: {document: relevance}}, got "
        f"{type(qrels).__name__}"
    )


def _judgements(data: Dataset, qrels: Qrels) -> Array:
    """The row of the qrels that judges each row, -1 where none does."""
    if data.qid is None:
        raise ValueError(f"{data.source}: rows have no query ids, by which judgements are found")
    queries = data.queries
    numbers = {q: i for i, q in enumerate(qrels.query_ids.tolist())}
    ids = () if queries.ids is None else queries.ids.tolist()
    of_query: Array = np.array([numbers.get(str(q), -1) for q in ids], np.int64)
    query = queries.scatter(np.repeat(of_query, np.diff(queries.offsets)))
    documents = Words.of(_documents(data))
    return _core.find_documents(
        qrels.query, qrels.docids.text, qrels.docids.offsets,
        np.ascontiguousarray(query), documents.text, documents.offsets,
    )  # fmt: skip


def _documents(data: Dataset) -> list[str]:
    found = data.docids
    if found is None:
        raise ValueError(
            f"{data.source}: rows have no document ids, by which judgements are found; text has "
            "them behind '#', tables in a column docid (or docno, doc_id)"
        )
    documents = [docid for docid in found if docid is not None]
    if len(documents) < len(found):
        row = found.index(None)
        raise ValueError(
            f"{data.source}: row {row} of query {_query(data, row)!r} has no document id, by which "
            "judgements are found"
        )
    return documents


def _query(data: Dataset, row: int) -> Any:
    return None if data.qid is None else data.qid[row : row + 1].tolist()[0]


def _nothing_in_common(data: Dataset, qrels: Qrels) -> str:
    own = f"({_query(data, 0)!s}, {_documents(data)[0]})"
    other = f"({qrels.query_ids[qrels.query[0]]}, {qrels.docids[0]})"
    return (
        f"none of the {data.n_rows} rows of {data.source}, whose first (query, document) is {own}, "
        f"is judged in {qrels.source or 'the qrels'}, whose first is {other}; the ids must be the "
        "same, letter by letter"
    )


# ---- preferences as text: a winner and a loser a line, by row number, and perhaps a weight ------

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
        *map(np.ascontiguousarray, rows.T),
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
        raise ValueError(f"the weight is {_shown(fields[2])}; weights are finite numbers >= 0")
    return winner, loser, weight


def _row(field: bytes, what: str, n_rows: int | None) -> int:
    if not field.isdigit():
        raise ValueError(f"the {what} is {_shown(field)}, not a row number (0, 1, 2, ...)")
    row = int(field) if len(field) <= _MOST_DIGITS else 10**_MOST_DIGITS
    if row >= (10**_MOST_DIGITS if n_rows is None else n_rows):
        limit = "" if n_rows is None else f"; the data have rows 0 to {n_rows - 1}"
        raise ValueError(f"there is no row {_shown(field)} for the {what}{limit}")
    return row


def _shown(field: bytes) -> str:
    """A field of the text for a message, cut if it is long."""
    return repr(field[:40].decode("utf-8", "replace") + ("..." if len(field) > 40 else ""))
