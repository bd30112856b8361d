"""The data sets that come with privmax: what tools/samples.py writes, small, and as the pages and
examples need them.

Chances are exact: they come from laws, so these tests draw nothing.
"""

from __future__ import annotations

import csv
import re
import subprocess
import sys
from collections import Counter
from math import comb
from pathlib import Path

import numpy as np
import pytest

from privmax import Exponential, LargeMargin, NestedMargin, PermuteAndFlip, SharpMargin, samples
from privmax.errors import ParameterError
from privmax.itemsets.reading.forms import read_baskets
from privmax.itemsets.source import ItemsetSource
from privmax.learning import Stumps
from privmax.learning.classes.contract import Shape
from privmax.mechanisms.contract import Outcome
from privmax.profile import Profile

ROOT = Path(__file__).resolve().parents[2]
TOOL = ROOT / "tools" / "samples.py"
COLUMNS = {"basket": "receipt", "item": "article", "user": "member"}
PRICE = {"epsilon": 1, "delta": "1e-6"}
HEADS = {
    "receipts": ["receipt", "member", "article"],
    "searches": ["person", "query"],
    "counts": ["query", "people"],
    "members": ["age", "visits", "spend", "distance", "card"],
}


def rows(name):
    with open(samples.path(name), encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def check(folder=None):
    """What the tool says; in a folder, of the files there."""
    moved = (
        ""
        if folder is None
        else f"samples.path = lambda name: __import__('pathlib').Path({str(folder)!r}, name)\n"
    )
    program = (
        f"import runpy, sys\nfrom privmax import samples\n{moved}sys.argv = ['samples.py', "
        "'--check']\n"
    )
    program += f"runpy.run_path({str(TOOL)!r}, run_name='__main__')"
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )


def pairs(**columns):
    found = read_baskets(samples.path("receipts"), **{**COLUMNS, **columns})
    return ItemsetSource(found, found.labels, range(2, 3), closed=False)


def test_the_files_are_what_the_tool_writes():
    done = check()
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.slow
def test_the_check_sees_a_changed_file(tmp_path):
    for name in samples.NAMES:
        (tmp_path / name).write_bytes(samples.path(name).read_bytes())
    (tmp_path / "counts").write_text("query,people\n", encoding="utf-8")
    done = check(tmp_path)
    assert done.returncode == 1
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["counts"]


@pytest.mark.parametrize("name", samples.NAMES)
def test_a_data_set_is_small_and_has_its_columns(name):
    assert samples.path(name).stat().st_size < 400_000
    assert list(rows(name)[0]) == HEADS[name]


def test_the_page_tells_of_each_data_set_and_its_size():
    text = (ROOT / "docs/samples.md").read_text(encoding="utf-8")
    told = re.findall(r"^## `sample:(\w+)`\n\n([\d,]+) rows", text, re.MULTILINE)
    assert told == [(name, f"{len(rows(name)):,}") for name in samples.NAMES]


def test_an_unknown_name_is_refused_and_the_known_ones_are_listed():
    with pytest.raises(
        ParameterError, match=r"'receipt'.* There are receipts, searches, counts, members"
    ):
        samples.path("receipt")


def test_the_shop_is_as_large_as_the_demo_says():
    bought = rows("receipts")
    assert len({row["receipt"] for row in bought}) == 6000
    assert len({row["member"] for row in bought}) == 1500
    owners = Counter(receipt for receipt, _ in {(row["receipt"], row["member"]) for row in bought})
    assert set(owners.values()) == {1}, "a receipt has one member"


class TestTheStoryOfTheDemo:
    """At epsilon 1, delta 1e-6, with any two of 10^12 barcodes possible."""

    universe = comb(10**12, 2)

    def law(self, mechanism, universe=None):
        return mechanism.law(Profile(pairs().histogram(0), universe=universe))

    def test_one_pair_is_clearly_the_most_frequent(self):
        (best, number), (second, _) = pairs().histogram(0)[:2]
        assert (best, number) == (48, 1)
        assert 30 <= best - second < 60
        assert pairs().name(Outcome(best)) == ("butter", "sourdough bread")

    @pytest.mark.parametrize("mechanism", [Exponential(epsilon=1), PermuteAndFlip(epsilon=1)])
    def test_pure_mechanisms_return_a_pair_that_nobody_bought(self, mechanism):
        exact = self.law(mechanism, self.universe)
        score, number, chance = exact.blocks[-1]
        assert score == 0
        assert number == self.universe - sum(count for _, count in pairs().histogram(0))
        assert chance > 0.99

    def test_the_papers_releases_nothing(self):
        assert self.law(LargeMargin(**PRICE)).none > 0.99

    def test_the_papers_does_not_find_it_among_all_barcodes_either(self):
        assert self.law(LargeMargin(**PRICE), self.universe).best() < 0.01

    @pytest.mark.parametrize("universe", [universe, None])
    def test_ours_releases_the_best(self, universe):
        assert self.law(NestedMargin(**PRICE), universe).best() > 0.999

    def test_counted_in_receipts_it_is_the_same_pair(self):
        by_receipt = pairs(user=None)
        assert by_receipt.name(Outcome(by_receipt.maximum())) == ("butter", "sourdough bread")
        assert NestedMargin(**PRICE).law(by_receipt.profile).best() > 0.999


def test_counts_are_those_of_the_searches():
    people = Counter(
        query for query, _ in {(row["query"], row["person"]) for row in rows("searches")}
    )
    assert people == {row["query"]: int(row["people"]) for row in rows("counts")}


def test_the_favourites_among_the_searches_are_sure():
    people = sorted((int(row["people"]) for row in rows("counts")), reverse=True)
    found = Profile(Counter(people).items())
    assert NestedMargin(**PRICE).law(found).best() > 1 - 1e-9
    assert max(rows("counts"), key=lambda row: int(row["people"]))["query"] == "rain boots"
    lead = SharpMargin(**PRICE, k=3).lead(candidates=None, success="0.999999")
    assert all(people[rank] - people[rank + 1] > lead for rank in range(3)), (
        "the best three, in order"
    )


def test_counted_in_searches_another_query_is_first():
    """One person made 900 of them: that is why people are counted."""
    searched = Counter(row["query"] for row in rows("searches"))
    assert searched.most_common(1)[0][0] == "party tent"


@pytest.mark.parametrize("cells", [4, 16, 20, 100])
def test_a_stump_is_found_among_the_members(cells):
    table = np.loadtxt(samples.path("members"), delimiter=",", skiprows=1)
    X, y = table[:, :4], table[:, 4].astype(int)
    assert X.min() >= 0
    assert X.max() <= 100
    stumps, shape = Stumps(low=0, high=100, cells=cells), Shape(4, 2)
    levels = stumps.score(X, y, shape).histogram(-1)
    assert PermuteAndFlip(epsilon=1).law(Profile(levels, universe=stumps.size(shape))).best() > 0.99
    right = np.count_nonzero((X[:, 1] >= 25) == y)
    assert levels[0] == (right, 1), "visits >= 25 is the best, alone"
    assert 0.9 < right / len(y) < 0.95, "labels have noise"
