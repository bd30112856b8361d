"""Every command with --json has a schema that fits what it prints, and nothing else."""

from __future__ import annotations

import copy
import json
import shlex
from pathlib import Path

import click
import jsonschema
import pytest
from click.testing import CliRunner

from privmax.cli import main, schemas

COUNTS = "sample:counts --item query --score people --epsilon 1 --delta 1e-6"
SEARCHES = "sample:searches --item query --user person --epsilon 1 --delta 1e-6"
BASKETS = "sample:receipts --basket receipt --item article --user member --epsilon 1 --delta 1e-6"
MEMBERS = "sample:members --label card --labels 0,1 --low 0 --high 100 --epsilon 1"
VISITS = "visits.csv --item page --user visitor --by region --epsilon 1 --delta 1e-6"
SALES = "visits.csv --basket visitor --item page --user visitor --by region --size 1 " \
    "--epsilon 1 --delta 1e-6"  # fmt: skip
SILENT = "--epsilon 0.001 --delta 1e-9"

RUNS = {
    "select": [
        f"select {COUNTS}",
        f"select {COUNTS} --ledger b.db --account ada",
        f"select {COUNTS} --k 3",
        f"select {COUNTS} --k 2 --ranked",
        f"select {COUNTS} --k 12 --counts 0.5",
        f"select {COUNTS} --counts 0.5 --resolution 0.25 --neighbors replace",
        f"select sample:counts --item query --score people {SILENT}",
        f"select {COUNTS} --mechanism large-margin",
        "select sample:receipts --item article --item receipt --user member --epsilon 1 --delta "
        "1e-6",
        "select numbers.csv --item number --epsilon 1 --delta 1e-6 --user user",
    ],
    "select-by": [
        f"select {VISITS}",
        f"select {VISITS} --groups regions.csv --k 2 --counts 0.5 --ledger b.db",
        f"select visits.csv --item page --user visitor --by region {SILENT}",
        f"select {VISITS} --groups regions.csv --k 2 --ranked",
    ],
    "keys": [
        f"keys {SEARCHES}",
        f"keys {SEARCHES} --counts 0.5 --other --ledger b.db",
        f"keys sample:searches --item query --user person {SILENT} --counts 0.001",
        "keys numbers.csv --item number --user user --epsilon 1 --delta 1e-6",
    ],
    "itemsets": [
        f"itemsets {BASKETS}",
        f"itemsets {BASKETS} --k 2 --supports 0.5 --ledger b.db",
        f"itemsets {BASKETS} --k 2 --ranked",
        f"itemsets sample:receipts --basket receipt --item article --user member {SILENT}",
        "itemsets baskets.dat --epsilon 9 --delta 1e-6",
    ],
    "itemsets-by": [
        f"itemsets {SALES}",
        f"itemsets {SALES} --groups regions.csv --k 2 --supports 0.5 --ledger b.db",
        f"itemsets {SALES} --groups regions.csv --k 2 --ranked",
    ],
    "learn": [
        f"learn {MEMBERS} --hypotheses stumps",
        f"learn {MEMBERS}",
        "learn sample:members --label card --labels 0,1 --epsilon 9 --schema schema.toml "
        "--delta 1e-6",
        f"learn {MEMBERS} --hypotheses trees --features age,visits --ledger b.db --unit user",
        f"learn {MEMBERS} --features age,visits --hypotheses conjunctions",
        "learn sample:members --label card --labels 0,1 --epsilon 9 --schema schema.toml",
        "learn work.csv --label card --labels 0,1 --epsilon 9 --schema work.toml",
    ],
    "plan": [
        "plan --epsilon 1 --delta 1e-6 --universe 1e30",
        "plan --epsilon 1 --universe 10 --near 3",
        "plan --k 10 --epsilon 1 --delta 1e-6",
    ],
    "plan-keys": ["plan --keys --per-user 3 --epsilon 1 --delta 1e-6"],
    "compare": [
        "compare --scores 60,58,3 --epsilon 1 --delta 1e-6",
        "compare --best 60 --universe 1e30 --epsilon 1 --delta 1e-6 --mechanism gap-test",
        "compare --scores 0 --epsilon 1 --delta 1e-6 --mechanism gap-test",
        "compare --scores 60,58,3 --k 2 --universe 9 --epsilon 1 --delta 1e-6",
    ],
    "audit": [
        "audit exponential --epsilon 1",
        "audit exponential --epsilon 1 --neighbors replace --claim-epsilon 0.5",
    ],
    "audit-of": [
        "audit --of known-wrong --only 'universe taken'",
        "audit --of known-wrong --only upside",
        "audit --of privmax --only gap-test --samples 500",
    ],
    "budget-create": ["budget create new.db --epsilon 3 --delta 1e-5"],
    "budget-account": ["budget account b.db bo --epsilon 1"],
    "budget-split": ["budget split b.db web --epsilon 1/10 --unit user"],
    "budget-grant": ["budget grant b.db --epsilon 1/3 --why because"],
    "budget-show": ["budget show b.db"],
    "budget-list": ["budget list b.db", "budget list poor.db"],
    "budget-history": ["budget history b.db", "budget history b.db --last 1"],
    "budget-verify": ["budget verify b.db", f"budget verify b.db --noted {'0' * 64}"],
    "check": [
        f"select {COUNTS} --check",
        f"keys {SEARCHES} --check",
        f"itemsets {BASKETS} --check --ledger b.db",
        f"learn {MEMBERS} --check",
    ],
    "refusal": [
        f"select {COUNTS} --ledger poor.db",
        f"select {COUNTS} --ledger b.db --account poor",
    ],
}
"""Commands by the schema of what they print."""

CODES = {"refusal": 3}


def with_json(command: click.Command, name: str = "") -> list[str]:
    """The names of all commands that have --json, words joined by dashes: as click knows them, and
    no list.
    """
    found = [name] if any("--json" in parameter.opts for parameter in command.params) else []
    if isinstance(command, click.Group):
        context = click.Context(command)
        for word in command.list_commands(context):
            below = command.get_command(context, word)
            assert below is not None
            found += with_json(below, f"{name}-{word}".strip("-"))
    return found


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A ledger with an account that has something left and one that has not, a poor ledger, and
    baskets of numbers.
    """
    monkeypatch.chdir(tmp_path)
    Path("baskets.dat").write_text("1 2\n" * 50, encoding="utf-8")
    Path("numbers.csv").write_text(
        "number,user\n" + "".join(f"7,{user}\n" for user in range(90)), encoding="utf-8"
    )
    visits = [f"{who},{'north' if who < 99 else 'south'},home\n" for who in range(200)]
    Path("visits.csv").write_text("visitor,region,page\n" + "".join(visits), encoding="utf-8")
    Path("regions.csv").write_text("north\nsouth\nwest\n", encoding="utf-8")
    Path("schema.toml").write_text(
        "[visits]\nlow = 0\nhigh = 100\nmissing = true\n", encoding="utf-8"
    )
    Path("work.toml").write_text('[work]\nvalues = ["tea", "ale"]\n', encoding="utf-8")
    Path("work.csv").write_text("work,card\n" + "tea,1\nale,0\nrum,0\n" * 50, encoding="utf-8")
    for line in (
        "budget create b.db --epsilon 9 --delta 1e-3",
        "budget account b.db ada --epsilon 3 --delta 1e-5",
        "budget account b.db poor --epsilon 0.1",
        "budget create poor.db --epsilon 0.1",
    ):
        assert CliRunner().invoke(main, shlex.split(line)).exit_code == 0


ELSEWHERE = {"budget-unblock"}
"""What takes a server: tests/engines/test_team.py."""


def printed(name: str, line: str) -> object:
    run = CliRunner().invoke(main, [*shlex.split(line), "--json"])
    broken = name.startswith("audit") or "--noted" in line  # then the exit code is the answer
    assert run.exit_code in ({0, 1} if broken else {CODES.get(name, 0)}), run.output
    assert run.stdout.count("\n") == 1
    return json.loads(run.stdout)


def test_every_command_with_json_has_a_schema_and_none_is_left_over():
    more = ["refusal", "audit-of", "plan-keys", "select-by", "itemsets-by", "check"]
    assert sorted([*with_json(main), *more]) == schemas.names()
    assert {*RUNS, *ELSEWHERE} == set(schemas.names())


@pytest.mark.slow
@pytest.mark.parametrize("name", schemas.names())
def test_a_schema_is_one_and_describes_every_field(name):
    schema = schemas.schema(name)
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema["description"]

    def objects(part):
        if isinstance(part, dict):
            if "properties" in part and isinstance(part.get("type"), str):
                yield part
            for below in part.values():
                yield from objects(below)
        elif isinstance(part, list):
            for below in part:
                yield from objects(below)

    found = list(objects(schema))
    assert found
    for part in found:
        assert part["additionalProperties"] is False
        assert set(part["required"]) <= set(part["properties"])
        for field in part["properties"].values():
            assert field["description"].endswith(".")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "line"), [(name, line) for name, lines in RUNS.items() for line in lines]
)
def test_what_a_command_prints_fits_its_schema_and_nothing_else_does(name, line):
    schema, value = schemas.schema(name), printed(name, line)
    validator = jsonschema.Draft202012Validator(schema)
    validator.validate(value)
    assert isinstance(value, dict)
    for field in schema["required"]:
        assert not validator.is_valid({key: part for key, part in value.items() if key != field})
        assert not validator.is_valid({**value, field: {"no": ["such", "thing"]}})
    assert not validator.is_valid({**value, "more": 1})


@pytest.mark.slow
def test_every_field_is_seen_in_some_run():
    """A field that no run prints would not be tested. test_budget.py prints a "fault"."""
    for name, lines in RUNS.items():
        seen = {field for line in lines for field in dict(printed(name, line))}  # type: ignore[call-overload]
        assert seen | {"fault"} == set(schemas.schema(name)["properties"]) | {"fault"}, name


def test_what_create_account_and_grant_print_is_what_show_prints():
    def fields(name):
        schema = copy.deepcopy(schemas.schema(name))
        return {key: part for key, part in schema.items() if key not in ("title", "description")}

    for name in ("budget-create", "budget-account", "budget-grant", "budget-split"):
        assert fields(name) == fields("budget-show")
