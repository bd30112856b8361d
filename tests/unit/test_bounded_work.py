"""What nobody waits for: endless lines, devices, compressed files that fill a memory.

Each bound is public and made small here. docs/limits.md lists them all, with their numbers.
"""

from __future__ import annotations

import gzip
import io
from contextlib import suppress
from pathlib import Path

import pytest

import privmax
from privmax.cli.inputs import read_universe
from privmax.errors import DataError
from privmax.itemsets.reading.forms import read_baskets
from privmax.sources import bounded

PRICE = {"epsilon": 1, "delta": "1e-6"}


class Endless(io.RawIOBase):
    """A device that gives the same bytes for ever; a reader that does not stop fails the test."""

    def __init__(self, piece: bytes, most: int = 1 << 22) -> None:
        self._piece, self._left = piece, most

    def readable(self) -> bool:
        return True

    def readinto(self, buffer) -> int:
        number = min(len(buffer), len(self._piece))
        buffer[:number] = self._piece[:number]
        self._left -= number
        assert self._left > 0, "it reads on"
        return number


@pytest.fixture
def small(monkeypatch):
    """Bounds that tests reach at once."""
    for name, value in {
        "LONGEST_LINE": 1 << 16,
        "LARGEST_STREAM": 1 << 20,
        "LARGEST_IN_MEMORY": 1 << 20,
        "UNPACKED_FREELY": 1 << 16,
        "_PIECE": 1 << 14,
    }.items():
        monkeypatch.setattr(bounded, name, value)


def read_scores(data):
    return privmax.select(data, item="item", score="score", **PRICE)


READERS = {
    "scores": (read_scores, b"item,score\na,7\n", b"\n" * 4),
    "wide baskets": (lambda data: read_baskets(data, form="wide"), b"", b"1,2\n"),
    "long baskets": (
        lambda data: read_baskets(data, form="long", basket="b", item="i"), b"b,i\n", b"1,2\n",
    ),
    "baskets of numbers": (lambda data: read_baskets(data, form="fimi"), b"", b"1 2\n"),
}  # fmt: skip


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("piece", [b"\0" * 4096, b"1" * 4096], ids=["zeros", "digits"])
def test_a_device_that_does_not_end_is_refused(small, reader, piece):
    with pytest.raises(DataError) as caught:
        READERS[reader][0](io.BufferedReader(Endless(piece)))
    told = ("zero bytes", "A line has more than", "as much as is read of a stream")
    assert any(part in str(caught.value) for part in told)


@pytest.mark.parametrize("reader", [name for name in READERS if name != "scores"])
def test_lines_that_do_not_end_are_refused(small, reader):
    read, _, row = READERS[reader]
    names = row if reader != "long baskets" else b"b,i\n"
    stream = io.BufferedReader(Endless(names * 1000))
    with pytest.raises(DataError, match="as much as is read of a stream"):
        read(stream)


@pytest.mark.parametrize("ending", [".gz", ".zst"])
@pytest.mark.parametrize("reader", READERS)
def test_a_compressed_file_that_fills_a_memory_is_refused(small, tmp_path, reader, ending):
    read, names, row = READERS[reader]
    suffix = ".dat" if reader == "baskets of numbers" else ".csv"
    path = tmp_path / f"bomb{suffix}{ending}"
    rows = row * 200_000
    if ending == ".gz":
        path.write_bytes(gzip.compress(names + rows))
    else:
        pa = pytest.importorskip("pyarrow")
        path.write_bytes(bytes(pa.Codec("zstd").compress(names + rows)))
    assert len(names + rows) > bounded.UNPACKED_FREELY + 256 * path.stat().st_size
    with pytest.raises(DataError, match="unpacks to more than 256 times its size"):
        read(str(path))


def test_what_people_keep_is_read(small, tmp_path):
    """A compressed file that is no bomb, a stream within its bounds, and a long basket."""
    path = tmp_path / "b.dat.gz"
    path.write_bytes(gzip.compress(b"1 2\n" * 100))
    assert read_baskets(path).individuals == 100
    assert read_baskets(io.BytesIO(b"1 2\n" * 100), form="fimi").individuals == 100
    long = " ".join(map(str, range(40_000))).encode()  # one basket, longer than a line of text
    (tmp_path / "long.dat").write_bytes(long)
    assert read_baskets(tmp_path / "long.dat").longest() == 40_000


def test_a_stream_of_the_callers_stays_open(small):
    stream = io.BytesIO(b"a,b\n")
    read_baskets(stream, form="wide")
    assert not stream.closed


def test_lines_of_old_systems_are_lines(small, tmp_path):
    path = tmp_path / "old.csv"
    path.write_bytes(b"item,score\r" + b"".join(b"i%d,5\r" % n for n in range(20_000)))
    with suppress(DataError):
        read_scores(path)


def test_a_universe_file_is_bounded(small, tmp_path):
    path = tmp_path / "universe.csv"
    path.write_bytes(b'"' + b"x" * (1 << 17))
    with pytest.raises(DataError, match="A line has more than|--universe: the file is not readable"):
        read_universe(str(path), 1)


@pytest.mark.parametrize("damage", ["short", "sum", "middle"])
def test_a_universe_file_may_be_compressed_and_damage_is_named(tmp_path, damage):
    path = tmp_path / "universe.csv.gz"
    whole = bytearray(gzip.compress("".join(f"label {n * n}\n" for n in range(999)).encode()))
    path.write_bytes(whole)
    assert read_universe(str(path), 1).size == 999
    if damage == "short":
        whole = whole[: len(whole) // 2]
    else:
        place = -6 if damage == "sum" else len(whole) // 2
        whole[place : place + 4] = b"\xff" * 4
    path.write_bytes(whole)
    with pytest.raises(DataError, match="--universe: the file is not"):
        read_universe(str(path), 1)


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="this system has no such device")
def test_dev_zero_is_no_file_of_baskets():
    with pytest.raises(DataError, match="zero bytes"):
        read_baskets("/dev/zero", form="fimi")
