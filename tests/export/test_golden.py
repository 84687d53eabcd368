"""Artefacts are what they were when somebody last read them beside the engine's documentation."""

from __future__ import annotations

import pytest
from golden_models import CASES, FOLDER, artefact_of, texts_of


@pytest.mark.parametrize("case", CASES)
def test_the_artefact_is_the_one_that_was_read(case):
    golden = {
        path.name: path.read_text(encoding="utf-8") for path in sorted((FOLDER / case).iterdir())
    }
    # Changed on purpose? Run tests/export/regenerate.py and read what it changes.
    assert texts_of(artefact_of(case)) == golden


def test_there_is_no_golden_file_of_another_time():
    assert {path.name for path in FOLDER.iterdir()} == set(CASES)
