"""Shape: what a store of a text looks like, decided on its first lines or on all of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from linrank.data.survey import ReadingOptions, Survey

__all__ = ["Shape", "TextSurvey"]


class TextSurvey(Survey):
    """A survey that also knows whether rows have weights and comments."""

    def __init__(self, name: str, options: ReadingOptions) -> None:
        super().__init__(name, options)
        self.has_weights = self.has_comments = False

    def add(self, piece: Any) -> None:
        """Add the next piece; raise the first fault of the file."""
        super().add(piece)
        self.has_weights |= piece.has_weight
        self.has_comments |= piece.n_comment_bytes > 0


@dataclass(frozen=True)
class Shape:
    """How rows are stored.

    Attributes
    ----------
    is_dense : bool
        A full matrix, or CSR.
    dtype : float32 or float64
        Of the values.
    base, n_columns : int
        The index of the first column; the number of columns so far. That of CSR may still grow:
        nothing that has been stored depends on it.
    has_ids, has_weights, has_comments : bool
        What rows have.
    """

    is_dense: bool
    dtype: np.dtype[Any]
    base: int
    n_columns: int
    has_ids: bool
    has_weights: bool
    has_comments: bool

    @classmethod
    def of(cls, survey: TextSurvey) -> Shape:
        """The shape for what has been seen."""
        base, n_columns = survey.columns()
        return cls(
            survey.is_dense(n_columns),
            survey.options.dtype,
            base,
            n_columns,
            bool(survey.has_query),
            survey.has_weights,
            survey.has_comments,
        )

    def admits(self, survey: TextSurvey) -> bool:
        """Whether it still holds for all that has been seen by now."""
        base, n_columns = survey.columns()
        return (
            base == self.base
            and (n_columns <= self.n_columns or not self.is_dense)
            and survey.has_weights <= self.has_weights
            and survey.has_comments <= self.has_comments
        )

    def row_bytes(self) -> int:
        """Bytes of the features of a row: all of a dense one, at least of a sparse one."""
        return self.n_columns * self.dtype.itemsize if self.is_dense else 8
