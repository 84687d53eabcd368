"""What makes files survive a loss of power."""

from __future__ import annotations

import os

__all__ = ["sync_folder"]


def sync_folder(folder: str) -> None:
    """Make new names in a folder survive a loss of power, where the system can."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:  # no folder can be opened on some systems
        return
    try:
        os.fsync(descriptor)
    except OSError:
        pass
    finally:
        os.close(descriptor)
