"""What a call leaves on the cluster: nothing, however it ends."""

from __future__ import annotations

import numpy as np
import pytest
from distributed_data import as_delayed, assert_forgotten, fit, in_blocks, ranking

from linrank.dask import RankSVM, RankSVMCV, evaluate, ranksvm_path
from linrank.errors import NoPairsError

N_PARTS = 3
DATA = ranking(30, seed=3, shuffled=True)._replace(weight=np.ones(len(ranking(30, seed=3).y)))
PARTS = as_delayed(DATA, N_PARTS)
BROKEN = DATA.qid.astype(float)
BROKEN[len(in_blocks(DATA.qid, N_PARTS)[0])] = np.nan  # the first row of partition 1


def interrupt(state):
    raise KeyboardInterrupt


def fitted(client, parts=PARTS, **options):
    return fit(RankSVM(client=client, **options), parts)


def changed(**columns):
    return as_delayed(DATA._replace(**columns), N_PARTS)


ENDS = {
    "repair": (fitted, None, ""),
    "gather": (lambda c: fitted(c, on_split="gather"), None, ""),
    "choice": (lambda c: fit(RankSVMCV([0.1], cv=2, client=c), PARTS), None, ""),
    "evaluation": (lambda c: evaluate(*PARTS[1::2], PARTS.qid, client=c), None, ""),
    "Ctrl-C": (lambda c: fitted(c, callback=interrupt), KeyboardInterrupt, ""),
    "Ctrl-C in a sweep": (
        lambda c: fitted(c, on_split="gather", callback=interrupt),
        *(KeyboardInterrupt, ""),
    ),
    "Ctrl-C on a path": (
        lambda c: ranksvm_path(*PARTS[:3], Cs=[0.1], client=c, callback=interrupt),
        *(KeyboardInterrupt, ""),
    ),
    "fault": (lambda c: fitted(c, changed(qid=BROKEN)), ValueError, "partition 1: qid of row 0"),
    "split": (lambda c: fitted(c, on_split="error"), ValueError, "on_split='repair'"),
    "no pairs": (lambda c: fitted(c, changed(y=DATA.y * 0)), NoPairsError, "two different labels"),
}


@pytest.mark.parametrize("end", ENDS)
def test_nothing_is_left(client, end):
    call, error, message = ENDS[end]
    if error is None:
        call(client)
    else:
        with pytest.raises(error, match=message) as kept:
            call(client)
        assert kept.value.__traceback__ is not None  # which holds frames, and what they hold
    assert_forgotten(client)
