"""Values of rankings from clicks on others: definitions, exact expectations, errors that hold."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import test_clicks
from hypothesis_profiles import examples
from linrank.clicks import Impressions, counterfactual_value, power_law, simulate_clicks

PROPENSITY = np.array([1.0, 0.6, 0.4, 0.2])
N_ROWS = 9
ids = np.array(["b", "a", "b", "a", "c", "b", "a", "b", "c"])  # four, three and two rows
DISCOUNTS = {
    "clicks": [1.0, 0.6, 0.4, 0.2],
    "dcg": [1 / np.log2(1 + k) for k in range(1, 5)],
    "dcg@2": [1.0, 1 / np.log2(3), 0.0, 0.0],
    "clicks@1": [1.0, 0.0, 0.0, 0.0],
    "precision@3": [1 / 3, 1 / 3, 1 / 3, 0.0],
    (0.5, 2.0): [0.5, 2.0, 0.0, 0.0],
}


# ---- the definition -----------------------------------------------------------------------------


def discounts(scores, metric):
    """λ of each row: the mean over all orders of its query that agree with the scores."""
    found = np.zeros(N_ROWS)
    for q in set(ids.tolist()):
        rows = np.flatnonzero(ids == q).tolist()
        orders = [list(order) for order in itertools.permutations(rows)]
        orders = [order for order in orders if all(np.diff([scores[i] for i in order]) <= 0)]
        for order in orders:
            found[order] += np.array(DISCOUNTS[metric])[: len(rows)] / len(orders)
    return found


def definition(lists, scores, metric, estimator, max_weight, model):
    """(value, standard error) straight from the formulas; repeated lists are written out."""
    lists = [entry for entry in lists for _ in range(entry[2])]
    worth = discounts(scores, metric)
    looks, clicks = np.zeros(N_ROWS), np.zeros(N_ROWS)
    for rows, clicked, _ in lists:
        for k, (i, c) in enumerate(zip(rows, clicked, strict=True)):
            looks[i] += PROPENSITY[k]
            clicks[i] += c
    n_lists = {q: sum(ids[rows[0]] == q for rows, *_ in lists) for q in "abc"}
    free = np.array([n_lists[ids[i]] / looks[i] if looks[i] else 0.0 for i in range(N_ROWS)])
    weight = np.minimum(free, max_weight)
    # The estimate is a sum over clicks, and a model for what it leaves out.
    kept = np.divide(weight, free, out=np.zeros(N_ROWS), where=free > 0)
    # The error is that of a mean over lists, around rates of clicks by looks, one look added.
    rate = np.array(model, dtype=float)
    is_free = (free > 0) & (free <= max_weight)
    rate[is_free] = (clicks / (looks + 1.0))[is_free]

    def sums(w):
        """The mean of what lists earn by their clicks, and what each adds around the rates."""
        earned, around = np.zeros(len(lists)), np.zeros(len(lists))
        for s, (rows, clicked, _) in enumerate(lists):
            of_query = ids == ids[rows[0]]
            i, c, look = np.array(rows), np.array(clicked), PROPENSITY[: len(rows)]
            earned[s] = w[i] @ (weight[i] * c) + (w * model * (1 - kept))[of_query].sum()
            around[s] = (w * rate)[of_query].sum() + w[i] @ (weight[i] * (c - look * rate[i]))
        return earned.mean(), around

    (value, upper), (attractive, lower) = sums(worth), sums(np.ones(N_ROWS))
    if estimator == "snips":
        value /= attractive
        upper = (upper - value * lower) / attractive
    return value, upper.std(ddof=1) / np.sqrt(len(upper)) if len(upper) > 1 else np.nan


@st.composite
def logs(draw):
    """Lists of one to four rows of one query, with clicks, shown once or several times."""
    lists = []
    for _ in range(draw(st.integers(1, 6))):
        rows = np.flatnonzero(ids == draw(st.sampled_from("abc"))).tolist()
        rows = draw(st.permutations(rows))[: draw(st.integers(1, len(rows)))]
        clicked = draw(st.lists(st.integers(0, 1), min_size=len(rows), max_size=len(rows)))
        lists.append((rows, clicked, draw(st.sampled_from([1, 1, 3]))))
    return lists


def impressions_of(lists):
    return test_clicks.impressions_of(
        [(rows, range(1, len(rows) + 1), *others) for rows, *others in lists]
    )


tied_scores = st.lists(st.integers(0, 3), min_size=N_ROWS, max_size=N_ROWS)
models = st.lists(st.sampled_from([0.0, 0.25, 1.0]), min_size=N_ROWS, max_size=N_ROWS)


@given(
    logs(),
    tied_scores,
    st.sampled_from(list(DISCOUNTS)),
    st.sampled_from(["ips", "snips"]),
    st.sampled_from([None, 2.03]),  # no weight is just that: rounding would decide what is clipped
    st.none() | models,
)
@examples(50)
def test_estimates_equal_the_definition(lists, scores, metric, estimator, max_weight, model):
    log = impressions_of(lists)
    options = {"metric": metric, "estimator": estimator, "max_weight": max_weight}
    options |= {"attractiveness": model, "qid": ids, "propensity": PROPENSITY}
    model = np.zeros(N_ROWS) if model is None else model
    found, refusal = None, ""
    try:
        found = counterfactual_value(log, scores, **options)
    except ValueError as error:
        refusal = str(error)
    if found is None:
        # The model counts for rows of the queries shown that were never shown, or are clipped.
        assert estimator == "snips"
        assert "there is no click" in refusal
        assert not log.clicked.any()
        shown = {i for rows, *_ in lists for i in rows}
        asked = {ids[i] for i in shown}
        assert not any(model[i] for i in range(N_ROWS) if ids[i] in asked and i not in shown)
        return
    bound = np.inf if max_weight is None else max_weight
    value, error = definition(lists, scores, metric, estimator, bound, model)
    assert_allclose([found.value, found.std_error], [value, error], rtol=1e-9, atol=1e-12)
    assert found.n_lists == sum(count for *_, count in lists)


# ---- expectations -------------------------------------------------------------------------------


def expectation(shown, scores, **options):
    """Σ P(clicks) · estimate of DCG@2 over all outcomes of the clicks on the lists shown."""
    options |= {"qid": ids, "propensity": PROPENSITY, "metric": "dcg@2"}
    places = [(i, PROPENSITY[k]) for rows in shown for k, i in enumerate(rows)]
    total = 0.0
    for outcome in itertools.product([0, 1], repeat=len(places)):
        looks = [p * ATTRACTIVENESS[i] for i, p in places]
        chance = np.prod(np.where(outcome, looks, np.subtract(1, looks)))
        clicks = iter(outcome)
        lists = [(rows, [next(clicks) for _ in rows], 1) for rows in shown]
        total += chance * counterfactual_value(impressions_of(lists), scores, **options).value
    return total


SHOWN = [[1, 3], [6, 1], [4, 8], [8]]  # all rows of a and c, not always
SCORES = [0.0, 3.0, 0.0, 1.0, 2.0, 0.0, 2.0, 0.0, 1.0]
ATTRACTIVENESS = np.linspace(0.1, 0.9, N_ROWS)


@pytest.fixture
def truth():
    worth = discounts(SCORES, "dcg@2") * ATTRACTIVENESS
    of_query = {q: worth[q == ids].sum() for q in "abc"}
    return np.mean([of_query[ids[rows[0]]] for rows in SHOWN])


def test_inverse_propensities_are_unbiased(truth):
    """Exactly, whatever was shown and whatever a model says, if every row was shown once."""
    for model in (None, ATTRACTIVENESS[::-1].copy()):
        assert_allclose(expectation(SHOWN, SCORES, attractiveness=model), truth, rtol=1e-12)


def test_a_bound_and_rows_never_shown_lower_the_estimate_and_a_model_fills_the_gap(truth):
    model = {"attractiveness": ATTRACTIVENESS}
    assert expectation(SHOWN, SCORES, max_weight=1.5) < truth - 0.01
    assert_allclose(expectation(SHOWN, SCORES, max_weight=1.5, **model), truth, rtol=1e-12)
    unseen = [[1, 3], [3], [4, 8], [8]]  # row 6 is second of a in the ranking judged
    log = impressions_of([(rows, [0] * len(rows), 1) for rows in unseen])
    found = counterfactual_value(log, SCORES, qid=ids, propensity=PROPENSITY, metric="dcg@2")
    lost = 2 / np.log2(3) / (4 + 4 / np.log2(3))
    assert_allclose(found.coverage, 1 - lost)
    assert expectation(unseen, SCORES) < truth - 0.01
    assert_allclose(expectation(unseen, SCORES, **model), truth, rtol=1e-12)


# ---- a larger world -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def world():
    rng = np.random.default_rng(0)
    attractiveness = rng.beta(0.6, 2.0, 400)
    old = attractiveness + 0.5 * rng.normal(size=400)
    new = attractiveness + 0.2 * rng.normal(size=400)
    return attractiveness, np.repeat(np.arange(40), 10), old, new


def clicks_on(world, scores, seed, n_lists=400, p=None):
    attractiveness, qid, *_ = world
    p = power_law(10) if p is None else p
    return simulate_clicks(
        attractiveness, qid, scores, p, n_lists=n_lists, noise=0.5, random_state=seed
    )


def true_value(world, scores, p, per_relevance):
    attractiveness, qid, *_ = world
    rank = np.array([((scores > s) & (qid == q)).sum() for s, q in zip(scores, qid, strict=True)])
    worth = np.append(p, np.zeros(10))[rank] @ attractiveness
    return worth / (attractiveness.sum() if per_relevance else 40)


@pytest.mark.parametrize(("n_lists", "n_shown"), [(60, 10), (1000, 6)])
@pytest.mark.parametrize("estimator", ["ips", "snips"])
def test_errors_are_as_large_as_told(world, estimator, n_lists, n_shown):
    """Over many logs: no bias, the errors told are those made, of a value and of a difference.

    With 60 lists few queries come twice, with 1000 each comes about 25 times, and only six of ten
    rows are shown at a time, so that the weight of a row may rest on few showings.
    """
    _, qid, old, new = world
    p = power_law(10)[:n_shown]
    options = {"qid": qid, "propensity": p, "metric": "clicks", "estimator": estimator}
    found = []
    for seed in range(100):
        log = clicks_on(world, old, seed, n_lists, p)
        a, b = (counterfactual_value(log, scores, **options) for scores in (new, old))
        found.append([(a.value, a.std_error), a.minus(b)])
    truth = [true_value(world, s, p, estimator == "snips") for s in (new, old)]
    values, errors = np.transpose(found)
    spread = values.std(axis=1)
    assert (abs(values.mean(axis=1) - [truth[0], truth[0] - truth[1]]) < 0.4 * spread).all()
    ratio = errors.mean(axis=1) / spread
    assert ((ratio > 0.75) & (ratio < 1.25)).all()  # the spread is known to 7 %


def test_a_bound_lowers_the_value_its_error_and_the_trust_in_it(world):
    _, qid, old, new = world
    log = clicks_on(world, old, 0)
    options = {"qid": qid, "propensity": power_law(10), "metric": "clicks"}
    free, bounded = (counterfactual_value(log, new, max_weight=w, **options) for w in (None, 4.0))
    assert (bounded.std_error < free.std_error, bounded.value < free.value) == (True, True)
    assert free.clipped == 0 < bounded.clipped < 1
    assert free.n_effective < bounded.n_effective < log.clicked.sum()
    low, high = free.interval()
    assert_allclose([free.value - low, high - free.value], 1.959964 * free.std_error, rtol=1e-6)
    with pytest.raises(ValueError, match="confidence must lie between 0 and 1, got 95"):
        free.interval(95)


def test_rankings_compared_on_one_log_share_its_noise(world):
    _, qid, old, new = world
    log = clicks_on(world, old, 0)
    options = {"qid": qid, "propensity": power_law(10), "metric": "clicks"}
    a, b = (counterfactual_value(log, scores, **options) for scores in (new, old))
    difference, error = a.minus(b)
    assert_allclose(difference, a.value - b.value)
    assert error < 0.8 * np.hypot(a.std_error, b.std_error)
    other = counterfactual_value(clicks_on(world, old, 0, 399), old, **options)
    with pytest.raises(ValueError, match="of 400 and 399 records of lists"):
        a.minus(other)


def test_no_click_is_worth_nothing():
    log = impressions_of([([1, 3], [0, 0], 1)])
    found = counterfactual_value(log, SCORES, qid=ids, propensity=PROPENSITY)
    assert (found.value, found.n_effective, found.clipped) == (0.0, 0.0, 0.0)
    assert np.isnan(found.std_error)
    nothing = counterfactual_value(log, SCORES, qid=ids, propensity=PROPENSITY, metric=[0.0])
    assert nothing.coverage == 1.0


@pytest.mark.parametrize(
    ("columns", "options", "message"),
    [
        ({"session": None}, {}, "needs to know the lists; pass session"),
        ({"row": None}, {}, "counterfactual_value needs the row of each impression"),
        ({"row": [1, 99]}, {}, "row 99 was shown, but there are 9 scores"),
        ({"row": [1, 0]}, {}, "list 's' shows row 0, which is of another query"),
        ({}, {"propensity": [1.0]}, "position 2 occurs, but propensity has 1"),
        ({}, {"metric": "ndcg@10"}, "metric must be 'clicks', .* got 'ndcg@10'"),
        ({}, {"metric": "precision"}, "got 'precision'"),
        ({}, {"metric": [1.0, -1.0]}, "discount of rank 2 is -1; it must be finite and >= 0"),
        ({}, {"estimator": "best"}, "estimator must be 'ips' or 'snips', got 'best'"),
        ({}, {"attractiveness": [2.0] * 9}, "attractiveness of row 0 is 2"),
        ({}, {"max_weight": 0.5}, "max_weight must be >= 1, .* got 0.5"),
        ({}, {"scores": [0.0, np.nan] * 4 + [1.0]}, "score of row 1 is nan"),
    ],
)
def test_what_an_estimate_needs(columns, options, message):
    log = Impressions.of([1, 2], [0, 1], **{"row": [1, 3], "session": ["s", "s"], **columns})
    arguments = {"scores": SCORES, "qid": ids, "propensity": PROPENSITY, **options}
    with pytest.raises(ValueError, match=message):
        counterfactual_value(log, arguments.pop("scores"), **arguments)
