"""Writes what is generated: the references of commands and mechanisms, what follows from the
registry of mechanisms in other files, and the table of keys in the README.

./dev python tools/pages.py            writes them
./dev python tools/pages.py --check    fails if a page is not what it would write
"""

from __future__ import annotations

import csv
import io
import re
import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import chdir
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import click
import json_page
import mechanisms
import paper_map
from click.testing import CliRunner
from matplotlib.figure import Figure
from rich.console import Console

from privmax import demo, plots, samples
from privmax.cli import main as command_line
from privmax.cli.exits import MEANINGS
from privmax.keyset.release import KeysEnquiry
from privmax.planning.comparison import compare_over
from privmax.planning.plans import STEPS, plan_over
from privmax.testing import SeededCoins

ROOT = Path(__file__).resolve().parent.parent
KEYS = re.compile(r"(?<=```text keys\n)(\$ privmax .*?[^\\]\n)(.*?)(?=```)", re.DOTALL)


def command_reference() -> str:
    """docs/command-line.md: the exit codes, and every command's --help."""
    rows = [f"| {code:d} | {meaning} | {then} |" for code, (meaning, then) in MEANINGS.items()]
    parts = [
        "# Command line\n\nGenerated from `--help` by `tools/pages.py`.\n",
        "## Exit codes\n\n| exit code | meaning | what to do |\n|---|---|---|\n"
        + "\n".join(rows)
        + "\n\nWith `--request` a retry never charges twice.\n",
    ]
    for name, command in commands("privmax", command_line):
        context = click.Context(command, info_name=name, terminal_width=100, max_content_width=100)
        parts.append(f"## {name}\n\n```text\n{command.get_help(context)}\n```\n")
    return "\n".join(parts)


def commands(name: str, command: click.Command) -> Iterator[tuple[str, click.Command]]:
    """A command and all below it, by what is typed."""
    yield name, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for word in command.list_commands(context):
            below = command.get_command(context, word)
            assert below is not None
            yield from commands(f"{name} {word}", below)


@cache
def pictures_of_the_demo() -> dict[str, str]:
    """Return the pictures that the demo writes, by name. Its coins always fall the same here."""
    with TemporaryDirectory() as folder, chdir(folder):
        console = Console(file=io.StringIO(), width=80, highlight=False)
        demo.tell(console, command="./dev privmax", coins=SeededCoins("README"))
        return {
            path.name: path.read_text(encoding="utf-8") for path in Path(demo.FOLDER).glob("*.svg")
        }


def picture(name: str) -> Callable[[], str]:
    return lambda: pictures_of_the_demo()[name]


def readme() -> str:
    """README.md with the table of keys as it is printed now."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    return KEYS.sub(lambda found: found[1] + table_of_keys(found[1]), text, count=1)


def table_of_keys(typed: str) -> str:
    """What a command prints that releases keys. Its coins always fall the same here."""
    words = shlex.split(typed.replace("\\\n", ""))[2:]
    with patch.dict(KeysEnquiry.answer.__kwdefaults__, coins=SeededCoins("README")):
        return CliRunner().invoke(command_line, words, catch_exceptions=False).output


def leads_of_lists() -> str:
    """The picture of leads over k."""
    return whole(plots.leads(plan_over(STEPS, epsilon=1, delta="1e-6"), marked=10))


def misses_of_lists() -> str:
    """The picture of what is missed over k, on a sample."""
    with samples.path("counts").open(encoding="utf-8") as file:
        counts = [int(line["people"]) for line in csv.DictReader(file)]
    numbers = (1, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 50)
    return whole(plots.misses(compare_over(counts, numbers, epsilon=1, delta="1e-6"), marked=10))


def whole(figure: Figure) -> str:
    """A picture as a file holds it."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "picture.svg"
        plots.write(figure, path)
        return path.read_text(encoding="utf-8")


def main(arguments: list[str]) -> int:
    stale = []
    generated = {
        "docs/command-line.md": command_reference,
        "docs/json.md": json_page.page,
        "docs/pictures/demo-leads.svg": picture("leads.svg"),
        "docs/pictures/demo-universe.svg": picture("universe.svg"),
        "docs/pictures/demo-universe.txt": demo.picture_as_text,
        "docs/pictures/lists-leads.svg": leads_of_lists,
        "docs/pictures/lists-misses.svg": misses_of_lists,
        "docs/notebooks/paper.ipynb": paper_map.notebook,
        "docs/paper-map.md": paper_map.page,
        "docs/reference/mechanisms.md": mechanisms.page,
    }
    generated |= {path: partial(mechanisms.fill, path) for path in mechanisms.PARTS}
    for name, written in {**generated, "README.md": readme}.items():
        path, text = ROOT / name, written()
        if arguments == ["--check"]:
            if not path.is_file() or path.read_text(encoding="utf-8") != text:
                stale.append(path.relative_to(ROOT))
        else:
            path.write_text(text, encoding="utf-8")
    for page in stale:
        print(f"{page} is stale: run ./dev python tools/pages.py")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
