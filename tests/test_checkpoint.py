"""Checkpoints: whole or not there, and no byte of them believed unseen."""

from __future__ import annotations

import hashlib
import json
import os
import struct

import numpy as np
import pytest

from linrank import CheckpointError
from linrank.stochastic import checkpoint

STATE = {
    "name": "é",
    "n": 2**60,
    "share": 0.1,
    "none": None,
    "yes": True,
    "options": {"--alpha": 1e-4},
    "a": np.arange(6, dtype=np.float64).reshape(2, 3),
    "b": np.array([2**64 - 1], dtype=np.uint64),
    "empty": np.empty(0, np.int64),
    "f": np.array([np.nan, np.inf, -0.0], np.float32),
    "i": np.array([-1, 7], np.int32),
}


def assert_same(state, expected):
    assert set(state) == set(expected)
    for name, value in expected.items():
        if isinstance(value, np.ndarray):
            assert state[name].dtype == value.dtype
            assert state[name].shape == value.shape
            assert state[name].tobytes() == value.tobytes()
        else:
            assert state[name] == value


def test_what_is_saved_is_loaded(tmp_path):
    path = tmp_path / "c"
    checkpoint.save(path, STATE)
    loaded = checkpoint.load(path)
    assert_same(loaded, STATE)
    assert len(loaded) == len(STATE)
    loaded.close()
    assert os.listdir(tmp_path) == ["c"]


def test_parts_of_states_and_arrays_in_place(tmp_path):
    state = {**checkpoint.prefixed("x", {"a": STATE["a"], "n": 3}), "n": 4}
    checkpoint.save(tmp_path / "c", state)
    for source in (state, checkpoint.load(tmp_path / "c")):
        part = checkpoint.nested(source, "x")
        assert (dict(part).keys(), part["n"], len(part)) == ({"a", "n"}, 3, 2)
        out = np.empty((2, 3))
        checkpoint.fill(part, "a", out)
        assert np.array_equal(out, STATE["a"])
        with pytest.raises(ValueError, match="expected float32"):
            checkpoint.fill(part, "a", np.empty((2, 3), np.float32))


def test_a_file_cut_anywhere_is_refused(tmp_path):
    path = tmp_path / "c"
    checkpoint.save(path, STATE)
    whole = path.read_bytes()
    for n in range(len(whole)):
        path.write_bytes(whole[:n])
        with pytest.raises(CheckpointError, match=r"truncated|no checkpoint"):
            checkpoint.load(path)
    path.write_bytes(whole + b"\0")
    with pytest.raises(CheckpointError, match="checksum is wrong"):
        checkpoint.load(path)


def test_no_changed_byte_goes_unseen(tmp_path):
    path = tmp_path / "c"
    checkpoint.save(path, STATE)
    whole, rng = path.read_bytes(), np.random.default_rng(0)
    for place in range(len(whole)):
        changed = bytearray(whole)
        changed[place] ^= 1 << int(rng.integers(8))
        path.write_bytes(changed)
        with pytest.raises(CheckpointError):
            checkpoint.load(path)


def test_foreign_and_newer_files_are_told_apart(tmp_path):
    path = tmp_path / "c"
    path.write_bytes(b"1 qid:1 1:0.5\n" * 100)
    with pytest.raises(CheckpointError, match="is no checkpoint of linrank; name another file"):
        checkpoint.load(path)
    path.write_bytes(b"LINRANKC" + struct.pack("<II", 9, 0) + bytes(32))
    with pytest.raises(CheckpointError, match=r"format 9, this linrank reads 1; go on with the"):
        checkpoint.load(path)
    with pytest.raises(FileNotFoundError):
        checkpoint.load(tmp_path / "nowhere")


def forged(header: bytes, body: bytes = b"") -> bytes:
    """A file with that header and a checksum that is right."""
    content = b"LINRANKC" + struct.pack("<II", 1, len(header)) + header + body
    return content + hashlib.sha256(content).digest()


@pytest.mark.parametrize(
    "header",
    [
        b"{",
        b"[]",
        b"{}",
        b"[" * 100_000,
        b"\xff\xfe",
        json.dumps({"values": {}, "arrays": [["a", "<f8", [2**60]]]}).encode(),
        json.dumps({"values": {}, "arrays": [["a", "<f8", [2**40, 2**40]]]}).encode(),
        json.dumps({"values": {}, "arrays": [["a", "<f8", [-1]]]}).encode(),
        json.dumps({"values": {}, "arrays": [["a", "|O", [1]]]}).encode(),
        json.dumps({"values": {}, "arrays": [["a", "<f8", 1]]}).encode(),
        json.dumps({"values": {}, "arrays": [["a", "<f8", [1]]]}).encode(),
        json.dumps({"values": 3, "arrays": []}).encode(),
    ],
)
def test_headers_that_lie(tmp_path, header):
    """With a checksum that is right: sizes are compared with the file before memory is taken."""
    path = tmp_path / "c"
    path.write_bytes(forged(header))
    with pytest.raises(CheckpointError, match="header that makes no sense"):
        checkpoint.load(path)


def test_a_header_that_claims_to_be_huge(tmp_path):
    path = tmp_path / "c"
    path.write_bytes(b"LINRANKC" + struct.pack("<II", 1, 2**32 - 1) + bytes(100))
    with pytest.raises(CheckpointError, match=r"damaged: a header of 4294967295 bytes"):
        checkpoint.load(path)


def test_names_that_are_not_there(tmp_path):
    checkpoint.save(tmp_path / "c", {"a": 1})
    loaded = checkpoint.load(tmp_path / "c")
    with pytest.raises(CheckpointError, match="there is no 'b' in it"):
        loaded["b"]


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_write_that_fails_leaves_the_old_file(tmp_path, monkeypatch, step):
    path = tmp_path / "c"
    checkpoint.save(path, {"n": 1})

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, step, fail)
    with pytest.raises(OSError, match="No space left") as caught:
        checkpoint.save(path, STATE)
    monkeypatch.undo()
    assert caught.value.filename == str(path)
    assert checkpoint.load(path)["n"] == 1
    assert os.listdir(tmp_path) == ["c"]


def test_what_a_checkpoint_cannot_hold(tmp_path):
    with pytest.raises(TypeError, match=r"b is an array of <c16"):
        checkpoint.save(tmp_path / "c", {"b": np.zeros(2, complex)})
    assert os.listdir(tmp_path) == []
