"""compare_methods: train everything, measure everything, compare."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from linrank.comparison import Comparison, compare_evaluations
from linrank.contest.checks import check_protocol
from linrank.contest.methods import BASELINE, Method, chosen_methods
from linrank.contest.process import Outcome
from linrank.contest.protocol import Protocol, rotation, three_parts
from linrank.contest.result import Contest, Entry
from linrank.contest.runner import Progress, Rules, run_all
from linrank.contest.task import fair_convention
from linrank.data.dataset import Dataset
from linrank.metrics import Convention, Evaluation, Measure, parse, parse_scoring
from linrank.metrics.evaluate import evaluate_queries
from linrank.seeds import seed_of
from linrank.threads import resolve

__all__ = ["SCALES", "USUAL_METRICS", "compare_methods", "usual_metrics"]

SCALES = ("standard", "minmax", "none")
USUAL_METRICS = ("ndcg@10", "map", "pairwise_accuracy")


def compare_methods(
    train: Dataset | None = None,
    valid: Dataset | None = None,
    test: Dataset | None = None,
    *,
    folds: Sequence[Dataset] | None = None,
    methods: str | Iterable[str | Method] = "all",
    without: Iterable[str] = (),
    baseline: str = BASELINE,
    metrics: str | Measure | Iterable[str | Measure] | None = None,
    scoring: str | Measure | None = None,
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

    Each method tries the candidates of a small grid; the one with the best ``scoring`` on the
    validation part is measured on the test part. Every method of every fold runs in a process of
    its own with one thread, so that a crash or a lack of time costs one row of the table.

    Parameters
    ----------
    train, valid, test : Dataset
        The three parts, as :func:`linrank.load` or ``Dataset.of`` makes them.
    folds : sequence of Dataset, instead of the three
        Subsets of whole queries, five as a rule. Fold 1 trains on all but the last two, chooses on
        the last but one and tests on the last; the others go round, so that each query is tested
        once.
    methods : "all", or names or ``Method`` objects
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
    protocol = _protocol(train, valid, test, folds)
    chosen = chosen_methods(methods, without, baseline)
    if scoring is None:
        scoring = USUAL_METRICS[0] if _has_gains(protocol.subsets) else USUAL_METRICS[-1]
    rules = Rules(
        str(parse_scoring(scoring)),
        fair_convention(convention),
        _one_of_scales(scale),
        seed_of(random_state),
        _positive(budget),
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
        protocol.names,
        (*remarks, *more),
        time.monotonic() - start,
    )


def _protocol(
    train: Dataset | None,
    valid: Dataset | None,
    test: Dataset | None,
    folds: Sequence[Dataset] | None,
) -> Protocol:
    parts = [train, valid, test]
    n_given = sum(part is not None for part in parts)
    if (folds is None and n_given < 3) or (folds is not None and n_given):
        raise ValueError(
            "give the three parts train, valid and test, or folds (a sequence of subsets)"
        )
    given = [part for part in parts if part is not None] if folds is None else list(folds)
    for part in given:
        if not isinstance(part, Dataset):
            raise TypeError(
                f"parts must be datasets, as linrank.load and Dataset.of make them, got {part!r}"
            )
    return three_parts(*given) if folds is None else rotation(given)


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


def _one_of_scales(scale: str) -> str:
    if scale not in SCALES:
        raise ValueError(f"scale must be one of {', '.join(map(repr, SCALES))}, got {scale!r}")
    return scale


def _positive(budget: float) -> float:
    if not (budget > 0 and math.isfinite(budget)):
        raise ValueError(f"budget must be a finite number of seconds > 0, got {budget!r}")
    return float(budget)


def _entry(
    method: Method,
    outcomes: Sequence[Outcome],
    protocol: Protocol,
    measures: Sequence[str],
    rules: Rules,
) -> Entry:
    """The outcomes of a method, measured; on all folds or not at all."""
    if not all(outcome.has_model for outcome in outcomes):
        return Entry(method, tuple(outcomes), None)
    parts = []
    for fold, outcome in zip(protocol.folds, outcomes, strict=True):
        data = protocol.subsets[fold.test[0]]
        assert outcome.scores is not None
        parts.append(
            evaluate_queries(
                data.queries,
                data.labels,
                data.queries.scatter(outcome.scores),
                metrics=list(measures),
                convention=rules.convention,
                docid=_docids(data),
            )
        )
    return Entry(method, tuple(outcomes), parts[0] if len(parts) == 1 else Evaluation.joined(parts))


def _docids(data: Dataset) -> list[str] | None:
    """Document ids, by which trec_eval breaks ties; None unless every row has one."""
    docids = data.docids
    return None if docids is None or None in docids else [docid or "" for docid in docids]


def _compared(
    entries: Sequence[Entry], baseline: str, **options: Any
) -> tuple[Comparison | None, list[str]]:
    """The comparison of those with a result; with the first of them if the baseline has none."""
    found: Mapping[str, Evaluation] = {
        entry.name: entry.evaluation for entry in entries if entry.evaluation is not None
    }
    if not found:
        return None, ["no method has come to a result; see what each says"]
    remarks = []
    if baseline not in found:
        stand_in = next(iter(found))
        remarks.append(f"the baseline {baseline} has no result; compared with {stand_in} instead")
        baseline = stand_in
    return compare_evaluations(found, baseline=baseline, **options), remarks
