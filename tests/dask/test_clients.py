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
