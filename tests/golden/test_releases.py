"""Releases of every kind as ledgers keep them and as JSON, compared with stored ones to the byte.

What a ledger recorded must be read by every later version, and what programs read of `to_dict`,
`to_json` and `--json` must stay. Where one of them is to change,

    python tests/golden/test_releases.py

stores all of them again: read the difference, and say in CHANGELOG.md what is new.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import warnings
from contextlib import closing
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FunctionType, ModuleType
from unittest import mock

import pytest
from click.testing import CliRunner

sys.path.append(str(Path(__file__).parent))

from releases import KINDS

from privmax import Ledger, Privacy
from privmax.cli import main
from privmax.learning.search_runs import RowSource
from privmax.ledger.ledger import Reservation
from privmax.noise.coins import SystemCoins
from privmax.sources.memory import MemorySource
from privmax.testing import SeededCoins
from privmax.universe import OPEN_UNIVERSE

STORED = Path(__file__).parent / "stored"

SELECT = ["select", "scores.csv", "--epsilon", "1", "--delta", "1e-6"]
ITEMSETS = ["itemsets", "baskets.dat", "--epsilon", "1", "--delta", "1e-6"]
KEYS = ["keys", "people.csv", "--user", "who", "--epsilon", "1", "--delta", "1e-6"]
LEARN = [
    "learn", "rows.csv", "--label", "card", "--labels", "0,1", "--epsilon", "2", "--low", "0",
    "--high", "100", "--cells", "4",
]  # fmt: skip
RULE = [*LEARN, "--hypotheses", "stumps"]
PEOPLE = {"tea": 900, "ale": 700, "fig": 2}
"""How many individuals have each key."""

CHARGED = ["--ledger", "budget.db", "--ledger-name", "golden", "--request", "r1"]
COMMANDS = {
    "select": SELECT,
    "select-charged": [*SELECT, *CHARGED],
    "select-ranked-counts": [*SELECT, "--k", "2", "--ranked", "--counts", "0.5"],
    "select-nothing": [
        *SELECT,
        "--k",
        "9",
        "--mechanism",
        "set-margin",
        "--where",
        "score > 99999",
    ],
    "select-check": [*SELECT, "--check"],
    "keys": KEYS,
    "keys-charged": [*KEYS, "--per-user", "2", "--counts", "0.5", "--other", *CHARGED],
    "keys-nothing": [*KEYS, "--where", "item = 'fig'"],
    "keys-check": [*KEYS, "--check"],
    "itemsets": ITEMSETS,
    "itemsets-charged": [*ITEMSETS, "--supports", "0.5", "--rules", "0.5", *CHARGED],
    "itemsets-labels": [*ITEMSETS, "--rules", "0.5", "--labels", "labels.json"],
    "itemsets-method": [*ITEMSETS[:4], "--mechanism", "priv-basis", "--items", "4", "--k", "2"],
    "learn": RULE,
    "learn-charged": [*RULE, *CHARGED],
    "learn-auto": LEARN,
    "learn-auto-charged": [*LEARN, "--delta", "1e-6", *CHARGED],
}
"""What is typed, by name; --json is added."""


class NoCoins:
    """Coins for a repeated request, which draws nothing."""

    def bits(self, n: int) -> int:
        raise AssertionError("a recorded answer is not drawn again")

    bytes = bits


def make_ledger(folder):
    return Ledger.create(Path(folder) / "budget.db", "golden", budget=Privacy(100, "1e-3"))


def make(name, ledger, coins):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        paid = {"ledger": ledger.request("r1", dataset="golden"), "coins": coins}
        return KINDS[name](paid)


def written(release):
    """All that a program reads of a release; dates become their repr."""
    return {
        "to_dict": json.dumps(release.to_dict(), default=repr),
        "to_json": release.to_json(),
        "str": str(release),
        "repr": repr(release),
        "notebook": release._repr_html_(),
    }


def record(name, folder):
    """A release of a kind, as a ledger keeps it and in all forms."""
    with closing(make_ledger(folder)) as ledger:
        release = make(name, ledger, SeededCoins(name))
        reserved, released = list(ledger.history())[1:]
    return {
        "reserved": reserved.body,
        "answer": released.body["answer"],
        **written(release),
    }


def run(name, folder):
    """What a command prints with --json, typed in a folder with the data."""
    write_data(Path(folder))
    make_ledger(folder).close()
    coins = SeededCoins(name)
    here = os.getcwd()
    os.chdir(folder)
    try:
        with (
            mock.patch.object(SystemCoins, "bits", lambda self, n: coins.bits(n)),
            mock.patch.object(SystemCoins, "bytes", lambda self, n: coins.bytes(n)),
        ):
            first = CliRunner().invoke(main, [*COMMANDS[name], "--json"])
            again = CliRunner().invoke(main, [*COMMANDS[name], "--json"])
    finally:
        os.chdir(here)
    assert (first.exit_code, first.stderr) == (0, "")
    if "--ledger" in COMMANDS[name]:
        assert json.loads(again.stdout) | {"recorded": None} == json.loads(first.stdout)
    return first.stdout


def write_data(folder):
    (folder / "scores.csv").write_text("item,score\ntea,9000\nale,8000\nfig,3\n")
    (folder / "baskets.dat").write_text("3 1\n" * 300 + "1 3 2\n" * 90 + "2\n")
    people = [f"{who},{item}" for item, many in PEOPLE.items() for who in range(many)]
    (folder / "people.csv").write_text("\n".join(["who,item", *people, ""]))
    (folder / "labels.json").write_text('["salt", "whole milk", "fig", "bread"]')
    rows = [f"{age},{visits},{int(visits >= 50)}" for age in range(40) for visits in range(100)]
    (folder / "rows.csv").write_text("\n".join(["age,visits,card", *rows, ""]))


def stored(file):
    return json.loads((STORED / file).read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", KINDS)
def test_a_release_is_recorded_and_written_as_before(name, tmp_path):
    assert record(name, tmp_path) == stored("releases.json")[name]


@pytest.mark.parametrize("name", KINDS)
def test_a_stored_record_is_read_as_what_was_released(name, tmp_path):
    kept = stored("releases.json")[name]
    original = Reservation.record
    with closing(make_ledger(tmp_path)) as ledger:
        with mock.patch.object(
            Reservation, "record", lambda self, answer: original(self, kept["answer"])
        ):
            make(name, ledger, SeededCoins("other"))
        again = make(name, ledger, NoCoins())
    assert again.recorded is not None
    object.__setattr__(again, "recorded", None)  # when that was differs
    assert written(again) == {form: kept[form] for form in written(again)}


def reach(release):
    """All objects that a release leads to, but for code and what is global."""
    pending, seen = [release], {}
    while pending:
        one = pending.pop()
        if id(one) in seen or isinstance(one, (type, ModuleType)):
            continue
        seen[id(one)] = one
        code = isinstance(one, FunctionType)
        pending += (one.__closure__ or ()) if code else gc.get_referents(one)
    return list(seen.values())


DATA = (
    "privmax.sources.", "privmax.itemsets.baskets", "privmax.itemsets.source", "privmax.profile",
    "privmax.learning.source", "privmax.markers.reading", "pandas", "polars", "pyarrow",
)  # fmt: skip
"""Where classes are that hold data."""


def is_data(one):
    return type(one).__module__.startswith(DATA) or isinstance(one, RowSource)


@pytest.mark.parametrize("name", KINDS)
def test_a_release_leads_to_no_data(name):
    """A release may be published as it is: pickled, or held by a service."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        release = KINDS[name]({"coins": SeededCoins(name)})
    found = {type(one).__qualname__ for one in reach(release) if is_data(one)}
    assert not found


def test_data_behind_a_method_or_a_closure_is_found():
    source = MemorySource({"tea": 3}, universe=OPEN_UNIVERSE)
    for holder in (source.encode, lambda: source, partial(print, source)):
        assert source in reach([holder])


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_prints_the_same_json_as_before(name, tmp_path):
    assert run(name, tmp_path) == stored("commands.json")[name]


def test_every_kind_and_command_is_stored_and_nothing_else():
    assert sorted(stored("releases.json")) == sorted(KINDS)
    assert sorted(stored("commands.json")) == sorted(COMMANDS)


def store():
    """Store all of them again."""
    made = {"releases.json": (record, KINDS), "commands.json": (run, COMMANDS)}
    for file, (form, names) in made.items():
        found = {}
        for name in names:
            with TemporaryDirectory() as folder:
                found[name] = form(name, folder)
        text = json.dumps(found, indent=1, sort_keys=True, ensure_ascii=True)
        (STORED / file).write_text(f"{text}\n", encoding="utf-8")


if __name__ == "__main__":
    store()
