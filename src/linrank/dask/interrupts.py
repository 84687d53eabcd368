"""Ctrl-C on a terminal goes to all processes there: workers leave it to the command.

Loaded by the workers of ``linrank train --dask local:N`` when they start (a preload of Dask).
"""

from __future__ import annotations

import signal
from typing import Any


def dask_setup(worker: Any) -> None:
    """Called by Dask in the main thread of a worker process, which the command ends by itself."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
