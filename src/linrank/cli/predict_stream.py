"""``linrank predict -``: rows scored as they arrive, query by query where the query matters."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from linrank.cli.console import Console, count
from linrank.cli.main import OK
from linrank.cli.predict_lines import run_lines_of, score_lines
from linrank.cli.reading import INDEX_BASE
from linrank.cli.streams import STANDARD, write_lines
from linrank.cli.table_options import in_options

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from linrank.data.dataset import Dataset
    from linrank.io.text_stream import TextStream
    from linrank.models.kernel import KernelModel
    from linrank.models.linear import LinearModel


def can_stream(model: LinearModel | KernelModel) -> bool:
    """Whether rows need nothing but their query to be scored: not for a precomputed kernel, whose
    columns are the training rows, all of them and no others."""
    kernel = getattr(model, "kernel", None)
    return kernel is None or kernel.name != "precomputed"


def run_stream(
    model: LinearModel | KernelModel, output: str, args: argparse.Namespace, console: Console
) -> int:
    """Score and write what is read, until the end of it."""
    from linrank.io.text_stream import TextStream, whole_queries

    base = model.training.get("index_base")
    zero_based: Any = INDEX_BASE[args.index_base]
    if zero_based == "auto" and base is not None:
        zero_based = base == 0
    by_query = args.trec or model.scaling.needs_queries
    stream = TextStream(
        args.data, model.n_features, dtype=args.dtype, zero_based=zero_based, grouped=by_query
    )
    parts = whole_queries(stream) if by_query else iter(stream)
    with in_options():
        write_lines(output, _blocks(model, stream, parts, args, console))
    if output != STANDARD:
        console.say(
            "scored", f"{count(stream.n_rows, 'row')} of {stream.name}; written to {output}"
        )
    return OK


def _blocks(
    model: LinearModel | KernelModel,
    stream: TextStream,
    parts: Iterator[Dataset],
    args: argparse.Namespace,
    console: Console,
) -> Iterator[str]:
    """The lines of each part, scored."""
    n_before, has_warned = 0, False
    for data in parts:
        if stream.beyond is not None and not has_warned:
            place, feature = stream.beyond
            console.warn(
                f"{place}: feature {feature:,} is one that the model has not seen: it knows "
                f"{model.n_features:,}; such features count nothing"
            )
            has_warned = True
        try:
            scores: NDArray[np.float64] = model.predict(data, n_jobs=args.jobs)
        except ValueError as error:  # it counts from the first row that is still here
            raise ValueError(f"{stream.name}: behind {n_before:,} rows: {error}") from None
        if args.trec:
            numbers = data.queries.ids
            ids = ["1"] if numbers is None else [stream.id_of(q) for q in numbers.tolist()]
            yield from run_lines_of(data, scores, ids, args, n_before)
        else:
            yield from score_lines(scores)
        n_before += data.n_rows
