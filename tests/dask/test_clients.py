"""Results of partitions in their order, and what is said of those that are lost."""

from __future__ import annotations

import os
import signal
import time
from types import SimpleNamespace

import distributed
import numpy as np
import pytest
from distributed_data import in_blocks, ranking
from processes import processes

from linrank.dask.clients import Watch, client_of, results_of
from linrank.dask.partitions import partitions_of
from linrank.errors import ClusterError


def fail(number, seconds):
    time.sleep(seconds)
    raise ValueError(f"fault {number}")


def test_the_first_of_several_failures_is_raised(client):
    """The second is there long before it."""
    futures = [client.submit(fail, k, s, pure=False) for k, s in ((0, 0.3), (1, 0.0))]
    with pytest.raises(ValueError, match="fault 0"):
        results_of(Watch(client), futures, [0, 1])


def test_results_come_in_order(client):
    futures = client.map(np.negative, [1, 2, 3])
    assert results_of(Watch(client), futures, range(3)) == [-1, -2, -3]


def test_data_put_onto_a_worker_are_lost_with_it(client):
    first = next(iter(client.scheduler_info()["workers"]))
    blocks = list(zip(*(in_blocks(v, 2) for v in ranking()), strict=True))
    futures = client.scatter(blocks, workers=[first], hash=False)
    process = client.run(os.getpid, workers=[first])[first]
    os.kill(process, signal.SIGKILL)
    while first in client.scheduler_info()["workers"]:
        time.sleep(0.05)
    with pytest.raises(ClusterError, match=r"partitions 0, 1 are lost for good.*a linrank\.Store"):
        partitions_of(futures, client=client)


def test_a_partition_that_ends_its_workers_is_named():
    killed = distributed.KilledWorker("a", SimpleNamespace(address="tcp://w"), 3)
    future = SimpleNamespace(status="error", exception=lambda: killed, release=lambda: None)
    watch = SimpleNamespace(finished=lambda futures: None, call=lambda start: start())
    with pytest.raises(ClusterError, match=r"partition 7 is lost: .* use smaller partitions"):
        results_of(watch, [future], [7])


def test_the_client_in_force_or_the_one_given(client):
    assert client_of(None) is client
    assert client_of(client) is client


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
        watch.finished([made])
        pid = client.run(os.getpid, workers=[victim])[victim]
        client.run_on_scheduler(kill_in_one_batch, victim, pid, other, made.key)
        started = time.monotonic()
        used = client.submit(np.sum, made)
        assert results_of(watch, [used], [0]) == [3]
        assert time.monotonic() - started < 20.0
