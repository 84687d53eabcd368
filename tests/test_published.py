"""The published methods give the sums of the definition, and the optimum of the production path."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from linrank import _core, make_ranking
from linrank.choices import LOSSES
from linrank.data.queries import Queries
from linrank.pairs import Pairs
from linrank.published import COUNTINGS, Counted, ExplicitPairs, TreeHinge
from linrank.ranksvm.train import train
from linrank.system import resources as memory

# Every loss of the package that is the squared hinge.
SQUARED = {way: (lambda pairs, way=way: Counted(pairs, way)) for way in COUNTINGS}
SQUARED["explicit pairs"] = ExplicitPairs


DATA = {
    "three levels": make_ranking(30, (3, 30), 6, 3, random_state=0),
    "distinct labels": make_ranking(10, (20, 60), 6, None, random_state=1),
}


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("counting", COUNTINGS)
def test_cutting_planes_on_a_published_oracle_are_certified(counting, loss):
    """With the hinge and a red-black tree: TreeRankSVM."""
    data = DATA["three levels"]
    result = train(data, C=0.1, loss=loss, solver="bundle", counting=counting, tol=1e-6)
    plain = train(data, C=0.1, loss=loss, solver="bundle", tol=1e-6)
    assert result.converged
    assert_allclose(result.value, plain.value, rtol=2e-6)


# ---- what is refused ----------------------------------------------------------------------------


@pytest.mark.parametrize("solver", ["newton", "prsvm", "prsvm+"])
def test_counting_is_an_option_of_tron_and_bundle(solver):
    with pytest.raises(ValueError, match="counting='avl' needs solver='tron' or 'bundle', got"):
        train(DATA["three levels"], solver=solver, counting="avl")


def test_a_list_of_pairs_that_does_not_fit_is_refused_before_it_is_made(monkeypatch):
    monkeypatch.setattr(memory, "available", lambda: 10_000)
    monkeypatch.setattr(_core, "explicit_pairs", None)
    n_pairs = DATA["three levels"].queries.n_pairs
    with pytest.raises(MemoryError, match=rf"the list of {n_pairs} pairs would take .*'prsvm\+'"):
        train(DATA["three levels"], solver="prsvm")


@pytest.mark.parametrize("loss", [Counted, TreeHinge, ExplicitPairs])
def test_pairs_that_were_not_published_are_refused(loss):
    queries = Queries.of([0, 1, 2])
    with pytest.raises(ValueError, match="do not know adjacent levels; use solver='newton'"):
        loss(Pairs(queries, adjacent=True))
    with pytest.raises(ValueError, match="do not know pairs weighted by gains"):
        loss(Pairs(queries, gain=np.arange(3.0)))


def test_the_core_refuses_what_does_not_fit():
    pairs = Pairs(Queries.of([0.0, 1.0]))
    for loss in (Counted(pairs), ExplicitPairs(pairs)):
        with pytest.raises(ValueError, match="z has length 3, expected 2"):
            loss.at(np.zeros(3))
        with pytest.raises(ValueError, match="v has length 3, expected 2"):
            loss.curvature(loss.at(np.zeros(2)), np.zeros(3))


def test_a_table_that_does_not_fit_is_refused(monkeypatch):
    pairs = Pairs(Queries.of(np.arange(500)))
    Counted(pairs, "prefix-table")
    monkeypatch.setattr(memory, "available", lambda: 8 * 501**2 - 1)
    with pytest.raises(MemoryError, match=r"with 500 rows and 500 levels would take 2\.0 MB"):
        Counted(pairs, "prefix-table")
    Counted(pairs, "direct")
