"""Write the golden files anew: ``python tests/export/regenerate.py``, then read the difference.

Golden files are there to be read by eye, against the documentation of the engine, whenever they
change; the other tests say whether they rank rightly.
"""

from __future__ import annotations

import shutil

from golden_models import CASES, FOLDER, artefact_of, texts_of


def main() -> None:
    shutil.rmtree(FOLDER, ignore_errors=True)
    for case in CASES:
        folder = FOLDER / case
        folder.mkdir(parents=True)
        for name, text in texts_of(artefact_of(case)).items():
            (folder / name).write_text(text, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
