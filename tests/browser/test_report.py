"""Reports in a real browser, from the disk: nothing is fetched, nothing runs, and people can read
them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from playwright.sync_api import Browser, Page

import privmax
from privmax import Privacy, report
from privmax.learning import Category, Number, PrivateGAM, Schema
from privmax.testing import SeededCoins
from tests.browser.pages import QUIET, visit, wait_until

pytestmark = pytest.mark.slow  # a browser is started

PRICE = {"epsilon": "0.4", "delta": "1e-6"}
HOSTILE = (
    """</bdi></title></style><script>document.title = "run"</script><img src=x """
    """onerror="document.title='run'">"""
)
"""A label that would run, if any place took it for markup."""


def page_about(item: str, **options: object) -> str:
    release = replace(privmax.select({item: 5000, "other": 100}, **PRICE), request="r1")
    assert release.item == item
    given = {
        "universe": "open",
        "left": Privacy(2, "9e-6"),
        "ledger": "sales",
        "account": "ada",
        **options,
    }
    return report.html(release, **given)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path: Path = tmp_path_factory.mktemp("report") / "report.html"
    report.write(page_about("rain boots", asked={"data": "searches.csv", "item": "query"}), path)
    return path


class Seen:
    """A page, what it asked for and what it complained of."""

    def __init__(self, page: Page) -> None:
        self.page, self.requests, self.complaints = page, list[str](), list[str]()
        self.stopped = dict[str, str | None]()
        page.on(
            "requestfailed", lambda request: self.stopped.update({request.url: request.failure})
        )
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("console", lambda message: self.complaints.append(message.text))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))


@contextmanager
def opened(
    browser: Browser, path: Path, width: int = 1100, scheme: str = "light"
) -> Iterator[Seen]:
    context = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme)
    seen = Seen(context.new_page())
    visit(seen.page, path.as_uri(), quiet=QUIET)
    yield seen
    context.close()


def test_only_the_file_itself_is_read_and_nothing_is_complained_of(browser, file):
    with opened(browser, file) as seen:
        assert (seen.requests, seen.complaints) == ([file.as_uri()], [])


def test_a_request_would_be_seen(browser, tmp_path):
    """The page without its policy, and with a picture from elsewhere."""
    path = tmp_path / "bad.html"
    path.write_text('<title>bad</title><img src="http://127.0.0.1:9/pixel.png">', encoding="utf-8")
    with opened(browser, path) as seen:
        wait_until(seen.page, lambda: len(seen.requests) > 1)
        assert "http://127.0.0.1:9/pixel.png" in seen.requests


def test_the_policy_keeps_out_what_a_page_would_fetch_or_run(browser, file, tmp_path):
    outside = "http://127.0.0.1:9/pixel.png"
    added = f'<img src="{outside}"><script>document.title = "run"</script></main>'
    path = tmp_path / "added.html"
    path.write_text(file.read_text(encoding="utf-8").replace("</main>", added), encoding="utf-8")
    with opened(browser, path) as seen:
        wait_until(seen.page, lambda: seen.stopped and len(seen.complaints) > 1)
        assert seen.stopped == {outside: "csp"}  # by the policy, before anything was sent
        assert seen.page.title() == "privmax: rain boots"
        assert len(seen.complaints) == 2


def test_the_first_screen_shows_the_answer_the_unit_and_the_price(browser, file):
    with opened(browser, file) as seen:
        for text in ("rain boots", "One individual", "ε = 0.4", "Budget left"):
            shown = seen.page.get_by_text(text).first
            assert shown.is_visible()
            assert shown.bounding_box()["y"] < 800


def test_the_picture_has_a_size_and_the_table_opens_without_a_script(browser, file):
    with opened(browser, file) as seen:
        box = seen.page.locator("figure svg").bounding_box()
        assert box["width"] > 500
        assert box["height"] > 150
        assert not seen.page.locator("details table").is_visible()
        seen.page.locator("summary").click()
        assert seen.page.locator("details tr.marked").inner_text().startswith("NestedMargin *")


@pytest.mark.parametrize("width", [390, 1100])
def test_the_picture_is_whole_and_its_letters_are_large_enough(browser, file, width):
    with opened(browser, file, width=width) as seen:
        figure, drawn = seen.page.locator("figure"), seen.page.locator("figure svg")
        assert figure.evaluate("one => one.scrollWidth <= one.clientWidth")
        outer, inner = figure.bounding_box(), drawn.bounding_box()
        assert inner["x"] + inner["width"] <= outer["x"] + outer["width"] <= width
        units = float(drawn.get_attribute("viewBox").split()[2])
        assert 8 * inner["width"] / units > 7  # pixels of the smallest letters, which have 8 units


@pytest.mark.parametrize("width", [320, 390, 800])
def test_no_page_scrolls_sideways(browser, tmp_path, width):
    path = tmp_path / "long.html"
    report.write(page_about("a" * 400, asked={"data": "/".join(["folder"] * 40)}), path)
    with opened(browser, path, width=width) as seen:
        assert seen.page.evaluate("document.documentElement.scrollWidth") == width


@pytest.fixture(scope="module")
def card(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model card, with names that are long and look like markup."""
    path: Path = tmp_path_factory.mktemp("card") / "card.html"
    long, random = "a" * 200, np.random.default_rng(1)
    schema = Schema({HOSTILE: Category([HOSTILE, long]), long: Number(0, 1, cells=20)})
    learner = PrivateGAM(schema, 2, 1e-6, labels=[HOSTILE, "no"], rounds=2, order="cyclic")
    learner.set_params(coins=SeededCoins(1), interactions=1, calibration=True)
    rows = pd.DataFrame({HOSTILE: [HOSTILE, long] * 450, long: random.random(900)})
    report.write(report.card(learner.fit(rows, [HOSTILE, "no"] * 450), target=long), path)
    return path


@pytest.mark.parametrize("width", [320, 390, 800])
def test_a_model_card_is_read_on_any_screen_and_runs_nothing(browser, card, width):
    with opened(browser, card, width=width) as seen:
        assert seen.page.evaluate("document.documentElement.scrollWidth") == width
        assert (seen.requests, seen.complaints) == ([card.as_uri()], [])
        assert seen.page.title() == "privmax: additive model"
        assert seen.page.locator("script, main img").count() == 0
        assert seen.page.locator("figure svg").count() == 3
        assert seen.page.locator("td bdi").first.inner_text() in (HOSTILE, "a" * 200)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_letters_stand_out_from_the_paper_in_both_schemes(browser, file, scheme):
    with opened(browser, file, scheme=scheme) as seen:
        paper, ink = seen.page.evaluate(
            "[getComputedStyle(document.body).backgroundColor, "
            "getComputedStyle(document.body).color]"
        )
        assert (brightness(paper) > brightness(ink)) == (scheme == "light")
        soft = [
            seen.page.locator(one).first.evaluate("one => getComputedStyle(one).color")
            for one in ("dt", "footer")
        ]
        for colour in (ink, *soft):
            assert contrast(paper, colour) > 4.5  # what WCAG asks of text


def test_it_prints_on_white(browser, file):
    with opened(browser, file, scheme="dark") as seen:
        seen.page.emulate_media(media="print")
        assert (
            seen.page.evaluate("getComputedStyle(document.body).backgroundColor")
            == "rgb(255, 255, 255)"
        )
        assert len(seen.page.pdf()) > 10_000


def test_a_hostile_label_is_text_wherever_it_stands(browser, tmp_path):
    everywhere = {
        "question": HOSTILE,
        "unit": HOSTILE,
        "ledger": HOSTILE,
        "account": HOSTILE,
        "proofs": [HOSTILE],
    }
    path = tmp_path / "hostile.html"
    report.write(page_about(HOSTILE, asked={HOSTILE: HOSTILE}, **everywhere), path)
    with opened(browser, path) as seen:
        assert (seen.requests, seen.complaints) == ([path.as_uri()], [])
        assert seen.page.title() == f"privmax: {HOSTILE}"
        assert seen.page.locator(".answer bdi").inner_text() == HOSTILE
        assert seen.page.locator("script, main img").count() == 0


def test_a_hostile_label_would_be_noticed(browser, tmp_path):
    """The same label in a page that does not escape it, and has no policy."""
    path = tmp_path / "naive.html"
    path.write_text(f"<title>naive</title><p>{HOSTILE}</p>", encoding="utf-8")
    with opened(browser, path) as seen:
        assert seen.page.title() == "run"
        assert seen.page.locator("script, img").count() == 2


@pytest.mark.parametrize(
    ("label", "shown"),
    [("\u202eevil", "\\u202eevil"), ("\u05e9\u05dc\u05d5\u05dd 1", "\u05e9\u05dc\u05d5\u05dd 1")],
)
def test_a_label_that_runs_from_right_to_left_turns_nothing_around(browser, tmp_path, label, shown):
    path = tmp_path / "bidi.html"
    report.write(page_about(label, asked={"data": label, "item": "query"}), path)
    with opened(browser, path) as seen:
        left, right = (
            seen.page.locator("dl.facts dt", has_text=text).bounding_box()["x"]
            for text in ("data", "item")
        )
        assert left == right
        assert seen.page.locator(".answer bdi").inner_text() == shown


def brightness(colour: str) -> float:
    """Relative luminance, as WCAG has it, of what a browser calls rgb(…)."""
    parts = [int(part) / 255 for part in colour.removeprefix("rgb(").removesuffix(")").split(",")]
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    ]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(one: str, other: str) -> float:
    low, high = sorted([brightness(one), brightness(other)])
    return (high + 0.05) / (low + 0.05)
