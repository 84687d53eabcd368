"""A scheduler and workers as processes of their own, to be killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import distributed

import linrank

# They run in another folder, and have to find linrank where the tests found it.
ENVIRONMENT = {
    "DASK_DISTRIBUTED__LOGGING__DISTRIBUTED": "critical",
    "DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "60s",
    "PYTHONPATH": str(Path(linrank.__file__).resolve().parents[1]),
}
ORPHANED = "300"  # seconds after which they end by themselves, where the tests were killed


class Processes:
    """A scheduler, and as many workers as are asked for.

    A worker that is killed is started again where it has a nanny.
    """

    def __init__(self, folder: Path, nanny: bool = False) -> None:
        self.folder = folder
        self.nanny = "--nanny" if nanny else "--no-nanny"
        self.file = folder / "scheduler.json"
        self.workers: list[subprocess.Popen[bytes]] = []
        self.scheduler = self._start(
            *("dask_scheduler", "--port", "0", "--host", "127.0.0.1", "--idle-timeout", ORPHANED)
        )
        while not self.file.exists():
            assert self.scheduler.poll() is None, "the scheduler has ended"
            time.sleep(0.02)

    def _start(self, program: str, *options: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", f"distributed.cli.{program}", *options]
        command += ["--scheduler-file", str(self.file), "--no-dashboard"]
        silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        return subprocess.Popen(command, cwd=self.folder, env=os.environ | ENVIRONMENT, **silent)

    def add_worker(self) -> None:
        options = ("--nthreads", "1", "--death-timeout", ORPHANED)
        self.workers.append(self._start("dask_worker", self.nanny, *options))

    def end(self) -> None:
        for process in [*self.workers, self.scheduler]:
            with suppress(ProcessLookupError):
                process.send_signal(signal.SIGCONT)
            process.kill()
            process.wait()


@contextmanager
def processes(folder: Path, n_workers: int, nanny: bool = False) -> Iterator[tuple[Processes, Any]]:
    """The processes and a client of them; all are ended, however the test ends."""
    running = Processes(folder, nanny)
    client = None
    try:
        for _ in range(n_workers):
            running.add_worker()
        client = distributed.Client(scheduler_file=str(running.file), timeout="60s")
        if n_workers:
            client.wait_for_workers(n_workers, timeout=120)
        yield running, client
    finally:
        running.end()
        if client is not None:
            client.close(timeout=1)


def pids(client: Any) -> list[int]:
    """The processes of the workers; one that was just killed may pass for running a while."""
    while True:
        with suppress(OSError):
            return list(client.run(os.getpid).values())
        time.sleep(0.05)
