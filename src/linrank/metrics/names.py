"""Names of measures: ``name``, ``name@k``, ``name(option=value, ...)@k``."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from typing import Any

from linrank.errors import nearest
from linrank.metrics import measures
from linrank.metrics.measures import MEASURES

# Names in small letters, without cutoff and options.
ALIASES = {
    # ir_measures and trec_eval
    "ap": "map",
    "rr": "mrr",
    "r": "recall",
    "recip_rank": "mrr",
    # ranx
    "precision": "p",
    "hit_rate": "success",
    "rank_biased_precision": "rbp",
    # XGBoost, LightGBM, scikit-learn
    "pre": "p",
    "mean_average_precision": "map",
    "average_precision": "map",
    "average_precision_score": "map",
    "ndcg_score": "ndcg",
    "roc_auc": "auc",
    "roc_auc_score": "auc",
    # SciPy, scikit-survival, and in words
    "meanndcg": "mean_ndcg",
    "reciprocal_rank": "mrr",
    "mean_reciprocal_rank": "mrr",
    "kendalltau": "kendall_tau",
    "tau_b": "kendall_tau",
    "goodman_kruskal_gamma": "gamma",
    "somersd": "somers_d",
    "c_index": "concordance_index",
    "cindex": "concordance_index",
}

# Options and their values: the gain is called dcg by ir_measures.
OPTIONS = {
    ("dcg", "exp-log2"): ("gain", "exponential"),
    ("dcg", "log2"): ("gain", "linear"),
}

_TREC_CUTOFF = re.compile(r"(ndcg|map|p|recall|success)(?:_cut)?[_.](\d+)")
_RANX_PERSISTENCE = re.compile(r"rbp\.(\d+)")
_RANX_BURGES = re.compile(r"ndcg_burges(@.*)?")


def respelt(text: str) -> str:
    """Return a name whose cutoff or option is part of the word in linrank's form.

    Examples
    --------
    >>> respelt("ndcg_cut_10"), respelt("P.5".lower()), respelt("rbp.95"), respelt("ndcg_burges@3")
    ('ndcg@10', 'p@5', 'rbp(p=0.95)', 'ndcg(gain=exponential)@3')
    """
    if match := _TREC_CUTOFF.fullmatch(text):
        return f"{match[1]}@{match[2]}"
    if match := _RANX_PERSISTENCE.fullmatch(text):
        return f"rbp(p=0.{match[1]})"
    if match := _RANX_BURGES.fullmatch(text):
        return f"ndcg(gain=exponential){match[1] or ''}"
    return text


_FORM = re.compile(
    r"(?P<name>[a-z_]+)\s*(?:\((?P<options>[^()]*)\)\s*)?(?:@\s*(?P<k>[+-]?\w+))?(?P<minus>-)?"
)
Metric = str | measures.Measure | Callable[[Any, Any], float]
_CUSTOM: dict[str, measures.CustomMeasure] = {}  # by name: results go by names


def valid_forms() -> tuple[str, ...]:
    """Return one example of each name that `parse` knows."""
    suffix = {"none": "", "optional": "[@k]", "required": "@k"}
    return tuple(name + suffix[kind.cutoff] for name, kind in MEASURES.items())


def parse(text: Metric) -> measures.Measure:
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
        text = measures.CustomMeasure(text)
    if isinstance(text, measures.Measure):
        return _noted(text) if isinstance(text, measures.CustomMeasure) else text
    if not isinstance(text, str):
        raise TypeError(
            f"a metric is a name such as 'ndcg@10', a Measure or a function f(y, scores), "
            f"got {text!r}"
        )
    if text in _CUSTOM:
        return _CUSTOM[text]
    lowered = respelt(text.strip().lower())
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


def _noted(measure: measures.CustomMeasure) -> measures.CustomMeasure:
    """The measure, to be found by its name, which must not be one of ours."""
    word = re.split(r"[@(]", respelt(measure.label.lower()))[0]
    if word in MEASURES or word in ALIASES:
        raise ValueError(
            f"a metric of yours is called {measure.label!r}, as one of linrank's; rename the "
            "function, or pass CustomMeasure(function, label='...')"
        )
    _CUSTOM[measure.label] = measure
    return measure


def parse_scoring(text: Metric) -> measures.Measure:
    """Return the measure that ``text`` names, if models can be chosen by it.

    A measure that counts tied rows as right cannot: a model that ties all rows, as one without
    weights does, would be perfect.
    """
    measure = parse(text)
    if (
        isinstance(measure, (measures.DominationError, measures.DominatedError))
        and measure.ties != "error"
    ):
        raise ValueError(
            f"scoring {str(measure)!r} counts rows that are only tied as right, so that a model "
            f"which scores all rows alike would be the best; write {measure.name}(ties=error)"
        )
    return measure


def _cutoff(kind: type[measures.Measure], k: str, text: str) -> int:
    if kind.cutoff == "none":
        raise ValueError(f"metric {text!r}: {kind.name} looks at whole queries and takes no @k")
    if not k.isascii() or not k.isdigit() or int(k) < 1:
        raise ValueError(f"metric {text!r}: the cutoff must be an integer >= 1, got {k!r}")
    return int(k)


def _options(kind: type[measures.Measure], inside: str, text: str) -> dict[str, Any]:
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


def _require(kind: type[measures.Measure], option: str, text: str) -> None:
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
