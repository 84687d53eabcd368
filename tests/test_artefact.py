"""Artefacts: what they say of themselves, and that they are written whole or not at all."""

from __future__ import annotations

import os

import pytest

from linrank.export.artefact import Artefact

ONE = Artefact("solr", {"model.json": b"{}\n"}, "Put model.json there.\n")
TOLD = "First more.json, then @model.json, not a.model.json.\n"
TWO = Artefact("solr", {"model.json": b"{}\n", "more.json": b"[]\n"}, TOLD, ("careful",))


def test_what_it_says_of_itself():
    assert repr(ONE) == "<Artefact for solr: model.json (3 bytes)>"
    assert repr(TWO).endswith("more.json (3 bytes); 1 warning>")
    assert TWO.text == "{}\n"
    with pytest.raises(ValueError, match="no text"):
        _ = Artefact("onnx", {"m.onnx": b"\xff\xfe"}, "").text


BESIDE = "First es.more.json, then @es.json, not a.model.json.\n"
SAVED = [
    (ONE, "it.json", ["it.json", "it.README.txt"], "Put it.json there.\n"),
    (TWO, "es.json", ["es.json", "es.more.json", "es.README.txt"], BESIDE),
    (TWO, "out", ["out/model.json", "out/more.json", "out/README.txt"], TOLD),
    (TWO, "out/", ["out/model.json", "out/more.json", "out/README.txt"], TOLD),
    (ONE, "out/", ["out/model.json", "out/README.txt"], ONE.instructions),
    (ONE, "", ["model.json", "README.txt"], ONE.instructions),  # a folder that is there
]


@pytest.mark.parametrize(("artefact", "path", "names", "told"), SAVED)
def test_files_and_instructions_go_where_the_path_says(tmp_path, artefact, path, names, told):
    for _ in range(2):  # the second time over the old ones
        assert artefact.save(f"{tmp_path}/{path}") == [str(tmp_path / name) for name in names]
    found = {str(f.relative_to(tmp_path)): f for f in tmp_path.rglob("*") if f.is_file()}
    contents = [*artefact.files.values(), told.encode()]
    assert {name: f.read_bytes() for name, f in found.items()} == dict(
        zip(names, contents, strict=True)
    )


@pytest.mark.parametrize(
    ("artefact", "name", "error", "told"),
    [
        (TWO, "there", NotADirectoryError, r"2 files \(model.json, more.json\)"),
        (ONE, "nowhere/model.json", FileNotFoundError, "there is no folder"),
    ],
)
def test_a_place_that_cannot_be_is_named(tmp_path, artefact, name, error, told):
    (tmp_path / "there").write_text("old")
    with pytest.raises(error, match=told):
        artefact.save(tmp_path / name)
    assert os.listdir(tmp_path) == ["there"]


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
