"""privmax itemsets, as a user types it: output, exact JSON, exit codes, and mistakes."""

from __future__ import annotations

import json
import re
import sqlite3
from contextlib import closing

import pandas as pd
import pytest
from click.testing import CliRunner

from privmax.cli import main
from privmax.ledger import Ledger
from privmax.privacy import Privacy

PRICE = ("--epsilon", "1", "--delta", "1e-6")
SECRETS = ("73519", "zorblax")


def privmax(*arguments, stdin=None):
    return CliRunner().invoke(main, ["itemsets", *map(str, arguments)], input=stdin)


@pytest.fixture
def dat(tmp_path):
    path = tmp_path / "baskets.dat"
    path.write_text("3 1\n" * 300 + "1 3 2\n" * 90 + "\n" * 5 + "2\n", encoding="utf-8")
    return path


@pytest.fixture
def labels(tmp_path):
    path = tmp_path / "labels.json"
    path.write_text('["salt", "whole milk", "fig", "bread"]', encoding="utf-8")
    return path


def test_the_best_pair_is_printed(dat):
    run = privmax(dat, *PRICE)
    assert (run.exit_code, run.stderr) == (0, "")
    assert run.stdout.splitlines() == [
        "itemset    1 + 3",
        "cost       epsilon 1, delta 1e-06",
        "mechanism  finds a clear winner without a list of items (NestedMargin)",
    ]


def test_items_are_printed_by_their_names(dat, labels):
    assert privmax(dat, *PRICE, "--labels", labels).stdout.startswith(
        "itemset    whole milk + bread\n"
    )


def test_names_may_be_those_of_some_items(dat, tmp_path):
    path = tmp_path / "some.json"
    path.write_text('{"3": "bread"}', encoding="utf-8")
    assert privmax(dat, *PRICE, "--labels", path).stdout.startswith("itemset    1 + bread\n")


def test_supports_are_printed_and_paid_for(dat):
    shown, price, _, noise = privmax(dat, *PRICE, "--supports", "2").stdout.splitlines()
    assert re.fullmatch(r"itemset    1 \+ 3  3\d\d ± 1 \(95 %\)", shown)
    assert price == "cost       epsilon 3, delta 1e-06"
    assert noise == "counts     discrete Laplace noise, for epsilon 2, delta 0 of the cost"


def test_rules_are_printed_by_the_names_of_their_items_and_paid_for(dat, labels):
    run = privmax(dat, *PRICE, "--rules", "50", "--labels", labels)
    itemset, first, second, price, _ = run.stdout.splitlines()
    assert itemset == "itemset    whole milk + bread"
    assert sorted(line[11:].split(":")[0] for line in (first, second)) == [
        "bread → whole milk",
        "whole milk → bread",
    ]
    assert first.startswith("rule       ")
    assert ": confidence 1 (" in first
    assert price == "cost       epsilon 51, delta 1e-06"


def test_rules_in_json_say_how_far_they_may_be_off(dat, labels):
    run = privmax(dat, *PRICE, "--rules", "50", "--labels", labels, "--json")
    rules = json.loads(run.stdout)["rules"]
    assert {tuple(rule["antecedent"]) for rule in rules} == {("whole milk",), ("bread",)}
    for rule in rules:
        assert set(rule) == {"antecedent", "consequent", "support", "confidence", "lift"}
        assert rule["support"]["low"] <= 390 <= rule["support"]["high"]
        assert rule["lift"]["low"] <= 391 / 390 <= rule["lift"]["high"]


def test_rules_with_users_say_whom_they_count(tmp_path):
    rows = [
        f"{user},{visit},{item}\n"
        for user in range(900)
        for visit, item in [(0, "tea"), (0, "jam"), (1, "jam"), (1, "tea")][: 2 + user % 3]
    ]
    (tmp_path / "rows.csv").write_text("card,visit,item\n" + "".join(rows))
    layout = ("--basket", "card", "--basket", "visit", "--item", "item", "--rules", "5")
    by_user = privmax(tmp_path / "rows.csv", *PRICE, *layout, "--user", "card")
    assert "note       Rules count each user once, with all baskets together.\n" in by_user.stdout
    by_basket = privmax(tmp_path / "rows.csv", *PRICE, *layout, "--unit", "basket")
    assert "rule       " in by_basket.stdout
    assert "note" not in by_basket.stdout


def test_rules_need_two_items(dat):
    run = privmax(dat, *PRICE, "--rules", "0.5", "--size", "1")
    assert run.exit_code == 2
    assert "a rule needs itemsets of two or more items" in run.stderr


def test_the_json_is_one_object(dat, labels):
    run = privmax(dat, "--epsilon", "0.5", "--items", "4", "--labels", labels, "--json")
    assert json.loads(run.stdout) == {
        "itemset": ["whole milk", "bread"],
        "itemsets": [["whole milk", "bread"]],
        "requested": 1,
        "ranked": False,
        "supports": [],
        "error": None,
        "rules": [],
        "privacy": {"epsilon": "0.5", "delta": "0"},
        "mechanism": "PermuteAndFlip(epsilon=0.5, delta=0, neighbors='add-remove', k=1)",
        "why": "delta is 0",
        "free": {},
        "unit": "basket",
    }


def test_many_are_a_set_unless_an_order_is_asked_for(tmp_path):
    path = tmp_path / "many.dat"
    path.write_text("7 8\n" * 3000 + "3 4\n" * 2000 + "1 2\n" * 1000, encoding="utf-8")
    asked = (path, *PRICE, "--k", 4)
    assert privmax(*asked).stdout.splitlines()[:5] == [
        "itemset    1 + 2",
        "           3 + 4",
        "           7 + 8",
        "note       Sorted by name; their order is not released.",
        "           3 of 4 released: nothing else stood out.",
    ]
    first, *others, note, fewer = privmax(*asked, "--ranked").stdout.splitlines()[:5]
    assert first.split() == ["itemset", "7", "+", "8", "first"]
    assert [line.split()[:3] for line in others] == [["3", "+", "4"], ["1", "+", "2"]]
    assert all(re.search(r"[\d,]+ behind ± \d+$", line) for line in others)
    assert note == "note       Best first, by noisy counts: each item is clearly ahead of the next."
    assert fewer == "           3 of 4 released: nothing else stood out."
    found = json.loads(privmax(*asked, "--json").stdout)
    assert found["itemsets"] == [[1, 2], [3, 4], [7, 8]]
    assert (found["requested"], found["ranked"]) == (4, False)


def test_nothing_is_an_answer(tmp_path):
    path = tmp_path / "few.dat"
    path.write_text("1 2\n", encoding="utf-8")
    run = privmax(path, *PRICE)
    assert (run.exit_code, run.stdout.splitlines()[0]) == (
        0,
        "itemset    no answer: no itemset stood out enough",
    )
    assert json.loads(privmax(path, *PRICE, "--json").stdout)["itemset"] is None


def test_standard_input_is_read():
    assert privmax("-", *PRICE, stdin="7 8\n" * 100).stdout.startswith("itemset    7 + 8\n")


@pytest.mark.parametrize(
    "options",
    [
        ("--size", "3"),
        ("--size", "3-5"),
        ("--size", "any", "--k", "7"),
        ("--mechanism", "sharp-margin"),
        ("--mechanism", "limited-domain", "--rank", "5"),
        ("--mechanism", "choosing", "--longest", "3"),
        ("--longest", "3"),
        ("--floor", "20"),
        ("--neighbors", "replace"),
    ],
)
def test_options_are_passed_on(dat, options):
    run = privmax(dat, *PRICE, *options)
    assert run.exit_code == 0, run.stderr
    assert run.stdout.startswith("itemset    1 ") or "--k" in options


@pytest.mark.parametrize(
    "name",
    [
        "blst10",
        "blst10-laplace",
        "priv-basis",
        "smart-trunc",
        "diff-part",
        "prefix-tree",
        "exponential",
    ],
)
def test_methods_are_chosen_by_name(dat, name):
    run = privmax(dat, "--epsilon", "5", "--items", "4", "--mechanism", name, "--json")
    assert run.exit_code == 0, run.stderr
    assert json.loads(run.stdout)["privacy"] == {"epsilon": "5", "delta": "0"}


def test_rows_with_columns_are_baskets(tmp_path):
    rows = [(f"r{n}", item, n) for n in range(200) for item in ("bread", "whole milk")]
    frame = pd.DataFrame(rows, columns=["receipt", "article", "card"])
    frame.to_csv(tmp_path / "sales.csv", index=False)
    frame.to_parquet(tmp_path / "sales.parquet")
    with closing(sqlite3.connect(tmp_path / "sales.sqlite")) as database:
        frame.to_sql("sales", database, index=False)
    columns = ("--basket", "receipt", "--item", "article")
    for file in ("sales.csv", "sales.parquet"):
        for more in ((), ("--user", "card")):
            run = privmax(tmp_path / file, *columns, *more, *PRICE)
            assert run.stdout.startswith("itemset    bread + whole milk\n"), run.stderr
    run = privmax(f"sqlite://{tmp_path}/sales.sqlite", "--table", "sales", *columns, *PRICE)
    assert run.stdout.startswith("itemset    bread + whole milk\n"), run.stderr


ONE_HOT = "card,bread,jam,whole milk\n" + "".join(f"{n},1,{n % 2},1\n" for n in range(200))


@pytest.fixture
def one_hot(tmp_path):
    path = tmp_path / "onehot.csv"
    path.write_text(ONE_HOT, encoding="utf-8")
    return path


@pytest.mark.parametrize("column", ["--user", "--basket"])
def test_a_column_for_each_item(one_hot, tmp_path, column):
    pd.read_csv(one_hot).to_parquet(tmp_path / "onehot.parquet")
    with closing(sqlite3.connect(tmp_path / "onehot.sqlite")) as database:
        pd.read_csv(one_hot).to_sql("sales", database, index=False)
    places = (
        (one_hot,),
        (tmp_path / "onehot.parquet",),
        (f"sqlite://{tmp_path}/onehot.sqlite", "--table", "sales"),
    )
    for place in places:
        run = privmax(*place, "--form", "onehot", column, "card", *PRICE)
        assert run.stdout.startswith("itemset    bread + whole milk\n"), run.stderr
    run = privmax("-", "--form", "onehot", column, "card", *PRICE, stdin=ONE_HOT)
    assert run.stdout.startswith("itemset    bread + whole milk\n"), run.stderr


@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--form", "wide"),
        ("--form", "wide", "--header"),
        ("--separator", ","),
        ("--basket", "card", "--item", "jam"),
        ("--form", "fimi"),
    ],
    ids=" ".join,
)
def test_a_column_for_each_item_is_not_taken_for_something_else(one_hot, tmp_path, options):
    """And nothing is charged for it."""
    with Ledger.create(tmp_path / "budget.db", budget=Privacy(3, "1e-3")) as ledger:
        run = privmax(
            one_hot, *PRICE, "--size", "1-2", "--ledger", tmp_path / "budget.db", *options
        )
        assert (run.exit_code, run.stdout) == (2, "")
        assert re.search("form (to )?onehot", run.stderr)
        assert ledger.spent == Privacy(0)


@pytest.mark.slow
@pytest.mark.usefixtures("plans_made_once")
@pytest.mark.parametrize("kind", ["csv", "parquet", "sqlite"])
def test_several_columns_tell_baskets_apart(tmp_path, kind):
    """By the day alone every basket would hold both pairs."""
    bought = [
        (n, n % 5, item)
        for n in range(300)
        for item in (("bread", "jam") if n % 3 else ("fig", "salt"))
    ]
    frame = pd.DataFrame(bought, columns=["customer", "day", "article"])
    place = (tmp_path / f"sales.{kind}",)
    if kind == "csv":
        frame.to_csv(*place, index=False)
    elif kind == "parquet":
        frame.to_parquet(*place)
    else:
        with closing(sqlite3.connect(*place)) as database:
            frame.to_sql("sales", database, index=False)
        place = (f"sqlite://{place[0]}", "--table", "sales")
    columns = ("--basket", "customer", "--basket", "day", "--item", "article")
    report = tmp_path / "report.html"
    run = privmax(*place, *columns, *PRICE, "--report", report)
    assert run.stdout.startswith("itemset    bread + jam\n"), run.stderr
    assert "customer, day" in report.read_text(encoding="utf-8")
    alone = privmax(*place, "--basket", "day", "--item", "article", *PRICE)
    assert alone.stdout.startswith("itemset    no answer: no itemset stood out enough\n")


def test_a_basket_a_line_with_a_separator(tmp_path):
    path = tmp_path / "wide.csv"
    path.write_text("bread;whole milk\n" * 200, encoding="utf-8")
    assert privmax(path, *PRICE, "--separator", ";").stdout.startswith(
        "itemset    bread + whole milk\n"
    )


def test_the_form_of_a_file_whose_name_does_not_tell(tmp_path):
    path = tmp_path / "baskets.txt"
    path.write_text("left,right\n" + "bread,whole milk\n" * 200, encoding="utf-8")
    run = privmax(path, *PRICE, "--form", "wide", "--header")
    assert run.stdout.startswith("itemset    bread + whole milk\n"), run.stderr
    run = privmax(path, *PRICE, "--form", "wide", "--header", "--items", tmp_path / "none.csv")
    assert "--items" in run.stderr or "items=" in run.stderr
    assert privmax(path, *PRICE).exit_code == 2


def test_a_file_of_all_items_closes_the_universe(dat, tmp_path):
    path = tmp_path / "items.csv"
    path.write_text("bread\nfig\nwhole milk\n", encoding="utf-8")
    wide = tmp_path / "wide.csv"
    wide.write_text("bread,whole milk\n" * 200, encoding="utf-8")
    run = privmax(wide, "--form", "wide", "--epsilon", "1", "--items", path)
    assert run.stdout.splitlines()[::2] == [
        "itemset    bread + whole milk",
        "mechanism  draws an item, likelier the better it is (PermuteAndFlip: delta is 0)",
    ]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("none.dat", *PRICE), "FILE 'none.dat': No such file or folder."),
        (("words.dat", *PRICE), "Line 2"),
        (("secret.dat", "--epsilon", "1"), "an open universe needs a delta above 0"),
        (("secret.dat", "--epsilon", "one", "--delta", "1e-6"), "--epsilon one:"),
        (("secret.dat", *PRICE, "--size", "0"), "--size 0:"),
        (("secret.dat", *PRICE, "--size", "two"), "--size two:"),
        (("secret.dat", *PRICE, "--items", "9"), "item"),
        (("secret.dat", *PRICE, "--items", "all"), "--items all:"),
        (("secret.dat", *PRICE, "--basket", "receipt"), "--basket receipt:"),
        (("secret.dat", *PRICE, "--longest", "1"), "A basket has more items than longest allows"),
        (
            ("secret.dat", *PRICE, "--longest", "1", "--mechanism", "choosing"),
            "A basket has more items than longest",
        ),
        (
            ("secret.dat", *PRICE, "--longest", "2", "--mechanism", "large-margin"),
            "growth 1:",
        ),
        (("secret.dat", *PRICE, "--rank", "1"), "only limited-domain takes it"),
        (("secret.dat", *PRICE, "--mechanism", "priv-basis"), "PrivBasis needs all items"),
        (
            ("secret.dat", *PRICE, "--mechanism", "blst10", "--neighbors", "add-remove"),
            "blst10 does not take it",
        ),
        (("secret.dat", *PRICE, "--labels", "none.json"), "--labels: No such file"),
        (("secret.dat", *PRICE, "--labels", "secret.dat"), "--labels: the file is neither a JSON"),
        (("secret.dat", *PRICE, "--table", "sales"), "the data is not a database"),
    ],
)
def test_mistakes_are_named_and_nothing_private_is_shown(tmp_path, monkeypatch, options, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "secret.dat").write_text("73519 8\n" * 3, encoding="utf-8")
    (tmp_path / "words.dat").write_text("73519 8\nzorblax 73519\n", encoding="utf-8")
    run = privmax(*options)
    assert (run.exit_code, run.stdout) == (2, "")
    assert message in run.stderr
    assert not [secret for secret in SECRETS if secret in run.stderr]
