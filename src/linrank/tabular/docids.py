"""Document ids that a table gives in a column."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from linrank.data.words import Words

__all__ = ["Docids"]


@dataclass(frozen=True, eq=False)
class Docids:
    """One id per row, in place of the comments of a text; an empty one is none.

    Ids of a table may hold blanks, which those of a comment cannot.

    Examples
    --------
    >>> ids = Docids(Words.of(["a b", "", "c"]))
    >>> [ids.docid(i) for i in range(3)], ids[0], ids.select([2]).docid(0)
    (['a b', None, 'c'], 'docid = a b', 'c')
    """

    words: Words

    def __len__(self) -> int:
        return len(self.words)

    def __getitem__(self, i: int) -> str:
        """The comment that a text would have for row ``i``."""
        docid = self.docid(i)
        return "" if docid is None else f"docid = {docid}"

    def docid(self, i: int) -> str | None:
        """The document of row ``i``, or None."""
        return self.words[i] or None

    def select(self, index: Any) -> Docids:
        """Return the ids of the rows of ``index`` (integers, a boolean mask or a slice)."""
        return Docids(self.words.select(index))
