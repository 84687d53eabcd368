"""Runs as features: what several systems retrieved, side by side, for a learned fusion."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from linrank import _core
from linrank.data.dataset import Dataset
from linrank.data.rows import DenseRows
from linrank.io.trec import Run, load_run
from linrank.io.words import Comments, Words

Array = NDArray[Any]
Progress = Callable[[int, "int | None"], object]


def fused(runs: Sequence[Run], dtype: DTypeLike = "float64") -> Dataset:
    """Return all documents that any run retrieved, with the score of each run as a feature.

    A score is NaN where the run has not retrieved the document. Queries come in the order in which
    the runs name them, the documents of a query alike. Labels are 0: see
    `linrank.io.judgements.judged`. Features have the tags of the runs as names, or those of their
    files where two runs have one tag.

    Parameters
    ----------
    runs : sequence of Run
    dtype : {"float64", "float32"}
        Of the scores.

    Examples
    --------
    >>> first = Run.from_dict({"q": {"a": 3.0, "b": 2.0}})
    >>> data = fused([first, Run.from_dict({"q": {"b": 0.5}, "r": {"c": 1.0}})])
    >>> print(data.X, data.qid, data.docids)
    [[3.  nan]
     [2.  0.5]
     [nan 1. ]] ['q' 'q' 'r'] ['a', 'b', 'c']
    """
    if not runs:
        raise ValueError("there are no runs; give one or more")
    numbers: dict[str, int] = {}
    query, documents = np.empty(0, np.int64), Words(np.empty(0, np.uint8), np.zeros(1, np.int64))
    places = []
    for run in runs:
        codes = [numbers.setdefault(str(q), len(numbers)) for q in run.query_ids.tolist()]
        of_run = np.array(codes, np.int64)[run.query]
        place = _core.find_documents(
            query, documents.text, documents.offsets,
            of_run, run.docids.text, run.docids.offsets,
        )  # fmt: skip
        new = np.flatnonzero(place < 0)
        place[new] = len(query) + np.arange(len(new))
        places.append(place)
        query, documents = np.concatenate([query, of_run[new]]), _joined(documents, run.docids, new)
    scores = np.full((len(query), len(runs)), np.nan, dtype)
    for k, (place, run) in enumerate(zip(places, runs, strict=True)):
        scores[place, k] = run.scores
    order = np.argsort(query, kind="stable")
    words = documents.tolist()
    comments = Words.of(f"docid = {words[i]}" for i in order.tolist())
    return Dataset(
        DenseRows(scores[order]),
        np.zeros(len(query)),
        _ids(list(numbers))[query[order]],
        feature_names=_names(runs),
        comments=Comments(comments.text, comments.offsets),
        source=" ".join(run.source or "<run>" for run in runs),
    )


def _joined(documents: Words, others: Words, rows: Array) -> Words:
    """The words, and some of the others behind them."""
    more = Comments(others.text, others.offsets).select(rows)
    text = np.concatenate([documents.text, more.text])
    offsets = np.concatenate([documents.offsets, more.offsets[1:] + documents.offsets[-1]])
    return Words(text, offsets.astype(np.int64, copy=False))


def _ids(ids: list[str]) -> Array:
    """Query ids as text has them: integers if all are in their shortest form, else strings."""
    try:
        integers: Array = np.array([int(q) for q in ids], np.int64)
    except (ValueError, OverflowError):
        return np.array(ids, dtype=object)
    return integers if list(map(str, integers.tolist())) == ids else np.array(ids, dtype=object)


def _names(runs: Sequence[Run]) -> tuple[str, ...]:
    tags = tuple(run.tag for run in runs)
    if len(set(tags)) == len(tags):
        return tags
    stems = tuple(os.path.basename(run.source).partition(".")[0] for run in runs)
    if len(set(stems)) == len(stems) and all(stems):
        return stems
    return tuple(f"{tag} {k}" for k, tag in enumerate(tags, 1))


def is_run(source: Any, format: str | None = None) -> bool:
    """Whether this is a run of TREC, or a sequence of them: as told, or by its name."""
    if isinstance(source, (list, tuple)):
        if not source or not all(is_run(one, format) for one in source):
            raise ValueError(
                "several sources are read side by side if they are runs (.run, or format='run'); "
                "linrank.convert joins text files and tables"
            )
        return True
    name = source if isinstance(source, (str, os.PathLike)) else getattr(source, "name", "")
    stem, extension = os.path.splitext(str(name).lower())
    if extension in (".gz", ".bz2", ".xz", ".zst"):
        extension = os.path.splitext(stem)[1]
    if extension == ".qrels" and format is None:
        raise ValueError(
            f"{name}: holds judgements, not rows; give the rows, and these as their qrels"
        )
    return format == "run" or (format is None and extension == ".run")


def load_runs(source: Any, dtype: DTypeLike | None, progress: Progress | None) -> Dataset:
    """The documents of one run or several, as `fused` brings them together."""
    sources = source if isinstance(source, (list, tuple)) else [source]
    runs = [load_run(one, progress=progress) for one in sources]
    return fused(runs, "float64" if dtype is None else dtype)


def retrieved(data: Dataset, missing: str) -> Dataset:
    """Fill in the scores of documents that a run has not retrieved, or fail on the first.

    With ``missing="keep"`` they stay NaN.
    """
    row, column = np.nonzero(np.isnan(data.rows.values))
    if missing == "error" and len(row) and data.docids is not None and data.qid is not None:
        name = "" if data.feature_names is None else repr(data.feature_names[column[0]])
        raise ValueError(
            f"{data.source}: the run {name} has not retrieved document "
            f"{data.docids[row[0]]!r} of query {data.qid[row[0]]}; say what stands in for its "
            "score with missing='zero', 'mean' or 'indicator'"
        )
    return data.filled(missing)
