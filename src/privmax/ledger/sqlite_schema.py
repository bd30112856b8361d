"""The tables of ledgers in a SQLite file, and what an older file is given when it is written to.

What the file refuses to add to a history is in `checks.py`.
"""

from __future__ import annotations

import sqlite3

from privmax.ledger.checks import TRIGGERS
from privmax.ledger.events import SCHEMA

APPLICATION = 0x504D584C
"""Marks the file as ours in SQLite's header."""

TABLES = """
CREATE TABLE privmax_ledgers (
    name TEXT NOT NULL PRIMARY KEY,
    seq INTEGER NOT NULL,
    hash TEXT NOT NULL
);
CREATE TABLE privmax_events (
    ledger TEXT NOT NULL REFERENCES privmax_ledgers (name),
    seq INTEGER NOT NULL,
    kind TEXT NOT NULL,
    moment TEXT NOT NULL,
    who TEXT NOT NULL,
    request TEXT,
    account TEXT,
    body TEXT NOT NULL,
    totals TEXT NOT NULL,
    hash TEXT NOT NULL,
    PRIMARY KEY (ledger, seq)
);
CREATE UNIQUE INDEX privmax_events_request ON privmax_events (ledger, request, kind) WHERE request IS NOT NULL;
CREATE INDEX privmax_events_account ON privmax_events (ledger, account, seq) WHERE account IS NOT NULL;
CREATE TRIGGER privmax_events_follow BEFORE INSERT ON privmax_events
    WHEN NOT EXISTS (SELECT 1 FROM privmax_ledgers WHERE name = NEW.ledger AND seq = NEW.seq - 1)
    BEGIN SELECT RAISE(ABORT, 'an event follows the last one'); END;
CREATE TRIGGER privmax_events_head AFTER INSERT ON privmax_events
    BEGIN UPDATE privmax_ledgers SET seq = NEW.seq, hash = NEW.hash WHERE name = NEW.ledger; END;
CREATE TRIGGER privmax_events_kept BEFORE UPDATE ON privmax_events
    BEGIN SELECT RAISE(ABORT, 'events are never changed'); END;
CREATE TRIGGER privmax_events_held BEFORE DELETE ON privmax_events
    BEGIN SELECT RAISE(ABORT, 'events are never deleted'); END;
CREATE TRIGGER privmax_ledgers_new BEFORE INSERT ON privmax_ledgers
    WHEN NEW.seq <> 0 OR EXISTS (SELECT 1 FROM privmax_ledgers WHERE name = NEW.name)
    BEGIN SELECT RAISE(ABORT, 'a name is taken once'); END;
CREATE TRIGGER privmax_ledgers_kept BEFORE UPDATE ON privmax_ledgers
    WHEN NEW.name <> OLD.name OR NEW.seq <> OLD.seq + 1 OR NOT EXISTS (
        SELECT 1 FROM privmax_events WHERE ledger = NEW.name AND seq = NEW.seq AND hash = NEW.hash)
    BEGIN SELECT RAISE(ABORT, 'the head only follows events'); END;
CREATE TRIGGER privmax_ledgers_held BEFORE DELETE ON privmax_ledgers
    BEGIN SELECT RAISE(ABORT, 'ledgers are never deleted'); END;
"""

OPEN_TABLE = """
CREATE TABLE privmax_open (
    ledger TEXT NOT NULL,
    seq INTEGER NOT NULL,
    closed BLOB NOT NULL,
    PRIMARY KEY (ledger, seq)
)
"""
"""Charges without a recorded answer. `closed` is one byte: 1 once an answer was drawn and is about
to be written. Changing that byte takes no room on the disk (`SqliteStore.mark_closed`).
"""

FILL_OPEN = """
INSERT INTO privmax_open SELECT ledger, seq, x'00' FROM privmax_events charged
WHERE kind = 'reserved' AND NOT EXISTS (
    SELECT 1 FROM privmax_events WHERE ledger = charged.ledger AND request = charged.request
    AND kind = 'released')
"""

_ANSWERED = (
    "SELECT charged.seq FROM privmax_events charged WHERE charged.ledger = {0}.ledger "
    "AND charged.request = {0}.request AND charged.kind = 'reserved'"
)

OPEN_TRIGGERS = {
    "privmax_open_begin": """
CREATE TRIGGER privmax_open_begin AFTER INSERT ON privmax_events WHEN NEW.kind = 'reserved'
    BEGIN INSERT INTO privmax_open VALUES (NEW.ledger, NEW.seq, x'00'); END""",
    "privmax_open_end": f"""
CREATE TRIGGER privmax_open_end AFTER INSERT ON privmax_events WHEN NEW.kind = 'released'
    BEGIN DELETE FROM privmax_open
    WHERE ledger = NEW.ledger AND seq = ({_ANSWERED.format("NEW")}); END""",
    "privmax_open_kept": """
CREATE TRIGGER privmax_open_kept BEFORE UPDATE ON privmax_open
    BEGIN SELECT RAISE(ABORT, 'a closed request stays closed'); END""",
    "privmax_open_held": """
CREATE TRIGGER privmax_open_held BEFORE DELETE ON privmax_open WHEN NOT EXISTS (
    SELECT 1 FROM privmax_events answered JOIN privmax_events charged
    ON answered.ledger = charged.ledger AND answered.request = charged.request
    WHERE charged.ledger = OLD.ledger AND charged.seq = OLD.seq AND answered.kind = 'released')
    BEGIN SELECT RAISE(ABORT, 'a charge is open until it is answered'); END""",
}
"""A file that an older privmax made is given the table and these when it is next written to."""

_SCHEMA = """
SELECT group_concat(type || ' ' || name || ' ' || rootpage || ' ' || ifnull(sql, ''), ';')
FROM sqlite_master
"""


def make_tables(connection: sqlite3.Connection) -> None:
    """Make empty tables in a new file, all at once."""
    marks = f"PRAGMA application_id = {APPLICATION}; PRAGMA user_version = {SCHEMA};"
    connection.executescript(f"BEGIN; {marks} {TABLES} COMMIT;")
    guard(connection)


def guard(connection: sqlite3.Connection) -> None:
    """Let the file itself refuse what is wrong; one that an older privmax made does not yet."""
    known = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
    if "privmax_open" not in known:
        connection.execute(OPEN_TABLE)
        connection.execute(FILL_OPEN)
    for name, trigger in (TRIGGERS | OPEN_TRIGGERS).items():
        if name not in known:
            connection.execute(trigger)


def read_schema(connection: sqlite3.Connection) -> object:
    """Return the text of all tables, indexes and triggers, and where they begin."""
    return connection.execute(_SCHEMA).fetchone()[0]
