"""Query ids of a stream as 64-bit numbers, the same in every process and without a table."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank.data.queries import as_ids

__all__ = ["numbers_of_ids", "numbers_of_tokens"]

Numbers = NDArray[np.int64]
_INTEGER = re.compile(rb"0|-?[1-9][0-9]{0,18}")


def numbers_of_ids(qid: Any, n_rows: int) -> Numbers:
    """Return one number for each id: integers are themselves, anything else is hashed.

    A table of all ids would grow with the stream, and Python's own hash changes from process to
    process, so a checkpoint could not go on. Two ids of a buffer of a million queries share a
    number with a probability of 3·10⁻⁸; they would then count as one query.

    Parameters
    ----------
    qid : array (n_rows,) of any hashable type, or None
        None: all rows are of one query.
    n_rows : int
        Number of rows.

    Examples
    --------
    >>> numbers = numbers_of_ids(["a", "b", "a"], 3)
    >>> print(numbers_of_ids([7, 9, 7], 3), numbers == numbers[0])
    [7 9 7] [ True False  True]
    """
    if qid is None:
        return np.zeros(n_rows, np.int64)
    ids = as_ids(qid, n_rows)
    if ids.dtype.kind in "biu":
        return np.ascontiguousarray(ids).astype(np.int64, copy=False)
    heads = np.arange(n_rows)
    if ids.dtype.kind in "USf":  # a run of one id is hashed once
        heads = np.flatnonzero(np.concatenate([[True], ids[1:] != ids[:-1]])[:n_rows])
    numbers = np.array([_number(id_, row) for id_, row in _listed(ids, heads)], dtype=np.int64)
    return np.repeat(numbers, np.diff(np.append(heads, n_rows)))


def _listed(ids: NDArray[Any], rows: NDArray[Any]) -> Iterable[tuple[Hashable, int]]:
    return zip(ids[rows].tolist(), rows.tolist(), strict=True)


def _number(id_: Hashable, row: int) -> int:
    if id_ is None or id_ != id_ or type(id_).__name__ in ("NAType", "NaTType"):
        raise ValueError(f"qid of row {row} is missing; every row belongs to a query")
    if isinstance(id_, float) and id_.is_integer():
        id_ = int(id_)
    if isinstance(id_, (int, np.integer)) and -(2**63) <= id_ < 2**63:
        return int(id_)
    if isinstance(id_, bytes):
        return _hash(b"bytes " + id_)
    return _hash(f"{type(id_).__name__} {id_!r}".encode("utf-8", "surrogatepass"))


def numbers_of_tokens(tokens: list[bytes]) -> Numbers:
    """The same for ids as they are written in a file: integers are themselves."""
    return np.array([_number_of_token(token) for token in tokens], dtype=np.int64)


def _number_of_token(token: bytes) -> int:
    if _INTEGER.fullmatch(token) and -(2**63) <= int(token) < 2**63:
        return int(token)
    return _hash(b"token " + token)


def _hash(text: bytes) -> int:
    digest = hashlib.blake2b(text, digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True)
