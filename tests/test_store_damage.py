"""Damaged, foreign and hostile stores: a clear error, never a crash, a hang or wrong numbers."""

import contextlib
import hashlib
import json
import os
import shutil

import numpy as np
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from hypothesis_profiles import examples
from linrank import DataFormatError, Store
from linrank.io.store.chunks import Buffer, checksum
from stored_data import assert_same, example

MANIFEST = "manifest.json"
DENSE = (
    "values.bin labels.bin levels.bin weights.bin query_ends.bin n_levels.bin ids.bin "
    "comments.txt comment_ends.bin statistics.bin"
)
FILES = {"dense": DENSE.split(), "csr": ["values.bin", "columns.bin", "row_ends.bin"]}
EVERY = [(storage, name) for storage, names in FILES.items() for name in names]


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """A store of each storage, never changed."""
    folder = tmp_path_factory.mktemp("stores")
    for storage in ("dense", "csr"):
        Store.of(folder / storage, example(storage=storage), chunk_bytes=500)
    return folder


@pytest.fixture
def copy(sound, tmp_path):
    def make(storage="dense"):
        return shutil.copytree(sound / storage, tmp_path / "store")

    return make


def use(path):
    """Everything that a store is asked for; what it gives must be right."""
    store = Store(path)
    for i in range(store.n_chunks):
        data = store.read(i)
        _ = data.rows.core, data.docids
    _ = store.statistics
    assert_same(store.dataset(), example(storage=store.storage))
    return store


def sign(content):
    """A manifest with the digest that belongs to it, as one that means harm would have."""
    document = {k: v for k, v in content.items() if k != "digest"}
    text = json.dumps(document).replace("Infinity", "1e999")  # beyond all floats, but JSON
    head = text[:-1].encode() + b', "digest": "'
    return head + hashlib.sha256(head).hexdigest().encode() + b'"}\n'


def change(path, edit):
    """Edit the manifest and sign it."""
    content = json.loads((path / MANIFEST).read_bytes())
    edit(content)
    (path / MANIFEST).write_bytes(sign(content))


def rewrite(path, name, edit):
    """Edit a file and bring its checksums up to date, as one that means harm would."""
    store = Store(path)
    layout, place = store._layout, path / store._layout.arrays[name].file
    array = np.fromfile(place, layout.arrays[name].dtype)
    edit(array)
    array.tofile(place)
    ranges = [layout.place(name, i) for i in range(store.n_chunks)]
    sums = [checksum(array.view(np.uint8)[begin:][:n_bytes]) for begin, n_bytes in ranges]
    change(path, lambda content: content["checksums"].update({name: sums}))


def test_the_sound_store_is_sound(sound):
    for storage in ("dense", "csr"):
        use(sound / storage).verify()


@pytest.mark.parametrize(("storage", "name"), EVERY)
def test_a_flipped_byte(copy, storage, name):
    path = copy(storage)
    content = bytearray((path / name).read_bytes())
    content[len(content) * 2 // 3] ^= 0x10
    (path / name).write_bytes(content)
    uses = [use, lambda path: Store(path).verify(), lambda path: Store(path).dataset()]
    for attempt in uses[: 2 if name == "statistics.bin" else 3]:
        with pytest.raises(DataFormatError, match=name.replace(".", r"\.") + ".*(anew|again)"):
            attempt(path)


@pytest.mark.parametrize(("storage", "name"), [*EVERY, ("dense", MANIFEST)])
@pytest.mark.parametrize(
    "damage",
    [
        lambda place, content: None,
        lambda place, content: place.write_bytes(content[:-1]),
        lambda place, content: place.write_bytes(content + b"\0"),
        lambda place, content: place.write_bytes(b""),
        lambda place, content: place.symlink_to(place.parent / "labels.bin"),
        lambda place, content: os.mkfifo(place),
        lambda place, content: place.mkdir(),
    ],
    ids=["missing", "truncated", "longer", "empty", "link", "pipe", "folder"],
)
def test_a_file_that_is_not_as_it_was(copy, storage, name, damage):
    place = copy(storage) / name
    content = place.read_bytes()
    place.unlink()
    damage(place, content)
    with pytest.raises(DataFormatError, match=name.replace(".", r"\.") + ".*; "):
        Store(place.parent)


@pytest.mark.parametrize("storage", ["dense", "csr"])
def test_every_byte_of_the_manifest_counts(sound, tmp_path, storage):
    path = shutil.copytree(sound / storage, tmp_path / "store")
    content = (path / MANIFEST).read_bytes()
    rng = np.random.default_rng(0)
    for k in [*rng.choice(len(content), 150, replace=False), len(content) - 1, 0]:
        damaged = bytearray(content)
        damaged[k] ^= 1 << int(rng.integers(8))
        (path / MANIFEST).write_bytes(damaged)
        with pytest.raises(DataFormatError, match=r"manifest\.json"):
            Store(path)


def policy(kind, n_features=7, values=None, absent=()):
    """How a manifest says that missing values were filled in."""
    return {"kind": kind, "n_features": n_features, "values": values, "absent": list(absent)}


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda d: d.update(version=2), "version 2, this linrank reads version 1; upgrade"),
        (lambda d: d.update(format="other"), "is no manifest of a store"),
        (lambda d: d["files"].update({"../secret": 1}), "'../secret' outside its folder"),
        (lambda d: d["files"].update({"/etc/passwd": 1}), "outside its folder"),
        (lambda d: d["files"].update({"more.bin": 1}), "names files: 'more.bin'"),
        (lambda d: d["files"].pop("labels.bin"), "'files: labels.bin' is missing"),
        (lambda d: d["files"].update({"labels.bin": 8}), "labels.bin is 8, expected"),
        (lambda d: d.update(n_rows=-1), "n_rows is -1"),
        (lambda d: d.update(n_features=2**60), "n_features is"),
        (lambda d: d.update(n_features=True), "'n_features' is a bool, expected int"),
        (lambda d: d.update(dtype="object"), "dtype is 'object'"),
        (lambda d: d.update(storage="pickle"), "storage is 'pickle'"),
        (lambda d: d.update(n_pairs=-5), "n_pairs is -5"),
        (lambda d: d.update(feature_names=["a"]), "feature_names has 1 elements"),
        (lambda d: d.update(feature_names=[1] * 7), "feature_names: sequence item 0: expected str"),
        (lambda d: d.update(index_base=7), "index_base is 7"),
        (lambda d: d.update(total_weight=-1.0), "total_weight is -1"),
        (lambda d: d.update(total_weight=np.inf), "total_weight is inf, expected a finite number"),
        (lambda d: d.update(missing="mean"), "'missing' is a str, expected dict"),
        (lambda d: d.update(missing={"kind": "mean"}), "'n_features' is missing"),
        (lambda d: d.update(missing=policy("median")), "kind is 'median'"),
        (lambda d: d.update(missing=policy("zero", n_features=6)), "for 6 columns, expected 7"),
        (lambda d: d.update(missing=policy("zero", n_features=True)), "'n_features' is a bool"),
        (lambda d: d.update(missing=policy("mean", values=[1.0])), "no mean of each of the 7"),
        (lambda d: d.update(missing=policy("mean", values=["a"] * 7)), "no mean of each of the 7"),
        (lambda d: d.update(missing=policy("mean", values=[np.inf] * 7)), "no mean of each of the"),
        (lambda d: d.update(missing=policy("indicator", absent=[2, 1])), "do not increase"),
        (lambda d: d.update(missing=policy("indicator", absent=[7])), r"absent\[0\] is 7"),
        (lambda d: d.update(missing=policy("indicator", absent=[0.5])), r"absent\[0\] is 0.5"),
        (lambda d: d.update(missing=policy("indicator", absent=[6])), "for 8 columns, expected 7"),
        (lambda d: d["chunks"].update(n_rows=[]), "no chunks"),
        (lambda d: d["chunks"]["n_rows"].__setitem__(0, -3), r"n_rows\[0\] is -3"),
        (lambda d: d["chunks"]["n_rows"].__setitem__(0, [1]), r"n_rows\[0\] is a list"),
        (lambda d: d["chunks"]["n_rows"].__setitem__(0, 2**40), "is .*, expected"),
        (lambda d: d["chunks"].update(n_rows=[2**59] * len(d["chunks"]["n_rows"])), "a file can"),
        (lambda d: d["chunks"]["n_queries"].__setitem__(0, 0), r"n_queries\[0\] is 0"),
        (lambda d: d["chunks"].pop("n_queries"), "'n_queries' is missing"),
        (lambda d: d["checksums"].pop("values"), "'values' is missing"),
        (lambda d: d["checksums"]["values"].append(1), "values has .* elements"),
        (lambda d: d["checksums"]["values"].__setitem__(0, 2**32), r"values\[0\] is 4294967296"),
        (lambda d: d.pop("ids"), "the key 'ids' is missing"),
        (
            lambda d: d["files"].update({"query_offsets.bin": 248}),
            "written by a development version of linrank; convert the data again",
        ),
        (lambda d: d.update(ids=None), "30 queries without ids"),
    ],
)
def test_a_manifest_that_lies(copy, edit, message):
    path = copy()
    change(path, edit)
    with pytest.raises(DataFormatError, match=message):
        Store(path)


START = b'{"format": "linrank-store", '


@pytest.mark.parametrize(
    "content",
    [
        *(b"", b"{}", b"[]", b"null", b"\xff\xfe", b"PK\x03\x04", b"[" * 100_000, b'{"a":' * 1000),
        *(START + b'"version": %s}' % v for v in (b"NaN", b"1e999", b"9" * 5000)),
        START + b'"format": "linrank-store"}',
        b'"' + b'\\"' * 1_000_000,  # a string of escaped quotes, without an end
        b'"' + b"\\" * 1_000_001,
    ],
)
def test_what_is_no_manifest(copy, content):
    path = copy()
    (path / MANIFEST).write_bytes(content)
    with pytest.raises(DataFormatError, match=r"manifest\.json"):
        Store(path)


numbers = st.one_of(st.integers(-(2**70), 2**70), st.floats(), st.booleans(), st.none())
anything = st.one_of(numbers, st.text(max_size=5), st.lists(numbers, max_size=3), st.just({}))


@given(draw=st.data())
@examples(40, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_change_of_a_signed_manifest(sound, tmp_path, draw):
    """It opens, or there is a DataFormatError: no other error, and no crash when it is read."""
    path = tmp_path / "store"
    if not path.exists():
        shutil.copytree(sound / "csr", path)
    content = where = json.loads((sound / "csr" / MANIFEST).read_bytes())
    while isinstance(where, (dict, list)) and where:
        key = draw.draw(
            st.sampled_from(sorted(where) if isinstance(where, dict) else range(len(where)))
        )
        if draw.draw(st.booleans()) or not isinstance(where[key], (dict, list)):
            where[key] = draw.draw(anything)
            break
        where = where[key]
    (path / MANIFEST).write_bytes(sign(content))
    with contextlib.suppress(DataFormatError):
        store = Store(path)
        for i in range(store.n_chunks):
            with contextlib.suppress(DataFormatError):
                _ = store.read(i).docids


@pytest.mark.parametrize(
    ("storage", "name", "edit"),
    [
        *(("dense", "levels", lambda a, v=v: a.fill(v)) for v in (1000, -1)),
        *(("dense", "n_levels", lambda a, v=v: a.fill(v)) for v in (2**31 - 1, -5)),
        ("dense", "query_ends", lambda a: a.__setitem__(slice(None), a[::-1].copy())),
        *(("dense", "query_ends", lambda a, v=v: a.fill(v)) for v in (-(2**63), 2**62)),
        ("dense", "labels", lambda a: a.fill(np.nan)),
        ("dense", "weights", lambda a: a.fill(-1.0)),
        ("dense", "values", lambda a: a.fill(np.inf)),
        ("dense", "comment_ends", lambda a: a.__setitem__(1, 2**62)),
        *(("csr", "row_ends", lambda a, v=v: a.__setitem__(1, v)) for v in (2**62, -(2**63))),
        *(("csr", "columns", lambda a, v=v: a.fill(v)) for v in (7, -1, 0)),
    ],
)
def test_files_that_lie_with_sound_checksums(copy, storage, name, edit):
    """Whoever writes the checksums too can still not make a kernel read outside an array."""
    path = copy(storage)
    rewrite(path, name, edit)
    for attempt in (use, lambda path: Store(path).dataset()):
        with pytest.raises(DataFormatError):
            attempt(path)


def test_levels_and_pairs_are_those_of_the_labels(copy):
    path = copy()
    change(path, lambda d: d.update(n_pairs=1))
    with pytest.raises(DataFormatError, match="says 1 pairs"):
        Store(path).verify()
    rewrite(path, "labels", lambda a: np.negative(a, out=a))
    with pytest.raises(DataFormatError, match="not those of the labels"):
        Store(path).verify()


@pytest.mark.parametrize("again", ["read", "read_rows"])
def test_what_was_refused_once_is_refused_again(copy, again):
    """A checksum that was found right must not stand for the checks that follow it."""
    path = copy("csr")

    def swap(columns):
        row = next(k for k in range(len(columns) - 1) if columns[k] < columns[k + 1])
        columns[row : row + 2] = columns[row + 1], columns[row]

    rewrite(path, "columns", swap)
    store = Store(path)
    for _ in range(2):
        with pytest.raises(DataFormatError, match="do not increase"):
            store.read(0) if again == "read" else store.read_rows(store.chunks[0].rows)
    with pytest.raises(DataFormatError, match="do not increase"):
        store.read(0)


@pytest.mark.parametrize(("place", "value"), [(14, 1e9), (14, np.nan), (7, -1.0), (28, 1e-322)])
def test_statistics_that_no_rows_have(copy, place, value):
    path = copy()
    statistics = np.fromfile(path / "statistics.bin", "<f8")
    statistics[place] = -value if place == 28 else value
    statistics.tofile(path / "statistics.bin")
    change(path, lambda d: d["checksums"].update(statistics=[checksum(statistics)]))
    with pytest.raises(DataFormatError, match=r"statistics\.bin: holds ranges or counts"):
        _ = Store(path).statistics


def test_a_sound_chunk_is_summed_once(copy, monkeypatch):
    store = Store(copy())
    store.read(0)
    monkeypatch.setattr("linrank.io.store.chunks.checksum", lambda *a: -1)
    store.read(0)
    for read in (store.verify, lambda: store.read(1)):
        with pytest.raises(DataFormatError, match="checksum is wrong"):
            read()


def test_a_chunk_is_checked_before_some_of_its_rows_are_given(copy):
    path = copy("csr")
    values = np.fromfile(path / "values.bin", "<f4")
    values[-1] += 1
    values.tofile(path / "values.bin")
    store = Store(path)
    store.read_rows(slice(0, 3))
    with pytest.raises(DataFormatError, match=r"values\.bin.*checksum"):
        store.read_rows(store.chunks[-1].rows)


def test_arguments_of_reading(copy):
    store = Store(copy())
    for i in (-1, store.n_chunks):
        with pytest.raises(IndexError, match="numbered from 0"):
            store.read(i)
    with pytest.raises(ValueError, match="forwards"):
        store.read_rows(slice(3, 9, 2))
    with pytest.raises(ValueError, match=r"buffer\(\) of the store"):
        store.read(0, into=Buffer({}))
