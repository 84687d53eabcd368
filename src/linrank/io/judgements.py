"""Rows that get their labels from judgements (qrels), by query and document."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank import _core
from linrank.data.dataset import Dataset
from linrank.io.comments import Words
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
    >>> from linrank.io.comments import Comments
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
