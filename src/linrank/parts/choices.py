"""What training on chunks does not do: refused by name, with what to do instead."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from linrank.domination.train import check_parameters, choose_solver
from linrank.options import SELECTED_PAIRS
from linrank.pairs.layering import is_by_row, is_table
from linrank.ranksvm.train import check_choices


def check_rank(
    where: str,
    *,
    loss: str,
    pairs: str,
    pair_weighting: str,
    solver: str,
    query_normalization: str | None,
) -> None:
    """Raise ValueError for a choice of `linrank.RankSVM` that chunks cannot serve.

    ``where`` says what the data are, for the message: "a store", "a cluster".
    """
    check_choices(loss, pairs, pair_weighting, solver, query_normalization)
    if solver != "newton":
        raise ValueError(
            f"solver={solver!r} reads rows that are all in memory, not {where}; use solver='newton'"
        )
    if pairs in SELECTED_PAIRS:
        raise ValueError(
            f"pairs={pairs!r} lists pairs of all queries together and cannot be had from {where}; "
            "use pairs='all' or 'adjacent'"
        )


def check_domination(
    where: str,
    *,
    penalty: str,
    alpha: float,
    margin: Any,
    pooled: bool,
    solver: str,
    feature_induction: int | None,
    negative_sampling: float | None,
    **others: Any,
) -> None:
    """The same for a choice of `linrank.DominationRanker`; ``others`` are the rest of its own."""
    check_parameters(
        penalty=penalty,
        alpha=alpha,
        solver=solver,
        feature_induction=feature_induction,
        negative_sampling=negative_sampling,
        **{name: value for name, value in others.items() if name in ("tol", "max_iter")},
    )
    if choose_solver(solver, penalty, feature_induction) != "newton":
        raise ValueError(
            f"penalty={penalty!r} with solver={solver!r} reads features one by one, which {where} "
            "cannot give; use penalty='l2' and solver='newton'"
        )
    if negative_sampling not in (None, 1.0):
        raise ValueError(
            f"negative_sampling={negative_sampling!r} cannot be had from {where}; leave it out"
        )
    if pooled:
        raise ValueError(
            f"pooled=True makes one query of all rows, and {where} is cut by queries; use "
            "pooled=False"
        )
    if is_table(margin) or is_by_row(margin):
        raise ValueError(
            f"a margin by table or by row speaks of all rows together and cannot be had from "
            f"{where}; give a number, 'linear', 'log' or a function of the labels"
        )


def check_query_weight(weight: Any) -> Mapping[Any, float] | None:
    """Query weights by query id: the only form that needs no order of queries."""
    if weight is None or isinstance(weight, Mapping):
        return weight
    raise ValueError(
        f"query_weight must be a mapping from query id to weight here, got "
        f"{type(weight).__name__}; write {{id: weight, ...}}"
    )
