"""`privmax itemsets --by`: what it prints and writes, and what it refuses without a charge."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import group_commands
import polars as pl
import pytest
from group_commands import PRICE, check_one_charge, check_refusal, write_rows

NAMED = ["--basket", "receipt", "--item", "article", "--user", "member"]
BY = [*NAMED, "--by", "region"]
DECLARED = [*BY, "--groups", "regions.csv"]


def list_sales(who, region):
    bought = ((region, 1 + 2 * (who >= 300)), (region, 2 + 2 * (who >= 300)), ("east", 5))
    return (f"{who},{who}-1,{place},{article}" for place, article in bought)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_rows("sales.csv", "member,receipt,region,article", list_sales)
    Path("baskets.dat").write_text("1 2\n" * 9)
    Path("names.json").write_text(json.dumps({"1": "tea", "2": "milk", "3": "ale", "4": "nuts"}))


run = partial(group_commands.run, "itemsets")


def test_every_declared_group_is_listed():
    found = run("sales.csv", *DECLARED, *PRICE, "--labels", "names.json")
    assert (found.exit_code, found.stderr) == (0, "")
    assert found.stdout.splitlines()[:5] == [
        "itemset    north  tea + milk",
        "           south  ale + nuts",
        "           west   no answer",
        "note       No answer in 1 of 3 groups: no itemset stood out enough there.",
        "cost       epsilon 1, delta 1e-06",
    ]


@pytest.mark.parametrize("mechanism", ["auto", "nested-margin"])
def test_open_groups_are_found_at_a_stated_part_of_the_cost(mechanism):
    words = [*BY, *PRICE, "--groups-share", "0.4", "--mechanism", mechanism]
    found = run("sales.csv", *words)
    lines = found.stdout.splitlines()
    assert lines[:2] == ["itemset    north  1 + 2", "           south  3 + 4"]
    assert "Finding groups took epsilon 0.4, delta 4e-07 of the cost." in found.stdout
    assert "cost       epsilon 1, delta 1e-06" in lines


@pytest.mark.parametrize("name", ["table.csv", "table.parquet", "table.json"])
def test_a_table_is_written(name):
    words = ["--size", "1-2", "--k", "2", "--supports", "1", "--labels", "names.json"]
    found = run("sales.csv", *DECLARED, *PRICE, *words, "--output", name)
    assert found.exit_code == 0, found.output
    if name.endswith("json"):
        groups = json.loads(Path(name).read_text())["groups"]
        assert [one["group"] for one in groups] == ["north", "south", "west"]
        assert groups[2] == {"group": "west", "itemsets": [], "supports": []}
        assert set(groups[0]["itemsets"][0]) <= {"tea", "milk"}
        return
    table = (pl.read_csv if name.endswith("csv") else pl.read_parquet)(name)
    assert table.columns == ["region", "itemset", "support", "error"]
    assert table["region"].to_list() == ["north", "north", "south", "south"]


def test_an_order_comes_with_distances():
    words = ["--size", "1-2", "--k", "2", "--ranked", "--output", "table.csv"]
    found = run("sales.csv", *DECLARED, "--epsilon", "9", "--delta", "1e-6", *words)
    assert found.exit_code == 0, found.output
    columns = ["rank", "region", "itemset", "relative", "apart", "close"]
    assert pl.read_csv("table.csv").columns == columns
    assert pl.read_csv("table.csv")["rank"].to_list() == [1, 2, 1, 2]


def test_a_report_names_groups():
    found = run("sales.csv", *DECLARED, *PRICE, "--report", "page.html")
    assert found.exit_code == 0, found.output
    page = Path("page.html").read_text()
    assert "Which set of 2 items is most frequent in each “region” of sales.csv?" in page
    assert "north: 1 + 2" in page


def test_standard_input_and_json():
    words = [*DECLARED, *PRICE, "--json", "--form", "long"]
    found = run("-", *words, stdin=Path("sales.csv").read_bytes())
    groups = {one["group"]: one["itemsets"] for one in json.loads(found.stdout)["groups"]}
    assert groups == {"north": [["1", "2"]], "south": [["3", "4"]], "west": []}


def test_a_file_whose_ending_says_nothing_is_read_as_its_form_says():
    Path("sales.txt").write_text(Path("sales.csv").read_text().replace(",", ";"))
    found = run("sales.txt", *DECLARED, *PRICE, "--form", "long", "--delimiter", ";")
    assert found.stdout.startswith("itemset    north  1 + 2"), found.output


WRONG = {
    "a file without columns": (["baskets.dat", "--by", "region"], "have no column of groups"),
    "columns of such a file": (["baskets.dat", *BY], "--by region: a file in the form fimi"),
    "one-hot": (["sales.csv", *BY, "--form", "onehot"], "--by region: the form onehot"),
    "a column that is not there": (["sales.csv", *NAMED, "--by", "reigon"], "--by reigon"),
    "rules": (["sales.csv", *BY, "--rules", "1"], "--rules 1: association rules are not"),
    "items": (["sales.csv", *BY, "--items", "9"], "--items"),
    "a published method": (["sales.csv", *BY, "--mechanism", "priv-basis"], "--mechanism"),
    "replace": (["sales.csv", *BY, "--neighbors", "replace"], "leave a group for another"),
    "groups alone": (["sales.csv", *NAMED, "--groups", "regions.csv"], "it needs --by"),
    "several of a basket": (
        ["sales.csv", "--basket", "receipt", "--item", "article", "--by", "region",
         "--groups-per-user", "2"], "--groups-per-user 2: without user every basket",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("words", "said"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_named_and_charged_nothing(words, said):
    check_refusal("itemsets", words, said)


def test_the_ledger_charges_once_and_a_repeated_request_is_free():
    check_one_charge("itemsets", "sales.csv", DECLARED)
