"""Whatever is killed, at whatever moment: files are whole, and the next run leaves nothing."""

from __future__ import annotations

import os

import pytest

from random_kills import kill_all


def n_killed(counts):
    return sum(n for (_, _, how), n in counts.items() if how != "done before")


def test_a_few_kills(tmp_path):
    names = ["predict", "convert csv", "convert store, apart"]
    counts = kill_all(str(tmp_path), 6, seed=1, names=names, n_rows=3000)
    assert n_killed(counts) == 6


@pytest.mark.slow
def test_many_kills(tmp_path):
    """As many as LINRANK_KILLS says, from the seed LINRANK_SEED."""
    n_kills = int(os.environ.get("LINRANK_KILLS", "500"))
    counts = kill_all(str(tmp_path), n_kills, int(os.environ.get("LINRANK_SEED", "0")))
    assert n_killed(counts) == n_kills
