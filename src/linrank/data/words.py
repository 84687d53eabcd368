"""Words of a file, one per row, kept as one text: a fifth of the memory of Python strings."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar, TypeVar

import numpy as np

from linrank.data.rows import Array, join_offsets, take_spans

_Words = TypeVar("_Words", bound="Words")


@dataclass(frozen=True, eq=False)
class Words:
    """Word ``i`` is ``text[offsets[i]:offsets[i+1]]``, in UTF-8.

    Attributes
    ----------
    text : uint8 array
        All words one after another.
    offsets : int64 array (n_words + 1,)
        Where each begins.
    """

    text: Array
    offsets: Array
    _errors: ClassVar[str] = "surrogateescape"

    @classmethod
    def of(cls: type[_Words], words: Iterable[str]) -> _Words:
        """From strings.

        Examples
        --------
        >>> Words.of(["a", "bc"]).tolist()
        ['a', 'bc']
        """
        encoded = [word.encode("utf-8", "surrogateescape") for word in words]
        sizes = np.fromiter(map(len, encoded), np.int64, len(encoded))
        text = np.frombuffer(b"".join(encoded), np.uint8)
        return cls(text, np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64))

    @classmethod
    def join(cls: type[_Words], parts: Sequence[Words]) -> _Words:
        """All words of the parts."""
        texts = [part.text[part.offsets[0] : part.offsets[-1]] for part in parts]
        return cls(np.concatenate(texts), join_offsets([part.offsets for part in parts]))

    @property
    def core(self) -> tuple[Array, Array]:
        """As functions of the core take words."""
        return self.text, self.offsets

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, i: int) -> str:
        """The word of row ``i``; bytes that are no UTF-8 come back as they were when written."""
        if not -len(self) <= i < len(self):
            raise IndexError(f"row {i} of {len(self)} rows")
        i %= len(self)
        text: bytes = self.text[self.offsets[i] : self.offsets[i + 1]].tobytes()
        return text.decode("utf-8", self._errors)

    def docid(self, i: int) -> str | None:
        """The document of row ``i``, where the words are those; an empty one is none."""
        return self[i] or None

    def select(self: _Words, index: Any) -> _Words:
        """Return the words of the rows of ``index`` (integers, a boolean mask or a slice).

        Examples
        --------
        >>> Words.of(["a", "bc", "d"]).select([2, 1]).tolist()
        ['d', 'bc']
        """
        offsets, text = take_spans(self.offsets, index, self.text)
        return type(self)(text, offsets)

    def tolist(self, errors: str = "surrogateescape") -> list[str]:
        """All words; ``errors`` as in ``bytes.decode``."""
        text, ends = self.text.tobytes(), self.offsets.tolist()
        if text.isascii():  # then a place in the bytes is a place in the string
            whole = text.decode("ascii")
            return [whole[a:b] for a, b in pairwise(ends)]
        parts = (text[a:b] for a, b in pairwise(ends))
        return [part.decode("utf-8", errors) for part in parts]


def as_integers(words: list[str]) -> Array | None:
    """The integers that words are, as str() writes them and of 64 bits; None if one is none."""
    try:
        integers: Array = np.array([int(word) for word in words], np.int64)
    except (ValueError, OverflowError):
        return None
    return integers if list(map(str, integers.tolist())) == words else None


_DOCID = re.compile(r"\bdocid\s*=\s*(\S+)")


class Comments(Words):
    """One comment per row, without '#' and the blanks around it; "" where a row has none.

    Bytes that are no UTF-8 appear as \\xNN.
    """

    _errors = "backslashreplace"

    def docid(self, i: int) -> str | None:
        """The document of row ``i``: what follows ``docid =``, else the first word, else None.

        Examples
        --------
        >>> text = b"docid = GX1-7 inc = 1" + b"7555 rambo"
        >>> comments = Comments(np.frombuffer(text, np.uint8), np.array([0, 21, 31, 31]))
        >>> [comments.docid(i) for i in range(3)]
        ['GX1-7', '7555', None]
        """
        comment = self[i]
        named = _DOCID.search(comment)
        if named is not None:
            return named[1]
        words = comment.split(None, 1)
        return words[0] if words else None


def naming_documents(docids: Iterable[str | None], first_row: int, where: str) -> Comments:
    """Comments ``docid = ID`` as LETOR files have them, empty where a row has no document.

    ``first_row`` is the number of the first row, and ``where`` the place they are for, in messages.

    Examples
    --------
    >>> naming_documents(["GX1-7", None], 0, "SVMlight text")[0]
    'docid = GX1-7'
    """

    def comment_of(i: int, docid: str | None) -> str:
        if docid is not None and (not isinstance(docid, str) or docid.split() != [docid]):
            raise ValueError(
                f"the document id of row {first_row + i} is {docid!r}; in {where} an id is one "
                "word without blanks: rename it, or write a table"
            )
        return "" if docid is None else f"docid = {docid}"

    return Comments.of(comment_of(i, docid) for i, docid in enumerate(docids))
