"""Fuzz targets on inputs of Hypothesis: their seeds, changed. `./dev fuzz` goes on by coverage.

A target accepts a value or an error of ours. That it can fail is seen on entry points which are
broken on purpose.
"""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lab.fuzzing import drawing
from lab.fuzzing.judging import ENGINE, PARSER, READER, Finding, Target, WrongError, judge
from lab.fuzzing.listing import targets

ROOT = Path(__file__).resolve().parents[2]
TARGETS = targets()
PARSERS = [name for name, target in TARGETS.items() if target.group == PARSER]
QUICK = [name for name, target in TARGETS.items() if target.group != ENGINE]
ENGINES = [name for name, target in TARGETS.items() if target.group == ENGINE]
MANY = {PARSER: 10, READER: 3, ENGINE: 15}
"""Examples of a target. Those of the last are slow."""


@pytest.fixture(autouse=True)
def folder(tmp_path):
    drawing.use(tmp_path)
    for cached in ("lab.fuzzing.releases", "lab.fuzzing.engines"):
        if cached in sys.modules:
            for name in ("_ledger", "_parquet", "_database"):
                getattr(getattr(sys.modules[cached], name, None), "cache_clear", lambda: None)()


def inputs(target):
    """Seeds of a target, as they are, cut, joined and with bytes put in; and any bytes."""
    seeds = st.sampled_from(list(target.seeds))
    words = st.one_of(st.binary(max_size=6), st.sampled_from([b"\x00", *target.words]))

    def changed(seed, place, word, gone):
        place %= len(seed) + 1
        return (seed[:place] + word + seed[place + gone :])[: target.longest]

    spoiled = st.builds(changed, seeds, st.integers(0, 500), words, st.integers(0, 8))
    return st.one_of(seeds, spoiled, st.binary(max_size=target.longest))


def run(target, many):
    @settings(max_examples=many, deadline=None, suppress_health_check=list(HealthCheck))
    @given(inputs(target))
    def every(data):
        found = judge(target, data)
        assert found is None, str(found)

    every()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "name", [*QUICK, *(pytest.param(name, marks=pytest.mark.slow) for name in ENGINES)]
)
def test_nothing_but_values_and_errors_of_ours(name):
    target = TARGETS[name]
    for need in target.needs:
        import_module(need)
    run(target, MANY[target.group])


def test_there_are_targets_of_every_group():
    assert len(PARSERS) >= 15
    assert len(QUICK) > len(PARSERS)
    assert len(ENGINES) >= 5
    assert set(BROKEN) == set(TARGETS)


@pytest.mark.parametrize("name", PARSERS)
def test_some_seeds_of_a_parser_are_right(name):
    """Otherwise a fuzzer would begin behind the first check, and perhaps never pass it."""
    target, right = TARGETS[name], 0
    for seed in target.seeds:
        try:
            target.run(seed)
        except ValueError:
            continue
        right += 1
    assert right


# Targets that must fail

BROKEN = {
    "conditions": "lab.fuzzing.parsers.Condition.of",
    "numbers": "lab.fuzzing.parsers.exact",
    "labels": "lab.fuzzing.parsers.read_label",
    "universe": "lab.fuzzing.parsers.read_universe",
    "names": "lab.fuzzing.parsers.read_names",
    "rules": "privmax.cli.learn.apply.load_json",
    "schema": "lab.fuzzing.parsers.Schema.from_file",
    "urls": "privmax.ledger.opening.open_store",
    "events": "lab.fuzzing.parsers.faults",
    "fimi": "lab.fuzzing.files.read_fimi",
    "basket CSV": "lab.fuzzing.files.read_baskets",
    "JSON Lines": "privmax.sources.files.read_objects",
    "packed files": "lab.fuzzing.files.read_baskets",
    "score CSV": "lab.fuzzing.files.ScoreFile.read",
    "learning CSV": "lab.fuzzing.files.read_examples",
    "select": "privmax.select",
    "law": "privmax.law",
    "itemsets": "lab.fuzzing.releases.top_itemsets",
    "learn": "lab.fuzzing.releases.PrivateERM.fit",
    "ledger files": "lab.fuzzing.releases.Ledger.verify",
    "forged events": "lab.fuzzing.releases.Deployment.of",
    "forms": "lab.fuzzing.releases.read_question",
    "datasets": "lab.fuzzing.releases.read_datasets",
    "table files": "privmax.select",
    "damaged tables": "privmax.select",
    "where in DuckDB": "lab.fuzzing.engines.Condition.filter",
    "Ibis": "privmax.select",
    "commands": "privmax.cli.group.refuse_repetition",
}
"""What is broken, by target: what it calls, or something further below."""


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "name", [*QUICK, *(pytest.param(name, marks=pytest.mark.slow) for name in ENGINES)]
)
def test_an_entry_point_with_a_bug_is_found(name, monkeypatch):
    target = TARGETS[name]
    assert all(judge(target, seed) is None for seed in target.seeds)

    def broken(*given, **options):
        raise IndexError("planted")

    monkeypatch.setattr(BROKEN[name], broken)
    found = {finding.error for seed in target.seeds if (finding := judge(target, seed))}
    assert found == {"IndexError"}


def outcome(act):
    return judge(Target("test", PARSER, "an entry point", lambda data: act(), seconds=0.05), b"x")


def raising(error):
    def act():
        raise error

    return act


@pytest.mark.parametrize(
    "error",
    [
        KeyError("x"), ValueError("x"), RecursionError(), MemoryError(), SystemExit(1),
        OverflowError(), UnicodeDecodeError("utf-8", b"x", 0, 1, "bad"), WrongError("wrong"),
    ],
    ids=lambda error: type(error).__name__,
)  # fmt: skip
def test_every_other_error_is_a_bug(error):
    found = outcome(raising(error))
    assert isinstance(found, Finding)
    assert found.error == type(error).__name__


def test_values_and_errors_of_ours_are_none():
    from privmax.errors import BudgetError, DataError, ParameterError
    from privmax.privacy import Privacy

    assert outcome(lambda: 7) is None
    for error in (
        DataError("no rows"),
        ParameterError("k", 0, "it must be above 0"),
        BudgetError("too much", Privacy(1), Privacy(0)),
    ):
        assert outcome(raising(error)) is None


def test_an_error_of_ours_that_cannot_be_shown_is_a_bug():
    from privmax.errors import DataError

    class Torn(DataError):
        def __str__(self):
            raise KeyError("text")

    assert outcome(raising(Torn())).error == "KeyError"


def test_what_takes_too_long_is_a_bug():
    found = outcome(lambda: sum(i * i for i in range(3_000_000)))
    assert found.error == "time"


@pytest.mark.slow
def test_a_campaign_by_coverage_finds_a_planted_bug(tmp_path):
    """atheris finds the one name that a broken entry point fails on, and the command says so."""
    broken = tmp_path / "broken.py"
    broken.write_text(
        "import sys, runpy\n"
        f"sys.path.insert(0, {str(ROOT)!r})\n"
        "import lab.fuzzing.parsers as parsers\n"
        "read = parsers.exact\n"
        "def exact(name, text):\n"
        "    if text.startswith('1e-6'):\n"
        "        raise KeyError('planted')\n"
        "    return read(name, text)\n"
        "parsers.exact = exact\n"
        "sys.argv = ['fuzz.py', 'numbers', '--group', 'parser', '--runs', '500']\n"
        f"runpy.run_path({str(ROOT / 'lab/fuzz.py')!r}, run_name='__main__')\n"
    )
    done = subprocess.run(
        [sys.executable, str(broken)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1, done.stderr
    assert "BUG KeyError" in done.stdout
