"""Draw the pictures of the README from the sample, with Chromium: python docs/images/draw.py"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from PIL import Image

import linrank
from linrank.cli.main import main

HERE = Path(__file__).resolve().parent
TITLE = "How well does RankSVM rank the products of a small shop?"


def draw_report() -> None:
    """The top of the report, as a browser shows it."""
    page, picture = Path("report.html").resolve(), HERE / "report.png"
    command = "report shop/test.csv --train shop/train.csv --missing mean -q -o report.html"
    assert main([*command.split(), "--title", TITLE]) == 0
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or "chromium"
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
    options += ["--blink-settings=preferredColorScheme=1", "--window-size=1200,770"]
    call = [browser, *options, f"--screenshot={picture}", page.as_uri()]
    subprocess.run(call, check=True, stderr=subprocess.DEVNULL)
    shrink(picture)


def draw_pair() -> None:
    """Why one product of a query ranks above another."""
    train, test = (linrank.load(f"shop/{name}.csv", missing="keep") for name in ("train", "test"))
    ranker = linrank.RankSVM(curves="quantile", missing="mean").fit(train)
    query = test.select(test.qid == "waterproof mug")
    order = ranker.predict(query).argsort()[::-1]
    pair = (int(order[0]), int(order[4]))
    called = tuple(query.docids[i] for i in pair)
    display = linrank.PairExplanationDisplay.from_model(ranker, query, pair, called=called, n=8)
    display.to_figure(width=6.5).savefig(HERE / "pair.png", dpi=120)
    shrink(HERE / "pair.png")


def shrink(path: Path) -> None:
    """Reduce to the few colors that letters and bars need."""
    Image.open(path).convert("RGB").quantize(64).save(path, optimize=True)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        assert main(["sample", "shop", "-q"]) == 0
        draw_report()
        draw_pair()
