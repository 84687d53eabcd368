"""Comments of a chunk, read when somebody asks: training never does."""

from __future__ import annotations

from typing import Any

from linrank.data.comments import Comments
from linrank.lazy import cached_property
from linrank.store.reading import ChunkReader, Verify

__all__ = ["StoredComments"]


class StoredComments:
    """The comments of one chunk, as ``linrank.data.comments.Comments``."""

    def __init__(self, reader: ChunkReader, chunk: int, verify: Verify) -> None:
        self._reader, self._chunk, self._verify = reader, chunk, verify

    @cached_property
    def _found(self) -> Comments:
        return self._reader.comments(self._chunk, self._verify)

    def __len__(self) -> int:
        return self._reader.layout.counts["n_rows"][self._chunk]

    def __getitem__(self, i: int) -> str:
        """The comment of row ``i``."""
        return self._found[i]

    def docid(self, i: int) -> str | None:
        """The document of row ``i``."""
        return self._found.docid(i)

    def select(self, index: Any) -> Comments:
        """The comments of some rows."""
        return self._found.select(index)

    def __reduce__(self) -> tuple[Any, ...]:
        return Comments, (self._found.text, self._found.offsets)
