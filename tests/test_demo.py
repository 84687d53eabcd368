"""The demo runs, learns something, and leaves a folder that stands alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from linrank import RankSVM, demo
from linrank.models.linear import load_model


@pytest.fixture(scope="module")
def small():
    return demo.run()


def test_learning_beats_the_baselines(small):
    random, single, learnt, curved = (result["ndcg@10"] for result in small.test.values())
    assert random < single - 0.1 < single < learnt < curved


def test_the_choice_is_the_best_in_the_folds(small):
    tuning = small.training.tuning
    assert tuning.mean_scores[tuning.chosen] == tuning.mean_scores.max()
    assert tuning.Cs[tuning.chosen] == small.training.tuning.C


def test_the_certificate_bounds_the_minimum(small):
    """The minimum lies between F - gap and F."""
    train, result = small.parts["train"], small.training.result
    fine = RankSVM(C=small.training.tuning.C, tol=1e-9)
    minimum = fine.fit(train.X, train.y, qid=train.qid).objective_
    rounding = 1e-7 * minimum  # the rows are float32
    assert result.converged
    assert result.value - result.gap - rounding <= minimum <= result.value + rounding


def test_folder_holds_everything_it_names(tmp_path, capsys, monkeypatch, small):
    monkeypatch.setattr(demo, "run", lambda: small)
    folder = tmp_path / "out"
    assert demo.main([str(folder)]) == 0
    text, page = capsys.readouterr().out, (folder / "report.html").read_text()
    for word in ("certificate for C", "pairwise_accuracy", str(folder / "report.html")):
        assert word in text
    assert page.count("<svg") == 6
    assert "sample test queries" in page
    assert "clicks_30d" in page
    saved = load_model(folder / "model.json")
    scores = saved.predict(small.page.material.test.X)
    np.testing.assert_allclose(scores, small.page.material.ranking.scores)


@pytest.mark.usefixtures("plain")
def test_without_matplotlib_it_says_so_and_goes_on(tmp_path, small, capsys):
    written = demo._write(replace(small, page=replace(small.page)), str(tmp_path))
    assert "pip install matplotlib" in capsys.readouterr().err
    assert [path.rsplit("/", 1)[1] for path in written] == ["model.json", "report.html"]
    page = (tmp_path / "report.html").read_text()
    assert "<svg" not in page
    assert "pip install matplotlib" in page


def test_a_file_in_the_place_of_the_folder_is_told(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    with pytest.raises(SystemExit):
        demo.main([str(tmp_path / "file")])
    assert "is a file; name a folder" in capsys.readouterr().err
