"""Artefacts: what they say of themselves, and that they are written whole or not at all."""

from __future__ import annotations

import os

import pytest

from linrank.export.artefact import Artefact

ONE = Artefact("solr", {"model.json": b"{}\n"}, "Put model.json there.\n")
TWO = Artefact("solr", {"model.json": b"{}\n", "more.json": b"[]\n"}, "Two.\n", ("careful",))


def test_repr_is_short():
    assert repr(ONE) == "<Artefact for solr: model.json (3 bytes)>"
    assert repr(TWO).endswith("more.json (3 bytes); 1 warning>")


def test_text_is_the_first_file():
    assert TWO.text == "{}\n"
    with pytest.raises(ValueError, match="no text"):
        _ = Artefact("onnx", {"m.onnx": b"\xff\xfe"}, "").text


def test_one_file_with_instructions_that_know_its_name(tmp_path):
    path = tmp_path / "ranker.json"
    assert ONE.save(path) == [str(path), str(tmp_path / "ranker.README.txt")]
    assert path.read_bytes() == b"{}\n"
    assert (tmp_path / "ranker.README.txt").read_text() == "Put ranker.json there.\n"
    assert sorted(os.listdir(tmp_path)) == ["ranker.README.txt", "ranker.json"]


def test_several_files_go_to_a_folder(tmp_path):
    folder = tmp_path / "out"
    written = TWO.save(folder)
    assert [os.path.basename(path) for path in written] == ["model.json", "more.json", "README.txt"]
    assert sorted(os.listdir(folder)) == ["README.txt", "model.json", "more.json"]
    TWO.save(folder)  # again, over the old ones
    assert sorted(os.listdir(folder)) == ["README.txt", "model.json", "more.json"]


def test_one_file_into_a_folder_that_is_there(tmp_path):
    assert ONE.save(tmp_path)[0] == str(tmp_path / "model.json")
    assert (tmp_path / "README.txt").read_text() == "Put model.json there.\n"


def test_a_file_is_no_folder(tmp_path):
    path = tmp_path / "there"
    path.write_text("old")
    with pytest.raises(NotADirectoryError, match=r"2 files \(model.json, more.json\)"):
        TWO.save(path)
    assert os.listdir(tmp_path) == ["there"]


def test_several_files_beside_the_one_that_is_named(tmp_path):
    told = Artefact("solr", TWO.files, "First more.json, then @model.json, not a.model.json.\n")
    names = ["es.json", "es.more.json", "es.README.txt"]
    assert told.save(tmp_path / "es.json") == [str(tmp_path / name) for name in names]
    assert sorted(os.listdir(tmp_path)) == sorted(names)
    assert (tmp_path / "es.json").read_bytes() == b"{}\n"
    assert (tmp_path / "es.more.json").read_bytes() == b"[]\n"
    assert (tmp_path / "es.README.txt").read_text() == (
        "First es.more.json, then @es.json, not a.model.json.\n"
    )


@pytest.mark.parametrize("artefact", [ONE, TWO])
def test_a_name_with_a_slash_is_a_folder(tmp_path, artefact):
    written = artefact.save(f"{tmp_path}/made/")
    assert sorted(os.listdir(tmp_path / "made")) == sorted([*artefact.files, "README.txt"])
    assert [os.path.basename(path) for path in written] == [*artefact.files, "README.txt"]


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        ONE.save(tmp_path / "nowhere" / "model.json")


def test_nothing_stays_of_a_failure(tmp_path, monkeypatch):
    """The second file cannot be written: neither the first nor the folder is left."""
    calls = []

    def full(descriptor):
        calls.append(descriptor)
        if len(calls) == 2:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        TWO.save(tmp_path / "out")
    assert os.listdir(tmp_path) == []


def test_a_failure_keeps_what_was_there(tmp_path, monkeypatch):
    path = tmp_path / "model.json"
    path.write_text("old")

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        ONE.save(path)
    assert os.listdir(tmp_path) == ["model.json"]
    assert path.read_text() == "old"


@pytest.mark.skipif(not os.path.exists("/dev/null"), reason="needs a device")
def test_devices_are_written_to_and_not_replaced():
    assert ONE.save("/dev/null") == ["/dev/null"]
    assert not os.path.isfile("/dev/null")


@pytest.mark.parametrize("name", ["it's.json", "a b.json", "$(x).json", '".json', "a\nb.json"])
def test_a_name_that_a_shell_would_change_stays_out_of_the_instructions(tmp_path, name):
    ONE.save(tmp_path / name)
    told = (tmp_path / f"{name[:-5]}.README.txt").read_text()
    assert told == f"What is called model.json here has been written as {name!r}.\n\n" + (
        ONE.instructions
    )
