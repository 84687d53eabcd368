"""``linrank train --method sgd --stream``: data that need not fit in memory, or never end."""

from __future__ import annotations

import os
import signal
import threading
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from linrank.cli.console import SIGNALS, Console
from linrank.cli.main import OK
from linrank.cli.options import fill_in, flag
from linrank.cli.reading import check_text
from linrank.cli.streams import STANDARD, check_output, is_model
from linrank.cli.train import check_files, print_json, write_and_validate
from linrank.methods.parameters import SGDParameters, defaults_of
from linrank.options import STREAM_SAMPLINGS
from linrank.system.resources import bytes_text, count, seconds

if TYPE_CHECKING:
    from linrank.models.linear import LinearModel
    from linrank.stochastic.stream_passes import Stream

MB = 1_000_000
LEAST_MEMORY = 50 * MB
# Options by the name of their value that need --stream, and what they mean when not given.
_DEFAULTS: dict[str, Any] = {
    "passes": 1,
    "memory_limit": 150 * MB,
    "steps_per_row": 4.0,
    "checkpoint": None,
    "checkpoint_every": 60,
}
# Options of descent in memory that a stream cannot have, with the reason.
_REFUSED = {
    "C": "-c: λ = 1/(C·pairs), and nobody knows the pairs of a stream; give --alpha",
    "n_steps": "--n-steps: a stream ends with its data; give --steps-per-row",
    "record": "--record: the objective is over all pairs, which a stream does not have",
    "tol": "-e: see --record",
    "missing": "--missing: it is learnt from all rows; a stream is text, which has none missing",
}
# What a checkpoint must have in common with the run that goes on from it.
_KEPT = (
    *("algorithm", "alpha", "aggressiveness", "sampling", "average", "seed"),
    *("steps_per_row", "memory_limit", "index_base"),
)


@dataclass(frozen=True)
class Plan:
    """What the memory is for, in bytes. A function of ``--memory-limit`` alone, or a run that goes
    on elsewhere would forget other rows than the one before it."""

    rows: int
    reading: int
    weights: int

    @classmethod
    def of(cls, limit: int) -> Plan:
        """12 MB and an eighth to read, a sixth of weights; the rest is for rows."""
        reading, weights = 12 * MB + limit // 8, limit // 6
        return cls(limit - reading - weights, reading, weights)

    @property
    def most_columns(self) -> int:
        """A weight is a double, there is one for the average, and both are copied to be saved, and
        written out in the model file."""
        return min(self.weights // 96, 2**31 - 1)

    def __str__(self) -> str:
        """In words."""
        parts = " + ".join(f"{n // MB} MB {name}" for name, n in vars(self).items())
        return f"{sum(vars(self).values()) // MB} MB at most, beside the program = {parts}"


def check_streaming(args: Namespace, parser: ArgumentParser) -> None:
    """Fail on options that do not go together; fill in those that were not given."""
    if os.path.isdir(args.data):
        parser.error(
            f"--stream reads text, and {args.data} is a folder; leave it out, and --memory-limit "
            "SIZE goes through a store within that"
        )
    for name, why in _REFUSED.items():
        if getattr(args, name) is not None:
            parser.error(f"--stream excludes {why}")
    if args.scale not in (None, "auto", "none"):
        parser.error(
            f"--stream excludes --scale {args.scale}: the scale is known at the end of the data; "
            "scale the features where they are made"
        )
    if args.dtype not in (None, "float32"):
        parser.error(f"--stream keeps rows as float32, not as {args.dtype}")
    if args.algorithm == "hybrid":
        parser.error(
            "--stream excludes --algorithm hybrid: when to switch depends on all steps; give "
            "pegasos or pa"
        )
    if args.sampling not in (None, *STREAM_SAMPLINGS):
        parser.error(
            f"--stream excludes --sampling {args.sampling}, which needs all data in memory; give "
            f"one of {', '.join(STREAM_SAMPLINGS)}"
        )
    own = defaults_of(SGDParameters)
    descent = {name: own[name] for name in ("algorithm", "sampling", "aggressiveness")}
    fill_in(args, {**_DEFAULTS, **descent, "random_state": 0})
    args.seed = args.random_state
    if args.checkpoint_every != _DEFAULTS["checkpoint_every"] and args.checkpoint is None:
        parser.error("--checkpoint-every needs --checkpoint FILE")
    if args.passes > 1 and args.data == STANDARD:
        parser.error("--passes needs a file; standard input is gone once it is read")
    if args.checkpoint == STANDARD:
        parser.error("--checkpoint needs a file, not a standard stream (-)")
    if args.memory_limit < LEAST_MEMORY:
        least = f"{LEAST_MEMORY // MB}MB"
        parser.error(f"--memory-limit must be at least {least}, got {args.memory_limit // MB}MB")


def run_stream(args: Namespace, parser: ArgumentParser) -> int:
    """Read and learn, batch by batch; measure, write."""
    check_streaming(args, parser)
    check_files(args, parser)
    check_text(args.data)
    if args.checkpoint is not None:
        check_output(args.checkpoint, args.data, args.valid)
        # Neither need be there yet; the partial checkpoint and then the model would replace it.
        if os.path.realpath(args.checkpoint) == os.path.realpath(args.model):
            parser.error(f"MODEL and --checkpoint are one file, {args.model}; name two")
    console = Console(quiet=args.quiet, verbose=args.verbose)
    plan = Plan.of(args.memory_limit)
    console.say("memory", str(plan))
    stream = _open(args, plan)
    if args.checkpoint is not None and os.path.exists(args.checkpoint):
        stream.resume(args.checkpoint)
        rows = count(stream.trainer.counts.rows, "row")
        told = f"learnt; what was read of pass {stream.pass_number} is read again and passed over"
        told = "finished; nothing is left to learn" if stream.is_finished else told
        console.say("resumed", f"{args.checkpoint}: {rows}, {told}")
    start, before = time.perf_counter(), stream.trainer.counts.rows
    _learn(stream, args, console)
    took = time.perf_counter() - start
    console.clear()
    data, training = _summaries(stream, args)
    # Of a checkpoint that was finished, nothing was learnt in the time of this process.
    n_rows = data["rows"] - before
    speed = f" in {seconds(took)}, {n_rows / max(took, 1e-9):,.0f} rows/s" if n_rows > 0 else ""
    _tell(data, training, speed, console)
    if (doubt := stream.trainer.doubt()) is not None:
        console.warn(doubt)
    evaluation = write_and_validate(_model(stream, args), args, console)
    if args.json:
        print_json(args, data, training, evaluation, (start, start, start + took))
    return OK


def _open(args: Namespace, plan: Plan) -> Stream:
    from linrank.io.blocks import LONGEST_LINE
    from linrank.stochastic.descent import Learner
    from linrank.stochastic.stream_passes import BATCH_BYTES, Stream
    from linrank.stochastic.streaming import StreamTrainer
    from linrank.stochastic.train import regularization

    if is_model(args.data):
        raise ValueError(f"{args.data}: is JSON, like a model, not data; DATA comes first")
    args.alpha = regularization(args.alpha)
    trainer = StreamTrainer(
        [Learner(args.algorithm, args.alpha, args.aggressiveness)],
        average=args.average,
        seed=args.seed,
        sampling=args.sampling,
        memory=plan.rows,
        steps_per_row=args.steps_per_row,
    )
    share = args.memory_limit // 64
    return Stream(
        args.data,
        trainer,
        args.passes,
        {flag(name): getattr(args, name) for name in _KEPT},
        index_base=args.index_base,
        batch_bytes=min(share, BATCH_BYTES),
        most_columns=plan.most_columns,
        longest_line=min(share, LONGEST_LINE),
        remedy=f"give more than --memory-limit {args.memory_limit // MB}MB, or renumber the "
        "features",
    )


def _learn(stream: Stream, args: Namespace, console: Console) -> None:
    """Learn batch by batch to the end, saving checkpoints; Ctrl-C saves one more."""
    progress, saved = Progress(stream, console), time.monotonic()
    try:
        for text, n_read in stream:
            with _signals_wait():  # a batch that is half learnt must not be saved
                stream.learn(text)
                if args.checkpoint and time.monotonic() - saved >= args.checkpoint_every:
                    _save(stream, args)
                    saved = time.monotonic()
            progress.show(n_read)
    except KeyboardInterrupt:
        console.clear()
        if args.checkpoint is not None:
            _save(stream, args)
            console.say("saved", f"{args.checkpoint}: the same command goes on from there")
        raise
    if args.checkpoint is not None:
        _save(stream, args)


@contextmanager
def _signals_wait() -> Iterator[None]:
    """Let Ctrl-C, or being told to end, come behind the block."""
    if threading.current_thread() is not threading.main_thread():
        yield  # whoever called handles signals
        return
    found = {number: signal.getsignal(number) for number in (signal.SIGINT, *SIGNALS)}
    handlers = {number: handler for number, handler in found.items() if callable(handler)}
    came: list[int] = []
    try:
        for number in handlers:
            signal.signal(number, lambda number, frame: came.append(number))
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        for number in came:
            handlers[number](number, None)


# ---- what is told -------------------------------------------------------------------------------


class Progress:
    """Bytes, rows, steps and the loss of late, a few times a second and never for nobody."""

    INTERVAL = 0.2  # seconds
    KEPT = 10.0  # seconds between the lines of -v

    def __init__(self, stream: Stream, console: Console) -> None:
        self.stream, self.console = stream, console
        self.wanted = console.live or console.verbose
        self.interval = self.KEPT if console.verbose else self.INTERVAL
        self.last = time.perf_counter()
        self.rows, self.steps, self.loss = stream.trainer.counts.rows, stream.trainer.n_steps, 0.0
        self.has_doubted = False

    def show(self, n_read: int) -> None:
        """Called behind each batch, with the bytes of the input so far."""
        stream, trainer = self.stream, self.stream.trainer
        if not self.has_doubted and (doubt := trainer.doubt()) is not None:
            self.has_doubted = True
            self.console.warn(f"{stream.name}: {doubt}")
        now = time.perf_counter()
        if not self.wanted or now - self.last < self.interval:
            return
        rows, steps = trainer.counts.rows, trainer.n_steps
        loss = float(trainer.descent.mean_losses()[0]) * steps
        mean = (loss - self.loss) / max(1, steps - self.steps)
        of = f" of {bytes_text(stream.size)}" if stream.size else ""
        passes = f"pass {stream.pass_number}/{stream.passes}: " if stream.passes > 1 else ""
        text = (
            f"{passes}{bytes_text(n_read)}{of}, {rows:,} rows "
            f"({(rows - self.rows) / (now - self.last):,.0f}/s), {steps:,} steps, loss {mean:.4f}"
        )
        self.console.detail(text)
        self.console.status(text)
        self.last, self.rows, self.steps, self.loss = now, rows, steps, loss


def _summaries(stream: Stream, args: Namespace) -> tuple[dict[str, Any], dict[str, Any]]:
    """What the JSON report says of the data and of the training."""
    counts, buffer = stream.trainer.counts, stream.trainer.buffer
    data = {
        "source": args.data,
        "rows": counts.rows,
        "batches": counts.batches,
        "batches_without_pairs": counts.idle_batches,
        "pairs": counts.pairs,
        "features": stream.n_columns - stream.first_feature,
        "storage": stream.storage,
        "buffer_rows": buffer.n_rows,
        "buffer_queries": buffer.n_queries,
        "rows_forgotten": buffer.n_forgotten,
    }
    training = {
        **{name: getattr(args, name) for name in ("method", *_KEPT[:-1], "passes")},
        "steps": stream.trainer.n_steps,
        "loss": float(stream.trainer.descent.mean_losses()[0]),
    }
    return data, training


def _tell(data: dict[str, Any], training: dict[str, Any], speed: str, console: Console) -> None:
    """What was learnt from, on standard error."""
    console.say(
        "read",
        f"{data['source']}: {count(data['rows'], 'row')} in "
        f"{count(data['batches'], 'batch', 'batches')}, {count(data['pairs'], 'pair')}, "
        f"{count(data['features'], 'feature')}, {data['storage']}",
    )
    console.say(
        "buffer",
        f"{count(data['buffer_rows'], 'row')} of "
        f"{count(data['buffer_queries'], 'query', 'queries')} at the end; "
        f"{count(data['rows_forgotten'], 'row')} forgotten on the way",
    )
    console.say(
        "trained",
        f"{training['algorithm']}, λ = {training['alpha']:g}, sampling {training['sampling']}: "
        f"{count(training['steps'], 'step')}{speed}; mean loss {training['loss']:.4f}",
    )


def _model(stream: Stream, args: Namespace) -> LinearModel:
    from linrank.models.linear import LinearModel

    data, training = _summaries(stream, args)
    training["n_steps"] = training.pop("steps")
    known = {"index_base": stream.first_feature, "n_rows": data["rows"], "n_pairs": data["pairs"]}
    return LinearModel(stream.weights()[0], training={**training, **known})


def _save(stream: Stream, args: Namespace) -> None:
    """Write a checkpoint, with the model of now where there is one."""
    model = _model(stream, args).to_json() if stream.weights().size > 0 else None
    stream.save(args.checkpoint, model)
