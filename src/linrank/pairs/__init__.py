"""Pairs: which rows are compared, with which weight, and how to compare fewer of them."""

from __future__ import annotations

from linrank.pairs.choice import chosen, chosen_sizes
from linrank.pairs.selection import closest, pruned, random
from linrank.pairs.weighted import Pairs, choose_pairs, no_pairs_message

__all__ = [
    "Pairs",
    "choose_pairs",
    "chosen",
    "chosen_sizes",
    "closest",
    "no_pairs_message",
    "pruned",
    "random",
]
