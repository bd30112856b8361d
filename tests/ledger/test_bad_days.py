"""Bad days for real: each trial of faults/, a few times. Nothing may be lost."""

from __future__ import annotations

from pathlib import Path

import crash
import faults
import pytest
from faults.disks import may_mount
from faults.power import SUBSETS, Call, Disk, arrivals, power_cuts
from faults.processes import lost_replies, one_request_of_many
from faults.scene import POSTGRES, SQLITE, Scene, Trial, Yard, asked, differences, second_draws

from privmax.ledger import Charge, Ledger
from privmax.ledger.checks import TRIGGERS
from privmax.privacy import Privacy

CENT = Charge(Privacy("1/100"), unit="user")  # what a release of a worker costs
PAGE = Path(__file__).parent / "faults/README.md"


@pytest.fixture(scope="module")
def yard():
    with Yard() as made:
        yield made


def _marks(entry):
    marks = [pytest.mark.engines] if entry.where == POSTGRES else []
    if entry.trial in (faults.many_processes, faults.kills):
        marks.append(pytest.mark.slow)  # dozens of processes
    if entry.needs == "root":
        marks.append(pytest.mark.skipif(not may_mount(), reason="only root can mount a small disk"))
    return marks


@pytest.mark.slow
@pytest.mark.parametrize(
    "entry", [pytest.param(one, id=one.name, marks=_marks(one)) for one in faults.TRIALS]
)
def test_nothing_is_lost(yard, entry, request):
    full = request.config.option.faults == "full"
    found = entry.trial(yard, entry.where, entry.times if full else entry.few)
    if full:
        faults.store(entry, found)
    assert found.lost == []
    assert found.times >= 1


def test_every_fault_is_tried_where_it_can_happen():
    names = {entry.name for entry in faults.TRIALS}
    assert len(names) == len(faults.TRIALS)
    for name in ("many_processes", "one_request_of_many", "races_to_create", "kills"):
        assert {f"{name}-{SQLITE}", f"{name}-{POSTGRES}"} <= names


# The stored counts


def test_the_stored_counts_are_whole_and_stand_on_the_page():
    stored = faults.counts()
    assert set(stored["run"]) >= {"command", "date", "load", "versions"}
    assert [row["name"] for row in stored["faults"]] == [entry.name for entry in faults.TRIALS]
    for row, entry in zip(stored["faults"], faults.TRIALS, strict=True):
        # of workers with wrong clocks those count whose clock went back
        counted = entry.times == faults.EVERY or "clock" in row["fault"]
        assert row["times"] == entry.times or (counted and row["times"] >= entry.few), row["name"]
        assert row["lost"] == []
    assert "\n".join(faults.table()) in PAGE.read_text(encoding="utf-8")
    assert stored["run"]["command"] in PAGE.read_text(encoding="utf-8")


def test_kills_met_releases_at_work():
    """Hundreds of kills, and they hit every stage of a release."""
    for row in faults.counts()["faults"]:
        if row["fault"] == "kill -9 of processes that release":
            assert row["charges"] == row["answers"] > row["times"] >= 300
            assert row["seen"]["between charge and record"] >= 1
            assert row["seen"]["between record and answer"] >= 1


# The trials see what is lost: everything below is wrong on purpose


@pytest.fixture
def scene(yard):
    """A ledger with three answers, seen outside."""
    made = Scene(yard, yard.place(SQLITE))
    assert yard.nursery.wait(made.start(0, until=3)) == 0
    return made


def judged(scene):
    return scene.judge(Trial("none", SQLITE, 1)).lost


@pytest.mark.slow
def test_a_ledger_as_it_should_be_has_lost_nothing(scene):
    assert judged(scene) == []


def test_an_answer_without_a_charge_is_seen(scene, yard):
    crash.Outside(scene._file(0)).tell(request="w0-3", answer=7)
    assert "an answer without its charge" in judged(scene)


def test_another_answer_than_the_recorded_one_is_seen(scene, yard):
    first = scene.told(0)[0]
    crash.Outside(scene._file(0)).tell(request=first["request"], answer=first["answer"] + 1)
    assert judged(scene) == ["an answer that is not the recorded one"]


def test_a_charge_that_nobody_asked_for_is_seen(scene):
    with Ledger(scene.place, scene.name) as ledger:
        ledger.charge(CENT, {}, request="w0-again")
    assert judged(scene) == ["a charge whose answer nobody has"]


def test_a_wrong_price_is_seen(scene, yard):
    with Ledger(scene.place, scene.name) as ledger:
        price = Charge(Privacy("1/50"), unit="user")
        ledger.charge(price, {}, request="w0-3").record({"items": [1], "free": {}})
    crash.Outside(scene._file(0)).tell(request="w0-3", answer=1)
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
    asked(scene.place, "UPDATE privmax_events SET moment = '2001-01-01T00:00:00Z' WHERE seq = 2")
    assert judged(scene) == [
        "verify finds: event 2: its hash does not match: it, or the event before it, was changed"
    ]


def test_a_draw_after_an_answer_or_a_refusal_is_seen():
    drawn, answered = {"request": "r", "drawn": True}, {"request": "r", "answer": 1}
    closed = {"request": "r", "error": "The request is not drawn again: …"}
    assert list(second_draws([drawn, drawn, answered])) == []
    for settled in (answered, closed):
        assert list(second_draws([drawn, settled, drawn])) == ["the one draw of a request"]


def test_a_request_charged_twice_is_seen(scene):
    with Ledger(scene.place, scene.name) as ledger:
        history = list(ledger.history())
    assert list(differences([*history, history[1]], [])) == ["a request charged 2 times"]


@pytest.mark.slow
def test_workers_that_tell_what_they_drew_are_seen(monkeypatch, yard):
    run = yard.nursery.run
    monkeypatch.setattr(
        yard.nursery, "run", lambda act, jobs: run(act, [{**job, "hasty": True} for job in jobs])
    )
    lost = one_request_of_many(yard, SQLITE, 5, processes=3).lost
    assert "an answer that is not the recorded one" in lost


@pytest.mark.slow
def test_a_disk_that_is_not_waited_for_is_seen(yard):
    """Some ten of these thirty states are damaged."""
    assert power_cuts(yard, SQLITE, 30, synchronous="OFF").lost


def test_writes_arrive_in_any_order_or_not_at_all():
    disk = Disk("/d")
    for what, *words in (
        ("open", "3", "1", "/d/f"), ("sync", "3"), ("open", "4", "0", "/d"), ("sync", "4"),
        ("unlink", "/d/f"), ("write", "3", "0", "1024"), ("truncate", "3", "512"),
    ):  # fmt: skip
        disk.do(Call(what, words, b"x" * 1024 if what == "write" else b""))
    gone, written, cut = disk.pending()

    def left(*arrived):
        return {name: len(content) for name, (_, content) in disk.after(arrived).items()}

    assert left() == {"/d/f": 0}
    assert left(written) == {"/d/f": 1024}
    assert left(cut) == {"/d/f": 512}
    assert left(written, cut, gone) == {}
    found = list(arrivals(disk.pending()))
    assert len(found) == 2 + 2 * 3 + SUBSETS
    assert found[:3] == [[gone, written, cut], [], [gone]]


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
    monkeypatch.setattr("privmax.ledger.rules.Total.fits", lambda _: True)
    monkeypatch.setattr("privmax.ledger.sqlite_schema.TRIGGERS", {})
    for name in TRIGGERS:
        asked(scene.place, f"DROP TRIGGER {name}")
    with Ledger(scene.place, scene.name) as ledger:
        for number in range(2):
            ledger.charge(CENT, {}, request=f"w0-{number}")
    assert "more is spent than there was" in judged(scene)
