"""Everything that a report says, computed once; no HTML here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from linrank.data.dataset import Dataset
from linrank.data.missing import Filling, Missing
from linrank.data.rows import CsrRows, DenseRows, resized
from linrank.judging.compare import Comparison, compare_evaluations
from linrank.judging.inspect import Finding, Profile
from linrank.metrics import DEFAULT_METRICS, Evaluation, parse, parse_scoring
from linrank.metrics import convention as named_convention
from linrank.metrics.evaluate import evaluate_queries
from linrank.models.linear import LinearModel
from linrank.reports.caveats import data_caveats, leakage, training_caveats
from linrank.reports.diagnosis import LARGEST_GRADE, QueryDiagnosis, worst_queries
from linrank.reports.fits import Training, train
from linrank.reports.rankings import Ranking, best_single_feature, fitted_to, ranking_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from linrank.data.rows import Rows
    from linrank.judging.inspect import Overlap


def filled_in(parts: dict[str, Dataset], model: Any) -> tuple[dict[str, Dataset], Any]:
    """The parts with their missing values filled in, and the model of the filled columns.

    They are filled in as the model does it or, where one is to be trained, as those of the training
    data were. An indicator is a column like any other then, with a weight of its own.
    """
    linear = getattr(model, "model_", model)
    filling: Filling | None
    if isinstance(linear, LinearModel) and linear.missing.is_filled:
        filling = _filling(linear.missing, linear.n_features)
        parts = {name: fitted_to(data, linear) for name, data in parts.items()}
        model = _plain(linear, filling)
    else:
        filling = parts.get("train", parts["test"]).filling
    if filling is None:
        return parts, model
    return {name: _filled(data, filling) for name, data in parts.items()}, model


def _filling(missing: Missing, n_features: int) -> Filling:
    weights = np.zeros(n_features) if missing.weights is None else missing.weights
    return Filling(missing.kind, n_features, missing.values, np.flatnonzero(weights))


def _plain(model: LinearModel, filling: Filling) -> LinearModel:
    """The model as one of the filled columns, of which nothing is missing."""
    scaling, names = model.scaling, model.feature_names
    n_added = len(filling.columns)
    if scaling.factors is not None:
        factors = np.pad(scaling.factors, (0, n_added), constant_values=1.0)
        scaling = replace(scaling, factors=factors)
    return replace(
        model,
        coef=model.missing.joined(model.coef, filling),
        feature_names=None if names is None else filling.names(names),
        scaling=scaling,
        missing=Missing(),
        statistics=None if n_added else model.statistics,
    )


def _filled(data: Dataset, filling: Filling) -> Dataset:
    if data.filling is None:
        if isinstance(data.rows, CsrRows):  # text leaves zeros out, and so the last features
            data = replace(data, rows=resized(data.rows, filling.n_features))
        data = filling.dataset(data)
    elif not _are_alike(data.filling, filling):
        raise ValueError(
            f"the missing values of {data.source} were filled in from that data, by "
            f"missing={data.filling.kind!r}, not as those of the training data; load it with "
            "missing='keep'"
        )
    plain = replace(data, filling=None)
    if "queries" in data.__dict__:  # which the rows have no part in
        plain.__dict__["queries"] = data.queries
    return plain


def _are_alike(one: Filling, other: Filling) -> bool:
    def values(filling: Filling) -> Any:
        return np.zeros(filling.n_features) if filling.values is None else filling.values

    return (
        one.kind == other.kind
        and np.array_equal(one.columns, other.columns)
        and np.array_equal(values(one), values(other))
    )


SAMPLE = 50_000  # pairs that are drawn; of fewer, all are taken


@dataclass(frozen=True, eq=False)
class Pushes:
    """Means of ``w_j·(x_better,j - x_worse,j)`` over pairs of different labels, all or sampled.

    Attributes
    ----------
    wrong, right : float64 arrays (n_features,)
        Over the pairs in the wrong order, or tied, and over the others; 0 where there are none.
    n_wrong, n_right : int
        Pairs of each kind among those.
    is_sample : bool
        Whether the pairs are drawn, with replacement, rather than all there are.
    """

    wrong: NDArray[np.float64]
    right: NDArray[np.float64]
    n_wrong: int
    n_right: int
    is_sample: bool = False


def pushes(
    data: Dataset, scores: NDArray[np.float64], model: LinearModel, n_samples: int = SAMPLE
) -> Pushes:
    """The pushes of all features of a linear model.

    A mean over pairs is linear in the rows: each row counts by how often it is the better document
    of a pair less how often it is the worse one, so that one product ``Xᵀc`` does for all features.
    """
    is_sample = data.queries.n_pairs > n_samples
    better, worse = Profile(data).sample_pairs(n_samples) if is_sample else _all_pairs(data)
    is_wrong = scores[better] <= scores[worse]
    rows = model.scaling.transform(data.rows, data.queries)
    means = []
    for kind in (is_wrong, ~is_wrong):
        n_pairs = max(1, int(np.count_nonzero(kind)))
        net = np.zeros(data.n_rows)
        np.add.at(net, better[kind], 1.0 / n_pairs)
        np.add.at(net, worse[kind], -1.0 / n_pairs)
        means.append(model.coef * _product(rows, net))
    n_wrong = int(np.count_nonzero(is_wrong))
    return Pushes(means[0], means[1], n_wrong, len(is_wrong) - n_wrong, is_sample)


def _all_pairs(data: Dataset) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows (better, worse) of every pair of different labels.

    Rows of a query by falling label: each pairs with all that follow its own label, a run.
    """
    queries = data.queries
    better, worse = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for start, stop in pairwise(queries.offsets.tolist()):
        places = np.arange(start, stop)
        rows = places if queries.order is None else queries.order[places]
        rows = rows[np.argsort(-data.labels[rows], kind="stable")]
        first = np.searchsorted(-data.labels[rows], -data.labels[rows], side="right")
        lower = len(rows) - first  # how many are worse than each
        better.append(np.repeat(rows, lower))
        within = np.arange(int(lower.sum())) - np.repeat(np.cumsum(lower) - lower, lower)
        worse.append(rows[np.repeat(first, lower) + within])
    return np.concatenate(better), np.concatenate(worse)


def _product(rows: Rows, net: NDArray[np.float64]) -> NDArray[np.float64]:
    """``Xᵀc`` in float64, over the rows that count."""
    used = np.flatnonzero(net)
    if isinstance(rows, DenseRows):
        total: NDArray[np.float64] = net[used] @ rows.values[used].astype(np.float64)
        return total
    weights = np.repeat(net, np.diff(rows.offsets)) * rows.values
    sums = np.bincount(rows.columns, weights=weights, minlength=rows.shape[1])
    return np.asarray(sums, dtype=np.float64)


SCORING = ("ndcg@10", "pairwise_accuracy")  # the second where labels are no grades


@dataclass(frozen=True, eq=False)
class Options:
    """How a report is computed; see `linrank.report` for each."""

    scoring: str | None = None
    metrics: Sequence[str] | None = None
    convention: str = "linrank"
    Cs: Any = "auto"
    scale: str = "standard"
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
    training = None if model is not None else _train(parts, options)
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
    scaled = training is not None and options.scale != "none"
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
    known = given or getattr(model, "feature_names", None) or data.feature_names or ()
    base = data.index_base or 0
    numbered = (f"feature {j + base}" for j in range(len(known), width))
    return (*map(str, known), *numbered)


def _train(parts: dict[str, Dataset], options: Options) -> Training:
    if "train" not in parts:
        raise ValueError("give a model, or training data to learn one from")
    return train(
        parts["train"],
        parts.get("valid"),
        Cs=options.Cs,
        scale=options.scale,
        n_folds=options.n_folds,
        scoring=str(options.scoring),
        convention=options.convention,
        n_jobs=options.n_jobs,
        tell=options.tell,
    )


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
    rules = named_convention(options.convention)
    return evaluate_queries(
        test.queries,
        test.labels,
        ranking.scores,
        metrics=options.metrics or (),
        convention=options.convention,
        docid=test.all_docids if rules.ties == "docid" else None,
        n_jobs=options.n_jobs,
    )


def _worst(
    test: Dataset, ranking: Ranking, evaluation: Evaluation, scoring: str, options: Options
) -> tuple[QueryDiagnosis, ...]:
    model = ranking.linear
    return worst_queries(
        test if model is None else fitted_to(test, model),
        ranking.scores,
        np.asarray(evaluation.per_query[scoring]),
        model=model,
        n_queries=options.n_worst,
        higher_is_better=parse(scoring).higher_is_better,
    )


def _pushes(test: Dataset, ranking: Ranking) -> Pushes | None:
    model = ranking.linear
    return None if model is None else pushes(fitted_to(test, model), ranking.scores, model)


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
