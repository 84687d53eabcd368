"""``linrank train --method sgd --stream``: data that need not fit in memory, or never end."""

from __future__ import annotations

import argparse
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from linrank.cli.console import SIGNALS, Console
from linrank.cli.main import OK
from linrank.cli.options import fill_in
from linrank.cli.reading import check_text
from linrank.cli.streams import STANDARD, check_apart, check_writable
from linrank.cli.train import check_files, print_json, write_and_validate
from linrank.methods.parameters import SGDParameters, defaults_of
from linrank.options import STREAM_SAMPLINGS
from linrank.system.resources import bytes_text, count, seconds

if TYPE_CHECKING:
    from linrank.models.linear import LinearModel
    from linrank.stochastic.batches import Batch, Batches
    from linrank.stochastic.stream_passes import StreamRun


class Progress:
    """Bytes, rows, steps and the loss of late, a few times a second and never for nobody."""

    INTERVAL = 0.2  # seconds
    KEPT = 10.0  # seconds between the lines of -v

    def __init__(self, run: StreamRun, console: Console) -> None:
        self.run, self.console = run, console
        self.wanted = console.live or console.verbose
        self.interval = self.KEPT if console.verbose else self.INTERVAL
        self.last = time.perf_counter()
        self.rows, self.steps, self.loss = run.trainer.counts.rows, run.trainer.n_steps, 0.0
        self.has_doubted = False

    def show(self, batch: Batch, batches: Batches) -> None:
        """Called behind each batch."""
        trainer = self.run.trainer
        if not self.has_doubted and trainer.counts.batches % 64 == 0:
            doubt = trainer.doubt()
            if doubt is not None:
                self.has_doubted = True
                self.console.warn(f"{batches.name}: {doubt}")
        now = time.perf_counter()
        if not self.wanted or now - self.last < self.interval:
            return
        rows, steps = trainer.counts.rows, trainer.n_steps
        loss = float(trainer.descent.mean_losses()[0]) * steps
        mean = (loss - self.loss) / max(1, steps - self.steps)
        of = f" of {bytes_text(batches.size)}" if batches.size else ""
        passes = f"pass {self.run.pass_number}/{self.run.passes}: " if self.run.passes > 1 else ""
        text = (
            f"{passes}{bytes_text(batch.n_bytes)}{of}, {rows:,} rows "
            f"({(rows - self.rows) / (now - self.last):,.0f}/s), {steps:,} steps, loss {mean:.4f}"
        )
        self.console.detail(text)
        self.console.status(text)
        self.last, self.rows, self.steps, self.loss = now, rows, steps, loss


def say_resumed(run: StreamRun, args: argparse.Namespace, console: Console) -> None:
    """Where a checkpoint goes on."""
    rows = count(run.trainer.counts.rows, "row")
    if run.is_finished:
        console.say("resumed", f"{args.checkpoint}: {rows}, finished; nothing is left to learn")
    else:
        console.say(
            "resumed",
            f"{args.checkpoint}: {rows} learnt; what was read of pass {run.pass_number} is read "
            "again and passed over",
        )


def say_result(
    run: StreamRun, args: argparse.Namespace, took: float, n_rows: int, console: Console
) -> None:
    """What was learnt from, on standard error."""
    trainer, counts, buffer = run.trainer, run.trainer.counts, run.trainer.buffer
    console.say(
        "read",
        f"{args.data}: {count(counts.rows, 'row')} in {count(counts.batches, 'batch', 'batches')}, "
        f"{count(counts.pairs, 'pair')}, {count(run.weights().shape[1], 'feature')}, "
        f"{run.columns.storage}",
    )
    console.say(
        "buffer",
        f"{count(buffer.n_rows, 'row')} of {count(buffer.n_queries, 'query', 'queries')} at the "
        f"end; {count(buffer.n_forgotten, 'row')} forgotten on the way",
    )
    loss = float(trainer.descent.mean_losses()[0])
    # Of a checkpoint that was finished, nothing was learnt in the time of this process.
    speed = f" in {seconds(took)}, {n_rows / max(took, 1e-9):,.0f} rows/s" if n_rows > 0 else ""
    console.say(
        "trained",
        f"{args.algorithm}, λ = {trainer.descent.learners[0].alpha:g}, sampling {args.sampling}: "
        f"{count(trainer.n_steps, 'step')}{speed}; mean loss {loss:.4f}",
    )
    doubt = trainer.doubt()
    if doubt is not None:
        console.warn(doubt)


def data_summary(run: StreamRun, args: argparse.Namespace) -> dict[str, Any]:
    """What the JSON report says of the data."""
    counts, buffer = run.trainer.counts, run.trainer.buffer
    return {
        "source": args.data,
        "rows": counts.rows,
        "batches": counts.batches,
        "batches_without_pairs": counts.idle_batches,
        "pairs": counts.pairs,
        "features": int(run.weights().shape[1]),
        "storage": run.columns.storage,
        "buffer_rows": buffer.n_rows,
        "rows_forgotten": buffer.n_forgotten,
    }


def options_summary(run: StreamRun, args: argparse.Namespace) -> dict[str, Any]:
    """What it and the model file say of the options."""
    learner = run.trainer.descent.learners[0]
    return {
        "method": args.method,
        "algorithm": args.algorithm,
        "alpha": learner.alpha,
        "aggressiveness": learner.aggressiveness,
        "sampling": args.sampling,
        "average": args.average,
        "seed": args.random_state,
        "steps_per_row": args.steps_per_row,
        "passes": args.passes,
        "memory_mb": args.memory,
    }


def training_summary(run: StreamRun, args: argparse.Namespace) -> dict[str, Any]:
    """What the JSON report says of the run."""
    return {
        **options_summary(run, args),
        "steps": run.trainer.n_steps,
        "loss": float(run.trainer.descent.mean_losses()[0]),
    }


MB = 1_000_000
LEAST_MEMORY = 100  # MB


@dataclass(frozen=True)
class Plan:
    """What the memory is for, in bytes. A function of ``--memory`` alone, or a run that goes on
    elsewhere would forget other rows than the one before it."""

    program: int
    reading: int
    weights: int
    buffer: int

    @classmethod
    def of(cls, megabytes: int) -> Plan:
        """48 MB of program, 12 of text, an eighth of batches, an eighth of weights; rows."""
        total = megabytes * MB
        program, reading, weights = 48 * MB, 12 * MB + total // 8, total // 8
        return cls(program, reading, weights, total - program - reading - weights)

    @property
    def most_columns(self) -> int:
        """A weight is a double, there is one for the average, and both are copied to be saved."""
        return min(self.weights // 64, 2**31 - 1)

    @property
    def batch_entries(self) -> int:
        """An entry of a batch is held up to three times: read, waiting, and joined."""
        return (self.reading - 12 * MB) // 24

    def __str__(self) -> str:
        """In words."""
        parts = {"rows": self.buffer, "program": self.program}
        parts |= {"reading": self.reading, "weights": self.weights}
        listed = " + ".join(f"{n // MB} MB {name}" for name, n in parts.items())
        return f"{sum(parts.values()) // MB} MB at most = {listed}"


# Options by the name of their value that need --stream, and what they mean when not given.
_DEFAULTS: dict[str, Any] = {
    "passes": 1,
    "memory": 200,
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


def check_streaming(args: argparse.Namespace, parser: argparse.ArgumentParser) -> None:
    """Fail on options that do not go together; fill in those that were not given."""
    if args.memory_limit is not None:
        parser.error("--memory-limit is for a store, --memory MB for --stream")
    if os.path.isdir(args.data):
        parser.error(
            f"--stream reads text, and {args.data} is a folder; give --memory-limit SIZE in its "
            "place to go through a store within that"
        )
    for name, why in _REFUSED.items():
        if getattr(args, name) is not None:
            parser.error(f"--stream excludes {why}")
    if args.scale not in (None, "none"):
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
    if args.checkpoint_every != _DEFAULTS["checkpoint_every"] and args.checkpoint is None:
        parser.error("--checkpoint-every needs --checkpoint FILE")
    if args.passes > 1 and args.data == STANDARD:
        parser.error("--passes needs a file; standard input is gone once it is read")
    if args.checkpoint == STANDARD:
        parser.error("--checkpoint needs a file, not a standard stream (-)")
    if args.memory < LEAST_MEMORY:
        parser.error(f"--memory must be at least {LEAST_MEMORY} (MB), got {args.memory}")


def run_stream(args: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    """Read and learn, batch by batch; measure, write."""
    check_streaming(args, parser)
    check_files(args, parser)
    check_text(args.data)
    if args.checkpoint is not None:
        check_writable(args.checkpoint)
        check_apart(args.checkpoint, args.data, args.valid)
        # Neither need be there yet; the partial checkpoint and then the model would replace it.
        if os.path.realpath(args.checkpoint) == os.path.realpath(args.model):
            parser.error(f"MODEL and --checkpoint are one file, {args.model}; name two")
    console = Console(quiet=args.quiet, verbose=args.verbose)
    plan = Plan.of(args.memory)
    console.say("memory", str(plan))
    run = _open(args, plan)
    if args.checkpoint is not None and os.path.exists(args.checkpoint):
        run.resume(args.checkpoint)
        say_resumed(run, args, console)
    start, before = time.perf_counter(), run.trainer.counts.rows
    _learn(run, args, console)
    took = time.perf_counter() - start
    console.clear()
    say_result(run, args, took, run.trainer.counts.rows - before, console)
    model = _model(run, args)
    evaluation = write_and_validate(model, args, console)
    if args.json:
        times = (start, start, start + took)
        print_json(args, data_summary(run, args), training_summary(run, args), evaluation, times)
    return OK


def _open(args: argparse.Namespace, plan: Plan) -> StreamRun:
    from linrank.cli.streams import is_model
    from linrank.io.blocks import LONGEST_LINE
    from linrank.stochastic.batches import Layout
    from linrank.stochastic.descent import Learner
    from linrank.stochastic.stream_passes import StreamRun
    from linrank.stochastic.streaming import StreamTrainer
    from linrank.stochastic.train import regularisation

    if is_model(args.data):
        raise ValueError(f"{args.data}: is JSON, like a model, not data; DATA comes first")
    alpha = regularisation(args.alpha)
    learner = Learner(args.algorithm, alpha, args.aggressiveness)
    options = {
        "--algorithm": args.algorithm,
        "--alpha": alpha,
        "--aggressiveness": args.aggressiveness,
        "--sampling": args.sampling,
        "--average": args.average,
        "--seed": args.random_state,
        "--steps-per-row": args.steps_per_row,
        "--memory": args.memory,
        "--index-base": args.index_base,
    }
    trainer = StreamTrainer(
        [learner],
        average=args.average,
        seed=args.random_state,
        sampling=args.sampling,
        memory=plan.buffer,
        steps_per_row=args.steps_per_row,
    )
    layout = Layout(
        index_base=args.index_base,
        batch_entries=plan.batch_entries,
        most_columns=plan.most_columns,
        longest_line=min(args.memory * MB // 64, LONGEST_LINE),
        remedy=f"give more than --memory {args.memory}, or renumber the features",
    )
    return StreamRun(args.data, trainer, args.passes, layout, options)


def _learn(run: StreamRun, args: argparse.Namespace, console: Console) -> None:
    """Run to the end, saving checkpoints; Ctrl-C saves one more."""
    progress, saved = Progress(run, console), time.monotonic()

    def on_batch(batch: Batch, batches: Batches) -> None:
        nonlocal saved
        if args.checkpoint is not None and time.monotonic() - saved >= args.checkpoint_every:
            run.save(args.checkpoint)
            saved = time.monotonic()
        progress.show(batch, batches)

    try:
        with _interrupts_wait(run):
            run.run(on_batch)
    except KeyboardInterrupt:
        console.clear()
        if args.checkpoint is not None:
            run.save(args.checkpoint)
            console.say("saved", f"{args.checkpoint}: the same command goes on from there")
        raise
    if args.checkpoint is not None:
        run.save(args.checkpoint)


@contextmanager
def _interrupts_wait(run: StreamRun) -> Iterator[None]:
    """Ctrl-C, or being told to end, waits for the end of a batch, but not for a silent pipe."""
    if threading.current_thread() is not threading.main_thread():
        yield  # whoever called handles signals
        return
    found = {number: signal.getsignal(number) for number in (signal.SIGINT, *SIGNALS)}
    handlers = {number: handler for number, handler in found.items() if callable(handler)}
    asked: list[int] = []

    def on_signal(number: int, frame: Any) -> None:
        if not run.is_learning:
            handlers[number](number, frame)
        asked.append(number)
        run.is_stop_asked = True

    for number in handlers:
        signal.signal(number, on_signal)
    try:
        yield
    finally:
        for number, handler in handlers.items():
            if signal.getsignal(number) is on_signal:
                signal.signal(number, handler)
        for number in asked:
            handlers[number](number, None)  # the batch is done: as if it came now


def _model(run: StreamRun, args: argparse.Namespace) -> LinearModel:
    from linrank.models.linear import LinearModel

    trainer, counts = run.trainer, run.trainer.counts
    training = {
        **options_summary(run, args),
        "n_steps": trainer.n_steps,
        "loss": float(trainer.descent.mean_losses()[0]),
        "index_base": run.first_feature,
        "n_rows": counts.rows,
        "n_pairs": counts.pairs,
    }
    return LinearModel(run.weights()[0], training=training)
