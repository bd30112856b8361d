"""Marked data goes through every public function and command: no mark may be found that was not
released, wherever one looks. lab/canaries.md has the table of places.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from leaks import commands, faults, functions, places
from leaks.field import BEST, MARKS, NEXT, SCORES
from leaks.run import Hunt, Run, plan_failures, plan_stops, temporary

QUICK = [
    Run("functions", "select scores", faults.SUCCESS),
    Run("functions", "select scores", faults.BAD_DATA),
    Run("functions", "select scores", faults.MAKING, None),
    Run("functions", "select scores", faults.BROKEN),
    Run("functions", "select scores", faults.INTERRUPT, share=0.9),
    Run("functions", "select scores", faults.KILL, share=0.9),
    Run("commands", "select from JSON Lines", faults.NAMES),
]
"""Of each situation something; the slow tests run everything."""


@pytest.fixture(scope="module")
def hunt(nursery):
    folder = temporary()
    yield Hunt(nursery, folder, is_small=True)
    shutil.rmtree(folder)


@pytest.mark.slow
@pytest.mark.parametrize("one", QUICK, ids=str)
def test_nothing_escapes(hunt, one):
    ended, verdict = hunt.run(one)
    assert ended.status != 99, "the harness failed"
    assert [str(leak) for leak in verdict.leaks] == []


# Everything that is public is run


def test_every_public_name_is_run_or_needs_no_data():
    run = {name for subject in functions.SUBJECTS.values() for name in subject.names}
    missing = set(functions.public_names()) - run - set(functions.NO_DATA)
    assert not missing, "add a subject to leaks/functions.py, or a reason to NO_DATA"
    assert not run & set(functions.NO_DATA)
    assert set(functions.NO_DATA) <= set(functions.public_names())


def test_a_new_public_name_is_refused(monkeypatch):
    import privmax

    monkeypatch.setattr(privmax, "__all__", [*privmax.__all__, "brand_new"])
    with pytest.raises(AssertionError, match="brand_new"):
        test_every_public_name_is_run_or_needs_no_data()


def test_every_command_is_run():
    run = {line.command for line in commands.LINES.values()} | set(commands.ELSEWHERE)
    assert run == set(commands.all_commands())
    assert len(run) > 15


def test_everything_is_run_in_every_situation():
    runs = [*plan_failures(), *plan_stops(1)]
    assert {one.situation for one in runs} == set(faults.SITUATIONS)
    for name, subject in functions.SUBJECTS.items():
        own = {one.situation for one in runs if (one.kind, one.subject) == ("functions", name)}
        assert {faults.SUCCESS, faults.BAD_DATA, faults.INTERRUPT, faults.KILL} <= own
        assert not subject.charges or faults.BUDGET in own
    for name in commands.LINES:
        own = {one.situation for one in runs if (one.kind, one.subject) == ("commands", name)}
        assert {faults.SUCCESS, faults.INTERRUPT, faults.KILL} <= own


def test_marks_are_unlike_each_other():
    """A mark that stands in another would be found where that one was released."""
    from leaks.marks import find

    for mark in MARKS:
        assert [other for other, _ in find(str(mark.value), MARKS)] == [mark]


# What runs show is what they should


@pytest.mark.slow
def test_what_was_released_is_left_out_and_nothing_else(hunt):
    """The winner is no finding; its score is one, wherever it is planted."""
    ended, verdict = hunt.run(Run("functions", "select scores", faults.SUCCESS), keep=True)
    assert verdict.released == 1
    assert BEST in ended.released
    assert SCORES[BEST] not in ended.released
    assert NEXT not in ended.released
    assert Path(ended.folder / "work/budget.db").exists()
    assert verdict.searched["ledger"] > 1000
    assert verdict.searched["pickle"] > 100


# The page


def test_the_page_has_the_tables_of_the_harness():
    page = (Path(__file__).resolve().parents[2] / "lab/canaries.md").read_text(encoding="utf-8")
    assert "\n".join(places.table()) in page
    for situation, words in faults.SITUATIONS.items():
        assert f"| {situation} | {words} |" in page
