"""How many threads: what is asked for, what the environment says, what a container grants."""

from __future__ import annotations

import math
import os

import numpy as np
import pytest

from linrank.system import resources
from linrank.system.resources import cpu_quota, resolve


@pytest.fixture
def six_cores(monkeypatch, tmp_path):
    """A process of six cores without variables or control groups."""
    for name in ("LINRANK_NUM_THREADS", "OMP_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(6)), raising=False)
    monkeypatch.setattr(resources, "_GROUP", str(tmp_path / "none"))
    return monkeypatch


def test_negative_numbers_count_from_all_as_in_joblib(six_cores):
    joblib = pytest.importorskip("joblib")
    assert [resolve(n) for n in (None, -1, -2, -5, -6, -60)] == [6, 6, 5, 2, 1, 1]
    n_cores = joblib.cpu_count()
    for n_jobs in (-1, -2, -3):
        assert joblib.effective_n_jobs(n_jobs) == max(1, n_cores + 1 + n_jobs)  # the same rule
    assert resolve(np.int64(5)) == 5


@pytest.mark.parametrize(
    ("n_jobs", "error", "message"),
    [
        (0, ValueError, r"n_jobs must be >= 1.*-2 for one less, got 0"),
        *((n, ValueError, f"must be at most 10,000.*got {n}") for n in (10_001, 2**31, 2**70)),
        *((n, TypeError, "n_jobs must be an integer or None") for n in (1.5, "2", True)),
    ],
)
def test_what_is_no_number_of_threads(n_jobs, error, message):
    with pytest.raises(error, match=message):
        resolve(n_jobs)


@pytest.mark.parametrize(
    ("own", "omp", "expected"),
    [("3", None, 3), ("3", "2", 3), (None, "2", 2), (None, "4,2", 4), (None, "", 6), ("", "no", 6)],
)
def test_the_environment_limits_what_nobody_named(six_cores, own, omp, expected):
    for name, value in (("LINRANK_NUM_THREADS", own), ("OMP_NUM_THREADS", omp)):
        if value is not None:
            six_cores.setenv(name, value)
    assert resolve(None) == resolve(-1) == expected
    assert resolve(-2) == max(1, expected - 1)
    assert resolve(5) == 5


@pytest.mark.parametrize("wrong", ["0", "-1", "two", "1.5", "100000"])
def test_a_wrong_number_in_the_environment_is_refused(six_cores, wrong):
    six_cores.setenv("LINRANK_NUM_THREADS", wrong)
    with pytest.raises(ValueError, match=r"LINRANK_NUM_THREADS must be an integer from 1 to"):
        resolve(None)
    assert resolve(2) == 2


def write(folder, quota):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "cpu.max").write_text(f"{quota}\n")


@pytest.mark.parametrize(
    ("membership", "groups", "expected"),
    [
        ("0::/", {"": "200000 100000"}, 2.0),
        ("0::/", {"": "max 100000"}, None),
        ("0::/", {"": "nonsense"}, None),
        ("0::/pod/one", {"pod/one": "max 100000"}, None),
        # The narrowest of the groups that it is in.
        ("0::/pod/one", {"pod": "150000 100000", "pod/one": "400000 100000"}, 1.5),
        # The path is that of the host, and only the root is mounted.
        ("0::/kubepods/pod7", {"": "50000 100000"}, 0.5),
        ("", {}, None),
    ],
)
def test_quotas_of_control_groups(tmp_path, membership, groups, expected):
    for path, quota in groups.items():
        write(tmp_path / "cgroup" / path, quota)
    (tmp_path / "own").write_text(f"{membership}\n")
    assert cpu_quota(str(tmp_path / "cgroup"), str(tmp_path / "own")) == expected


def test_a_container_gets_no_more_threads_than_its_quota(six_cores, tmp_path):
    write(tmp_path / "cgroup", "250000 100000")
    six_cores.setattr(resources, "_GROUP", str(tmp_path / "cgroup"))
    assert resolve(None) == math.ceil(2.5)
    six_cores.setenv("OMP_NUM_THREADS", "4")  # who says a number means it
    assert resolve(None) == 4


def _threads_here():
    return resolve(None)


def test_inner_limits_of_joblib_are_seen_in_its_workers(six_cores):
    joblib = pytest.importorskip("joblib")
    with joblib.parallel_config(backend="loky", n_jobs=2, inner_max_num_threads=3):
        found = joblib.Parallel()(joblib.delayed(_threads_here)() for _ in range(2))
    assert found == [3, 3]
