"""Checkpoints: whole or not there, and no byte of them believed unseen."""

import io
import json
import os
import zipfile

import numpy as np
import pytest

import linrank
from linrank import CheckpointError
from linrank.stochastic import checkpoint

STATE = {
    "name": "é",
    "n": 2**60,
    "share": 0.1,
    "none": None,
    "yes": True,
    "options": {"--alpha": 1e-4},
    "limits": {"highest": float("inf"), "nested": {"i": np.array([-1, 7], np.int32)}},
    "a": np.arange(6, dtype=np.float64).reshape(2, 3),
    "b": np.array([2**64 - 1], dtype=np.uint64),
    "empty": np.empty(0, np.int64),
    "f": np.array([np.nan, np.inf, -0.0], np.float32),
}


def assert_same(state, expected):
    assert set(state) == set(expected)
    for name, value in expected.items():
        if isinstance(value, np.ndarray):
            array = np.asarray(state[name])
            assert (array.dtype, array.shape) == (value.dtype, value.shape)
            assert array.tobytes() == value.tobytes()
        elif isinstance(value, dict):
            assert_same(state[name], value)
        else:
            assert state[name] == value


def test_what_is_saved_is_loaded(tmp_path):
    """And a model file travels with it."""
    model = linrank.LinearModel(np.array([1.0, -2.0]))
    checkpoint.save(tmp_path / "c", STATE, model.to_json())
    assert_same(checkpoint.load(tmp_path / "c"), STATE)
    assert os.listdir(tmp_path) == ["c"]
    with zipfile.ZipFile(tmp_path / "c") as archive:
        archive.extract("model.json", tmp_path)
    assert linrank.load_model(tmp_path / "model.json").coef.tolist() == [1.0, -2.0]


def test_arrays_are_read_in_place(tmp_path):
    checkpoint.save(tmp_path / "c", STATE)
    for state in (STATE, checkpoint.load(tmp_path / "c")):
        out = np.empty((2, 3))
        checkpoint.fill(out, state["a"])
        assert np.array_equal(out, STATE["a"])
        with pytest.raises(ValueError, match=r"float32|float64 \(2, 3\)"):
            checkpoint.fill(np.empty((2, 3), np.float32), state["a"])


def test_a_file_cut_anywhere_is_refused(tmp_path):
    path = tmp_path / "c"
    checkpoint.save(path, STATE)
    whole = path.read_bytes()
    for n in {*range(0, len(whole), 7), len(whole) - 1}:
        path.write_bytes(whole[:n])
        with pytest.raises(CheckpointError, match=r"truncated|no checkpoint"):
            checkpoint.load(path)


def test_no_changed_byte_changes_what_is_read(tmp_path):
    """Some bytes of an archive say nothing, such as its dates; all others are checked."""
    path = tmp_path / "c"
    checkpoint.save(path, STATE)
    whole, rng, n_refused = path.read_bytes(), np.random.default_rng(0), 0
    places = range(0, len(whole), 7)
    for place in places:
        changed = bytearray(whole)
        changed[place] ^= 1 << int(rng.integers(8))
        path.write_bytes(changed)
        try:
            assert_same(checkpoint.load(path), STATE)
        except CheckpointError:
            n_refused += 1
    assert n_refused > 0.6 * len(places)


def forged(document, array=b"", compression=zipfile.ZIP_STORED):
    """An archive with checksums that are right."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", compression) as archive:
        text = document if isinstance(document, bytes) else json.dumps(document).encode()
        archive.writestr("state.json", text)
        archive.writestr("0.npy", array)
    return content.getvalue()


EMPTY = {"version": 1, "state": {}}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"1 qid:1 1:0.5\n" * 100, "is no checkpoint of linrank; name another file"),
        (forged({"version": 9, "state": {}}), "format 9, this linrank reads 1; go on with the"),
        # A few bytes could stand for as much memory as they like.
        (forged(EMPTY, compression=zipfile.ZIP_DEFLATED), "a member is compressed"),
        *(
            (forged(text), "truncated or damaged")
            for text in (b"{", b"[]", b"{}", b"[" * 100_000, b"\xff\xfe", b"3")
        ),
    ],
    ids=range(9),
)
def test_foreign_newer_and_senseless_files_are_told_apart(tmp_path, content, message):
    path = tmp_path / "c"
    with pytest.raises(FileNotFoundError):
        checkpoint.load(path)
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match=message):
        checkpoint.load(path)


@pytest.mark.parametrize(
    ("descr", "shape"),
    [("<f8", (2**60,)), ("<f8", (2**40, 2**40)), ("<f8", (1,)), ("|O", (1,)), ("<f8", (-1,))],
)
def test_arrays_that_lie(tmp_path, descr, shape):
    """With a checksum that is right: sizes are compared with the file before memory is taken."""
    path, header = tmp_path / "c", io.BytesIO()
    described = {"descr": descr, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(header, described)
    path.write_bytes(forged({"version": 1, "state": {"a": {"array": 0}}}, header.getvalue()))
    with pytest.raises(ValueError, match=r"0\.npy is no array of"):
        np.asarray(checkpoint.load(path)["a"])


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
    with pytest.raises(TypeError, match=r"arrays of numbers, not complex128"):
        checkpoint.save(tmp_path / "c", {"b": np.zeros(2, complex)})
    assert os.listdir(tmp_path) == []
