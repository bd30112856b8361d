"""`privmax budget`, as a user types it, and the page docs/howto/budget.md."""

from __future__ import annotations

import datetime
import hashlib
import json
import os
import re
import shlex
import shutil
import sqlite3
import stat
import sys
from fractions import Fraction
from pathlib import Path

import jsonschema
import pytest
from click.testing import CliRunner
from rich.cells import cell_len

from privmax.cli import main, schemas
from privmax.cli.commands.budget import command as budget
from privmax.cli.commands.budget import tables
from privmax.ledger import Charge, Ledger
from privmax.ledger.rows import Rows
from privmax.privacy import Privacy

PAGE = Path(__file__).resolve().parents[2] / "docs" / "howto" / "budget.md"
BLOCK = re.compile(r"^```([^\n]+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
SECRET = "hunter2"
NOWHERE = f"postgresql://ada:{SECRET}@127.0.0.1:1/budget?connect_timeout=3&sslpassword={SECRET}"
COMMANDS = {
    "create": ("--epsilon", "1"),
    "show": (),
    "history": (),
    "grant": ("--epsilon", "1", "--why", "more"),
    "account": ("ada", "--epsilon", "1"),
    "split": ("web", "--epsilon", "1", "--unit", "user"),
    "verify": (),
    "list": (),
    "export": (),
}
NAMED = [name for name in COMMANDS if name != "list"]
JSON = [name for name in NAMED if name != "export"]


@pytest.fixture(autouse=True)
def ada(monkeypatch, tmp_path):
    """Who works here, and where."""
    monkeypatch.setenv("LOGNAME", "ada")
    monkeypatch.chdir(tmp_path)


def typed(*arguments):
    return CliRunner().invoke(main, ["budget", *map(str, arguments)])


def done(*arguments):
    run = typed(*arguments)
    assert (run.exit_code, run.stderr) == (0, ""), run.output
    return run.stdout


def refused(*arguments, code=2):
    """What is said of bad input, with the lines put together."""
    run = typed(*arguments)
    assert (run.exit_code, run.stdout) == (code, ""), run.output
    return " ".join(run.stderr.split())


@pytest.fixture
def used():
    """A ledger in which something happened; its second charge has no answer."""
    with Ledger.create("b.db", "sales", budget=Privacy(3, "1e-5")) as ledger:
        ledger.open_account("bo", Privacy("1.5", "1e-6"), why="shelves")
        first = ledger.charge(
            Charge(Privacy(1, "1e-6"), unit="user"),
            {"command": "select", "dataset": "till"},
            request="r1",
            account="bo",
        )
        first.record("tea")
        ledger.charge(
            Charge(Privacy("0.1"), unit="user"), {"mechanism": "Exponential"}, request="r2"
        )
        ledger.grant(Privacy(1), why="the board")
    return "b.db"


def test_the_history_shows_a_rho():
    with Ledger.create("b.db", budget=Privacy(3, "1e-5"), rule="zcdp") as ledger:
        price = Charge(Privacy(1, "1e-6"), unit="row", rho=Fraction(1, 41))
        ledger.charge(price, {"command": "learn"}, request="r1")
    shown = " ".join(done("history", "b.db").split())
    assert "charged: learn, per row, rho 0.0243903" in shown


def test_create_makes_a_private_file_and_shows_the_budget():
    assert done("create", "new.db", "--epsilon", "0.1", "--delta", "1e-5").splitlines() == [
        "ledger default in new.db, rule basic",
        "",
        "                   budget   spent    left",
        "─────────────────────────────────────────",
        "ledger   epsilon      0.1       0     0.1",
        "         delta      1e-05       0   1e-05",
    ]
    assert stat.S_IMODE(os.stat("new.db").st_mode) == 0o600
    with Ledger("new.db") as ledger:
        assert ledger.budget == Privacy("1/10", "1/100000")  # exactly, not the floats nearest to it


@pytest.mark.parametrize("command", COMMANDS)
def test_the_place_is_called_file_and_is_no_folder(command):
    assert "FILE .: it is a folder." in refused(command, ".", *COMMANDS[command])
    assert "FILE '': it must be a file or" in refused(command, "", *COMMANDS[command])


def test_a_budget_of_nothing_is_refused():
    assert "a budget needs an epsilon or a delta above 0" in refused(
        "create", "new.db", "--epsilon", 0
    )
    assert not Path("new.db").exists()
    done("create", "new.db", "--epsilon", 0, "--delta", "1e-6")


def test_the_rule_is_chosen_when_the_ledger_is_made():
    shown = json.loads(
        done("create", "new.db", "--epsilon", 1, "--delta", "1e-5", "--rule", "zcdp", "--json")
    )
    assert shown["rule"] == "zcdp"
    assert "needs a delta" in refused("create", "other.db", "--epsilon", 1, "--rule", "zcdp")


def test_a_name_is_taken_once():
    done("create", "new.db", "--epsilon", 1)
    taken = refused("create", "new.db", "--epsilon", 2)
    assert "already has a ledger 'default'" in taken
    assert "privmax budget show FILE --name default" in taken
    done("create", "new.db", "--name", "other", "--epsilon", 2)
    assert json.loads(done("show", "new.db", "--json"))["budget"]["epsilon"] == "1"


def test_show(used):
    assert json.loads(done("show", used, "--name", "sales", "--json")) == {
        "name": "sales",
        "where": "b.db",
        "rule": "basic",
        "strict": False,
        "neighbors": "add-remove",
        "unit": "user",
        "budget": {"epsilon": "4", "delta": "1e-05"},
        "spent": {"epsilon": "1.1", "delta": "1e-06"},
        "left": {"epsilon": "2.9", "delta": "9e-06"},
        "accounts": {
            "bo": {
                "budget": {"epsilon": "1.5", "delta": "1e-06"},
                "spent": {"epsilon": "1", "delta": "1e-06"},
                "left": {"epsilon": "0.5", "delta": "0"},
            }
        },
    }
    assert done("show", used, "--name", "sales").splitlines()[3:] == [
        "─────────────────────────────────────────────",
        "ledger       epsilon        4     1.1     2.9",
        "             delta      1e-05   1e-06   9e-06",
        "account bo   epsilon      1.5       1     0.5",
        "             delta      1e-06   1e-06       0",
    ]


@pytest.mark.parametrize("price", ["1/3", "0.12345678", "1e-9"])
def test_tables_round_against_the_spender(price):
    with Ledger.create("b.db", budget=Privacy("10/7")) as ledger:
        ledger.charge(Charge(Privacy(price)), {}).record(None)
    (row,) = [line for line in done("show", "b.db").splitlines() if "epsilon" in line]
    budget, spent, left = map(Fraction, row.split()[-3:])
    true = Fraction("10/7"), Fraction(price), Fraction("10/7") - Fraction(price)
    assert budget <= true[0]
    assert spent >= true[1]
    assert left <= true[2]
    assert [float(shown) for shown in (budget, spent, left)] == pytest.approx(
        [float(part) for part in true], rel=1e-5
    )
    assert max(map(len, row.split())) <= 12
    exact = json.loads(done("show", "b.db", "--json"))
    assert Fraction(exact["spent"]["epsilon"]) + Fraction(exact["left"]["epsilon"]) == Fraction(
        "10/7"
    )


def test_grant_is_recorded_with_who_and_why(used):
    done("grant", used, "--name", "sales", "--epsilon", "0.5", "--delta", "1e-6", "--why", "Q2")
    raised = json.loads(
        done(
            "grant",
            used,
            "--name",
            "sales",
            "--epsilon",
            1,
            "--why",
            "bo",
            "--account",
            "bo",
            "--json",
        )
    )
    assert raised["budget"] == {"epsilon": "4.5", "delta": "1.1e-05"}
    assert raised["accounts"]["bo"]["budget"]["epsilon"] == "2.5"
    *_, first, second = json.loads(done("history", used, "--name", "sales", "--json"))["events"]
    assert (first["kind"], first["who"], first["account"], first["body"]["why"]) == (
        "granted",
        "ada",
        None,
        "Q2",
    )
    assert (second["who"], second["account"], second["body"]["more"]["epsilon"]) == (
        "ada",
        "bo",
        "1",
    )


def test_a_grant_of_nothing_or_to_nobody_is_refused(used):
    before = done("export", used, "--name", "sales")
    assert "a grant needs an epsilon or a delta above 0" in refused(
        "grant", used, "--name", "sales", "--why", "x"
    )
    assert "--epsilon -1:" in refused(
        "grant", used, "--name", "sales", "--epsilon=-1", "--why", "x"
    )
    assert "Missing option '--why'" in refused("grant", used, "--name", "sales", "--epsilon", 1)
    nobody = refused(
        "grant", used, "--name", "sales", "--epsilon", 1, "--why", "x", "--account", "eve"
    )
    assert "has no account 'eve'" in nobody
    assert "privmax budget account FILE ACCOUNT --name sales --epsilon" in nobody
    assert done("export", used, "--name", "sales") == before


def test_an_account_is_opened_once(used):
    opened = done("account", used, "cy", "--name", "sales", "--epsilon", "0.5", "--why", "prices")
    assert "account cy   epsilon      0.5" in opened
    assert "already has an account 'cy'" in refused(
        "account", used, "cy", "--name", "sales", "--epsilon", 1
    )


def test_a_part_is_charged_to_the_whole_and_opened_again(used):
    for _ in range(2):
        told = done("split", used, "web", "--name", "sales", "--epsilon", "0.5")
        assert told.startswith("ledger web in b.db, rule basic")
        assert "ledger   epsilon      0.5" in told
    whole = json.loads(done("show", used, "--name", "sales", "--json"))
    assert whole["spent"]["epsilon"] == "1.6"
    elsewhere = done(
        "split", used, "ads", "--name", "sales", "--epsilon", "0.1", "--at", "other.db"
    )
    assert elsewhere.startswith("ledger ads in other.db")
    assert "is a part of 'sales'" in refused(
        "grant", used, "--name", "web", "--epsilon", 1, "--why", "more"
    )
    run = typed("split", used, "much", "--name", "sales", "--epsilon", 9)
    assert (run.exit_code, run.stdout) == (3, "")
    assert "The budget does not allow it" in run.stderr
    assert "is not this part" in refused("split", used, "web", "--name", "sales", "--epsilon", 1)


def test_history_tells_what_happened_but_not_the_answers(used):
    lines = [
        re.sub(" {2,}", " | ", line)
        for line in done("history", used, "--name", "sales").splitlines()
    ]
    assert lines[0] == "ledger sales in b.db, rule basic, unit user"
    moment = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d"
    assert [re.sub(moment, "T", line) for line in lines[4:]] == [
        "1 | T | ada | created, rule basic | 3 | 1e-05 | 0 | 0",
        "2 | T | ada | account opened: shelves | bo | 1.5 | 1e-06 | 0 | 0",
        "3 | T | ada | charged: select of till, per user, request r1 | bo | 1 | 1e-06 | 1 | 1e-06",
        "4 | T | ada | answered, request r1 | bo | 1 | 1e-06",
        "5 | T | ada | charged, per user, request r2 | 0.1 | 0 | 1.1 | 1e-06",
        "6 | T | ada | granted: the board | 1 | 0 | 1.1 | 1e-06",
        "The charge of event 5 has no recorded answer. Repeat it at no extra cost with "
        "--request r2",
    ]


@pytest.fixture
def long_ledger():
    """More events than a history lists by default, most of them charges without an answer."""
    with Ledger.create("b.db", budget=Privacy(3)) as ledger:
        with ledger.batch() as batch:
            charged = [batch.charge(TINY, {}, request=f"r{one}") for one in range(120)]
        charged[-1].record("x")
    return "b.db"


TINY = Charge(Privacy("1/1000"))


def test_a_history_lists_the_last_fifty_events_unless_more_are_asked_for(long_ledger):
    def numbers(*options):
        shown = done("history", long_ledger, *options)
        return shown, [int(line.split()[0]) for line in shown.splitlines() if line[:1].isdigit()]

    shown, found = numbers()
    assert found == list(range(73, 123))
    assert "The last 50 of 122 events; --all lists all." in shown
    assert "Charges without a recorded answer, the last 50; --all lists all:" in shown
    assert shown.count("has no recorded answer") == 50
    assert "--request r118" in shown
    assert "--request r68\n" not in shown
    shown, found = numbers("--last", 3)
    assert found == [120, 121, 122]
    for options in (("--all",), ("--last", 122), ("--last", 500)):
        shown, found = numbers(*options)
        assert found == list(range(1, 123))
        assert "lists all" not in shown
        assert shown.count("has no recorded answer") == 119


def test_a_history_as_json_lists_the_last_fifty_events_and_counts_all(long_ledger):
    for options, first in (((), 73), (("--last", 2), 121), (("--all",), 1)):
        found = json.loads(done("history", long_ledger, "--json", *options))
        assert [event["seq"] for event in found["events"]] == list(range(first, 123))
        assert found["event_count"] == 122
        assert len(found["unanswered"]) == 119


def test_a_history_of_several_tables_has_every_event_once(long_ledger, monkeypatch):
    monkeypatch.setattr("privmax.cli.commands.budget.history.ROWS", 50)
    shown = done("history", long_ledger, "--all")
    found = [int(line.split()[0]) for line in shown.splitlines() if line[:1].isdigit()]
    assert found == list(range(1, 123))
    assert shown.count("when (UTC)") == 3
    assert len(json.loads(done("history", long_ledger, "--all", "--json"))["events"]) == 122


def test_a_history_reads_only_what_it_lists(long_ledger, monkeypatch):
    read, after = [], Rows.after

    def counting(rows, seq, limit, *end):
        found = after(rows, seq, limit, *end)
        read.extend(found)
        return found

    monkeypatch.setattr(Rows, "after", counting)
    for options in ((), ("--json",)):
        read.clear()
        done("history", long_ledger, "--last", 5, *options)
        assert len(read) == 5


def test_all_events_and_the_last_ones_are_two_questions(long_ledger):
    assert "--all and --last cannot be combined" in refused(
        "history", long_ledger, "--all", "--last", 50
    )


def test_a_history_shows_conditions_and_requests():
    Path("s.csv").write_text("who,what,day\na,x,1\nb,x,2\n" * 900, encoding="utf-8")
    done("create", "b.db", "--epsilon", 3, "--delta", "1e-5")
    asked = "select s.csv --item what --user who --epsilon 1 --delta 1e-6 --ledger b.db"
    more = ["--where", "day >= 2", "--request", "night 7"]
    run = CliRunner().invoke(main, [*shlex.split(asked), *more])
    assert run.exit_code == 0, run.output
    shown = " ".join(done("history", "b.db").split())
    assert 'charged: select of s.csv where "day" >= 2, per user, request night 7' in shown
    assert "answered, request night 7" in shown


def test_a_request_id_is_quoted_for_the_shell():
    with Ledger.create("b.db", budget=Privacy(3)) as ledger:
        ledger.charge(Charge(Privacy(1)), {}, request="top; rm -rf $HOME 'x")
    *_, told = done("history", "b.db").splitlines()
    assert shlex.split(told)[-2:] == ["--request", "top; rm -rf $HOME 'x"]


def test_history_as_json(used):
    found = json.loads(done("history", used, "--name", "sales", "--last", 2, "--json"))
    assert [event["seq"] for event in found["events"]] == [5, 6]
    charge = found["events"][0]
    assert datetime.datetime.fromisoformat(charge.pop("when")).utcoffset() == datetime.timedelta(0)
    assert charge == {
        "seq": 5,
        "kind": "reserved",
        "who": "ada",
        "request": "r2",
        "account": None,
        "body": {
            "what": {"mechanism": "Exponential"},
            "price": {
                "epsilon": "1/10",
                "delta": "0",
                "ranged": False,
                "neighbors": "add-remove",
                "unit": "user",
            },
        },
        "budget": {"epsilon": "3", "delta": "1e-05"},
        "spent": {"epsilon": "1.1", "delta": "1e-06"},
    }
    assert found["unanswered"] == [{"seq": 5, "request": "r2"}]


def test_what_is_stored_is_neither_markup_nor_a_command_to_the_terminal():
    with Ledger.create("b.db", budget=Privacy(3)) as ledger:
        ledger.charge(Charge(Privacy(1)), {"dataset": "[red]till[/red] :tea:\x1b[2J\x9b2J"})
    shown = done("history", "b.db")
    assert r"[red]till[/red] :tea:\x1b[2J\x9b2J" in shown


def rewrite(file, statement):
    """Change a ledger behind its back."""
    connection = sqlite3.connect(file)
    for (name,) in connection.execute(
        "SELECT name FROM sqlite_master WHERE type = 'trigger'"
    ).fetchall():
        connection.execute(f"DROP TRIGGER {name}")
    connection.execute(statement)
    connection.commit()
    connection.close()


def test_verify_finds_nothing_wrong(used):
    last = json.loads(done("export", used, "--name", "sales").splitlines()[-1])["hash"]
    assert done("verify", used, "--name", "sales").splitlines() == [
        "ledger sales in b.db, rule basic, unit user",
        "all 6 events are correct; the hash of the last is",
        last,
    ]
    found = json.loads(done("verify", used, "--name", "sales", "--noted", last, "--json"))
    about = {"name": "sales", "where": "b.db", "rule": "basic", "strict": False}
    about |= {"neighbors": "add-remove", "unit": "user"}
    assert found == {**about, "events": 6, "hash": last, "faults": []}


@pytest.mark.parametrize(
    ("statement", "seq", "what"),
    [
        ("UPDATE privmax_events SET who = 'eve' WHERE seq = 3", 3, "its hash does not match"),
        ("DELETE FROM privmax_events WHERE seq = 4", 4, "it is missing"),
        ("UPDATE privmax_events SET body = '{' WHERE seq = 5", 5, "its content cannot be read"),
    ],
)
def test_verify_names_the_event_that_was_changed_and_exits_with_1(used, statement, seq, what):
    rewrite(used, statement)
    run = typed("verify", used, "--name", "sales")
    assert run.exit_code == 1
    assert f"event {seq}: {what}" in run.stdout
    assert "nothing is wrong" not in run.stdout
    run = typed("verify", used, "--name", "sales", "--json")
    assert run.exit_code == 1
    faults = json.loads(run.stdout)["faults"]
    assert seq in {fault["seq"] for fault in faults}
    assert any(fault["what"].startswith(what) for fault in faults)


def test_a_hash_that_was_noted_tells_of_an_old_copy(used):
    shutil.copy(used, "copy.db")
    done("grant", used, "--name", "sales", "--epsilon", 1, "--why", "later")
    noted = json.loads(done("verify", used, "--name", "sales", "--json"))["hash"]
    done("verify", "copy.db", "--name", "sales")
    run = typed("verify", "copy.db", "--name", "sales", "--noted", noted)
    assert run.exit_code == 1
    assert "the history was rewritten, or is an old copy" in run.stdout
    run = typed("verify", "copy.db", "--name", "sales", "--noted", noted, "--json")
    assert [fault["seq"] for fault in json.loads(run.stdout)["faults"]] == [None]


def test_a_noted_hash_may_be_in_upper_case_and_must_be_one(used):
    noted = json.loads(done("verify", used, "--name", "sales", "--json"))["hash"]
    done("verify", used, "--name", "sales", "--noted", f" {noted.upper()}\n")
    for other in ("", noted[1:], f"{noted}0", "g" * 64):
        assert "it must be 64 hexadecimal digits" in refused(
            "verify", used, "--name", "sales", "--noted", other
        )


@pytest.mark.parametrize("value", ["{}", '{"whole":{"budget":3}}'])
def test_an_event_that_was_changed_is_marked_and_the_others_are_listed(used, value):
    before = json.loads(done("history", used, "--name", "sales", "--json"))["events"]
    rewrite(used, f"UPDATE privmax_events SET totals = '{value}' WHERE seq = 4")
    told = done("history", used, "--name", "sales", "--plot", "p.svg")
    assert "cannot be read: its totals cannot be read" in told
    assert Path("p.svg").exists()
    after = json.loads(done("history", used, "--name", "sales", "--json"))["events"]
    assert [one for one in after if one["seq"] != 4] == [one for one in before if one["seq"] != 4]
    whole = json.loads(done("history", used, "--name", "sales", "--json"))
    jsonschema.validate(whole, schemas.schema("budget-history"))
    assert after[3]["fault"] == "its totals cannot be read"
    assert (after[3]["budget"], after[3]["spent"]) == (None, None)
    done("show", used, "--name", "sales", "--plot", "p.svg")


def test_show_goes_back_to_the_last_event_that_can_be_built_on(used):
    before = json.loads(done("show", used, "--name", "sales", "--json"))
    rewrite(
        used,
        "UPDATE privmax_events SET totals = '{}' WHERE seq = (SELECT max(seq) FROM privmax_events)",
    )
    run = typed("show", used, "--name", "sales")
    assert (run.exit_code, "its content cannot be read" in run.stderr) == (1, True)
    run = typed("show", used, "--name", "sales", "--json")
    shown = json.loads(run.stdout)
    assert run.exit_code == 1
    assert (before["budget"]["epsilon"], shown["budget"]["epsilon"]) == ("4", "3")  # a grant
    jsonschema.validate(shown, schemas.schema("budget-show"))
    assert shown["fault"]["what"] == "its content cannot be read"
    assert "its content cannot be read" in typed("list", used).stderr


def test_an_export_can_be_checked_without_privmax(used):
    """As docs/ledger.md says how."""
    before = ""
    events = [json.loads(line) for line in done("export", used, "--name", "sales").splitlines()]
    assert [event["seq"] for event in events] == [1, 2, 3, 4, 5, 6]
    assert events[3]["body"] == {"answer": "tea"}
    for event in events:
        body, totals = (
            json.dumps(event[key], sort_keys=True, separators=(",", ":"))
            for key in ("body", "totals")
        )
        names = "seq", "kind", "when", "who", "request", "account"
        row = [before, "sales", *(event[name] for name in names), body, totals, ""]
        before = hashlib.sha256(json.dumps(row, separators=(",", ":")).encode()).hexdigest()
        assert event["hash"] == before


@pytest.mark.slow
@pytest.mark.parametrize("command", [name for name in NAMED if name != "create"])
def test_where_there_is_no_ledger_it_tells_how_to_make_one(command):
    done("create", "other.db", "--epsilon", 1)
    for place, words in (
        ("none.db", "there is no such file"),
        ("other.db", "has no ledger 'sales'"),
    ):
        told = refused(command, place, *COMMANDS[command], "--name", "sales")
        assert words in told
        assert "privmax budget create FILE --name sales --epsilon … --delta …" in told
    assert not Path("none.db").exists()


@pytest.mark.parametrize("command", COMMANDS)
def test_a_file_that_is_no_ledger_is_refused(command):
    Path("notes.txt").write_text("milk, eggs\n" * 100, encoding="utf-8")
    assert "notes.txt is not a SQLite database" in refused(command, "notes.txt", *COMMANDS[command])


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    "more", [(), ("surplus",), ("--no-such-option",), ("--name", NOWHERE), (NOWHERE,)]
)
def test_no_error_shows_a_password(command, more):
    run = typed(command, NOWHERE, *COMMANDS[command], *more)
    assert run.exit_code in (2, 4)  # 4: there is no server, which may come back
    assert run.stderr
    assert SECRET not in run.output
    assert "Traceback" not in run.output


@pytest.mark.parametrize("group", [(), ("budget",)])
@pytest.mark.parametrize(
    "where", [NOWHERE, f"--{NOWHERE}", f"postgresql:/a:{SECRET}@h/b", f"user=a password={SECRET}"]
)
def test_who_forgets_the_command_does_not_see_a_password(group, where):
    run = CliRunner().invoke(main, [*group, where, "show"])
    assert run.exit_code == 2
    assert SECRET not in run.output
    assert "No such" in run.stderr


def test_a_command_that_does_not_exist_is_named():
    assert "No such command 'shwo'" in refused("shwo", "b.db")


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_ctrl_c_is_no_fault_of_the_ledger(used, monkeypatch, command):
    def stopped(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("privmax.ledger.opening.open_store", stopped)
    run = typed(command, used, *COMMANDS[command])
    assert (run.exit_code, run.stdout, run.stderr.strip()) == (130, "", "Aborted!")


@pytest.mark.parametrize("command", COMMANDS)
def test_a_server_that_does_not_answer_is_named_without_its_password(command):
    told = refused(command, NOWHERE, *COMMANDS[command], code=4)
    assert "postgresql://127.0.0.1:1/budget" in told


def test_a_name_that_is_a_url_is_shown_without_its_password(used):
    told = refused("show", used, "--name", NOWHERE)
    assert "b.db has no ledger 'postgresql://…@127.0.0.1:1/budget" in told
    assert SECRET not in told


@pytest.mark.slow
@pytest.mark.parametrize("command", JSON)
def test_the_help_names_every_field_of_the_json(used, command):
    where = "new.db" if command == "create" else used
    fields = set(json.loads(done(command, where, *COMMANDS[command], "--name", "sales", "--json")))
    told = budget.commands[
        "show" if command in ("create", "grant", "account", "split") else command
    ].help
    assert {field for field in fields if f'"{field}"' not in told} == set()


@pytest.mark.slow
@pytest.mark.parametrize("command", ["show", "history"])
def test_a_picture_is_drawn_beside_the_table(used, command):
    plain = done(command, used, "--name", "sales")
    assert done(command, used, "--name", "sales", "--plot", "p.png") == plain
    assert Path("p.png").read_bytes().startswith(b"\x89PNG\r\n")
    assert (
        json.loads(done(command, used, "--name", "sales", "--plot", "p.SVG", "--json"))["name"]
        == "sales"
    )
    assert "<svg " in Path("p.SVG").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("file", "told"),
    [
        ("p.pdf", "the file name must end in .png or .svg"),
        ("none/p.svg", "there is no such folder"),
    ],
)
def test_a_picture_that_cannot_be_drawn_is_refused(used, file, told):
    assert told in refused("show", used, "--name", "sales", "--plot", file)


def test_without_matplotlib_it_tells_what_to_install(used, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.delitem(sys.modules, "privmax.plots", raising=False)
    assert 'pip install ".[plot]"' in refused("show", used, "--name", "sales", "--plot", "p.svg")
    done("show", used, "--name", "sales")


def steps(file, name="default"):
    """What the picture of a ledger shows: times and heights of the whole, and of the accounts."""
    from privmax.plots import _lines

    with Ledger(file, name) as ledger:
        whole, accounts, _ = _lines(ledger.history())
    heights = {
        account: [
            (float(own.budgets[at].epsilon), float(own.spent[at].epsilon))
            for at in range(len(own.times))
        ]
        for account, own in {"": whole, **accounts}.items()
    }
    return whole.times, heights


def test_the_picture_shows_each_change_of_the_budget_and_of_what_is_spent(used):
    _, heights = steps(used, "sales")
    assert heights == {"": [(3, 0), (3, 1), (3, 1.1), (4, 1.1)], "bo": [(1.5, 0), (1.5, 1)]}


def test_the_picture_goes_forward_when_the_clock_goes_back(monkeypatch):
    clock = iter(f"2026-03-0{day}T00:00:00+00:00" for day in (4, 2, 6))
    monkeypatch.setattr("privmax.ledger.chain.now", lambda: next(clock))
    with Ledger.create("b.db", budget=Privacy(3)) as ledger:
        ledger.charge(Charge(Privacy(1)), {})
        ledger.charge(Charge(Privacy(1)), {})
    times, _ = steps("b.db")
    assert [time.day for time in times] == [4, 4, 6]


@pytest.mark.slow
def test_a_picture_of_strange_names_and_many_accounts():
    with Ledger.create("b.db", budget=Privacy(0)) as ledger:
        for name in ("_hidden", "$x$ \\frac{", "字", "x" * 200, *map(str, range(10))):
            ledger.open_account(name, Privacy(1))
    done("show", "b.db", "--plot", "p.svg")
    assert "<svg " in Path("p.svg").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_page_works_from_top_to_bottom():
    """Times and hashes apart."""
    found = BLOCK.findall(PAGE.read_text(encoding="utf-8"))
    assert {kind for kind, _ in found} == {"python ledger", "console ledger", "console refused"}
    for kind, text in found:
        if kind == "python ledger":
            exec(compile(text, PAGE.name, "exec"), {})
            continue
        command, *shown = text.replace("\\\n", "").splitlines()
        assert command.startswith("$ privmax ")
        run = CliRunner().invoke(main, shlex.split(command.removeprefix("$ privmax ")))
        assert (masked(run.output), run.exit_code) == (
            masked("\n".join(shown)),
            3 if "refused" in kind else 0,
        ), command


def masked(text):
    return re.sub(r"[0-9a-f]{64}|\d{4}-\d\d-\d\d \d\d:\d\d(:\d\d)?", "…", text).splitlines()


# What fits a terminal


class Terminal:
    """Columns of a terminal, as a command finds them."""

    def __init__(self, columns):
        self.columns = columns


LONG = "x" * 150
NAMES = ["ada", LONG, "分析" * 40, "a b " * 40, "[bold]x[/bold]"]


@pytest.fixture
def in_terminal(monkeypatch):
    """Runs a command in a terminal of so many columns; gives its lines."""

    def lines(columns, *arguments):
        monkeypatch.setattr(tables, "table_width", lambda: columns)
        return done(*arguments).splitlines()

    return lines


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_history_fits_eighty_columns(name, in_terminal):
    """Whatever people, accounts, data and reasons are called."""
    with Ledger.create("b.db", budget=Privacy("123456.789", "1e-5"), who=name) as ledger:
        ledger.open_account(name, Privacy("0.333333333", "1.23456789e-7"), why=name)
        price = Charge(Privacy("0.123456789", "1.23456789e-8"), unit="user")
        what = {"command": "select", "dataset": name, "data": f"/{name}"}
        ledger.charge(price, what, request="r", account=name)
    found = in_terminal(80, "history", "b.db")
    table = found[2:-2]
    assert max(map(cell_len, table)) <= 80
    shown = "".join("".join(line.split()) for line in table)
    for number in ("123456", "0.333333", "0.123457", "1.23457e-08"):
        assert number in shown
    assert shown.count("".join(name.split())) >= 1 or len(name) > 30  # or it is folded
    assert max(map(len, found[-2:])) <= 80


def test_a_narrow_history_has_all_that_a_wide_one_has(in_terminal):
    with Ledger.create("b.db", budget=Privacy(3, "1e-5")) as ledger:
        ledger.open_account("web", Privacy(1), why="the site")
        ledger.charge(Charge(Privacy("0.5"), unit="user"), {"command": "select"}, account="web")
    wide, narrow = (" ".join(in_terminal(columns, "history", "b.db")) for columns in (110, 109))
    for word in (
        "created,",
        "basic",
        "ada",
        "web",
        "site",
        "charged:",
        "per",
        "user",
        "0.5",
        "1e-05",
    ):
        assert word in wide
        assert word in narrow
    assert "spent epsilon" in wide
    assert "spent epsilon" not in narrow


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("command", ["show", "list"])
def test_what_is_shown_fits_eighty_columns(command, name, in_terminal):
    with Ledger.create("b.db", name, budget=Privacy("1/3", "1.23456789e-7"), rule="zcdp",
                       strict=True) as ledger:  # fmt: skip
        ledger.open_account(name, Privacy("1/7", "1.23456789e-8"))
    arguments = ("--name", name) if command == "show" else ()
    found = in_terminal(80, command, "b.db", *arguments)[2:]
    assert max(map(cell_len, found)) <= 80
    assert "0.333333" in " ".join(found)


def test_a_terminal_is_asked_for_its_columns(monkeypatch):
    assert tables.table_width() == tables.WIDE  # not a terminal
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(tables, "get_terminal_size", lambda: Terminal(97))
    assert tables.table_width() == 97
    monkeypatch.setattr(tables, "get_terminal_size", lambda: Terminal(3))
    assert tables.table_width() == 40


# The ledgers in a file


def test_ledgers_are_listed_by_name():
    for name, rule in (("web", "zcdp"), ("default", "basic")):
        done("create", "b.db", "--name", name, "--epsilon", "3", "--delta", "1e-5", "--rule", rule)
    with Ledger("b.db", "web") as ledger:
        ledger.charge(Charge(Privacy(1), unit="user"), {})
    lines = done("list", "b.db").splitlines()
    assert lines[0] == "2 ledgers in b.db"
    assert [line.split()[:3] for line in lines[4::2]] == [
        ["default", "basic", "epsilon"],
        ["web", "zcdp", "epsilon"],
    ]
    found = json.loads(done("list", "b.db", "--json"))
    assert found["where"] == "b.db"
    for one in found["ledgers"]:
        shown = json.loads(done("show", "b.db", "--name", one["name"], "--json"))
        assert {**one, "where": "b.db", "accounts": {}} == shown


def test_a_file_that_is_none_is_not_listed_nor_made():
    run = typed("list", "none.db")
    assert run.exit_code == 2
    assert "there is no such file" in run.stderr
    assert not Path("none.db").exists()
    Path("text.db").write_text("no database" * 100, encoding="utf-8")
    assert typed("list", "text.db").exit_code == 2


def test_a_name_in_a_list_is_no_markup():
    Ledger.create("b.db", "[bold]x[/bold] 台帳", budget=Privacy(1)).close()
    assert "[bold]x[/bold]" in done("list", "b.db")
