"""Passes over a text: training that can stop behind any batch and go on as if it had not.

A batch is a fixed number of bytes of text, up to the end of the line: however the text arrives,
from a file, a pipe or a decompressor, its batches are the same, and so are the bits of the model.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from linrank import _core
from linrank.data import Array, CsrRows, Rows, as_dense
from linrank.errors import CheckpointError, DataFormatError
from linrank.io.blocks import LONGEST_LINE, LongLineError, open_blocks
from linrank.io.svmlight import FORM, ReadingOptions, Shape, Survey, read_rows
from linrank.stochastic import checkpoint
from linrank.stochastic.streaming import StreamTrainer, number_of_token

BLOCK_SIZE = 1 << 18  # bytes read at a time
BATCH_BYTES = 4 << 20
_PATIENCE = 1_000_000  # rows without a pair after which nobody hopes for one
_COLUMNS = ("lowest", "highest", "has_query", "n_rows")  # what is known of the text, over passes


def text_batches(
    blocks: Iterator[tuple[memoryview, int]], n_bytes: int
) -> Iterator[tuple[bytes, int]]:
    """The text of blocks of whole lines in batches, each with the bytes of the input so far.

    An error in the data is raised behind the batches before it.
    """
    held: list[bytes] = []
    n_held, n_read = 0, 0
    error: DataFormatError | None = None
    try:
        for block, n_read in blocks:
            rest = bytes(block)
            while n_held + len(rest) >= n_bytes:
                end = rest.find(b"\n", max(0, n_bytes - n_held - 1)) + 1 or len(rest)
                yield b"".join([*held, rest[:end]]), n_read
                held, n_held, rest = [], 0, rest[end:]
            held.append(rest)
            n_held += len(rest)
    except DataFormatError as found:
        error = found
    if n_held:
        yield b"".join(held), n_read
    if error is not None:
        raise error


@dataclass
class _Place:
    """Where in the data a run stands: behind ``n_bytes`` of the text of pass ``number``, from 0.

    ``sum`` is the checksum of these bytes, ``whole`` the bytes and the checksum of a whole pass, as
    soon as there was one, ``head`` those of the first batch.
    """

    number: int = 0
    n_bytes: int = 0
    sum: int = 0
    whole: list[int] | None = None
    head: list[int] | None = None


@dataclass
class Stream:
    """A training run over a text: ``for text, n_read in stream: stream.learn(text)``.

    Columns are feature indices as they are written: whether a feature 0 will come, nobody knows.

    Attributes
    ----------
    source : path, "-" or binary file object
        Several passes need a path. gzip, bzip2, xz and Zstandard are told by their first bytes.
    trainer : StreamTrainer
        What learns.
    passes : int
        How often to read the text.
    options : mapping
        By the names of the user: what a run that goes on from a checkpoint must have in common
        with the one that wrote it.
    index_base : {"auto", "0", "1"}
        "1" makes a feature 0 an error.
    batch_bytes : int
        A batch is the lines that begin in so many bytes of text.
    most_columns : int
        An index beyond it is refused before anything is allocated for it.
    longest_line : int
        Bytes.
    remedy : str
        What to do about an index or a line that is too large.
    block_size : int
        Bytes to read at a time; no influence on the batches.
    """

    source: Any
    trainer: StreamTrainer
    passes: int = 1
    options: Mapping[str, Any] = field(default_factory=dict)
    index_base: str = "auto"
    batch_bytes: int = BATCH_BYTES
    most_columns: int = int(_core.MAX_FEATURE) + 1
    longest_line: int = LONGEST_LINE
    remedy: str = "renumber the features"
    block_size: int = BLOCK_SIZE

    def __post_init__(self) -> None:
        if self.passes > 1 and (self.source == "-" or hasattr(self.source, "read")):
            raise ValueError(
                f"{self.passes} passes need a file that can be opened again; "
                "a stream is gone once it is read: store it, or make 1 pass"
            )
        self.storage: str | None = None  # dense becomes CSR, never the reverse
        self.size: int | None = None  # bytes of the input as stored
        zero_based = {"auto": "auto", "0": True, "1": False}[self.index_base]
        self._reading = ReadingOptions.of("float32", "auto", None, zero_based)
        self._survey = Survey("", self._reading)
        self._place = _Place()

    @property
    def name(self) -> str:
        """The input in messages."""
        return self._survey.name

    @property
    def pass_number(self) -> int:
        """The pass under way, from 1."""
        return min(self._place.number + 1, self.passes)

    @property
    def is_finished(self) -> bool:
        """Whether all passes are done."""
        return self._place.number >= self.passes

    @property
    def n_columns(self) -> int:
        """One more than the largest index so far, over all passes."""
        return max(self._survey.highest + 1, 1)

    @property
    def first_feature(self) -> int:
        """The feature that the first weight of `weights` belongs to."""
        return int(self.index_base) if self.index_base != "auto" else int(self._survey.lowest != 0)

    def weights(self) -> Array:
        """The weights by feature, (n_models, n_features); ValueError if they have overflown."""
        self.trainer.descent.check_finite()
        return self.trainer.weights()[:, self.first_feature :]

    # ---- reading --------------------------------------------------------------------------------

    def __iter__(self) -> Iterator[tuple[bytes, int]]:
        """The text of each batch, to learn before the next is asked for, and bytes read so far.

        What a run had read before its checkpoint is read again, compared and passed over.
        """
        if self.is_finished:  # its first batch tells it from that of other data: all that is read
            text, _ = next(self._batches(), (b"", 0))
            self._check_same([len(text), _checksum(text)] == self._place.head, len(text))
        while not self.is_finished:
            yield from self._pass()

    def _batches(self) -> Iterator[tuple[bytes, int]]:
        text = open_blocks(self.source, self.block_size, longest_line=self.longest_line)
        self._survey.begin(text.name)
        self._parser, self.size = self._reading.parser(), text.size
        return text_batches(text.blocks, self.batch_bytes)

    def _pass(self) -> Iterator[tuple[bytes, int]]:
        learned = self._place.n_bytes  # before the checkpoint that it goes on from
        if learned == 0:
            # The rows of the last pass would meet themselves in the buffer, and each pair twice.
            self.trainer.buffer.clear()
        seen, running = 0, 0
        try:
            for text, n_read in self._batches():
                seen += len(text)
                if seen - len(text) >= learned:
                    yield text, n_read
                    continue
                running = _checksum(text, running)
                self._check_same(
                    seen < learned or [seen, running] == [learned, self._place.sum], seen
                )
                self._survey.n_lines += text.count(b"\n")
        except LongLineError as error:
            place = f"{self.name}:{self._survey.n_lines + 1}"
            raise DataFormatError(f"{place}: {error.what}; {self.remedy}") from None
        self._check_same(seen >= learned, seen)
        self._end_pass()

    def _end_pass(self) -> None:
        place, now = self._place, [self._place.n_bytes, self._place.sum]
        if place.whole not in (None, now):
            raise DataFormatError(
                f"{self.name}: has changed between two passes: {place.whole[0]:,} bytes of text "
                f"before, {place.n_bytes:,} now, or others"
            )
        self._survey.check_rows()
        self.trainer.check_pairs(self.name)
        if self.n_columns <= self.first_feature:
            raise DataFormatError(
                f"{self.name}: none of the {self.trainer.counts.rows:,} rows has a feature; "
                f"expected lines '{FORM}'"
            )
        self._place = _Place(place.number + 1, 0, 0, now, place.head)

    def _check_same(self, is_same: bool, n_bytes: int) -> None:
        if not is_same:
            raise CheckpointError(
                f"{self.name}: is not the data that the checkpoint was made with: the first "
                f"{n_bytes:,} bytes of its text differ; give the same data, or delete the "
                "checkpoint to start anew"
            )

    # ---- learning -------------------------------------------------------------------------------

    def learn(self, text: bytes) -> None:
        """Learn from the batch that comes next."""
        n_columns, place = self.n_columns, self._place
        piece = self._parse(text)
        if piece.n_rows > 0:
            labels, ids = np.empty(piece.n_rows), np.zeros(piece.n_rows, np.int64)
            _core.fill_labels([piece], labels)
            if piece.has_query and not _core.fill_integer_queries([piece], ids):
                tokens = _core.fill_query_codes([piece], ids)
                ids = np.array([number_of_token(token) for token in tokens])[ids]
            self.trainer.feed_checked(self._rows(piece, self.n_columns > n_columns), labels, ids)
        place.n_bytes, place.sum = place.n_bytes + len(text), _checksum(text, place.sum)
        place.head = place.head or [place.n_bytes, place.sum]
        if self.trainer.counts.rows >= _PATIENCE:
            self.trainer.check_pairs(self.name)

    def _parse(self, text: bytes) -> Any:
        survey = self._survey
        piece, n_before = self._parser.parse(text), survey.n_lines
        survey.add(piece)
        if survey.highest >= self.most_columns:
            raise DataFormatError(
                f"{survey.highest_place}: feature index {survey.highest:,} asks for more weights "
                f"than the {self.most_columns:,} that there is memory for; {self.remedy}"
            )
        if piece.has_weight:
            raise DataFormatError(
                f"{self.name}: a line from {n_before + 1} to {survey.n_lines} has a weight, "
                "'label:weight'; a stream takes none: remove them, or train in memory"
            )
        return piece

    def _rows(self, piece: Any, has_new_columns: bool) -> Rows:
        n_rows, width = piece.n_rows, self.n_columns
        shape = Shape(False, np.dtype(np.float32), 0, width, False, False)
        if self.storage == "dense" and not has_new_columns:
            return read_rows([piece], n_rows, replace(shape, is_dense=True), 1)
        rows: Any = read_rows([piece], n_rows, shape, 1)
        kept = rows.values != 0  # zeros that were written down take room and change nothing
        if not kept.all():
            offsets = np.concatenate([[0], np.cumsum(kept)])[rows.offsets]
            rows = CsrRows(rows.values[kept], rows.columns[kept], offsets, width)
        # What was dense stays so until it takes twice the memory of CSR.
        slack = {None: 1, "dense": 2, "csr": 0}[self.storage]
        is_dense = n_rows * width * 4 <= slack * len(rows.values) * 8
        self.storage = "dense" if is_dense else "csr"
        return as_dense(rows) if is_dense else rows

    # ---- checkpoints ----------------------------------------------------------------------------

    def save(self, path: str, model: bytes | None = None) -> None:
        """Write a checkpoint, with the model file of now; between batches only."""
        state = {
            "kind": "stream",
            "options": dict(self.options),
            "place": asdict(self._place),
            "columns": {name: getattr(self._survey, name) for name in _COLUMNS},
            "storage": self.storage,
            "trainer": self.trainer.state(),
        }
        checkpoint.save(path, state, model)

    def resume(self, path: str) -> None:
        """Go on from a checkpoint of a run with the same options."""
        state = checkpoint.load(path)
        if state.get("kind") != "stream":
            raise CheckpointError(f"{path}: is a checkpoint, but not of a stream")
        before = state["options"]
        for name in dict.fromkeys([*self.options, *before]):
            then, now = before.get(name), self.options.get(name)
            if then != now:
                raise CheckpointError(
                    f"{path}: was written with {name} {then}, now it is {now}; give the same "
                    "options, or delete the checkpoint to start anew"
                )
        try:
            self.trainer.restore(state["trainer"])
            for name in _COLUMNS:
                setattr(self._survey, name, state["columns"][name])
            self.storage, self._place = state["storage"], _Place(**state["place"])
        except (TypeError, KeyError, ValueError) as error:
            raise CheckpointError(f"{path}: does not hold what it should: {error}") from error
        begun = self._place.number + (self._place.n_bytes > 0)
        if begun > self.passes:
            raise CheckpointError(
                f"{path}: has learned from {begun} passes, more than the {self.passes} now asked "
                "for; give more passes, or delete the checkpoint to start anew"
            )


def _checksum(text: bytes, before: int = 0) -> int:
    return _core.crc32c(np.frombuffer(text, np.uint8), before)
