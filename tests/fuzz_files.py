"""Fuzzers of the files that Python reads, and the little that it takes to run them.

Each takes any bytes and says whether they were accepted: they end in something sound or in the
error that such a file ends in, and whatever else happens is a fault. test_fuzz_files.py runs them
through their corpus and random damage to it; explore_files.py is guided by coverage.
"""

from __future__ import annotations

import ast
import contextlib
import hashlib
import io
import random
import tempfile
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import numpy as np

from linrank import DataFormatError, ModelFormatError, load_model
from linrank.io.sidecars import load_preferences
from linrank.io.store.chunks import read_manifest
from linrank.models.additive import AdditiveModel
from linrank.models.kernel import KernelModel

CORPUS = Path(__file__).parent / "corpus"
MEMORY = Path("/dev/shm")  # files in memory, where the system has them
_folder = tempfile.TemporaryDirectory(prefix="fuzz-", dir=MEMORY if MEMORY.is_dir() else None)
FOLDER = Path(_folder.name)


def renew(path: Path, content: bytes) -> Path:
    """Write a new file: overwriting one makes some file systems wait for the disk."""
    path.unlink(missing_ok=True)
    path.write_bytes(content)
    return path


def model(content: bytes) -> bool:
    """A model file, whatever its kind: it predicts, and is the same when saved again."""
    with mock.patch("linrank.models.file.available", return_value=0):  # a few bytes ask for little
        try:
            found = load_model(renew(FOLDER / "m.json", content))
        except ModelFormatError:
            return False
    is_additive = isinstance(found, AdditiveModel)
    assert is_additive or np.isfinite(found.coef).all()
    if found.n_features < 1000:
        beyond = ValueError if is_additive else ()  # values of curves may sum to more than float64
        with np.errstate(all="ignore"), contextlib.suppress(beyond):
            scores = found.predict(np.zeros((2, found.n_features)), qid=[0, 1])
            assert scores.shape == (2,)
            # Products of kernels may overflow; a linear score of zeros cannot.
            assert isinstance(found, KernelModel) or np.isfinite(scores).all()
    again, twice = FOLDER / "again.json", FOLDER / "twice.json"
    found.save(again)
    load_model(again).save(twice)
    assert again.read_bytes() == twice.read_bytes()
    return True


def manifest(content: bytes) -> bool:
    """The manifest of a store, signed as one that means harm would sign it."""
    mark = b', "digest": "'
    head, found, _ = content.rpartition(mark)
    if found:
        content = head + mark + hashlib.sha256(head + mark).hexdigest().encode() + b'"}\n'
    try:
        read = read_manifest(str(renew(FOLDER / "manifest.json", content)))
    except DataFormatError:
        return False
    written = read.encode()
    again = read_manifest(str(renew(FOLDER / "manifest.json", written)))
    assert again.encode() == written
    assert again.layout.sizes() == read.layout.sizes()
    return True


def preferences(content: bytes) -> bool:
    """Preferences as text, plain or compressed."""
    try:
        found = load_preferences(io.BytesIO(content))
    except DataFormatError:
        return False
    weights = np.ones(len(found.pairs)) if found.weight is None else found.weight
    rows = zip(found.pairs.tolist(), weights.tolist(), strict=True)
    text = "".join(f"{winner} {loser} {weight!r}\n" for (winner, loser), weight in rows)
    again = load_preferences(io.BytesIO(text.encode()))
    assert again.pairs.tolist() == found.pairs.tolist()
    assert (again.weight is None) == (found.weight is None)
    assert again.weight is None or again.weight.tolist() == found.weight.tolist()
    return True


FUZZERS: dict[str, Callable[[bytes], bool]] = {
    function.__name__: function for function in (model, manifest, preferences)
}


def corpus(name: str) -> list[bytes]:
    """The inputs that are kept of a fuzzer, always in the same order."""
    return [path.read_bytes() for path in sorted((CORPUS / name).iterdir())]


def words(name: str) -> list[bytes]:
    """The words of a dictionary, which libFuzzer reads as well."""
    lines = (CORPUS / f"{name}.dict").read_text().splitlines()
    return [ast.literal_eval("b" + line) for line in lines if line.startswith('"')]


def mutate(rng: random.Random, content: bytes, words: list[bytes]) -> bytes:
    """A few edits of the kinds that break parsers: flips, cuts, copies, moves, words."""
    damaged = bytearray(content)
    for _ in range(rng.choice([1, 1, 1, 2, 3, 8])):
        at = rng.randrange(len(damaged) + 1)
        end = min(len(damaged), at + rng.choice([1, 1, 2, 5, 40]))
        kind = rng.randrange(6)
        if kind == 0 and at < len(damaged):
            damaged[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            del damaged[at:end]
        elif kind == 2:
            damaged[at:at] = damaged[at:end]
        elif kind == 3:
            damaged[at:end] = rng.choice(words)
        elif kind == 4:
            damaged[at:at] = rng.choice(words) * rng.choice([1, 2, 1000])
        else:
            del damaged[at:]
    return bytes(damaged)
