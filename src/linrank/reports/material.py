"""Everything that a report says, computed once; no HTML here.

What is judged are scores of the test rows, and the model behind them, given or trained here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import numpy as np

from linrank.data import (
    Array,
    CsrRows,
    Dataset,
    DenseRows,
    as_array,
    feature_name,
    first_true,
    keep_queries,
    resized,
)
from linrank.judging import inspect
from linrank.judging.candidates import fair_convention
from linrank.judging.compare import Comparison, compare_evaluations
from linrank.judging.inspect import Finding, Overlap, Profile, best_feature, findings, judge
from linrank.methods.base import Task, method_named
from linrank.metrics import DEFAULT_METRICS, Evaluation, parse, parse_scoring
from linrank.metrics import convention as named_convention
from linrank.models.additive import AdditiveModel
from linrank.models.kernel import KernelModel
from linrank.models.linear import LinearModel
from linrank.reports.diagnosis import LARGEST_GRADE, Pushes, QueryDiagnosis, pushes, worst_queries
from linrank.search import Fold, Tuning, deal
from linrank.solvers.result import Result
from linrank.system.resources import count


@dataclass(frozen=True, eq=False)
class Ranking:
    """Scores of the test rows.

    Attributes
    ----------
    name : str
        What tables and pictures call it.
    scores : float64 array (n_rows,)
        Higher is better.
    model : LinearModel, AdditiveModel, KernelModel or None
        What computed them; None for scores that were given.
    about : str
        Where it comes from, in a sentence without a full stop.
    """

    name: str
    scores: Array
    model: LinearModel | AdditiveModel | KernelModel | None
    about: str

    @property
    def linear(self) -> LinearModel | None:
        """The model if it has weights of features."""
        return self.model if isinstance(self.model, LinearModel) else None

    @property
    def explained(self) -> LinearModel | AdditiveModel | None:
        """The model if it shares a score out among features."""
        return self.model if isinstance(self.model, (LinearModel, AdditiveModel)) else None

    @property
    def why_unexplained(self) -> str:
        """What keeps a score from falling apart into features; empty where nothing does."""
        if self.explained is not None:
            return ""
        if isinstance(self.model, KernelModel):
            support = count(self.model.coef.size, "support document")
            return (
                f"A kernel model ({self.model.kernel.name}) has no weights of features: its score "
                f"is a sum over {support}, which does not fall apart into features."
            )
        return "Scores were given, not the model behind them; --model explains linear and additive."


def ranking_of(source: Any, data: Dataset, name: str, about: str, n_jobs: int | None) -> Ranking:
    """The ranking of a model, a fitted estimator or scores, one per row."""
    model = getattr(source, "model_", source)
    if isinstance(model, (LinearModel, AdditiveModel, KernelModel)):
        scores = model.predict(match_features(data, model), n_jobs=n_jobs)
        return Ranking(name, scores, model, about)
    if hasattr(model, "predict"):
        raise TypeError(
            f"cannot ask a {type(source).__name__} for its scores without knowing how; compute "
            "them and pass the array, one score for each test row"
        )
    given = as_array(source, name)
    try:
        scores = given.astype(np.float64, copy=False)
    except (TypeError, ValueError):
        raise TypeError(
            f"{name} must be a model, a fitted estimator or scores, got {type(source).__name__}"
        ) from None
    if scores.shape != (data.n_rows,):
        raise ValueError(
            f"{name} has scores of shape {scores.shape}, the test data {data.n_rows:,} rows; one "
            "score per row is needed, in the same order"
        )
    if (row := first_true(np.isnan(scores))) is not None:
        raise ValueError(f"the score of row {row} of {name} is NaN, which cannot be ranked")
    return Ranking(name, scores, None, about)


def match_features(data: Dataset, model: LinearModel | AdditiveModel | KernelModel) -> Dataset:
    """The data with as many features as the model: files may lack some, others count nothing."""
    if isinstance(model, KernelModel) and model.kernel.name == "precomputed":
        return data
    return _with_features(data, model.n_features)


def _with_features(data: Dataset, number: int) -> Dataset:
    rows = resized(data.rows, number)
    return data if rows is data.rows else replace(data, rows=rows, feature_names=None)


def best_single_feature(
    parts: Mapping[str, Dataset], names: Sequence[str], options: SimpleNamespace
) -> Ranking:
    """The ranking of the feature that alone ranks the training queries best."""
    train, n_jobs = parts["train"], options.n_jobs
    place, sign = best_feature(train, options.scoring, options.convention, n_jobs)
    model = inspect.unit_model(train.n_features, place, sign)
    name = f"{names[place]} alone" + (", lowest first" if sign < 0 else "")
    about = "the one feature that ranks the training queries best without learning"
    return ranking_of(model, parts["test"], name, about, n_jobs)


# ---- a model that is trained here ---------------------------------------------------------------


METHOD = "ranksvm"  # of those that are registered, one with a path over C

# Of the chosen model: its certificate is shown. The solver stops by an estimate, which the bound
# that is proven may lag behind: then it goes on to the next tolerance, a step or two further.
TOLERANCES = (1e-6, 1e-9, 1e-12)


@dataclass(frozen=True, eq=False)
class Training:
    """How the model came to be.

    Attributes
    ----------
    model : LinearModel
        Trained on all training data with the chosen C.
    tuning : Tuning
        The measure of every C on unseen queries, the choice, and the path of models on all data.
    result : Result
        The fit of the chosen C from zero: its history is the convergence that is shown.
    judged_on : str
        What C was chosen on, in words.
    """

    model: LinearModel
    tuning: Tuning
    result: Result
    judged_on: str


def train(parts: Mapping[str, Dataset], options: SimpleNamespace) -> Training:
    """Train a linear RankSVM (squared hinge, all pairs) for every C and take the best one."""
    if "train" not in parts:
        raise ValueError("give a model, or training data to learn one from")
    data, valid, scale, tell = parts["train"], parts.get("valid"), options.scale, options.tell
    n_folds, scoring, n_jobs = options.n_folds, str(options.scoring), options.n_jobs
    method = method_named(METHOD)
    assert method.search is not None
    assert method.path is not None
    folds = deal(data, n_folds) if valid is None else [Fold(None, valid)]
    search = method.search(Cs=options.Cs, scale=scale, scoring=scoring, n_jobs=n_jobs)
    found = method.path(
        Task(data, search),
        folds,
        convention=options.convention,
        progress=lambda state: tell(
            f"training: {state['n_done']} of {state['n_total']} models, C {state['C']:.6g}"
        ),
    )
    tell("training: the chosen model")

    trained: Any = None
    for tol in TOLERANCES:
        chosen = method.parameters(**found.best_params, tol=tol, scale=scale, n_jobs=n_jobs)
        fit = method.train(Task(data, chosen))
        trained = fit if trained is None or fit.is_done else trained
        result = trained.result
        if result.gap <= TOLERANCES[0] * result.value or not result.converged:
            break
    known = {**trained.model.training, "scoring": scoring, "score": found.score}
    model = replace(trained.model, training=known)
    where = f"{n_folds} folds of the training queries" if valid is None else "the validation data"
    return Training(model, found, trained.result, where)


# ---- missing values -----------------------------------------------------------------------------


def fill_missing_values(parts: dict[str, Dataset]) -> dict[str, Dataset]:
    """The parts with their missing values filled in as those of the training data were.

    An indicator is then a column like any other, with its own weight.
    """
    filling = parts.get("train", parts["test"]).filling
    if filling is None:
        return parts
    filled = {}
    for name, data in parts.items():
        if data.filling is None and isinstance(data.rows, CsrRows):
            # Text leaves zeros out, and so the last features.
            data = _with_features(data, filling.n_features)
        filled[name] = keep_queries(filling.dataset(data), filling=None)
    return filled


# ---- everything that a report says --------------------------------------------------------------


SCORING = ("ndcg@10", "pairwise_accuracy")  # the second where labels are no grades


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

    @property
    def test(self) -> Dataset:
        """The judged rows."""
        return self.parts["test"]

    @property
    def evaluation(self) -> Evaluation:
        """Of the ranking that is judged."""
        return self.evaluations[self.ranking.name]


def gather(parts: dict[str, Dataset], options: SimpleNamespace) -> Material:
    """Train if there is no model, score, measure, compare, diagnose.

    ``options`` are the parameters of `linrank.report`, and ``tell``, which is called with progress.
    """
    against, n_jobs, tell = options.against, options.n_jobs, options.tell
    scoring, options.metrics = _measures(parts["test"], options)
    options.scoring = scoring
    test = parts["test"]  # as it was read: a rival has its own way with missing values
    model = options.model
    parts = _align_features(fill_missing_values(parts) if model is None else parts)
    features = _feature_names(parts, model, options.feature_names)
    training = None if model is not None else train(parts, options)
    name, about = options.model_name, "given"
    if training is not None:
        model, name = training.model, name or "RankSVM"
        about = f"trained here, C = {training.tuning.C:.4g} chosen on {training.judged_on}"
    ranking = ranking_of(model, parts["test"], name or "model", about, n_jobs)
    rival = None
    if against is not None:
        rival = ranking_of(against, test, options.against_name or "against", "given", n_jobs)
    elif "train" in parts:
        tell("looking for the best single feature")
        rival = best_single_feature(parts, features, options)
    if rival is not None and rival.name == ranking.name:
        rival = replace(rival, name=f"{rival.name} (against)")
    tell("measuring")
    rules = fair_convention(options.convention)  # a single feature ties many rows
    evaluations = {}
    for one in [ranking] if rival is None else [ranking, rival]:
        evaluations[one.name] = judge(parts["test"], one.scores, options.metrics, rules, n_jobs)
    kept = ("confidence", "n_resamples", "random_state")
    resampling = {name: getattr(options, name) for name in kept}
    comparison = compare_evaluations(dict(reversed(evaluations.items())), **resampling)
    tell("looking for what went wrong")
    profiles = {name: Profile(data) for name, data in parts.items()}
    overlaps = leakage(parts)
    scaled = training is not None and training.model.scaling.kind != "none"
    found = [*data_caveats(parts, profiles, overlaps, scaled)]
    found += [] if training is None else training_caveats(training)
    found += _width_caveats(parts["test"], ranking)
    if rival is not None:
        found += _width_caveats(parts["test"] if against is None else test, rival)
    shared, own = ranking.explained, evaluations[ranking.name]
    rows = parts["test"] if shared is None else match_features(parts["test"], shared)
    shown = {"n_queries": options.n_worst, "higher_is_better": parse(scoring).higher_is_better}
    values = np.asarray(own.per_query[scoring])
    worst = worst_queries(rows, ranking.scores, values, model=shared, **shown)
    caveats = tuple(sorted(found, key=lambda caveat: not caveat.grave))
    pushed = None if shared is None else pushes(rows, ranking.scores, shared)
    measured = ranking, rival, scoring, evaluations, comparison, worst, pushed
    return Material(parts, profiles, features, *measured, training, overlaps, caveats)


def _measures(test: Dataset, options: SimpleNamespace) -> tuple[str, list[str]]:
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


def _align_features(parts: dict[str, Dataset]) -> dict[str, Dataset]:
    """All parts with the features of the training data, if there are any.

    Text leaves zeros out, so that a file may lack the last features; where all values are written
    a different number of them means other features.
    """
    if "train" not in parts:
        return parts
    known = parts["train"]
    for name, data in parts.items():
        are_dense = all(isinstance(one.rows, DenseRows) for one in (data, known))
        if are_dense and data.n_features != known.n_features:
            raise ValueError(
                f"{data.source} has {data.n_features:,} features, {known.source} "
                f"{known.n_features:,}; {name} and training data must have the same ones: are "
                "these files of one data set?"
            )
    return {name: _with_features(data, known.n_features) for name, data in parts.items()}


def _feature_names(
    parts: dict[str, Dataset], model: Any, given: Sequence[str] | None
) -> tuple[str, ...]:
    """Names as given, of the model or of the data; else ``feature 7``, the number in the file."""
    data = parts.get("train", parts["test"])
    model = getattr(model, "model_", model)
    width = max(int(getattr(model, "n_features", data.n_features)), data.n_features)
    if given is not None and len(given) < width:
        numbers = f"{len(given):,} feature names for {width:,} features"
        raise ValueError(f"there are {numbers}; give one for each")
    known = given or getattr(model, "feature_names", None) or data.feature_names
    return tuple(feature_name(known, j, data.index_base) for j in range(width))


# ---- what a reader must know before believing the numbers ---------------------------------------


FEW_QUERIES = 30  # below this an interval by resampling is too narrow

# What has been dealt with already, or is said elsewhere: the report scales, and names conventions.
_SETTLED = {"scales-differ", "huge-values"}
_GRAVE = {"label-like-feature", "no-pairs"}


def leakage(parts: dict[str, Dataset]) -> dict[tuple[str, str], Overlap]:
    """Queries that two parts share, by the names of the parts: test and train first."""
    found = {}
    for one, other in (("test", "train"), ("valid", "train"), ("test", "valid")):
        if one in parts and other in parts:
            found[one, other] = inspect.shared_queries(parts[one], parts[other])
    return {names: overlap for names, overlap in found.items() if overlap}


WORDS = {"train": "training", "valid": "validation", "test": "test"}


def leakage_caveats(found: dict[tuple[str, str], Overlap]) -> Iterator[Finding]:
    """One for each two parts that share queries."""
    for (one, other), overlap in found.items():
        told = overlap.message(f"the {WORDS[one]} data", f"the {WORDS[other]} data")
        if overlap.n_rows and one == "valid":
            told += ". The choice of C is not to be trusted"
        if overlap.n_rows:
            told += ". Split by query, each query into one part only"
        code = "leakage" if overlap.n_rows else "shared-ids"
        yield Finding(code, f"{told}.", grave=overlap.n_rows > 0)


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
        yield Finding(code, _describe_finding(messages), grave=code in _GRAVE)
    n_queries = parts["test"].queries.n_queries
    if n_queries < FEW_QUERIES and parts["test"].qid is not None:
        told = f"There are {n_queries} test queries: intervals and p values of so few are rough."
        yield Finding("few-queries", told)


def _describe_finding(messages: dict[str, str]) -> str:
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
    if (told := training.tuning.edge) is not None:
        yield Finding("edge-of-grid", f"{told[:1].upper()}{told[1:]}.")
    if not training.result.converged:
        told = f"The fit is not converged: {training.result.message}."
        yield Finding("not-converged", told, grave=True)


def _width_caveats(test: Dataset, one: Ranking) -> Iterator[Finding]:
    """Features of the test data that a model does not know, or the other way round."""
    width = getattr(one.model, "n_features", test.n_features)
    if width == test.n_features:
        return
    kind = "count nothing" if width < test.n_features else "are taken as 0"
    # A file of text that leaves out zeros explains that the model knows more features.
    may_lack_zeros = width > test.n_features and not isinstance(test.rows, DenseRows)
    told = f"{one.name} knows {width:,} features, the test data have {test.n_features:,}; those "
    told += f"that only one of them has {kind}. Is it a model of other data?"
    yield Finding("feature-counts", told, grave=not may_lack_zeros)
