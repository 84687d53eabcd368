"""DaskChunks: the sums of one place, in rounds that outlive their workers, and no wait for ever."""

from __future__ import annotations

import os
import signal
import threading
import time
from types import SimpleNamespace

import distributed
import numpy as np
import pytest
from distributed_data import assert_forgotten
from hypothesis import given
from hypothesis import strategies as st
from processes import pids, processes

from linrank.dask import clients as clients_module
from linrank.dask import rounds as rounds_module
from linrank.dask.clients import Watch, results_of
from linrank.dask.rounds import DaskChunks
from linrank.errors import ClusterError
from linrank.parts.parts import joined, pieces, tree_sum


# Functions inside functions travel by value: the workers cannot import the tests.
def tasks():
    import os
    import time

    def make(i):
        return np.random.default_rng(i).normal(size=50) * 10.0 ** (i % 7)

    def scaled(chunk, w, n_threads=1):
        return chunk * w

    def slowly(chunk, w, n_threads=1):
        time.sleep(0.2)
        return chunk * w

    def own(chunk, factor, w, n_threads=1):
        return factor * float(w[0])

    def where(chunk, n_threads=1):
        return os.getpid()

    return make, scaled, slowly, own, where


make, scaled, slowly, own, where = tasks()
W = np.linspace(0.1, 1.0, 50)


def gathered(client, n_chunks, **options):
    watch = Watch(client, **options)
    return DaskChunks(watch, client.map(make, range(n_chunks), pure=False))


def repeat(chunks, n_rounds):
    for _ in range(n_rounds):
        chunks.total(slowly, W)


def expected(n_chunks, w=W):
    return tree_sum(make(i) * w for i in range(n_chunks))


@pytest.mark.parametrize("n_chunks", [1, 2, 7, 17])
def test_a_sum_has_the_bits_of_one_place_and_each_its_order(client, n_chunks):
    chunks = gathered(client, n_chunks)
    for _ in range(3):  # the first adds on the cluster, the others here
        assert np.array_equal(chunks.total(scaled, W), expected(n_chunks))
    assert (chunks.n_rounds, chunks.n_repeated) == (3, 0)
    numbers = [(i,) if i % 3 else None for i in range(n_chunks)]
    found = [i * W[0] if i % 3 else None for i in range(n_chunks)]
    assert chunks.each(own, W, per_chunk=numbers) == found
    assert chunks.each(own, W, per_chunk=[None] * n_chunks) == [None] * n_chunks
    with pytest.raises(ValueError, match=f"99 arguments for {n_chunks} chunks"):
        chunks.each(own, W, per_chunk=[(1,)] * 99)
    assert n_chunks < 4 or set(chunks.each(where)) == set(pids(client))  # where they are
    chunks.release()
    assert_forgotten(client)


def test_large_vectors_and_large_results_have_the_same_bits(client, monkeypatch):
    """A vector is sent once, and again when it changes: solvers write into theirs."""
    monkeypatch.setattr(rounds_module, "_INLINE", 100)  # it does not travel with the tasks
    monkeypatch.setattr(rounds_module, "_AT_CLIENT", 1000)  # added on the cluster, always
    chunks = gathered(client, 20)
    scatter, sent, w = chunks._scatter, [], np.array(W)
    monkeypatch.setattr(chunks, "_scatter", lambda *args: sent.append(1) or scatter(*args))
    for n_sent, factor in enumerate((1.0, 2.0, -1.0), start=1):
        w *= factor
        for _ in range(2):
            assert np.array_equal(chunks.total(scaled, w), expected(20, w))
        assert len(sent) == n_sent
    numbers = [(np.full(50, float(i)),) if i % 3 else None for i in range(20)]
    found = chunks.each(own, W, per_chunk=numbers)
    assert [f is None for f in found] == [i % 3 == 0 for i in range(20)]
    assert all(np.array_equal(found[i], np.full(50, i * W[0])) for i in range(20) if i % 3)
    chunks.release()


def test_an_error_of_a_task_is_raised_as_it_is(client):
    def wrong(chunk, n_threads=1):
        raise ZeroDivisionError("of a task")

    with pytest.raises(ZeroDivisionError, match="of a task"):
        gathered(client, 3).total(wrong)


# Rounds before, so that both kinds are interrupted.
@pytest.mark.parametrize("n_first", [pytest.param(0, marks=pytest.mark.slow), 1])
def test_a_round_that_loses_a_worker_is_repeated_to_the_same_bits(client, n_first):
    chunks = gathered(client, 8)
    for _ in range(n_first):
        chunks.total(slowly, W)
    chunks.total(scaled, W)
    victim = pids(client)[0]
    killer = threading.Timer(0.3, os.kill, (victim, signal.SIGKILL))
    killer.start()
    assert np.array_equal(chunks.total(slowly, W), expected(8))
    killer.join()
    assert np.array_equal(chunks.total(slowly, W), expected(8))
    assert chunks.n_repeated >= 1


def test_a_task_that_kills_its_workers_is_an_error(client, monkeypatch):
    monkeypatch.setattr(rounds_module, "_ATTEMPTS", 2)

    def deadly(chunk, first, n_threads=1):
        return os._exit(1) if chunk[0] == first else chunk

    chunks = gathered(client, 2)
    with pytest.raises(ClusterError, match=r"lost workers 2 times|fit their memory"):
        chunks.total(deadly, make(0)[0])
    chunks.release()


def test_scattered_data_that_die_with_their_worker_are_named(client):
    workers = list(client.scheduler_info()["workers"])
    data = [client.scatter(make(i), workers=[workers[i % 2]], hash=False) for i in range(4)]
    chunks = DaskChunks(Watch(client), data, numbers=[10, 11, 12, 13])
    assert np.array_equal(chunks.total(slowly, W), expected(4))
    victim = client.run(os.getpid, workers=[workers[1]])[workers[1]]
    os.kill(victim, signal.SIGKILL)
    # Dask may have copied one of the two to the other worker meanwhile.
    lost = r"partitions? (11|13|11, 13) (is|are) lost for good.*linrank\.Store"
    with pytest.raises(ClusterError, match=lost):
        repeat(chunks, 3)


def test_ctrl_c_ends_a_round_and_releases_it(client):
    chunks = gathered(client, 4)
    chunks.total(scaled, W)
    main = threading.main_thread().ident
    timer = threading.Timer(0.3, signal.pthread_kill, (main, signal.SIGINT))
    timer.start()
    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        repeat(chunks, 20)
    timer.join()
    assert time.monotonic() - started < 15.0
    assert chunks._open == []
    assert np.array_equal(chunks.total(scaled, W), expected(4))  # the cluster is as good as before


def test_what_makes_no_sense_is_refused(client):
    for patience in (0, -1.0, True, "60", None):
        with pytest.raises(ValueError, match="patience must be a number of seconds > 0"):
            Watch(client, patience)
    with pytest.raises(ValueError, match="at least one chunk"):
        DaskChunks(Watch(client), [])


# ---- workers that join ---------------------------------------------------------------------------


def test_workers_that_join_get_their_share_of_the_chunks(tmp_path, monkeypatch):
    monkeypatch.setattr(clients_module, "_LOOK", 0.0)
    with processes(tmp_path, n_workers=1) as (running, client):
        chunks, alone = gathered(client, 9), gathered(client, 9)
        shared = DaskChunks(chunks.watch, chunks.chunks, is_shared=True)
        for one in (chunks, alone):
            assert np.array_equal(one.total(scaled, W), expected(9))
            assert len(set(one.each(where))) == 1
        running.add_worker()
        client.wait_for_workers(2, timeout=120)
        given = set(chunks.chunks)
        for one in (shared, chunks, alone):
            assert np.array_equal(one.total(scaled, W), expected(9))
            found = one.each(where)
            assert sorted(map(found.count, set(found))) == [4, 5]
        assert len(given - set(shared.chunks)) == 4
        shared.release()
        assert {chunk.status for chunk in chunks.chunks} == {"finished"}
        running.workers[1].kill()  # what has moved is made again where it was
        for one in (chunks, alone):
            assert np.array_equal(one.total(scaled, W), expected(9))
            one.release()


# ---- clusters that end ---------------------------------------------------------------------------


def test_workers_are_waited_for_as_long_as_patience_says(tmp_path):
    with processes(tmp_path, n_workers=0) as (running, client):
        chunks = gathered(client, 2, patience=1.5)
        started = time.monotonic()
        with pytest.raises(ClusterError, match=r"had no worker for patience=1\.5 s; start workers"):
            chunks.total(scaled, W)
        assert 1.0 < time.monotonic() - started < 30.0
        chunks = gathered(client, 3, patience=30.0)
        running.add_worker()
        assert np.array_equal(chunks.total(slowly, W), expected(3))
        running.workers[0].kill()
        running.add_worker()
        assert np.array_equal(chunks.total(slowly, W), expected(3))


@pytest.mark.parametrize(
    ("number", "message", "patience", "seconds"),
    [
        (signal.SIGKILL, r"the connection to the Dask scheduler .* is lost", 60.0, 15.0),
        (signal.SIGSTOP, "has not answered for 5 s", 5.0, 30.0),
    ],
)
def test_a_scheduler_that_dies_or_is_silent_is_an_error(
    tmp_path, number, message, patience, seconds
):
    with processes(tmp_path, n_workers=1) as (running, client):
        chunks = gathered(client, 3, patience=patience)
        chunks.total(scaled, W)
        timer = threading.Timer(0.3, running.scheduler.send_signal, [number])
        timer.start()
        started = time.monotonic()
        with pytest.raises(ClusterError, match=message):
            repeat(chunks, 100)
        assert time.monotonic() - started < seconds
        if number == signal.SIGKILL:  # again, where nothing has begun
            with pytest.raises(ClusterError, match=message):
                chunks.total(scaled, W)
        chunks.release()


def test_an_argument_for_a_worker_that_is_gone_repeats_the_round(client):
    chunks = gathered(client, 3)
    large = np.ones(10_000)  # it does not travel with the task
    factors = [(k * large,) for k in range(3)]
    chunks._placement = {"tcp://127.0.0.1:9": [0, 1, 2]}  # as of a worker that was just killed
    found = chunks.each(own, W, per_chunk=factors)
    for k, value in enumerate(found):
        assert np.array_equal(value, factors[k][0] * W[0])
    assert chunks.n_repeated == 1
    chunks.release()


# ---- results of partitions ---------------------------------------------------------------------


def test_the_first_of_several_failures_is_raised(client):
    """The second is there long before it."""

    def fail(number, seconds):
        time.sleep(seconds)
        raise ValueError(f"fault {number}")

    futures = [client.submit(fail, k, s, pure=False) for k, s in ((0, 0.3), (1, 0.0))]
    with pytest.raises(ValueError, match="fault 0"):
        results_of(Watch(client), futures, [0, 1])


def test_a_partition_that_ends_its_workers_is_named():
    killed = distributed.KilledWorker("a", SimpleNamespace(address="tcp://w"), 3)
    future = SimpleNamespace(status="error", exception=lambda: killed, release=lambda: None)
    watch = SimpleNamespace(wait=lambda futures: None, call=lambda start: start())
    with pytest.raises(ClusterError, match=r"partition 7 is lost: .* use smaller partitions"):
        results_of(watch, [future], [7])


def test_a_fetch_from_a_worker_that_just_died_is_given_up(tmp_path):
    """Dask tries to connect for 30 s."""

    async def kill_in_one_batch(victim, pid, other, key, dask_scheduler=None):
        """Order a fetch from a dead worker and tell of its death in the same message."""
        import os
        import time

        os.kill(pid, 9)
        time.sleep(0.2)  # the loop must not turn: it would notice
        fetch = {"op": "acquire-replicas", "who_has": {key: [victim]}, "nbytes": {key: 8}}
        dask_scheduler.stream_comms[other].send({**fetch, "stimulus_id": "test"})
        await dask_scheduler.remove_worker(victim, stimulus_id="test")

    with processes(tmp_path, n_workers=2) as (_, client):
        victim, other = client.scheduler_info()["workers"]
        place = {"workers": [victim], "allow_other_workers": True}
        made = client.submit(np.arange, 3, **place)
        watch = Watch(client)
        watch.wait([made])
        pid = client.run(os.getpid, workers=[victim])[victim]
        client.run_on_scheduler(kill_in_one_batch, victim, pid, other, made.key)
        started = time.monotonic()
        used = client.submit(np.sum, made)
        assert results_of(watch, [used], [0]) == [3]
        assert time.monotonic() - started < 20.0


class Sum:
    """A part that remembers how it was added."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __add__(self, other: Sum) -> Sum:
        return Sum(f"({self.text}+{other.text})")


@given(st.lists(st.integers(0, 4), min_size=1, max_size=70))
def test_pieces_of_any_owners_join_to_the_tree_of_one_place(owners):
    parts = [Sum(str(i)) for i in range(len(owners))]
    held = {k: [i for i, owner in enumerate(owners) if owner == k] for k in set(owners)}
    found = [piece for own in held.values() for piece in pieces((i, parts[i]) for i in own)]
    assert joined(found).text == tree_sum(parts).text


@given(st.integers(1, 200))
def test_one_owner_sends_no_more_pieces_than_a_number_has_ones(n_parts):
    found = pieces(enumerate([1.0] * n_parts))
    assert len(found) == bin(n_parts).count("1")
    assert joined(found) == n_parts


@pytest.mark.parametrize("found", [[(0, 1, 1.0), (2, 1, 1.0)], [(1, 1, 1.0)], [(0, 2, 1.0)] * 2])
def test_a_part_that_is_missing_or_doubled_is_an_error(found):
    with pytest.raises(ValueError, match=r"part . is missing or doubled"):
        joined(found)


def test_a_sum_over_nothing_is_an_error():
    with pytest.raises(ValueError, match="at least one"):
        joined([])
