"""A model of the protocol: charge, draw, record, hand out, with crashes, retries, forks and two
writers, in all orders.

Processes take one small step at a time, and all orders of steps are walked through. In every state
that can be reached, each answer that was handed out must be on the disk with its charge, where a
process that starts now would look; each request must have one answer; and no more may be charged
than there is. Designs that are wrong in one thing are walked through too, and must be found: among
them that of version 0.1.0, a write-ahead log whose locks a fork inherits by name.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import pytest

BUDGET = 2
"""Charges that fit, at a price of 1."""

ANSWERS = "x", "y"
"""What may be drawn."""

Event = tuple[str, ...]
"""("charge", request) or ("answer", request, what)."""


@dataclass(frozen=True)
class Process:
    """A process with requests to make; `step` is where it is with the first of them.

    inside     the events it read when its transaction began; None: it is in none
    believes   it inherited SQLite's list of locks, on which its parent had one
    torn       it was forked in the middle of a transaction
    log        the write-ahead log it has open, and whether the lock that keeps others from removing
               that is real
    waits      it has committed, and waits for the disk
    """

    requests: tuple[str, ...]
    step: str = "charge"
    inside: tuple[Event, ...] | None = None
    drawn: str | None = None
    forks: tuple[str, ...] = ()
    believes: bool = False
    torn: bool = False
    log: int | None = None
    real: bool = False
    waits: bool = False


@dataclass(frozen=True)
class World:
    """All processes, and what is outside of them."""

    processes: tuple[Process, ...]
    file: tuple[Event, ...] = ()
    logs: tuple[tuple[Event, ...], ...] = ()
    linked: int | None = None
    holder: int | None = None
    seen: frozenset[tuple[str, str]] = frozenset()
    crashes: int = 1
    flushed: int | None = None

    def durable(self) -> tuple[Event, ...]:
        """What a process finds that starts now, or after the server was killed, if there is one."""
        if self.flushed is not None:
            return self.file[: self.flushed]
        return self.file if self.linked is None else self.file + self.logs[self.linked]

    def having(self, number: int, process: Process, **more: object) -> World:
        processes = (*self.processes[:number], process, *self.processes[number + 1 :])
        return replace(self, processes=processes, **more)  # type: ignore[arg-type]


class Rollback:
    """What is committed is in the file; a lock is held for one transaction; who is torn touches
    nothing.
    """

    locks = True
    refuses_torn = True
    records_first = True
    keeps_request = True

    def begin(self, world: World, number: int) -> Iterator[World]:
        process = world.processes[number]
        if process.torn and self.refuses_torn:
            return
        if (
            world.holder is None or not self.locks or process.torn
        ):  # who is torn believes that it has the lock
            holder = world.holder if process.torn or not self.locks else number
            yield world.having(number, replace(process, inside=world.file), holder=holder)

    def commit(self, world: World, number: int, event: Event | None) -> World:
        process = world.processes[number]
        assert process.inside is not None
        file = (
            world.file if event is None else (*process.inside, event)
        )  # whole pages, as they were read
        holder = None if world.holder == number else world.holder
        return world.having(number, replace(process, inside=None), file=file, holder=holder)

    def closed(self, world: World, number: int) -> Iterator[World]:
        return iter(())

    def forked(self, parent: Process) -> Process:
        return Process(parent.forks, torn=parent.inside is not None)

    # The rest is the same in every design

    def steps(self, world: World) -> Iterator[World]:
        for number, process in enumerate(world.processes):
            if process.forks:
                grown = world.having(number, replace(process, forks=()))
                yield replace(grown, processes=(*grown.processes, self.forked(process)))
            yield from self.closed(world, number)
            if world.crashes and process.step != "charge":
                yield self._crash(world, number)
            if process.requests:
                yield from self._step(world, number)

    def _crash(self, world: World, number: int) -> World:
        """It forgets what it had in mind, and makes the same request again; with its id, if it kept
        that.
        """
        process = world.processes[number]
        first, *others = process.requests
        requests = (first if self.keeps_request else f"{first}'", *others)
        forgetful = Process(
            requests, forks=process.forks, believes=process.believes, torn=process.torn
        )
        holder = None if world.holder == number else world.holder
        return world.having(number, forgetful, holder=holder, crashes=world.crashes - 1)

    def _step(self, world: World, number: int) -> Iterator[World]:
        process = world.processes[number]
        request = process.requests[0]
        if process.step in ("charge", "record") and process.inside is None:
            yield from self.begin(world, number)
        elif process.step == "charge":
            assert process.inside is not None
            charged = [event[1] for event in process.inside if event[0] == "charge"]
            answers = [event[2] for event in process.inside if event[:2] == ("answer", request)]
            fits = request in charged or len(charged) < BUDGET
            world = self.commit(
                world, number, ("charge", request) if fits and request not in charged else None
            )
            if answers:
                yield self._go(world, number, "out", answers[0])
            elif fits:
                yield self._go(world, number, "draw", process.drawn)
            else:
                yield self._done(world, number)
        elif process.step == "draw":
            after = "record" if self.records_first else "out"
            if process.drawn is not None:
                yield self._go(world, number, after, process.drawn)
            else:
                yield from (self._go(world, number, after, one) for one in ANSWERS)
        elif process.step == "record":
            assert process.inside is not None
            assert process.drawn is not None
            answers = [event[2] for event in process.inside if event[:2] == ("answer", request)]
            world = self.commit(
                world, number, None if answers else ("answer", request, process.drawn)
            )
            if self.records_first:
                yield self._go(world, number, "out", answers[0] if answers else process.drawn)
            else:
                yield self._done(world, number)
        else:
            assert process.drawn is not None
            world = replace(world, seen=world.seen | {(request.rstrip("'"), process.drawn)})
            yield (
                self._done(world, number)
                if self.records_first
                else self._go(world, number, "record", process.drawn)
            )

    def _go(self, world: World, number: int, step: str, drawn: str | None) -> World:
        return world.having(number, replace(world.processes[number], step=step, drawn=drawn))

    def _done(self, world: World, number: int) -> World:
        process = world.processes[number]
        return world.having(
            number, replace(process, requests=process.requests[1:], step="charge", drawn=None)
        )


class WriteAhead(Rollback):
    """Version 0.1.0: commits go to a log, which whoever takes itself for the last user moves to the
    file and removes.

    A lock keeps others from removing the log. A child inherits the entry in SQLite's list, so it
    never takes the lock.
    """

    inherits = True

    def begin(self, world: World, number: int) -> Iterator[World]:
        process = world.processes[number]
        if process.log is None:
            if world.linked is None:
                world = replace(world, logs=(*world.logs, ()), linked=len(world.logs))
            process = replace(process, log=world.linked, real=not process.believes)
        if world.holder is None:
            assert process.log is not None
            yield world.having(
                number, replace(process, inside=world.file + world.logs[process.log]), holder=number
            )  # fmt: skip

    def commit(self, world: World, number: int, event: Event | None) -> World:
        process = world.processes[number]
        logs = list(world.logs)
        if event is not None:
            assert process.log is not None
            logs[process.log] += (event,)
        return world.having(number, replace(process, inside=None), logs=tuple(logs), holder=None)

    def closed(self, world: World, number: int) -> Iterator[World]:
        process = world.processes[number]
        if process.log is None or process.inside is not None:
            return
        closed = world.having(number, replace(process, log=None, real=False))
        if not any(other.real for other in closed.processes) and process.log == world.linked:
            closed = replace(closed, file=world.durable(), linked=None)
        yield closed

    def forked(self, parent: Process) -> Process:
        return Process(parent.forks, believes=self.inherits and parent.log is not None)


class SharedFlush(Rollback):
    """PostgreSQL: a commit is seen by all, and the lock free, before it is on the disk.

    Whoever committed, or read what others did, waits for the disk before anything comes of that. A
    server that is killed forgets what is not there, and all processes make their requests again.
    """

    waits_to_draw = True
    waits_to_hand_out = True

    def begin(self, world: World, number: int) -> Iterator[World]:
        if not world.processes[number].waits:
            yield from super().begin(world, number)

    def commit(self, world: World, number: int, event: Event | None) -> World:
        world = super().commit(world, number, event)
        return world.having(number, replace(world.processes[number], waits=True))

    def steps(self, world: World) -> Iterator[World]:
        yield from super().steps(world)
        for number, process in enumerate(world.processes):
            if process.waits:
                done = replace(process, waits=False)
                yield world.having(number, done, flushed=len(world.file))
        if world.crashes:
            forgetful = tuple(Process(process.requests) for process in world.processes)
            yield replace(
                world,
                processes=forgetful,
                file=world.durable(),
                holder=None,
                crashes=world.crashes - 1,
            )

    def _step(self, world: World, number: int) -> Iterator[World]:
        process = world.processes[number]
        skips = (process.step == "draw" and not self.waits_to_draw) or (
            process.step == "out" and not self.waits_to_hand_out
        )
        if process.waits and not skips:
            return
        yield from super()._step(world, number)

    def _done(self, world: World, number: int) -> World:
        world = super()._done(world, number)
        return world.having(number, replace(world.processes[number], waits=False))


def wrong(world: World) -> str | None:
    """What is lost in a state, if anything is."""
    durable = world.durable()
    charged = [event[1] for event in durable if event[0] == "charge"]
    for request, answer in sorted(world.seen):
        if not any(one.rstrip("'") == request for one in charged):
            return "an answer without its charge"
        if sum(one == request for one, _ in world.seen) > 1:
            return "two answers to one request"
        if not any(
            (event[1].rstrip("'"), event[2]) == (request, answer)
            for event in durable
            if event[0] == "answer"
        ):
            return "an answer that is not the recorded one"
    if len({request for request, _ in world.seen}) > BUDGET or len(charged) > BUDGET:
        return "more than there was"
    if len(charged) > len({one.rstrip("'") for one in charged}):
        return "a request charged twice"
    return None


def walk(design: Rollback, *processes: Process, crashes: int = 1) -> tuple[int, set[str]]:
    """How many states can be reached, and what is wrong in any."""
    first = World(processes, crashes=crashes)
    if isinstance(design, SharedFlush):
        first = replace(first, flushed=0)
    known, waiting, found = {first}, [first], set()
    while waiting:
        world = waiting.pop()
        fault = wrong(world)
        if fault is not None:
            found.add(fault)
            continue
        for after in design.steps(world):
            if after not in known:
                known.add(after)
                waiting.append(after)
    return len(known), found


FORKING = Process(("a",), forks=("b", "c"))
WRITERS = Process(("a", "b")), Process(("a", "c"))


@pytest.mark.slow
@pytest.mark.parametrize(
    "processes", [(FORKING,), WRITERS, (Process(("a",), forks=("b",)), Process(("a", "c")))]
)
def test_a_rollback_journal_loses_nothing_in_any_order(processes):
    states, found = walk(Rollback(), *processes)
    assert found == set()
    assert states > 500


@pytest.mark.slow
def test_the_write_ahead_log_of_0_1_0_loses_a_charge_to_a_fork():
    _, found = walk(WriteAhead(), FORKING)
    assert "an answer without its charge" in found
    assert walk(WriteAhead(), *WRITERS)[1] == set()  # without a fork it did not


@pytest.mark.slow
def test_it_is_the_inherited_lock_that_loses_it():
    design = WriteAhead()
    design.inherits = False
    assert walk(design, FORKING)[1] == set()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("part", "processes", "told"),
    [
        ("locks", WRITERS, "an answer without its charge"),
        ("refuses_torn", (FORKING,), "an answer without its charge"),
        ("records_first", WRITERS, "an answer that is not the recorded one"),
        ("keeps_request", WRITERS, "a request charged twice"),
    ],
)
def test_each_part_of_the_protocol_is_needed(part, processes, told):
    design = Rollback()
    setattr(design, part, False)
    assert told in walk(design, *processes)[1]


@pytest.mark.parametrize(
    "processes",
    [
        pytest.param(WRITERS, id="two"),
        pytest.param(
            (Process(("a",)), Process(("a",)), Process(("b",))), id="three", marks=pytest.mark.slow
        ),
    ],
)
def test_commits_that_share_a_flush_lose_nothing_in_any_order(processes):
    states, found = walk(SharedFlush(), *processes, crashes=2)
    assert found == set()
    assert states > 1000


@pytest.mark.slow
def test_to_draw_before_the_disk_has_the_charge_is_harmless_if_the_record_waits():
    """Privmax waits nevertheless: it takes no round trip more."""
    design = SharedFlush()
    design.waits_to_draw = False
    assert walk(design, *WRITERS, crashes=2)[1] == set()


@pytest.mark.parametrize("processes", [WRITERS, (Process(("a",)), Process(("a",)))])
def test_who_hands_out_what_the_disk_does_not_have_loses(processes):
    """Of the second two, one reads what the other recorded and has not waited for yet."""
    design = SharedFlush()
    design.waits_to_hand_out = False
    _, found = walk(design, *processes)
    assert "an answer that is not the recorded one" in found
