"""Bad days of what a ledger holds: tables of another version, files cut and edited, wrong clocks,
odd names.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

from faults.scene import (
    BUDGET,
    TENTH,
    NotTried,
    Scene,
    Trial,
    Yard,
    asked,
    empty_place,
    events,
)
from privmax.errors import LedgerError
from privmax.ledger import Charge, Event, Ledger
from privmax.privacy import Privacy


def wrong_versions(yard: Yard, where: str, times: int) -> Trial:
    """The tables are of another version: refused, and unchanged."""
    trial = Trial("tables of another version", where, times)
    with empty_place(yard, where) as place:
        with Ledger.create(place, "one", budget=BUDGET) as ledger:
            ledger.charge(TENTH, {}).record("x")
        before = events(place, "one", "ORDER BY seq")
        for number in range(2, times + 2):
            _set_version(place, number)
            for name, budget in (("one", None), ("two", BUDGET)):
                try:
                    Ledger(place, name, budget).close()
                    trial.lost.append("the difference between versions")
                except LedgerError as error:
                    if "version" not in str(error):
                        trial.lost.append("the reason, in the error")
        _set_version(place, 1)
        if events(place, "one", "ORDER BY seq") != before or events(place, "two", ""):
            trial.lost.append("an event")
        with Ledger(place, "one") as ledger:
            trial.lost += [f"verify finds: {fault}" for fault in ledger.verify()]
    return trial


def _set_version(place: str, version: int) -> None:
    if place.startswith("postgresql:"):
        asked(place, f"COMMENT ON TABLE privmax_events IS 'privmax ledgers, version {version}'")
    else:
        asked(place, f"PRAGMA user_version = {version}")


# Files that are cut or edited


def cut_files(yard: Yard, where: str, times: int) -> Trial:
    """The file ends early, at any byte."""
    trial = Trial("the file is cut off", where, times)
    file, whole, history = _kept(yard)
    for cut in _spots(len(whole), times):
        trial.seen.update(_damaged(trial, file, whole[:cut], history))
    return trial


def edited_files(yard: Yard, where: str, times: int) -> Trial:
    """One byte of the file is another, anywhere."""
    trial = Trial("a byte of the file is changed", where, times)
    file, whole, history = _kept(yard)
    for spot in _spots(len(whole), times):
        edited = bytearray(whole)
        edited[spot] ^= random.randrange(1, 256)
        trial.seen.update(_damaged(trial, file, bytes(edited), history))
    return trial


def _spots(length: int, times: int) -> list[int]:
    """One at random in each of so many equal parts."""
    return [
        length * part // times + random.randrange(max(1, length // times)) for part in range(times)
    ]


def _kept(yard: Yard) -> tuple[Path, bytes, list[Event]]:
    """A file that holds a little of everything, its bytes, and its history."""
    file = yard.fresh() / "budget.db"
    with Ledger.create(file, "kept", budget=BUDGET, rule="zcdp") as ledger:
        _fill_ledger(ledger)
        history = list(ledger.history())
    return file, file.read_bytes(), history


def _fill_ledger(ledger: Ledger) -> None:
    ledger.open_account("ada", Privacy(10, "1e-6"), why="a test")
    ledger.grant(Privacy(1), why="more", account="ada")
    ledger.grant(Privacy(1), why="more")
    for number in range(8):
        reservation = ledger.charge(
            Charge(Privacy("1/10"), bounded_range=number % 2 == 0),
            {"number": number},
            request=f"r{number}",
            account="ada" if number % 3 == 0 else None,
        )
        if number != 5:
            reservation.record({"items": [f"answer {number}"]})


def _damaged(trial: Trial, file: Path, content: bytes, history: Sequence[Event]) -> Iterator[str]:
    """Whether the damage was refused or found; if neither, nothing that is read may differ."""
    Path(f"{file}-journal").unlink(missing_ok=True)
    file.write_bytes(content)
    try:
        with Ledger(file, "kept") as ledger:
            if ledger.verify():
                yield "found by verify"
                return
            same = list(ledger.history()) == history and ledger.spent == history[-1].spent
    except LedgerError:
        yield "refused"
        return
    except Exception as error:  # whatever else it is, it is a defect to report and not to stop at
        trial.lost.append(f"the reason: {type(error).__name__} instead of a LedgerError")
        return
    if same:
        yield "without effect"
    else:
        trial.lost.append("an event, unnoticed")


def edited_events(yard: Yard, where: str, times: int) -> Trial:
    """Someone who may drop the triggers changes one field of one event: verify names that event."""
    trial = Trial("a field of an event is changed behind the triggers", where, times)
    with empty_place(yard, where) as place:
        with Ledger.create(place, "kept", budget=BUDGET) as ledger:
            _fill_ledger(ledger)
        _without_triggers(place)
        with Ledger(place, "kept") as ledger:
            columns = "kind, moment, who, request, account, body, totals, hash"
            rows = asked(place, f"SELECT seq, {columns} FROM privmax_events ORDER BY seq")
            fields = [
                (seq, column, value)
                for seq, *values in rows
                for column, value in zip(columns.split(", "), values, strict=True)
            ]
            for number in range(times):
                seq, column, value = fields[len(fields) * number // times]
                update = f"UPDATE privmax_events SET {column} = ? WHERE seq = ?"
                asked(place, update, _other(column, value), seq)
                if seq not in {fault.seq for fault in ledger.verify()}:
                    trial.lost.append(f"the change of a field ({column}), unnoticed")
                asked(place, update, value, seq)
            trial.lost += [f"verify finds: {fault}" for fault in ledger.verify()]
    return trial


def _other(column: str, value: str | None) -> str:
    """Another value, of which a database suspects nothing."""
    if value is None or column in ("request", "account"):
        return f"{value or ''}x"
    spot = random.randrange(len(value))
    return value[:spot] + ("1" if value[spot] != "1" else "2") + value[spot + 1 :]


def _without_triggers(place: str) -> None:
    if place.startswith("postgresql:"):
        asked(place, "ALTER TABLE privmax_events DISABLE TRIGGER USER")
    else:
        for (name,) in asked(place, "SELECT name FROM sqlite_master WHERE type = 'trigger'"):
            asked(place, f"DROP TRIGGER {name}")


# Clocks and names


def wrong_clocks(yard: Yard, where: str, times: int) -> Trial:
    """Every worker has another clock, most of them wrong by years: order and sums do not depend on
    it.
    """
    trial = Trial("the clock goes back", where, times)
    scene = Scene(yard, yard.place(where))
    for number in range(times):
        wrong = random.uniform(-20, 20) * 365 * 86400
        ended = yard.nursery.wait(scene.start(0, until=number + 1, clock=wrong))
        if ended:
            raise NotTried(f"a worker ended with {ended}: {scene.errors()[-1:]}")
        scene.glance()
    with Ledger(scene.place, scene.name) as ledger:
        moments = [event.when for event in ledger.history()]
    trial.times = sum(after < before for before, after in pairwise(moments))
    if not trial.times:
        raise NotTried("no clock went back")
    return scene.judge(trial)


ODD = (
    "it's",
    'say "so"',
    "x'; DROP TABLE privmax_events; --",
    "'); DELETE FROM privmax_ledgers; --",
    "? %s $1 :name {} \\",
    "☃ 😀 é é",
    "a" * 200,
    "[bold]x[/bold]",
)
"""Names that a careless program would take for something else."""

ODDER = ("\0", "a\0b", "\n", "\x1b[2J", "\ud800", "\u202e", "x" * 100_000, "")
"""Text that may be an answer, or stand in a description, but is no name."""

UNNAMED = "\0\ud800"
"""What a key of a mapping may not hold: PostgreSQL reads no such key."""


def odd_names(yard: Yard, where: str, times: int) -> Trial:
    """Names, requests, accounts and answers are data: they come back as they were, and nothing else
    happens.
    """
    texts = (*ODD, *ODDER)[:times]
    words = [text for text in texts if text in ODD]
    trial = Trial(
        "names and answers that look like SQL, or hold quotes, NULs, emoji", where, len(texts)
    )
    place = yard.place(where)
    names = [f"{word} {yard.fresh().name}"[-200:] for word in words]
    for name, word in zip(names, words, strict=True):
        with Ledger.create(place, name, budget=BUDGET, who=word) as ledger:
            ledger.open_account(word, Privacy(1), why=word)
            ledger.grant(Privacy(1), why=word, account=word)
            for number, text in enumerate([word, *texts[len(words) :]]):
                request = f"{number}{word}"[:200]
                key = "".join(one for one in text if one not in UNNAMED)
                what, answer = {"text": text, "list": [{key: text}]}, {"items": [text], key: 1}
                given = ledger.charge(TENTH, what, request=request, account=word)
                again = ledger.charge(TENTH, what, request=request, account=word)
                if (
                    given.record(answer) != answer
                    or again.record("another") != answer
                    or again.seq != given.seq
                ):
                    trial.lost.append("an answer, or a request")
                trial.charges += 1
                trial.answers += 1
    spent = Privacy(Fraction(1 + len(texts) - len(words), 10))
    for name, word in zip(names, words, strict=True):
        with Ledger(place, name) as ledger:
            trial.lost += [f"verify finds: {fault}" for fault in ledger.verify()]
            made_by = next(iter(ledger.history())).who
            if (made_by, ledger.accounts(), ledger.spent) != (
                word,
                {word: (Privacy(2), spent)},
                spent,
            ):
                trial.lost.append("a name")
    return trial
