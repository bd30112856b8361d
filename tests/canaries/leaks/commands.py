"""What is run of the command line: every command and subcommand on marked data."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from leaks import faults
from leaks.child import Evidence
from leaks.field import BEST, Field

COST = "--epsilon 1 --delta 1e-6"
PAID = "--ledger budget.db --request r1"


@dataclass(frozen=True)
class Line:
    """A command line.

    command   the command, with its subcommand
    words     its arguments; {name} is a file of the field, and of its bad twin
    charges   whether it takes a ledger to charge
    has_data  whether it reads data that is private
    """

    command: str
    words: str
    charges: bool = True
    has_data: bool = True


LINES: dict[str, Line] = {
    "select from scores": Line(
        "select", f"{{scores_csv}} --k 2 --counts 0.00001 {COST} --report page.html"
    ),
    "select from rows": Line(
        "select", f"{{log_parquet}} --item query --user person {COST} --output out.parquet"
    ),
    "select with weights": Line(
        "select",
        f"{{log_csv}} --item query --user person --weight weight --bound 2 {COST} --output out.csv",
    ),
    "select from JSON Lines": Line("select", f"{{rows_jsonl}} --score score {COST}"),
    "select by group": Line(
        "select", f"{{log_csv}} --item query --user person --by weight {COST} --output out.csv"
    ),
    "keys": Line(
        "keys",
        f"{{log_parquet}} --item query --user person {COST} --counts 0.001 --other "
        "--output out.csv",
    ),
    "itemsets of a FIMI file": Line(
        "itemsets",
        f"{{baskets_dat}} --size 1-2 --k 2 {COST} --supports 0.001 --rules 0.001 "
        "--output out.json --report page.html",
    ),
    "itemsets of rows": Line(
        "itemsets", f"{{log_parquet}} --basket person --item query --size 1 {COST}"
    ),
    "learn": Line(
        "learn",
        "{examples_csv} --label card --labels 0,1 --features age,visits --low 0 --high 100 "
        "--cells 4 --epsilon 1 --save rule.json --report page.html",
    ),
    "learn a rule": Line(
        "learn",
        "{examples_csv} --label card --labels 0,1 --features age,visits --low 0 --high 100 "
        "--cells 4 --epsilon 1 --hypotheses stumps",
    ),
    "plan": Line("plan", f"{COST} --mechanism nested-margin --plot plan.svg", False, False),
    "compare": Line(
        "compare",
        f"--scores 900,850,12 --mechanism nested-margin {COST} --plot compare.svg",
        False,
        False,
    ),
    "compare, not said to be public": Line(
        "compare", f"{{scores_csv}} --score score --mechanism nested-margin {COST}", False
    ),
    "audit": Line("audit", "permute-and-flip --epsilon 1 --candidates 2 --highest 2", False, False),
    "demo": Line("demo", "--folder story", False, False),
    "help": Line("help", "inputs", False, False),
    "report": Line("report", "--ledger budget.db --registry entry.yaml --checklist list.md", False),
    "budget create": Line("budget create", "new.db --epsilon 3", False),
    "budget show": Line("budget show", "budget.db --plot spent.svg", False),
    "budget history": Line("budget history", "budget.db --json", False),
    "budget list": Line("budget list", "budget.db", False),
    "budget verify": Line("budget verify", "budget.db", False),
    "budget export": Line("budget export", "budget.db", False),
    "budget account": Line("budget account", "budget.db ada --epsilon 1", False),
    "budget grant": Line("budget grant", "budget.db --epsilon 1 --why more", False),
    "budget split": Line("budget split", "budget.db web --epsilon 1 --unit user", False),
}

ELSEWHERE = {
    "explore": "a server, which leaks/explorer.py asks for its pages",
    "budget unblock": "a database, which tests/engines/test_team.py has; it reads no data",
}
"""Commands that are run in another way."""


def all_commands() -> list[str]:
    """Every command and subcommand there is."""
    import click

    from privmax.cli.group import COMMANDS, main

    found = []
    with click.Context(main) as context:
        for name in COMMANDS:
            command = main.get_command(context, name)
            inner = getattr(command, "commands", None)
            found += [f"{name} {one}" for one in inner] if inner else [name]
    return found


def arguments(line: Line, field: Field, job: dict[str, Any]) -> list[str]:
    """A command line as it is typed."""
    is_bad = job["situation"] == faults.BAD_DATA
    typed = []
    for word in [*line.command.split(), *line.words.split()]:
        if word.startswith("{"):
            name = word.strip("{}")
            typed.append(getattr(field, f"bad{name}" if is_bad else name))
        else:
            typed.append(word)
    if line.charges and job.get("paid", faults.PLAIN) is not None:
        typed += PAID.split()
    elif line.charges:
        typed += ["--json"]
    return typed


@dataclass
class Scene:
    words: list[str]
    job: dict[str, Any]


@contextmanager
def prepare(job: dict[str, Any], evidence: Evidence) -> Iterator[Scene]:
    """The ledger of a command, with an answer that was released before, and the situation."""
    line, folder = LINES[job["subject"]], Path(job["folder"])
    is_paid = job.get("paid", faults.PLAIN) is not None
    with faults.ledger(job if line.charges else {"situation": "", "paid": ""}, folder) as ledger:
        if not line.charges:
            from privmax import Privacy
            from privmax.ledger import Charge

            charged = ledger.charge(
                Charge(Privacy(1), unit="user"), {"command": "select"}, request="before"
            )
            charged.record({"items": [BEST], "free": {}})
    with faults.fault(job["situation"], folder, is_paid=is_paid):
        yield Scene(arguments(line, Field(Path(job["field"])), job), job)


def act(scene: Scene) -> int:
    from privmax.cli import main

    try:
        main(scene.words, prog_name="privmax")
    except SystemExit as ended:
        sys.setprofile(None)
        return ended.code if isinstance(ended.code, int) else 0
    return 0
