"""SVG for pages: well-formed, closed in itself, the same every time, in the colors of the page."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import matplotlib
import numpy as np
import pytest
from matplotlib.figure import Figure

from display_cases import HOSTILE, SCRIPT, cases
from linrank import WeightsDisplay, themed_svg
from linrank.displays import THEME_CSS

CASES = cases()
NAMESPACE = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def pictures():
    return {name: display.to_svg() for name, display in CASES.items()}


def figure_of(color="#0072B2", **options):
    figure = Figure(layout="constrained", **options)
    figure.subplots().plot([1, 2], [3, 4], "o-", color=color)
    return figure


def test_pictures_are_elements_of_xml(pictures):
    for name, svg in pictures.items():
        assert svg.startswith("<svg "), name
        root = ElementTree.fromstring(svg)
        assert root.tag == f"{NAMESPACE}svg"
        allowed = {"svg", "g", "path", "use", "defs", "text", "clipPath", "rect", "title", "desc"}
        allowed |= {"image"} if name.startswith(("grid", "support")) else set()
        tags = {element.tag.removeprefix(NAMESPACE) for element in root.iter()}
        assert tags <= allowed | {"tspan"}, (name, tags - allowed)


def test_pictures_refer_to_nothing_outside(pictures):
    for name, svg in pictures.items():
        assert re.findall(r"https?://[^\"]*", svg) == ["http://www.w3.org/2000/svg"], name
        for link in re.findall(r'href="([^"]*)"', svg) + re.findall(r"url\(([^)]*)\)", svg):
            assert link.startswith(("#", "data:image/png;base64,")), name
        assert "@import" not in svg
        assert "<style" not in svg


def test_ids_are_unique_across_pictures_and_all_are_found(pictures):
    ids = [i for svg in pictures.values() for i in re.findall(r'\bid="([^"]*)"', svg)]
    assert len(ids) == len(set(ids))
    for svg in pictures.values():
        own = set(re.findall(r'\bid="([^"]*)"', svg))
        used = set(re.findall(r"(?:href=\"|url\()#([\w-]+)", svg))
        labeled = set(re.search(r'aria-labeledby="([^"]*)"', svg)[1].split())
        assert used | labeled == own


def test_the_same_picture_twice_takes_a_prefix():
    one, two = (WeightsDisplay([1.0, 2.0]).to_svg(id_prefix=p) for p in ("a", "b"))
    assert set(re.findall(r'\bid="([^"]*)"', one)).isdisjoint(re.findall(r'\bid="([^"]*)"', two))
    with pytest.raises(ValueError, match="id_prefix must be a letter"):
        WeightsDisplay([1.0]).to_svg(id_prefix='1"')


@pytest.mark.parametrize("name", ["convergence", "scatter, hostile", "comparison"])
def test_the_same_data_give_the_same_bytes(pictures, name):
    assert cases()[name].to_svg() == pictures[name]


def test_settings_of_the_user_do_not_matter(pictures):
    with matplotlib.rc_context(
        {"font.size": 30, "axes.facecolor": "black", "svg.fonttype": "path"}
    ):
        assert CASES["weights"].to_svg() == pictures["weights"]
        assert matplotlib.rcParams["font.size"] == 30


def test_pictures_are_small(pictures):
    for name, svg in pictures.items():
        assert len(svg) < (300_000 if "many" in name else 60_000), (name, len(svg))


def test_pictures_say_what_they_are(pictures):
    for name, svg in pictures.items():
        root = ElementTree.fromstring(svg)
        title, desc = root[0], root[1]
        assert (title.tag, desc.tag) == (f"{NAMESPACE}title", f"{NAMESPACE}desc")
        assert (title.text, desc.text) == (CASES[name].title, CASES[name].description)
        assert root.get("role") == "img"
        assert root.get("aria-labeledby") == f"{title.get('id')} {desc.get('id')}"


def test_text_is_text_of_the_page(pictures):
    svg = pictures["weights, hostile"]
    texts = [e.text for e in ElementTree.fromstring(svg).iter(f"{NAMESPACE}text")]
    assert "_starts_with_underscore" in texts
    assert "$x_1$ and $\\frac{1}{0}$" in texts
    assert "two lines and\ufffda\ufffdcontrol" in texts
    assert SCRIPT[:13] in "".join(texts)
    assert "<script" not in svg
    assert "&lt;script&gt;" in svg
    assert "DejaVu" not in svg


def test_hostile_names_are_escaped_everywhere(pictures):
    for name, svg in pictures.items():
        assert "<script" not in svg, name
        assert "\x00" not in svg, name
        svg.encode("utf-8")
    svg = themed_svg(figure_of(), SCRIPT, "a & b\x00 <i>")
    title, desc = ElementTree.fromstring(svg)[:2]
    assert title.text == SCRIPT
    assert desc.text == "a & b  <i>"


@pytest.mark.filterwarnings("error")
def test_names_in_other_scripts_do_not_warn():
    WeightsDisplay([1.0, 2.0], HOSTILE[7:9]).to_svg()


def test_colors_are_those_of_the_page(pictures):
    known = {"#0072b2", "#d55e00", "#767676", "#808080"}
    for name, svg in pictures.items():
        bare = re.sub(r"var\(--linrank-[a-z]+, [^)]*\)", "", svg)
        bare = re.sub(r"url\(#[^)]*\)|href=\"#[^\"]*\"", "", bare)
        drawn = re.sub(r"<(title|desc)[^>]*>[^<]*</\1>", "", bare)
        assert re.findall(r"(?:fill|stroke): (#[0-9a-f]+)", drawn) == [], name
        assert set(re.findall(r"var\(--linrank-[a-z]+, (#\w+)\)", svg)) <= known
    assert "var(--linrank-blue, #0072b2)" in pictures["weights"]
    assert "var(--linrank-orange, #d55e00)" in pictures["weights"]
    assert 'fill="currentColor"' in pictures["weights"]


def luminance(color):
    channels = [int(color[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, two):
    high, low = sorted((luminance(one), luminance(two)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_data_colors_can_be_seen_on_light_and_on_dark():
    """A contrast of 3 is what the WCAG asks of graphics: for the defaults on both."""
    for color in ("#0072b2", "#d55e00", "#767676"):
        assert contrast(color, "#ffffff") > 3
        assert contrast(color, "#15171a") > 3
    light, dark = THEME_CSS.split("@media")
    for color in re.findall(r"#\w{6}", light):
        assert contrast(color, "#ffffff") > 3
    for color in re.findall(r"#\w{6}", dark):
        assert contrast(color, "#15171a") > 5


def test_any_figure_can_be_themed_and_stays_as_it_is():
    figure = figure_of("#123456", facecolor="red")
    svg = themed_svg(figure, "t", "d")
    assert "stroke: #123456" in svg  # a color of the user
    assert "#ff0000" not in svg  # no background
    assert figure.get_facecolor() == (1.0, 0.0, 0.0, 1.0)


def test_images_are_inside():
    figure = Figure()
    figure.subplots().imshow(np.arange(4.0).reshape(2, 2))
    svg = themed_svg(figure, "t", "d")
    (image,) = ElementTree.fromstring(svg).iter(f"{NAMESPACE}image")
    assert image.get("href").startswith("data:image/png;base64,")


def test_the_picture_is_as_wide_as_the_page_at_most(pictures):
    root = ElementTree.fromstring(pictures["weights"])
    assert root.get("width") == "432"  # 4.5 inches of 96 pixels
    assert root.get("style") == "max-width: 100%; height: auto"
    wide = ElementTree.fromstring(CASES["weights"].to_svg(width=8))
    assert wide.get("width") == "768"
    assert wide.get("viewBox").split()[2] == "576"


@pytest.mark.parametrize("name", ["weights", "scatter, one"])
def test_titles_can_be_left_to_a_caption(name, pictures):
    """The drawing loses its title and gains the room; screen readers keep theirs."""
    display = CASES[name]
    with_title, without = (
        ElementTree.fromstring(svg) for svg in (pictures[name], display.to_svg(show_title=False))
    )
    drawn = [
        ["".join(e.itertext()) for e in root.iter(f"{NAMESPACE}text")]
        for root in (with_title, without)
    ]
    assert set(drawn[1]) < set(drawn[0])
    assert without.find(f"{NAMESPACE}title").text == display.title
    assert without.find(f"{NAMESPACE}desc").text == display.description


def test_the_drawing_is_all_there(pictures):
    """Every bar and every circle is in the file, at its place."""
    root = ElementTree.fromstring(pictures["scatter, one"])
    circles = [e for e in root.iter(f"{NAMESPACE}use") if e.get("style", "").count("opacity")]
    assert len(circles) == 1
    many = pictures["scatter, many"]
    points = 9000
    assert 2000 < many.count("<use ") < points
    rows = [t.text for t in ElementTree.fromstring(pictures["weights"]).iter(f"{NAMESPACE}text")]
    assert len([r for r in rows if re.fullmatch(r"feature \d+", r)]) == 30
