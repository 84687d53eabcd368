"""A cluster for the tests of linrank.dask, and a limit on their time.

The folder is no package on purpose: with an ``__init__.py`` it would hide dask from the tests.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from typing import Any

import pytest

distributed = pytest.importorskip("distributed", reason="pip install dask distributed")

N_WORKERS = 2
SECONDS = 300  # of a test without a mark of its own; what the slowest needs on a very busy machine


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "time_limit(seconds): fail the test that takes longer")


@pytest.fixture(scope="session")
def session_client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A client of two workers with one thread each, which are started again when they die."""
    from processes import processes

    folder = tmp_path_factory.mktemp("workers")
    with processes(folder, N_WORKERS, nanny=True) as (_, connected):
        yield connected


@pytest.fixture
def cluster(session_client: Any) -> str:
    """The address of the same, with all its workers there.

    A worker that a test has killed counts until the scheduler misses it, so all are asked.
    """
    until = time.monotonic() + 120.0
    while time.monotonic() < until:
        session_client.wait_for_workers(N_WORKERS, timeout=120)
        if len(session_client.run(os.getpid, on_error="ignore")) == N_WORKERS:
            return session_client.scheduler.address
        time.sleep(0.05)
    raise TimeoutError(f"{N_WORKERS} workers do not answer")


@pytest.fixture
def client(cluster: str) -> Iterator[Any]:
    """A client of a single test: what it holds goes at the end."""
    with distributed.Client(cluster) as connected:
        yield connected


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
