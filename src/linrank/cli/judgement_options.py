"""The options that give rows their labels by judgements (qrels)."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from linrank.data.dataset import Dataset

UNJUDGED = ("zero", "drop", "error")


def add_judgements(parser: argparse.ArgumentParser) -> None:
    """Declare them."""
    group = parser.add_argument_group("judgements")
    group.add_argument(
        "--qrels",
        metavar="FILE",
        help="take the labels from judgements, lines 'qid iteration docid relevance', by query and "
        "document",
    )
    group.add_argument(
        "--unjudged",
        choices=UNJUDGED,
        help="rows without a judgement: label 0 (default), left out, or an error",
    )


def judgement_options(args: argparse.Namespace) -> dict[str, Any]:
    """The options as `linrank.load` takes them; a command may lack them."""
    qrels, unjudged = getattr(args, "qrels", None), getattr(args, "unjudged", None)
    if qrels is None and unjudged is not None:
        raise ValueError(f"--unjudged {unjudged} says what to do with --qrels, which is not given")
    return {} if qrels is None else {"qrels": qrels, "unjudged": unjudged or UNJUDGED[0]}


def judged(data: Dataset, args: argparse.Namespace) -> Dataset:
    """The data with the labels that the options ask for."""
    options = judgement_options(args)
    if not options:
        return data
    from linrank.io.judgements import judged

    return judged(data, **options)
