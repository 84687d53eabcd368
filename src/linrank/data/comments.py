"""Comments: the text behind '#' of each row of a file, kept compactly."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank.data.words import Words, part, parts_of

__all__ = ["Comments", "naming_documents"]

_DOCID = re.compile(r"\bdocid\s*=\s*(\S+)")


@dataclass(frozen=True, eq=False)
class Comments:
    """One comment per row: comment ``i`` is ``text[offsets[i]:offsets[i+1]]``.

    Attributes
    ----------
    text : uint8 array
        All comments one after another, without '#' and the blanks around them.
    offsets : int64 array (n_rows + 1,)
        Where each begins.
    """

    text: NDArray[np.uint8]
    offsets: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, i: int) -> str:
        """The comment of row ``i``, "" if it has none; bytes that are no UTF-8 appear as \\xNN."""
        return part(self.text, self.offsets, i).decode("utf-8", "backslashreplace")

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

    def select(self, index: Any) -> Comments:
        """Return the comments of the rows of ``index`` (integers, a boolean mask or a slice)."""
        return Comments(*parts_of(self.text, self.offsets, index))


def naming_documents(docids: Iterable[str | None], first_row: int, where: str) -> Comments:
    """Comments ``docid = ID`` as LETOR files have them, empty where a row has no document.

    ``first_row`` is the number of the first row, and ``where`` the place they are for, in messages.

    Examples
    --------
    >>> naming_documents(["GX1-7", None], 0, "SVMlight text")[0]
    'docid = GX1-7'
    """

    def named(i: int, docid: str | None) -> str:
        if docid is not None and docid.split() != [docid]:
            raise ValueError(
                f"the document id of row {first_row + i} is {docid!r}; in {where} an id is one "
                "word without blanks: rename it, or write a table"
            )
        return "" if docid is None else f"docid = {docid}"

    words = Words.of(named(i, docid) for i, docid in enumerate(docids))
    return Comments(words.text, words.offsets)
