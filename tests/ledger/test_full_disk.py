"""A full disk does not choose the answer: what can be written decides nothing about what is drawn.

Every answer is of two tied candidates, one of one letter and one longer. After the charge the file
may not grow. A request is repeated until something is recorded, or for some time. The short answer
may come out in half of the requests, since each is drawn once.
"""

from __future__ import annotations

import math
import os
import resource
import shutil
import subprocess
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from faults.disks import may_mount

from privmax import Privacy, select
from privmax.errors import AnswerError, LedgerError
from privmax.ledger import Charge, Ledger
from privmax.ledger.events import price_of
from privmax.ledger.payment import FAILED, Payment

BUDGET = Privacy(3)
NOTHING = Charge(Privacy(0), unit="user")
PAGE = 4096
TRIES = 4
"""How often a request is repeated at most."""

DEVIATIONS = 5
"""Standard deviations that a count may be off by chance: one run in three million."""


@contextmanager
def no_growth(file: Path):
    """No file may become longer than this one is now."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (file.stat().st_size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.fixture
def after_charge(monkeypatch):
    """What happens to the disk once a request is charged; what it gives ends that."""
    happens = []
    settle = Payment._attempt

    def attempt(payment, reservation, read, nothing):
        def read_then(stack):
            draw = read(stack)

            def draw_then():
                while happens:
                    happens.pop()()
                return draw()

            return draw_then

        return settle(payment, reservation, read_then, nothing)

    monkeypatch.setattr(Payment, "_attempt", attempt)
    return happens


@dataclass
class Disk:
    """Requests to copies of a ledger with some padding, on a disk that is full after the charge."""

    folder: Path
    after_charge: list
    long: str

    def template(self, padding: int) -> Path:
        file = self.folder / f"{padding}.db"
        if not file.exists():
            with Ledger.create(file, budget=BUDGET) as ledger:
                ledger.charge(NOTHING, {"padding": "x" * padding}, request="p").record("")
        return file

    def ask(self, padding: int, full) -> str | None:
        """The answer; None: it is recorded that there is none. "open": nothing was recorded."""
        file = self.folder / "budget.db"
        shutil.copy(self.template(padding), file)
        ends = []
        self.after_charge[:] = [lambda: ends.append(full(file))]
        with Ledger(file) as ledger:
            try:
                for _ in range(TRIES):
                    try:
                        return self._select(ledger)
                    except (AnswerError, LedgerError):
                        continue
            finally:
                for end in ends:
                    end()
            return self._select(ledger)  # there is room again

    def _select(self, ledger: Ledger) -> str | None:
        data = {"a": 5, self.long: 5}
        request = ledger.request("r", dataset="d")
        return select(data, epsilon=1, universe=list(data), ledger=request).item

    def fits(self, padding: int, answer: object) -> bool:
        """Whether an answer fits into the file as it is after the charge."""
        with Ledger(shutil.copy(self.template(padding), self.folder / "fits.db")) as ledger:
            self.after_charge[:] = [stop]
            with pytest.raises(KeyboardInterrupt):
                self._select(ledger)
            charged, _ = ledger.find("r")
            price, what = price_of(charged.body["price"]), charged.body["what"]
            reservation = ledger.charge(price, what, request="r")
            with no_growth(self.folder / "fits.db"):
                try:
                    reservation.record(answer)
                except AnswerError:
                    return False
            return True


def stop():
    raise KeyboardInterrupt


@pytest.fixture
def folder(tmp_path):
    """A folder in memory where there is one: nothing here depends on how slow a disk is."""
    memory = Path("/dev/shm")
    with TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else tmp_path) as found:
        yield Path(found)


@pytest.fixture
def disk(folder, after_charge):
    return Disk(folder, after_charge, "b" * 120)


def grows_no_more(file: Path):
    limit = no_growth(file)
    limit.__enter__()
    return lambda: limit.__exit__(None, None, None)


SHORT = {"free": {}, "items": ["a"]}


def first_that_does_not_fit(disk: Disk) -> int:
    """The least padding with which the short answer does not fit into the last page."""
    low, high = next(
        (start, start + 256)
        for start in range(0, PAGE, 256)
        if disk.fits(start, SHORT) and not disk.fits(start + 256, SHORT)
    )
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if disk.fits(middle, SHORT) else (low, middle)
    return high


def allowed(requests: int) -> float:
    """How often a fair coin falls on one side at most."""
    return requests / 2 + DEVIATIONS * math.sqrt(requests) / 2


@pytest.mark.slow
def test_a_file_that_cannot_grow_does_not_prefer_short_answers(disk):
    """At every padding near the one with which the last page is full: the record of no answer is
    longer than the short answer, and must not be what decides.
    """
    full = first_that_does_not_fit(disk)
    found = [disk.ask(full - more, grows_no_more) for more in range(1, 13) for _ in range(15)]
    assert found.count("a") <= allowed(len(found))
    assert set(found) <= {"a", disk.long, None}


def test_at_the_edge_of_a_page_a_request_is_drawn_once(disk):
    full = first_that_does_not_fit(disk)
    found = [disk.ask(full - 3, grows_no_more) for _ in range(60)]
    assert 0 < found.count("a") <= allowed(60)
    assert set(found) == {"a", None}  # the long one did not fit, and was not drawn again


@pytest.mark.slow
@pytest.mark.parametrize("length", [2, 9, 40, 3000, 20_000])
def test_no_length_is_preferred_wherever_the_page_ends(folder, after_charge, length):
    disk = Disk(folder, after_charge, "b" * length)
    full = first_that_does_not_fit(disk)
    paddings = range(full - PAGE, full + PAGE, 64)
    found = [disk.ask(max(padding, 0), grows_no_more) for padding in paddings]
    assert found.count("a") <= allowed(len(found))


def test_a_closed_request_is_answered_once_there_is_room(disk):
    full = first_that_does_not_fit(disk)
    disk.long = "b" * 50_000
    file = disk.folder / "budget.db"
    shutil.copy(disk.template(full - 3), file)
    ends = []
    disk.after_charge[:] = [lambda: ends.append(grows_no_more(file))]
    data = {disk.long: 1000, "a": 1}
    with Ledger(file) as ledger:
        options = {"epsilon": 1, "universe": list(data), "ledger": ledger.request("r", dataset="d")}
        with pytest.raises(LedgerError, match="could not be recorded") as caught:
            select(data, **options)
        assert "was charged" in str(caught.value)
        assert "not drawn again" in str(caught.value)
        with pytest.raises(LedgerError, match="not drawn again"):  # whatever would be drawn now
            select({disk.long: 1, "a": 1000}, **options)
        ends[0]()
        assert select({disk.long: 1, "a": 1000}, **options).item is None
        assert list(ledger.history())[-1].body["answer"][FAILED] is True
        assert ledger.spent == Privacy(1)
        assert ledger.verify() == []
        assert ledger.unanswered() == []


@pytest.mark.slow
@pytest.mark.skipif(not may_mount(), reason="only root can mount a small disk")
def test_a_full_disk_does_not_prefer_short_answers(tmp_path, after_charge):
    """A real one: from no free page on to as many as a commit needs, with its journal."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=400k", "privmax-test", str(folder)]
    subprocess.run(mount, check=True)
    try:
        disk = Disk(folder, after_charge, "b" * 9000)
        disk.template(2000)
        counts = {free: [] for free in range(14)}
        for free, found in counts.items():

            def fill(file, free=free):
                filler = file.with_name("filler")
                with filler.open("wb", buffering=0) as written:
                    try:
                        while True:
                            written.write(b"\0" * PAGE)
                    except OSError:
                        pass
                    written.truncate(max(written.tell() - free * PAGE, 0))
                return filler.unlink

            found += [disk.ask(2000, fill) for _ in range(30)]
            assert found.count("a") <= allowed(30), free
        every = [answer for found in counts.values() for answer in found]
        assert disk.long in every
        assert None in every
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)
