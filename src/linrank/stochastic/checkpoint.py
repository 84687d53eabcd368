"""Checkpoints: the state of a training run as a file that is whole or not there.

The file is, in this order and little-endian:

====================  ============================================================================
8 bytes               ``LINRANKC``
4 bytes               version of the format, 1
4 bytes               n, length of the header, at most 16 MB
n bytes               JSON object: ``{"values": {...}, "arrays": [[name, dtype, shape], ...]}``
arrays                raw, C order, in the order of the header
32 bytes              SHA-256 of all that precedes
====================  ============================================================================

Nothing of it is executed when it is read, and no size is believed before it was compared with the
length of the file.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import struct
from collections.abc import Iterator, Mapping
from typing import IO, Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from linrank.errors import CheckpointError
from linrank.system.durable import check_place, naming, replacing

Array = NDArray[Any]
_MAGIC = b"LINRANKC"
_VERSION = 1
_FRONT = struct.Struct("<8sII")
_MAX_HEADER = 16 << 20
_DIGEST = 32
_CHUNK = 1 << 20
_DTYPES = ("<f4", "<f8", "<i4", "<i8", "<u8")


def save(path: str | os.PathLike[str], state: Mapping[str, Any]) -> None:
    """Write ``state``: arrays, and values that JSON has.

    A process killed at any moment, or a machine that loses power, leaves the old checkpoint or the
    new one. Arrays are written from where they lie, without a copy.
    """
    arrays = {k: np.ascontiguousarray(v) for k, v in state.items() if isinstance(v, np.ndarray)}
    values = {k: v for k, v in state.items() if k not in arrays}
    specs = [[k, a.dtype.newbyteorder("<").str, list(a.shape)] for k, a in arrays.items()]
    for name, dtype, _ in specs:
        if dtype not in _DTYPES:
            raise TypeError(f"{name} is an array of {dtype}; a checkpoint holds {_DTYPES}")
    header = json.dumps({"values": values, "arrays": specs}).encode()
    if len(header) > _MAX_HEADER:
        raise ValueError(f"the values take {len(header)} bytes, more than {_MAX_HEADER}")
    with replacing(path) as file:
        _write(file, header, arrays)


def _write(file: IO[bytes], header: bytes, arrays: Mapping[str, Array]) -> None:
    digest = hashlib.sha256()
    parts: list[Any] = [_FRONT.pack(_MAGIC, _VERSION, len(header)), header]
    parts += [a.astype(a.dtype.newbyteorder("<"), copy=False).data for a in arrays.values()]
    for part in parts:
        view = memoryview(part)
        if view.nbytes:
            view = view.cast("B")
            digest.update(view)
            file.write(view)
    file.write(digest.digest())


class Checkpoint(Mapping[str, Any]):
    """A checkpoint that was read and found whole; its arrays are read when they are asked for."""

    def __init__(
        self, name: str, file: BinaryIO, values: dict[str, Any], arrays: dict[str, _Spec]
    ) -> None:
        self.name, self._file, self._values, self._arrays = name, file, values, arrays

    def __getitem__(self, name: str) -> Any:
        """A value or an array."""
        if name in self._values:
            return self._values[name]
        if name not in self._arrays:
            raise CheckpointError(f"{self.name}: there is no {name!r} in it; it is of another kind")
        dtype, shape, _ = self._arrays[name]
        out = np.empty(shape, dtype)
        self.read_into(name, out)
        return out

    def read_into(self, name: str, out: Array) -> None:
        """Read an array to where it is wanted."""
        if name not in self._arrays:
            raise CheckpointError(f"{self.name}: there is no array {name!r} in it")
        dtype, shape, place = self._arrays[name]
        if out.dtype != dtype or out.size != math.prod(shape) or not out.flags.c_contiguous:
            raise CheckpointError(
                f"{self.name}: the array {name!r} is {dtype} {shape}, expected "
                f"{out.dtype} {out.shape}"
            )
        if out.nbytes == 0:
            return
        self._file.seek(place)
        view = out.data.cast("B")
        while view:
            with naming(self.name):
                n_read = self._file.readinto(view)  # type: ignore[attr-defined]
            if not n_read:
                raise CheckpointError(f"{self.name}: became shorter while it was read")
            view = view[n_read:]

    def __iter__(self) -> Iterator[str]:
        """The names."""
        return iter([*self._values, *self._arrays])

    def __len__(self) -> int:
        """The number of names."""
        return len(self._values) + len(self._arrays)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


_Spec = tuple[np.dtype[Any], tuple[int, ...], int]


def load(path: str | os.PathLike[str]) -> Checkpoint:
    """Open a checkpoint and check all of it; `CheckpointError` says what is wrong."""
    name = os.fspath(path)
    file = open(name, "rb", buffering=0)  # noqa: SIM115  (lives as long as the checkpoint)
    try:
        size = os.fstat(file.fileno()).st_size
        with naming(name):
            header, start = _read_header(file, name, size)
            _check_digest(file, name, size)
        values, arrays = _parse_header(header, name, start, size - _DIGEST)
    except BaseException:
        file.close()
        raise
    return Checkpoint(name, file, values, arrays)


def check_replaceable(path: str | os.PathLike[str]) -> None:
    """Raise now if writing a checkpoint would destroy what is none, or could not be done."""
    name = os.fspath(path)
    check_place(name)
    if not os.path.exists(name):
        return
    with open(name, "rb") as file:
        if (front := file.read(len(_MAGIC))) and front != _MAGIC:
            raise CheckpointError(
                f"{name}: is no checkpoint of linrank, and would be written over; name another file"
            )


def _read_header(file: Any, name: str, size: int) -> tuple[bytes, int]:
    front = file.read(_FRONT.size)
    if not _MAGIC.startswith(front[: len(_MAGIC)]) or not front:
        raise CheckpointError(f"{name}: is no checkpoint of linrank; name another file")
    if len(front) < _FRONT.size:
        raise CheckpointError(f"{name}: is truncated after {size} bytes; delete it and start anew")
    _, version, length = _FRONT.unpack(front)
    if version != _VERSION:
        raise CheckpointError(
            f"{name}: is a checkpoint of format {version}, this linrank reads {_VERSION}; go on "
            "with the version that wrote it, or delete it and start anew"
        )
    if length > _MAX_HEADER or _FRONT.size + length + _DIGEST > size:
        raise CheckpointError(
            f"{name}: is truncated or damaged: a header of {length} bytes; delete it and start anew"
        )
    header = file.read(length)
    if len(header) < length:
        raise CheckpointError(f"{name}: is truncated; delete it and start anew")
    return header, _FRONT.size + length


def _check_digest(file: Any, name: str, size: int) -> None:
    digest, left = hashlib.sha256(), size - _DIGEST
    file.seek(0)
    while left > 0:
        chunk = file.read(min(_CHUNK, left))
        if not chunk:
            raise CheckpointError(f"{name}: became shorter while it was read")
        digest.update(chunk)
        left -= len(chunk)
    if digest.digest() != file.read(_DIGEST):
        raise CheckpointError(
            f"{name}: is truncated or damaged, its checksum is wrong; delete it and start anew"
        )


def _parse_header(
    header: bytes, name: str, start: int, end: int
) -> tuple[dict[str, Any], dict[str, _Spec]]:
    try:
        document = json.loads(header)
        values, arrays, place = dict(document["values"]), {}, start
        for key, kind, shape in document["arrays"]:
            if kind not in _DTYPES or not all(type(n) is int and n >= 0 for n in shape):
                raise ValueError(f"array {key!r} of {kind} {shape}")
            dtype = np.dtype(kind)
            arrays[str(key)] = (dtype, tuple(shape), place)
            place += dtype.itemsize * math.prod(shape)
        if place != end:
            raise ValueError(f"arrays up to byte {place} of {end}")
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise CheckpointError(f"{name}: has a header that makes no sense: {error}") from None
    return values, arrays


# ---- states in parts ----------------------------------------------------------------------------


def prefixed(prefix: str, state: Mapping[str, Any]) -> dict[str, Any]:
    """The state of a part, its names behind a prefix."""
    return {f"{prefix}.{name}": value for name, value in state.items()}


class _Nested(Mapping[str, Any]):
    def __init__(self, state: Mapping[str, Any], prefix: str) -> None:
        self._state, self._prefix = state, f"{prefix}."

    def __getitem__(self, name: str) -> Any:
        return self._state[self._prefix + name]

    def __iter__(self) -> Iterator[str]:
        return (k[len(self._prefix) :] for k in self._state if k.startswith(self._prefix))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def read_into(self, name: str, out: Array) -> None:
        fill(self._state, self._prefix + name, out)


def nested(state: Mapping[str, Any], prefix: str) -> Mapping[str, Any]:
    """The part of a state that `prefixed` has put behind ``prefix``."""
    return _Nested(state, prefix)


def fill(state: Mapping[str, Any], name: str, out: Array) -> None:
    """Copy an array of a state into ``out``: from the file at once, if the state is one."""
    if isinstance(state, (Checkpoint, _Nested)):
        state.read_into(name, out)
        return
    array = np.asarray(state[name])
    if array.size != out.size or array.dtype != out.dtype:
        raise ValueError(f"{name} is {array.dtype} {array.shape}, expected {out.dtype} {out.shape}")
    out[...] = array.reshape(out.shape)
