"""Conventions: what the tools of the field mean by the same name of a measure.

| | gain | discount | ties | no relevant row | relevant | fewer than k rows |
|---|---|---|---|---|---|---|
| linrank | 2^y - 1 | 1/log2(i+1) | input order | 0 | y >= 1 | k becomes l_q |
| letor | 2^y - 1 | 1/log2(max(2, i)) | input order | 0 | y >= 1 | NDCG@k is 0 |
| mslr | 2^y - 1 | 1/log2(max(2, i)) | input order | 0 | y >= 2 | NDCG@k is 0 |
| trec_eval | y | 1/log2(i+1) | larger document id first | 0 | y >= 1 | k becomes l_q |
| sklearn | y | 1/log2(i+1) | averaged | 0 | y >= 1 | k becomes l_q |
| lightgbm | 2^y - 1 | 1/log2(i+1) | input order | 1 | y >= 1 | k becomes l_q |
| xgboost | 2^y - 1 | 1/log2(i+1) | input order | 1 | y >= 1 | k becomes l_q |
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, Literal, get_args

from linrank.errors import did_you_mean
from linrank.metrics.measures import Discount, Empty, Gain, PairTies, check_option

Ties = Literal["stable", "average", "pessimistic", "docid"]


@dataclass(frozen=True)
class Convention:
    """All choices that a measure leaves open.

    Parameters
    ----------
    name : str
        Printed next to every result.
    gain : {"exponential", "linear"}
        Gain of a label in NDCG: 2^y - 1 or y.
    discount : {"standard", "letor"}
        Discount of rank i in NDCG: 1/log2(i+1) or 1/log2(max(2, i)).
    ties : {"stable", "average", "pessimistic", "docid"}
        Rows with equal scores: in input order; the expectation over all their orders; the lower
        label first; the larger document id first.
    empty : {0, 1, "skip"}
        NDCG, AP and recall of a query without a relevant row, where they are 0/0. "skip" leaves
        the query out of the mean of every measure but the pairwise ones, which always do.
    relevant_from : float
        A row is relevant when its label is at least this (MAP, P, recall, MRR, AUC).
    pair_ties : {"error", "half", "skip"}
        Pairs with equal scores in the pairwise accuracy.
    short_is_zero : bool
        NDCG@k of a query with fewer than k rows is 0, as in the LETOR scripts.
    reachable : bool
        AP@k divides by min(k, #relevant) and P@k by min(k, l_q), the most that can be reached,
        instead of by #relevant and k.
    step_precision : bool
        In AP, rows with equal scores share the precision after the last of them.
    negative_is_zero : bool
        Negative labels have no gain in NDCG and ERR; otherwise they are an error.
    single_precision : bool
        Scores are rounded to float32 before they are compared.
    """

    name: str
    gain: Gain = "exponential"
    discount: Discount = "standard"
    ties: Ties = "stable"
    empty: Empty = 0.0
    relevant_from: float = 1.0
    pair_ties: PairTies = "error"
    short_is_zero: bool = False
    reachable: bool = False
    step_precision: bool = False
    negative_is_zero: bool = False
    single_precision: bool = False

    def __post_init__(self) -> None:
        for option in ("gain", "discount", "empty", "relevant_from"):
            check_option(option, getattr(self, option))
        check_option("ties", self.pair_ties)
        if self.ties not in get_args(Ties):
            raise ValueError(f"ties must be one of {', '.join(get_args(Ties))}, got {self.ties!r}")

    def describe(self) -> str:
        """Return the convention in one line, for the foot of a table."""
        gain = {"exponential": "2^y - 1", "linear": "y"}[self.gain]
        discount = {"standard": "1/log2(i+1)", "letor": "1/log2(max(2, i))"}[self.discount]
        ties = {
            "stable": "in input order",
            "average": "averaged",
            "pessimistic": "worst first",
            "docid": "by descending document id",
        }[self.ties]
        pairs = {"error": "wrong", "half": "half right", "skip": "skipped"}[self.pair_ties]
        empty = "skipped" if self.empty == "skip" else f"{self.empty:g}"
        short = ", ndcg@k of queries with fewer than k rows 0" if self.short_is_zero else ""
        return (
            f"{self.name}: gain {gain}, discount {discount}, ties {ties}, "
            f"tied pairs {pairs}, relevant from {self.relevant_from:g}, "
            f"queries without relevant rows {empty}{short}"
        )


_LETOR = Convention("letor", discount="letor", short_is_zero=True)
CONVENTIONS: dict[str, Convention] = {
    c.name: c
    for c in (
        Convention("linrank"),
        _LETOR,
        dataclasses.replace(_LETOR, name="mslr", relevant_from=2.0),
        Convention(
            "trec_eval", gain="linear", ties="docid", negative_is_zero=True, single_precision=True
        ),
        Convention("sklearn", gain="linear", ties="average", pair_ties="half", step_precision=True),
        Convention("lightgbm", empty=1.0, reachable=True),
        Convention("xgboost", empty=1.0, reachable=True, single_precision=True),
    )
}


def convention(name: str | Convention, **changes: Any) -> Convention:
    """Return the convention of that name, with some of its choices changed.

    Examples
    --------
    >>> convention("letor", empty="skip").name
    'letor, empty=skip'
    """
    if isinstance(name, str) and name not in CONVENTIONS:
        hint = did_you_mean(name, CONVENTIONS)
        raise ValueError(f"unknown convention {name!r}{hint} (known: {', '.join(CONVENTIONS)})")
    base = CONVENTIONS[name] if isinstance(name, str) else name
    known = [f.name for f in dataclasses.fields(Convention) if f.name != "name"]
    unknown = sorted(set(changes) - {"name", *known})
    if unknown:
        raise ValueError(f"a convention has no choice {unknown[0]!r}; it has {', '.join(known)}")
    changes = {c: v for c, v in changes.items() if v != getattr(base, c)}
    label = ", ".join([base.name, *(f"{c}={v}" for c, v in changes.items() if c != "name")])
    return dataclasses.replace(base, **{"name": label, **changes})
