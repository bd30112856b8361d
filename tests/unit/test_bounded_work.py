"""What nobody waits for: endless lines, devices, compressed files that fill a memory.

Each bound is public and made small here. docs/limits.md lists them all, with their numbers.
"""

from __future__ import annotations

import gzip
import io
from contextlib import suppress
from pathlib import Path

import pytest
from click.testing import CliRunner

import privmax
from privmax import Exponential, JointExponential, PermuteAndFlip, Privacy
from privmax.choice import auto
from privmax.cli import main
from privmax.cli.inputs import read_universe
from privmax.display import escape_text, format_label, to_json
from privmax.errors import DataError, ParameterError, WorkError
from privmax.itemsets import Layout, top_itemsets
from privmax.itemsets.miner import ranks
from privmax.itemsets.reading.forms import read_baskets
from privmax.ledger import Ledger
from privmax.planning import plans
from privmax.rendering import environment
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


@pytest.mark.slow
@pytest.mark.parametrize("reader", [name for name in READERS if name != "scores"])
def test_lines_that_do_not_end_are_refused(small, reader):
    read, _, row = READERS[reader]
    names = row if reader != "long baskets" else b"b,i\n"
    stream = io.BufferedReader(Endless(names * 1000))
    with pytest.raises(DataError, match="as much as is read of a stream"):
        read(stream)


@pytest.mark.slow
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
    with pytest.raises(DataError, match=r"A line has more than|a quote is not closed"):
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
    with pytest.raises(DataError, match="--universe: The file cannot be read"):
        read_universe(str(path), 1)


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="this system has no such device")
def test_dev_zero_is_no_file_of_baskets():
    with pytest.raises(DataError, match="zero bytes"):
        read_baskets("/dev/zero", form="fimi")


def test_with_a_floor_one_basket_alone_stalls_nothing(monkeypatch):
    """docs/limits.md says so: what one person alone has does not compete."""
    monkeypatch.setattr(ranks, "MOST", 1000)
    baskets = [list(range(500)), *[[1, 2, 3]] * 20]
    with pytest.raises(WorkError):
        top_itemsets(baskets, size=2, **PRICE)
    assert top_itemsets(baskets, size=2, **PRICE, layout=Layout(floor=1)).requested == 1


class TestLists:
    """Which mechanism is best, and a draw in rounds, take longer with every item."""

    def test_a_mechanism_is_chosen_for_lists_of_a_public_length(self):
        with pytest.raises(ParameterError, match=r"at most 10,000: which mechanism .* give a mech"):
            auto(**PRICE, k=10_001)
        with pytest.raises(ParameterError, match="at most 1,000 with their order"):
            auto(**PRICE, k=1001, ranked=True)
        with pytest.raises(ParameterError, match=r"of about 2\^997 it must be at most 262"):
            auto(**PRICE, k=1000, universe=10**300)

    def test_where_no_lead_is_enough_the_reason_says_so(self, monkeypatch):
        """Nobody gave a success of 0.95, so no error may be about it."""

        def refuse(*_, **__):
            raise ParameterError("success", "0.95", "no lead reaches it")

        monkeypatch.setattr(JointExponential, "lead", refuse)
        choice = auto(epsilon=1, delta=0, k=3, universe=10**5, ranked=True)
        assert "JointExponential beyond all" in choice.why

    @pytest.mark.parametrize("made", [Exponential, PermuteAndFlip, JointExponential])
    def test_lists_that_are_drawn_in_rounds_are_bounded(self, made):
        assert made(epsilon=1, k=10_000).k == 10_000
        with pytest.raises(ParameterError, match="a list has at most 10,000 items"):
            made(epsilon=1, k=10_001)


HOSTILE = "\x1b[31mred\x07\u202eback\u200b\u2028\u3164"


def seen(text):
    """Whether a terminal shows all of it."""
    return not set(text) & set(HOSTILE.replace("red", "").replace("back", "").replace("[31m", ""))


class TestTerminals:
    """Labels, names of files and options are somebody else's text: one rule, at every door."""

    def test_the_rule(self):
        assert escape_text(HOSTILE) == r"\x1b[31mred\x07\u202eback\u200b\u2028\u3164"
        assert escape_text("naïve Größe 日本 א") == "naïve Größe 日本 א"
        assert escape_text("two\nlines", keep="\n") == "two\nlines"
        assert format_label(HOSTILE) == escape_text(HOSTILE)
        assert seen(to_json({"a": HOSTILE}))
        page = environment().from_string("{{ it }}").render(it=HOSTILE + "<")
        assert page == escape_text(HOSTILE) + "&lt;"

    @pytest.mark.slow
    @pytest.mark.parametrize(
        "arguments",
        [
            ["select", HOSTILE, "--epsilon", "1"],
            ["select", "good.csv", "--epsilon", HOSTILE],
            ["select", "good.csv", "--epsilon", "1", "--universe", HOSTILE],
            ["select", "good.csv", "--epsilon", "1", "--mechanism", HOSTILE],
            ["select", "good.csv", "--epsilon", "1", f"--{HOSTILE}"],
            ["select", "good.csv", "--epsilon", "1", "--item", HOSTILE],
            ["select", "good.csv", "--epsilon", "1", "--where", f"{HOSTILE} = 1"],
            ["select", "good.csv", "--epsilon", "1", "--ledger", "b.db", "--request", HOSTILE],
            ["select", "good.csv", "--epsilon", "1", "--ledger", HOSTILE],
            ["itemsets", "good.csv", "--epsilon", "1", "--labels", HOSTILE],
            ["learn", "good.csv", "--label", HOSTILE, "--labels", "0,1", "--epsilon", "1"],
            ["learn", "good.csv", "--apply", HOSTILE],
            ["budget", "show", HOSTILE],
            ["budget", "show", "b.db", "--name", HOSTILE],
            ["budget", HOSTILE],
            ["audit", HOSTILE],
            ["plan", "--epsilon", HOSTILE],
            [HOSTILE],
        ],
        ids=lambda given: " ".join(given).replace(HOSTILE, "HOSTILE"),
    )
    def test_no_message_commands_a_terminal(self, arguments, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        (tmp_path / "good.csv").write_text("item,score\na,900\nb,1\n", encoding="utf-8")
        Ledger.create("b.db", budget=Privacy(5, "1e-5")).close()
        run = CliRunner().invoke(main, arguments)
        assert run.exit_code == 2, run.output
        assert run.exception is None or isinstance(run.exception, SystemExit)
        assert seen(run.output)


def test_what_has_no_memory_left_is_told_in_words(monkeypatch):
    def full(*_, **__):
        raise MemoryError

    monkeypatch.setattr(plans, "plan", full)
    run = CliRunner().invoke(main, ["plan", "--epsilon", "1", "--delta", "1e-6"])
    assert run.exit_code == 2
    assert "This needs more memory than is available." in run.output


def test_a_file_of_data_sets_for_explore_is_bounded(tmp_path):
    datasets = pytest.importorskip("privmax.explore.datasets")
    file = tmp_path / "sets.toml"
    file.write_text("a = " + "[" * 5000 + "]" * 5000, encoding="utf-8")
    with pytest.raises(ParameterError, match="nested too deep"):
        datasets.read_datasets({}, str(file))
    file.write_bytes(b"#" * (datasets.LARGEST_TOML + 1))
    with pytest.raises(ParameterError, match="more than 16 MiB"):
        datasets.read_datasets({}, str(file))
