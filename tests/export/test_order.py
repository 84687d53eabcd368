"""Every artefact orders 10^5 random rows as the model does; rounding.py has the bound."""

from __future__ import annotations

import warnings
from functools import cache

import numpy as np
import pytest
from exported_models import KINDS, Kind, model_of, rows_of, scores_of, terms_of
from rounding import bounds, first_inversion, resolved, underflow
from serving import FILLS_ZERO, PRECISION, SCORERS, columns_of

from linrank.errors import ExportWarning


def exported(model, target, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExportWarning)
        return model.export(target, **options)


@cache
def bound_of(kind: Kind, precision: str) -> np.ndarray:
    bound = bounds(terms_of(kind), precision)
    assert resolved(scores_of(kind), bound) > 0.6
    return bound


def check_order(kind: Kind, target: str, precision: str, shifts=None, **options) -> None:
    model, rows = model_of(kind), rows_of(kind)
    computed = SCORERS[target](exported(model, target, **options), columns_of(model, rows))
    computed = computed.astype(np.float64)
    assert np.isfinite(computed).all()
    scores = scores_of(kind)
    bound = (
        bound_of(kind, precision) if shifts is None else bounds(terms_of(kind), precision, shifts)
    )
    bound = bound + underflow(scores, computed, kind.n_features, precision)
    inversion = first_inversion(scores, bound, computed)
    if inversion is not None:
        i, k = inversion
        pytest.fail(
            f"row {i} ({scores[i]}±{bound[i]}) ranks above row {k} ({scores[k]}±{bound[k]}), "
            f"but {target} gives them {computed[i]} and {computed[k]}"
        )


CASES = [
    pytest.param(kind, target, id=f"{kind}-{target}")
    for kind in KINDS
    for target in SCORERS
    if not (target in FILLS_ZERO and kind.missing in ("mean", "indicator"))
    # What OpenSearch reads is what Elasticsearch reads: a few kinds show it.
    if target != "opensearch" or kind in KINDS[::6]
]


@pytest.mark.parametrize(("kind", "target"), CASES)
def test_the_artefact_orders_rows_as_the_model_does(kind, target):
    check_order(kind, target, PRECISION[target])


def test_the_scores_of_the_definition_are_those_of_the_model():
    for kind in KINDS:
        rows, terms = rows_of(kind), terms_of(kind)
        difference = np.abs(model_of(kind).predict(rows) - scores_of(kind))
        assert (difference <= bounds(terms, "float64")).all()


def test_the_check_notices_a_weight_that_is_off_by_a_thousandth():
    kind = Kind()
    terms, scores = terms_of(kind), scores_of(kind)
    bound = bounds(terms, "float32")
    assert first_inversion(scores, bound, scores.astype(np.float32)) is None
    for j in np.flatnonzero(model_of(kind).coef):
        assert first_inversion(scores, bound, scores + 1e-3 * terms[:, j]) is not None


def test_the_check_notices_ties_and_finds_the_pair():
    scores, bound = np.array([0.0, 1.0, 2.0, 3.0]), np.full(4, 0.1)
    assert first_inversion(scores, bound, scores * 5 - 2) is None
    assert first_inversion(scores, bound, np.array([0.0, 1.0, 1.0, 3.0])) == (2, 1)
    assert first_inversion(scores, bound, np.array([0.0, 2.0, 1.0, 3.0])) == (2, 1)
    assert first_inversion(scores, np.full(4, 0.6), np.array([0.0, 2.0, 1.0, 3.0])) is None
