"""Bad days for real: each trial of benchmarks/ledger.py, a few times. Nothing may be lost."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.ledger import TRIALS, named  # run from the project's root
from benchmarks.ledger_disks import may_mount
from benchmarks.ledger_faults import lost_replies, one_request_of_many
from benchmarks.ledger_scene import POSTGRES, SQLITE, Scene, Trial, Yard, asked, differences
from privmax.ledger import Ledger, Price
from privmax.ledger.checks import TRIGGERS
from privmax.privacy import Privacy

CENT = Price(Privacy("1/100"))  # what a release of a worker costs


@pytest.fixture(scope="module")
def yard():
    with Yard() as made:
        yield made


def _marks(where, needs):
    marks = [pytest.mark.engines] if where == POSTGRES else []
    if needs == "root":
        marks.append(pytest.mark.skipif(not may_mount(), reason="only root can mount a small disk"))
    return marks


@pytest.mark.parametrize(
    ("trial", "where", "few"),
    [
        pytest.param(entry.trial, entry.where, entry.few, id=f"{named(entry)}-{entry.where}",
                     marks=_marks(entry.where, entry.needs))
        for entry in TRIALS
    ],
)  # fmt: skip
def test_nothing_is_lost(yard, trial, where, few):
    found = trial(yard, where, few)
    assert found.lost == []
    assert found.times >= 1


def test_every_fault_is_tried_where_it_can_happen():
    tried = {named(entry): set() for entry in TRIALS}
    for entry in TRIALS:
        tried[named(entry)].add(entry.where)
    assert len(TRIALS) == len({(named(entry), entry.where) for entry in TRIALS})
    both = {name for name, places in tried.items() if places == {SQLITE, POSTGRES}}
    assert {
        "many_processes",
        "one_request_of_many",
        "races_to_create",
        "kills",
        "kills_of_makers",
    } <= both


# The trials see what is lost: everything below is wrong on purpose


@pytest.fixture
def scene(yard):
    """A ledger with three answers, seen outside."""
    made = Scene(yard, yard.place(SQLITE))
    assert yard.nursery.wait(made.start(0, until=3)) == 0
    return made


def judged(scene):
    return scene.judge(Trial("none", SQLITE, 1)).lost


def test_a_ledger_as_it_should_be_has_lost_nothing(scene):
    assert judged(scene) == []


def test_an_answer_without_a_charge_is_seen(scene, yard):
    yard.crash.Outside(scene._file(0)).tell(request="w0-3", answer=7)
    assert "an answer without its charge" in judged(scene)


def test_another_answer_than_the_recorded_one_is_seen(scene, yard):
    first = scene.told(0)[0]
    yard.crash.Outside(scene._file(0)).tell(request=first["request"], answer=first["answer"] + 1)
    assert judged(scene) == ["an answer that is not the recorded one"]


def test_a_charge_that_nobody_asked_for_is_seen(scene):
    with Ledger(scene.place, scene.name) as ledger:
        ledger.charge(CENT, {}, request="w0-again")
    assert judged(scene) == ["a charge whose answer nobody has"]


def test_a_wrong_price_is_seen(scene, yard):
    with Ledger(scene.place, scene.name) as ledger:
        ledger.charge(Price(Privacy("1/50")), {}, request="w0-3").record({"items": [1], "free": {}})
    yard.crash.Outside(scene._file(0)).tell(request="w0-3", answer=1)
    assert judged(scene) == ["the charges are not what is spent"]


def test_an_old_copy_is_seen(scene, yard):
    before = Path(scene.place).read_bytes()
    assert yard.nursery.wait(scene.start(0, until=4)) == 0
    scene.glance()
    Path(scene.place).write_bytes(before)
    lost = judged(scene)
    assert "an event that was committed is gone" in lost
    assert "an answer without its charge" in lost


def test_a_file_that_others_may_read_is_seen(scene):
    Path(scene.place).chmod(0o644)
    assert judged(scene) == ["the secrecy of a file: its mode is not 600"]


def test_a_changed_event_is_seen(scene):
    asked(scene.place, "DROP TRIGGER privmax_events_kept")
    asked(scene.place, "UPDATE privmax_events SET moment = 'x' WHERE seq = 2")
    assert judged(scene) == [
        "verify finds: event 2: its hash does not match: it, or the event before it, was changed"
    ]


def test_a_request_charged_twice_is_seen(scene):
    with Ledger(scene.place, scene.name) as ledger:
        history = list(ledger.history())
    assert list(differences([*history, history[1]], [])) == ["a request charged 2 times"]


def test_workers_that_tell_what_they_drew_are_seen(monkeypatch, yard):
    run = yard.nursery.run
    monkeypatch.setattr(
        yard.nursery, "run", lambda act, jobs: run(act, [{**job, "hasty": True} for job in jobs])
    )
    lost = one_request_of_many(yard, SQLITE, 5, processes=3).lost
    assert "an answer that is not the recorded one" in lost


@pytest.mark.engines
def test_a_retry_under_another_id_is_seen(monkeypatch, yard):
    """A client that does not keep the id of its request pays twice when a reply is lost."""
    real = Ledger.charge
    monkeypatch.setattr(
        Ledger, "charge", lambda ledger, price, what, request: real(ledger, price, what)
    )
    assert (
        "a charge, or there is one too many" in lost_replies(yard, POSTGRES, 2, when="after").lost
    )


@pytest.mark.slow
def test_a_ledger_that_does_not_refuse_is_seen(monkeypatch, yard):
    scene = Scene(yard, yard.place(SQLITE), budget=CENT.privacy)
    monkeypatch.setattr("privmax.ledger.ledger._affordable", lambda *_: None)
    monkeypatch.setattr("privmax.ledger.rules.Total.fits", lambda _: True)
    monkeypatch.setattr("privmax.ledger.sqlite.TRIGGERS", {})
    for name in TRIGGERS:
        asked(scene.place, f"DROP TRIGGER {name}")
    with Ledger(scene.place, scene.name) as ledger:
        for number in range(2):
            ledger.charge(CENT, {}, request=f"w0-{number}")
    assert "more is spent than there was" in judged(scene)
