"""``linrank train --method sgd --stream``: data that need not fit in memory, or never end."""

from __future__ import annotations

import os
import time
from argparse import Namespace
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from linrank.cli.console import Clock, Console, Result, hold_signals
from linrank.cli.files import check_files, check_text
from linrank.cli.main import UsageError
from linrank.cli.options import STANDARD, fill_in, flag
from linrank.cli.train import check_checkpoint, check_trained_files, finish
from linrank.methods.base import defaults_of
from linrank.methods.parameters import SGDParameters
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
# What a checkpoint must have in common with the run that goes on from it.
_KEPT = (
    *("algorithm", "alpha", "aggressiveness", "sampling", "average", "seed"),
    *("steps_per_row", "memory_limit", "index_base"),
)


def memory_plan(limit: int) -> dict[str, int]:
    """What a limit of memory is for, in bytes: 12 MB and an eighth to read, a sixth for weights.

    A function of ``--memory-limit`` alone: a run that goes on elsewhere would otherwise forget
    other rows than the one before it.
    """
    reading, weights = 12 * MB + limit // 8, limit // 6
    return {"rows": limit - reading - weights, "reading": reading, "weights": weights}


def check_streaming(args: Namespace) -> None:
    """Fail on options that do not go together; fill in those that were not given."""
    if os.path.isdir(args.data):
        raise UsageError(
            f"--stream reads text, and {args.data} is a folder; leave it out, and --memory-limit "
            "SIZE goes through a store within that"
        )
    own = defaults_of(SGDParameters)
    descent = {name: own[name] for name in ("algorithm", "sampling", "aggressiveness")}
    fill_in(args, {**_DEFAULTS, **descent, "random_state": 0})
    args.seed = args.random_state
    if args.passes > 1 and args.data == STANDARD:
        raise UsageError("--passes needs a file; standard input is gone once it is read")
    if args.memory_limit < LEAST_MEMORY:
        least = f"{LEAST_MEMORY // MB}MB"
        raise UsageError(
            f"--memory-limit must be at least {least}, got {args.memory_limit // MB}MB"
        )


def run_stream(args: Namespace, console: Console) -> Result:
    """Read and learn, batch by batch; measure, write."""
    check_streaming(args)
    check_trained_files(args)
    check_text(args.data)
    if args.checkpoint is not None:
        check_checkpoint(args.checkpoint, args)
        check_files([args.data, args.valid], args.checkpoint)
    stream = _open(args, console)
    clock, before = Clock(), stream.trainer.counts.rows
    clock.end("read")  # it comes with learning
    _learn(stream, args, console)
    console.clear()
    took, n_rows = clock.end("train"), stream.trainer.counts.rows - before
    # From a checkpoint that was finished, nothing is learned in the time of this process.
    speed = f" in {seconds(took)}, {n_rows / max(took, 1e-9):,.0f} rows/s" if n_rows > 0 else ""
    data, training = _facts(stream, args)
    _say(data, training, speed, console)
    if (doubt := stream.trainer.doubt()) is not None:
        console.warn(doubt)
    model = _model(stream, args)
    return finish(model, True, data, training, args, console, clock)


def _open(args: Namespace, console: Console) -> Stream:
    """The stream, behind what the run before it had learned."""
    from linrank.io.blocks import LONGEST_LINE
    from linrank.stochastic.descent import Learner
    from linrank.stochastic.stream_passes import BATCH_BYTES, Stream
    from linrank.stochastic.streaming import StreamTrainer
    from linrank.stochastic.train import regularization

    plan, limit = memory_plan(args.memory_limit), args.memory_limit // MB
    parts = " + ".join(f"{n // MB} MB {name}" for name, n in plan.items())
    console.say("memory", f"{limit} MB at most, beside the program = {parts}")
    args.alpha = regularization(args.alpha)
    trainer = StreamTrainer(
        [Learner(args.algorithm, args.alpha, args.aggressiveness)],
        average=args.average,
        seed=args.seed,
        sampling=args.sampling,
        memory=plan["rows"],
        steps_per_row=args.steps_per_row,
    )
    share = args.memory_limit // 64
    stream = Stream(
        args.data,
        trainer,
        args.passes,
        {flag(name): getattr(args, name) for name in _KEPT},
        index_base=args.index_base,
        batch_bytes=min(share, BATCH_BYTES),
        # A weight is a double, there is one for the average, and both are copied to be saved, and
        # written out in the model file.
        most_columns=min(plan["weights"] // 96, 2**31 - 1),
        longest_line=min(share, LONGEST_LINE),
        remedy=f"give more than --memory-limit {limit}MB, or renumber the features",
    )
    if args.checkpoint is not None and os.path.exists(args.checkpoint):
        stream.resume(args.checkpoint)
        rows = count(stream.trainer.counts.rows, "row")
        state = f"learned; what was read of pass {stream.pass_number} is read again and passed over"
        state = "finished; nothing is left to learn" if stream.is_finished else state
        console.say("resumed", f"{args.checkpoint}: {rows}, {state}")
    return stream


def _learn(stream: Stream, args: Namespace, console: Console) -> None:
    """Learn batch by batch to the end, saving checkpoints; Ctrl-C saves one more."""
    show, saved, has_doubted = _progress(stream, console), time.monotonic(), False
    try:
        for text, n_read in stream:
            with hold_signals():  # a batch that is half learned must not be saved
                stream.learn(text)
                if args.checkpoint and time.monotonic() - saved >= args.checkpoint_every:
                    _save(stream, args)
                    saved = time.monotonic()
            if not has_doubted and (doubt := stream.trainer.doubt()) is not None:
                has_doubted = True
                console.warn(f"{stream.name}: {doubt}")
            show(n_read)
    except KeyboardInterrupt:
        console.clear()
        if args.checkpoint is not None:
            _save(stream, args)
            console.say("saved", f"{args.checkpoint}: the same command goes on from there")
        raise
    if args.checkpoint is not None:
        _save(stream, args)


# ---- progress and reports -----------------------------------------------------------------------


def _progress(stream: Stream, console: Console) -> Callable[[int], None]:
    """What shows bytes, rows, steps and the loss of late, after each batch; -v keeps few lines."""
    trainer, interval = stream.trainer, 10.0 if console.verbose else 0.2  # seconds
    last, rows, steps, loss = time.perf_counter(), trainer.counts.rows, trainer.n_steps, 0.0

    def show(n_read: int) -> None:
        nonlocal last, rows, steps, loss
        now = time.perf_counter()
        if not (console.live or console.verbose) or now - last < interval:
            return
        speed = (trainer.counts.rows - rows) / (now - last)
        total = float(trainer.descent.mean_losses()[0]) * trainer.n_steps
        mean = (total - loss) / max(1, trainer.n_steps - steps)
        last, rows, steps, loss = now, trainer.counts.rows, trainer.n_steps, total
        of = f" of {bytes_text(stream.size)}" if stream.size else ""
        passes = f"pass {stream.pass_number}/{stream.passes}: " if stream.passes > 1 else ""
        console.tell(
            f"{passes}{bytes_text(n_read)}{of}, {rows:,} rows ({speed:,.0f}/s), {steps:,} steps, "
            f"loss {mean:.4f}"
        )

    return show


def _facts(stream: Stream, args: Namespace) -> tuple[dict[str, Any], dict[str, Any]]:
    """What the JSON report says of the data and of the training."""
    trainer = stream.trainer
    counts, buffer = trainer.counts, trainer.buffer
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
    training = {name: getattr(args, name) for name in ("method", *_KEPT[:-1], "passes")}
    loss = float(trainer.descent.mean_losses()[0])
    return data, {**training, "steps": trainer.n_steps, "loss": loss}


def _say(data: dict[str, Any], training: dict[str, Any], speed: str, console: Console) -> None:
    """What was learned from, and how."""
    rows, batches = count(data["rows"], "row"), count(data["batches"], "batch", "batches")
    pairs, features = count(data["pairs"], "pair"), count(data["features"], "feature")
    size = f"{rows} in {batches}, {pairs}, {features}, {data['storage']}"
    console.say("read", f"{data['source']}: {size}")
    rows, queries = data["buffer_rows"], count(data["buffer_queries"], "query", "queries")
    forgotten = f"{count(data['rows_forgotten'], 'row')} forgotten on the way"
    console.say("buffer", f"{count(rows, 'row')} of {queries} at the end; {forgotten}")
    how = "{algorithm}, λ = {alpha:g}, sampling {sampling}".format(**training)
    steps, loss = count(training["steps"], "step"), training["loss"]
    console.say("trained", f"{how}: {steps}{speed}; mean loss {loss:.4f}")


def _model(stream: Stream, args: Namespace) -> LinearModel:
    from linrank.models.linear import LinearModel

    data, training = _facts(stream, args)
    training["n_steps"] = training.pop("steps")
    known = {"index_base": stream.first_feature, "n_rows": data["rows"], "n_pairs": data["pairs"]}
    return LinearModel(stream.weights()[0], training={**training, **known})


def _save(stream: Stream, args: Namespace) -> None:
    """Write a checkpoint, with the model of now where there is one."""
    model = _model(stream, args).to_json() if stream.weights().size > 0 else None
    stream.save(args.checkpoint, model)
