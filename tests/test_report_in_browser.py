"""The report in a real browser: at desk and phone width, light and dark, without a complaint."""

import re
import shutil
import subprocess
from html import escape
from itertools import product
from pathlib import Path

import numpy as np
import pytest

import linrank
from linrank.data.synthetic import make_ranking

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")
QUIET = [
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--hide-scrollbars", "--disable-dev-shm-usage", "--enable-logging=stderr"),
]
WIDTHS = {"desk": 1280, "phone": 390}
SCHEMES = {"dark": 0, "light": 1}
PROBE = Path(__file__).with_name("probes") / "report.html"

pytestmark = pytest.mark.skipif(BROWSER is None, reason="needs chromium")


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """A page with long names, which are what breaks layouts."""
    data = make_ranking(n_queries=60, n_features=6, random_state=0)
    names = ["bm25", "age", "clicks", "x" * 80, "a name of several words that goes on", "links"]
    report = linrank.report(
        data.select(data.qid >= 40),
        train=data.select(data.qid < 40),
        feature_names=names,
        Cs=[1e-4, 1e-3, 1e-2],
        n_resamples=200,
    )
    path = tmp_path_factory.mktemp("browser") / "report.html"
    report.save(path)
    return path


def browse(page, folder, *options, width, scheme="light"):
    """Standard output and error of the browser on a page."""
    look = f"--blink-settings=preferredColorScheme={SCHEMES[scheme]}"
    where = (f"--user-data-dir={folder / 'profile'}", f"--window-size={width},2400")
    command = [BROWSER, *QUIET, *where, look, *options, page.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


@pytest.mark.parametrize(
    ("width", "scheme"),
    [
        pytest.param(width, scheme, marks=[] if same else pytest.mark.slow)
        for (k, width), (m, scheme) in product(enumerate(WIDTHS), enumerate(SCHEMES))
        for same in [k == m]
    ],
)
def test_it_is_drawn_in_its_colors_without_a_complaint(page, tmp_path, width, scheme):
    from matplotlib.image import imread

    shot = tmp_path / "shot.png"
    _, log = browse(page, tmp_path, f"--screenshot={shot}", width=WIDTHS[width], scheme=scheme)
    assert "CONSOLE" not in log
    picture = imread(shot)[..., :3]
    assert picture.shape[1] == WIDTHS[width]
    brightness = picture.mean(axis=2)
    paper = float(np.median(brightness))
    assert paper < 0.2 if scheme == "dark" else paper > 0.9
    ink = np.abs(brightness - paper) > 0.4
    assert 0.005 < ink.mean() < 0.5  # text and pictures: neither blank nor a slab
    for band in np.array_split(ink, 6):
        assert band.any()  # all the way down


def test_nothing_is_wider_than_the_screen(page, tmp_path):
    """On a desk the menu stays in view, and a ranking has its worst pair beside it."""
    html = escape(page.read_text(encoding="utf-8"))
    frames = "".join(
        f'<iframe srcdoc="{html}" width="{width}" height="900" frameborder="0"></iframe>'
        for width in WIDTHS.values()
    )
    probe = tmp_path / "probe.html"
    page_of_frames = PROBE.read_text(encoding="utf-8").replace("<!-- frames -->", frames)
    probe.write_text(page_of_frames, encoding="utf-8")
    dom, _ = browse(probe, tmp_path, "--dump-dom", width=1800)
    found = re.search(r"<title>([^<]*)</title>", dom)
    assert found[1] == "1280 of 1280: menu beside ;390 of 390: ;"


def test_the_policy_of_the_page_forbids_scripts(page, tmp_path):
    """Were a script to get in all the same, the browser would not run it, and would say so."""
    armed = tmp_path / "armed.html"
    script = "<script>document.title = 'run'</script></body>"
    html = page.read_text(encoding="utf-8")
    armed.write_text(html.replace("</body>", script), encoding="utf-8")
    dom, log = browse(armed, tmp_path, "--dump-dom", width=1280)
    assert "<title>run</title>" not in dom
    assert "CONSOLE" in log
    assert "Content Security Policy" in log
