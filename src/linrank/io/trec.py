"""TREC files: judgments (qrels) and runs, read, held, written, and as labels."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, ClassVar, TypeVar

import numpy as np

from linrank import _core
from linrank.data import Array, Dataset, Words, as_ids, first_true
from linrank.errors import DataFormatError, check_one_of
from linrank.io.blocks import Progress, open_blocks

_BLOCK = 1 << 14  # lines formatted at a time


def qrels_lines(qid: Iterable[str], docids: Iterable[str], relevance: Array) -> Iterator[str]:
    """Blocks of ``qid 0 docid relevance``; whole numbers are written without a point."""
    rows = zip(qid, docids, relevance.tolist(), strict=True)
    lines = (f"{q} 0 {d} {int(v) if v.is_integer() else repr(v)}\n" for q, d, v in rows)
    return _blocks(lines)


def run_lines(
    query: Array,
    query_ids: Sequence[Any] | Array,
    docids: Sequence[str],
    scores: Array,
    tag: str,
    topk: int | None = None,
) -> Iterator[str]:
    """Blocks of ``qid Q0 docid rank score tag``: queries by number, each by falling score.

    Of each query the best ``topk`` documents, or all.
    """
    order = np.lexsort((-scores, query))  # stable: equal scores stay in the order of the rows
    ranked = query[order]
    first = np.searchsorted(ranked, np.arange(len(query_ids)))
    ranks = np.arange(1, len(order) + 1) - first[ranked]
    if topk is not None:
        order, ranked, ranks = (a[ranks <= topk] for a in (order, ranked, ranks))
    columns = (ranked, order, ranks, scores[order])
    rows = zip(*(column.tolist() for column in columns), strict=True)
    lines = (
        f"{query_ids[q]} Q0 {docids[row]} {rank} {score!r} {tag}\n" for q, row, rank, score in rows
    )
    return _blocks(lines)


def _blocks(lines: Iterator[str]) -> Iterator[str]:
    while block := "".join(islice(lines, _BLOCK)):
        yield block


_Table = TypeVar("_Table", bound="_Documents")


@dataclass(frozen=True, eq=False)
class _Documents:
    """What judgments and runs share: a query, a document and a number in each row."""

    is_run: ClassVar[bool]

    query: Array
    query_ids: Array
    docids: Words
    values: Array
    source: str = ""
    lines: Array | None = field(default=None, repr=False)

    @property
    def n_rows(self) -> int:
        """Number of lines."""
        return len(self.query)

    @property
    def n_queries(self) -> int:
        """Number of different queries."""
        return len(self.query_ids)

    @property
    def qid(self) -> Array:
        """Query of each row, as an object array of strings."""
        return self.query_ids[self.query]

    def numbers_of(self, ids: Iterable[str]) -> Array:
        """The numbers of these queries, -1 of those that do not occur."""
        numbers = {q: i for i, q in enumerate(self.query_ids.tolist())}
        return np.array([numbers.get(q, -1) for q in ids], np.int64)

    def find(self, query: Array, docids: Words) -> Array:
        """The row of each document of a query, given by its number; -1 where there is none."""
        query = np.ascontiguousarray(query)
        return _core.find_documents(self.query, self.docids.core, query, docids.core)

    def to_dict(self) -> dict[str, dict[str, float]]:
        """Return ``{query: {document: number}}``, as pytrec_eval, ir_measures and ranx take it."""
        found: dict[str, dict[str, float]] = {str(q): {} for q in self.query_ids}
        by_query = list(found.values())
        rows = zip(self.query.tolist(), self.docids.tolist(), self.values.tolist(), strict=True)
        for query, docid, value in rows:
            by_query[query][docid] = value
        return found

    @classmethod
    def of_user(cls: type[_Table], given: Any) -> _Table:
        """What users give: the rows themselves, the name of a file of them, or a mapping."""
        if isinstance(given, cls):
            return given
        if isinstance(given, Mapping):
            return cls.from_dict(given)
        if isinstance(given, (str, os.PathLike)) or hasattr(given, "read"):
            return cls.of_file(given)
        name = cls.__name__
        raise TypeError(
            f"{name.lower()} must be a {name}, the path of a file or {{query: {{document: "
            f"number}}}}, got {type(given).__name__}"
        )

    @classmethod
    def of_file(cls: type[_Table], source: Any, progress: Progress | None = None) -> _Table:
        """The rows of a file."""
        text = open_blocks(source)
        reader = _core.TrecReader(cls.is_run)
        for block, done in text.blocks:
            fault = reader.read(np.frombuffer(block, np.uint8))
            if fault is not None:
                raise DataFormatError(f"{text.name}:{fault[0]}: {fault[1]}")
            if progress is not None:
                progress(done, text.size)
        query, ids_as_words, documents, values, lines, tag = reader.take()
        if len(values) == 0:
            form = "qid Q0 docid rank score tag" if cls.is_run else "qid iteration docid relevance"
            raise DataFormatError(f"{text.name}: no line with data; expected lines '{form}'")
        ids = np.array(Words(*ids_as_words).tolist("backslashreplace"), dtype=object)
        own = (tag.decode("utf-8", "backslashreplace"),) if cls.is_run else ()
        columns = (query, ids, Words(*documents), values, text.name, lines)
        return _unique(cls(*columns, *own))

    @classmethod
    def from_dict(cls: type[_Table], table: Mapping[Any, Mapping[Any, float]]) -> _Table:
        """Return the rows of ``{query: {document: number}}``."""
        if not isinstance(table, Mapping) or not all(
            isinstance(documents, Mapping) for documents in table.values()
        ):
            raise TypeError(f"expected {{query: {{document: number}}}}, got {type(table).__name__}")
        qid = [str(q) for q, documents in table.items() for _ in documents]
        docid = [str(d) for documents in table.values() for d in documents]
        return cls.of(qid, docid, [v for documents in table.values() for v in documents.values()])

    @classmethod
    def of(cls: type[_Table], qid: Any, docid: Any, values: Any) -> _Table:
        """Return rows of columns: one query, document and number each."""
        numbers = np.ascontiguousarray(values, dtype=np.float64)
        what = cls.__name__
        if numbers.ndim != 1:
            raise ValueError(f"{what} needs one number per row, got shape {numbers.shape}")
        words = [str(d) for d in docid]
        if len(words) != len(numbers):
            raise ValueError(f"{what} has {len(words)} documents but {len(numbers)} numbers")
        if (row := first_true(~np.isfinite(numbers))) is not None:
            raise ValueError(f"{what} has {numbers[row]} at row {row}; numbers must be finite")
        ids = np.array([str(q) for q in as_ids(qid, len(numbers)).tolist()], dtype=object)
        for name, column in (("qid", ids), ("docid", words)):
            check_words(column, name)
        codes: dict[str, int] = {}
        query = np.array([codes.setdefault(q, len(codes)) for q in ids], dtype=np.int64)
        return _unique(cls(query, np.array(list(codes), dtype=object), Words.of(words), numbers))


@dataclass(frozen=True, eq=False)
class Qrels(_Documents):
    """Judgments: how relevant a document is to a query.

    Made by `load_qrels`, from columns by ``Qrels.of(qid, docid, relevance)`` or from
    ``{query: {document: relevance}}`` by ``Qrels.from_dict``.

    Attributes
    ----------
    query : int64 array (n_rows,)
        Number of the query of each row.
    query_ids : object array (n_queries,)
        Ids of the queries, strings, by first appearance.
    docids : Words
        Document of each row; ``docids.tolist()`` are strings.
    values : float64 array (n_rows,)
        Relevance of each row.
    source : str
        The file, for messages.
    lines : int64 array (n_rows,) or None
        Line of each row.
    """

    is_run = False

    @property
    def relevance(self) -> Array:
        """Relevance of each row."""
        return self.values


@dataclass(frozen=True, eq=False)
class Run(_Documents):
    """What a system retrieved: documents of each query, with scores.

    Made by `load_run`, from columns by ``Run.of(qid, docid, scores)`` or from
    ``{query: {document: score}}`` by ``Run.from_dict``. Ranks are not kept: as in trec_eval, the
    scores alone decide.

    Attributes
    ----------
    query, query_ids, docids, source, lines
        As in `Qrels`.
    values : float64 array (n_rows,)
        Score of each row.
    tag : str
        Name of the run.
    """

    is_run = True

    tag: str = "linrank"

    @property
    def scores(self) -> Array:
        """Score of each row."""
        return self.values


def load_qrels(source: Any, *, progress: Progress | None = None) -> Qrels:
    """Read judgments: lines ``qid iteration docid relevance``.

    Columns are separated by blanks or tabs; the second one is not looked at; relevance is a finite
    number (a file may judge with -1 what is spam). Lines of a query need not come together. Blank
    lines are skipped.

    Parameters
    ----------
    source : path, "-" or binary file object
        ``"-"`` is standard input. gzip, bzip2, xz and Zstandard are recognized by content.
    progress : callable, optional
        Called as ``progress(bytes_done, bytes_total or None)`` after each block.

    Raises
    ------
    DataFormatError
        A line is not of that form, or judges a document of a query again; the message names file
        and line.

    Examples
    --------
    >>> import io
    >>> qrels = load_qrels(io.BytesIO(b"301 0 FR-1 2\\n301 0 FR-2 0\\n302 0 FR-1 1\\n"))
    >>> qrels.to_dict()
    {'301': {'FR-1': 2.0, 'FR-2': 0.0}, '302': {'FR-1': 1.0}}
    """
    return Qrels.of_file(source, progress)


def load_run(source: Any, *, progress: Progress | None = None) -> Run:
    """Read a run: lines ``qid Q0 docid rank score tag``.

    The second column and the rank are not looked at: scores decide, as in trec_eval. The tag is
    that of the first line. For the rest see `load_qrels`.

    Examples
    --------
    >>> import io
    >>> run = load_run(io.BytesIO(b"301 Q0 FR-2 1 9.5 mine\\n301 Q0 FR-1 2 7 mine\\n"))
    >>> run.tag, run.docids.tolist(), run.scores
    ('mine', ['FR-2', 'FR-1'], array([9.5, 7. ]))
    """
    return Run.of_file(source, progress)


def write_qrels(target: Any, qrels: Qrels) -> None:
    """Write judgments as ``qid 0 docid relevance``, in the order of their rows.

    Parameters
    ----------
    target : path or text file object
        Where to write.
    qrels : Qrels
        What to write.
    """
    _write(target, qrels_lines(qrels.qid, qrels.docids.tolist(), qrels.relevance))


def write_run(target: Any, run: Run) -> None:
    """Write a run as ``qid Q0 docid rank score tag``, for each query by falling score.

    Scores are written so that they read back as the same bits; equal ones stay in the order of
    the rows.

    Parameters
    ----------
    target : path or text file object
        Where to write.
    run : Run
        What to write.
    """
    check_words([run.tag], "tag")
    _write(target, run_lines(run.query, run.query_ids, run.docids.tolist(), run.scores, run.tag))


def _write(target: Any, blocks: Iterator[str]) -> None:
    if hasattr(target, "write"):
        for block in blocks:
            target.write(block)
        return
    from linrank.io.write import open_output

    with open_output(os.fspath(target)) as file:
        for block in blocks:
            file.write(block.encode("utf-8", "surrogateescape"))


def _unique(table: _Table) -> _Table:
    """The table itself, if no query has a document twice."""
    found = _core.repeated_document(table.query, table.docids.core)
    if found is None:
        return table
    row, earlier = found
    name = f"document {table.docids[row]!r} of query {table.query_ids[table.query[row]]!r}"
    if table.lines is None:
        raise ValueError(f"{name} is in row {row} and in row {earlier}; it must come once")
    line, before = table.lines[[row, earlier]].tolist()
    raise DataFormatError(f"{table.source}:{line}: {name} was given in line {before} already")


def check_words(words: Iterable[str], name: str) -> None:
    """A word with a blank, or none, would shift the columns of a file."""
    for word in words:
        if len(word.split()) != 1 or word.split()[0] != word:
            raise ValueError(
                f"{name} {word!r} must be one word: TREC files separate columns by blanks; rename "
                "it, or write a table (.csv, .parquet)"
            )


# ---- data sets with the labels of judgments ----------------------------------------------------

UNJUDGED = ("zero", "drop", "error")


def label_by_qrels(data: Dataset, qrels: Any, unjudged: str = "zero") -> Dataset:
    """Return the rows with the relevance of (query, document) as their labels.

    Ids are compared as text, letter by letter: query 7 of a file is query "7" of the judgments.

    Parameters
    ----------
    data : Dataset
        Rows with query and document ids; their labels do not matter.
    qrels : Qrels, path or mapping
        Judgments, the name of a file of them, or ``{query: {document: relevance}}``.
    unjudged : {"zero", "drop", "error"}
        What becomes of rows without a judgment: label 0, as trec_eval counts them, or left out,
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
    >>> label_by_qrels(data, {"7": {"b": 2}}).labels
    array([0., 2.])
    >>> label_by_qrels(data, {"7": {"b": 2}}, "drop").X
    array([[2.]])
    """
    check_one_of("unjudged", unjudged, UNJUDGED)
    table = Qrels.of_user(qrels)
    row = _judgments(data, table)
    found = row >= 0
    if not found.any():
        raise ValueError(_nothing_in_common(data, table))
    if unjudged == "error" and (first := first_true(~found)) is not None:
        raise ValueError(
            f"{data.source}: row {first}, document {_documents(data)[first]!r} of query "
            f"{_query(data, first)!r}, is not judged in {table.source or 'the qrels'}; judge it, "
            "or choose unjudged='zero' or 'drop'"
        )
    labels = np.where(found, table.relevance[row], 0.0)
    with_labels = replace(data, labels=labels)
    return with_labels.select(found) if unjudged == "drop" and not found.all() else with_labels


def _judgments(data: Dataset, qrels: Qrels) -> Array:
    """The row of the qrels that judges each row, -1 where none does."""
    if data.qid is None:
        raise ValueError(f"{data.source}: rows have no query ids, by which judgments are found")
    queries = data.queries
    ids = () if queries.ids is None else queries.ids.tolist()
    number = qrels.numbers_of(map(str, ids))
    return qrels.find(number[queries.query_of_rows()], Words.of(_documents(data)))


def _documents(data: Dataset) -> list[str]:
    found = data.docids
    if found is None:
        raise ValueError(
            f"{data.source}: rows have no document ids, by which judgments are found; text has "
            "them behind '#', tables in a column docid (or docno, doc_id)"
        )
    documents = [docid for docid in found if docid is not None]
    if len(documents) < len(found):
        row = found.index(None)
        raise ValueError(
            f"{data.source}: row {row} of query {_query(data, row)!r} has no document id, by which "
            "judgments are found"
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
