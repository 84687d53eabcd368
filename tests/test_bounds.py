"""Bounds as users give them: arrays, pairs, names, text; and what is refused."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from linrank.cli.main import main
from linrank.data.bounds import Box, parse_bounds, weight_bounds
from linrank.data.dataset import Dataset
from linrank.data.synthetic import make_ranking
from linrank.models.linear import load_model
from papers import RankSVM

INF = np.inf
NAMES = ("bm25", "age", "length")


def data(names=None, index_base=None) -> Dataset:
    X = np.arange(12.0).reshape(4, 3) % 5
    made = Dataset.of(X, [0, 1, 0, 2], feature_names=names)
    return made if index_base is None else Dataset(made.rows, made.labels, index_base=index_base)


@pytest.mark.parametrize(
    ("positive", "given", "lower", "upper"),
    [
        (True, None, [0, 0, 0], [INF, INF, INF]),
        (False, (0, 1), [0, 0, 0], [1, 1, 1]),
        (False, (None, 1), [-INF, -INF, -INF], [1, 1, 1]),
        (False, ([-1, 0, 1], None), [-1, 0, 1], [INF, INF, INF]),
        (False, [(0, None), (None, 2), (1, 1)], [0, -INF, 1], [INF, 2, 1]),
        (False, np.array([[0, 1], [2, 3], [4, 5]]), [0, 2, 4], [1, 3, 5]),
        (False, {"age": (None, 0)}, [-INF, -INF, -INF], [INF, 0, INF]),
        (False, {2: (0, 4), "bm25": (-INF, 3)}, [-INF, -INF, 0], [3, INF, 4]),
        (True, {"age": (-2, 5), np.int64(0): (1, None)}, [1, 0, 0], [INF, 5, INF]),
    ],
)
def test_the_forms_of_bounds(positive, given, lower, upper):
    got = weight_bounds(positive, given, data(NAMES))
    assert_array_equal(got[0], lower)
    assert_array_equal(got[1], upper)
    assert got[0].dtype == got[1].dtype == np.float64


@pytest.mark.parametrize(
    ("positive", "given", "message"),
    [
        (False, (2, 1), "no coefficient of feature 'bm25' is between its lower bound 2 and .* 1"),
        (False, {"age": (1, 0)}, "feature 'age'"),
        (True, {"length": (None, -1)}, "positive=True, but the upper bound of feature 'length' is"),
        (False, {"age": (float("nan"), 0)}, "bounds of feature 'age' are nan and 0; use None"),
        (False, {"age": (INF, None)}, "no coefficient of feature 'age'"),
        (False, {"bm52": (0, 1)}, "'bm52', which is no feature; did you mean 'bm25'?"),
        (False, {"zzz": (0, 1)}, "'zzz', which is no feature$"),
        (False, {3: (0, 1)}, "column 3; those of X are 0 to 2"),
        (False, {"age": 3}, r"coef_bounds\['age'\] must be a pair \(low, high\), got 3"),
        (False, {"age": (0, 1), 1: (0, 1)}, "feature 'age' twice"),
        (False, {"age": ("low", 1)}, "must be numbers or None, got 'low'"),
        (False, [(0, 1), (0, 1)], r"each of 3 features, got shape \(2, 2\)"),
        (False, [0, 1], r"got shape \(2,\); bounds for all features are a tuple"),
        (False, ([0, 1], None), r"lower bounds have shape \(2,\); .* each of 3 features"),
        ("yes", None, "positive must be True or False, got 'yes'"),
    ],
)
def test_bad_bounds_are_told(positive, given, message):
    with pytest.raises(ValueError, match=message):
        weight_bounds(positive, given, data(NAMES))


@pytest.mark.parametrize(
    ("bounds", "base", "message"),
    [
        ({"age": (0, 1)}, None, r"'age', but the features have no names; use column"),
        ({2: (1, 0)}, None, "of column 2 is"),
        ({2: (1, 0)}, 1, "of feature 3 is"),
    ],
)
def test_features_without_names_are_told_as_the_user_counts_them(bounds, base, message):
    assert weight_bounds(False, None, data()) is None
    with pytest.raises(ValueError, match=message):
        weight_bounds(False, bounds, data(index_base=base))


@given(st.integers(0, 2**32 - 1))
def test_scaled_weights_within_their_bounds_are_coefficients_within_theirs(seed):
    """To the last bit, unless lower equals upper."""
    rng = np.random.default_rng(seed)
    lower = rng.normal(size=3) * 10.0 ** rng.integers(-5, 5)
    upper = lower + rng.random(3) + 1e-9
    d = rng.random(3) * 10.0 ** rng.integers(-8, 8, 3) + 1e-12
    low, high = weight_bounds(False, (lower, upper), data(), d)
    assert (lower <= d * low).all()
    assert (d * high <= upper).all()
    assert_allclose(d * low, lower, rtol=1e-15)


def test_a_feature_that_scaling_removes_must_be_allowed_to_be_0():
    d = np.array([1.0, 0.0, 2.0])
    low, high = weight_bounds(True, None, data(), d)
    assert_array_equal(low, [0, -INF, 0])
    assert_array_equal(high, [INF, INF, INF])
    with pytest.raises(ValueError, match=r"feature 'age' is constant, .* 0, which is not between"):
        weight_bounds(False, {"age": (1, 2)}, data(NAMES), d)


def test_the_room_in_a_box():
    box = Box(np.array([0.0, -INF, 1.0]), np.array([1.0, 2.0, 1.0]))
    w = np.array([0.5, 0.0, 1.0])
    assert box.room(w, np.array([0.25, 0.5, 0.0])) == 2.0
    t, hit = box.first_hit(w, np.array([-1.0, 4.0, 0.0]))
    assert t == 0.5
    assert_array_equal(hit, [True, True, False])
    assert_array_equal(box.is_free(w, np.ones(3)), [True, True, False])


# ---- the estimator ------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", ["none", "standard", "minmax", "query"])
def test_bounds_hold_for_the_coefficients_of_the_raw_features(scale):
    made = make_ranking(30, (4, 10), 6, random_state=1)
    low, high = np.full(6, -0.01), np.array([0.02, 0.03, INF, 0.0, 1.0, 0.5])
    ranker, free = (
        RankSVM(scale=scale, **given).fit(made) for given in ({"coef_bounds": (low, high)}, {})
    )
    assert ((low <= ranker.coef_) & (ranker.coef_ <= high)).all()
    assert ranker.objective_ > free.objective_
    assert ranker.converged_
    assert ranker.kkt_residual_ == ranker.history_["kkt_residual"][-1]
    assert ranker.model_.training["bounded"] is True
    with pytest.raises(ValueError, match=r"solver='tron' cannot keep bounds; use solver='newton'"):
        RankSVM(solver="tron", positive=True, scale=scale).fit(made)


# ---- the command line ---------------------------------------------------------------------------


def test_text_becomes_bounds():
    text = "1:0:, bm25:-1:2.5 # a comment, not an entry\n a:b::3 \n\n*:-1e3:"
    assert parse_bounds(text) == {
        "1": (0.0, INF),
        "bm25": (-1.0, 2.5),
        "a:b": (-INF, 3.0),
        "*": (-1000.0, INF),
    }


@pytest.mark.parametrize("text", ["1", "1:2", "1:x:2", "1:0:1 2"])
def test_text_that_is_no_bound_is_told(text):
    with pytest.raises(ValueError, match="is not FEATURE:LOW:HIGH, such as"):
        parse_bounds(text)
    with pytest.raises(ValueError, match="'1' has bounds twice"):
        parse_bounds("1:0:,1::2")


def test_the_command_keeps_bounds(files, tmp_path, capsys):
    model, listed = str(tmp_path / "m.json"), tmp_path / "bounds.txt"
    listed.write_text("2::0  # must not help\n*:-0.01:0.01\n")
    command = ["train", files["train"], model, "--json", "-q", "--scale", "standard"]
    assert main([*command, "--bounds", f"@{listed}"]) == 0
    report = json.loads(capsys.readouterr().out)["training"]
    coef = load_model(model).coef
    assert coef[1] <= 0
    assert (np.abs(np.delete(coef, 1)) <= 0.01).all()
    assert report["kkt_residual"] < report["gradient_norm"]
    assert main([*command, "--positive", "--bounds", "1::0.5"]) == 0
    coef = load_model(model).coef
    assert (coef >= 0).all()
    assert coef[0] <= 0.5


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["--bounds", "7:0:"], 1, "feature 7 is not in the data, whose features are 1 to 6"),
        (["--bounds", "0:0:"], 1, "feature 0 is not in the data"),
        (["--bounds", "x:0:"], 1, "feature x is not in the data"),
        (["--bounds", "2:1:0"], 1, "no coefficient of feature 2 is between"),
        (["--bounds", "@missing"], 1, "missing"),
        (["--bounds", "2"], 2, "is not FEATURE:LOW:HIGH"),
        (["--positive", "--solver", "tron"], 2, "--positive needs --solver newton, not tron"),
    ],
)
def test_the_command_refuses(files, tmp_path, capsys, options, code, message):
    assert main(["train", files["train"], str(tmp_path / "m.json"), *options]) == code
    assert message in capsys.readouterr().err
