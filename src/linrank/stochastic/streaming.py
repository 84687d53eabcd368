"""StreamTrainer: learning from rows as they come, once."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from linrank.data import Array, Rows, as_ids, as_labels, as_rows
from linrank.errors import NoPairsError
from linrank.stochastic.descent import Descent, Learner
from linrank.stochastic.reservoir import Buffer

_INTEGER = re.compile(rb"0|-?[1-9][0-9]{0,18}")
_BATCH_ROWS = 8192  # larger batches are cut
_MANY_BATCHES = 16  # after which their share without a pair says something


def numbers_of_ids(qid: Any, n_rows: int) -> Array:
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
    listed = zip(ids[heads].tolist(), heads.tolist(), strict=True)
    numbers = np.array([_number(id_, row) for id_, row in listed], dtype=np.int64)
    return np.repeat(numbers, np.diff(np.append(heads, n_rows)))


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


def number_of_token(token: bytes) -> int:
    """The same for an id as it is written in a file: an integer is itself."""
    if _INTEGER.fullmatch(token) and -(2**63) <= int(token) < 2**63:
        return int(token)
    return _hash(b"token " + token)


def _hash(text: bytes) -> int:
    digest = hashlib.blake2b(text, digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True)


@dataclass
class Counts:
    """What has gone through a trainer.

    Attributes
    ----------
    rows, batches : int
        Fed so far.
    pairs : int
        Pairs that could be drawn, each counted in the batch of its later row.
    idle_batches : int
        Batches that made no pair, on which no step was taken.
    lowest, highest : float
        Labels.
    """

    rows: int = 0
    batches: int = 0
    pairs: int = 0
    idle_batches: int = 0
    lowest: float = math.inf
    highest: float = -math.inf


class StreamTrainer:
    """Models that learn from a stream of rows, within bounded memory.

    A batch of new rows makes pairs among its rows and with those that the buffer remembers; then
    ``steps_per_row`` steps per row are taken on pairs drawn from these. Complete or partial queries
    may come in any order.

    Parameters
    ----------
    learners : sequence of Learner
        One for each model; all see the same pairs.
    average, seed
        As in `Descent`.
    sampling, memory
        As in `Buffer`.
    steps_per_row : float
        Steps for each row, > 0; a batch without a pair gets none.
    """

    def __init__(
        self,
        learners: Sequence[Learner],
        *,
        average: str | None = None,
        seed: int = 0,
        sampling: str = "pairs",
        memory: int = 64_000_000,
        steps_per_row: float = 4.0,
    ) -> None:
        if not (steps_per_row > 0 and math.isfinite(steps_per_row)):
            raise ValueError(f"steps_per_row must be finite and > 0, got {steps_per_row}")
        self.steps_per_row = float(steps_per_row)
        self.descent = Descent(0, learners, average, seed)
        self.buffer = Buffer(memory, sampling)
        self.counts = Counts()

    @property
    def n_steps(self) -> int:
        """Steps taken so far."""
        return self.descent.n_steps

    def feed(self, rows: Any, labels: Any, qid: Any = None) -> None:
        """Learn from some rows.

        Parameters
        ----------
        rows : matrix (n_rows, n_features)
            Anything that `Dataset.of` takes; kept as float32.
        labels : array (n_rows,)
            Real labels.
        qid : array (n_rows,), optional
            Query of each row, of any hashable type; without it all rows are of one query.
        """
        matrix = as_rows(rows, n_jobs=1)
        numbers = numbers_of_ids(qid, matrix.shape[0])
        self.feed_checked(_as_single(matrix), as_labels(labels, matrix.shape[0]), numbers)

    def feed_checked(self, rows: Rows, labels: Array, ids: Array) -> None:
        """The same for rows of float32, float64 labels and int64 ids that are known to be sound."""
        if rows.shape[1] > self.descent.n_features:
            self.descent.grow(rows.shape[1])
        for part in self.buffer.parts(rows, _BATCH_ROWS):
            whole = part.stop - part.start == rows.shape[0]
            self._learn(rows if whole else rows.take(part), labels[part], ids[part])

    def _learn(self, rows: Rows, labels: Array, ids: Array) -> None:
        counts = self.counts
        pairs = self.buffer.add(rows, labels, ids)
        # ⌊R·rows⌋ steps are due after so many rows: a fraction is not lost with small batches.
        due = math.floor(self.steps_per_row * counts.rows)
        counts.rows += len(labels)
        counts.batches += 1
        counts.lowest = min(counts.lowest, float(labels.min()))
        counts.highest = max(counts.highest, float(labels.max()))
        if pairs is None:
            counts.idle_batches += 1
            return
        counts.pairs += pairs.n_pairs
        n_steps = math.floor(self.steps_per_row * counts.rows) - due
        self.descent.run(self.buffer.rows, pairs, n_steps)

    def weights(self) -> Array:
        """The weights of all models, (n_models, n_features)."""
        return self.descent.weights()

    # ---- what may be wrong with the stream ------------------------------------------------------

    def check_pairs(self, name: str = "the stream") -> None:
        """Raise `NoPairsError`, with the reason, if nothing has been learned so far."""
        if self.counts.pairs == 0:
            raise NoPairsError(f"{name}: no two rows could be compared: {self._reason()}")
        if self.n_steps == 0:
            raise NoPairsError(
                f"{name}: {self.counts.rows:,} rows make no step at steps_per_row="
                f"{self.steps_per_row:g}; raise it"
            )

    def doubt(self) -> str | None:
        """What to tell the user if most batches made no pair."""
        counts = self.counts
        if counts.batches < _MANY_BATCHES or 2 * counts.idle_batches <= counts.batches:
            return None
        return (
            f"{counts.idle_batches:,} of {counts.batches:,} batches made no pair, and nothing was "
            f"learned from them: {self._reason()}"
        )

    def _reason(self) -> str:
        counts, buffer = self.counts, self.buffer
        if counts.rows == 0:
            return "it has no rows"
        if counts.lowest == counts.highest:
            return f"all {counts.rows:,} labels are {counts.lowest:g}"
        if buffer.sampling == "roc":
            return f"labels are from {counts.lowest:g} to {counts.highest:g}, all on one side of 0"
        if buffer.n_new_queries >= counts.rows - buffer.n_new_queries // 100:
            if buffer.n_forgotten == 0:
                return (
                    f"no query id comes twice in {counts.rows:,} rows; check that qid is not a "
                    "row id"
                )
            return (
                f"a query id hardly ever comes again within the {buffer.n_rows:,} rows that the "
                "buffer holds; sort the rows by query, give more memory, or check that qid is not "
                "a row id"
            )
        return f"rows of one query have one label each, in {buffer.n_new_queries:,} queries"

    # ---- checkpoints ----------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """All that `restore` needs; large arrays are views, valid until the next rows."""
        return {
            "descent": self.descent.state(),
            "buffer": self.buffer.state(),
            "counts": asdict(self.counts),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on, bit for bit, where the trainer of the state stood; options must be the same."""
        self.descent = Descent.restore(state["descent"])
        self.buffer.restore(state["buffer"])
        self.counts = Counts(**state["counts"])


def _as_single(rows: Rows) -> Rows:
    """Rows as float32."""
    if rows.dtype == np.float32:
        return rows
    with np.errstate(over="ignore"):
        values = rows.values.astype(np.float32)
    if not np.isfinite(values).all():
        raise ValueError(
            f"X has a value of {np.abs(rows.values).max():g}; a stream is kept as float32, which "
            f"ends at {np.finfo(np.float32).max:g}: scale the feature"
        )
    return replace(rows, values=values)
