"""Passes over a stream of text: training that can stop at any batch and go on as if it had not."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from linrank.errors import CheckpointError, DataFormatError
from linrank.stochastic import checkpoint
from linrank.stochastic.batches import Batch, Batches, Columns, Layout
from linrank.stochastic.streaming import StreamTrainer

_PATIENCE = 1_000_000  # rows without a pair after which nobody hopes for one


@dataclass
class _Place:
    """Where in the data a run stands: behind ``rows`` rows of pass ``number``, from 0.

    ``sum`` is a checksum of the labels and queries of these rows, ``whole`` the rows and the
    checksum of a whole pass, as soon as there was one, ``head`` those of the first batch.
    """

    number: int = 0
    rows: int = 0
    sum: int = 0
    whole: list[int] | None = None
    head: list[int] | None = None


@dataclass
class StreamRun:
    """A training run over one or several passes of a text.

    Attributes
    ----------
    source : path, "-" or binary file object
        Several passes need a path.
    trainer : StreamTrainer
        What learns.
    passes : int
        How often to read the text.
    layout : Layout
        How to read it.
    options : mapping
        By the names of the user: what a run that goes on from a checkpoint must have in common
        with the one that wrote it.
    """

    source: Any
    trainer: StreamTrainer
    passes: int = 1
    layout: Layout = field(default_factory=Layout)
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.passes < 1:
            raise ValueError(f"passes must be >= 1, got {self.passes}")
        if self.passes > 1 and (self.source == "-" or hasattr(self.source, "read")):
            raise ValueError(
                f"{self.passes} passes need a file that can be opened again; "
                "a stream is gone once it is read: store it, or make 1 pass"
            )
        self.columns = Columns()
        # While it learns, an interrupt must wait, or the next checkpoint would be torn: set
        # is_stop_asked, and KeyboardInterrupt comes behind the batch.
        self.is_learning = self.is_stop_asked = False
        self._place = _Place()

    @property
    def pass_number(self) -> int:
        """The pass under way, from 1."""
        return min(self._place.number + 1, self.passes)

    @property
    def is_finished(self) -> bool:
        """Whether all passes are done."""
        return self._place.number >= self.passes

    @property
    def first_feature(self) -> int:
        """The feature that the first weight of `weights` belongs to."""
        return self.columns.first_feature(self.layout.index_base)

    def weights(self) -> Any:
        """The weights by feature, (n_models, n_features); ValueError if they have overflown."""
        self.trainer.descent.check_finite()
        return self.trainer.weights()[:, self.first_feature :]

    def run(self, on_batch: Callable[[Batch, Batches], object] | None = None) -> None:
        """Read and learn until all passes are done; ``on_batch`` is called behind each batch."""
        if self.is_finished:
            self._check_head()
        while not self.is_finished:
            self._run_pass(on_batch)

    def _check_head(self) -> None:
        """A finished checkpoint of other data is told by their first batch: all that is read."""
        batches = Batches(self.source, self.columns, self.layout)
        for batch in batches:
            head = [len(batch.labels), _checksum(batch, 0)]
            self._check_same(head == self._place.head, batches.name, head[0])
            return

    def _run_pass(self, on_batch: Callable[[Batch, Batches], object] | None) -> None:
        place, batches = self._place, Batches(self.source, self.columns, self.layout)
        if place.rows == 0:
            # The rows of the last pass would meet themselves in the buffer, and each pair twice.
            self.trainer.buffer.clear()
        seen, running, learnt = 0, 0, place.rows  # before the checkpoint that it goes on from
        for batch in batches:
            seen += len(batch.labels)
            running = _checksum(batch, running)
            if seen <= learnt:
                self._check_same(seen < learnt or running == place.sum, batches.name, seen)
                continue
            self._check_same(seen - len(batch.labels) >= learnt, batches.name, learnt)
            self.is_learning = True
            self.trainer.feed_checked(batch.rows, batch.labels, batch.ids)
            place.rows, place.sum = seen, running
            place.head = place.head or [seen, running]
            if on_batch is not None:
                on_batch(batch, batches)
            self.is_learning = False
            if self.is_stop_asked:
                raise KeyboardInterrupt
            if self.trainer.counts.rows >= _PATIENCE:
                self.trainer.check_pairs(batches.name)
        self._end_pass(batches.name, seen)

    def _end_pass(self, name: str, seen: int) -> None:
        place = self._place
        self._check_same(seen == place.rows, name, min(seen, place.rows))
        if place.whole is not None and place.whole != [place.rows, place.sum]:
            raise DataFormatError(
                f"{name}: has changed between two passes: {place.whole[0]:,} rows before, "
                f"{place.rows:,} now, or other labels and queries"
            )
        self.trainer.check_pairs(name)
        if self.columns.n_columns <= self.first_feature:
            raise DataFormatError(
                f"{name}: none of the {seen:,} rows has a feature; expected lines "
                "'label qid:id index:value ...'"
            )
        self.is_learning = True
        self._place = _Place(place.number + 1, 0, 0, [place.rows, place.sum], place.head)
        self.is_learning = False

    def _check_same(self, is_same: bool, name: str, n_rows: int) -> None:
        if not is_same:
            raise CheckpointError(
                f"{name}: is not the data that the checkpoint was made with: labels and queries "
                f"of its first {n_rows:,} rows differ; give the same data, or delete the "
                "checkpoint to start anew"
            )

    # ---- checkpoints ----------------------------------------------------------------------------

    def save(self, path: str) -> None:
        """Write a checkpoint; between batches only."""
        state = {
            "kind": "stream",
            "options": dict(self.options),
            **checkpoint.prefixed("place", vars(self._place)),
            **checkpoint.prefixed("columns", vars(self.columns)),
            **self.trainer.state(),
        }
        checkpoint.save(path, state)

    def resume(self, path: str) -> None:
        """Go on from a checkpoint of a run with the same options."""
        state = checkpoint.load(path)
        try:
            if state.get("kind") != "stream":
                raise CheckpointError(f"{path}: is a checkpoint, but not of a stream")
            self._check_options(path, state["options"])
            self.trainer.restore(state)
            self.columns = Columns(**checkpoint.nested(state, "columns"))
            self._place = _Place(**checkpoint.nested(state, "place"))
        except (TypeError, KeyError, ValueError) as error:
            if isinstance(error, CheckpointError):
                raise
            raise CheckpointError(f"{path}: does not hold what it should: {error}") from error
        finally:
            state.close()
        begun = self._place.number + (self._place.rows > 0)
        if begun > self.passes:
            raise CheckpointError(
                f"{path}: has learnt from {begun} passes, more than the {self.passes} now asked "
                "for; give more passes, or delete the checkpoint to start anew"
            )

    def _check_options(self, path: str, before: Mapping[str, Any]) -> None:
        for name in [*self.options, *(name for name in before if name not in self.options)]:
            then, now = before.get(name), self.options.get(name)
            if then != now:
                raise CheckpointError(
                    f"{path}: was written with {name} {then}, now it is {now}; give the same "
                    "options, or delete the checkpoint to start anew"
                )


def _checksum(batch: Batch, running: int) -> int:
    """The checksum of labels and queries, after that of the batches before."""
    return zlib.crc32(batch.ids.data, zlib.crc32(batch.labels.data, running))
