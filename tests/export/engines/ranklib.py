"""RankLib's Coordinate Ascent model: the text form that the ranker loads, and its score.

Rules: the first line names the ranker after ``##``; lines that start with ``##`` are skipped; the
first other line is the model, ``id:weight`` apart by spaces, and whatever follows is not read. Ids
are those of the features in the data, from 1. Values are Java floats, weights and sums doubles. An
unknown value counts as 0; an id beyond those of the data is an error.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from engines.rules import require

_JAVA_DOUBLE = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


@dataclass(frozen=True)
class CoordinateAscent:
    ids: tuple[int, ...]
    weights: np.ndarray

    def score(self, rows: np.ndarray) -> np.ndarray:
        """Scores of dense rows; feature `id` is column ``id - 1``."""
        require(max(self.ids) <= rows.shape[1], "requesting unspecified feature")
        values = np.nan_to_num(rows.astype(np.float32), nan=0.0)
        total = np.zeros(len(rows))
        for number, weight in zip(self.ids, self.weights, strict=True):
            total += weight * values[:, number - 1].astype(np.float64)
        return total


def load(text: str) -> CoordinateAscent:
    """The model of a text, as the factory and the ranker read it."""
    lines = text.split("\n")
    require(lines[0].replace("## ", "").strip().upper() == "COORDINATE ASCENT", lines[0])
    content = [line.strip() for line in lines if line.strip() and not line.startswith("##")]
    require(content, "there is no line with weights")
    require(len(content) == 1, "only the first line of weights is read")
    require("#" not in content[0], "the end of the line is cut at #")
    pairs = [item.split(":") for item in content[0].split(" ") if item]
    require(all(len(pair) == 2 for pair in pairs), "an item is id:weight")
    for number, weight in pairs:
        require(re.fullmatch(r"[0-9]+", number) and int(number) >= 1, f"the id {number!r}")
        require(_JAVA_DOUBLE.fullmatch(weight), f"NumberFormatException: {weight!r}")
    ids = tuple(int(number) for number, _ in pairs)
    require(len(set(ids)) == len(ids), "an id that comes twice counts twice")
    weights = np.array([float(weight) for _, weight in pairs])
    require(np.isfinite(weights).all(), "an infinite weight")
    return CoordinateAscent(ids, weights)
