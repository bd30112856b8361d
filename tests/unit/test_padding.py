"""Padded time, with a clock that only sleeping and working move."""

from __future__ import annotations

import pytest

import privmax
from privmax.padding import read_seconds


class Clock:
    """A clock that stands still unless somebody works or sleeps."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


def pad(clock, seconds=2):
    return privmax.pad_time(seconds, clock=clock, sleep=clock.sleep)


@pytest.mark.parametrize(
    ("work", "taken"), [(0, 2), (0.5, 2), (2, 2), (2.25, 4), (4, 4), (7.5, 8), (1000, 1024)]
)
def test_it_takes_the_step_or_the_next_doubling(work, taken):
    clock = Clock()
    with pad(clock):
        clock.now += work
    assert clock.now == 1000 + taken


def test_an_error_takes_as_long_as_an_answer():
    clock = Clock()

    def fail():
        with pad(clock):
            clock.now += 0.25
            raise privmax.DataError("bad data")

    with pytest.raises(privmax.DataError):
        fail()
    assert clock.now == 1002


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_ends_it_at_once(kind):
    clock = Clock()
    with pytest.raises(kind), pad(clock):
        raise kind
    assert clock.slept == []


def test_a_sleep_that_ends_early_goes_on():
    clock = Clock()
    short = privmax.pad_time(2, clock=clock, sleep=lambda left: clock.sleep(left / 2 + 0.125))
    with short:
        pass
    assert clock.now >= 1002
    assert len(clock.slept) > 2


def test_the_step_is_read_exactly():
    clock = Clock()
    with pad(clock, "0.5"):
        clock.now += 0.6
    assert clock.now == 1001


@pytest.mark.parametrize("wrong", [0, -1, "nan", "inf", "soon", 86401, "0.0009", "1e-400"])
def test_what_is_no_step_is_refused(wrong):
    with pytest.raises(privmax.ParameterError, match="seconds"):
        privmax.pad_time(wrong)
    with pytest.raises(privmax.ParameterError, match="pad-time"):
        read_seconds("pad-time", wrong)


def test_one_schedule_can_be_used_again():
    clock = Clock()
    schedule = pad(clock)
    for _ in range(2):
        with schedule:
            clock.now += 1
    assert clock.now == 1004
