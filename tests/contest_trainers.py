"""Methods that behave badly, for the tests of contests: they run in processes of their own."""

from __future__ import annotations

import json
import os
import signal
import sys
import time

import numpy as np

from linrank import LinearModel
from linrank.judging.candidates import Contestant, Model, Size

GRIDS = {
    "tire": {"k": (0, 1)},
    "refuse": {"k": (0, 1)},
    "mute_at_the_second": {"k": (0, 1)},
    "nothing": {"k": ()},
    "infinite": {"value": ("inf", 1.0)},
    "flat_first": {"k": (-1, 0)},
    "equal": {"k": (0, 1, 2)},
    "witness": {"k": (1, 2)},
}


def method(name, needs=None):
    """The function of this module of that name, as a method."""
    grid = GRIDS.get(name, {})
    return Contestant(name, "test", "a test", f"contest_trainers:{name}", grid, needs)


def first_feature(trial, k=0):
    coef = np.eye(trial.train.n_features)[0] * (k + 1)
    return LinearModel(coef)


def slow_first_feature(trial):
    """Takes a quarter of a second of the processor."""
    end = time.process_time() + 0.25
    while time.process_time() < end:
        pass
    return first_feature(trial)


def crash(trial):
    os.kill(os.getpid(), signal.SIGSEGV)


def leave(trial):
    print("the disk is on fire", file=sys.stderr)
    sys.stderr.flush()
    os._exit(3)


def refuse(trial, k):
    if k:
        raise ValueError("not with\nthese labels")
    return first_feature(trial)


def sleep(trial):
    time.sleep(60)
    return first_feature(trial)


def tire(trial, k):
    time.sleep(60 * k)
    return first_feature(trial)


def mute_at_the_second(trial, k):
    """The scores of the second candidate are saved, then its size takes too long."""
    if k == 0:
        return LinearModel(np.zeros(trial.train.n_features))
    return Model(Model.of(first_feature(trial)).predict, lambda: time.sleep(60))


def nothing(trial, k):
    return first_feature(trial)


def infinite(trial, value):
    def predict(data):
        first = float(value)
        return np.where(np.arange(data.n_rows) == 0, first, np.arange(data.n_rows) % 3)

    return Model(predict, lambda: Size(1))


def only_infinite(trial):
    return Model(lambda data: np.full(data.n_rows, np.inf), lambda: Size(1))


def flat_first(trial, k):
    return first_feature(trial, k)  # of -1, all scores are 0


def equal(trial, k):
    """Candidates of the same order: the first is to be taken."""
    return first_feature(trial, k)


def witness(trial, k, path):
    """Writes down what it was trained on, and whether it was shown a validation part."""
    with open(path, "a", encoding="utf-8") as file:
        json.dump([k, trial.valid is not None, trial.train.X[:, 0].tolist()], file)
        file.write("\n")
    return first_feature(trial)


class Sum:
    """Predicts, and has no more in common with the models of any library."""

    def predict(self, X):
        return np.asarray(X.sum(axis=1)).ravel()


def plain(trial):
    return Sum()


def chatter(trial):
    print("[library] training on the standard output")
    os.system("echo from a child of ours")
    return first_feature(trial)


def last_fold_fails(trial):
    """Fails where the first label of the training rows says so: on one fold of those in tests."""
    if trial.train.n_rows % 2:
        raise RuntimeError("an odd number of rows")
    return first_feature(trial)


def family(trial):
    """Leaves a process behind that would outlive it."""
    os.system("sleep 61 &")
    time.sleep(60)
