"""load: a data set from text, or from a store."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from linrank.data.dataset import Dataset

__all__ = ["is_folder", "load"]


def load(
    source: Any,
    *,
    dtype: DTypeLike | None = None,
    storage: Literal["auto", "dense", "csr"] = "auto",
    n_features: int | None = None,
    zero_based: Literal["auto"] | bool = "auto",
    missing: Literal["error", "zero", "mean", "indicator", "keep"] = "error",
    n_jobs: int | None = None,
    progress: Callable[[int, int | None], object] | None = None,
) -> Dataset:
    """Read a data set from SVMlight/LETOR text, or map a store.

    Each line of text is ``label qid:id index:value ... # comment``. Labels are real numbers;
    ``label:weight`` gives a row a weight (1 where it is missing); ids are any tokens, in any order
    of rows; without ids all rows are one query. Indices increase within a line; what is not given
    is 0. Numbers are rounded as by Python's ``float``, then to ``dtype``.

    A folder is taken for a store, as ``linrank convert`` writes it: all of it is compared with its
    checksums and mapped, not copied. What says how to read text does not apply to it and is
    refused. ``linrank.Store`` reads one chunk by chunk.

    Parameters
    ----------
    source : path, "-" or binary file object
        A file, ``"-"`` for standard input, or the folder of a store. gzip, bzip2, xz and Zstandard
        are told by their first bytes.
    dtype : {"float32", "float64"}, optional
        Type of the feature values of text, float32 by default; labels and weights are float64. A
        store has its own, which this must equal where it is given.
    storage : {"auto", "dense", "csr"}, default="auto"
        ``"auto"`` takes the smaller of the two: dense if
        ``n_rows·n_features·itemsize <= n_entries·(itemsize + 4)``. ``rows.describe()`` tells which.
    n_features : int, optional
        Number of columns; by default as many as the largest index asks for. An index beyond it is
        an error. Give it for test data that may lack the last features.
    zero_based : {"auto", True, False}, default="auto"
        Whether feature 0 is the first column, or feature 1. ``"auto"``: 0 if the file has it.
    missing : {"error", "zero", "mean", "indicator", "keep"}, default="error"
        What happens to missing values, as in :meth:`Dataset.of`; a model that is trained on the
        data scores by the same policy. Text has none: what a line leaves out is 0.
    n_jobs : int, optional
        Threads; None uses all cores.
    progress : callable, optional
        Called as ``progress(bytes_done, bytes_total or None)`` after each block of text.

    Returns
    -------
    Dataset
        With ``comments`` (and so ``docids``) if the file has any.

    Raises
    ------
    DataFormatError
        The text or the store is not as described; the message names file, line and column of the
        first fault, or the file and the chunk.
    MemoryError
        The matrix would not fit; it is not allocated then.

    Examples
    --------
    >>> import io
    >>> data = load(io.BytesIO(b"2 qid:7 1:0.5 3:1 # docid = a\\n0 qid:7 2:2 3:4 # docid = b\\n"))
    >>> print(data.rows.describe(), data.qid, data.docids)
    dense float32, 2 × 3 [7 7] ['a', 'b']
    """
    if is_folder(source):
        return _load_store(source, dtype, storage, n_features, zero_based, n_jobs).filled(missing)
    from linrank.data import svmlight

    data = svmlight.load(
        source,
        dtype="float32" if dtype is None else dtype,
        storage=storage,
        n_features=n_features,
        zero_based=zero_based,
        n_jobs=n_jobs,
        progress=progress,
    )
    return data.filled(missing)


def is_folder(source: Any) -> bool:
    """Whether this is the path of a folder, and so of a store."""
    return isinstance(source, (str, os.PathLike)) and source != "-" and os.path.isdir(source)


def _load_store(
    path: Any, dtype: Any, storage: Any, n_features: Any, zero_based: Any, n_jobs: int | None
) -> Dataset:
    import numpy as np

    from linrank.store.store import Store

    store = Store(path)
    found = {
        "dtype": (dtype, None if dtype is None else np.dtype(dtype) == store.dtype),
        "storage": (storage, storage in ("auto", store.storage)),
        "n_features": (n_features, n_features in (None, store.n_features)),
        "zero_based": (
            zero_based,
            zero_based == "auto" or store.index_base in (None, 0 if zero_based else 1),
        ),
    }
    own = {
        "dtype": store.dtype.name,
        "storage": store.storage,
        "n_features": store.n_features,
        "zero_based": store.index_base == 0,
    }
    for name, (wanted, agrees) in found.items():
        if agrees is False:
            raise ValueError(
                f"{store.path} is a store with {name}={own[name]!r}, which {name}={wanted!r} "
                f"cannot change; leave {name} out, or convert the text again with it"
            )
    return store.dataset(n_jobs=n_jobs)
