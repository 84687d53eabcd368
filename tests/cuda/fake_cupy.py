"""CuPy as far as linrank uses it, over NumPy: kernels run on the processor, by emulator.hpp.

Its arrays do not mix with those of NumPy, as on a device, and new memory holds no numbers.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import re
import subprocess
import tempfile
import types
from pathlib import Path
from typing import Any

import numpy as np

_EMULATOR = Path(__file__).resolve().with_name("emulator.hpp")
_COMPILER = ("g++", "-std=c++20", "-O1", "-g", "-shared", "-fPIC", "-U_FORTIFY_SOURCE", "-w")

n_launches: dict[str, int] = {}


class ndarray(np.ndarray):
    """An array of the device."""

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **how: Any) -> Any:
        out = how.pop("out", ())
        for one in (*inputs, *out):
            if isinstance(one, np.ndarray) and not isinstance(one, ndarray) and one.ndim:
                raise TypeError(f"Unsupported type {type(one)} in {ufunc.__name__}")
        if out:
            how["out"] = tuple(map(_plain, out))
        found = getattr(ufunc, method)(*map(_plain, inputs), **how)
        return out[0] if out else _here(found)

    def get(self) -> np.ndarray:
        return np.array(_plain(self))

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, 0

    @property
    def device(self) -> Any:
        return types.SimpleNamespace(id=0)

    @property
    def data(self) -> Any:
        return types.SimpleNamespace(ptr=_plain(self).ctypes.data)


def _plain(one: Any) -> Any:
    return one.view(np.ndarray) if isinstance(one, ndarray) else one


def _here(found: Any) -> Any:
    return found.view(ndarray) if isinstance(found, np.ndarray) else found


def asarray(values: Any, dtype: Any = None) -> Any:
    return (
        values.astype(dtype or values.dtype, copy=False)
        if isinstance(values, ndarray)
        else _here(np.array(values, dtype))
    )


def ascontiguousarray(values: Any) -> Any:
    return _here(np.ascontiguousarray(_plain(values)))


def empty(shape: Any, dtype: Any = np.float64) -> Any:
    dtype = np.dtype(dtype)
    return full(shape, np.nan if dtype.kind == "f" else np.iinfo(dtype).min // 2, dtype)


def full(shape: Any, value: Any, dtype: Any) -> Any:
    return _here(np.full(shape, value, dtype))


def zeros(shape: Any, dtype: Any = np.float64) -> Any:
    return full(shape, 0, dtype)


def isfinite(values: Any) -> Any:
    return np.isfinite(values)


def argmin(values: Any) -> Any:
    return np.argmin(_plain(values))


def argsort(values: Any, kind: Any = None) -> Any:
    return _here(np.argsort(_plain(values), kind=kind))


def arange(*ends: Any) -> Any:
    return _here(np.arange(*ends))


def cumsum(values: Any) -> Any:
    return _here(np.cumsum(_plain(values)))


def concatenate(parts: Any) -> Any:
    return _here(np.concatenate([_plain(part) for part in parts]))


def searchsorted(values: Any, wanted: Any, side: str = "left") -> Any:
    return _here(np.searchsorted(_plain(values), _plain(wanted), side))


def repeat(values: Any, n: Any) -> Any:
    return _here(np.repeat(_plain(values), _plain(n)))


def where(condition: Any, a: Any, b: Any) -> Any:
    return _here(np.where(*map(_plain, (condition, a, b))))


def triu(values: Any, k: int = 0) -> Any:
    return _here(np.triu(_plain(values), k))


def tril(values: Any) -> Any:
    return _here(np.tril(_plain(values)))


def _gemv(transa: str, alpha: float, a: Any, x: Any, beta: float, y: Any) -> None:
    for one in (a, x, y):
        assert isinstance(one, ndarray)
    y[...] = alpha * ((a.T if transa == "T" else a) @ x) + (beta * y if beta else 0.0)


def _by_numpy(name: str) -> Any:
    """A function of linear algebra, which takes arrays of the device alone."""

    def function(*given: Any) -> Any:
        for one in given:
            assert isinstance(one, ndarray), f"{name} takes arrays of the device"
        return _here(getattr(np.linalg, name)(*map(_plain, given)))

    return function


linalg = types.SimpleNamespace(**{name: _by_numpy(name) for name in ("cholesky", "inv", "solve")})
cublas = types.SimpleNamespace(gemv=_gemv)
cupyx = types.ModuleType("cupyx")
cupyx.errstate = lambda linalg: contextlib.nullcontext()  # NumPy always raises


class _Pool:
    def free_bytes(self) -> int:
        return 0


def get_default_memory_pool() -> Any:
    return _Pool()


class Kernel:
    """A kernel, started with the arguments that it is given."""

    max_dynamic_shared_size_bytes = 48 << 10

    def __init__(self, library: Any, name: str) -> None:
        self._launch, self._shape = library[f"launch_{name}"], library["set_shape"]
        self._name = name

    def __call__(self, grid: Any, block: Any, arguments: Any, shared_mem: int = 0) -> None:
        assert shared_mem <= self.max_dynamic_shared_size_bytes, (self._name, shared_mem)
        assert shared_mem <= 227 << 10
        n_launches[self._name] = n_launches.get(self._name, 0) + 1
        values = [self._value(one) for one in arguments]
        pointers = (ctypes.c_void_p * len(values))(*(ctypes.addressof(one) for one in values))
        self._shape(grid[0], grid[1] if len(grid) > 1 else 1, block[0])
        self._launch(pointers)

    @staticmethod
    def _value(one: Any) -> Any:
        if isinstance(one, ndarray):
            assert one.flags.c_contiguous or one.strides[-1] == one.itemsize
            return ctypes.c_void_p(one.data.ptr)
        if isinstance(one, float):
            return ctypes.c_double(one)
        assert isinstance(one, (int, np.integer)), (
            f"kernels take arrays, int and float, got {one!r}"
        )
        return ctypes.c_longlong(one)


class RawModule:
    """A file of kernels, compiled for the processor."""

    def __init__(self, code: str, options: Any = ()) -> None:
        self._library = ctypes.CDLL(str(_compiled(code)))

    def get_function(self, name: str) -> Kernel:
        return Kernel(self._library, name)


def _compiled(code: str) -> Path:
    """The library of a file, kept for further processes."""
    text = _EMULATOR.read_text() + "\n" + code
    key = hashlib.sha256((text + " ".join(_COMPILER)).encode()).hexdigest()[:24]
    folder = Path(tempfile.gettempdir()) / f"linrank-emulator-{key}"
    library = folder / "kernels.so"
    if library.exists():
        return library
    folder.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as build:
        source, built = Path(build) / "kernels.cpp", Path(build) / "kernels.so"
        source.write_text(text)
        read = subprocess.run(
            ["g++", "-std=c++20", "-E", "-P", source], capture_output=True, text=True, check=True
        )
        names = re.findall(r'extern "C"\s+void (\w+)\s*\(', read.stdout)
        launchers = "".join(
            f'extern "C" void launch_{name}(void **given) {{ emulator::launch({name}, given); }}\n'
            for name in names
        )
        shape = (
            'extern "C" void set_shape(unsigned x, unsigned y, unsigned threads) '
            "{ gridDim = {x, y, 1}; blockDim = {threads, 1, 1}; }\n"
        )
        source.write_text(text + launchers + shape)
        subprocess.run([*_COMPILER, source, "-o", built], check=True)
        built.replace(library)
    return library


class _Device:
    """The one device that there is."""

    def __init__(self, index: int) -> None:
        self.id = index
        self.attributes = {"MultiProcessorCount": 3, "MaxSharedMemoryPerBlockOptin": 227 << 10}

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: Any) -> None:
        pass

    def synchronize(self) -> None:
        pass


class _RuntimeError(RuntimeError):
    pass


class _Stream:
    """One of many whose work is done at once."""

    def __init__(self, non_blocking: bool = False) -> None:
        self.ptr = 0

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: Any) -> None:
        pass

    def synchronize(self) -> None:
        pass

    def record(self) -> None:
        pass

    def wait_event(self, event: None) -> None:
        pass


def _alloc_pinned_memory(n_bytes: int) -> Any:
    kind = ctypes.c_ubyte * n_bytes
    return type("Pinned", (kind,), {"ptr": property(ctypes.addressof)})()


def _memcpy_async(to: int, source: int, n_bytes: int, kind: int, stream: int) -> None:
    ctypes.memmove(to, source, n_bytes)


cuda = types.SimpleNamespace(
    Device=_Device,
    Stream=_Stream,
    get_current_stream=_Stream,
    alloc_pinned_memory=_alloc_pinned_memory,
    runtime=types.SimpleNamespace(
        getDeviceCount=lambda: 1,
        memcpyAsync=_memcpy_async,
        memGetInfo=lambda: (8 << 30, 16 << 30),
        CUDARuntimeError=_RuntimeError,
    ),
)
