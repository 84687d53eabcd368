"""compare_methods: train everything, measure everything, compare; and the tables of the result."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any

import numpy as np

from linrank.choices import N_FOLDS
from linrank.data.dataset import Dataset
from linrank.errors import NoPairsError, check_one_of, check_positive
from linrank.judging import compare as comparing
from linrank.judging import runner
from linrank.judging.candidates import BASELINE, Contestant, chosen_methods, fair_convention
from linrank.judging.compare import Comparison, best_first, compare_evaluations
from linrank.judging.inspect import judge, shared_queries
from linrank.judging.runner import Outcome, Progress, Protocol, Rules
from linrank.metrics import Convention, CustomMeasure, Evaluation, Measure, parse, parse_scoring
from linrank.metrics.evaluate import measures_of
from linrank.metrics.measures import Metric
from linrank.system.resources import bytes_text, count, resolve, seconds, short_text
from linrank.system.seeds import seed_of
from linrank.system.tables import Column, Table, Tabled


def check_protocol(
    protocol: Protocol, scoring: str, metrics: Sequence[str], convention: Convention
) -> list[str]:
    """Raise ValueError for parts that cannot be compared on; return what to warn of."""
    _check_features(protocol)
    for name, data in zip(protocol.names, protocol.subsets, strict=True):
        if data.queries.n_pairs == 0:
            raise NoPairsError(
                f"{name} has no pair to compare: in each of its {data.queries.n_queries:,} queries "
                "all labels are equal; check labels and qid"
            )
    for fold in protocol.folds:
        for part in fold.valid or fold.train:
            _check_measurable(protocol, part, (scoring,), convention, "choose by")
        _check_measurable(protocol, fold.test[0], metrics, convention, "test by")
    return [*leak_warnings(protocol), *_other_warnings(protocol, metrics)]


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


def _check_measurable(
    protocol: Protocol, part: int, metrics: Sequence[str], convention: Convention, what: str
) -> None:
    """Some query must count in every measure; negative labels and the like are found here too."""
    data = protocol.subsets[part]
    try:
        # All scores differ: what ties leave undefined is no fault.
        result = judge(data, np.arange(float(data.n_rows)), list(metrics), convention)
    except ValueError as error:
        raise ValueError(f"{protocol.names[part]}, to {what}: {error}") from error
    for metric, mean in result.items():
        if np.isnan(mean):
            raise ValueError(
                f"{metric}, to {what}, is undefined on {protocol.names[part]}: none of its "
                f"{data.queries.n_queries:,} queries can be judged; use another measure"
            )


def leak_warnings(protocol: Protocol) -> list[str]:
    """A warning for each two subsets in different parts of a fold that have queries in common."""
    found = []
    for a, b in combinations(range(len(protocol.subsets)), 2):
        together = [any({a, b} <= set(part) for part in vars(f).values()) for f in protocol.folds]
        shared = None if all(together) else shared_queries(protocol.subsets[b], protocol.subsets[a])
        if shared:
            found.append(shared.message(protocol.names[b], protocol.names[a]))
    return found


def _other_warnings(protocol: Protocol, metrics: Sequence[str]) -> Iterator[str]:
    """Weights that are not used, a single test query, measures that favor ties."""
    for name, data in zip(protocol.names, protocol.subsets, strict=True):
        if data.weight is not None:
            yield f"the weights of the rows of {name} are left out: not all methods take them"
            break
    tested = [protocol.subsets[fold.test[0]] for fold in protocol.folds]
    if sum(data.queries.n_queries for data in tested) == 1:
        name, has_ids = protocol.names[protocol.folds[0].test[0]], tested[0].queries.ids is not None
        why = "" if has_ids else " (it has no qid, so that all its rows are one)"
        yield f"{name} has a single query{why}: no interval and no p can be had from it"
    for metric in metrics:
        try:
            parse_scoring(metric)
        except ValueError:  # a model that ties all rows would be the best
            yield (
                f"{metric} counts rows that are only tied as right, in favor of methods that tie "
                f"many; {parse(metric).name}(ties=error) counts them as wrong"
            )


SCALES = ("auto", "standard", "minmax", "none")
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
    metrics: Metric | Iterable[Metric] | None = None,
    scoring: str | Measure | None = None,
    selection: str = "auto",
    n_folds: int = N_FOLDS,
    convention: str | Convention = "linrank",
    scale: str = SCALES[0],
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
        labels are negative. `linrank compare` takes the first of ``metrics``.
    selection : {"auto", "validation", "cross-validation"}
        What chooses: as above; the validation part however small, as benchmarks prescribe it; or
        the folds in any case.
    n_folds : int, default=5
        Folds of the training queries, where cross-validation chooses.
    convention : str or Convention
        Whose rules. Rows with equal scores, which other conventions leave in input order, count as
        the average over their orders here.
    scale : {"auto", "standard", "minmax", "none"}
        Scaling of the features for linear methods and kernels, fitted on the training part;
        ``"auto"`` as in :class:`linrank.RankSVM`. Trees get the features as they are.
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
    check_one_of("selection", selection, runner.SELECTIONS)
    if n_folds < 2:
        raise ValueError(f"n_folds must be >= 2, got {n_folds}")
    given = _protocol(train, valid, test, folds)
    protocol = given.with_selection(selection, n_folds)
    chosen = chosen_methods(methods, without, baseline)
    usual = usual_metrics(protocol.subsets)
    if scoring is None:
        scoring = USUAL_METRICS[0] if USUAL_METRICS[0] in usual else USUAL_METRICS[-1]
    if isinstance(parse(scoring), CustomMeasure):
        raise TypeError(
            f"scoring={str(parse(scoring))!r} is a function, and models are chosen in processes "
            "that only know names of metrics; pass it in metrics=, which are measured here"
        )
    check_one_of("scale", scale, SCALES)
    check_positive("budget", budget)
    fair, seed = fair_convention(convention), seed_of(random_state)
    rules = Rules(str(parse_scoring(scoring)), fair, scale, seed, float(budget), n_folds)
    measures = [str(measure) for measure in measures_of(usual if metrics is None else metrics)]
    remarks = check_protocol(protocol, rules.scoring, measures, rules.convention)
    for remark in remarks:
        warnings.warn(remark, stacklevel=2)
    start = time.monotonic()
    outcomes = runner.run_all(protocol, chosen, rules, resolve(n_jobs), progress)
    entries = [_entry(m, outcomes[m.name], protocol, measures, rules) for m in chosen]
    tests = {"correction": correction, "confidence": confidence, "n_resamples": n_resamples}
    comparison, more = compare_entries(entries, baseline, random_state=seed, n_jobs=n_jobs, **tests)
    unused = _unused_validation(given, protocol) if selection == "auto" else []
    return Contest(
        entries=tuple(entries),
        comparison=comparison,
        metrics=tuple(measures),
        baseline=baseline,
        rules=rules,
        protocol=protocol.describe(),
        selection=protocol.selection,
        sources=protocol.names,
        remarks=(*remarks, *unused, *more),
        seconds=time.monotonic() - start,
    )


def _protocol(train: Any, valid: Any, test: Any, folds: Sequence[Dataset] | None) -> Protocol:
    parts = [part for part in (train, valid, test) if part is not None]
    for part in [*parts, *(folds or [])]:
        if not isinstance(part, Dataset):
            raise TypeError(
                f"parts must be datasets, as linrank.load and Dataset.of make them, got {part!r}"
            )
    # Rows may have been written to since anybody looked at them.
    if folds is not None and not parts:
        return runner.rotation([fold.without_scan() for fold in folds])
    if folds is not None or train is None or test is None:
        raise ValueError(
            "give the parts train, test and, to choose by, valid, or folds (a sequence of subsets)"
        )
    return runner.one_split(*(part and part.without_scan() for part in (train, valid, test)))


def _unused_validation(given: Protocol, protocol: Protocol) -> list[str]:
    """What becomes of a validation part that nothing is chosen by."""
    fold = given.folds[0]
    if not fold.valid or protocol.folds[0].valid:
        return []
    n_queries = min(given.n_queries(fold.valid) for fold in given.folds)
    return [
        f"a validation part of {n_queries:,} queries, fewer than {runner.MANY}, is left aside: it "
        "would not tell candidates apart. To learn from its queries, join it to the training part"
    ]


def usual_metrics(subsets: Sequence[Dataset]) -> list[str]:
    """What is measured by default: no NDCG where labels are negative, since it has no gain then."""
    has_gains = min(float(data.labels.min()) for data in subsets) >= 0.0
    return [metric for metric in USUAL_METRICS if has_gains or "ndcg" not in metric]


def _entry(
    method: Contestant,
    outcomes: Sequence[Outcome],
    protocol: Protocol,
    measures: list[str],
    rules: Rules,
) -> Entry:
    """The outcomes of a method, measured; on all folds or not at all."""
    parts = []
    for fold, outcome in zip(protocol.folds, outcomes, strict=True):
        if outcome.scores is None:
            return Entry(method, tuple(outcomes), None)
        data = protocol.subsets[fold.test[0]]
        scores = data.queries.scatter(outcome.scores)
        parts.append(judge(data, scores, measures, rules.convention))
    return Entry(method, tuple(outcomes), parts[0] if len(parts) == 1 else Evaluation.joined(parts))


def compare_entries(
    entries: Sequence[Entry], baseline: str, **options: Any
) -> tuple[Comparison | None, list[str]]:
    """The comparison of those with a result; with the first of them if the baseline has none."""
    found = {entry.name: entry.evaluation for entry in entries if entry.evaluation is not None}
    if not found:
        return None, ["no method has come to a result; see what each says"]
    first = baseline if baseline in found else next(iter(found))
    told = f"the baseline {baseline} has no result; compared with {first} instead"
    comparison = compare_evaluations(found, baseline=first, **options)
    return comparison, [] if first == baseline else [told]


# ---- the result ---------------------------------------------------------------------------------


def _mean(values: Sequence[float | None]) -> float | None:
    """Of those that are known."""
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


@dataclass(frozen=True, eq=False)
class Entry:
    """A method and what became of it.

    Attributes
    ----------
    method : Contestant
    outcomes : tuple of Outcome
        One for each fold.
    evaluation : Evaluation or None
        On the test queries of all folds; None if a fold has no model.
    """

    method: Contestant
    outcomes: tuple[Outcome, ...]
    evaluation: Evaluation | None = field(repr=False)

    @property
    def name(self) -> str:
        return self.method.name

    @property
    def has_result(self) -> bool:
        """Whether there was a model on every fold."""
        return self.evaluation is not None

    @property
    def fit_seconds(self) -> float | None:
        """Processor time of one fit with the chosen parameters, the mean of the folds."""
        return _mean([outcome.fit_seconds for outcome in self.outcomes])

    @property
    def search_seconds(self) -> float:
        """Processor time of a search, the mean of the folds."""
        return _mean([outcome.search_seconds for outcome in self.outcomes]) or 0.0

    @property
    def model_bytes(self) -> float | None:
        """Bytes of the saved model, the mean of the folds."""
        return _mean([None if o.size is None else o.size.n_bytes for o in self.outcomes])

    @property
    def remark(self) -> str:
        """What went wrong, and on how many folds; empty if nothing did."""
        bad = [(k, o) for k, o in enumerate(self.outcomes, start=1) if o.status != "done"]
        if not bad:
            return ""
        first, outcome = bad[0]
        is_plain = outcome.status in ("cut", "missing")
        says = outcome.why if is_plain else f"{outcome.status}: {outcome.why}"
        if len(self.outcomes) == 1 or outcome.status == "missing":
            return says
        which = "" if len(bad) == 1 else f"{len(bad)} of {len(self.outcomes)} folds, "
        return f"{which}fold {first}{' first' if which else ''}: {says}"

    def to_dict(self) -> dict[str, Any]:
        """Plain Python values."""
        method, own = self.method, ("has_result", "fit_seconds", "search_seconds", "model_bytes")
        return {
            "method": method.name,
            "family": method.family,
            "description": method.description,
            "grid": method.candidates,
            "remark": self.remark or None,
            **{name: getattr(self, name) for name in own},
            "metrics": None if self.evaluation is None else self.evaluation.to_dict()["means"],
            "folds": [outcome.to_dict() for outcome in self.outcomes],
        }


@dataclass(frozen=True, eq=False)
class Contest(Tabled):
    """Methods trained on the same data, measured on queries that none has seen, and compared.

    ``print(contest)`` shows it with a legend; a notebook shows it as HTML.

    Attributes
    ----------
    entries : tuple of Entry
        The methods in the order given, those without a result included.
    comparison : Comparison or None
        Of those with a result; None if there is none.
    metrics : tuple of str
        What was measured, the most important first.
    baseline : str
        What was asked to be compared with.
    rules : Rules
        scoring, convention, scale, seed and budget.
    protocol : str
        How the data were divided, in words.
    selection : str
        What candidates were chosen by: the validation part, or cross-validation.
    sources : tuple of str
        Where they came from.
    remarks : tuple of str
        What to know before trusting the table.
    seconds : float
        On the clock, all of it.
    """

    entries: tuple[Entry, ...]
    comparison: Comparison | None
    metrics: tuple[str, ...]
    baseline: str
    rules: Rules
    protocol: str
    selection: str
    sources: tuple[str, ...]
    remarks: tuple[str, ...]
    seconds: float

    def __getitem__(self, name: str) -> Entry:
        by_name = {entry.name: entry for entry in self.entries}
        if name not in by_name:
            raise KeyError(f"{name!r} did not take part; there are {', '.join(by_name)}")
        return by_name[name]

    def tables(self) -> list[Table]:
        """Quality, cost, and what went wrong."""
        tables, found = [], self.comparison
        if found is not None:
            tables.append(_quality(self, found))
            if len(self.metrics) > 1:
                tables.append(comparing.overview(found, best_first(found, self.metrics[0])))
        tables.append(_cost(self))
        states = {True: "counts", False: "no result"}
        if rows := [[e.name, states[e.has_result], e.remark] for e in self.entries if e.remark]:
            columns = [Column(name, "left") for name in ("method", "outcome", "why")]
            tables.append(Table(columns, rows, "What went wrong"))
        return tables

    def legend(self) -> list[str]:
        """What the tables mean, and what to know before trusting them."""
        rules = self.rules
        lines = [f"Note: {remark}." for remark in self.remarks]
        if self.comparison is not None:
            lines += self.comparison.legend()
        lines += [
            f"chosen: each method's candidate with the best {rules.scoring} {self.selection}, the "
            "same for all methods; trained on the training part; the test part is looked at once, "
            "with that model. candidates: how many were tried, each method's defaults among them.",
            "one fit: with the chosen parameters; search: all candidates, judging included; model: "
            "its saved form.",
            f"features: scaled ({rules.scale}, from the training part) for linear methods and "
            "kernels, as they are for trees."
            if rules.scale != "none"
            else "features: as they are, for all methods.",
            f"seed {rules.seed}, budget {rules.budget:g} s for a method and fold; all of it took "
            f"{seconds(self.seconds)} on the clock.",
        ]
        if any(entry.has_result and entry.remark for entry in self.entries):
            lines.append("*: the budget ended the search; the best candidate so far counts.")
        return lines

    def to_dict(self) -> dict[str, Any]:
        """Return plain Python values, ready for JSON; None for what is undefined."""
        apart = ("entries", "rules")
        told = {name: value for name, value in vars(self).items() if name not in apart}
        return {
            **{n: list(v) if isinstance(v, tuple) else v for n, v in told.items()},
            **vars(self.rules),
            "convention": self.rules.convention.describe(),
            "methods": [entry.to_dict() for entry in self.entries],
            "comparison": None if self.comparison is None else self.comparison.to_dict(),
        }

    def __repr__(self) -> str:
        n = sum(entry.has_result for entry in self.entries)
        return (
            f"<Contest of {len(self.entries)} methods, {n} with a result, {self.protocol}, "
            f"chosen by {self.rules.scoring}>"
        )


def _quality(contest: Contest, comparison: Comparison) -> Table:
    """The first metric, best method first; a row too for each method without a result."""
    table = comparing.details(comparison, contest.metrics[0])
    empty = [""] * (len(table.columns) - 3)
    lost = [[e.name, "—", *empty, "no result"] for e in contest.entries if not e.has_result]
    chosen = f"the best {contest.selection} by {contest.rules.scoring}"
    title = f"{table.title}; {contest.protocol}; {chosen}"
    return replace(table, rows=[*table.rows, *lost], title=title)


def _cost(contest: Contest) -> Table:
    """Time, size and parameters, in the order of the first table."""
    headings = ["one fit", "search", "candidates", "model", "made of"]
    columns = [Column("method", "left"), *map(Column, headings), Column("chosen", "left")]
    best, rows = contest.comparison, []
    for name in [] if best is None else best_first(best, contest.metrics[0]):
        entry = contest[name]
        sizes = [outcome.size for outcome in entry.outcomes if outcome.size is not None]
        n_parts = round(sum(size.n_parts for size in sizes) / len(sizes))
        fit = "" if entry.fit_seconds is None else seconds(entry.fit_seconds)
        n_candidates = max(outcome.n_candidates for outcome in entry.outcomes)
        row = [entry.name + (" *" if entry.remark else ""), fit, seconds(entry.search_seconds)]
        row += [f"{n_candidates}", bytes_text(round(entry.model_bytes or 0))]
        row += [count(n_parts, sizes[0].part.removesuffix("s")), chosen_parameters(entry)]
        rows.append(row)
    lost = (entry.name for entry in contest.entries if not entry.has_result)
    rows += [[name, *[""] * 5, "no result: see below"] for name in lost]
    n_folds = max(len(entry.outcomes) for entry in contest.entries)
    of_folds = f", means of {n_folds} folds" if n_folds > 1 else ""
    return Table(columns, rows, f"Cost of a model{of_folds}; processor time, one thread")


def chosen_parameters(entry: Entry) -> str:
    """The candidates: of those alike, the range or the values that occur, and on how many folds."""
    alike: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for outcome in entry.outcomes:
        alike.setdefault(tuple(outcome.parameters), []).append(outcome.parameters)
    parts = []
    for names, found in alike.items():
        values = {name: list(dict.fromkeys(each[name] for each in found)) for name in names}
        told = ", ".join(f"{name} {_values(values[name])}" for name in names) or "defaults"
        parts.append(told if len(alike) == 1 else f"{told} ({count(len(found), 'fold')})")
    return "; ".join(parts)


def _values(values: Sequence[Any]) -> str:
    if len(values) > 1 and all(isinstance(value, (int, float)) for value in values):
        return f"{short_text(min(values))}–{short_text(max(values))}"
    return " or ".join(map(short_text, values))
