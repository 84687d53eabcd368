"""Methods that behave badly, for the tests of contests: they run in processes of their own."""

from __future__ import annotations

import os
import signal
import sys
import time

import numpy as np

from linrank.judging.contest.methods import Candidate, Method, Size
from linrank.judging.contest.own import linear_candidate


def method(name, needs=None):
    """The function of this module of that name, as a method."""
    return Method(name, "test", "a test", "none", f"contest_trainers:{name}", needs)


def first_feature(task):
    yield linear_candidate(np.eye(task.train.n_features)[0], {"k": 0}, seconds=0.25)


def crash(task):
    os.kill(os.getpid(), signal.SIGSEGV)
    yield


def leave(task):
    print("the disk is on fire", file=sys.stderr)
    sys.stderr.flush()
    os._exit(3)
    yield


def refuse(task):
    yield from first_feature(task)
    raise ValueError("not with\nthese labels")


def sleep(task):
    time.sleep(60)
    yield from first_feature(task)


def tire(task):
    yield from first_feature(task)
    time.sleep(60)
    yield


def mute_at_the_second(task):
    """The scores of the second candidate are saved, then its size takes too long."""
    yield linear_candidate(np.zeros(task.train.n_features), {"k": 0}, seconds=0.0)
    better = linear_candidate(np.eye(task.train.n_features)[0], {"k": 1}, seconds=0.0)
    yield Candidate({"k": 1}, better.predict, lambda: time.sleep(60), 0.0)


def nothing(task):
    yield from ()


def infinite(task):
    for value in (np.inf, 1.0):

        def predict(data, value=value):
            return np.where(np.arange(data.n_rows) == 0, value, np.arange(data.n_rows) % 3)

        yield Candidate({"value": value if value == 1.0 else "inf"}, predict, lambda: Size(1))


def only_infinite(task):
    yield Candidate({}, lambda data: np.full(data.n_rows, np.inf), lambda: Size(1), 0.0)


def flat_first(task):
    yield linear_candidate(np.zeros(task.train.n_features), {"k": -1}, seconds=0.0)
    yield from first_feature(task)


def equal(task):
    """Candidates of the same order: the first is to be taken."""
    coef = np.eye(task.train.n_features)[0]
    for k in range(3):
        yield linear_candidate(coef * (k + 1), {"k": k}, seconds=0.0)


def chatter(task):
    print("[library] training on the standard output")
    os.system("echo from a child of ours")
    yield from first_feature(task)


def last_fold_fails(task):
    """Fails where the first label of the training rows says so: on one fold of those in tests."""
    if task.train.n_rows % 2:
        raise RuntimeError("an odd number of rows")
    yield from first_feature(task)


def family(task):
    """Leaves a process behind that would outlive it."""
    os.system("sleep 61 &")
    time.sleep(60)
    yield
