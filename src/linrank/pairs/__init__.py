"""Pairs: which rows are compared, with which weight, and how to compare fewer of them."""

from __future__ import annotations

from linrank.pairs.choice import (
    Pairs,
    check_total,
    choose_pairs,
    chosen,
    chosen_sizes,
    closest,
    no_pairs_message,
    pruned,
    random,
)

__all__ = [
    "Pairs",
    "check_total",
    "choose_pairs",
    "chosen",
    "chosen_sizes",
    "closest",
    "no_pairs_message",
    "pruned",
    "random",
]
