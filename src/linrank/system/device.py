"""CUDA devices: chosen by name, with the kernels compiled for them and what fits their memory."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from linrank.errors import DeviceError
from linrank.system.resources import describe_bytes, parse_bytes

if TYPE_CHECKING:
    from numpy.typing import NDArray

DeviceArray = Any  # cupy.ndarray
T = TypeVar("T")

_NAME = re.compile(r"cuda(?::([0-9]{1,3}))?")
_INSTALL = "pip install cupy-cuda13x, or the CuPy of another CUDA release"
# Of the kernels: as installed, and in a clone.
_FOLDERS = (Path(__file__).parents[1] / "_cuda", Path(__file__).parents[3] / "core" / "cuda")
_OPTIONS = ("-std=c++17",)
_LARGE = 64 << 20  # bytes of an array that goes up in pieces
_PIECE = 4 << 20
_UPLOADERS = 8  # threads
_TO_DEVICE = 1  # cudaMemcpyHostToDevice
_SHARED = 48 << 10  # bytes of shared memory that a kernel may take without asking


def check_device(name: Any) -> None:
    """Raise ValueError unless ``name`` is that of a device; it need not be there."""
    if not isinstance(name, str) or not (name == "cpu" or _NAME.fullmatch(name)):
        raise ValueError(f"device must be 'cpu', 'cuda' or 'cuda:1' and so on, got {name!r}")


def device_of(name: str) -> Device:
    """The device of this name, which is not "cpu": one object for each, whatever it is called.

    Raises
    ------
    DeviceError
        Where CuPy, a driver or the device itself is missing; nothing falls back to the processor.
    """
    check_device(name)
    match = _NAME.fullmatch(name)
    index = int(match[1] or 0) if match else 0
    try:
        import cupy
    except ImportError as error:
        raise DeviceError(
            f"device={name!r} needs CuPy, which cannot be imported: {error}; {_INSTALL}"
        ) from None
    try:
        n_devices = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        raise DeviceError(
            f"device={name!r}: no CUDA device answers ({error}); check the driver with nvidia-smi, "
            "or pass device='cpu'"
        ) from None
    if index >= n_devices:
        raise DeviceError(f"device={name!r}: there are {n_devices} CUDA devices, counted from 0")
    return _device(cupy, index)


@cache
def _device(xp: Any, index: int) -> Device:
    return Device(xp, index)


_CUDA, _CUDA_MANAGED = 2, 13  # kinds of devices by DLPack


def is_on_device(values: Any) -> bool:
    """Whether an array of another library lies on a CUDA device."""
    if type(values).__module__.startswith("cupyx.scipy.sparse"):
        return True
    kind = getattr(values, "__dlpack_device__", None)
    if kind is not None:
        return int(kind()[0]) in (_CUDA, _CUDA_MANAGED)
    return hasattr(values, "__cuda_array_interface__")


def as_device_array(values: Any) -> tuple[Device, DeviceArray]:
    """An array that lies on a device as one of CuPy, which shares its memory; and the device."""
    xp = device_of("cuda").xp
    if not isinstance(values, xp.ndarray):
        has_interface = hasattr(values, "__cuda_array_interface__")
        values = xp.asarray(values) if has_interface else xp.from_dlpack(values)
    return device_of(f"cuda:{values.device.id}"), values


def to_host(values: Any) -> NDArray[Any]:
    """A copy on the host of an array that lies on a device."""
    device, array = as_device_array(values)
    return device.get(array)


class Host:
    """The processor, as far as what is written for both needs the methods of a `Device`."""

    xp = np
    current = staticmethod(nullcontext)

    def put(self, values: NDArray[Any]) -> NDArray[Any]:
        return values

    def get(self, array: NDArray[Any]) -> NDArray[Any]:
        return array

    def product(
        self, matrix: NDArray[Any], v: NDArray[Any], *, turned: bool = False
    ) -> NDArray[Any]:
        return v @ matrix if turned else matrix @ v


HOST = Host()


class Device:
    """One device. Its methods make arrays there and start kernels, which run in order.

    Attributes
    ----------
    xp : module
        CuPy.
    n_blocks : int
        Blocks that keep it busy.
    shared_bytes : int
        Shared memory that a block may take.
    """

    def __init__(self, xp: Any, index: int) -> None:
        self.xp = xp
        self._device = xp.cuda.Device(index)
        attributes = self._device.attributes
        self.n_blocks = 4 * int(attributes["MultiProcessorCount"])
        self.shared_bytes = int(attributes["MaxSharedMemoryPerBlockOptin"])
        self._modules: dict[str, Any] = {}
        self._kernels: dict[str, Any] = {}
        self._shared: dict[str, int] = {}
        self._streams: list[Any] = []

    def __repr__(self) -> str:
        return f"cuda:{self._device.id}"

    @contextmanager
    def current(self) -> Iterator[None]:
        """What is done inside is done there."""
        with self._device:
            yield

    # ---- arrays ----------------------------------------------------------------------------------

    def put(self, values: Any, dtype: Any = None) -> DeviceArray:
        """An array of the host, or of the device, as one of the device in C order."""
        with self._device:
            if isinstance(values, np.ndarray) and values.nbytes >= _LARGE and dtype is None:
                return self._put_in_pieces(np.ascontiguousarray(values))
            return self.xp.ascontiguousarray(self.xp.asarray(values, dtype=dtype))

    def _put_in_pieces(self, values: NDArray[Any]) -> DeviceArray:
        """The same of a large one: threads fill pinned memory, from which copies are faster."""
        from concurrent.futures import ThreadPoolExecutor  # loads logging, and few have a device

        out = self.xp.empty(values.shape, values.dtype)
        source, n_bytes = values.reshape(-1).view(np.uint8), values.nbytes
        runtime = self.xp.cuda.runtime

        def upload(first: int) -> None:
            with self._device:
                pinned = [self.xp.cuda.alloc_pinned_memory(_PIECE) for _ in range(2)]
                streams = [self.xp.cuda.Stream(non_blocking=True) for _ in pinned]
                for turn, begin in enumerate(range(first, n_bytes, _PIECE * _UPLOADERS)):
                    memory, stream = pinned[turn % 2], streams[turn % 2]
                    stream.synchronize()  # its last piece has gone
                    size = min(_PIECE, n_bytes - begin)
                    np.frombuffer(memory, np.uint8, size)[:] = source[begin : begin + size]
                    runtime.memcpyAsync(
                        out.data.ptr + begin, memory.ptr, size, _TO_DEVICE, stream.ptr
                    )
                for stream in streams:
                    stream.synchronize()

        with ThreadPoolExecutor(_UPLOADERS) as pool:
            list(pool.map(upload, range(0, _PIECE * _UPLOADERS, _PIECE)))
        return out

    def once(self, owner: Any, make: Callable[[], T]) -> T:
        """What ``make`` gives, made once for an owner, which keeps it and does not change."""
        known = owner.__dict__.setdefault("_on_devices", {})
        if self not in known:
            known[self] = make()
        found: T = known[self]
        return found

    def empty(self, shape: Any, dtype: Any = np.float64) -> DeviceArray:
        with self._device:
            return self.xp.empty(shape, dtype)

    def zeros(self, shape: Any, dtype: Any = np.float64) -> DeviceArray:
        with self._device:
            return self.xp.zeros(shape, dtype)

    def get(self, array: DeviceArray) -> NDArray[Any]:
        """A copy on the host; waits for what computes it."""
        with self._device:
            return np.asarray(array.get())

    def product(self, matrix: DeviceArray, v: DeviceArray, *, turned: bool = False) -> DeviceArray:
        """``A v``, or ``A'v``, reading A once."""
        with self._device:
            from cupy import cublas  # whose `@` may take it for a product of matrices

            out = self.xp.empty(matrix.shape[turned])
            if matrix.size == 0:
                out.fill(0.0)
            else:
                cublas.gemv("T" if turned else "N", 1.0, matrix, v, 0.0, out)
            return out

    def beside(self, items: Iterable[T]) -> Iterator[T]:
        """Items; what is started for one may run beside what is started for the others.

        They read what was computed before; arrays that they write must be there before.
        """
        items = list(items)
        if len(items) < 2:
            yield from items
            return
        with self._device:
            main = self.xp.cuda.get_current_stream()
            begin, streams = main.record(), self._streams
            for k, item in enumerate(items):
                if k == len(streams):
                    streams.append(self.xp.cuda.Stream(non_blocking=True))
                streams[k].wait_event(begin)
                with streams[k]:
                    yield item
                main.wait_event(streams[k].record())

    def wait(self) -> None:
        """Let all that was started end: between long kernels, so that Ctrl-C gets through."""
        self._device.synchronize()

    @property
    def free_bytes(self) -> int:
        """Memory that there is room for arrays in."""
        with self._device:
            free = int(self.xp.cuda.runtime.memGetInfo()[0])
            return free + int(self.xp.get_default_memory_pool().free_bytes())

    def limit(self, memory_limit: int | float | str | None) -> int:
        """The bytes of a ``memory_limit`` here; libraries take a share of what is free as well."""
        most = self.free_bytes * 9 // 10
        return (
            most if memory_limit is None else min(most, parse_bytes(memory_limit, "memory_limit"))
        )

    def check_fits(self, n_bytes: int, what: str) -> None:
        """Raise MemoryError where the memory of the device has no such room."""
        free = self.free_bytes
        if n_bytes > free:
            raise MemoryError(
                f"{what} would take {describe_bytes(n_bytes)} on {self!r}, which has "
                f"{describe_bytes(free)} free; use fewer rows, float32, a larger device, or "
                "device='cpu'"
            )

    def is_finite(self, array: DeviceArray) -> bool:
        """Whether no value is NaN or infinite."""
        with self._device:
            return bool(self.xp.isfinite(array).all())

    # ---- kernels ---------------------------------------------------------------------------------

    def launch(
        self, file: str, name: str, grid: Any, block: int, *arguments: Any, shared: int = 0
    ) -> None:
        """Start a kernel of ``core/cuda/<file>.cu``: a number of blocks, or of (x, y), of threads.

        Arguments are arrays, None for a null pointer, int and float. ``shared`` are bytes.
        """
        kernel = self._kernels.get(name)
        if kernel is None:
            kernel = self._kernels[name] = self._compiled(file, name)
        if shared > self._shared.get(name, _SHARED):
            kernel.max_dynamic_shared_size_bytes = self._shared[name] = shared
        grid = grid if isinstance(grid, tuple) else (grid,)
        if not all(grid):
            return
        given = tuple(0 if one is None else one for one in arguments)
        with self._device:
            kernel(grid, (block,), given, shared_mem=shared)

    def _compiled(self, file: str, name: str) -> Any:
        with self._device:
            if file not in self._modules:
                self._modules[file] = self.xp.RawModule(code=_source(file), options=_OPTIONS)
            return self._modules[file].get_function(name)


@cache
def _source(file: str) -> str:
    """The text of a file of kernels with what it includes, each once.

    CuPy keeps what it has compiled under the text that it was given, which headers are no part of.
    """
    folder = next(folder for folder in _FOLDERS if folder.is_dir())
    seen: set[str] = set()

    def expanded(name: str) -> str:
        if name in seen:
            return ""
        seen.add(name)
        text = (folder / name).read_text(encoding="utf-8").replace("#pragma once", "")
        return re.sub(
            r'^#include "(.*)"$', lambda match: expanded(match[1]), text, flags=re.MULTILINE
        )

    return expanded(f"{file}.cu")
