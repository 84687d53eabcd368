"""A device for the tests: a real one where CuPy finds it, else kernels run on the processor."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import pytest


def _has_device() -> bool:
    try:
        import cupy

        return bool(cupy.cuda.runtime.getDeviceCount() > 0)
    except Exception:  # no CuPy, no driver, or one that does not answer
        return False


@pytest.fixture(scope="session", autouse=True)
def cupy() -> Iterator[Any]:
    """CuPy, or what stands for it."""
    known = sys.modules.get("cupy")
    if not _has_device():
        import fake_cupy

        sys.modules["cupy"], sys.modules["cupyx"] = fake_cupy, fake_cupy.cupyx
    yield sys.modules["cupy"]
    if known is not None:
        sys.modules["cupy"] = known
    elif sys.modules.pop("cupy").__name__ != "cupy":
        sys.modules.pop("cupyx")


@pytest.fixture(scope="session")
def device(cupy: Any) -> Any:
    """The first one."""
    from linrank.system.device import device_of

    return device_of("cuda")


@pytest.fixture
def is_real(cupy: Any) -> bool:
    """Whether there is a device."""
    return cupy.__name__ == "cupy"
