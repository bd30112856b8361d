"""docs/itemsets.md: its commands give what it shows, its tables and pictures are what is stored,
which adds up.
"""

from __future__ import annotations

import copy
import functools
import itertools
import math
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks import (
    itemset_pictures,
    itemset_quality,
    tables,
)  # benchmarks are run from the project's root
from benchmarks.itemset_quality import ANY, PAIRS, SETS, SHOWN, SINGLES, Case, Known
from benchmarks.itemset_quality_report import PUBLISHED, itemset_quality_sections, missed
from benchmarks.paper.picture import svg
from privmax.cli import main
from privmax.itemsets.miner.window import Miner
from privmax.itemsets.published import BLST10, METHODS, Problem
from privmax.itemsets.reading.forms import read_baskets
from privmax.testing import SeededCoins

ROOT = Path(__file__).resolve().parents[2]
FILE = ROOT / "docs/itemsets.md"
STORED = itemset_quality.stored()
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
NUMBER = re.compile(r"-?\d+\.?\d*")

SHOP = (
    [["bread", "butter"]] * 60
    + [["bread", "butter", "jam"]] * 25
    + [["jam", "tea"]] * 12
    + [["tea"]] * 7
)
SUPPORTS = {
    ("bread", "butter"): 85,
    ("bread", "jam"): 25,
    ("butter", "jam"): 25,
    ("jam", "tea"): 12,
}


@pytest.fixture(scope="module")
def shop():
    return Case("groceries", read_baskets(SHOP))


# The page


def test_the_page_works_from_top_to_bottom(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ran = 0
    for kind, text in BLOCK.findall(FILE.read_text(encoding="utf-8")):
        if kind != "console":
            continue
        lines = text.splitlines()
        while lines:
            command = lines.pop(0).removeprefix("$ ")
            shown = list(itertools.takewhile(lambda line: not line.startswith("$ "), lines))
            del lines[: len(shown)]
            if command.startswith("privmax "):
                run = CliRunner().invoke(main, shlex.split(command.removeprefix("privmax ")))
                assert (run.output.splitlines(), run.exit_code) == (shown, 0)
                ran += 1
            else:
                assert command.startswith("printf ")
                subprocess.run(["sh", "-c", command], check=True)
    assert ran == 2


def test_the_tables_show_what_is_stored():
    text = FILE.read_text(encoding="utf-8")
    sections = {section.name: section for section in itemset_quality_sections(STORED)}
    assert tables.filled(text, sections) == text, "python -m benchmarks.tables"


@pytest.mark.parametrize("part", ["best", "lists", "missed"])
def test_tables_of_other_numbers_differ(part):
    other = copy.deepcopy(STORED)
    key = {"best": "chance", "lists": "f1", "missed": "missed"}[part]
    other[part][0][key] = 0.123 if abs(other[part][0][key] - 0.123) > 0.05 else 0.9
    before, after = (
        [section.section() for section in itemset_quality_sections(one)] for one in (STORED, other)
    )
    assert before != after


@functools.cache
def redrawn(name):
    return svg(itemset_pictures.DRAWINGS[name], STORED)


def same_drawing(left, right):
    """Equal but for differences of a hundredth of a point, which another processor's logarithms may
    make.
    """
    if NUMBER.sub("", left) != NUMBER.sub("", right):
        return False
    pairs = zip(NUMBER.findall(left), NUMBER.findall(right), strict=True)
    return all(abs(float(a) - float(b)) <= 0.01 for a, b in pairs)


@pytest.mark.parametrize("name", itemset_pictures.DRAWINGS)
def test_the_picture_shows_what_is_stored(name):
    file = ROOT / f"docs/pictures/{name}.svg"
    assert same_drawing(redrawn(name), file.read_text(encoding="utf-8")), (
        "benchmarks.itemset_quality --redraw"
    )
    assert f"pictures/{name}.svg" in FILE.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "part"), [("itemsets-universe", "universe"), ("itemsets-lists", "lists")]
)
def test_a_picture_of_other_numbers_differs(name, part):
    other = copy.deepcopy(STORED)
    for row in other[part]:
        key = "chance" if part == "universe" else "f1"
        row[key] = [0.4 for _ in row[key]] if part == "universe" else 0.4
    assert not same_drawing(redrawn(name), svg(itemset_pictures.DRAWINGS[name], other))


def test_the_page_says_what_the_papers_mechanism_does():
    chances = {
        row["set"]: row["chance"][0]
        for row in STORED["universe"]
        if row["contender"] == "large-margin"
    }
    assert [name for name, chance in chances.items() if chance > 0.5] == ["retail"]
    assert 0.01 < chances["mushroom"] < 0.5
    assert "which only retail has" in " ".join(FILE.read_text(encoding="utf-8").split())


# What is stored


def test_nothing_is_missing_from_what_is_stored():
    epsilons = itemset_quality.EPSILONS
    assert [row["set"] for row in STORED["sets"]] == list(SETS)
    best = {(row["set"], row["epsilon"], row["contender"]) for row in STORED["best"]}
    assert best == set(itertools.product(SETS, epsilons, [*SINGLES, *METHODS]))
    lists = {
        (row["set"], row["sizes"], row["epsilon"], row["k"], row["contender"])
        for row in STORED["lists"]
    }
    every = set(
        itertools.product(
            SETS, ("pairs", "any"), epsilons, itemset_quality.LENGTHS, [*SHOWN, *METHODS]
        )
    )
    assert lists == {
        cell for cell in every if not (cell[1] == "any" and cell[4].startswith("blst10"))
    }
    asked = [(name, k) for name in SETS for k in itemset_quality.MISSED.get(name, ())]
    assert list(missed(STORED)) == asked
    grown = {(row["set"], row["contender"]) for row in STORED["universe"]}
    assert grown == set(itertools.product(SETS, [*SINGLES, "blst10"]))


def test_every_part_was_made_by_one_state_of_the_source():
    assert {(row["set"], row["part"]) for row in STORED["runs"]} >= {
        (name, part) for name in SETS for part in ("best", "lists", "universe")
    }
    assert set(STORED["run"]) == {"command", "version", "source"}
    assert str(ROOT) not in str(STORED)


def test_two_parts_agree_where_they_meet():
    """The real number of items at the epsilon of the picture; laws only."""
    best = {(row["set"], row["epsilon"], row["contender"]): row["chance"] for row in STORED["best"]}
    for row in STORED["universe"]:
        where = row["set"], itemset_quality.GROWN, row["contender"]
        assert row["chance"][0] == pytest.approx(best[where], abs=2e-6), where


def test_with_more_items_declared_nobody_gains():
    """BLST10 clips at a whole number, which moves its chance a little either way."""
    for row in STORED["universe"]:
        assert all(0 <= value <= 1 for value in row["chance"])
        if row["items"]:
            slack = 0.01 if row["contender"] == "blst10" else 1e-6
            assert all(less <= more + slack for more, less in itertools.pairwise(row["chance"])), (
                row["contender"]
            )
        else:
            assert len(row["chance"]) == 1


# Known answers


def test_supports_of_the_shop(shop):
    labels = shop.rows.labels
    found = zip(*listed(shop.miner(PAIRS), 0), strict=True)
    assert {tuple(labels[code] for code in row): support for row, support in found} == SUPPORTS
    assert [shop.least(PAIRS, k) for k in (1, 2, 3, 4)] == [85, 25, 25, 12]
    assert shop.top(PAIRS, 2) == {(0, 1), (0, 2), (1, 2)}  # the second and third are equal
    assert shop.pairs_in_all == sum(SUPPORTS.values())
    assert shop.delta == f"{104**-1.5:.3g}"


@pytest.mark.parametrize(
    "name", [name for name, single in SINGLES.items() if single.closed] + ["blst10"]
)
def test_expected_loss_is_that_of_all_pairs_one_by_one(shop, name):
    """At a small epsilon everybody is drawn: bread, butter, jam and tea make six pairs, two of
    which nobody has.
    """
    supports = [*SUPPORTS.values(), 0, 0]
    if name == "blst10":
        law = itemset_quality.blst10_law(shop.miner(PAIRS).histogram(0), 6, "0.1")
        clip = 85 - math.ceil(4 / 0.1 * math.log(6 / 0.1))
        weights = [math.exp(0.1 / 4 * max(support, clip, 0)) for support in supports]
    else:
        law = SINGLES[name].make("0.1", "0").law(shop.source(PAIRS, closed=True).profile)
        weights = [math.exp(0.1 * support) for support in supports]
    loss = itemset_quality.lost(law, itemset_quality.mean_below(law, shop.pairs_in_all))
    assert 0 < loss < 85
    assert sum(chance for _, _, chance in law.blocks) == pytest.approx(1)
    if name in ("blst10", "exponential"):
        drawn = sum(
            (85 - support) * weight for support, weight in zip(supports, weights, strict=True)
        ) / sum(weights)
        assert loss == pytest.approx(drawn, rel=1e-6)
        assert law.best() == pytest.approx(weights[0] / sum(weights), rel=1e-6)


def test_those_at_the_floor_of_a_law_lose_what_they_have_on_average(shop):
    law = SINGLES["exponential"].make("2", "0").law(shop.source(PAIRS, closed=True).profile)
    assert law.floor is not None
    crowd = sum(count for score, count, _ in law.blocks if score == law.floor)
    left = [support for support in [*SUPPORTS.values(), 0, 0] if support <= law.floor]
    assert len(left) == crowd
    assert itemset_quality.mean_below(law, shop.pairs_in_all) == pytest.approx(sum(left) / crowd)


def test_blst10_draws_by_the_law_that_is_stated(shop):
    """4000 draws: five standard deviations, that is α < 1e-6. Twice epsilon must be told apart."""
    times = 4000
    coins = SeededCoins("blst10")
    problem = Problem(shop.miner, shop.rows, PAIRS, 1)
    best = sum(BLST10(epsilon="0.1").draw(problem, coins)[0].codes == (0, 1) for _ in range(times))
    levels = shop.miner(PAIRS).histogram(0)
    for epsilon, agrees in (("0.1", True), ("0.2", False)):
        chance = itemset_quality.blst10_law(levels, 6, epsilon).best()
        off = abs(best - times * chance) / math.sqrt(times * chance * (1 - chance))
        assert (off < 5) is agrees


def test_an_open_universe_can_stay_silent(shop):
    law = (
        SINGLES["nested-margin"].make("0.01", "1e-6").law(shop.source(PAIRS, closed=False).profile)
    )
    assert law.none > 0.99
    assert itemset_quality.lost(law, 0) == pytest.approx(85, rel=0.01)


def test_a_clear_list_is_found_and_a_hopeless_one_is_not():
    rows = [[f"a{n}", f"b{n}"] for n in range(4) for _ in range(2000 - 300 * n)]
    case = Case("groceries", read_baskets(rows))
    assert itemset_quality.ranked(case, "sharp-margin", ("1", "1e-6"), PAIRS, 3, 0) == (3, 3)
    assert itemset_quality.ranked(case, "exponential", ("1", "1e-6"), PAIRS, 3, 0) == (3, 3)
    released, right = itemset_quality.ranked(case, "sharp-margin", ("0.0001", "1e-6"), PAIRS, 3, 0)
    assert released == right == 0
    guessed = [
        itemset_quality.ranked(case, "exponential", ("0.0001", "1e-6"), PAIRS, 3, n)
        for n in range(20)
    ]
    assert {released for released, _ in guessed} == {3}
    assert 0 < sum(right for _, right in guessed) < 20  # of 28 pairs 3 are right: 6.4 are expected
    (found,) = itemset_quality.drawn(case, "priv-basis", "5", PAIRS, 3, 1)
    assert sorted(found) == sorted(case.top(PAIRS, 3))


def test_f1():
    assert itemset_quality.f1(10, 10, 10) == 1
    assert itemset_quality.f1(5, 5, 10) == pytest.approx(2 / 3)
    assert itemset_quality.f1(0, 0, 10) == 0


def test_what_is_remembered_is_what_the_miner_says(shop):
    known, fresh = Known(shop.rows, ANY), Miner(shop.rows, ANY)
    for above in (20, 3, 30, 0):
        assert known.histogram(above) == fresh.histogram(above)
        for left, right in zip(listed(known, above), listed(fresh, above), strict=True):
            assert left == right


def listed(miner, above):
    """Itemsets and supports; how far they are filled up does not matter."""
    itemsets, supports = miner.above(above)
    return [[code for code in row if code >= 0] for row in itemsets.tolist()], supports.tolist()


def test_without_the_sets_it_says_so_and_measures_nothing(monkeypatch, capsys, tmp_path):
    monkeypatch.delenv(itemset_quality.VARIABLE, raising=False)
    monkeypatch.setattr(sys, "argv", ["itemset_quality", "--data", str(tmp_path / "nowhere")])
    monkeypatch.setattr(itemset_quality, "measure", lambda *_: pytest.fail("it measured"))
    itemset_quality.main()
    assert "SKIPPED" in capsys.readouterr().err


def test_labels_are_those_of_the_methods():
    assert set(PUBLISHED) == set(METHODS)
