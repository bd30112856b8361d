"""Opening pages on a machine that may be busy.

Playwright's "networkidle" and "load" are events of the browser, and beside busy processes one was
missed now and then. These functions ask the page or the test's own records instead, again and
again, until the answer is there.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from playwright.sync_api import Page

from tests.browser.conftest import PATIENCE

QUIET = 500
"""Milliseconds in which a page that has loaded may still ask for something."""


def visit(page: Page, address: str, *, quiet: int = 0) -> None:
    """Open an address and wait until the page is drawn, and for `quiet` ms more."""
    page.goto(address, wait_until="commit")
    wait_until_drawn(page)
    page.wait_for_timeout(quiet)


def wait_until_drawn(page: Page) -> None:
    """Wait until the page is parsed and its scripts have run, with fonts and two more frames."""
    wait_until(page, lambda: page.evaluate("document.readyState") == "complete")
    page.evaluate(
        """() => document.fonts.ready.then(() => new Promise(done =>
            requestAnimationFrame(() => requestAnimationFrame(done))))"""
    )


def wait_until(page: Page, condition: Callable[[], object]) -> None:
    """Wait until a condition on what the test recorded holds; the assertion after it then says
    what is missing.
    """
    end = time.monotonic() + PATIENCE / 1000
    while not condition() and time.monotonic() < end:
        page.wait_for_timeout(50)
