"""`privmax explore` in a real browser: from a plan to a release to the history.

./dev python tests/browser/test_explore.py    take the pictures in screenshots/ anew
"""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Browser, BrowserContext, Page, Route, expect, sync_playwright

from privmax.ledger import Ledger
from privmax.privacy import Privacy
from tests.browser.pages import wait_until_drawn

pytestmark = pytest.mark.slow

HERE = Path(__file__).parent
KEPT = HERE / "screenshots"
AXE = (HERE / "vendor" / "axe-4.14.0.min.js").read_text(encoding="utf-8")
LARGEST, ASIDE = 150_000, 30  # as in test_looks.py
LOOKS = {
    "desktop": (1280, 900, "light"),
    "phone": (390, 844, "light"),
    "dark": (1280, 900, "dark"),
    "dark-phone": (390, 844, "dark"),
}
HELD = """
import sys, time, pathlib
from privmax.explore import datasets, state
state.Explorer.compute.__kwdefaults__["seconds"] = 600.0
read = datasets.open_data
def wait(*given):
    while pathlib.Path("hold").exists(): time.sleep(0.05)
    return read(*given)
datasets.open_data = wait
from privmax.cli import main
sys.exit(main(prog_name="privmax"))
"""
"""The command; what is asked waits, after its charge, while a file “hold” is there. A busy machine
may compute for long.
"""

PATIENCE = 120_000
"""Milliseconds that a page may take where a machine is busy with other tests."""

ABORTED = ("console htmx:afterRequest", "console htmx:sendAbort")
"""What htmx says where a newer request took the place of an older one."""

EVIL = "<img src=x onerror=alert(1)><script>alert(2)</script>"


@dataclass
class Server:
    """A server that can be killed and started again, and its ledger."""

    folder: Path
    port: int = 0
    address: str = ""
    process: subprocess.Popen[str] | None = None
    words: list[str] = field(default_factory=list)

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        program = [sys.executable, "-c", HELD, "explore", "--ledger", "budget.db"]
        program += ["--data", "searches=sample:searches", "--data", "log=log.csv"]
        program += ["--user", "log=person", "--columns", "log=drink", "--port", str(self.port)]
        self.process = subprocess.Popen(
            program, cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        assert self.process.stdout is not None
        for line in self.process.stdout:
            found = re.search(r"Open (http://127\.0\.0\.1:(\d+)/\S+)", line)
            if found:
                self.address, self.port = found[1], int(found[2])
                return
            self.words.append(line)
        raise AssertionError("".join(self.words))

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        assert self.process is not None
        self.process.send_signal(how)
        self.process.wait(PATIENCE / 1000)
        if self.process.stdout is not None:
            self.process.stdout.close()

    def spent(self) -> Privacy:
        with Ledger(self.folder / "budget.db") as ledger:
            return ledger.spent


def prepare(folder: Path) -> Server:
    Ledger.create(folder / "budget.db", epsilon=20, delta="1e-3", strict=True).close()
    write_log(folder / "log.csv", "tea")
    return Server(folder)


def write_log(file: Path, label: str) -> None:
    file.write_text("person,drink\n" + "".join(f"{one},{label}\n" for one in range(400)))


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    made = prepare(tmp_path)
    made.start()
    yield made
    made.stop()


def context(browser: Browser, look: str = "desktop", **options: object) -> BrowserContext:
    wide, high, scheme = LOOKS[look]
    size = {"width": wide, "height": high}
    made = browser.new_context(viewport=size, color_scheme=scheme, **options)  # type: ignore[arg-type]
    made.set_default_timeout(PATIENCE)
    expect.set_options(timeout=PATIENCE)
    return made


def enter(
    opened: BrowserContext, server: Server, until: Literal["load", "commit"] = "load"
) -> Page:
    """The first page, watched: nothing is asked of anybody else, and nothing is refused."""
    page = opened.new_page()
    seen: list[str] = []
    opened.on("request", lambda request: seen.append(request.url))
    opened.on("console", lambda told: seen.append(f"console {told.text}"))
    opened.on("weberror", lambda error: seen.append(f"error {error.error}"))
    page.goto(server.address, wait_until=until)
    page.seen = seen  # type: ignore[attr-defined]
    return page


def check_watched(page: Page, server: Server) -> None:
    seen: list[str] = page.seen  # type: ignore[attr-defined]
    assert seen
    allowed = (server.origin + "/", "data:", *ABORTED)
    assert not [one for one in seen if not one.startswith(allowed)]


def check_page(page: Page) -> None:
    """Nothing sticks out, and axe finds nothing serious."""
    # Asked of the document: beside busy processes the browser's own event was missed once.
    page.wait_for_function("document.readyState !== 'loading'")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.evaluate(AXE)
    found = page.evaluate("axe.run().then(one => one.violations)")
    serious = [
        (one["id"], [node["html"] for node in one["nodes"]][:3])
        for one in found
        if one["impact"] in ("serious", "critical")
    ]
    assert not serious


def wait_for_address(page: Page, pattern: str) -> None:
    """Wait until the page is at an address, loaded or not."""
    page.wait_for_url(pattern, wait_until="commit")


def drag_epsilon(page: Page) -> str:
    """Set ε on the page Plan by its slider; what the field beside it then holds."""
    slider = page.get_by_label("ε, the privacy cost, slider")
    expect(slider).to_be_visible()  # the script is there
    wait_until_drawn(page)  # fonts and styles that come late move the slider
    box = slider.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] * 0.56, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.7, box["y"] + box["height"] / 2, steps=6)
    page.mouse.up()
    epsilon = page.get_by_label("ε, the privacy cost", exact=True).input_value()
    assert 1.5 < float(epsilon) < 3
    wait_for_address(page, f"**/plan?epsilon={epsilon}")
    return epsilon


def type_epsilon(page: Page) -> str:
    """The same without the script, which sliders need."""
    expect(page.get_by_label("ε, the privacy cost, slider")).not_to_be_visible()
    expect(page.get_by_role("button", name="Copy").first).not_to_be_visible()
    page.get_by_label("ε, the privacy cost", exact=True).fill("2.2")
    page.get_by_role("button", name="Update").click()
    wait_for_address(page, "**/plan?epsilon=2.2&*")
    page.get_by_role("link", name="Compute LargeMargin").click()
    return "2.2"


def walk(page: Page, server: Server, script: str) -> None:
    """From a plan to a release to the history, by mouse."""

    def check() -> None:
        if script == "there":
            check_page(page)

    epsilon = drag_epsilon(page) if script == "there" else type_epsilon(page)
    expect(page.get_by_text(f"privmax plan --epsilon {epsilon} --delta 1e-6")).to_be_visible()
    expect(page.get_by_role("rowheader", name="LargeMarginTruncated")).to_be_visible()
    check()

    page.get_by_role("link", name="Try it on public data").click()
    page.get_by_role("button", name="Draw a hundred times").click()
    expect(page.get_by_text("100 draws by")).to_be_visible()
    check()

    page.get_by_role("navigation").get_by_role("link", name="Plan").click()
    page.get_by_label("δ, the chance that ε fails", exact=True).fill("1e-7")
    if script != "there":
        page.get_by_role("button", name="Update").click()
    wait_for_address(page, "**delta=1e-7**")
    expect(page.get_by_text("at epsilon 1, delta 1e-07, add-remove")).to_be_visible()
    page.get_by_role("link", name="Ask with these settings").click()
    page.get_by_label("data set", exact=True).select_option("log")
    page.get_by_role("button", name="Choose").click()
    expect(page.get_by_label("drink")).to_be_checked()
    check()
    page.get_by_role("button", name="See what it costs").click()
    expect(page.get_by_text("It costs")).to_be_visible()
    check()
    page.get_by_role("button", name="Spend it and release").click()
    wait_for_address(page, "**/answer?*")
    expect(page.locator(".answer")).to_contain_text("tea")
    check()
    assert server.spent() == Privacy(1, "1e-7")

    page.get_by_role("link", name="Open the report").click()
    expect(page.get_by_text("A private answer")).to_be_visible()
    page.go_back(wait_until="commit")
    page.get_by_role("navigation").get_by_role("link", name="History").click()
    expect(page.get_by_role("link", name="select: log, drink")).to_be_visible()
    page.get_by_role("button", name="Verify the ledger").click()
    expect(page.get_by_text("All 3 events add up")).to_be_visible()
    check()
    page.get_by_role("navigation").get_by_role("link", name="Hand over").click()
    expect(page.get_by_text('variant_name: "Approximate DP"')).to_be_visible()
    with page.expect_download() as saved:
        page.get_by_role("link", name="Save as YAML").click()
    assert saved.value.suggested_filename == "privmax-registry.yaml"
    check()
    check_watched(page, server)


@pytest.mark.parametrize("look", ["phone", "dark"])
@pytest.mark.parametrize("script", ["there", "late", "off"])
def test_from_plan_to_release_to_history_by_mouse(
    browser: Browser, server: Server, look: str, script: str
) -> None:
    opened = context(browser, look, java_script_enabled=script != "off")
    if script == "late":  # it is on its way for as long as somebody clicks
        opened.route("**/assets/*.js", lambda route: None)
    page = enter(opened, server, "commit")
    walk(page, server, script)
    opened.close()


def test_what_is_typed_before_the_script_is_there_counts(browser: Browser, server: Server) -> None:
    opened = context(browser)
    page = enter(opened, server)
    held: list[Route] = []
    page.route("**/assets/htmx*", lambda route: held.append(route))
    page.goto(f"{server.origin}/plan", wait_until="commit")
    page.get_by_label("δ, the chance that ε fails", exact=True).fill("1e-7")
    assert page.evaluate("typeof htmx") == "undefined"
    let_through(page, held)
    expect(page.get_by_text("at epsilon 1, delta 1e-07, add-remove")).to_be_visible()
    opened.close()


def let_through(page: Page, held: list[Route]) -> None:
    """Let a request go on that was held back; waits until it was made."""
    while not held:
        page.wait_for_timeout(20)
    held.pop().continue_()


def tab_to(page: Page, what: str) -> None:
    """Press Tab until something has the focus, and see that it is seen."""
    wanted = page.locator(what)
    for _ in range(80):
        page.keyboard.press("Tab")
        if wanted.evaluate("one => one === document.activeElement"):
            outline = wanted.evaluate("one => getComputedStyle(one).outlineStyle")
            assert outline != "none"
            return
    raise AssertionError(f"Tab does not reach {what}")


@pytest.mark.parametrize("look", ["desktop", "phone"])
def test_from_plan_to_release_to_history_by_keyboard_alone(
    browser: Browser, server: Server, look: str
) -> None:
    opened = context(browser, look)
    page = enter(opened, server)
    tab_to(page, ".skip")
    page.keyboard.press("Enter")
    tab_to(page, "input[type=range][data-for=epsilon]")
    for _ in range(10):
        page.keyboard.press("ArrowRight")
    wait_for_address(page, "**/plan?epsilon=1.3")
    tab_to(page, "#universe")
    page.keyboard.type("100000")
    wait_for_address(page, "**universe=100000")
    expect(page.get_by_text("candidates, at epsilon 1.3")).to_be_visible()
    tab_to(page, "a[href^='/ask?']")
    page.keyboard.press("Enter")
    wait_for_address(page, "**/ask?*")
    tab_to(page, "#universe")
    page.keyboard.press("Control+a")
    page.keyboard.press("Delete")
    page.keyboard.press("Enter")
    wait_for_address(page, "**/ask/preview?*")
    tab_to(page, "form[data-once] button")
    page.keyboard.press("Space")
    wait_for_address(page, "**/answer?*")
    expect(page.locator(".answer")).to_contain_text("rain boots")
    tab_to(page, "nav a[href='/history']")
    page.keyboard.press("Enter")
    wait_for_address(page, "**/history")
    tab_to(page, "form[action='/history/verify'] button")
    page.keyboard.press("Enter")
    expect(page.get_by_text("All 3 events add up")).to_be_visible()
    assert server.spent() == Privacy("1.3", "1e-6")
    check_watched(page, server)
    opened.close()


@pytest.mark.parametrize(
    ("look", "with_script"), [("desktop", True), ("phone", True), ("phone", False)]
)
def test_keys_from_a_plan_to_their_table_by_mouse(
    browser: Browser, server: Server, look: str, with_script: bool
) -> None:
    opened = context(browser, look, java_script_enabled=with_script)
    page = enter(opened, server)

    def check() -> None:
        if with_script:
            check_page(page)

    page.get_by_role("link", name="All common keys").click()
    page.get_by_label("keys of one individual that count", exact=True).fill("7")
    if not with_script:
        page.get_by_role("button", name="Update").click()
    wait_for_address(page, "**per_user=7**")
    expect(page.get_by_role("columnheader", name="7 keys each")).to_be_visible()
    expect(page.get_by_role("img", name="How many individuals a key must have")).to_be_visible()
    check()
    page.get_by_role("link", name="Ask with these settings").click()
    page.get_by_label("data set", exact=True).select_option("log")
    page.get_by_role("button", name="Choose").click()
    expect(page.get_by_label("keys of one individual that count")).to_have_value("7")
    page.get_by_label("ε for noisy counts").fill("1")
    page.get_by_label("with counts: how many").check()
    check()
    page.get_by_role("button", name="See what it costs").click()
    expect(page.get_by_text("Which “drink” of log do enough individuals have?")).to_be_visible()
    check()
    page.get_by_role("button", name="Spend it and release").click()
    wait_for_address(page, "**/answer?*")
    expect(page.get_by_role("rowheader", name="tea")).to_be_visible()
    expect(page.get_by_text("individuals have none of the keys")).to_be_visible()
    check()
    with page.expect_download() as saved:
        page.get_by_role("link", name="Save all keys as CSV").click()
    assert saved.value.path().read_text().splitlines()[0] == '"drink","count","error"'
    page.get_by_role("navigation").get_by_role("link", name="History").click()
    expect(page.get_by_role("link", name="keys: log, drink")).to_be_visible()
    assert server.spent().epsilon == 2
    check_watched(page, server)
    opened.close()


def preview(page: Page, server: Server, dataset: str = "log") -> str:
    """Go to the page where a question is confirmed; its address."""
    page.goto(f"{server.origin}/ask?dataset={dataset}")
    page.get_by_role("button", name="See what it costs").click()
    wait_for_address(page, "**/ask/preview?*")
    return page.url


@pytest.mark.parametrize("with_script", [True, False])
def test_a_double_click_charges_once(browser: Browser, server: Server, with_script: bool) -> None:
    opened = context(browser, java_script_enabled=with_script)
    page = enter(opened, server)
    preview(page, server)
    page.get_by_role("button", name="Spend it and release").dblclick()
    wait_for_address(page, "**/answer?*")
    expect(page.locator(".answer")).to_contain_text("tea")
    assert server.spent() == Privacy(1, "1e-6")
    opened.close()


def test_reload_and_back_charge_nothing(browser: Browser, server: Server) -> None:
    opened = context(browser)
    page = enter(opened, server)
    asked = preview(page, server)
    # Chromium refuses to reload a page that it has not put in the place of the one before.
    expect(page.get_by_role("button", name="Spend it and release")).to_be_visible()
    page.reload()
    assert page.url == asked
    page.get_by_role("button", name="Spend it and release").click()
    wait_for_address(page, "**/answer?*")
    expect(page.locator(".answer")).to_contain_text("tea")
    for _ in range(3):
        page.reload()
        expect(page.locator(".answer")).to_contain_text("tea")
    page.go_back()
    expect(page.get_by_text("was charged already")).to_be_visible()
    expect(page.get_by_role("button", name="Spend it and release")).to_have_count(0)
    page.get_by_role("link", name="See the answer").click()
    expect(page.locator(".answer")).to_contain_text("tea")
    page.go_back()
    page.go_back()
    page.go_forward()
    assert server.spent() == Privacy(1, "1e-6")
    opened.close()


def test_two_tabs_with_one_question_charge_once(browser: Browser, server: Server) -> None:
    opened = context(browser)
    first = enter(opened, server)
    asked = preview(first, server)
    second = opened.new_page()
    second.goto(asked)
    first.get_by_role("button", name="Spend it and release").click(no_wait_after=True)
    second.get_by_role("button", name="Spend it and release").click(no_wait_after=True)
    for page in (first, second):
        wait_for_address(page, "**/answer?*")
        expect(page.locator(".answer")).to_contain_text("tea")
    assert server.spent() == Privacy(1, "1e-6")
    opened.close()


def test_a_server_killed_in_the_middle_has_charged_once_and_can_answer(
    browser: Browser, server: Server
) -> None:
    (server.folder / "hold").touch()
    opened = context(browser)
    page = enter(opened, server)
    preview(page, server)
    page.get_by_role("button", name="Spend it and release").click(no_wait_after=True)
    while not server.spent().epsilon:
        page.wait_for_timeout(50)
    assert server.spent() == Privacy(1, "1e-6")
    server.stop(signal.SIGKILL)
    (server.folder / "hold").unlink()
    server.start()

    page.close()  # the browser may still be about to show an error in it
    page = opened.new_page()
    page.goto(server.origin + "/history")
    expect(page.get_by_text("Open the address that")).to_be_visible()  # a new start, a new key
    page.goto(server.address)
    page.goto(server.origin + "/history")
    expect(page.get_by_text("Charged, and never answered")).to_be_visible()
    page.get_by_role("link", name=re.compile("^explore-")).click()
    page.get_by_role("button", name="Get the answer, at no cost").click()
    expect(page.locator(".answer")).to_contain_text("tea")
    assert server.spent() == Privacy(1, "1e-6")
    opened.close()


def test_what_takes_long_shows_that_it_is_working(browser: Browser, server: Server) -> None:
    opened = context(browser)
    page = enter(opened, server)
    held: list[Route] = []
    working = page.locator("#result-box .working").first
    expect(working).to_have_css("visibility", "hidden")
    page.route("**/plan?*", lambda route: held.append(route))
    page.get_by_label("near maximizers", exact=True).fill("7")
    expect(page.locator("#result-box")).to_have_class("htmx-request")
    expect(working).to_have_css("transition-delay", "0.2s")  # what is quick shows nothing of it
    expect(working).to_have_css("visibility", "visible")
    let_through(page, held)
    expect(page.get_by_text("--near 7")).to_be_visible()
    expect(working).to_have_css("visibility", "hidden")
    opened.close()


def test_a_hostile_label_runs_nothing(browser: Browser, server: Server) -> None:
    write_log(server.folder / "log.csv", EVIL)
    opened = context(browser)
    page = enter(opened, server)
    page.on("dialog", lambda dialog: pytest.fail("it ran"))
    preview(page, server)
    page.get_by_role("button", name="Spend it and release").click()
    wait_for_address(page, "**/answer?*")
    assert page.locator(".answer bdi").text_content() == EVIL
    page.goto(server.origin + "/history")
    expect(page.locator("td bdi").first).to_have_text(EVIL)
    check_watched(page, server)
    opened.close()


class Evil(BaseHTTPRequestHandler):
    """A page of somebody else on the same machine that tries to use the browser's cookie."""

    target = ""
    cookies: list[str] = []  # noqa: RUF012

    def do_GET(self) -> None:
        Evil.cookies.append(self.headers.get("Cookie", ""))
        body = f"""<!DOCTYPE html><body><form id=f method=post action="{self.target}/ask/release">
            <input name=dataset value=log><input name=items value=drink>
            <input name=epsilon value=1><input name=delta value=1e-6><input name=request value=evil>
            <input name=token value=guess></form>
            <iframe src="{self.target}/history"></iframe><img src="{self.target}/history">
            <script src="{self.target}/assets/explore.js"></script>
            <script>window.told = []
            fetch("{self.target}/history", {{credentials: "include"}})
                .then(r => r.text()).then(t => told.push("read")).catch(() => told.push("refused"))
            fetch("{self.target}/ask/release", {{method: "POST", credentials: "include",
                mode: "no-cors", headers: {{"Content-Type": "application/x-www-form-urlencoded"}},
                body: new URLSearchParams(new FormData(f))}}).finally(() => told.push("sent"))
            </script>"""
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *given: object) -> None:
        pass


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost"])
def test_a_hostile_page_on_this_machine_gets_nothing(
    browser: Browser, server: Server, name: str
) -> None:
    Evil.target = server.origin
    with ThreadingHTTPServer(("127.0.0.1", 0), Evil) as evil:
        threading.Thread(target=evil.serve_forever, daemon=True).start()
        opened = context(browser)
        enter(opened, server)
        page = opened.new_page()
        page.goto(f"http://{name}:{evil.server_port}/", wait_until="commit")
        # Before its scripts have run, the page has no `told`, and asking for it would be an error.
        page.wait_for_function("window.told?.length === 2 && document.readyState === 'complete'")
        assert "read" not in page.evaluate("told")
        inside = [one for one in page.frames if one is not page.main_frame]
        assert all("What was asked" not in one.content() for one in inside)
        page.evaluate("f.submit()")
        expect(page.get_by_text("Not open to you")).to_be_visible()
        opened.close()
        evil.shutdown()
    assert not server.spent().epsilon


SHOTS = ("plan", "try", "preview", "answer", "history", "handover")


def shoot(page: Page, server: Server, name: str) -> Image.Image:
    """The picture of a page, of which nothing depends on chance."""
    if name == "plan":
        page.goto(f"{server.origin}/plan?epsilon=0.5&universe=1000000&lead=40")
        expect(page.get_by_text("LargeMarginTruncated")).to_be_visible()
    elif name == "try":
        page.goto(f"{server.origin}/try?draw=yes&epsilon=1&scores=tea+900%0Aale+40%0Agin+3")
    elif name == "preview":
        preview(page, server)
    elif name == "answer":
        preview(page, server)
        page.get_by_role("button", name="Spend it and release").click()
        wait_for_address(page, "**/answer?*")
    else:
        page.goto(f"{server.origin}/{name}")
    wait_until_drawn(page)  # before, a page that has only just been opened has no active element
    page.evaluate("document.activeElement.blur()")
    return Image.open(BytesIO(page.screenshot()))


def brightness(picture: Image.Image) -> np.ndarray:
    return np.asarray(picture.convert("L").resize((8, 8), Image.Resampling.BOX), dtype=float)


@pytest.mark.parametrize("look", ["desktop", "phone", "dark"])
def test_pages_look_as_they_did(browser: Browser, server: Server, look: str) -> None:
    opened = context(browser, look)
    page = enter(opened, server)
    for name in SHOTS:
        picture = shoot(page, server, name)
        assert np.asarray(picture.convert("L")).std() > 10, "it is blank"
        with Image.open(KEPT / f"explore-{name}-{look}.png") as kept:
            assert kept.size == picture.size
            away = abs(brightness(kept) - brightness(picture)).mean()
        assert away < ASIDE, f"look at {name}, and take the pictures anew"
    opened.close()


def test_pictures_of_pages_are_small_and_all_are_shown() -> None:
    kept = {path.name for path in KEPT.glob("explore-*")}
    looks = ("desktop", "phone", "dark")
    assert kept == {f"explore-{name}-{look}.png" for name in SHOTS for look in looks}
    assert max((KEPT / name).stat().st_size for name in kept) < LARGEST


def main() -> None:
    """Take all pictures."""
    from conftest import FLAGS, PROGRAM

    with TemporaryDirectory() as folder, sync_playwright() as playwright:
        server = prepare(Path(folder))
        server.start()
        browser = playwright.chromium.launch(executable_path=PROGRAM, args=FLAGS)
        for look in ("desktop", "phone", "dark"):
            opened = context(browser, look)
            page = enter(opened, server)
            for name in SHOTS:
                picture = shoot(page, server, name).convert("RGB")
                few = picture.quantize(128, dither=Image.Dither.NONE)
                few.save(KEPT / f"explore-{name}-{look}.png", optimize=True)
            opened.close()
        browser.close()
        server.stop()


if __name__ == "__main__":
    main()
