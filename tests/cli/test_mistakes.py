"""Typical mistakes: each answer names the mistake and the remedy, and is what lab/mistakes.md
shows.
"""

from __future__ import annotations

import importlib.util
import shlex
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from privmax.cli import main
from privmax.cli.inputs import check_exists, read_universe
from privmax.errors import DataError, ParameterError
from privmax.sources.separated import separator_in
from privmax.sources.text import foreign
from privmax.universe import read_whole

ROOT = Path(__file__).resolve().parents[2]
SPEC = importlib.util.spec_from_file_location(
    "check_quickstart", ROOT / "tools/check_quickstart.py"
)
quickstart = importlib.util.module_from_spec(SPEC)
sys.modules["check_quickstart"] = quickstart  # where dataclasses look for it
SPEC.loader.exec_module(quickstart)

MISTAKES = [mistake for part in quickstart.PARTS.values() for mistake in part]
SHELL = quickstart.shell(Path(sys.executable).parent)


def in_process(line, folder):
    """Commands of privmax here, which is quick; what makes their files in a shell."""
    if not quickstart.judged(line):
        return SHELL(line, folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("COLUMNS", "80")
        run = CliRunner().invoke(main, shlex.split(line)[1:], prog_name="privmax")
    assert run.exception is None or isinstance(run.exception, SystemExit), run.exception
    return run.output, run.exit_code


@pytest.mark.slow
@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.title)
def test_a_mistake_is_named_with_its_remedy_as_the_page_shows(mistake, tmp_path):
    """What needs a folder that root may not write into is run as a process of fewer rights."""
    answered = quickstart.answers(
        mistake, tmp_path / "here", SHELL if mistake.locked else in_process
    )
    assert quickstart.faults(mistake, answered) == []
    shown = (ROOT / "lab/mistakes.md").read_text(encoding="utf-8")
    assert quickstart.section(mistake, answered) in shown, (
        "run ./dev python tools/check_quickstart.py --write"
    )


def test_the_page_holds_every_mistake_and_no_other():
    """Headings and introduction; the sections are compared above."""
    shown = (ROOT / "lab/mistakes.md").read_text(encoding="utf-8")
    assert shown.startswith(quickstart.INTRODUCTION)
    headings = [line for line in shown.splitlines() if line.startswith(("## ", "### "))]
    assert headings == [
        line
        for part, mistakes in quickstart.PARTS.items()
        for line in (f"## {part}", *(f"### {mistake.title}" for mistake in mistakes))
    ]


ONE = quickstart.Mistake(
    "", ("printf 'a' > b", "privmax select b"), "", (("no such column", "head -n 1"),)
)


@pytest.mark.parametrize(
    ("printed", "code", "fault"),
    [
        ("no such column", 2, "does not say 'head -n 1'"),
        ("no such column: head -n 1", 0, "exit code 0"),
        ("no such column: head -n 1\nTraceback", 2, "a traceback"),
        ("no such column, but rain boots: head -n 1", 2, "shows what the file holds"),
    ],
)
def test_a_bad_answer_is_seen(printed, code, fault):
    answered = [(ONE.lines[0], "", 0), (ONE.lines[1], printed, code)]
    assert [found.partition(": ")[2] for found in quickstart.faults(ONE, answered)] == [fault]


def test_a_good_answer_has_no_fault():
    assert (
        quickstart.faults(
            ONE, [(ONE.lines[0], "", 0), (ONE.lines[1], "no such column: head -n 1", 2)]
        )
        == []
    )


def test_a_file_that_could_not_be_made_is_seen():
    answered = [(ONE.lines[0], "", 1), (ONE.lines[1], "no such column: head -n 1", 2)]
    assert quickstart.faults(ONE, answered) == [f"{ONE.lines[0]}: exit code 1"]


@pytest.mark.parametrize(
    ("shown", "printed", "same"),
    [
        (["a b"], ["a b  "], True),
        (["a …"], ["a whole lot"], True),
        (["a … c"], ["a b d"], False),
        (["a", "…", "z"], ["a", "b", "c", "z"], True),
        (["a", "…", "z"], ["a", "z"], True),
        (["a", "…"], ["b"], False),
        (["a"], ["a", "b"], False),
        (["a.c"], ["abc"], False),
    ],
)
def test_an_ellipsis_stands_for_anything(shown, printed, same):
    assert quickstart.agrees(shown, printed) == same


def test_the_commands_of_a_block_and_what_is_shown_below_each():
    text = "$ one \\\n    two\n$ three\nfour\n\nfive\n"
    assert list(quickstart.commands(text)) == [
        ("one  two", []),
        ("three", ["four", "", "five"]),
    ]


def test_a_page_that_shows_something_else_is_seen(tmp_path, monkeypatch, capsys):
    page = (
        '```console\n$ pip install "privmax[sql]"\n$ ./dev test\n$ echo a\nb\n$ false\n$ echo '
        "c\nc\n```\n"
    )
    page += "```python\nprint(1)\n```\n```python\nraise SystemExit(1)\n```\n```text\n$ false\n```\n"
    (tmp_path / "page.md").write_text(page, encoding="utf-8")
    monkeypatch.setattr(quickstart, "ROOT", tmp_path)
    found = quickstart.follow("page.md", tmp_path / "folder", SHELL, None)
    assert [wrong.splitlines()[0] for wrong in found] == [
        "page.md: echo a: the page shows",
        "page.md: false: exit code 1",
        "page.md: python block2.py: exit code 1",
    ]
    assert "./dev test: not run" in capsys.readouterr().out


@pytest.mark.parametrize(
    "name", ["shop:/me:s3cr3t@host/db", "me:s3cr3t@host", "host?password=s3cr3t", "a\0s3cr3t"]
)
def test_what_may_hold_a_password_is_not_quoted(name):
    with pytest.raises(DataError, match="No such file") as caught:
        check_exists(name)
    assert "s3cr3t" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0", 0),
        ("1000000", 10**6),
        ("1e6", 10**6),
        ("3E+2", 300),
        ("10^12", 10**12),
        ("2**10", 1024),
        ("0^0", 1),
        ("10^4299", 10**4299),
        ("open", None),
        ("1.5e6", None),
        ("-3", None),
        ("", None),
        ("٣", None),
    ],
)
def test_large_whole_numbers_as_people_write_them(text, number):
    assert read_whole("universe", text) == number


@pytest.mark.parametrize(
    "text", ["9" * 4301, "1e4300", "10^4300", "10^" + "9" * 5000, "2**99999999999999999999"]
)
def test_a_number_of_too_many_digits_is_refused_quickly_and_in_short(text):
    with pytest.raises(ParameterError, match="fewer than 4300 digits") as caught:
        read_universe(text, 1)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("plan --epsilon 1e400 --delta 1e-6", "--epsilon 1e400:"),
        ("plan --epsilon 1e-400 --delta 1e-6", "--epsilon 1e-400:"),
        (f"plan --epsilon 1 --delta 1e-6 --near {10**400}", "--near 'over 2^1000':"),
        ("audit exponential --epsilon 1e400", "it must not exceed 1000000000"),
        (f"select sample:counts --epsilon 1 --k {'9' * 5000}", "is not a valid integer"),
        ("itemsets sample:receipts --epsilon 1 --size 10^5000", "--size 10^5000:"),
    ],
)
def test_numbers_beyond_all_measure_are_refused_quickly_and_in_short(line, said, tmp_path):
    printed, code = in_process(f"privmax {line}", tmp_path)
    assert code == 2
    assert said in printed
    assert len(printed) < 600


@pytest.mark.parametrize(
    "price", ["--epsilon 1e9 --delta 1e-6", "--epsilon 1 --delta 1e-900 --k 3"]
)
def test_extreme_prices_are_prices(price, tmp_path):
    line = f"privmax select sample:counts --item query --score people {price}"
    assert in_process(line, tmp_path)[1] == 0


@pytest.mark.parametrize(
    ("start", "told"),
    [
        (b"PK\x03\x04", "spreadsheet"),
        (b"\xd0\xcf\x11\xe0", "old spreadsheet"),
        (b"\x89PNG", "PNG"),
        (b"\xff\xd8\xff\xe0", "JPEG"),
        (b"%PDF-1.7", "PDF"),
        (b"\x1f\x8b\x08", "gunzip"),
        (b"PAR1", "Parquet"),
        (b"SQLite format 3\x00", "end in .sqlite, and give table (--table)"),
        (b"\xff\xfe\x00\x00a\x00\x00\x00", "UTF-32"),
        (b"\xff\xfea\x00", "UTF-16"),
        (b"\xfe\xff\x00a", "UTF-16"),
        (b"a,\x00", "zero bytes"),
    ],
)
def test_files_that_are_no_text_are_told_apart(start, told):
    assert told in foreign(start)


@pytest.mark.parametrize(
    "start", [b"", b"item,score\n", "é,ü\n".encode(), b"\xef\xbb\xbfitem", b"caf\xe9", b"PK,PAR\n"]
)
def test_what_may_be_text_is_left_to_be_read(start):
    assert foreign(start) is None


def test_the_line_of_names_tells_what_separates():
    assert [separator_in(names) for names in ("a,b;c", "a;b\tc", "a\tb", "a", "")] == [
        ",",
        ";",
        "\t",
        ",",
        ",",
    ]
