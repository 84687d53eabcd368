"""Measures as values: ``parse("p(rel=2)@5") == Precision(k=5, rel=2.0)``, and back by ``str``.

A field left at None is decided by the convention of the evaluation.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

Gain = Literal["exponential", "linear"]
Discount = Literal["standard", "letor"]
Empty = Literal["skip"] | float
PairTies = Literal["error", "half", "skip"]

LARGEST_CUTOFF = 2**31 - 1  # no query has more rows
CHOICES: dict[str, tuple[str, ...]] = {
    "gain": ("exponential", "linear"),
    "discount": ("standard", "letor"),
    "ties": ("error", "half", "skip"),
    "over": ("pairs", "queries"),
}
# Of the errors that judge rows: one that is only tied with a row of the other side is right, as in
# Stevens (2010), or an error.
ROW_CHOICES = {"ties": ("right", "error"), "over": ("rows", "queries")}
MEASURES: dict[str, type[Measure]] = {}  # by name, in the order of the classes below


def check_option(option: str, value: Any, choices: Mapping[str, tuple[str, ...]] = CHOICES) -> None:
    """Raise ValueError unless ``value`` is one that ``option`` can take."""
    if option in choices:
        if value not in choices[option]:
            raise ValueError(f"{option} must be one of {', '.join(choices[option])}, got {value!r}")
    elif option == "empty":
        if isinstance(value, bool) or value not in (0, 1, "skip"):
            raise ValueError(f"empty must be 0, 1 or 'skip', got {value!r}")
    elif option == "p":
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 1:
            raise ValueError(f"p must be a number from 0 to below 1, got {value!r}")
    elif not isinstance(value, (int, float)) or not abs(value) < float("inf"):
        raise ValueError(f"{option} must be a finite number, got {value!r}")


def _text(value: Any) -> str:
    """2 for 2.0, 0.5 for 0.5: the shortest form that parses back."""
    if isinstance(value, str):
        return value
    return str(int(value)) if float(value).is_integer() else repr(float(value))


@dataclass(frozen=True)
class Measure:
    """What all measures share: their name, their options and how both are written."""

    name: ClassVar[str]
    cutoff: ClassVar[Literal["none", "optional", "required"]] = "none"
    choices: ClassVar[Mapping[str, tuple[str, ...]]] = CHOICES
    higher_is_better: ClassVar[bool] = True

    def __init_subclass__(cls, name: str = "") -> None:
        """A measure with a name can be parsed from it."""
        if name:
            cls.name = name
            MEASURES[name] = cls

    def __post_init__(self) -> None:
        for option, value in self.options().items():
            check_option(option, value, self.choices)
        k = getattr(self, "k", None)
        if k is None:
            if self.cutoff == "required":
                raise ValueError(f"{self.name} needs a cutoff: write {self.name}@10")
        elif isinstance(k, bool) or not isinstance(k, int) or not 1 <= k <= LARGEST_CUTOFF:
            raise ValueError(
                f"the cutoff of {self.name}@k must be an integer from 1 to {LARGEST_CUTOFF}, "
                f"got {k!r}"
            )

    def options(self) -> dict[str, Any]:
        """Options that were given, by name, without the cutoff."""
        values = {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if f.name != "k"}
        return {option: value for option, value in values.items() if value is not None}

    def __str__(self) -> str:
        options = ", ".join(f"{option}={_text(value)}" for option, value in self.options().items())
        k = getattr(self, "k", None)
        return self.name + (f"({options})" if options else "") + (f"@{k}" if k else "")


@dataclass(frozen=True)
class CustomMeasure(Measure):
    """A measure of yours: ``function(y, scores) -> float`` of one query, averaged over queries.

    ``y`` and ``scores`` are float64 vectors, the labels and the scores of the rows of a query in
    input order. A query for which it returns NaN is left out of the mean. Ties among scores are the
    function's affair, whatever the convention; but a model without weights ties all rows, and must
    not get a good value for the order in which they came.

    Parameters
    ----------
    function : callable
        From the labels and scores of a query to a number.
    label : str, optional
        What it is called in results and reports; by default the name of the function.
    higher_is_better : bool, default=True
        False for an error.
    """

    function: Callable[[Any, Any], float]
    label: str = ""
    higher_is_better: bool = dataclasses.field(default=True, kw_only=True)  # type: ignore[misc]

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise TypeError(f"a metric of yours must be callable, got {self.function!r}")
        named = self.label or getattr(self.function, "__name__", type(self.function).__name__)
        object.__setattr__(self, "label", named)

    @property
    def name(self) -> str:  # type: ignore[override]
        """The label."""
        return self.label

    def __str__(self) -> str:
        return self.label


@dataclass(frozen=True)
class TruncatedMeasure(Measure):
    """Of the first k rows of the ranking, or of all."""

    cutoff: ClassVar[Literal["none", "optional", "required"]] = "optional"
    k: int | None = None


@dataclass(frozen=True)
class MeasureAtDepth(TruncatedMeasure):
    """Of the first k rows, whose number must be given."""

    cutoff: ClassVar[Literal["none", "optional", "required"]] = "required"


@dataclass(frozen=True)
class PairMeasure(Measure):
    """Of pairs: what a tie is, and over what the mean is taken."""

    ties: PairTies | None = None
    over: Literal["pairs", "queries"] | None = None


@dataclass(frozen=True)
class RowError(Measure):
    """The share of rows that stand wrong; options as `PairMeasure` has them, of rows."""

    choices: ClassVar[Mapping[str, tuple[str, ...]]] = ROW_CHOICES
    higher_is_better: ClassVar[bool] = False
    ties: Literal["right", "error"] | None = None
    over: Literal["rows", "queries"] | None = None


@dataclass(frozen=True)
class NDCG(TruncatedMeasure, name="ndcg"):
    """``DCG@k / IDCG@k`` with ``DCG@k = Σ_{i<=k} gain(y_i) · discount(i)``.

    ``gain`` is 2^y - 1 (exponential) or y (linear); ``discount`` is 1/log2(i+1) (standard) or
    1/log2(max(2, i)) (letor); ``empty`` is the value of a query without a positive gain.
    """

    gain: Gain | None = None
    discount: Discount | None = None
    empty: Empty | None = None


@dataclass(frozen=True)
class MeanNDCG(Measure, name="mean_ndcg"):
    """``(1/l_q) Σ_{m=1..l_q} NDCG@m`` of a query of ``l_q`` rows."""

    gain: Gain | None = None
    discount: Discount | None = None
    empty: Empty | None = None


@dataclass(frozen=True)
class AveragePrecision(TruncatedMeasure, name="map"):
    """``(1/#relevant) Σ_{i<=k, relevant} (#relevant in the first i)/i``; relevant: y >= ``rel``."""

    rel: float | None = None
    empty: Empty | None = None


@dataclass(frozen=True)
class Precision(MeasureAtDepth, name="p"):
    """``(#relevant in the first k) / k``."""

    rel: float | None = None


@dataclass(frozen=True)
class Recall(MeasureAtDepth, name="recall"):
    """``(#relevant in the first k) / #relevant``."""

    rel: float | None = None
    empty: Empty | None = None


@dataclass(frozen=True)
class Success(MeasureAtDepth, name="success"):
    """1 if a relevant row is among the first k, else 0; also known as the hit rate."""

    rel: float | None = None


@dataclass(frozen=True)
class ReciprocalRank(TruncatedMeasure, name="mrr"):
    """``1 / rank of the first relevant row``, 0 if none is among the first k."""

    rel: float | None = None


@dataclass(frozen=True)
class ERR(TruncatedMeasure, name="err"):
    """``Σ_{i<=k} (1/i) R_i Π_{t<i} (1 - R_t)`` with ``R = (2^y - 1) / 2^y_max``.

    ``y_max`` is the highest grade there is; without it, the highest label of all queries.
    """

    y_max: float | None = None


@dataclass(frozen=True)
class RankBiasedPrecision(TruncatedMeasure, name="rbp"):
    """``(1 - p) Σ_{i<=k, relevant} p^(i-1)``: what a reader finds who goes on with chance ``p``.

    Relevance is yes or no (y >= ``rel``), as in Moffat & Zobel (2008); ``p`` is 0.8 if not given. A
    list of n rows cannot reach more than 1 - p^n: what a longer one might add is not guessed.
    """

    p: float | None = None
    rel: float | None = None


@dataclass(frozen=True)
class PairwiseAccuracy(PairMeasure, name="pairwise_accuracy"):
    """Share of the pairs ``y_i > y_j`` of a query with ``s_i > s_j``.

    ``ties`` says what a pair with equal scores is: an error, half right, or skipped. ``over``
    pools all pairs ("pairs", Lee & Lin) or averages the values of the queries ("queries").
    """


@dataclass(frozen=True)
class AUC(Measure, name="auc"):
    """Share of the pairs (relevant, other) of a query in the right order, ties counting ½.

    Queries without such a pair are left out of the mean.
    """

    rel: float | None = None


@dataclass(frozen=True)
class ConcordanceIndex(Measure, name="concordance_index"):
    """``(n_c + n_t/2) / p``: the pairwise accuracy with ties half right, whatever the convention.

    Of two labels it is the area under the ROC curve; `linrank.concordance_index` is that of
    censored times. ``over`` as in `Gamma`.
    """

    over: Literal["pairs", "queries"] | None = None


@dataclass(frozen=True)
class KendallTau(Measure, name="kendall_tau"):
    """``τ_b = (n_c - n_d) / √(p · p_s)``, ``p_s`` being the pairs with different scores.

    The mean over queries. One without a pair of different labels, or with all scores equal, has
    no τ_b (0/0) and is left out.
    """


@dataclass(frozen=True)
class Gamma(Measure, name="gamma"):
    """Goodman and Kruskal's ``γ = (n_c - n_d) / (n_c + n_d)``: pairs of equal scores do not count.

    ``over`` pools all pairs ("pairs", the default) or averages the values of the queries that have
    such a pair ("queries").
    """

    over: Literal["pairs", "queries"] | None = None


@dataclass(frozen=True)
class SomersD(Measure, name="somers_d"):
    """Somers' ``D = (n_c - n_d) / p`` of scores given labels: pairs of equal scores count 0.

    ``over`` as in `Gamma`.
    """

    over: Literal["pairs", "queries"] | None = None


@dataclass(frozen=True)
class AllPairsError(PairMeasure, name="all_pairs_error"):
    """``1 - PairwiseAccuracy``, with the same options: lower is better."""

    higher_is_better: ClassVar[bool] = False


@dataclass(frozen=True)
class DominationError(RowError, name="domination_error"):
    """Share of the rows with rows below them that are not above all of these: lower is better.

    ``#{i: max_{D(i)} s_j > s_i} / #{i: D(i) ≠ ∅}``, ``D(i)`` being the rows of lower label in i's
    query. A row that is only tied with one of ``D(i)`` is right, or with ``ties="error"`` wrong.
    ``over`` pools all rows ("rows") or averages the values of the queries ("queries").
    """


@dataclass(frozen=True)
class DominatedError(RowError, name="dominated_error"):
    """Share of the rows with rows above them that are not below all of these: lower is better.

    ``#{j: min_{i: j ∈ D(i)} s_i < s_j}`` over the number of rows with such an i; options as in
    `DominationError`.
    """
