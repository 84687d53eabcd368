"""What ``linrank train --stream`` says while it runs, and of its result."""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING, Any

from linrank.cli.console import Console, bytes_text, count, seconds

if TYPE_CHECKING:
    from linrank.stochastic.batches import Batch, Batches
    from linrank.stochastic.passes import StreamRun


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
        "solver": args.solver,
        "algorithm": args.algorithm,
        "alpha": learner.alpha,
        "aggressiveness": learner.aggressiveness,
        "sampling": args.sampling,
        "average": args.average,
        "seed": args.seed,
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
