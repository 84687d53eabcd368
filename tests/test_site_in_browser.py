"""The built documentation in a real browser: every page at desk and phone width.

Slow, and of use only where there is a site: `make docs`, then
`python -m pytest -m slow tests/test_site_in_browser.py` (`make docs-check` does both).
"""

from __future__ import annotations

import functools
import json
import re
import subprocess
import threading
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urldefrag, urljoin

import pytest

from test_report_in_browser import BROWSER, QUIET

SITE = Path(__file__).resolve().parent.parent / "docs" / "_build" / "html"
SECTIONS = ["Get started", "Guide", "Methods", "Scale and production", "Reference"]

PROBE = Path(__file__).with_name("probes") / "site.html"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(BROWSER is None, reason="needs chromium: make browser"),
    pytest.mark.skipif(not (SITE / "index.html").exists(), reason="needs the site: make docs"),
]


def page_names() -> list[str]:
    names = (path.relative_to(SITE).as_posix() for path in SITE.rglob("*.html"))
    return sorted(name for name in names if not name.startswith("_"))


class Server(ThreadingHTTPServer):
    """The site, the probe beside it, and what the probe sends."""

    found: dict | None = None
    done: threading.Event

    def handle_error(self, request, client_address):
        """The browser hangs up on what it no longer needs when it goes to the next page."""


class Handler(SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass

    def _send(self, content: bytes, kind: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def do_GET(self):
        if self.path == "/probe.html":
            self._send(PROBE.read_bytes(), "text/html; charset=utf-8")
        elif self.path == "/pages.json":
            self._send(json.dumps(page_names()).encode(), "application/json")
        elif self.path == "/favicon.ico":
            self._send(b"", "image/x-icon")
        else:
            super().do_GET()

    def do_POST(self):
        content = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.found = json.loads(content)
        self._send(b"", "text/plain")
        self.server.done.set()


@pytest.fixture(scope="module")
def visit(tmp_path_factory):
    """What the browser finds on every page, and its log."""
    folder = tmp_path_factory.mktemp("browser")
    with Server(("127.0.0.1", 0), functools.partial(Handler, directory=str(SITE))) as server:
        server.done = threading.Event()
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/probe.html"
        command = [BROWSER, *QUIET, f"--user-data-dir={folder / 'profile'}"]
        # Without a debugging port a headless browser leaves once the page has loaded.
        command += ["--window-size=1500,1000", "--remote-debugging-port=0", url]
        with (folder / "log").open("w") as log:
            browser = subprocess.Popen(command, stdout=log, stderr=log)
            try:
                assert server.done.wait(1500), (folder / "log").read_text()[-2000:]
            finally:
                browser.terminate()
                browser.wait(30)
                server.shutdown()
    assert "error" not in server.found, server.found
    return server.found, (folder / "log").read_text(errors="replace")


def test_no_page_scrolls_sideways(visit):
    found, _ = visit
    wide = {
        (name, width): seen[width]["wide"]
        for name, seen in found.items()
        for width, room in (("desk", 1366), ("phone", 390))
        if seen[width]["scroll"] > room
    }
    assert not wide


def test_no_page_complains(visit):
    _, log = visit
    said = [line for line in log.splitlines() if "CONSOLE" in line]
    theme = re.compile(r'"(\[PST\]:|Got invalid theme mode)')  # what the theme says of itself
    assert [line for line in said if not theme.search(line)] == []


def test_the_menu_is_within_reach_of_every_page(visit):
    found, _ = visit
    for name, seen in found.items():
        assert set(SECTIONS) <= set(seen["menu"]), name
        assert all(section in seen["opened"] for section in SECTIONS), name  # by the button
        assert seen["sidebar"] > 1 or name in ("index.html", "search.html", "genindex.html"), name


def test_the_search_finds_pages(visit):
    assert visit[0]["search.html"]["results"] > 3


def test_formulas_are_typeset_without_a_network(visit):
    found, _ = visit
    assert {name for name, seen in found.items() if seen["raw"] or seen["errors"]} == set()
    assert not re.search(r"(cdn\.|unpkg|googleapis)", (SITE / "methods.html").read_text())


class Links(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        for key, value in attrs:
            if key == "id" or (key == "name" and tag == "a"):
                self.ids.add(value or "")
            elif key == "href" or (key == "src" and tag in ("img", "script")):
                self.links.append(value or "")


def test_no_internal_link_is_dead():
    pages = {name: Links((SITE / name).read_text(encoding="utf-8")) for name in page_names()}
    dead = []
    for name, page in pages.items():
        for link in set(page.links):
            if re.match(r"[a-z]+:|//", link):
                continue
            target, anchor = urldefrag(urljoin(f"http://site/{name}", link))
            path = unquote(target.removeprefix("http://site/").partition("?")[0]) or "index.html"
            ids = pages[path].ids if path in pages else {anchor}
            if not (SITE / path).exists() or (anchor and not {anchor, unquote(anchor)} & ids):
                dead.append((name, link))
    assert dead == []
