"""docs/howto/team.md: its statements and commands on a real server, and what the rights they give
do not allow.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import jsonschema
import psycopg
import pytest
from click.testing import CliRunner

from privmax.cli import main, schemas
from privmax.errors import LedgerError
from privmax.ledger import Charge, Ledger
from privmax.ledger.events import EventRow, canonical, price_json, seal
from privmax.ledger.rows import COLUMNS
from privmax.privacy import Privacy

PAGE = Path(__file__).resolve().parents[2] / "docs" / "howto" / "team.md"
BLOCK = re.compile(r"^```([^\n]+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
ROLES = re.compile(r"CREATE ROLE (\w+)")
PASSWORD = "only-for-tests"


class Team:
    """The server of the page: db.example.com is where the tests have theirs."""

    def __init__(self, server: str) -> None:
        self._parts = urlsplit(server)
        self.host = self._parts.netloc.rpartition("@")[2]

    def url(self, role: str) -> str:
        return urlunsplit(self._parts._replace(netloc=f"{role}@{self.host}", path="/budget"))

    def here(self, text: str) -> str:
        return text.replace("db.example.com", self.host)

    def shown(self, text: str) -> str:
        return text.replace(self.host, "db.example.com")

    def connect(self, role: str) -> psycopg.Connection[tuple[object, ...]]:
        return psycopg.connect(self.url(role), autocommit=True)


@pytest.fixture
def team(postgres: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Team]:
    """The page, worked through from top to bottom."""
    monkeypatch.setenv("PGPASSWORD", PASSWORD)  # a server that trusts everybody does not ask for it
    made = Team(postgres)
    with psycopg.connect(postgres, autocommit=True) as superuser:
        try:
            for kind, text in BLOCK.findall(PAGE.read_text(encoding="utf-8")):
                play(made, superuser, kind, text)
            yield made
        finally:
            superuser.execute("DROP DATABASE IF EXISTS budget WITH (FORCE)")
            for role in ROLES.findall(PAGE.read_text(encoding="utf-8")):
                superuser.execute(f"DROP ROLE IF EXISTS {role}")  # type: ignore[arg-type]  # names of the page


def play(
    team: Team, superuser: psycopg.Connection[tuple[object, ...]], kind: str, text: str
) -> None:
    match kind:
        case "sql":
            for statement in filter(str.strip, text.split(";")):
                superuser.execute(statement)  # type: ignore[arg-type]  # of the page
            for role in ROLES.findall(text):
                superuser.execute(f"ALTER ROLE {role} PASSWORD '{PASSWORD}'")  # type: ignore[arg-type]
        case "sql owner":
            with team.connect("budget_owner") as owner:
                owner.execute(text)  # type: ignore[arg-type]
        case "python ada":
            exec(compile(team.here(text), PAGE.name, "exec"), {})
        case "console postgres":
            command, *shown = text.replace("\\\n", "").splitlines()
            run = CliRunner().invoke(
                main, shlex.split(team.here(command).removeprefix("$ privmax "))
            )
            assert (hidden(team.shown(run.output)), run.exit_code) == (hidden("\n".join(shown)), 0)
        case "console denied":
            command, *shown = text.replace("\\\n", "").splitlines()
            run = CliRunner().invoke(
                main, shlex.split(team.here(command).removeprefix("$ privmax "))
            )
            assert (team.shown(run.stderr).splitlines()[-1:], run.stdout, run.exit_code) == (
                shown,
                "",
                2,
            )
        case _:
            pytest.fail(f"nothing runs a block ```{kind}")


def hidden(text: str) -> list[str]:
    """The lines without hashes."""
    return re.sub(r"[0-9a-f]{64}", "…", text).splitlines()


PRICE = Charge(Privacy("0.01"), unit="user")
ACTS = {
    "reserved": lambda ledger, account: ledger.charge(PRICE, {}, account=account),
    "released": lambda ledger, account: ledger.charge(PRICE, {}, account=account).record(1),
    "granted": lambda ledger, account: ledger.grant(Privacy("0.01"), why="x", account=account),
    "account": lambda ledger, account: ledger.open_account(account, Privacy(1), why="x"),
}


def act(team: Team, role: str, kind: str, who: str, account: str | None) -> None:
    """What a role does, perhaps under another name."""
    with Ledger(team.url(role), "sales", who=who) as ledger:
        ACTS[kind](ledger, account)


MAY = [
    ("ada", "reserved", "ada", "ada"),
    ("ada", "released", "ada", "ada"),
    ("grace", "granted", "grace", None),
    ("grace", "account", "grace", "bo"),
    ("bo", "released", "bo", "bo"),
]
MAY_NOT = [
    ("ada", "granted", "ada", None),
    ("ada", "granted", "ada", "ada"),
    ("ada", "account", "ada", "zoe"),
    ("ada", "reserved", "ada", None),
    ("ada", "reserved", "ada", "bo"),
    ("ada", "reserved", "bo", "ada"),
    ("grace", "reserved", "grace", None),
    ("grace", "reserved", "grace", "ada"),
    ("grace", "granted", "ada", None),
    ("carol", "reserved", "carol", "ada"),
    ("carol", "granted", "carol", None),
]
REFUSED = [
    "INSERT INTO privmax_events SELECT * FROM privmax_events WHERE seq = 1",
    "ALTER TABLE privmax_events NO FORCE ROW LEVEL SECURITY",
    "CREATE OR REPLACE FUNCTION privmax_check() RETURNS trigger LANGUAGE sql AS 'SELECT 1'",
    "UPDATE privmax_ledgers SET seq = seq - 1",
    "UPDATE privmax_ledgers SET hash = 'x'",
    "UPDATE privmax_events SET who = 'eve'",
    "DELETE FROM privmax_events",
    "TRUNCATE privmax_events",
    "INSERT INTO privmax_ledgers (name, seq, hash) VALUES ('mine', 0, '')",
    "UPDATE privmax_ledgers SET name = 'mine'",
    "DELETE FROM privmax_ledgers",
    "TRUNCATE privmax_ledgers CASCADE",
    "CREATE TABLE mine (a int)",
    "CREATE TEMPORARY TABLE privmax_ledgers (a int)",
    "CREATE SCHEMA mine",
    "ALTER TABLE privmax_events DISABLE TRIGGER ALL",
    "ALTER TABLE privmax_events DISABLE ROW LEVEL SECURITY",
    "DROP POLICY analysts_charge ON privmax_events",
    "SET session_replication_role = replica",
    "SET ROLE budget_owner",
]
HEAD = "UPDATE privmax_ledgers SET seq = seq - 1", "UPDATE privmax_ledgers SET hash = 'x'"


def test_the_page_and_what_its_rights_allow(team: Team) -> None:
    with Ledger(team.url("carol"), "sales") as ledger:
        assert ledger.accounts() == {"ada": (Privacy(1, "2e-6"), Privacy("0.5", "1e-6"))}
        assert [event.who for event in ledger.history()] == ["budget_owner", "grace", "ada", "ada"]
    for case in MAY:
        act(team, *case)
    for case in MAY_NOT:
        with pytest.raises(LedgerError, match="does not let this user"):
            act(team, *case)
    for role in ("ada", "grace", "carol"):
        with pytest.raises(LedgerError, match="does not let this user"):
            Ledger.create(team.url(role), "mine", budget=Privacy(1))
        for statement in REFUSED:
            with (
                team.connect(role) as connection,
                pytest.raises(psycopg.errors.InsufficientPrivilege),
            ):
                connection.execute(statement)  # type: ignore[arg-type]
    for statement in HEAD:
        with team.connect("budget_owner") as owner, pytest.raises(psycopg.errors.RaiseException):
            owner.execute(statement)  # type: ignore[arg-type]
    with team.connect("budget_owner") as owner, pytest.raises(psycopg.errors.RaiseException):
        owner.execute("TRUNCATE privmax_events")
    with team.connect("budget_owner") as owner:
        assert (
            owner.execute("DELETE FROM privmax_events").rowcount == 0
        )  # no policy lets it see what to delete
    with Ledger(team.url("carol"), "sales") as ledger:
        assert [event.who for event in ledger.history()][4:] == [
            "ada",
            "ada",
            "ada",
            "grace",
            "grace",
            "bo",
            "bo",
        ]
        assert ledger.verify() == []


def append(team: Team, role: str, **columns: object) -> None:
    """A sealed event written in SQL by somebody who does without privmax. Its totals are those
    before it.
    """
    with team.connect(role) as connection:
        query = (
            f"SELECT {COLUMNS} FROM privmax_events WHERE ledger = 'sales' ORDER BY seq DESC LIMIT 1"
        )
        last = EventRow(*connection.execute(query).fetchone())  # type: ignore[arg-type, misc]
        row = seal(last.hash, "sales", last._replace(seq=last.seq + 1, **columns))  # type: ignore[arg-type]
        holes = ", ".join(["%s"] * (1 + len(row)))
        connection.execute(f"SELECT privmax_append({holes})", ["sales", *row])  # type: ignore[arg-type]


FORGED = canonical({"answer": {"items": ["forged"], "free": {}}})


def test_a_colleague_cannot_answer_for_another(team: Team) -> None:
    """One `released` row for somebody else's request, and they would be charged and told the forged
    item.
    """
    with Ledger(team.url("grace"), "sales") as steward:
        steward.open_account("bo", Privacy(1, "2e-6"), why="x")
    with Ledger(team.url("ada"), "sales") as ada:
        reservation = ada.charge(PRICE, {}, request="of-ada", account="ada")
        answer = {"kind": "released", "request": "of-ada", "body": FORGED}
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            append(team, "bo", who="ada", account="ada", **answer)
        for account in ("bo", "ada"):
            with pytest.raises(
                (psycopg.errors.InsufficientPrivilege, psycopg.errors.RaiseException)
            ):
                append(team, "bo", who="bo", account=account, **answer)
        assert reservation.record("drawn") == "drawn"
        assert ada.charge(PRICE, {}, request="of-ada", account="ada").answer == "drawn"
        assert ada.verify() == []


def test_a_wrong_sum_written_in_sql_is_refused(team: Team) -> None:
    """What the page says of an analyst who speaks SQL."""
    body = canonical({"price": price_json(PRICE), "what": {}})
    with pytest.raises(psycopg.errors.RaiseException, match="totals follow"):
        append(team, "ada", kind="reserved", who="ada", request="forged", account="ada", body=body)
    run = CliRunner().invoke(main, ["budget", "verify", team.url("carol"), "--name", "sales"])
    assert run.exit_code == 0


def test_an_id_with_a_name_belongs_to_its_author(team: Team) -> None:
    """Others cannot charge it first. One without a name belongs to who is first."""
    with Ledger(team.url("grace"), "sales") as steward:
        steward.open_account("bo", Privacy(1, "2e-6"), why="x")
    body = canonical({"price": price_json(Charge(Privacy(0))), "what": {}})
    with Ledger(team.url("bo"), "sales") as bo:
        with pytest.raises(LedgerError, match="does not let this user"):
            bo.charge(PRICE, {}, request="ada/nightly", account="bo")
        with pytest.raises((psycopg.errors.InsufficientPrivilege, psycopg.errors.RaiseException)):
            append(team, "bo", kind="reserved", who="bo", account="bo", request="ada/x", body=body)
        bo.charge(PRICE, {}, request="nightly", account="bo").record("forged")
    with Ledger(team.url("ada"), "sales") as ada:
        assert ada.charge(PRICE, {}, request="ada/nightly", account="ada").record("x") == "x"
        with pytest.raises(LedgerError, match=r"charged before, at event \d+, with a different"):
            ada.charge(PRICE, {}, request="nightly", account="ada")


def test_a_steward_ends_a_session_that_blocks_a_ledger(team: Team) -> None:
    """The timeout of the server does not: an analyst can switch it off."""
    with team.connect("ada") as blocker, Ledger(team.url("ada"), "sales") as ledger:
        blocker.execute("SET idle_in_transaction_session_timeout = 0")
        blocker.execute("BEGIN")
        blocker.execute("SELECT privmax_lock('sales')")
        (session,) = Ledger.blockers(team.url("grace"))
        assert (session.pid, session.who, session.waits) == (blocker.info.backend_pid, "ada", False)
        assert session.since is not None
        run = CliRunner().invoke(main, ["budget", "unblock", team.url("grace")])
        assert run.exit_code == 0
        assert run.stdout.startswith(f"session {session.pid} of ada has a ledger locked since ")
        for role in ("ada", "carol"):
            with pytest.raises(LedgerError, match="does not let this user"):
                Ledger.unblock(team.url(role), session.pid)
        with team.connect("grace") as other:  # a session that blocks nothing is not ended
            assert not Ledger.unblock(team.url("grace"), other.info.backend_pid)
            assert other.execute("SELECT 1").fetchone() == (1,)
        ended = ["budget", "unblock", team.url("grace"), "--pid", str(session.pid), "--json"]
        run = CliRunner().invoke(main, ended)
        jsonschema.validate(json.loads(run.stdout), schemas.schema("budget-unblock"))
        told = {"where": team.here("postgresql://db.example.com/budget"), "sessions": []}
        assert (json.loads(run.stdout), run.exit_code) == ({**told, "ended": session.pid}, 0)
        ledger.charge(PRICE, {}, account="ada")
        with pytest.raises(psycopg.OperationalError):
            blocker.execute("SELECT 1")
    run = CliRunner().invoke(main, ended)
    assert (run.exit_code, "no session of that number" in run.stderr) == (2, True)
    with pytest.raises(LedgerError, match="is a file"):
        Ledger.blockers("budget.db")
