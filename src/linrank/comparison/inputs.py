"""What is compared must be comparable: the same queries, metrics and convention for all methods."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from linrank.metrics.evaluation import Evaluation
from linrank.metrics.measures import Measure
from linrank.metrics.parsing import parse

__all__ = ["aligned", "check_choice", "check_methods", "check_numbers", "chosen_metrics"]

Value = TypeVar("Value")


def check_methods(methods: Any, what: str) -> None:
    """Raise unless ``methods`` maps names to something."""
    if not isinstance(methods, Mapping):
        raise TypeError(
            f"{what} must map the name of each method to what it gave, as in "
            f"{{'old': ..., 'new': ...}}; got {type(methods).__name__}"
        )
    if not methods:
        raise ValueError(f"{what} is empty; give at least one method")
    for name in methods:
        if not isinstance(name, str):
            raise TypeError(f"the name of a method must be a string, got {name!r}")


def check_choice(name: str, value: Any, choices: Sequence[Any]) -> None:
    """Raise unless ``value`` is one of ``choices``."""
    if value not in choices:
        known = ", ".join(repr(choice) for choice in choices)
        raise ValueError(f"{name} must be one of {known}; got {value!r}")


def check_numbers(confidence: float, n_resamples: int) -> None:
    """Raise unless the confidence is inside (0, 1) and the number of resamples positive."""
    if isinstance(confidence, bool) or not 0.0 < confidence < 1.0:
        raise ValueError(
            f"confidence must be between 0 and 1, as 0.95 for 95 %; got {confidence!r}"
        )
    if isinstance(n_resamples, bool) or not hasattr(n_resamples, "__index__") or n_resamples < 1:
        raise ValueError(f"n_resamples must be an integer >= 1, got {n_resamples!r}")


def chosen_metrics(
    evaluations: Mapping[str, Evaluation], metrics: str | Measure | Iterable[str | Measure] | None
) -> tuple[str, ...]:
    """The names of the metrics to compare, each evaluated for all methods."""
    first, evaluation = next(iter(evaluations.items()))
    if metrics is None:
        names = tuple(evaluation)
    else:
        given = [metrics] if isinstance(metrics, (str, Measure)) else metrics
        names = tuple(dict.fromkeys(str(parse(metric)) for metric in given))
    if not names:
        raise ValueError(f"metrics is empty; name some of {', '.join(evaluation)}")
    for method, evaluation in evaluations.items():
        missing = [name for name in names if name not in evaluation.means]
        if missing:
            beside = "" if method == first or metrics is not None else f", but {first!r} was"
            raise ValueError(
                f"{method!r} was not evaluated by {missing[0]}{beside} (it has "
                f"{', '.join(evaluation)}); evaluate all methods with the same metrics"
            )
    return names


def aligned(evaluations: Mapping[str, Evaluation]) -> list[Evaluation]:
    """The evaluations with their queries in the order of the first; of the same queries only."""
    (first, reference), *others = evaluations.items()
    result = [reference]
    for method, evaluation in others:
        if evaluation.convention != reference.convention:
            raise ValueError(
                f"{method!r} was evaluated under the convention {evaluation.convention.name!r} but "
                f"{first!r} under {reference.convention.name!r}; their numbers cannot be compared"
            )
        order = _order(_ids(reference), _ids(evaluation), first, method)
        result.append(evaluation if order is None else _taken(evaluation, order))
    return result


def _ids(evaluation: Evaluation) -> list[Any]:
    return [None] if evaluation.query_ids is None else evaluation.query_ids.tolist()


def _order(ids: list[Any], others: list[Any], first: str, method: str) -> list[int] | None:
    """Where the queries ``ids`` stand among ``others``; None if in the same places."""
    if ids == others:
        return None
    place = {query: k for k, query in enumerate(others)}
    absent = [query for query in ids if query not in place]
    extra = [query for query in others if query not in set(ids)]
    if absent or extra:
        example = (absent or extra)[0]
        has, lacks = (first, method) if absent else (method, first)
        raise ValueError(
            f"{first!r} has {len(ids)} queries and {method!r} {len(others)}, of which "
            f"{len(ids) - len(absent)} are the same; query {example!r} of {has!r} is missing in "
            f"{lacks!r}. Evaluate both on the same queries"
        )
    return [place[query] for query in ids]


def _taken(evaluation: Evaluation, order: list[int]) -> Evaluation:
    def counts(part: Value) -> Value:
        if part is None:
            return part
        taken = {name: values[order] for name, values in vars(part).items()}
        return type(part)(**taken)

    return dataclasses.replace(
        evaluation,
        per_query={name: values[order] for name, values in evaluation.per_query.items()},
        query_ids=np.asarray(evaluation.query_ids)[order],
        pairs=counts(evaluation.pairs),
        dominating=counts(evaluation.dominating),
        dominated=counts(evaluation.dominated),
    )
