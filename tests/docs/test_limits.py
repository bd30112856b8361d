"""docs/limits.md lists every public bound with its number, and the code has the same."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs" / "limits.md"
ROW = re.compile(r"^\| .* \| ([0-9,^]+) \| `([\w.]+)` \| (yes|no) \| .* \|$")
ROWS = [found.groups() for line in PAGE.read_text(encoding="utf-8").splitlines()
        if (found := ROW.match(line))]  # fmt: skip
BOUNDED = ("privmax.sources.bounded", "privmax.choice", "privmax.mechanisms.peeling")
"""Modules all of whose public bounds must be listed."""


def number(text):
    base, _, power = text.replace(",", "").partition("^")
    return int(base) ** int(power or 1)


def test_the_page_has_its_tables():
    assert len(ROWS) >= 20
    assert sum(line.startswith("| ") for line in PAGE.read_text().splitlines()) == len(ROWS) + 2


@pytest.mark.parametrize(("told", "constant", "private"), ROWS, ids=[row[1] for row in ROWS])
def test_each_limit_is_that_of_the_code(told, constant, private):
    module, _, name = constant.rpartition(".")
    if module.startswith("privmax.explore"):
        pytest.importorskip("starlette")
    assert getattr(import_module(module), name) == number(told)


@pytest.mark.parametrize("module", BOUNDED)
def test_no_limit_of_these_modules_is_missing(module):
    values = vars(import_module(module)).items()
    bounds = [name for name, value in values if isinstance(value, int) and value > 100]
    has = {name for name in bounds if name.isupper() and name[0] != "_"}
    listed = {constant.rpartition(".")[2] for _, constant, _ in ROWS if constant.startswith(module)}
    assert has == listed
