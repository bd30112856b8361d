"""`privmax report`."""

from __future__ import annotations

from typing import Any

import click

from privmax.cli.environment import LEDGER, LEDGER_NAME, check_ledger
from privmax.cli.group import Command, Refused, refusal
from privmax.cli.messages import describe_error, describe_ledger_error
from privmax.display import escape_text
from privmax.errors import LedgerError, PrivmaxError

YAML, MARKDOWN = (".yaml", ".yml"), (".md", ".markdown")


@click.command("report", cls=Command)
@click.option(
    "--ledger",
    metavar="FILE",
    envvar=LEDGER,
    show_envvar=True,
    help="Ledger to report on: a file or a PostgreSQL URL.",
)
@click.option(
    "--ledger-name",
    metavar="NAME",
    envvar=LEDGER_NAME,
    show_envvar=True,
    help="Name of the ledger in --ledger.  [default: default]",
)
@click.option("--request", metavar="ID", help="Report on this release only.  [default: all]")
@click.option(
    "--registry",
    metavar="FILE",
    help="Write an entry for the registry of deployments (.yaml).",
)
@click.option(
    "--tier",
    type=click.IntRange(1, 3),
    default=3,
    show_default=True,
    help="Level of detail of the registry entry.",
)
@click.option("--checklist", metavar="FILE", help="Write a checklist for a reviewer (.md).")
def command(
    ledger: str | None,
    ledger_name: str | None,
    request: str | None,
    registry: str | None,
    tier: int,
    checklist: str | None,
) -> None:
    """Describe the releases of a ledger for publishers and reviewers. Reads no data.

    The entry has the fields of OpenDP's registry of deployments, the checklist the terms of NIST SP
    800-226. Both are filled in from the ledger, and list what a person must add. Without
    --registry and --checklist the entry is printed.

    \b
    privmax report --ledger budget.db --registry entry.yaml --checklist checklist.md
    """
    if ledger is None:
        raise Refused("There is no ledger to report on. Add --ledger FILE.")
    check_ledger(ledger, ledger_name)
    try:
        _write(ledger, ledger_name or "default", request, registry, tier, checklist)
    except LedgerError as error:
        raise refusal(error, describe_ledger_error(error, ledger_name or "default")) from None
    except PrivmaxError as error:
        raise refusal(error, describe_error(error)) from None


def _write(
    ledger: str, name: str, request: str | None, entry: str | None, tier: int, listed: str | None
) -> None:
    from privmax import writing
    from privmax.cli.run import refuse_folder
    from privmax.ledger import Ledger
    from privmax.report import checklist, registry
    from privmax.report.deployment import Deployment

    refuse_folder(ledger)
    outputs: dict[str, tuple[Any, tuple[str, ...]]] = {
        "registry": (entry, YAML),
        "checklist": (listed, MARKDOWN),
    }
    writing.check_apart({key: path for key, (path, _) in outputs.items()}, {"--ledger": ledger})
    for option, (path, endings) in outputs.items():
        if path is not None:
            writing.check_file(path, option, endings)
    with Ledger(ledger, name) as opened:
        deployment = Deployment.of(opened, request)
    if deployment.unread:
        message = f"{deployment.unread} events cannot be read and are not counted."
        click.echo(f"{message} Run privmax budget verify.", err=True)
    fields = registry.fields(deployment, tier)
    if entry is None and listed is None:
        click.echo(registry.to_yaml(fields), nl=False)
    if entry is not None:
        writing.write(registry.to_yaml(fields), entry, "registry", YAML)
        missing = sum(bool(one.add) for one in fields)
        click.echo(
            f"{'registry':11}{escape_text(entry)}: "
            f"{missing} of {len(fields)} fields are for a person"
        )
    if listed is not None:
        writing.write(checklist.to_markdown(deployment), listed, "checklist", MARKDOWN)
        items = checklist.items(deployment)
        left = sum(one.state != "known" for one in items)
        click.echo(
            f"{'checklist':11}{escape_text(listed)}: {left} of {len(items)} items are for a person"
        )
