"""compare_methods: train everything, measure everything, compare."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from linrank.data.dataset import Dataset
from linrank.errors import NoPairsError, check_one_of, check_positive
from linrank.judging.compare import Comparison, compare_evaluations
from linrank.judging.contest.methods import (
    BASELINE,
    Contestant,
    chosen_methods,
    fair_convention,
)
from linrank.judging.contest.outcome import Contest, Entry, Outcome, Rules
from linrank.judging.contest.runner import (
    MANY,
    SELECTIONS,
    Fold,
    Progress,
    Protocol,
    one_split,
    rotation,
    run_all,
)
from linrank.judging.inspect import Overlap, shared_queries
from linrank.metrics import Convention, Evaluation, Measure, parse, parse_scoring
from linrank.metrics.evaluate import evaluate_queries
from linrank.system.resources import resolve
from linrank.system.seeds import seed_of


def check_protocol(
    protocol: Protocol, scoring: str, metrics: Sequence[str], convention: Convention
) -> list[str]:
    """Raise ValueError for parts that cannot be compared on; return what to warn of."""
    _check_features(protocol)
    _check_pairs(protocol)
    for fold in protocol.folds:
        for part in fold.valid or fold.train:
            _check_measurable(protocol, part, (scoring,), convention, "choose by")
        _check_measurable(protocol, fold.test[0], metrics, convention, "test by")
    return [*leaks(protocol), *_weights(protocol), *_single_query(protocol), *_lenient(metrics)]


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
    """A warning for each two subsets in different parts of a fold that have queries in common."""
    found = []
    for a, b in combinations(range(len(protocol.subsets)), 2):
        if any(_apart(fold, a, b) for fold in protocol.folds):
            shared = shared_queries(protocol.subsets[b], protocol.subsets[a])
            if shared:
                found.append(_leak(protocol.names[a], protocol.names[b], shared))
    return found


def _apart(fold: Fold, a: int, b: int) -> bool:
    parts = (fold.train, fold.valid, fold.test)
    return not any(a in part and b in part for part in parts)


def _leak(first: str, second: str, shared: Overlap) -> str:
    """What the subsets share: the very rows, which proves it, or ids only."""
    such = "" if shared.example is None else f", such as {shared.example}"
    if shared.n_rows:
        are = "is" if shared.n_rows == 1 else "are"
        return (
            f"{shared.n_rows:,} of the {shared.n_queries:,} queries of {second} {are} in {first} "
            f"too, row by row{such}: what is learnt leaks into what is measured, and the results "
            "are too good"
        )
    occurs = "occurs" if shared.n_ids == 1 else "occur"
    return (
        f"{shared.n_ids:,} of the {shared.n_queries:,} query ids of {second} also {occurs} in "
        f"{first}{such}, with other rows: if they are the same queries, what is learnt leaks into "
        "what is measured, and the results are too good; if every file numbers its own queries "
        "from the beginning, there is no harm"
    )


def _weights(protocol: Protocol) -> list[str]:
    for name, data in zip(protocol.names, protocol.subsets, strict=True):
        if data.weight is not None:
            return [f"the weights of the rows of {name} are left out: not all methods take them"]
    return []


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


SCALES = ("standard", "minmax", "none")
USUAL_METRICS = ("ndcg@10", "map", "pairwise_accuracy")


def compare_methods(
    train: Dataset | None = None,
    valid: Dataset | None = None,
    test: Dataset | None = None,
    *,
    folds: Sequence[Dataset] | None = None,
    methods: str | Iterable[str | Contestant] = "all",
    without: Iterable[str] = (),
    baseline: str = BASELINE,
    metrics: str | Measure | Iterable[str | Measure] | None = None,
    scoring: str | Measure | None = None,
    selection: str = "auto",
    convention: str | Convention = "linrank",
    scale: str = "standard",
    budget: float = 300.0,
    correction: Any = "holm",
    confidence: float = 0.95,
    n_resamples: int = 10_000,
    random_state: Any = 0,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> Contest:
    """Train every method on the same data and compare them on queries that none has seen.

    Each method tries its plain defaults and a few other candidates; the one with the best
    ``scoring`` is measured on the test part. All are trained on the training part alone, and
    chosen alike: on a validation part of at least 200 queries, else by 5-fold cross-validation
    over the training queries, with the same folds and no early stopping. Every method of every
    fold runs in a process of its own with one thread, so that a crash or a lack of time costs one
    row of the table.

    Parameters
    ----------
    train, valid, test : Dataset
        The parts, as :func:`linrank.load` or ``Dataset.of`` makes them. Without ``valid``, or
        where it has fewer than 200 queries, cross-validation chooses.
    folds : sequence of Dataset, instead of the three
        Subsets of whole queries, five as a rule. Fold 1 trains on all but the last two, chooses on
        the last but one and tests on the last; the others go round, so that each query is tested
        once.
    methods : "all", or names or ``Contestant`` objects
        Who takes part; ``linrank compare --list-methods`` lists the names.
    without : names
        Who does not.
    baseline : str
        The method that all others are compared with; it takes part in any case.
    metrics : names or measures
        What to measure on the test part, the most important first; by default ndcg@10, map and
        pairwise_accuracy, or without ndcg where labels are negative.
    scoring : str
        The measure that candidates are chosen by; by default ndcg@10, or pairwise_accuracy where
        labels are negative.
    selection : {"auto", "validation", "cross-validation"}
        What chooses: as above; the validation part however small, as benchmarks prescribe it; or
        the folds in any case.
    convention : str or Convention
        Whose rules. Rows with equal scores, which other conventions leave in input order, count as
        the average over their orders here.
    scale : {"standard", "minmax", "none"}
        Scaling of the features for linear methods and kernels, fitted on the training part. Trees
        get the features as they are.
    budget : float
        Seconds for one method on one fold; when they are over, the best candidate so far counts.
    correction, confidence, n_resamples
        As in :func:`linrank.compare`.
    random_state : int, RandomState, Generator or None, default=0
        The same seed gives the same table, times apart, unless the budget cuts a search short.
    n_jobs : int, optional
        Processes at a time; None for as many as there are cores.
    progress : callable, optional
        Called with a dict about every job that ends (``event`` is ``"finished"``), and in between
        (``"running"``, with ``seconds_left``).

    Returns
    -------
    Contest

    Examples
    --------
    >>> from linrank import compare_methods, make_ranking
    >>> data = make_ranking(n_queries=90, n_features=4, random_state=0)
    >>> train, valid, test = (data.select(data.qid % 3 == k) for k in range(3))
    >>> contest = compare_methods(train, valid, test, methods=["random"], metrics="ndcg@5")
    >>> [entry.name for entry in contest.entries], contest.comparison.baseline
    (['ranksvm', 'random'], 'ranksvm')
    """
    check_one_of("selection", selection, SELECTIONS)
    given = _protocol(train, valid, test, folds)
    protocol = given.selecting(selection)
    chosen = chosen_methods(methods, without, baseline)
    if scoring is None:
        scoring = USUAL_METRICS[0] if _has_gains(protocol.subsets) else USUAL_METRICS[-1]
    check_one_of("scale", scale, SCALES)
    check_positive("budget", budget)
    rules = Rules(
        str(parse_scoring(scoring)),
        fair_convention(convention),
        scale,
        seed_of(random_state),
        float(budget),
    )
    measures = [str(measure) for measure in _measures(metrics, protocol)]
    remarks = check_protocol(protocol, rules.scoring, measures, rules.convention)
    for remark in remarks:
        warnings.warn(remark, stacklevel=2)
    start = time.monotonic()
    outcomes = run_all(protocol, chosen, rules, resolve(n_jobs), progress)
    entries = [_entry(m, outcomes[m.name], protocol, measures, rules) for m in chosen]
    comparison, more = _compared(
        entries,
        baseline,
        correction=correction,
        confidence=confidence,
        n_resamples=n_resamples,
        random_state=rules.seed,
        n_jobs=n_jobs,
    )
    return Contest(
        tuple(entries),
        comparison,
        tuple(measures),
        baseline,
        rules,
        protocol.describe(),
        protocol.selection,
        protocol.names,
        (*remarks, *([] if selection != "auto" else _left_aside(given, protocol)), *more),
        time.monotonic() - start,
    )


def _protocol(
    train: Dataset | None,
    valid: Dataset | None,
    test: Dataset | None,
    folds: Sequence[Dataset] | None,
) -> Protocol:
    parts = [part for part in (train, valid, test) if part is not None]
    for part in [*parts, *(folds or [])]:
        if not isinstance(part, Dataset):
            raise TypeError(
                f"parts must be datasets, as linrank.load and Dataset.of make them, got {part!r}"
            )
    if folds is not None and not parts:
        return rotation(list(folds))
    if folds is not None or train is None or test is None:
        raise ValueError(
            "give the parts train, test and, to choose by, valid, or folds (a sequence of subsets)"
        )
    return one_split(train, valid, test)


def _left_aside(given: Protocol, protocol: Protocol) -> list[str]:
    """What becomes of a validation part that nothing is chosen by."""
    fold = given.folds[0]
    if not fold.valid or protocol.folds[0].valid:
        return []
    n_queries = min(given.n_queries(fold.valid) for fold in given.folds)
    return [
        f"a validation part of {n_queries:,} queries, fewer than {MANY}, is left aside: it would "
        "not tell candidates apart. To learn from its queries, join it to the training part"
    ]


def usual_metrics(subsets: Sequence[Dataset]) -> list[str]:
    """What is measured by default: no NDCG where labels are negative, since it has no gain then."""
    return [m for m in USUAL_METRICS if "ndcg" not in m or _has_gains(subsets)]


def _has_gains(subsets: Sequence[Dataset]) -> bool:
    return min(float(data.labels.min()) for data in subsets) >= 0.0


def _measures(
    metrics: str | Measure | Iterable[str | Measure] | None, protocol: Protocol
) -> Sequence[Measure]:
    if metrics is None:
        metrics = usual_metrics(protocol.subsets)
    elif isinstance(metrics, (str, Measure)):
        metrics = [metrics]
    measures = list(dict.fromkeys(parse(metric) for metric in metrics))
    if not measures:
        raise ValueError("metrics is empty; name at least one, such as 'ndcg@10'")
    return measures


def _entry(
    method: Contestant,
    outcomes: Sequence[Outcome],
    protocol: Protocol,
    measures: Sequence[str],
    rules: Rules,
) -> Entry:
    """The outcomes of a method, measured; on all folds or not at all."""
    parts = []
    for fold, outcome in zip(protocol.folds, outcomes, strict=True):
        if outcome.scores is None:
            return Entry(method, tuple(outcomes), None)
        data = protocol.subsets[fold.test[0]]
        parts.append(
            evaluate_queries(
                data.queries,
                data.labels,
                data.queries.scatter(outcome.scores),
                metrics=list(measures),
                convention=rules.convention,
                docid=data.all_docids,
            )
        )
    return Entry(method, tuple(outcomes), parts[0] if len(parts) == 1 else Evaluation.joined(parts))


def _compared(
    entries: Sequence[Entry], baseline: str, **options: Any
) -> tuple[Comparison | None, list[str]]:
    """The comparison of those with a result; with the first of them if the baseline has none."""
    found = {entry.name: entry.evaluation for entry in entries if entry.evaluation is not None}
    if not found:
        return None, ["no method has come to a result; see what each says"]
    if baseline in found:
        return compare_evaluations(found, baseline=baseline, **options), []
    first = next(iter(found))
    told = f"the baseline {baseline} has no result; compared with {first} instead"
    return compare_evaluations(found, baseline=first, **options), [told]
