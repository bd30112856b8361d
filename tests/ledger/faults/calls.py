"""Bad days of single calls: each call of a release to the system fails, one after the other."""

from __future__ import annotations

import random
from collections.abc import Iterator

import crash
import servers
from interposing import FAILURES, LOCK, ROOM, ROOM_FOR_ANSWER, STAT

from faults.scene import NotTried, Scene, Trial, Yard

ALLOWED = {"LedgerError", "AnswerError"}
"""What a release may raise when a call fails."""

PAGE = 4096
"""Bytes of a page of a file."""

PIECE = 500
"""Requests on one ledger: a worker reads what was told of all of them before it begins."""


def failed_calls(yard: Yard, where: str, times: int, *, failure: str) -> Trial:
    """The first call that a release makes fails, then the second, until all calls succeed.

    With fewer `times` than there are calls, some of them at random.
    """
    trial = Trial(f"a call of a release fails: {failure}", where, 0)
    for scene in _try_numbers(yard, failure, times):
        _count_outcomes(trial, scene, may_end=bool(FAILURES[failure].kinds & (LOCK | STAT)))
    return trial


def full_at_bytes(yard: Yard, where: str, times: int, *, when: str) -> Trial:
    """Files may grow by so many bytes and no further, at every byte of the first page that is
    written and of the last.

    Counted from the opening of the ledger, or from the draw: until then there is room. With fewer
    `times` than that, some numbers of bytes at random.
    """
    trial = Trial(f"the disk is full after so many bytes of {when}", where, 0)
    for scene in _try_numbers(yard, GROWTHS[when], times, ends=PAGE):
        _count_outcomes(trial, scene, may_end=False)
    return trial


GROWTHS = {"a release": ROOM, "its answer": ROOM_FOR_ANSWER}
"""What there is no room for."""


def _try_numbers(
    yard: Yard, failure: str, times: int, *, ends: int | None = None
) -> Iterator[Scene]:
    """Yield ledgers on which releases met the failure at each number, or at some of them.

    Args:
        yard: Where the ledgers are.
        failure: What happens.
        times: At how many numbers, at most.
        ends: How many at the beginning and at the end are tried; None: all.
    """
    scene = _quick_scene(yard)
    last = _count(yard, scene, failure)
    if not last:
        raise servers.Missing("SQLite as a library of its own", "use a Python that is linked to it")
    ranges = [(1, last)] if ends is None else [(1, ends), (last - ends, last)]
    numbers = [at for first, end in ranges for at in range(first, end + 1)]
    if len(numbers) > times:
        for at in sorted(random.sample(numbers, times)):
            _try_range(yard, scene, failure, at, at)
        scene.finish()
        yield scene
        return
    for first, end in ranges:
        more = PIECE if ends is None else 0  # what a failure left may need some more
        for start in range(first, end + more + 1, PIECE):
            scene = _quick_scene(yard)
            _try_range(yard, scene, failure, start, min(start + PIECE - 1, end + more))
            scene.finish()
            yield scene


def _quick_scene(yard: Yard) -> Scene:
    return Scene(yard, str(yard.quick() / "budget.db"), folder=yard.quick())


def _try_range(yard: Yard, scene: Scene, failure: str, first: int, last: int) -> None:
    """Meet the failure at all of these numbers, or until a release does not meet it."""
    while first <= last:
        status = _run(yard, scene, failure, first, last)
        if status == 0:
            return
        first = scene.told(0)[-1]["at"] + 1
        scene.glance()
        scene.finish(noting=True)  # another process repeats the request


def _count(yard: Yard, scene: Scene, failure: str) -> int:
    """How many calls a release makes of the kinds that are to fail; or how many bytes it needs."""
    if _run(yard, scene, failure, crash.NEVER, crash.NEVER):
        raise NotTried("a release failed though no call did")
    return int(scene.told(0)[-1]["calls"])


def _run(yard: Yard, scene: Scene, failure: str, first: int, last: int) -> int:
    job = scene.job(0, failure=failure, first=first, last=last)
    (status,) = yard.interposed.run("fail_calls", [job])
    if status not in (0, crash.REFUSED):
        raise NotTried(f"a worker ended with {status}: {scene.told(0)[-1:]}")
    return int(status)


def _count_outcomes(trial: Trial, scene: Scene, *, may_end: bool) -> None:
    """Add what workers were told.

    Args:
        trial: Where it is added.
        scene: The workers.
        may_end: Whether a process may have to end before a request can be repeated.
    """
    raised: set[int] = set()
    others = 0
    for line in scene.told(0):
        if line.get("kind") == "again":
            trial.seen["refused until the process ended"] += 1
            if not may_end:
                trial.lost.append("a retry in the same process")
        elif "error" in line:
            raised.add(line["at"])
            trial.seen[f"raised: {line['kind']}"] += 1
            if line["kind"] not in ALLOWED:
                trial.lost.append(f"the reason: {line['kind']} instead of a LedgerError")
        elif line.get("failures") and line["at"] not in raised:
            others += 1
        trial.seen["recorded as no answer"] += line.get("answer", 0) is None
    trial.seen["answered all the same"] += others
    trial.times += len(raised) + others
    scene.judge(trial)
