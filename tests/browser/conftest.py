"""A real browser for the tests: Debian's Chromium, driven by playwright.

Where it is not installed these tests are skipped; with PRIVMAX_TEST_ENGINES=all, as in .ci/run,
they fail.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, sync_playwright

HERE = Path(__file__).parent

PROGRAM = shutil.which("chromium")
FLAGS = (
    "--headless",
    # Chromium's own needs rights that a container does not give; the pages are ours
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


PATIENCE = 120_000
"""Milliseconds that a page may take where a machine is busy with other work."""


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "browser: opens pages in Chromium (set by tests/browser/conftest.py)"
    )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="module")  # playwright runs once at a time in a process
def browser() -> Iterator[Browser]:
    if PROGRAM is None:
        told = "Chromium is not installed: install what Debian calls chromium"
        if os.environ.get("PRIVMAX_TEST_ENGINES") == "all":
            pytest.fail(told, pytrace=False)
        pytest.skip(told)
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=PROGRAM, args=FLAGS, timeout=PATIENCE)
        make = opened.new_context

        def make_patient(**options: Any) -> BrowserContext:
            made = make(**options)
            made.set_default_timeout(PATIENCE)
            return made

        opened.new_context = make_patient  # type: ignore[method-assign]
        yield opened
        opened.close()
