"""A stranger's first hour: follows the README, the tutorial and the pages for newcomers to the
letter, then makes typical mistakes.

python3 tools/check_quickstart.py              in a new environment, made with pip in a temporary
                                               folder; needs nothing else
python3 tools/check_quickstart.py --keep DIR   the same in DIR, which is left to be looked at
python3 tools/check_quickstart.py --dev        runs ./dev demo of the README, too, in a copy of the
                                               tree
./dev python tools/check_quickstart.py --here  the mistakes alone, with the installed privmax
./dev python tools/check_quickstart.py --write the same, and writes lab/mistakes.md

Fails if a page shows anything else than what its commands print ("…" stands for anything), or if
the answer to a mistake does not name it, offers no remedy, shows a traceback or what the file
holds.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import venv
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WALKED = (
    "docs/install.md",
    "docs/epsilon.md",
    "docs/faq.md",
    "lab/side-by-side.md",
    "docs/howto/exports.md",
    "docs/howto/lawyer.md",
    "docs/howto/nightly.md",
    "docs/howto/notebook.md",
    "docs/howto/pandas.md",
    "docs/howto/polars.md",
    "docs/howto/service.md",
    "docs/howto/sqlite.md",
)
"""Pages for newcomers. tests/docs/test_walks.py follows them in the development environment."""

PAGES = ("README.md", "docs/tutorial.md", *WALKED)
MISTAKES_PAGE = ROOT / "lab/mistakes.md"
BLOCK = re.compile(r"^```(\w+)(?: (\w+\.\w+))?\n(.*?)^```", re.MULTILINE | re.DOTALL)
"""A block: its kind, the name of the file it is to be saved as, if it has one, and its text."""

NEEDED = {"learn", "plot", "sql"}
"""Extras that the mistakes use, whatever the pages name."""

BESIDE = ("openpyxl", "pandas", "polars")
"""Packages that a reader of the how-to pages has, and privmax does not need."""

LIMIT = 600
"""Seconds after which a command counts as hanging."""

PRIVATE = ("rain boots", "trail shoes", "912", "640", "café")
"""What the files of the mistakes hold: no refusal may show it."""

Run = Callable[["str", Path], tuple[str, int]]
"""Runs a line in a folder: what it printed, and its exit code."""


@dataclass(frozen=True)
class Mistake:
    """One section of the page.

    lines     what is typed, in an empty folder; what privmax answers is judged
    why       what the page says of it
    says      what the answers must hold: a tuple for each command that is judged, of the mistake
              and of the remedy
    codes     how those commands end, if not with 2
    locked    whether the folder `locked` is there, in which nobody may write
    """

    title: str
    lines: tuple[str, ...]
    why: str
    says: tuple[tuple[str, ...], ...]
    codes: tuple[int, ...] = ()
    locked: bool = False


COUNTS = "--item query --score people"
PEOPLE = "--item query --user person"
PRICE = "--epsilon 1 --delta 1e-6"
RECEIPTS = "itemsets sample:receipts --basket receipt --item article --user member"
MEMBERS = "learn sample:members --labels 0,1 --hypotheses stumps"
SMALL = r"printf 'query,people\nrain boots,912\ntrail shoes,640\n' > counts.csv"

PARTS: dict[str, tuple[Mistake, ...]] = {
    "The data": (
        Mistake(
            "A column that does not exist",
            (
                f"privmax select sample:counts --item qery --score people {PRICE}",
                f"privmax select sample:searches --item query --user persn {PRICE}",
                f"privmax itemsets sample:receipts --basket receipt --item artcle {PRICE}",
                f"privmax {MEMBERS} --label crad --low 0 --high 100 --epsilon 1",
            ),
            "The data sets of privmax are public, so their columns are listed, as those of a table "
            "or "
            "a Parquet file are. The first line of your own CSV file is never shown: it may be "
            "data.",
            (
                ("--item qery:", "Did you mean 'query'?"),
                ("--user persn:", "Did you mean 'person'?"),
                ("--item artcle:", "Did you mean 'article'?"),
                ("--label crad:", "Did you mean 'card'?"),
            ),
        ),
        Mistake(
            "Missing column names",
            (f"privmax itemsets sample:receipts {PRICE}",),
            "The lines of such a file could also be baskets. A wrong guess would cost privacy, so "
            "you have to say.",
            (("--form:", "--basket and --item"),),
        ),
        Mistake(
            "A missing bound",
            (f"privmax {MEMBERS} --label card --epsilon 1",),
            "The smallest and the largest value belong to single people, so they are not read from "
            "the data.",
            (("--low:", "Add --low NUMBER"),),
        ),
        Mistake(
            "Item and score swapped",
            (f"privmax select sample:counts --item people --score query {PRICE}",),
            "The message names the line, not its content.",
            (("Line 2 has no number", "item and score are not swapped"),),
        ),
        Mistake(
            "A decimal among whole numbers",
            (
                r"printf 'query,hours\nrain boots,912\ntrail shoes,640.5\n' > hours.csv",
                f"privmax select hours.csv --item query --score hours {PRICE}",
                f"privmax select hours.csv --item query --score hours {PRICE} --resolution 0.5",
            ),
            "Scores are whole numbers unless you declare a grid: one person's score must not "
            "change "
            "how all others are read.",
            (
                ("Line 3 has a score that is not a whole number", "resolution"),
                ("--neighbors:", "Use replace"),
            ),
        ),
        Mistake(
            "A row without a label",
            (
                r"printf 'query,people\nrain boots,912\n,640\n' > counts.csv",
                f"privmax select counts.csv {COUNTS} {PRICE}",
            ),
            "An empty value is a missing label. When people are counted, rows without an item are "
            "skipped.",
            (("Line 3 has no label", "Drop"),),
        ),
        Mistake(
            "The same label twice",
            (
                r"printf 'query,people\nrain boots,912\nrain boots,640\n' > counts.csv",
                f"privmax select counts.csv {COUNTS} {PRICE}",
            ),
            "A sum would be wrong if the same people are behind both lines, so privmax does not "
            "guess.",
            (("Line 3 repeats a label", "deduplicate"),),
        ),
        Mistake(
            "A column for each item",
            (
                r"printf 'rain boots,trail shoes\n1,0\n1,1\n0,0\n' > columns.csv",
                f"privmax itemsets columns.csv {PRICE}",
                f"privmax itemsets columns.csv --form wide {PRICE}",
                f"privmax itemsets columns.csv --form onehot {PRICE}",
            ),
            "Read as baskets, such a file would say that 0 and 1 are bought together most. Three "
            "baskets are too few for an answer.",
            (
                ("--form:", "--form onehot"),
                ("zeros and ones", "set form to onehot"),
                ("no answer",),
            ),
            codes=(2, 2, 0),
        ),
    ),
    "The privacy cost": (
        Mistake(
            "No delta",
            (
                f"privmax select sample:counts {COUNTS} --epsilon 1",
                f"privmax {RECEIPTS} --epsilon 1",
                "privmax plan --epsilon 1",
            ),
            "With δ = 0 every candidate must have a chance, so all of them must be listed.",
            (("--delta 0:", "1e-6"),) * 3,
        ),
        Mistake(
            "A percentage instead of a fraction",
            (
                f"privmax select sample:counts {COUNTS} --epsilon 1 --delta 5",
                f"privmax {RECEIPTS} --epsilon 1 --delta 1e-6%",
                f"privmax plan {PRICE} --success 95",
            ),
            "All probabilities are fractions.",
            (
                ("--delta 5:", "write 0.05"),
                ("--delta 1e-6%:", "write 1e-08"),
                ("--success 95:", "write 0.95"),
            ),
        ),
        Mistake(
            "A cost that protects no one",
            (
                f"privmax select sample:counts {COUNTS} --epsilon 100 --delta 1e-6",
                f"privmax {RECEIPTS} --epsilon 1 --delta 0.05",
            ),
            "The command still runs: you may have a reason. Above ε = 10 or δ = 0.001 it prints a "
            "warning to standard error.",
            (
                ("epsilon 100 protects no one", "between 0.1 and 3"),
                ("delta 0.05", "1e-6 for up to ten thousand people"),
            ),
            codes=(0, 0),
        ),
        Mistake(
            "Zero, a negative number, a decimal comma",
            (
                f"privmax select sample:counts {COUNTS} --epsilon 0 --delta 1e-6",
                "privmax plan --epsilon -1 --delta 1e-6",
                f"privmax {RECEIPTS} --epsilon 1,5 --delta 1e-6",
            ),
            "ε must be above 0: at ε = 0 a release cannot depend on the data at all.",
            (("--epsilon 0:", "above 0"), ("--epsilon -1:", "above 0"), ("--epsilon 1,5:", "1.5")),
        ),
    ),
    "The file": (
        Mistake(
            "It does not exist",
            (
                SMALL,
                f"privmax select conts.csv {COUNTS} {PRICE}",
                f"privmax select data/counts.csv {COUNTS} {PRICE}",
                "privmax itemsets baskets.dat --epsilon 1 --delta 1e-6",
                f"privmax select sample:searchs {PEOPLE} {PRICE}",
            ),
            "The message suggests files with a similar name in the same folder.",
            (
                ("'conts.csv'", "Did you mean counts.csv?"),
                ("'data/counts.csv'", "There is no folder 'data'"),
                ("'baskets.dat'", "Give its path"),
                ("FILE sample:searchs", "There are receipts, searches"),
            ),
        ),
        Mistake(
            "It is an image or a spreadsheet",
            (
                r"printf '\211PNG\r\n\032\n\000\000\000\rIHDR' > counts.csv",
                f"privmax select counts.csv {COUNTS} {PRICE}",
                f"privmax select counts.csv {PEOPLE} {PRICE}",
                r"printf 'PK\003\004\024\000\006\000' > baskets.dat",
                f"privmax itemsets baskets.dat {PRICE}",
                "printf '' > sales.xlsx",
                f"privmax select sales.xlsx {COUNTS} {PRICE}",
            ),
            "privmax looks at the first bytes of a file, whatever its name.",
            (
                ("a picture (PNG)", "Give the file with the data"),
                ("a picture (PNG)", "Give the file with the data"),
                ("a spreadsheet (.xlsx)", "save it as CSV in UTF-8"),
                ("The file is a spreadsheet", "save the sheet as CSV"),
            ),
        ),
        Mistake(
            "It is in another encoding",
            (
                r"printf 'query,people\ncaf\351,912\n' > latin.csv",
                f"privmax select latin.csv {COUNTS} {PRICE}",
                f"privmax itemsets latin.csv --form wide {PRICE}",
                r"printf 'person,query\n1,rain boots\n' | iconv -t UTF-16 > wide.csv",
                f"privmax select wide.csv {PEOPLE} {PRICE}",
            ),
            "Text must be UTF-8. The bytes do not say which older encoding they use, so privmax "
            "does "
            "not guess.",
            (
                ("Line 2 is not UTF-8", "iconv -f WINDOWS-1252"),
                ("Line 2 is not UTF-8", "iconv -f WINDOWS-1252"),
                ("text in UTF-16", "iconv -f UTF-16"),
            ),
        ),
        Mistake(
            "It comes from Windows or from a spreadsheet",
            (
                r"printf '\357\273\277query;people\r\nrain boots;912\r\n' > counts.csv",
                f"privmax select counts.csv {COUNTS} {PRICE}",
                r"""yes "$(printf '7 12\r')" | head -n 300 > baskets.dat""",
                f"privmax itemsets baskets.dat {PRICE}",
            ),
            "This is no mistake: carriage returns, a byte-order mark, and semicolons (if no column "
            "name has a comma) are fine.",
            (("item       rain boots",), ("itemset    7 + 12",)),
            codes=(0, 0),
        ),
        Mistake(
            "It is empty",
            (
                "printf '' > empty.csv",
                f"privmax select empty.csv {COUNTS} {PRICE}",
                f"privmax select empty.csv {PEOPLE} {PRICE}",
            ),
            "A file with only a header is no mistake: there is no answer, as with any data that is "
            "too small.",
            (("empty", "must name the columns"), ("empty", "must name the columns")),
        ),
        Mistake(
            "A quote is left open",
            (
                r"""printf 'query,people\n"rain boots,912\ntrail shoes,640\n' > counts.csv""",
                f"privmax select counts.csv {COUNTS} {PRICE}",
                f"privmax itemsets counts.csv --form wide {PRICE}",
            ),
            "Everything after an open quote is part of the same value, up to the end of the file.",
            (("not CSV", "Close every quote"), ("not CSV", "Close every quote")),
        ),
        Mistake(
            "It is a folder",
            (
                f"privmax select . {PEOPLE} {PRICE}",
                f"privmax itemsets . --basket receipt --item article {PRICE}",
            ),
            "Only a folder of Parquet files is read, as one table.",
            (("no file that ends in .parquet", "Name a file"),) * 2,
        ),
    ),
    "Numbers": (
        Mistake(
            "A huge number",
            (
                f"privmax select sample:counts {COUNTS} {PRICE} --k "
                f"1000000000000000000000000000000",
                f"privmax select sample:counts {COUNTS} {PRICE} --ranked --k "
                f"1000000000000000000000000000000 --mechanism sharp-margin",
                f"privmax select sample:counts {COUNTS} {PRICE} --universe 10^5000",
                f"privmax plan {PRICE} --universe 10^400",
                r"printf 'query,people\nrain boots,1%0400d\n' 0 > counts.csv",
                f"privmax select counts.csv {COUNTS} {PRICE}",
            ),
            "Numbers are exact, even with hundreds of digits. How long a list may be has a limit.",
            (
                ("--k 1000000000000000000000000000000:", "it must be at most 10,000"),
                ("--k 1000000000000000000000000000000:", "10,000"),
                ("--universe 10^5000:", "fewer than 4300 digits"),
                ("2^1000", "Use an open universe"),
                ("rain boots",),
            ),
            codes=(2, 2, 2, 2, 0),
        ),
        Mistake(
            "A number that is too long, or written with commas",
            (
                r"printf 'query,people\nrain boots,1%05000d\n' 0 > long.csv",
                f"privmax select long.csv {COUNTS} {PRICE}",
                r"""printf 'query,people\nrain boots,"1,912"\n' > comma.csv""",
                f"privmax select comma.csv {COUNTS} {PRICE}",
            ),
            "In some countries 1,912 is almost two, in others almost two thousand.",
            (
                ("Line 2 has a number of more than 4300 digits",),
                ("Line 2 has no number", "without commas"),
            ),
        ),
    ),
    "Writing": (
        Mistake(
            "A folder that you may not write to",
            (
                f"privmax select sample:counts {COUNTS} {PRICE} --report locked/report.html",
                f"privmax plan {PRICE} --plot locked/plan.svg",
                "privmax budget create locked/budget.db --epsilon 3 --delta 1e-5",
                f"privmax select sample:counts {COUNTS} {PRICE} --ledger locked/budget.db",
                f"privmax select sample:counts {COUNTS} {PRICE} --report nowhere/report.html",
            ),
            "`locked` is a folder without write permission. privmax checks this before it draws or "
            "charges anything.",
            (
                ("--report locked/report.html:", "a folder you may write to"),
                ("locked/plan.svg", "folder"),
                ("locked/budget.db", "folder you may write to"),
                ("there is no such file", "privmax budget create"),
                ("--report nowhere/report.html:", "a folder you may write to"),
            ),
            locked=True,
        ),
    ),
    "Typing": (
        Mistake(
            "A typo",
            (
                "privmax selct sample:counts",
                f"privmax select sample:counts --itme query --score people {PRICE}",
                f"privmax select sample:counts {COUNTS} {PRICE} --mechanism nested",
                f"privmax select sample:counts {COUNTS} --delta 1e-6",
            ),
            "The message suggests a correction, and the command does not run.",
            (
                ("'selct'", "Did you mean select?"),
                ("'--itme'", "'--item'"),
                ("'nested'", "'nested-margin'"),
                ("Missing option", "--epsilon"),
            ),
        ),
        Mistake(
            "The same option twice",
            (
                f"privmax select sample:counts {COUNTS} --epsilon 0.1 --delta 1e-6 --epsilon 9",
                f"privmax {RECEIPTS} {PRICE} --json --json",
            ),
            "privmax does not choose between two values. Only list options can be repeated: "
            "`--basket` of itemsets, `--item` of select, `--low` and `--high` of learn, "
            "`--mechanism` of plan and compare.",
            (
                ("--epsilon is given more than once", "Give it once"),
                ("--json is given more than once", "Give it once"),
            ),
        ),
    ),
}


def judged(line: str) -> bool:
    """Whether the answer to a line is one to be looked at; the others make its files."""
    return line.startswith("privmax ")


def answers(mistake: Mistake, folder: Path, run: Run) -> list[tuple[str, str, int]]:
    """Each line with what it printed and its exit code."""
    folder.mkdir(exist_ok=True)
    if mistake.locked:
        (folder / "locked").mkdir()
        (folder / "locked").chmod(0o555)
    return [(line, *run(line, folder)) for line in mistake.lines]


def faults(mistake: Mistake, answered: Sequence[tuple[str, str, int]]) -> list[str]:
    """What is wrong with the answers to a mistake."""
    found = [f"{line}: exit code {code}" for line, _, code in answered if not judged(line) and code]
    given = [answer for answer in answered if judged(answer[0])]
    if len(given) != len(mistake.says):
        found.append(f"{mistake.title}: {len(given)} commands, {len(mistake.says)} expectations")
    for (line, printed, code), words, end in zip(
        given, mistake.says, mistake.codes or repeat(2), strict=False
    ):
        found += [f"{line}: does not say {word!r}" for word in words if word not in printed]
        if code != end:
            found.append(f"{line}: exit code {code}")
        if "Traceback" in printed:
            found.append(f"{line}: a traceback")
        if code:
            found += [f"{line}: shows what the file holds" for word in PRIVATE if word in printed]
    return found


def page(told: dict[str, list[tuple[Mistake, list[tuple[str, str, int]]]]]) -> str:
    """lab/mistakes.md."""
    parts = [INTRODUCTION]
    for part, sections in told.items():
        parts.append(f"## {part}\n")
        for mistake, answered in sections:
            parts.append(section(mistake, answered))
    return "\n".join(parts)


def section(mistake: Mistake, answered: Sequence[tuple[str, str, int]]) -> str:
    block = "".join(f"{wrapped(line)}\n{printed}" for line, printed, _ in answered)
    return f"### {mistake.title}\n\n{mistake.why}\n\n```console\n{block}```\n"


def wrapped(command: str) -> str:
    """A command as pages show it: in lines of at most 72 columns, broken before options."""
    if len(command) <= 70:
        return f"$ {command}"
    lines = ["$"]
    for word in re.split(r" (?=--)", command):
        if lines[-1] != "$" and len(f"{lines[-1]} {word} \\") > 72:
            lines[-1] += " \\"
            lines.append(f"    {word}")
        else:
            lines[-1] += f" {word}"
    return "\n".join(lines)


INTRODUCTION = """# Mistakes and their messages

To fix a problem, start with [troubleshooting](../docs/howto/troubleshooting.md).

`tools/check_quickstart.py` ran every command below, and the page shows its real output; tests
repeat them. An error names the mistake and says what to do. It never quotes the content of a file,
not even the first line: without a header, that is data.

The exit code is 2, or 3 where the [budget](../docs/howto/budget.md) does not allow a release: see
[all exit codes](../docs/command-line.md#exit-codes). Nothing was released or charged, unless an
answer is printed above the message.
"""


def commands(text: str) -> Iterator[tuple[str, list[str]]]:
    """The commands of a console block, with the lines shown below each."""
    lines = iter(text.splitlines())
    command = ""
    shown: list[str] = []
    for line in lines:
        if line.startswith("$ "):
            if command:
                yield command, shown
            command, shown = line.removeprefix("$ "), []
            while command.endswith("\\"):
                command = f"{command[:-1]} {next(lines).removeprefix('> ').strip()}"
        else:
            shown.append(line)
    if command:
        yield command, shown


def agrees(shown: Sequence[str], printed: Sequence[str]) -> bool:
    """Whether lines are what a page shows; "…" is anything, on a line of its own any lines at
    all.
    """
    pattern = "".join(
        "(?:.*\n)*?"
        if line.strip() == "…"
        else ".*".join(map(re.escape, line.rstrip().split("…"))) + "\n"
        for line in shown
    )
    return re.fullmatch(pattern, "".join(f"{line.rstrip()}\n" for line in printed)) is not None


def follow(name: str, folder: Path, run: Run, tree: Path | None) -> list[str]:
    """Run every command and every Python block of a page, in order, in a folder, and save those
    that are files. Gives what went wrong.
    """
    found = []
    folder.mkdir()
    blocks = BLOCK.findall((ROOT / name).read_text(encoding="utf-8"))
    for number, (kind, file, text) in enumerate(blocks):
        if file:
            (folder / file).write_text(text, encoding="utf-8")
        elif kind == "python":
            (folder / f"block{number}.py").write_text(text, encoding="utf-8")
            found += step(name, f"python block{number}.py", [], folder, run)
        elif kind == "console":
            for line, shown in commands(text):
                if line.startswith("pip install"):
                    print(f"{name}: {line}: done before, from this tree")
                elif line == "./dev demo" and tree is not None:
                    found += step(name, line, shown, tree, run)
                elif line.startswith("./dev "):
                    print(
                        f"{name}: {line}: not run; it makes a development environment, and .ci/run "
                        f"runs it"
                    )
                else:
                    found += step(name, line, shown, folder, run)
    return found


def step(name: str, line: str, shown: Sequence[str], folder: Path, run: Run) -> list[str]:
    printed, code = run(line, folder)
    wrong = []
    if "Traceback" in printed or (code and not any("Error: " in one for one in shown)):
        wrong.append(f"{name}: {line}: exit code {code}\n{printed}")
    elif shown and not agrees(shown, printed.splitlines()):
        wrong.append(
            f"{name}: {line}: the page shows\n{chr(10).join(shown)}\nand what came is\n{printed}"
        )
    print(f"{name}: {line}: {'FAILED' if wrong else 'ok'}", flush=True)
    return wrong


def shell(programs: Path) -> Run:
    """Runs lines as a person without any special right would, with the programs of an environment
    first.
    """
    settings = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PYTHON", "VIRTUAL_ENV"))
    }
    settings |= {
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "COLUMNS": "80",
        "LC_ALL": "C.UTF-8",
    }
    without = _without_override if sys.platform == "linux" and os.geteuid() == 0 else None

    def run(line: str, folder: Path) -> tuple[str, int]:
        done = subprocess.run(
            ["sh", "-c", line],
            cwd=folder,
            env=settings,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            timeout=LIMIT,
            check=False,
            preexec_fn=without,
        )
        return done.stdout, done.returncode

    return run


def _without_override() -> None:
    """Give up root's right to write anywhere, so that a folder without permission is one for root,
    too.
    """
    import ctypes

    drop_from_bounding_set, dac_override = (
        24,
        1,
    )  # numbers of <linux/prctl.h> and <linux/capability.h>
    ctypes.CDLL(None).prctl(drop_from_bounding_set, dac_override, 0, 0, 0)


def installed(folder: Path) -> Path:
    """The programs of a new environment that holds this tree's privmax with the extras that the
    pages name.
    """
    named = {
        extra
        for name in PAGES
        if (ROOT / name).exists()
        for extra in _extras((ROOT / name).read_text("utf-8"))
    }
    extras = ",".join(sorted(named | NEEDED))
    print(f"installing privmax[{extras}] in a new environment", flush=True)
    venv.create(folder, with_pip=True)
    programs = folder / "bin"
    pip = [str(programs / "python"), "-m", "pip", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "install", f"{ROOT}[{extras}]", *BESIDE], check=True, timeout=LIMIT)
    return programs


def _extras(text: str) -> Iterator[str]:
    for listed in re.findall(r"pip install \S*\[([\w,]+)\]", text):
        yield from listed.split(",")


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--keep", type=Path, metavar="DIR", help="work in this folder, and leave it"
    )
    parser.add_argument("--dev", action="store_true", help="run ./dev demo, too")
    parser.add_argument(
        "--here",
        action="store_true",
        help="make no environment and follow no page: the mistakes alone",
    )
    parser.add_argument("--write", action="store_true", help="write lab/mistakes.md; as --here")
    options = parser.parse_args(arguments)
    if options.keep is not None:
        options.keep.mkdir(parents=True)
        return visit(options.keep.resolve(), options)
    with tempfile.TemporaryDirectory(prefix="quickstart-") as folder:
        return visit(Path(folder), options)


def visit(folder: Path, options: argparse.Namespace) -> int:
    found = []
    if options.here or options.write:
        run = shell(Path(sys.executable).parent)
    else:
        run = shell(installed(folder / "environment"))
        tree = None
        if options.dev:
            tree = folder / "tree"
            shutil.copytree(
                ROOT,
                tree,
                ignore=shutil.ignore_patterns(".git", ".venv*", "__pycache__", ".*_cache", "site"),
            )
        for number, name in enumerate(PAGES):
            found += follow(name, folder / f"page{number}", run, tree)
    told: dict[str, list[tuple[Mistake, list[tuple[str, str, int]]]]] = {}
    for part, mistakes in PARTS.items():
        told[part] = []
        for mistake in mistakes:
            answered = answers(mistake, Path(tempfile.mkdtemp(dir=folder)), run)
            wrong = faults(mistake, answered)
            print(f"{mistake.title}: {'FAILED' if wrong else 'ok'}", flush=True)
            found += wrong
            told[part].append((mistake, answered))
    if options.write:
        MISTAKES_PAGE.write_text(page(told), encoding="utf-8")
    elif not MISTAKES_PAGE.exists() or MISTAKES_PAGE.read_text(encoding="utf-8") != page(told):
        found.append(
            "lab/mistakes.md shows other answers: run "
            "./dev python tools/check_quickstart.py --write"
        )
    print("\n".join(["", *found]) if found else "everything is as the pages say")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
