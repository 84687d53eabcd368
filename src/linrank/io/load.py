"""load: a data set from text, tables, frames, TREC files, or a store."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import DTypeLike

from linrank.choices import MISSING
from linrank.data.dataset import Dataset
from linrank.errors import check_one_of
from linrank.io.blocks import Progress, open_blocks
from linrank.io.formats import open_rows, parquet_parts
from linrank.io.roles import IF_PRESENT, Choice, TableOptions
from linrank.io.sidecars import attach
from linrank.io.svmlight import ReadingOptions, read_blocks
from linrank.io.trec import label_by_qrels
from linrank.system import recover, resolve

Note = Callable[[str], object]


def load(
    source: Any,
    *,
    format: str | None = None,
    label: Choice = None,
    qid: Choice = None,
    docid: Choice = None,
    weight: Choice = None,
    position: Choice = None,
    features: str | Sequence[str] | None = None,
    dtype: DTypeLike | None = None,
    storage: Literal["auto", "dense", "csr"] = "auto",
    n_features: int | None = None,
    zero_based: Literal["auto"] | bool = "auto",
    missing: Literal["error", "zero", "mean", "indicator", "keep"] = "error",
    sidecars: bool = True,
    qrels: Any = None,
    unjudged: Literal["zero", "drop", "error"] = "zero",
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> Dataset:
    """Read a data set from a table, a frame, SVMlight/LETOR text, or a store.

    **Tables**: Parquet, Arrow IPC (files and streams), CSV and TSV with a header line, and frames
    of pandas, polars and pyarrow. Each column has a role, by its name in any case or as given:

    ========  =================================================================
    label     label, y, relevance, rel, grade, target
    qid       qid, query_id, group, group_id, query; without one, one query
    docid     docid, doc_id, docno, document_id, doc_url, url, product_id, item_id, ...
    weight    sample_weight
    position  position
    features  a list or vector column named ``features``, else all other numbers
    ========  =================================================================

    A column ``weight`` or ``rank`` is an error until it is said what it is. Ids, times and indexes
    (``user_id``, ``timestamp``, ``index``) are left out with a warning, unless ``features`` names
    them. The role of every column, and what is left out and why, is logged (INFO). Query ids are
    numbers, strings or categories, in any order of rows.

    **Text**: each line is ``label qid:id index:value ... # comment``. Labels are real numbers;
    ``label:weight`` gives a row a weight (1 where it is missing); ids are any tokens, in any order
    of rows; without ids all rows are one query. Indices increase within a line; what is not given
    is 0. Numbers are rounded as by Python's ``float``, then to ``dtype``.

    **Stores**: a folder is taken for a store, as ``linrank convert`` writes it: all of it is
    compared with its checksums. What says how to read text or tables does not apply to it and is
    refused. ``linrank.Store`` reads one chunk by chunk.

    Parameters
    ----------
    source : path, "-", binary file object, or frame
        A file, ``"-"`` for standard input, the folder of a store or of Parquet files, or a table
        of pandas, polars or pyarrow. gzip, bzip2, xz and Zstandard are recognized by content.
    format : {"svmlight", "parquet", "arrow", "csv", "tsv"}, optional
        By default Parquet and Arrow are known by their first bytes, CSV and TSV by the end of the
        name (``.csv``, ``.tsv``, ``.tab``, also compressed); all else is SVMlight text.
    label, qid, docid, weight, position : str or False, optional
        The column of a table with this role; False where there is none: no label is 0 everywhere.
    features : str or sequence of str, optional
        The columns of a table that are features, in this order: names, patterns such as ``"bm25*"``
        and exceptions such as ``"!price"``; one string may hold several with commas. A column of
        lists or of Spark's vectors must be the only one. ``features=model.feature_names`` selects
        what a model knows.
    dtype : {"float32", "float64"}, optional
        Type of the feature values: by default float32 for text and CSV, and for tables float32 if
        no feature is float64 or integer, else float64. Labels and weights are float64. A store has
        its own, which this must equal where it is given.
    storage : {"auto", "dense", "csr"}, default="auto"
        ``"auto"`` takes the smaller of the two for text and vectors: dense if
        ``n_rows·n_features·itemsize <= n_entries·(itemsize + 4)``; other tables are dense.
        ``rows.describe()`` tells which.
    n_features : int, optional
        Number of columns; by default as many as the largest index asks for. An index beyond it is
        an error. Give it for test data that may lack the last features.
    zero_based : {"auto", True, False}, default="auto"
        Of text: whether feature 0 is the first column, or feature 1. ``"auto"``: 0 if the file has
        it.
    missing : {"error", "zero", "mean", "indicator", "keep"}, default="error"
        What happens to missing values (null, NaN, an empty field of CSV), as in
        :meth:`Dataset.of`; a model that is trained on the data scores by the same policy. SVMlight
        text has none: what a line leaves out is 0.
    sidecars : bool, default=True
        Whether files beside a text are read: ``NAME.query`` or ``NAME.group`` (rows of each query,
        one number per line), ``NAME.weight`` (a weight for each row, or for each query: of its
        pairs) and ``NAME.position``.
    qrels : path, Qrels or mapping, optional
        Judgments ``qid iteration docid relevance`` that give the labels, by query and document.
    unjudged : {"zero", "drop", "error"}, default="zero"
        What becomes of rows without a judgment: label 0, left out, or an error.
    n_jobs : int, optional
        Threads; None uses all cores.
    progress : callable, optional
        Called as ``progress(bytes_done, bytes_total or None)`` after each block.

    Returns
    -------
    Dataset
        With ``docids`` if the file has any, and ``feature_names`` if each feature is a column.

    Raises
    ------
    DataFormatError
        The contents are not as described; the message names file, line or row, and column of the
        first fault, or the file and the chunk.
    ValueError
        It is not clear which column is what; the message names the columns and the remedy.
    MemoryError
        The matrix would not fit; it is not allocated then.

    Examples
    --------
    >>> import io
    >>> data = load(io.BytesIO(b"2 qid:7 1:0.5 3:1 # docid = a\\n0 qid:7 2:2 3:4 # docid = b\\n"))
    >>> print(data.rows.describe(), data.qid, data.docids)
    dense float32, 2 × 3 [7 7] ['a', 'b']
    >>> table = io.BytesIO(b"qid,rel,bm25,clicks\\n7,2,0.5,3\\n7,0,0.25,1\\n")
    >>> data = load(table, format="csv")
    >>> print(data.y, data.qid, data.feature_names)
    [2. 0.] [7 7] ('bm25', 'clicks')
    """
    data = read(
        source,
        TableOptions(label, qid, docid, weight, position, features),
        note=log_note,
        format=format,
        dtype=dtype,
        storage=storage,
        n_features=n_features,
        zero_based=zero_based,
        missing=missing,
        sidecars=sidecars,
        qrels=qrels,
        unjudged=unjudged,
        n_jobs=n_jobs,
        progress=progress,
    )
    if zero_based != "auto" and data.index_base is None and not is_folder(source):
        raise ValueError(
            f"zero_based={zero_based} is for text, and the features of {data.source} are columns; "
            "leave it out"
        )
    return data


def log_note(text: str) -> None:
    """Log what the user should know."""
    import logging  # here: it would slow down the start of every command

    logging.getLogger(__name__).info("%s", text)


def read(
    source: Any,
    options: TableOptions,
    *,
    note: Note,
    format: str | None = None,
    missing: str = "error",
    qrels: Any = None,
    unjudged: str = "zero",
    sidecars: bool = True,
    zero_based: Any = "auto",
    progress: Progress | None = None,
    n_jobs: int | None = None,
    **how: Any,
) -> Dataset:
    """As `load`; ``note`` gets what the user should know, such as columns that are left out.

    ``how`` holds dtype, storage and n_features. ``zero_based`` does not matter for what has named
    columns.
    """
    check_one_of("missing", missing, (*MISSING, "keep"))
    if isinstance(source, (list, tuple)):
        raise ValueError("give one source; linrank.convert joins several text files or tables")
    # With judgments, what stands in for missing values is learned from the rows that stay.
    early = missing if qrels is None or missing == "error" else "keep"
    n_threads = resolve(n_jobs)
    if is_folder(source):
        _refuse(options, format, f"{os.fspath(source)} is a folder, and so a store")
        data = _load_store(source, zero_based=zero_based, n_jobs=n_jobs, **how)
    else:
        opened, kind = open_rows(source, format)
        form = ReadingOptions.of(zero_based=zero_based, **how)
        if kind == "svmlight":
            what = f"{opened[1]} is SVMlight text (else say with format= what it is)"
            _refuse(options, None, what)
            data = read_blocks(open_blocks(opened[0]), form, n_threads, progress)
        else:
            from linrank.io.table_files import open_table
            from linrank.io.table_reader import TableReader

            if qrels is not None and options.label is None:
                options = replace(options, label=IF_PRESENT)  # it does not matter
            table = open_table(*opened, kind, n_threads)
            data = TableReader(table, options, form, early, n_threads, progress, note).dataset()
        is_path = isinstance(source, (str, os.PathLike))
        if sidecars and is_path and kind in ("svmlight", "csv", "tsv"):
            data = attach(data, source, note)
    data = data.fill(early)
    return data if qrels is None else label_by_qrels(data, qrels, unjudged).fill(missing)


def _refuse(options: TableOptions, format: str | None, what: str) -> None:
    """Fail on options that name columns of what has none."""
    given = [*options.given_names(), *(["format"] if format is not None else [])]
    if given:
        raise ValueError(f"{given[0]}= is for tables, and {what}; leave it out")


def is_folder(source: Any) -> bool:
    """Whether this is the path of a folder that is no table, and so of a store."""
    if not isinstance(source, (str, os.PathLike)) or source == "-":
        return False
    recover(source)
    if not os.path.isdir(source):
        return False
    return not parquet_parts(source)


def _load_store(
    path: Any, dtype: Any, storage: Any, n_features: Any, zero_based: Any, n_jobs: int | None
) -> Dataset:
    from linrank.io.store.store import Store

    store = Store(path)
    base = "auto" if zero_based == "auto" else 0 if zero_based else 1
    found = (
        ("dtype", dtype, store.dtype.name, dtype is None or np.dtype(dtype) == store.dtype),
        ("storage", storage, store.storage, storage in ("auto", store.storage)),
        ("n_features", n_features, store.n_features, n_features in (None, store.n_features)),
        ("zero_based", zero_based, store.index_base == 0, base in ("auto", store.index_base)),
    )
    for name, wanted, own, agrees in found:
        # A store that was not made of text has columns without a base: any will do.
        if not agrees and (name != "zero_based" or store.index_base is not None):
            raise ValueError(
                f"{store.path} is a store with {name}={own!r}, which {name}={wanted!r} "
                f"cannot change; leave {name} out, or convert the text again with it"
            )
    return store.dataset(n_jobs=n_jobs)
