"""--check, --encoding, --delimiter, --header-is-public and --missing-users, as they are typed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from privmax.cli import main
from privmax.ledger import Ledger
from privmax.privacy import Privacy

PRICE = ("--epsilon", "4", "--delta", "1e-6")
QUERY = ("--item", "query", "--user", "person", *PRICE)
BASKETS = ("--basket", "person", "--item", "query", *PRICE)
LEARN = ("--label", "card", "--labels", "0,1", "--low", "0", "--high", "100", "--epsilon", "4")
ROWS = [(f"u{n}", "maß") for n in range(90)] + [(f"u{n}", "fuß") for n in range(90)]
AGES = [(n % 100, int(n % 100 > 50)) for n in range(400)]


def privmax(*words, stdin=None):
    return CliRunner().invoke(main, list(map(str, words)), input=stdin)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = [json.dumps({"person": who, "query": what}) for who, what in ROWS]
    Path("a.jsonl").write_text("\n".join(lines))
    content = "person|query\n" + "".join(f"{who}|{what}\n" for who, what in ROWS)
    Path("a.csv").write_bytes(content.encode("cp1252"))
    ages = "alter|card\n" + "".join(f"{age}|{card}\n" for age, card in AGES)
    Path("ages.csv").write_bytes(ages.encode("utf-16"))
    Path("ages.jsonl").write_text(
        "".join(json.dumps({"alter": age, "card": card}) + "\n" for age, card in AGES)
    )


DATA = {
    "select": ["select", "a.csv", "--delimiter", "|", "--encoding", "cp1252", *QUERY],
    "keys": ["keys", "a.csv", "--delimiter", "|", "--encoding", "cp1252", *QUERY],
    "itemsets": ["itemsets", "a.csv", "--delimiter", "|", "--encoding", "cp1252", *BASKETS],
    "learn": ["learn", "ages.csv", "--delimiter", "|", "--encoding", "utf-16", *LEARN],
}


FILES = {
    "select": {"--output": "a.parquet", "--report": "page.html"},
    "keys": {"--output": "keys.csv", "--report": "page.html"},
    "itemsets": {"--output": "sets.json", "--report": "page.html"},
    "learn": {"--report": "page.html", "--save": "model.json"},
}


@pytest.mark.parametrize("command", FILES)
def test_a_check_says_which_files_it_does_not_write(command):
    options = [word for pair in FILES[command].items() for word in pair]
    told = f"{' and '.join(sorted(FILES[command]))} need a release"
    run = privmax(*DATA[command], *options, "--check")
    assert (run.exit_code, run.stderr) == (0, "")
    assert run.stdout.splitlines()[-1] == f"written    nothing: {told}"
    run = privmax(*DATA[command], *options, "--check", "--json")
    assert (run.exit_code, json.loads(run.stdout)) == (0, {"checked": True})
    assert told in run.stderr
    assert not any(Path(file).exists() for file in FILES[command].values())
    assert "written" not in privmax(*DATA[command], "--check").stdout


@pytest.mark.parametrize("words", DATA.values(), ids=DATA)
def test_a_check_prints_that_all_is_well_and_charges_nothing(words):
    Ledger.create("b.db", budget=Privacy(9, "1e-3")).close()
    before = Path("b.db").read_bytes()
    paid = ["--ledger", "b.db", "--report", "page.html"]
    run = privmax(*words, *paid, "--check")
    assert (run.exit_code, run.stderr) == (0, "")
    assert run.stdout.startswith("checked    FILE can be read")
    run = privmax(*words, *paid, "--check", "--json")
    assert (run.exit_code, json.loads(run.stdout)) == (0, {"checked": True})
    assert Path("b.db").read_bytes() == before
    assert not Path("page.html").exists()
    run = privmax(*words, *paid, "--json")
    assert run.exit_code == 0, run.output
    assert "checked" not in json.loads(run.stdout)
    assert Path("b.db").read_bytes() != before


MISSPELLED = {
    "select": (["select", "a.jsonl", "--item", "quary", "--user", "person", *PRICE], "query"),
    "keys": (["keys", "a.jsonl", "--item", "quary", "--user", "person", *PRICE], "query"),
    "itemsets": (["itemsets", "a.jsonl", "--basket", "persn", "--item", "query", *PRICE], "person"),
    "learn": (["learn", "ages.jsonl", *LEARN, "--features", "altr"], "alter"),
}


@pytest.mark.parametrize(("words", "meant"), MISSPELLED.values(), ids=MISSPELLED)
def test_a_check_finds_a_misspelled_key_of_json_lines(words, meant):
    run = privmax(*words, "--check")
    assert run.exit_code == 2
    assert "No line of the file has the key" in run.stderr
    assert "--header-is-public" in run.stderr
    assert meant not in run.stderr.replace("--header", "")
    run = privmax(*words, "--check", "--header-is-public")
    assert run.exit_code == 2
    assert f"Did you mean '{meant}'?" in run.stderr


@pytest.mark.parametrize("name", DATA)
def test_a_typo_gets_the_nearest_column_where_those_are_public(name):
    words = [{"person": "persn", "card": "cards"}.get(word, word) for word in DATA[name]]
    meant = "card" if name == "learn" else "person"
    run = privmax(*words)
    assert run.exit_code == 2
    assert "Did you mean" not in run.stderr
    run = privmax(*words, "--header-is-public")
    assert run.exit_code == 2
    assert f"Did you mean '{meant}'?" in run.stderr


def test_standard_input_is_decoded():
    content = Path("a.csv").read_bytes()
    for command in ("select", "keys", "itemsets"):
        words = [command, "-", *DATA[command][2:]]
        run = privmax(*words, "--json", stdin=content)
        assert run.exit_code == 0, run.output
        assert "ß" in run.stdout


def test_applying_a_rule_reads_what_is_declared():
    run = privmax(*DATA["learn"], "--save", "rule.json")
    assert run.exit_code == 0, run.output
    run = privmax("learn", "ages.csv", "--apply", "rule.json", "--delimiter", "|",
                  "--encoding", "utf-16")  # fmt: skip
    assert run.exit_code == 0, run.output
    assert len(run.stdout.splitlines()) == 401


@pytest.mark.parametrize("words", DATA.values(), ids=DATA)
def test_a_check_refuses_the_id_of_another_request(words):
    Ledger.create("b.db", budget=Privacy(9, "1e-3")).close()
    paid = ["--ledger", "b.db", "--request", "nightly"]
    assert privmax(*words, *paid).exit_code == 0
    assert privmax(*words, *paid, "--check").exit_code == 0
    run = privmax(*words, *paid, "--dataset", "another month", "--check")
    assert (run.exit_code, run.stdout) == (2, "")
    assert "with a different question" in run.stderr
    assert run.stderr == privmax(*words, *paid, "--dataset", "another month").stderr


def test_a_strict_ledger_refuses_a_check():
    Ledger.create("b.db", budget=Privacy(9, "1e-3"), strict=True).close()
    for words in DATA.values():
        run = privmax(*words, "--ledger", "b.db", "--check")
        assert run.exit_code == 2
        assert run.stderr.startswith("Error: --check: a strict ledger charges")


def test_rows_without_a_user_are_dropped_if_that_is_asked_for():
    Path("b.csv").write_text(
        "person,query\n" + "".join(f"u{n},tea\n" for n in range(90)) + ",ale\n"
    )
    run = privmax("select", "b.csv", *QUERY)
    assert run.exit_code == 2
    assert "A row has an item but no user. " in run.stderr
    run = privmax("select", "b.csv", *QUERY, "--missing-users", "drop", "--json")
    assert json.loads(run.stdout)["item"] == "tea"


def test_a_declared_delimiter_is_refused_where_there_is_none():
    run = privmax("select", "a.jsonl", *QUERY, "--delimiter", ";")
    assert (
        run.stderr
        == "Error: --delimiter ;: only CSV has one, and this data is not CSV. Leave it out.\n"
    )


LEFT_OUT = {
    "select": ["select", "a.csv", "--item", "query", *PRICE],
    "itemsets": ["itemsets", "a.csv", *BASKETS],
}


@pytest.mark.parametrize("words", LEFT_OUT.values(), ids=LEFT_OUT)
def test_missing_users_name_the_option_that_is_missing(words):
    run = privmax(*words, "--missing-users", "drop")
    assert (run.exit_code, run.stderr.strip()) == (
        2,
        "Error: --missing-users drop: no column of users is named. Name it with user "
        "(--user COLUMN), or leave this out.",
    )


def test_an_encoding_is_quoted_as_it_was_typed():
    run = privmax("select", "a.parquet", "--encoding", "latin-1", *QUERY)
    assert (run.exit_code, run.stderr.split(":")[1]) == (2, " --encoding latin-1")


@pytest.mark.parametrize("name", ["a.zip", "a.json", "shop.db"])
@pytest.mark.parametrize("command", DATA)
def test_a_strict_ledger_is_not_charged_for_what_a_name_refuses(command, name):
    Ledger.create("b.db", budget=Privacy(9, "1e-3"), strict=True).close()
    word, _, _, _, _, _, *rest = DATA[command]
    run = privmax(word, name, *rest, "--unit", "user", "--ledger", "b.db")
    assert (run.exit_code, run.stdout) == (2, "")
    assert "archive" in run.stderr or "document" in run.stderr or "--table" in run.stderr
    with Ledger("b.db") as ledger:
        assert ledger.spent == Privacy(0)
