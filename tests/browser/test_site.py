"""The site in a real browser, from the disk and from a server: it asks for nothing outside, and
search finds things.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from unicodedata import combining
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page

from tests.browser.pages import QUIET, visit

pytestmark = pytest.mark.slow  # a browser is started

ROOT = Path(__file__).resolve().parents[2]
PAGES = (
    "index.html",
    "howto/budget.html",
    "proofs/gap-test.html",
    "reference/select.html",
    "reference/mechanisms.html",
    "source/src/privmax/mechanisms/sharp_margin.py.html",
    "lab/head-to-head.html",
    "lab/itemsets-results.html",
    "notebooks/selection.html",
)


class Quiet(SimpleHTTPRequestHandler):
    """A server that keeps no log."""

    def log_message(self, *words: object) -> None:
        pass


@pytest.fixture(scope="module")
def disk(site: Path) -> str:
    """Where the site begins on the disk: enough for what does not depend on how it is fetched."""
    return site.as_uri()


@pytest.fixture(scope="module", params=["disk", "server"])
def address(request: pytest.FixtureRequest, site: Path) -> Iterator[str]:
    """Where the site begins."""
    if request.param == "disk":
        yield site.as_uri()
        return
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=site))
    thread = Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


class Watched:
    """A page, with all it asked for and complained about."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.asked: list[str] = []
        self.complaints: list[str] = []
        page.on("request", lambda request: self.asked.append(request.url))
        page.on("requestfailed", lambda request: self.complaints.append(request.url))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("console", self.heard)

    def heard(self, said: ConsoleMessage) -> None:
        if said.type in ("error", "warning"):
            self.complaints.append(said.text)

    def check(self, address: str) -> None:
        outside = [
            url for url in self.asked if not url.startswith((address, "data:", "blob:", "about:"))
        ]
        assert self.asked
        assert not outside
        assert not self.complaints


@pytest.fixture
def watched(browser: Browser) -> Iterator[Watched]:
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    yield Watched(context.new_page())
    context.close()


@pytest.mark.parametrize("path", PAGES)
def test_a_page_asks_for_nothing_outside_and_complains_of_nothing(
    watched: Watched, address: str, path: str
) -> None:
    visit(watched.page, f"{address}/{path}", quiet=QUIET)
    assert watched.page.locator("h1").first.inner_text()
    watched.check(address)


def test_search_finds_a_proof(watched: Watched, address: str) -> None:
    watched.page.goto(f"{address}/howto/unit.html")
    watched.page.locator("[data-md-component=search-query]").click()
    watched.page.keyboard.type("nested margin mechanism")
    found = watched.page.locator(".md-search-result__item a.md-search-result__link").first
    found.wait_for()
    watched.page.wait_for_function(
        "document.querySelectorAll('.md-search-result__item').length > 1"
    )
    links = watched.page.locator(".md-search-result__link").evaluate_all(
        "all => all.map(one => one.href)"
    )
    assert any(urlsplit(link).path.endswith("/proofs/nested-margin.html") for link in links)
    watched.check(address)


def test_code_has_colours(watched: Watched, disk: str) -> None:
    for path, keyword in (("howto/parquet.html", ".highlight .kn"), (PAGES[5], ".source .kn")):
        watched.page.goto(f"{disk}/{path}")
        script = "word => [word, word.closest('code')].map(one => getComputedStyle(one).color)"
        coloured, plain = watched.page.locator(keyword).first.evaluate(script)
        assert coloured != plain


def test_signs_of_code_line_up(watched: Watched, disk: str) -> None:
    """Every sign of the source is as wide as a digit in the font of the blocks, which is the one
    the site brings.
    """
    texts = [file.read_text(encoding="utf-8") for file in (ROOT / "src").rglob("*.py")]
    signs = sorted({sign for sign in "".join(texts) if ord(sign) > 127 and not combining(sign)})
    assert {"ε", "≤", "⌈", "ℓ"} <= set(signs)
    watched.page.goto(f"{disk}/howto/parquet.html")
    used = watched.page.locator("pre code").first.evaluate(
        "where => getComputedStyle(where).fontFamily"
    )
    assert used.startswith('"Site Mono", "Site Mono Lacking"')
    measured = watched.page.evaluate(
        """async signs => {
            const font = '100px "Site Mono", "Site Mono Lacking"'
            const fonts = await document.fonts.load(font, signs.join(""))
            const pen = document.createElement("canvas").getContext("2d")
            pen.font = font
            const wide = text => Math.round(pen.measureText(text).width)
            return [fonts.length, signs.filter(sign => wide(sign) !== wide("0"))]
        }""",
        signs,
    )
    assert measured == [2, []]


def test_formulas_are_typeset(watched: Watched, disk: str) -> None:
    """In the font that the site brings: subscripts stand lower, fractions are higher, and brackets
    grow with what they hold.
    """
    visit(watched.page, f"{disk}/proofs/large-margin.html")
    measured = watched.page.evaluate(
        """() => {
            const box = one => one.getBoundingClientRect()
            const display = document.querySelector(".formula")
            const script = document.querySelector("math msub").children
            return {
                font: getComputedStyle(document.querySelector("math")).fontFamily,
                loaded: [...document.fonts]
                    .filter(one => one.status === "loaded").map(one => one.family),
                lower: box(script[1]).bottom - box(script[0]).bottom,
                smaller: box(script[1]).height / box(script[0]).height,
                fraction: box(display.querySelector("mfrac")).height,
                bracket: box(display.querySelector("mo[stretchy=true]")).height,
                letter: box(display.querySelector("mi")).height,
            }
        }"""
    )
    assert measured["font"].startswith('"Site Mathematics"')
    assert any("Site Mathematics" in family for family in measured["loaded"])
    assert measured["lower"] > 1
    assert measured["smaller"] < 0.95
    assert measured["fraction"] > 1.5 * measured["letter"]
    assert measured["bracket"] > 1.5 * measured["letter"]
    watched.check(disk)


@pytest.mark.parametrize("wide", [1280, 390])
@pytest.mark.parametrize("path", ["howto/budget.html", "tutorial.html", "lab/mistakes.html"])
def test_no_command_hides_under_the_copy_button(
    browser: Browser, disk: str, path: str, wide: int
) -> None:
    context = browser.new_context(viewport={"width": wide, "height": 900})
    page = context.new_page()
    visit(page, f"{disk}/{path}")
    hidden = page.evaluate(
        """() => [...document.querySelectorAll("pre")].map(block => {
            const button = block.querySelector("button")
            const code = block.querySelector("code")
            if (!button || !code) return null
            return code.getBoundingClientRect().right - button.getBoundingClientRect().left
        })"""
    )
    assert hidden
    assert all(by is not None and by <= 1 for by in hidden)
    context.close()


def test_the_first_column_of_a_wide_table_stays_on_a_phone(browser: Browser, disk: str) -> None:
    context = browser.new_context(viewport={"width": 390, "height": 844})
    page = context.new_page()
    visit(page, f"{disk}/lab/itemsets-results.html")
    tables = page.evaluate(
        """() => [...document.querySelectorAll(".md-typeset__scrollwrap")].map(wrap => {
            const cells = [...wrap.querySelectorAll("tbody tr:first-child td")]
            wrap.scrollLeft = 10000
            const left = cells.map(one => one.getBoundingClientRect().left)
            return [wrap.scrollLeft, left[0], left[1], wrap.getBoundingClientRect().right]
        })"""
    )
    moved = [table for table in tables if table[0] > 20]
    assert len(moved) > 3
    for _, first, second, right in moved:
        assert first >= 0
        assert second < first + 150
        assert right <= 390
    context.close()


@pytest.mark.parametrize("path", PAGES)
def test_a_phone_need_not_scroll_sideways(browser: Browser, disk: str, path: str) -> None:
    context = browser.new_context(viewport={"width": 390, "height": 844}, color_scheme="dark")
    page = context.new_page()
    page.goto(f"{disk}/{path}")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert page.locator("body").get_attribute("data-md-color-scheme") == "slate"
    context.close()
