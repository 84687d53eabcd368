"""Measures as values: ``parse("p(rel=2)@5") == Precision(k=5, rel=2.0)``, and back by ``str``.

A name is ``name``, ``name@k`` or ``name(option=value, ...)@k``. A field left at None is decided by
the convention of the evaluation.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, get_args

from linrank.errors import nearest

Gain = Literal["exponential", "linear"]
Discount = Literal["standard", "letor"]
Empty = Literal["skip"] | float
PairTies = Literal["error", "half", "skip"]
Counted = Literal["", "pairs", "dominating", "dominated"]

LARGEST_CUTOFF = 2**31 - 1  # no query has more rows
CHOICES: dict[str, tuple[str, ...]] = {
    "gain": get_args(Gain),
    "discount": get_args(Discount),
    "ties": get_args(PairTies),
    "over": ("pairs", "queries"),
}
# Of the errors that judge rows: one that is only tied with a row of the other side is right, as in
# Stevens (2010), or an error.
ROW_CHOICES = {"ties": ("right", "error"), "over": ("rows", "queries")}
MEASURES: dict[str, type[Measure]] = {}  # by name, in the order of the classes below
ALIASES: dict[str, str] = {}  # the names of other tools, without cutoff and options


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
    """What all measures share: their name, their options and how both are written.

    A subclass with a name can be parsed from it. ``aliases`` are the names that other tools have
    for it, in lower case: ir_measures and trec_eval, ranx, XGBoost, LightGBM, scikit-learn, SciPy,
    scikit-survival, and in words. A measure of a whole query has a ``kernel``, the name of what
    computes it in the core; one of pairs or rows is a share of some ``counts`` of an `Evaluation`.
    """

    name: ClassVar[str]
    kernel: ClassVar[str] = ""
    counts: ClassVar[Counted] = ""
    cutoff: ClassVar[Literal["none", "optional", "required"]] = "none"
    choices: ClassVar[Mapping[str, tuple[str, ...]]] = CHOICES
    higher_is_better: ClassVar[bool] = True

    def __init_subclass__(cls, name: str = "", aliases: str = "", kernel: str = "") -> None:
        if name:
            cls.name, cls.kernel = name, kernel
            MEASURES[name] = cls
            ALIASES.update(dict.fromkeys(aliases.split(), name))

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
    rel: float | None = None


class CountedMeasure(Measure):
    """A share of what is counted, pooled over all queries or averaged over them."""

    counts: ClassVar[Counted] = "pairs"
    over: str | None

    def share(self, right: Any, wrong: Any, tied: Any, ties: PairTies) -> tuple[Any, Any]:
        """Numerator and denominator from the pairs of each query by the order of their scores.

        Parameters
        ----------
        right, wrong, tied : int64 arrays (n_queries,)
            Twice their numbers, so that half a pair is an integer and sums are exact.
        ties : {"error", "half", "skip"}
            What the convention makes of equal scores, where the measure leaves it open.
        """
        raise NotImplementedError("a measure of counts defines share(right, wrong, tied, ties)")


@dataclass(frozen=True)
class PairMeasure(CountedMeasure):
    """Of pairs: what a tie is, and over what the mean is taken."""

    ties: PairTies | None = None
    over: Literal["pairs", "queries"] | None = None

    def share(self, right: Any, wrong: Any, tied: Any, ties: PairTies) -> tuple[Any, Any]:
        ties = self.ties or ties
        taken = 0 if ties == "skip" else tied
        half = taken // 2 if ties == "half" else 0
        part = right + half if self.higher_is_better else wrong + taken - half
        return part, right + wrong + taken


@dataclass(frozen=True)
class RowError(CountedMeasure):
    """The share of rows that stand wrong; options as `PairMeasure` has them, of rows."""

    choices: ClassVar[Mapping[str, tuple[str, ...]]] = ROW_CHOICES
    higher_is_better: ClassVar[bool] = False
    ties: Literal["right", "error"] | None = None
    over: Literal["rows", "queries"] | None = None

    def share(self, total: Any, wrong: Any, tied: Any, ties: PairTies) -> tuple[Any, Any]:
        return wrong + tied if self.ties == "error" else wrong, total


@dataclass(frozen=True)
class NDCG(TruncatedMeasure, name="ndcg", aliases="ndcg_score", kernel="ndcg"):
    """``DCG@k / IDCG@k`` with ``DCG@k = Σ_{i<=k} gain(y_i) · discount(i)``.

    ``gain`` is 2^y - 1 (exponential) or y (linear); ``discount`` is 1/log2(i+1) (standard) or
    1/log2(max(2, i)) (letor); ``empty`` is the value of a query without a positive gain.
    """

    gain: Gain | None = None
    discount: Discount | None = None
    empty: Empty | None = None


@dataclass(frozen=True)
class MeanNDCG(Measure, name="mean_ndcg", aliases="meanndcg", kernel="mean_ndcg"):
    """``(1/l_q) Σ_{m=1..l_q} NDCG@m`` of a query of ``l_q`` rows."""

    gain: Gain | None = None
    discount: Discount | None = None
    empty: Empty | None = None


@dataclass(frozen=True)
class AveragePrecision(
    TruncatedMeasure,
    name="map",
    aliases="ap mean_average_precision average_precision average_precision_score",
    kernel="average_precision",
):
    """``(1/#relevant) Σ_{i<=k, relevant} (#relevant in the first i)/i``; relevant: y >= ``rel``."""

    rel: float | None = None
    empty: Empty | None = None


@dataclass(frozen=True)
class Precision(MeasureAtDepth, name="p", aliases="precision pre", kernel="precision"):
    """``(#relevant in the first k) / k``."""


@dataclass(frozen=True)
class Recall(MeasureAtDepth, name="recall", aliases="r", kernel="recall"):
    """``(#relevant in the first k) / #relevant``."""

    empty: Empty | None = None


@dataclass(frozen=True)
class Success(MeasureAtDepth, name="success", aliases="hit_rate", kernel="success"):
    """1 if a relevant row is among the first k, else 0; also known as the hit rate."""


@dataclass(frozen=True)
class ReciprocalRank(
    TruncatedMeasure,
    name="mrr",
    aliases="rr recip_rank reciprocal_rank mean_reciprocal_rank",
    kernel="reciprocal_rank",
):
    """``1 / rank of the first relevant row``, 0 if none is among the first k."""

    rel: float | None = None


@dataclass(frozen=True)
class ERR(TruncatedMeasure, name="err", kernel="err"):
    """``Σ_{i<=k} (1/i) R_i Π_{t<i} (1 - R_t)`` with ``R = (2^y - 1) / 2^y_max``.

    ``y_max`` is the highest grade there is; without it, the highest label of all queries.
    """

    y_max: float | None = None


@dataclass(frozen=True)
class RankBiasedPrecision(
    TruncatedMeasure, name="rbp", aliases="rank_biased_precision", kernel="rbp"
):
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
class AUC(Measure, name="auc", aliases="roc_auc roc_auc_score", kernel="auc"):
    """Share of the pairs (relevant, other) of a query in the right order, ties counting ½.

    Queries without such a pair are left out of the mean.
    """

    rel: float | None = None


@dataclass(frozen=True)
class ConcordanceIndex(CountedMeasure, name="concordance_index", aliases="c_index cindex"):
    """``(n_c + n_t/2) / p``: the pairwise accuracy with ties half right, whatever the convention.

    Of two labels it is the area under the ROC curve; `linrank.concordance_index` is that of
    censored times. ``over`` as in `Gamma`.
    """

    over: Literal["pairs", "queries"] | None = None

    def share(self, right: Any, wrong: Any, tied: Any, ties: PairTies) -> tuple[Any, Any]:
        return right + tied // 2, right + wrong + tied


@dataclass(frozen=True)
class KendallTau(Measure, name="kendall_tau", aliases="kendalltau tau_b", kernel="kendall_tau"):
    """``τ_b = (n_c - n_d) / √(p · p_s)``, ``p_s`` being the pairs with different scores.

    The mean over queries. One without a pair of different labels, or with all scores equal, has
    no τ_b (0/0) and is left out.
    """


@dataclass(frozen=True)
class Gamma(CountedMeasure, name="gamma", aliases="goodman_kruskal_gamma"):
    """Goodman and Kruskal's ``γ = (n_c - n_d) / (n_c + n_d)``: pairs of equal scores do not count.

    ``over`` pools all pairs ("pairs", the default) or averages the values of the queries that have
    such a pair ("queries").
    """

    over: Literal["pairs", "queries"] | None = None

    def share(self, right: Any, wrong: Any, tied: Any, ties: PairTies) -> tuple[Any, Any]:
        return right - wrong, right + wrong


@dataclass(frozen=True)
class SomersD(CountedMeasure, name="somers_d", aliases="somersd"):
    """Somers' ``D = (n_c - n_d) / p`` of scores given labels: pairs of equal scores count 0.

    ``over`` as in `Gamma`.
    """

    over: Literal["pairs", "queries"] | None = None

    def share(self, right: Any, wrong: Any, tied: Any, ties: PairTies) -> tuple[Any, Any]:
        return right - wrong, right + wrong + tied


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

    counts: ClassVar[Counted] = "dominating"


@dataclass(frozen=True)
class DominatedError(RowError, name="dominated_error"):
    """Share of the rows with rows above them that are not below all of these: lower is better.

    ``#{j: min_{i: j ∈ D(i)} s_i < s_j}`` over the number of rows with such an i; options as in
    `DominationError`.
    """

    counts: ClassVar[Counted] = "dominated"


# ---- names ---------------------------------------------------------------------------------------

# Options and their values: ir_measures calls the gain dcg.
OPTIONS = {("dcg", "exp-log2"): ("gain", "exponential"), ("dcg", "log2"): ("gain", "linear")}
# Words that hold the cutoff or an option, as trec_eval and ranx write them, and what they mean.
_SPELLINGS = {
    r"(ndcg|map|p|recall|success)(?:_cut)?[_.](\d+)": r"\1@\2",
    r"rbp\.(\d+)": r"rbp(p=0.\1)",
    r"ndcg_burges(@.*)?": r"ndcg(gain=exponential)\1",
}


def respell(text: str) -> str:
    """Return a name whose cutoff or option is part of the word in linrank's form.

    Examples
    --------
    >>> respell("ndcg_cut_10"), respell("P.5".lower()), respell("rbp.95"), respell("ndcg_burges@3")
    ('ndcg@10', 'p@5', 'rbp(p=0.95)', 'ndcg(gain=exponential)@3')
    """
    for form, ours in _SPELLINGS.items():
        text = re.sub(rf"\A{form}\Z", ours, text)
    return text


_FORM = re.compile(
    r"(?P<name>[a-z_]+)\s*(?:\((?P<options>[^()]*)\)\s*)?(?:@\s*(?P<k>[+-]?\w+))?(?P<minus>-)?"
)
Metric = str | Measure | Callable[[Any, Any], float]
_CUSTOM: dict[str, CustomMeasure] = {}  # by name: results go by names


def valid_forms() -> tuple[str, ...]:
    """Return one example of each name that `parse` knows."""
    suffix = {"none": "", "optional": "[@k]", "required": "@k"}
    return tuple(name + suffix[kind.cutoff] for name, kind in MEASURES.items())


def parse(text: Metric) -> Measure:
    """Return the measure that ``text`` names; a measure is returned as it is.

    A function of the labels and scores of one query becomes a `CustomMeasure`, which its name finds
    from then on; of several functions of one name, the last.

    Case does not matter. A trailing ``-`` is XGBoost's spelling of ``empty=0``. Names as
    ir_measures, trec_eval, ranx, LightGBM and scikit-learn write them are understood where they
    mean one of ours.

    Examples
    --------
    >>> parse("nDCG@10"), str(parse("P(rel=2)@5"))
    (NDCG(k=10, gain=None, discount=None, empty=None), 'p(rel=2)@5')
    """
    if callable(text):
        text = CustomMeasure(text)
    if isinstance(text, Measure):
        return _register(text) if isinstance(text, CustomMeasure) else text
    if not isinstance(text, str):
        raise TypeError(
            f"a metric is a name such as 'ndcg@10', a Measure or a function f(y, scores), "
            f"got {text!r}"
        )
    if text in _CUSTOM:
        return _CUSTOM[text]
    lowered = respell(text.strip().lower())
    match = _FORM.fullmatch(lowered)
    if match is None:
        raise _unknown(text, re.split(r"[@(]", lowered)[0])
    name = ALIASES.get(match["name"], match["name"])
    kind = MEASURES.get(name)
    if kind is None:
        raise _unknown(text, match["name"])
    values = _options(kind, match["options"] or "", text)
    if match["k"] is not None:
        values["k"] = _cutoff(kind, match["k"], text)
    if match["minus"]:
        _require(kind, "empty", text)
        values.setdefault("empty", 0.0)
    try:
        return kind(**values)
    except ValueError as error:
        raise ValueError(f"metric {text!r}: {error}") from None


def _register(measure: CustomMeasure) -> CustomMeasure:
    """Let the measure be found by its name, which must not be one of ours."""
    word = re.split(r"[@(]", respell(measure.label.lower()))[0]
    if word in MEASURES or word in ALIASES:
        raise ValueError(
            f"a metric of yours is called {measure.label!r}, as one of linrank's; rename the "
            "function, or pass CustomMeasure(function, label='...')"
        )
    _CUSTOM[measure.label] = measure
    return measure


def parse_scoring(text: Metric) -> Measure:
    """Return the measure that ``text`` names, if models can be chosen by it.

    A measure that counts tied rows as right cannot: a model that ties all rows, as one without
    weights does, would be perfect.
    """
    measure = parse(text)
    if isinstance(measure, RowError) and measure.ties != "error":
        raise ValueError(
            f"scoring {str(measure)!r} counts rows that are only tied as right, so that a model "
            f"which scores all rows alike would be the best; write {measure.name}(ties=error)"
        )
    return measure


def _cutoff(kind: type[Measure], k: str, text: str) -> int:
    if kind.cutoff == "none":
        raise ValueError(f"metric {text!r}: {kind.name} looks at whole queries and takes no @k")
    if not k.isascii() or not k.isdigit() or int(k) < 1:
        raise ValueError(f"metric {text!r}: the cutoff must be an integer >= 1, got {k!r}")
    return int(k)


def _options(kind: type[Measure], inside: str, text: str) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for part in filter(None, (p.strip() for p in inside.split(","))):
        option, equals, value = (p.strip(" '\"") for p in part.partition("="))
        option, value = OPTIONS.get((option, value), (option, value))
        if not equals:
            raise ValueError(f"metric {text!r}: write options as option=value, got {part!r}")
        _require(kind, option, text)
        if option in values:
            raise ValueError(f"metric {text!r}: {option} is given twice")
        values[option] = (
            value if option in kind.choices or value == "skip" else _number(value, text)
        )
    return values


def _require(kind: type[Measure], option: str, text: str) -> None:
    known = [f.name for f in dataclasses.fields(kind) if f.name != "k"]
    if option not in known:
        has = f"it has {', '.join(known)}" if known else "it takes none"
        raise ValueError(f"metric {text!r}: {kind.name} has no option {option!r}; {has}")


def _number(value: str, text: str) -> float:
    try:
        return float(value)
    except ValueError:
        raise ValueError(f"metric {text!r}: {value!r} is not a number") from None


def _unknown(text: str, name: str) -> ValueError:
    near = nearest(name, [*MEASURES, *ALIASES], 0.5)
    hint = "" if near is None else f" Did you mean {ALIASES.get(near, near)!r}?"
    return ValueError(f"unknown metric {text!r}.{hint} Valid forms: {', '.join(valid_forms())}")
