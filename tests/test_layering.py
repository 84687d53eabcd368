"""Layers, margins and weights of the domination loss, made of labels."""

import re

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from hypothesis_profiles import examples
from linrank import Dataset, NoPairsError
from linrank.domination.layering import Layering, describe_margin
from linrank.domination.problem import DominationLoss
from plain_domination import PlainDomination
from strategies import scored_queries

LABELS = [0, 2, 1, 5, 3, 3]
QID = ["a", "a", "b", "b", "a", "b"]  # a: rows 0, 1, 4; b: rows 2, 3, 5


def dataset(labels=LABELS, qid=QID, weight=None):
    X = np.zeros((len(labels), 1))
    return Dataset.of(X, labels, qid=qid, sample_weight=weight)


def by_row(layering):
    """The margins s in input order."""
    return layering.queries.scatter(layering.shift).tolist()


# ---- the loss that they stand for ---------------------------------------------------------------


def value_of(layering, scores):
    return DominationLoss(layering, 1).at(layering.queries.gather(scores)).value


def has_pair(layer, qid):
    return any(len(set(layer[qid == q].tolist())) > 1 for q in set(qid.tolist()))


LAYERS = {
    "labels": ("labels", lambda y: y),
    "binary": ("binary", lambda y: (y > 0).astype(float)),
    "function": (lambda y: np.minimum(y, 1.0), lambda y: np.minimum(y, 1.0)),
}


@pytest.mark.parametrize("name", LAYERS)
@examples(40)
@given(case=scored_queries(max_rows=12), k=st.integers(-3, 3))
def test_layers_and_margins_are_those_of_the_definition(name, case, k):
    """Every form of margin against the sum over pairs that its docstring states."""
    layers, layer_of = LAYERS[name]
    layer = layer_of(case.labels)
    assume(has_pair(layer, case.qid))
    data = Dataset.of(np.zeros((len(layer), 1)), case.labels, qid=case.qid)
    rank, lowest = np.zeros(len(layer)), np.zeros(len(layer), dtype=bool)
    for i in range(len(layer)):
        own = sorted(set(layer[case.qid == case.qid[i]].tolist()))
        rank[i], lowest[i] = own.index(layer[i]), layer[i] == own[0]
    distinct = sorted(set(layer.tolist()))
    table = np.random.default_rng(0).normal(size=(len(distinct), len(distinct)))
    grade = [distinct.index(value) for value in layer]
    shifts = {
        k: k * rank,
        ("linear", k, 0.5): np.where(lowest, 0.0, k * case.labels + 0.5),
        np.sin: np.sin(case.labels),
    }
    if (case.labels[~lowest] > 0).all():
        logs = k * np.log(np.maximum(case.labels, 1e-3)) + 2.7
        shifts[("log", k, 2.7)] = np.where(lowest, 0.0, logs)
    deltas = [(margin, lambda i, j, s=s: s[i] - s[j]) for margin, s in shifts.items()]
    deltas.append((np.arange(len(layer)), lambda i, j: i - j))
    deltas.append((table, lambda i, j: table[grade[i], grade[j]]))
    for margin, delta in deltas:
        found = value_of(Layering.of(data, layers=layers, margin=margin), case.scores)
        # The loss of the scores themselves: features are the identity, weights the scores.
        plain = PlainDomination(np.eye(len(layer)), layer, case.qid, delta)
        assert_allclose(found, plain.loss(case.scores)[0], atol=1e-9)


@given(case=scored_queries(max_rows=12), seed=st.integers(0, 100), pooled=st.booleans())
def test_weights_and_pooling_are_those_of_the_definition(case, seed, pooled):
    rng = np.random.default_rng(seed)
    weight = rng.integers(0, 3, len(case.labels)).astype(float)
    assume(weight.any())
    queries = case.queries
    c = rng.uniform(0.5, 2, queries.n_queries)
    by_id = dict(zip(queries.ids.tolist(), c, strict=True))
    data = Dataset.of(np.zeros((len(weight), 1)), case.labels, qid=case.qid, sample_weight=weight)
    qid = np.zeros(len(weight)) if pooled else case.qid
    kept = weight > 0
    assume(has_pair(case.labels[kept], qid[kept]))
    layering = Layering.of(data, pooled=pooled, query_weight=None if pooled else c)
    plain = PlainDomination(
        np.eye(len(weight)), case.labels, qid, None, weight, None if pooled else by_id
    )
    assert_allclose(value_of(layering, case.scores), plain.loss(case.scores)[0], atol=1e-9)


@pytest.mark.parametrize("margin", [1.5, ("linear", 2.0, 1.0), [[0, 0, 0], [1, 0, 0], [4, 2, 0]]])
@pytest.mark.parametrize("absent", [0.0, 1.0, 2.0])
def test_weight_zero_equals_no_row_under_margins(margin, absent):
    """A layer of weightless rows must not count as one: neither as the lowest, nor in between."""
    rng = np.random.default_rng(0)
    labels, z = np.array([0.0, 1, 2, 0, 1, 2, 1]), rng.normal(size=7)
    qid = np.array([0, 0, 0, 1, 1, 1, 1])
    kept = (labels != absent) | (qid == 1)
    whole = Dataset.of(np.zeros((7, 1)), labels, qid=qid, sample_weight=kept.astype(float))
    part = whole.select(kept)
    assert_allclose(
        value_of(Layering.of(whole, margin=margin), z),
        value_of(Layering.of(part, margin=margin), z[kept]),
    )


# ---- layers -------------------------------------------------------------------------------------


def test_a_function_cannot_change_the_labels():
    data = dataset()
    spoil = lambda y: y.__imul__(0.0) + np.arange(len(y))  # noqa: E731
    Layering.of(data, layers=spoil, margin=spoil)
    assert data.labels.tolist() == LABELS


# ---- margins ------------------------------------------------------------------------------------


@pytest.mark.parametrize("margin", [None, 0, np.zeros(6), lambda y: 0 * y])
def test_no_margin_is_none(margin):
    assert Layering.of(dataset(), margin=margin).shift is None


def test_a_table_is_over_the_layers_of_all_queries():
    """Entries on and above the diagonal are nobody's margin, finite or not."""
    table = np.full((5, 5), np.nan)
    table[np.tril_indices(5, -1)] = np.arange(10)
    layering = Layering.of(dataset(), margin=table)
    assert layering.grades.tolist() == [0, 2, 3, 1, 3, 4]  # labels 0, 2, 3 and 1, 3, 5
    assert layering.shift is None
    assert_array_equal(layering.table, np.tril(np.nan_to_num(table), -1))


def test_margins_in_a_word():
    words = {None: None, 2.0: "2", "log": "log", ("linear", 200): "linear:200,0"}
    words |= {("log", 1, 2.7): "log:1,2.7", np.log: "function"}
    assert {margin: describe_margin(margin) for margin in words} == words
    assert describe_margin(np.zeros(6)) == "rows"
    assert describe_margin([[0, 0], [1, 0]]) == "table"


# ---- errors -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("margin", "message"),
    [
        ("exp", "or a square table over the layers, got 'exp'"),
        (("log", "1"), r"k1 of margin \('log', '1'\) must be a finite number, got '1'"),
        (np.nan, "margin must be finite, got nan"),
        (True, "got True"),
        ([[1, 2], [3]], "margin must be None, a number, 'log' or 'linear'"),
        (np.zeros(5), r"one number for each of 6 rows, got an array of shape \(5,\)"),
        ([0, 1, 2, np.nan, 4, 5], "margin is nan at row 3, .* label 5; margins must be finite"),
        (lambda y: y[1:], r"margin\(labels\) must be one number .* shape \(5,\)"),
        (np.zeros((2, 5)), r"shape \(2, 5\), but the data have 5 layers \(0, 1, 2, 3, 5\)"),
        (np.full((5, 5), np.nan), r"margin\[1, 0\], of layer 1 over layer 0, is nan"),
        (("linear", 1e308, 0), "of the labels is not finite"),
    ],
)
def test_a_wrong_margin_is_told(margin, message):
    with pytest.raises(ValueError, match=message):
        Layering.of(dataset(), margin=margin)


def test_the_logarithm_does_not_look_at_the_lowest_layer():
    data = dataset([-3, 0, 1, 2], [0, 1, 0, 1])
    assert_allclose(by_row(Layering.of(data, margin="log")), [0, 0, 0, np.log(2)])


NEGATIVE = dataset([-3, -1, 0, 1, 2, 3], ["a", "b", "a", "b", "a", "b"])
HUGE = [1e308, np.full(6, 1e308), np.full((5, 5), -1e300)]


@pytest.mark.parametrize(
    ("data", "options", "message"),
    [
        (dataset([1, 1, 2], [0, 0, 1]), {}, "none of the 2 queries has two different labels"),
        (dataset([1, 1, 1], None), {}, "all 3 rows have the same label"),
        (dataset([1, 2, 3], None), {"layers": "binary"}, "all 3 rows are in the same layer.*> 0"),
        (dataset([1, 2, 1], [0, 0, 1]), {"layers": "binary"}, "none of the 2 queries has two"),
        (dataset(), {"layers": np.zeros_like}, r"two layers by layers\(labels\); check"),
        (dataset(weight=[0, 1, 0, 1, 0, 0]), {}, "have weight zero"),
        (dataset(), {"query_weight": np.zeros(2)}, "have weight zero"),
        (dataset(), {"query_weight": np.ones(3)}, r"shape \(3,\), but there are 2 queries"),
        (dataset(), {"query_weight": np.ones(2), "pooled": True}, "no meaning .*use sample_weight"),
        (NEGATIVE, {"margin": "log"}, "row 2, above the lowest .*, has label 0; use 'linear'"),
        *((dataset(), {"margin": each}, "in size, and sums of margins would") for each in HUGE),
        (dataset(), {"layers": "grades"}, "layers must be 'labels', 'binary' or .* got 'grades'"),
        (dataset(), {"layers": np.arange(6.0)}, "layers must be .* or a function .* got array"),
        (dataset(), {"layers": lambda y: y[:3]}, r"must be one number for each of 6.*\(3,\)"),
        (dataset(), {"layers": lambda y: ["x"] * len(y)}, r"layers\(labels\) .*dtype <U1"),
        (dataset(), {"layers": lambda y: np.where(y == 5, np.nan, y)}, "nan at row 3, .*label 5"),
    ],
)
def test_layers_that_cannot_be_made_are_told(data, options, message):
    is_empty = "queries has two|same la|two layers|weight zero"
    error = NoPairsError if re.search(is_empty, message) else ValueError
    with pytest.raises(error, match=message):
        Layering.of(data, **options)
