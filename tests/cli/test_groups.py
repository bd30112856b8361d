"""`privmax select --by`: what it prints and writes, and what it refuses without a charge."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import group_commands
import polars as pl
import pytest
from group_commands import PRICE, check_one_charge, check_refusal, write_rows

NAMED = ["--item", "page", "--user", "visitor", "--by", "region"]
DECLARED = [*NAMED, "--groups", "regions.csv"]


def list_visits(who, region):
    best, other = "home" if who < 300 else "shop", "help" if who < 250 or who > 360 else "old"
    return (f"{who},{region},{best}", f"{who},{region},{other}", f"{who},east,ads")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_rows("visits.csv", "visitor,region,page", list_visits)
    Path("twice.csv").write_text("south\nnorth\nsouth\n")
    Path("empty.csv").write_text("")
    many = [f"{who},r{who % 30:02},home" for who in range(3000)]
    Path("many.csv").write_text("\n".join(["visitor,region,page", *many, ""]))


run = partial(group_commands.run, "select")


def test_every_declared_group_is_listed():
    found = run("visits.csv", *DECLARED, *PRICE)
    assert (found.exit_code, found.stderr) == (0, "")
    assert found.stdout.splitlines()[:5] == [
        "item       north  home",
        "           south  shop",
        "           west   no answer",
        "note       No answer in 1 of 3 groups: no item stood out enough there.",
        "cost       epsilon 1, delta 1e-06",
    ]


def test_open_groups_are_found_at_a_stated_part_of_the_cost():
    found = run("visits.csv", *NAMED, *PRICE, "--groups-share", "0.4")
    lines = found.stdout.splitlines()
    assert lines[:2] == ["item       north  home", "           south  shop"]
    assert "Finding groups took epsilon 0.4, delta 4e-07 of the cost." in found.stdout
    assert "cost       epsilon 1, delta 1e-06" in lines


def test_several_items_come_with_counts():
    found = run("visits.csv", *DECLARED, *PRICE, "--k", "2", "--counts", "2")
    lines = found.stdout.splitlines()
    assert [line[11:23].split() for line in lines[:4]] == [
        ["north", "help"], ["north", "home"], ["south", "help"], ["south", "shop"],
    ]  # fmt: skip
    assert all("±" in line for line in lines[:4])


def test_of_many_groups_the_first_are_shown():
    found = run("many.csv", *NAMED, *PRICE)
    lines = found.stdout.splitlines()
    assert lines[20].strip() == "… and 10 more: --output FILE writes all items"


@pytest.mark.parametrize("name", ["table.csv", "table.parquet", "table.json"])
def test_a_table_is_written(name):
    found = run("visits.csv", *DECLARED, *PRICE, "--k", "2", "--counts", "1", "--output", name)
    assert found.exit_code == 0, found.output
    if name.endswith("json"):
        groups = json.loads(Path(name).read_text())["groups"]
        assert [one["group"] for one in groups] == ["north", "south", "west"]
        assert groups[2] == {"group": "west", "items": [], "counts": []}
        return
    table = (pl.read_csv if name.endswith("csv") else pl.read_parquet)(name)
    assert table.columns == ["region", "page", "count", "error"]
    assert table["region"].to_list() == ["north", "north", "south", "south"]


def test_ranks_begin_in_every_group():
    words = [*DECLARED, "--epsilon", "20", "--delta", "1e-6", "--k", "2", "--ranked"]
    found = run("visits.csv", *words, "--output", "table.csv")
    assert found.exit_code == 0, found.output
    table = pl.read_csv("table.csv")
    assert table.columns == ["rank", "region", "page", "relative", "apart", "close"]
    assert table.select("rank", "region", "page").rows() == [
        (1, "north", "home"), (2, "north", "help"), (1, "south", "shop"), (2, "south", "help"),
    ]  # fmt: skip
    assert table["relative"].to_list()[::2] == [0, 0]
    assert all(-100 < one < -20 for one in table["relative"].to_list()[1::2])
    assert table["close"].to_list() == [0, 0, 0, 0]
    assert "first" in found.stdout
    assert " behind ± " in found.stdout


def test_a_report_names_groups():
    found = run("visits.csv", *DECLARED, *PRICE, "--report", "page.html")
    assert found.exit_code == 0, found.output
    page = Path("page.html").read_text()
    assert "Which “page” is at the top of each “region” of visits.csv?" in page
    assert "north: home" in page


def test_without_users_rows_are_counted_and_standard_input_is_read():
    words = ["--item", "page", "--by", "region", "--groups", "regions.csv", "--json", *PRICE]
    found = run("-", *words, "--unit", "row", stdin=Path("visits.csv").read_bytes())
    groups = {one["group"]: one["items"] for one in json.loads(found.stdout)["groups"]}
    assert groups == {"north": ["home"], "south": ["shop"], "west": []}


WRONG = {
    "a column that is not there": (["--by", "reigon"], "--by reigon"),
    "by is the item": (["--by", "page"], "--by page: the same column is given as item"),
    "ready scores": (
        ["--by", "region", "--score", "n"],
        "--by region: ready scores have no individuals to count in one group each. Count rows or",
    ),
    "no groups": (
        ["--by", "region", "--groups", "empty.csv"],
        "--groups <labels>: there must be at least one group. Leave it out to have them found.",
    ),
    "a group twice": (["--by", "region", "--groups", "twice.csv"], "more than once"),
    "no such file": (
        ["--by", "region", "--groups", "gone.csv"],
        "--groups gone.csv: it must be the name of a file with all groups, and there is no such "
        "file. Leave it out to have groups found at a part of the cost.",
    ),
    "a number of groups": (
        ["--by", "region", "--groups", "3"], "--groups 3: it must be the name of a file",
    ),
    "no groups of each": (["--by", "region", "--groups-per-user", "0"], "--groups-per-user 0"),
    "a share of 1": (["--by", "region", "--groups-share", "1"], "--groups-share 1"),
    "a share of declared": (
        ["--by", "region", "--groups", "regions.csv", "--groups-share", "0.5"], "--groups-share",
    ),
    "groups alone": (["--groups", "regions.csv"], "--groups regions.csv: it needs --by"),
    "groups per user alone": (["--groups-per-user", "2"], "it needs --by"),
    "replace": (["--by", "region", "--neighbors", "replace"], "Use neighbors add-remove"),
    "a mechanism without delta": (
        ["--by", "region", "--mechanism", "exponential"],
        "--mechanism Exponential: finding groups takes a delta above 0, and its delta is 0.",
    ),
    "a closed universe": (
        ["--by", "region", "--universe", "regions.csv"],
        "groups are for an open universe. Leave universe out.",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("words", "said"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_named_and_charged_nothing(words, said):
    user = [] if "--score" in words else ["--user", "visitor"]
    check_refusal("select", ["visits.csv", "--item", "page", *user, *words], said)


def test_the_ledger_charges_once_and_a_repeated_request_is_free():
    check_one_charge("select", "visits.csv", DECLARED)


def test_no_answer_at_all_says_what_to_do():
    little = ["--epsilon", "0.001", "--delta", "1e-9"]
    found = run("visits.csv", *DECLARED, *little)
    assert "next       See how clear a winner must be: privmax plan" in found.stdout
    assert "public list" not in found.stdout
    found = run("visits.csv", *NAMED, *little)
    assert "public list of groups, declare it (--groups): finding them" in found.stdout
    assert "--universe" not in found.stdout
