"""Checkpoints: the state of a training run as one file that is whole or not there.

The file is a zip archive without compression: ``state.json`` holds the values, each array is a
member ``0.npy``, ``1.npy``, ..., and ``model.json`` is the model so far, if there is one, as
:func:`linrank.load_model` reads it. Nothing of it is executed when it is read, all of it is checked
by CRC-32 first, and no size is believed that the file does not have.
"""

from __future__ import annotations

import errno
import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from zipfile import ZIP_STORED, ZipFile, ZipInfo

import numpy as np
from numpy.lib import format as npy

from linrank.data.rows import Array
from linrank.errors import CheckpointError
from linrank.system.durable import check_place, naming, replacing

_MAGIC = b"PK\x03\x04"
_VERSION = 1
_CHUNK = 1 << 20
_VALUES, MODEL = "state.json", "model.json"


def save(
    path: str | os.PathLike[str], state: Mapping[str, Any], model: bytes | None = None
) -> None:
    """Write a state: mappings of arrays, and of values that JSON has; and a model file.

    A process killed at any moment, or a machine that loses power, leaves the old checkpoint or the
    new one. Arrays are written from where they lie, without a copy.
    """
    arrays: list[Array] = []

    def refer(value: Any) -> dict[str, int]:
        if not isinstance(value, np.ndarray) or value.dtype.kind not in "fiu":
            kind = getattr(value, "dtype", type(value).__name__)
            raise TypeError(f"a checkpoint holds JSON values and arrays of numbers, not {kind}")
        arrays.append(np.ascontiguousarray(value))
        return {"array": len(arrays) - 1}

    values = json.dumps({"version": _VERSION, "state": state}, default=refer)
    with replacing(path) as file, ZipFile(file, "w") as archive:
        archive.writestr(_VALUES, values)
        if model is not None:
            archive.writestr(MODEL, model)
        for k, array in enumerate(arrays):
            with archive.open(f"{k}.npy", "w", force_zip64=True) as member:
                npy.write_array_header_1_0(member, npy.header_data_from_array_1_0(array))
                if array.nbytes:
                    member.write(array.data.cast("B"))


@dataclass(frozen=True)
class SavedArray:
    """An array of a checkpoint, read when it is asked for."""

    archive: ZipFile
    member: ZipInfo

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """A new array, for NumPy."""
        array = self.read()
        return array.astype(dtype or array.dtype.newbyteorder("="), copy=False)

    def read(self, out: Array | None = None) -> Array:
        """Read it, to where it is wanted."""
        place = f"{self.archive.filename}: {self.member.filename}"
        with naming(str(self.archive.filename)), self.archive.open(self.member) as file:
            npy.read_magic(file)
            shape, _, dtype = npy.read_array_header_1_0(file)
            size = dtype.itemsize * math.prod(shape)
            if dtype.kind not in "fiu" or size != self.member.file_size - file.tell():
                raise CheckpointError(f"{place} is no array of {dtype} {shape}")
            if out is None:
                out = np.empty(shape, dtype)
            if out.dtype != dtype or out.nbytes != size:
                raise CheckpointError(
                    f"{place} is {dtype} {shape}, expected {out.dtype} {out.shape}"
                )
            view = out.data.cast("B") if size else memoryview(b"")
            while view:
                chunk = file.read(min(_CHUNK, len(view)))
                view[: len(chunk)] = chunk
                view = view[len(chunk) :]
        return out


class _State(dict[str, Any]):
    def __missing__(self, name: str) -> Any:
        raise CheckpointError(f"there is no {name!r} in it; it is of another kind")


def load(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The state of a checkpoint, all of it checked; `CheckpointError` says what is wrong.

    Arrays are `SavedArray`: NumPy takes them for arrays, and `fill` reads them in place.
    """
    name = os.fspath(path)
    with naming(name), open(name, "rb") as file:
        if not _MAGIC.startswith(front := file.read(len(_MAGIC))) or not front:
            raise CheckpointError(f"{name}: is no checkpoint of linrank; name another file")
    try:
        archive = ZipFile(name)
        if any(member.compress_type != ZIP_STORED for member in archive.infolist()):
            raise ValueError("a member is compressed")
        if (damaged := archive.testzip()) is not None:
            raise ValueError(f"the checksum of {damaged} is wrong")

        def resolve(found: dict[str, Any]) -> Any:
            if found.keys() != {"array"}:
                return _State(found)
            return SavedArray(archive, archive.getinfo(f"{found['array']}.npy"))

        document = json.loads(archive.read(_VALUES), object_hook=resolve)
        version, state = document["version"], document["state"]
    except MemoryError:
        raise
    except Exception as error:  # zipfile has many words for damage: struct.error, EOFError, ...
        if getattr(error, "errno", None) not in (None, errno.EINVAL):  # a seek to nowhere
            raise
        raise CheckpointError(
            f"{name}: is truncated or damaged ({error}); delete it and start anew"
        ) from None
    if version != _VERSION or not isinstance(state, dict):
        raise CheckpointError(
            f"{name}: is a checkpoint of format {version}, this linrank reads {_VERSION}; go on "
            "with the version that wrote it, or delete it and start anew"
        )
    return state


def fill(out: Array, saved: Any) -> None:
    """Copy an array of a state to ``out``: from the file at once, if it is still there."""
    if isinstance(saved, SavedArray):
        saved.read(out)
        return
    array = np.asarray(saved)
    if array.size != out.size or array.dtype != out.dtype:
        raise ValueError(f"{array.dtype} {array.shape} in place of {out.dtype} {out.shape}")
    out[...] = array.reshape(out.shape)


def check_replaceable(path: str | os.PathLike[str]) -> None:
    """Raise now if writing a checkpoint would destroy what is none, or could not be done."""
    name = os.fspath(path)
    check_place(name)
    if os.path.exists(name):
        with open(name, "rb") as file:
            if not _MAGIC.startswith(file.read(len(_MAGIC))):
                raise CheckpointError(
                    f"{name}: is no checkpoint of linrank, and would be written over; name another "
                    "file"
                )
