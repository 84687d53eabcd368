"""Evaluation.terms and Evaluation.joined: means as ratios of sums over queries."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from linrank.metrics import CONVENTIONS, Evaluation, evaluate
from linrank.metrics.measures import MEASURES
from small_data import small

FORMS = [name + ("@3" if kind.cutoff == "required" else "") for name, kind in MEASURES.items()]
FORMS += [
    "ndcg(empty=skip)@5",
    *(f"pairwise_accuracy(ties={ties})" for ties in ("error", "half", "skip")),
    *(f"all_pairs_error(ties={ties})" for ties in ("error", "half", "skip")),
    "pairwise_accuracy(ties=skip, over=queries)",
    *(f"domination_error(ties=error, over={over})" for over in ("rows", "queries")),
    *(f"dominated_error(ties=error, over={over})" for over in ("rows", "queries")),
]


def scored(seed: int = 0, n_queries: int = 30):
    """Labels, scores with ties, queries; every fifth query has one label only."""
    rng = np.random.default_rng(seed)
    qid = np.repeat(np.arange(n_queries), rng.integers(1, 9, n_queries))
    y = np.where(qid % 5 == 0, 0.0, rng.integers(0, 3, len(qid)))
    return y, rng.integers(0, 4, len(qid)).astype(float), qid


@pytest.mark.parametrize("name", CONVENTIONS)
@pytest.mark.parametrize("form", FORMS)
def test_the_ratio_of_the_sums_is_the_mean(form, name):
    y, scores, qid = scored()
    result = evaluate(y, scores, qid=qid, metrics=form, convention=name)
    numerator, denominator = result.terms(form)
    assert numerator.dtype == denominator.dtype == np.float64
    assert numerator.shape == denominator.shape == (30,)
    assert_allclose(numerator.sum() / denominator.sum(), result[form], rtol=1e-13)


def test_large_counts_come_back_exactly():
    """10^6 pairs a query: value·total is an integer only after rounding."""
    rng = np.random.default_rng(0)
    y, scores, qid = rng.integers(0, 2, 4000), rng.normal(size=4000), np.repeat([1, 2], 2000)
    result = evaluate(y, scores, qid=qid, metrics="pairwise_accuracy")
    numerator, denominator = result.terms("pairwise_accuracy")
    assert_array_equal(numerator, result.pairs.concordant)
    assert_array_equal(denominator, result.pairs.concordant + result.pairs.discordant)


def test_any_spelling_finds_the_terms_and_an_unknown_one_is_an_error():
    y, scores, qid = scored()
    result = evaluate(y, scores, qid=qid, metrics="ndcg@5")
    assert_array_equal(result.terms("nDCG@5")[0], result.terms("ndcg@5")[0])
    with pytest.raises(KeyError, match="'map' was not evaluated; there are ndcg@5"):
        result.terms("map")


def test_parts_joined_are_the_whole():
    y, scores, qid = scored()
    metrics = ["ndcg@5", "map", "pairwise_accuracy(ties=half)", "domination_error", "mrr"]
    whole = evaluate(y, scores, qid=qid, metrics=metrics)
    first = qid < 11
    parts = [evaluate(y[k], scores[k], qid=qid[k], metrics=metrics) for k in (first, ~first)]
    joined = Evaluation.joined(parts)
    assert_array_equal(joined.query_ids, whole.query_ids)
    assert joined.convention == whole.convention
    assert joined.n_queries == 30
    for name in metrics:
        assert_allclose(joined[name], whole[name], rtol=1e-14)
        assert_array_equal(joined.per_query[name], whole.per_query[name])
        for ours, theirs in zip(joined.terms(name), whole.terms(name), strict=True):
            assert_array_equal(ours, theirs)
    assert joined.pairs.totals() == whole.pairs.totals()
    assert joined.dominating.totals() == whole.dominating.totals()


def test_joined_ids_are_unique():
    data = small()
    part = evaluate(data.y, data.X[:, 0], qid=data.qid, metrics="map")
    ids = Evaluation.joined([part, part]).query_ids.tolist()
    assert ids == [f"{k}:{i}" for k in (1, 2) for i in part.query_ids]
    assert_array_equal(Evaluation.joined([part]).query_ids, part.query_ids)
    alone = evaluate(data.y, data.X[:, 0], metrics="map")
    assert Evaluation.joined([alone, alone]).query_ids.tolist() == ["1", "2"]


def test_a_measure_without_queries_stays_undefined():
    part = evaluate([1, 1], [2, 1], qid=[1, 2], metrics="pairwise_accuracy")
    other = evaluate([0, 0], [2, 1], qid=[3, 4], metrics="pairwise_accuracy")
    assert np.isnan(Evaluation.joined([part, other])["pairwise_accuracy"])


def test_only_parts_that_are_alike_are_joined():
    y, scores, qid = scored()
    part = evaluate(y, scores, qid=qid, metrics="map")
    with pytest.raises(ValueError, match="part 2 has the measures mrr but part 1 has map"):
        Evaluation.joined([part, evaluate(y, scores, qid=qid, metrics="mrr")])
    letor = evaluate(y, scores, qid=qid, metrics="map", convention="letor")
    with pytest.raises(ValueError, match="part 2 follows the convention 'letor' but part 1 'linr"):
        Evaluation.joined([part, letor])
    with pytest.raises(ValueError, match="no evaluations to join"):
        Evaluation.joined([])
