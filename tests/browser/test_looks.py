"""What people see: pictures of six pages, on a desktop, on a phone and in the dark, kept in
screenshots/.

    ./dev docs && ./dev python -m tests.browser.test_looks site    take them again

Fonts differ between machines, so pixels are not compared. A test takes each picture again and asks
that the page is not blank, that nothing overlaps or sticks out, and that light and dark lie about
where they lay when somebody last looked.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

import privmax
from privmax import Privacy, report
from tests.browser.pages import visit

pytestmark = pytest.mark.slow  # the site is built and a browser is started

KEPT = Path(__file__).parent / "screenshots"
LARGEST = 150_000
"""Bytes of a picture that is kept."""
PAGES = {
    "home": "index.html",
    "tutorial": "tutorial.html",
    "proof": "proofs/large-margin.html",
    "reference": "reference/select.html",
    "report": "report.html",
    "notebook": "notebooks/selection.html",
}
LOOKS = {"desktop": (1280, 900, "light"), "phone": (390, 844, "light"), "dark": (1280, 900, "dark")}
ASIDE = 30
"""By how much the brightness of a part of a page may differ, on average, of 255."""

CROWDED = """() => {
    const blocks = [...document.querySelectorAll("article > *, main > *, body > section")]
        .filter(one => one.getClientRects().length && getComputedStyle(one).position === "static")
    const boxes = blocks.map(one => one.getBoundingClientRect())
    return blocks.slice(1).filter((one, place) =>
        one.parentElement === blocks[place].parentElement
            && boxes[place + 1].top < boxes[place].bottom - 1
    ).map(one => one.outerHTML.slice(0, 80))
}"""
STICKING_OUT = """() => [...document.querySelectorAll("article :is(p, li, h1, h2)")]
    .filter(one => one.getBoundingClientRect().right > innerWidth + 1)
    .map(one => one.textContent.slice(0, 80))"""


def write_report(path: Path) -> None:
    """A report whose release is certain."""
    release = privmax.select({"rain boots": 5000, "trail shoes": 100}, epsilon="0.4", delta="1e-6")
    given = {"universe": "open", "left": Privacy(2, "9e-6"), "ledger": "sales", "account": "ada"}
    report.write(report.html(release, **given), path)


def take(browser: Browser, address: str, look: str) -> Iterator[tuple[Page, Image.Image]]:
    """A page as it looks, and its picture."""
    wide, high, scheme = LOOKS[look]
    context = browser.new_context(viewport={"width": wide, "height": high}, color_scheme=scheme)  # type: ignore[arg-type]
    page = context.new_page()
    visit(page, address)
    yield page, Image.open(BytesIO(page.screenshot()))
    context.close()


def place(site: Path, reported: Path, name: str) -> str:
    return reported.as_uri() if name == "report" else (site / PAGES[name]).as_uri()


def brightness(picture: Image.Image) -> np.ndarray:
    """How bright each of some sixty parts is."""
    return np.asarray(picture.convert("L").resize((8, 8), Image.Resampling.BOX), dtype=float)


@pytest.fixture(scope="module")
def reported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path: Path = tmp_path_factory.mktemp("looks") / "report.html"
    write_report(path)
    return path


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("name", PAGES)
def test_a_page_looks_as_it_did(
    browser: Browser, site: Path, reported: Path, name: str, look: str
) -> None:
    for page, picture in take(browser, place(site, reported, name), look):
        assert page.evaluate("document.documentElement.scrollWidth") <= LOOKS[look][0]
        assert not page.evaluate(CROWDED)
        assert not page.evaluate(STICKING_OUT)
        assert np.asarray(picture.convert("L")).std() > 10, "it is blank"
        with Image.open(KEPT / f"{name}-{look}.png") as kept:
            assert kept.size == picture.size
            away = abs(brightness(kept) - brightness(picture)).mean()
        assert away < ASIDE, "look at it, and take the pictures anew"


def test_a_dark_page_is_not_a_light_one() -> None:
    """So the comparison above can fail."""
    for name in PAGES:
        light, dark = (
            brightness(Image.open(KEPT / f"{name}-{look}.png")) for look in ("desktop", "dark")
        )
        assert abs(light - dark).mean() > ASIDE, name


def test_pictures_are_small_and_all_are_shown() -> None:
    names = {f"{name}-{look}.png" for name in PAGES for look in LOOKS}
    kept = {path.name for path in KEPT.iterdir() if not path.name.startswith("explore-")}
    assert kept == names  # those of test_explore.py are looked at there
    assert max(path.stat().st_size for path in KEPT.iterdir()) < LARGEST


def test_blocks_that_overlap_are_seen(browser: Browser) -> None:
    page = browser.new_page()
    page.set_content(
        "<article><p style='height: 9px; overflow: visible'>a</p>"
        "<p style='margin-top: -30px'>b</p><h1 style='margin-left: 3000px'>c</h1></article>"
    )
    assert len(page.evaluate(CROWDED)) == 1
    assert page.evaluate(STICKING_OUT)
    page.close()


def main(site: Path) -> None:
    """Take all pictures of a site that is built."""
    from conftest import FLAGS, PROGRAM

    KEPT.mkdir(exist_ok=True)
    with TemporaryDirectory() as folder, sync_playwright() as playwright:
        reported = Path(folder) / "report.html"
        write_report(reported)
        browser = playwright.chromium.launch(executable_path=PROGRAM, args=FLAGS)
        for name in PAGES:
            for look in LOOKS:
                for _, picture in take(browser, place(site, reported, name), look):
                    small = picture.convert("RGB").quantize(64, dither=Image.Dither.NONE)
                    small.save(KEPT / f"{name}-{look}.png", optimize=True)
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
