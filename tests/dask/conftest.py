"""Clusters for the tests of linrank.dask, one of them to be killed, and a limit on their time.

The folder is no package on purpose: with an ``__init__.py`` it would hide dask from the tests.
"""

from __future__ import annotations

import logging
import signal
from collections.abc import Iterator
from typing import Any

import pytest

distributed = pytest.importorskip("distributed", reason="pip install dask distributed")

N_WORKERS = 2
SECONDS = 300  # of a test without a mark of its own; what the slowest needs on a very busy machine


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "time_limit(seconds): fail the test that takes longer")


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Two worker processes with one thread each; a worker that dies is started again."""
    import dask

    settings = {
        "distributed.scheduler.work-stealing": True,
        "distributed.worker.daemon": True,  # they end with the tests, however these end
        "distributed.comm.timeouts.connect": "60s",
    }
    with (
        dask.config.set(settings),
        distributed.LocalCluster(
            n_workers=N_WORKERS,
            threads_per_worker=1,
            processes=True,
            dashboard_address=":0",  # any free port, without a warning
            silence_logs=logging.CRITICAL,
            memory_limit=None,
            local_directory=str(tmp_path_factory.mktemp("workers")),
        ) as running,
    ):
        yield running


@pytest.fixture
def client(cluster: Any) -> Iterator[Any]:
    """A client of the shared cluster with all its workers there; what it holds goes at the end."""
    with distributed.Client(cluster) as connected:
        connected.wait_for_workers(N_WORKERS, timeout=120)
        yield connected


@pytest.fixture(scope="session")
def mortals(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A client of two workers that are started again when they are killed, apart from `cluster`."""
    from processes import processes

    with processes(tmp_path_factory.mktemp("mortals"), n_workers=2, nanny=True) as (_, connected):
        yield connected


@pytest.fixture
def mortal(mortals: Any) -> Any:
    """The same, with both workers there."""
    mortals.wait_for_workers(2, timeout=120)
    return mortals


@pytest.fixture(autouse=True)
def time_limit(request: pytest.FixtureRequest) -> Iterator[None]:
    """Raise TimeoutError in a test that waits for ever: no fault of a cluster may hang a suite."""
    mark = request.node.get_closest_marker("time_limit")
    seconds = SECONDS if mark is None else mark.args[0]

    def expired(signum: int, frame: Any) -> None:
        raise TimeoutError(f"{request.node.nodeid} took longer than {seconds} s")

    before = signal.signal(signal.SIGALRM, expired)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
