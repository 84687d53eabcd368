"""The demo runs the commands that it shows, learns something, and leaves what it names."""

from __future__ import annotations

import re

import pytest

from linrank import demo, evaluate, load, load_model


def test_it_learns_and_leaves_what_it_names(tmp_path, capsys):
    folder = tmp_path / "out"
    assert demo.main([str(folder)]) == 0
    out, err = capsys.readouterr()
    shown = re.findall(r"^\$ linrank (\w+) ", err, re.MULTILINE)
    assert shown == [command.split()[0] for command in demo.COMMANDS]
    assert "above the minimum: certified by the dual" in err
    names = "random (baseline)", "best-feature", "ranksvm", "curves"
    mean = {name: re.search(rf"^{re.escape(name)} +(0\.\d+)", out, re.MULTILINE) for name in names}
    random, single, learnt, curved = (float(mean[name][1]) for name in names)
    assert random < single - 0.1 < single < learnt < curved
    assert f"see {folder / 'report.html'}" in out
    page, test = (folder / "report.html").read_text(), load(folder / "test")
    assert page.count("<svg") == 6
    assert "clicks_30d" in page
    scores = load_model(folder / "model.json").predict(test)
    assert evaluate(test.y, scores, qid=test.qid, metrics="ndcg@10")["ndcg@10"] > single


@pytest.mark.usefixtures("plain")
def test_without_matplotlib_it_says_so_and_goes_on(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(demo, "COMMANDS", demo.COMMANDS[-1:])
    assert demo.main([str(tmp_path)]) == 0
    assert "pip install matplotlib" in capsys.readouterr().err
    page = (tmp_path / "report.html").read_text()
    assert "<svg" not in page
    assert "pip install matplotlib" in page


def test_a_command_that_fails_ends_it(tmp_path, monkeypatch):
    monkeypatch.setattr(demo, "COMMANDS", ("inspect {}/none", *demo.COMMANDS))
    assert demo.main([str(tmp_path)]) == 1
    assert not (tmp_path / "report.html").exists()


def test_a_file_in_the_place_of_the_folder_is_told(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    with pytest.raises(SystemExit):
        demo.main([str(tmp_path / "file")])
    assert "is a file; name a folder" in capsys.readouterr().err


def test_a_folder_with_files_of_others_is_left_alone(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(demo, "COMMANDS", ())
    (tmp_path / "own" / "train").mkdir(parents=True)
    with pytest.raises(SystemExit):
        demo.main([str(tmp_path / "own")])
    assert "own has other files in it; name a new folder" in capsys.readouterr().err
    assert list((tmp_path / "own" / "train").iterdir()) == []
    for _ in range(2):  # its own folder takes it again
        assert demo.main([str(tmp_path / "made")]) == 0
