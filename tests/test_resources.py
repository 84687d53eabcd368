"""Threads and memory: what is asked for, what the environment says, what a container grants."""

import math
import os
import re
import threading
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from linrank import RankSVM, RankSVMCV, _core
from linrank.data.synthetic import make_ranking
from linrank.system import resources
from linrank.system.resources import parse_bytes, resolve, useful_threads


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
    [("3", "", 3), ("3", "2", 3), ("", "2", 2), ("", "4,2", 4), ("", "", 6), ("", "no", 6)],
)
def test_the_environment_limits_what_nobody_named(six_cores, own, omp, expected):
    six_cores.setenv("LINRANK_NUM_THREADS", own)
    six_cores.setenv("OMP_NUM_THREADS", omp)
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
    """Version 1 has time and period in a file each, in the folder of the controller."""
    folder.mkdir(parents=True, exist_ok=True)
    if "cpu" not in folder.parts:
        (folder / "cpu.max").write_text(f"{quota}\n")
        return
    for name, number in zip(("quota", "period"), quota.split(), strict=True):
        (folder / f"cpu.cfs_{name}_us").write_text(f"{number}\n")


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
        # Version 1.
        ("4:cpu,cpuacct:/pod\n1:name=systemd:/x", {"cpu/pod": "150000 100000"}, 1.5),
        ("4:cpu,cpuacct:/host", {"cpu": "50000 100000"}, 0.5),
        ("4:cpu:/pod\n0::/", {"cpu/pod": "-1 100000"}, None),
        ("5:cpuset:/pod\n0::/", {"cpu/pod": "100000 100000"}, None),
    ],
)
def test_quotas_of_control_groups(tmp_path, membership, groups, expected):
    for path, quota in groups.items():
        write(tmp_path / "cgroup" / path, quota)
    (tmp_path / "own").write_text(f"{membership}\n")
    assert resources.cpu_quota(str(tmp_path / "cgroup"), str(tmp_path / "own")) == expected


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


UNITS = {"": 1, "B": 1, "M": 10**6, "Gi": 2**30, "EiB": 2**60}
UNITS |= {f"{prefix}B": 1000 ** (1 + i) for i, prefix in enumerate("kMGT")}
UNITS |= {f"{prefix}iB": 1024 ** (1 + i) for i, prefix in enumerate("KMG")}


@given(
    n=st.integers(1, 10**6),
    decimals=st.integers(0, 3),
    unit=st.sampled_from(sorted(UNITS)),
    space=st.sampled_from(["", " "]),
    case=st.sampled_from([str, str.lower, str.upper]),
)
def test_a_size_is_its_number_times_its_unit(n, decimals, unit, space, case):
    """In integers: n / 10^decimals units, rounded down, 1 byte at least."""
    text = f"{n // 10**decimals}.{n % 10**decimals:0{decimals}d}" if decimals else str(n)
    assert parse_bytes(case(f" {text}{space}{unit}")) == max(1, n * UNITS[unit] // 10**decimals)


@given(size=st.one_of(st.integers(1, 2**60), st.floats(1.0, 1e18)))
def test_numbers_are_bytes(size):
    assert parse_bytes(size) == int(size)
    assert resources.allowed(size) == int(size)


@pytest.mark.parametrize(
    "size",
    ["", "GB", "0", "0.0MB", ".", "-1GB", "1 lot", "1e9", "1GBB", "1 G B", "inf", "9" * 5000],
)
def test_what_is_no_size_is_refused_with_examples(size):
    with pytest.raises(ValueError, match=r"limit must be .*'512MiB' or '1\.5GB', and > 0; got"):
        parse_bytes(size, "limit")


@pytest.mark.parametrize("size", [0, -1, float("nan"), float("inf"), True, None, b"1GB"])
def test_what_is_no_number_of_bytes_is_refused(size):
    with pytest.raises(ValueError, match="limit must be a finite number > 0, got"):
        parse_bytes(size, "limit")


def test_allowed_reads_sizes_and_names_the_option():
    assert resources.allowed("1.5GB") == 1_500_000_000
    with pytest.raises(ValueError, match=r"memory_limit must be .*, or None, and > 0; got 'half'"):
        resources.allowed("half")


@given(st.integers(1, 10**18))
def test_a_limit_too_small_names_one_that_is_not(needed):
    told = str(resources.too_small(1, "a fit", needed, "use less"))
    least = parse_bytes(re.search(r"allow (\S+), or use less", told)[1])
    assert needed <= least <= max(1.01 * needed, needed + 1)
    assert "memory_limit=1, 1 B, is too small: a fit takes" in told


def test_what_a_container_has_cached_is_free(tmp_path, monkeypatch):
    """Else a process that reads much would be told that there is no memory."""
    monkeypatch.setattr(resources, "_GROUP", str(tmp_path))
    (tmp_path / "memory.max").write_text("1000000\n")
    (tmp_path / "memory.current").write_text("990000\n")
    assert resources.available() == 10_000
    (tmp_path / "memory.stat").write_text("anon 90000\ninactive_file 700000\nactive_file 200000\n")
    assert resources.available() == 910_000
    (tmp_path / "memory.max").write_text("max\n")
    assert resources.available() != 910_000


# ---- threads that a training keeps ---------------------------------------------------------------

LARGE = make_ranking(1600, (20, 60), 46, random_state=0)  # 10 MB


def own_threads():
    return set(os.listdir("/proc/self/task"))


def test_each_thread_has_a_megabyte():
    sizes = (0, 1.9e6, 2e6, 4.5e6, 16e6, math.inf)
    assert [useful_threads(size, 16) for size in sizes] == [1, 1, 2, 4, 16, 16]
    assert useful_threads(1e9, 1) == 1


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="needs Linux")
def test_a_fit_starts_its_threads_once_and_ends_them():
    before, seen = own_threads(), []
    RankSVM(n_jobs=3, callback=lambda state: seen.append(own_threads() - before)).fit(
        LARGE.X, LARGE.y, qid=LARGE.qid
    )
    assert len(seen) > 2
    assert len(seen[-1]) == 2
    assert all(some <= seen[-1] for some in seen)
    assert own_threads() == before


@pytest.mark.filterwarnings("ignore:the best C")  # at the end of the grid
@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="needs Linux")
def test_every_fold_keeps_threads_of_its_own():
    before, seen = own_threads(), []

    def report(*args, **more):
        seen.append(own_threads() - before)

    ranker = RankSVMCV(Cs=(0.01, 0.1, 1), cv=2, n_jobs=4)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("linrank.search.tuning.FoldRun.report", report)
        ranker.fit(LARGE.X, LARGE.y, qid=LARGE.qid)
    assert max(map(len, seen)) == 4  # two threads that train, each with another one
    assert own_threads() == before


def test_the_child_of_a_fork_within_a_training_trains_as_well():
    codes = []

    def fork(state):
        if codes:
            return
        if (child := os.fork()) == 0:
            os._exit(0 if np.array_equal(fit(n_jobs=1), fit(n_jobs=2)) else 1)
        codes.append(os.waitpid(child, 0)[1])

    def fit(**options):
        return RankSVM(**options).fit(LARGE.X, LARGE.y, qid=LARGE.qid).coef_

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of a fork beside other threads
        found = fit(n_jobs=3, callback=fork)
    assert codes == [0]
    assert np.array_equal(found, fit(n_jobs=1))


def test_what_kept_threads_work_on_returns_and_raises():
    assert _core.keep_threads(lambda: _core.keep_threads(lambda: 7)) == 7
    with pytest.raises(KeyboardInterrupt):
        _core.keep_threads(lambda: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(TypeError):
        _core.keep_threads(7)


# ---- cached properties --------------------------------------------------------------------------


class Meeting:
    def __init__(self, barrier):
        self.barrier, self.n_calls = barrier, 0

    @resources.cached_property
    def place(self):
        """Comes back only while another thread computes the same property of another object."""
        self.n_calls += 1
        return self.barrier.wait(timeout=300.0)


def test_two_threads_compute_at_the_same_time():
    barrier = threading.Barrier(2)
    meetings = [Meeting(barrier) for _ in range(2)]
    places = []
    threads = [
        threading.Thread(target=lambda one=one: places.append(one.place)) for one in meetings
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(places) == [0, 1]
    assert sorted(one.place for one in meetings) == [0, 1]
    assert [one.n_calls for one in meetings] == [1, 1]
