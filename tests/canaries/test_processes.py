"""Everything else, which takes seconds: every function and command in every situation, a server,
and commands as processes that others can look at.
"""

from __future__ import annotations

import shutil
import sys
from itertools import chain

import pytest
from leaks import commands, explorer, faults, functions, processes
from leaks.field import NEXT, make
from leaks.judge import judge
from leaks.nursery import Nursery
from leaks.run import PRELOAD, Hunt, Run, plan_failures, plan_stops, temporary

pytestmark = pytest.mark.slow

SHARE = 21
"""Of each situation every so many runs are made."""


@pytest.fixture(scope="module")
def loaded():
    with Nursery(PRELOAD) as made:
        yield made


@pytest.fixture(scope="module")
def hunt(loaded):
    folder = temporary()
    yield Hunt(loaded, folder)
    shutil.rmtree(folder)


def chosen() -> list[Run]:
    """Every subject when all goes well, and every so many of all other runs."""
    failures = [one for one in plan_failures() if one.kind in ("functions", "commands")]
    good = [one for one in reversed(failures) if one.situation == faults.SUCCESS]
    well = list({(one.kind, one.subject): one for one in good}.values())  # the first of each
    others = [one for one in [*failures, *plan_stops(1)] if one not in well]
    some = [[one for one in others if one.situation == name][::SHARE] for name in faults.SITUATIONS]
    return [*well, *chain.from_iterable(some)]


def test_nothing_escapes_from_all_others(hunt):
    found = []
    for one in chosen():
        ended, verdict = hunt.run(one)
        assert ended.status != 99, one
        if one.situation == faults.SUCCESS:
            assert "error" not in ended.facts, one
            assert ended.status == (2 if "not said" in one.subject else 0), one
        found += [f"{one}: {leak}" for leak in verdict.leaks]
    assert found == []


def test_what_is_chosen_covers_everything():
    runs = chosen()
    assert {one.subject for one in runs} == {*functions.SUBJECTS, *commands.LINES}
    assert {one.situation for one in runs} == set(faults.SITUATIONS)


def test_nothing_escapes_from_the_explorer(loaded):
    folder = temporary()
    try:
        make(folder / "field")
        ended = explorer.visit(loaded, folder / "run", folder / "field", faults.SUCCESS)
        verdict = judge(ended)
        assert ended.facts["asked"] == 303
        assert verdict.released == 1  # the winner was asked for, and stands on the page
        assert verdict.leaks == []
        ended.evidence.append(("pages", "planted", f"<!-- {NEXT} -->".encode()))
        assert {leak.place for leak in judge(ended).leaks} == {"pages"}
    finally:
        shutil.rmtree(folder)


def test_others_see_no_mark_in_the_arguments_of_a_process():
    folder = temporary()
    try:
        make(folder / "field")
        ended = processes.command("select from scores", folder / "run", folder / "field")
        assert ended.status == 0
        assert {name for _, name, _ in ended.evidence} == {"cmdline", "environ"}
        assert judge(ended).leaks == []
        program = [sys.executable, "-c", "import time; time.sleep(0.3)", NEXT]
        planted = processes.watch(program, folder / "planted")
        assert {leak.place for leak in judge(planted).leaks} == {"arguments"}
    finally:
        shutil.rmtree(folder)
