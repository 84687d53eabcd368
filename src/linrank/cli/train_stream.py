"""``linrank train --solver sgd --stream``: data that need not fit in memory, or never end."""

from __future__ import annotations

import argparse
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from linrank.cli.console import Console
from linrank.cli.ending import SIGNALS
from linrank.cli.main import OK
from linrank.cli.stream_memory import MB, Plan
from linrank.cli.stream_options import check_text
from linrank.cli.stream_report import (
    Progress,
    data_summary,
    options_summary,
    say_result,
    say_resumed,
    training_summary,
)
from linrank.cli.streams import check_apart, check_writable
from linrank.cli.train_report import print_json
from linrank.cli.training import check_files, write_and_validate

if TYPE_CHECKING:
    from linrank.models.linear import LinearModel
    from linrank.stochastic.batches import Batch, Batches
    from linrank.stochastic.passes import StreamRun


def run_stream(args: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    """Read and learn, batch by batch; measure, write."""
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
    from linrank.cli.models import is_model
    from linrank.io.blocks import LONGEST_LINE
    from linrank.stochastic.batches import Layout
    from linrank.stochastic.descent import Learner
    from linrank.stochastic.passes import StreamRun
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
        "--seed": args.seed,
        "--steps-per-row": args.steps_per_row,
        "--memory": args.memory,
        "--index-base": args.index_base,
    }
    trainer = StreamTrainer(
        [learner],
        average=args.average,
        seed=args.seed,
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
