"""Everything that a report says, computed once; no HTML here."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from linrank.data.dataset import Dataset
from linrank.data.frames import feature_name
from linrank.data.rows import DenseRows, resized
from linrank.judging.candidates import fair_convention
from linrank.judging.compare import Comparison, compare_evaluations
from linrank.judging.inspect import Finding, Overlap, Profile, findings, shared_queries
from linrank.metrics import DEFAULT_METRICS, Evaluation, parse, parse_scoring
from linrank.metrics import convention as named_convention
from linrank.metrics.evaluate import evaluate_queries
from linrank.metrics.names import Metric
from linrank.reports.diagnosis import (
    LARGEST_GRADE,
    Pushes,
    QueryDiagnosis,
    pushes,
    worst_queries,
)
from linrank.reports.rankings import (
    Ranking,
    Training,
    best_single_feature,
    filled_in,
    fitted_to,
    ranking_of,
    train,
)

SCORING = ("ndcg@10", "pairwise_accuracy")  # the second where labels are no grades


@dataclass(frozen=True, eq=False)
class Options:
    """How a report is computed; see `linrank.report` for each."""

    scoring: Metric | None = None
    metrics: Sequence[Metric] | None = None
    convention: str = "linrank"
    Cs: Any = "auto"
    scale: str = "auto"
    n_folds: int = 5
    feature_names: Sequence[str] | None = None
    n_worst: int = 5
    confidence: float = 0.95
    n_resamples: int = 10_000
    seed: int = 0
    n_jobs: int | None = None
    tell: Callable[[str], None] = lambda text: None


@dataclass(frozen=True, eq=False)
class Material:
    """What the sections of a report are made of.

    Attributes
    ----------
    parts : dict of str to Dataset
        ``train`` and ``valid`` where there are such, and ``test``.
    profiles : dict of str to Profile
        Of each part.
    names : tuple of str
        Of the features, as shown.
    ranking, against : Ranking
        What is judged, and what it is compared with, if anything.
    scoring : str
        The measure that the page speaks of first.
    evaluations : dict of str to Evaluation
        By name of the ranking, all measures.
    comparison : Comparison
        Means with intervals; differences with intervals and p values where there are two.
    worst : tuple of QueryDiagnosis
    pushes : Pushes or None
        Which way features push over all pairs, of a linear model.
    training : Training or None
        If the report trained the model.
    overlaps : dict
        Queries that parts share.
    caveats : tuple of Finding
        What to know before believing the numbers, the gravest first.
    """

    parts: dict[str, Dataset]
    profiles: dict[str, Profile]
    names: tuple[str, ...]
    ranking: Ranking
    against: Ranking | None
    scoring: str
    evaluations: dict[str, Evaluation]
    comparison: Comparison
    worst: tuple[QueryDiagnosis, ...]
    pushes: Pushes | None
    training: Training | None
    overlaps: dict[tuple[str, str], Overlap]
    caveats: tuple[Finding, ...]
    options: Options

    @property
    def test(self) -> Dataset:
        """The judged rows."""
        return self.parts["test"]

    @property
    def evaluation(self) -> Evaluation:
        """Of the ranking that is judged."""
        return self.evaluations[self.ranking.name]


def gather(
    parts: dict[str, Dataset],
    model: Any,
    against: Any,
    names: tuple[str | None, str | None],
    options: Options,
) -> Material:
    """Train if there is no model, score, measure, compare, diagnose.

    ``names`` are those of the model and of what it is compared with, where the caller has any.
    """
    scoring, metrics = _measures(parts["test"], options)
    options = replace(options, scoring=scoring, metrics=metrics)
    test = parts["test"]  # as it was read: a rival has its own way with missing values
    parts, model = filled_in(parts, model)
    parts = _aligned(parts)
    features = _feature_names(parts, model, options.feature_names)
    training = None if model is not None else train(parts, options)
    ranking = _judged(parts["test"], model, names[0], training, options)
    rival = _rival(parts, test, against, names[1], features, options)
    if rival is not None and rival.name == ranking.name:
        rival = replace(rival, name=f"{rival.name} (against)")
    options.tell("measuring")
    evaluations = {
        one.name: _evaluate(parts["test"], one, options) for one in (ranking, rival) if one
    }
    comparison = compare_evaluations(
        dict(reversed(evaluations.items())),
        confidence=options.confidence,
        n_resamples=options.n_resamples,
        random_state=options.seed,
    )
    options.tell("looking for what went wrong")
    profiles = {name: Profile(data) for name, data in parts.items()}
    overlaps = leakage(parts)
    scaled = training is not None and training.model.scaling.kind != "none"
    found = [*data_caveats(parts, profiles, overlaps, scaled)]
    found += training_caveats(training) if training is not None else []
    found += _width_caveats(parts["test"], ranking)
    found += _width_caveats(parts["test"] if against is None else test, rival)
    return Material(
        parts,
        profiles,
        features,
        ranking,
        rival,
        scoring,
        evaluations,
        comparison,
        _worst(parts["test"], ranking, evaluations[ranking.name], scoring, options),
        _pushes(parts["test"], ranking),
        training,
        overlaps,
        tuple(sorted(found, key=lambda caveat: not caveat.grave)),
        options,
    )


def _measures(test: Dataset, options: Options) -> tuple[str, list[str]]:
    """The measure to choose and to begin with, and all of them; no NDCG of negative labels."""
    rules = named_convention(options.convention)
    gainless = float(test.labels.min()) < 0 and not rules.negative_is_zero
    if options.scoring is not None:
        scoring = str(parse_scoring(options.scoring))
    elif options.metrics:
        scoring = str(parse_scoring(options.metrics[0]))
    else:
        # Of labels as large as 50 the gain 2^y - 1 makes NDCG a matter of one row.
        absurd = rules.gain == "exponential" and float(test.labels.max()) > LARGEST_GRADE
        scoring = SCORING[gainless or absurd]
    usual = [name for name in DEFAULT_METRICS if not (gainless and "ndcg" in name)]
    metrics = [str(parse(name)) for name in options.metrics or usual]
    return scoring, list(dict.fromkeys([scoring, *metrics]))


def _aligned(parts: dict[str, Dataset]) -> dict[str, Dataset]:
    """All parts with the features of the training data, if there are any.

    Text leaves zeros out, so that a file may lack the last features; where all values are written
    a different number of them means other features.
    """
    if "train" not in parts:
        return parts
    known = parts["train"]
    for name, data in parts.items():
        if data.n_features != known.n_features and all(
            isinstance(one.rows, DenseRows) for one in (data, known)
        ):
            raise ValueError(
                f"{data.source} has {data.n_features:,} features, {known.source} "
                f"{known.n_features:,}; {name} and training data must have the same ones: are "
                "these files of one data set?"
            )
    return {
        name: replace(data, rows=resized(data.rows, known.n_features))
        if data.n_features != known.n_features
        else data
        for name, data in parts.items()
    }


def _feature_names(
    parts: dict[str, Dataset], model: Any, given: Sequence[str] | None
) -> tuple[str, ...]:
    """Names as given, of the model or of the data; else ``feature 7``, the number in the file."""
    data = parts.get("train", parts["test"])
    model = getattr(model, "model_", model)
    width = max(int(getattr(model, "n_features", data.n_features)), data.n_features)
    if given is not None and len(given) < width:
        raise ValueError(
            f"there are {len(given):,} feature names for {width:,} features; give one for each"
        )
    known = given or getattr(model, "feature_names", None) or data.feature_names
    return tuple(feature_name(known, j, data.index_base) for j in range(width))


def _judged(
    test: Dataset, model: Any, name: str | None, training: Training | None, options: Options
) -> Ranking:
    if training is None:
        return ranking_of(model, test, name or "model", "given", options.n_jobs)
    about = f"trained here, C = {training.C:.4g} chosen on {training.judged_on}"
    name = name or "RankSVM"
    return ranking_of(training.model, test, name, about, options.n_jobs)


def _rival(
    parts: dict[str, Dataset],
    test: Dataset,
    against: Any,
    name: str | None,
    names: tuple[str, ...],
    options: Options,
) -> Ranking | None:
    if against is not None:
        return ranking_of(against, test, name or "against", "given", options.n_jobs)
    if "train" not in parts:
        return None
    options.tell("looking for the best single feature")
    scoring, convention = str(options.scoring), options.convention
    return best_single_feature(
        parts["train"], parts["test"], names, scoring, convention, options.n_jobs
    )


def _evaluate(test: Dataset, ranking: Ranking, options: Options) -> Evaluation:
    rules = fair_convention(options.convention)  # a single feature ties many rows
    return evaluate_queries(
        test.queries,
        test.labels,
        ranking.scores,
        metrics=options.metrics or (),
        convention=rules,
        docid=test.all_docids if rules.ties == "docid" else None,
        n_jobs=options.n_jobs,
    )


def _worst(
    test: Dataset, ranking: Ranking, evaluation: Evaluation, scoring: str, options: Options
) -> tuple[QueryDiagnosis, ...]:
    model = ranking.explained
    return worst_queries(
        test if model is None else fitted_to(test, model),
        ranking.scores,
        np.asarray(evaluation.per_query[scoring]),
        model=model,
        n_queries=options.n_worst,
        higher_is_better=parse(scoring).higher_is_better,
    )


def _pushes(test: Dataset, ranking: Ranking) -> Pushes | None:
    model = ranking.explained
    return None if model is None else pushes(fitted_to(test, model), ranking.scores, model)


# ---- what a reader must know before believing the numbers ---------------------------------------


FEW_QUERIES = 30  # below this an interval by resampling is too narrow

# What has been dealt with already, or is said elsewhere: the report scales, and names conventions.
_SETTLED = {"scales-differ", "huge-values"}
_GRAVE = {"label-like-feature", "no-pairs"}


def leakage(parts: dict[str, Dataset]) -> dict[tuple[str, str], Overlap]:
    """Queries that two parts share, by the names of the parts: test and train first."""
    pairs = [("test", "train"), ("valid", "train"), ("test", "valid")]
    found = {
        (one, other): shared_queries(parts[one], parts[other])
        for one, other in pairs
        if one in parts and other in parts
    }
    return {names: overlap for names, overlap in found.items() if overlap}


def leakage_message(one: str, other: str, overlap: Overlap) -> str:
    """The leak in a sentence or two; numbers, an example, and what they mean."""
    n, of = max(overlap.n_ids, overlap.n_rows), overlap.n_queries
    many = f"{n:,} of {of:,} {WORDS[one]} queries"
    example = f" (query {overlap.example} is one)" if overlap.example is not None else ""
    told = WORDS[other]
    if not overlap.n_rows:
        return (
            f"{many} have the id of a {told} query{example}, but other rows. Where ids are "
            "numbered anew in each file this means nothing; else the model "
            "has been shown what it is judged by."
        )
    judged = "the numbers are too good" if one == "test" else "the choice of C is not to be trusted"
    also = f"{overlap.n_rows:,} of {of:,} {WORDS[one]} queries are {told} queries, row by row"
    return f"{also}{example}: {judged}. Split by query, each query into one part only."


WORDS = {"train": "training", "valid": "validation", "test": "test"}


def leakage_caveats(found: dict[tuple[str, str], Overlap]) -> Iterator[Finding]:
    """One for each two parts that share queries."""
    for (one, other), overlap in found.items():
        code = "leakage" if overlap.n_rows else "shared-ids"
        yield Finding(code, leakage_message(one, other, overlap), grave=overlap.n_rows > 0)


def data_caveats(
    parts: dict[str, Dataset],
    profiles: dict[str, Profile],
    found: dict[tuple[str, str], Overlap],
    scaled: bool,
) -> Iterator[Finding]:
    """Leakage, then what ``linrank inspect`` finds in each part, each finding once."""
    yield from leakage_caveats(found)
    found_in: dict[str, dict[str, str]] = {}
    for name in parts:
        for finding in findings(profiles[name]):
            if not (scaled and finding.code in _SETTLED):
                found_in.setdefault(finding.code, {})[name] = finding.message
    for code, messages in found_in.items():
        yield Finding(code, _said(messages), grave=code in _GRAVE)
    n_queries = parts["test"].queries.n_queries
    if n_queries < FEW_QUERIES and parts["test"].qid is not None:
        yield Finding(
            "few-queries",
            f"There are {n_queries} test queries: intervals and p values of so few are rough.",
        )


def _said(messages: dict[str, str]) -> str:
    """The message of the test data, or of the last part that has one; the others are named."""
    *others, last = messages
    told = f"{WORDS[last].capitalize()} data: {messages[last]}."
    if not others:
        return told
    names = " and ".join(WORDS[name] for name in others)
    also = "" if len({*messages.values()}) == 1 else ", with other numbers"
    return f"{told} So it is in the {names} data{also}."


def training_caveats(training: Training) -> Iterator[Finding]:
    """A grid whose end is the best, a fit that stopped early."""
    if training.tuning.edge is not None:
        told = training.tuning.edge
        yield Finding("edge-of-grid", f"{told[:1].upper()}{told[1:]}.")
    if not training.result.converged:
        yield Finding(
            "not-converged", f"The fit is not converged: {training.result.message}.", True
        )


def _may_lack_zeros(test: Dataset, width: int) -> bool:
    """Whether a file of text that leaves out zeros explains that the model knows more features."""
    return width > test.n_features and not isinstance(test.rows, DenseRows)


def _width_caveats(test: Dataset, one: Ranking | None) -> list[Finding]:
    """Features of the test data that a model does not know, or the other way round."""
    width = getattr(one.model, "n_features", test.n_features) if one else test.n_features
    if one is None or width == test.n_features:
        return []
    kind = "count nothing" if width < test.n_features else "are taken as 0"
    return [
        Finding(
            "feature-counts",
            f"{one.name} knows {width:,} features, the test data have {test.n_features:,}; "
            f"those that only one of them has {kind}. Is it a model of other data?",
            grave=not _may_lack_zeros(test, width),
        )
    ]
