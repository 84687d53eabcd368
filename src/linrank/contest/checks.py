"""What may be wrong with the parts of a contest: errors, and warnings where it is not certain."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from linrank.contest.protocol import Fold, Protocol
from linrank.errors import NoPairsError
from linrank.metrics import Convention, parse, parse_scoring
from linrank.metrics.evaluate import evaluate_queries

__all__ = ["check_protocol", "leaks"]


def check_protocol(
    protocol: Protocol, scoring: str, metrics: Sequence[str], convention: Convention
) -> list[str]:
    """Raise ValueError for parts that cannot be compared on; return what to warn of."""
    _check_features(protocol)
    _check_pairs(protocol)
    for fold in protocol.folds:
        _check_measurable(protocol, fold.valid[0], (scoring,), convention, "choose by")
        _check_measurable(protocol, fold.test[0], metrics, convention, "test by")
    return [
        *leaks(protocol),
        *_weights(protocol),
        *_single_query(protocol),
        *_lenient(metrics),
    ]


def _check_features(protocol: Protocol) -> None:
    """The same columns everywhere: as many, and counted from the same number."""
    counts = [data.n_features for data in protocol.subsets]
    if len(set(counts)) > 1:
        each = ", ".join(f"{n} {c:,}" for n, c in zip(protocol.names, counts, strict=True))
        raise ValueError(
            f"the numbers of features differ: {each}; use files of the same features, or, if a "
            f"file only leaves out the last ones because they are 0, say how many there are: "
            f"--n-features {max(counts)} (linrank.load(..., n_features={max(counts)}))"
        )
    bases = [data.index_base for data in protocol.subsets]
    if {0, 1} <= set(bases):
        zero, one = (protocol.names[bases.index(base)] for base in (0, 1))
        raise ValueError(
            f"{zero} has a feature 0 and {one} has none, so that their columns would not match; "
            "say with --index-base 0 or 1 (linrank.load(..., zero_based=)) where counting begins"
        )


def _check_pairs(protocol: Protocol) -> None:
    for name, data in zip(protocol.names, protocol.subsets, strict=True):
        if data.queries.n_pairs == 0:
            raise NoPairsError(
                f"{name} has no pair to compare: in each of its {data.queries.n_queries:,} queries "
                "all labels are equal; check labels and qid"
            )


def _check_measurable(
    protocol: Protocol, part: int, metrics: Sequence[str], convention: Convention, what: str
) -> None:
    """Some query must count in every measure; negative labels and the like are found here too."""
    data = protocol.subsets[part]
    try:
        result = evaluate_queries(
            data.queries,
            data.labels,
            np.arange(float(data.n_rows)),  # all different: what ties leave undefined is no fault
            metrics=[parse(metric) for metric in metrics],
            convention=convention,
        )
    except ValueError as error:
        raise ValueError(f"{protocol.names[part]}, to {what}: {error}") from error
    for metric, mean in result.items():
        if np.isnan(mean):
            raise ValueError(
                f"{metric}, to {what}, is undefined on {protocol.names[part]}: none of its "
                f"{data.queries.n_queries:,} queries can be judged; use another measure"
            )


def leaks(protocol: Protocol) -> list[str]:
    """A warning for each two subsets in different parts of a fold that have query ids in common."""
    found = []
    for a, b in combinations(range(len(protocol.subsets)), 2):
        if not any(_apart(fold, a, b) for fold in protocol.folds):
            continue
        ids = [protocol.subsets[k].queries.ids for k in (a, b)]
        if ids[0] is None or ids[1] is None:
            continue
        seen = set(ids[1].tolist())
        shared = [query for query in ids[0].tolist() if query in seen]
        if shared:
            found.append(_leak(protocol, a, b, shared))
    return found


def _apart(fold: Fold, a: int, b: int) -> bool:
    parts = (fold.train, fold.valid, fold.test)
    return not any(a in part and b in part for part in parts)


def _leak(protocol: Protocol, a: int, b: int, shared: Sequence[object]) -> str:
    total = protocol.subsets[b].queries.n_queries
    occurs = "occurs" if len(shared) == 1 else "occur"
    return (
        f"{len(shared):,} of the {total:,} query ids of {protocol.names[b]} also {occurs} in "
        f"{protocol.names[a]}, such as {shared[0]}: if they are the same queries, what is learnt "
        "leaks into what is measured, and the results are too good; if every file numbers its own "
        "queries from the beginning, there is no harm"
    )


def _weights(protocol: Protocol) -> list[str]:
    weighted = [
        name
        for name, data in zip(protocol.names, protocol.subsets, strict=True)
        if data.weight is not None
    ]
    if not weighted:
        return []
    return [f"the weights of the rows of {weighted[0]} are left out: not all methods take them"]


def _single_query(protocol: Protocol) -> list[str]:
    """A test on one query says nothing about others; as a rule the file lacks its qid."""
    tested = [protocol.subsets[fold.test[0]] for fold in protocol.folds]
    if sum(data.queries.n_queries for data in tested) > 1:
        return []
    name = protocol.names[protocol.folds[0].test[0]]
    why = " (it has no qid, so that all its rows are one)" if tested[0].queries.ids is None else ""
    return [f"{name} has a single query{why}: no interval and no p can be had from it"]


def _lenient(metrics: Sequence[str]) -> list[str]:
    """Measures by which a model that ties all rows would be the best."""
    found = []
    for metric in metrics:
        try:
            parse_scoring(metric)
        except ValueError:
            found.append(
                f"{metric} counts rows that are only tied as right, in favour of methods that tie "
                f"many; {parse(metric).name}(ties=error) counts them as wrong"
            )
    return found
