"""What a call leaves on the cluster: nothing, however it ends."""

from __future__ import annotations

import time

import dask
import numpy as np
import pytest
from distributed_data import as_delayed, in_blocks, ranking

import linrank.dask
from linrank.errors import NoPairsError

DATA = ranking(30, seed=3, shuffled=True)
N_PARTS = 3


def assert_forgotten(client):
    """Nothing is held by the client, though the traceback of an error may still be there."""
    until = time.monotonic() + 10.0
    while client.futures and time.monotonic() < until:
        time.sleep(0.01)  # they are released on the loop of the client
    assert not client.futures


def fit(client, *, qid=None, y=None, ranker=linrank.dask.RankSVM, **options):
    parts = as_delayed(DATA, N_PARTS)
    ids = parts.qid if qid is None else qid
    return ranker(client=client, **options).fit(parts.X, parts.y if y is None else y, qid=ids)


@pytest.mark.parametrize("on_split", ["repair", "gather"])
def test_a_fit_leaves_nothing(client, on_split):
    fit(client, on_split=on_split)
    assert_forgotten(client)


@pytest.mark.parametrize("on_split", ["repair", "gather"])
def test_an_interrupted_fit_leaves_nothing(client, on_split):
    def interrupt(state):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as kept:
        fit(client, on_split=on_split, callback=interrupt)
    assert_forgotten(client)
    assert kept.value.__traceback__ is not None


def test_a_partition_at_fault_leaves_nothing(client):
    broken = [part.astype(float) for part in in_blocks(DATA.qid, N_PARTS)]
    broken[1][0] = np.nan
    with pytest.raises(ValueError, match="partition 1: qid of row 0 is missing"):
        fit(client, qid=[dask.delayed(part) for part in broken])
    assert_forgotten(client)


def test_split_queries_that_are_refused_leave_nothing(client):
    with pytest.raises(ValueError, match="on_split='repair'"):
        fit(client, on_split="error")
    assert_forgotten(client)


def test_labels_without_pairs_leave_nothing(client):
    same = [dask.delayed(np.zeros(len(part))) for part in in_blocks(DATA.y, N_PARTS)]
    with pytest.raises(NoPairsError, match="two different labels"):
        fit(client, y=same)
    assert_forgotten(client)


def test_a_bad_parameter_leaves_nothing(client):
    with pytest.raises(ValueError, match="scale must be 'none', "):
        fit(client, scale="nope")
    assert_forgotten(client)
    with pytest.raises(ValueError, match="scale must be 'none', "):
        fit(client, scale="nope", ranker=linrank.dask.DominationRanker)
    assert_forgotten(client)


def test_an_evaluation_leaves_nothing(client):
    parts = as_delayed(DATA, N_PARTS)
    scores = [dask.delayed(block[:, 0]) for block in in_blocks(DATA.X, N_PARTS)]
    linrank.dask.evaluate(parts.y, scores, parts.qid, client=client)
    assert_forgotten(client)


def test_a_path_and_a_choice_of_C_leave_nothing(client):
    parts = as_delayed(DATA, N_PARTS)

    def interrupt(state):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        linrank.dask.ranksvm_path(
            parts.X, parts.y, parts.qid, Cs=[0.1], client=client, callback=interrupt
        )
    assert_forgotten(client)
    linrank.dask.RankSVMCV([0.1], cv=2, client=client).fit(parts.X, parts.y, qid=parts.qid)
    assert_forgotten(client)
