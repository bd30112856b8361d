"""`privmax help`."""

from __future__ import annotations

import sys
from difflib import get_close_matches

import click
from click.shell_completion import CompletionItem

from privmax.cli.group import COMMANDS, Command, Refused
from privmax.cli.pages import find_page, read_page, title_of, topics


def _complete(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    return [
        CompletionItem(topic, help=title_of(path))
        for topic, path in topics().items()
        if topic.startswith(incomplete)
    ]


@click.command("help", cls=Command)
@click.argument("topic", required=False, shell_complete=_complete)
@click.pass_context
def command(context: click.Context, topic: str | None) -> None:
    """Print a page of the documentation, or list all of them.

    TOPIC is the name of a page, such as inputs, schema or proofs/exponential, or a command. No
    network is used: the pages are part of privmax.

    \b
    privmax help
    privmax help inputs
    privmax help proofs/exponential
    """
    if topic is None:
        _echo(_list())
        return
    try:
        page = find_page(topic)
    except KeyError:
        if topic in COMMANDS and context.parent is not None:
            _echo(_describe_command(context.parent, topic))
            return
        close = get_close_matches(topic.lower(), [*topics(), *COMMANDS], n=1)
        hint = f"Did you mean {close[0]}? " if close else ""
        raise Refused(
            f"TOPIC {topic}: there is no such page. {hint}privmax help lists all topics."
        ) from None
    _echo(read_page(page).rstrip("\n"))


def _describe_command(parent: click.Context, name: str) -> str:
    group = parent.command
    assert isinstance(group, click.Group)
    command = group.get_command(parent, name)
    assert command is not None
    return command.get_help(click.Context(command, parent=parent, info_name=name))


def _list() -> str:
    width = max(map(len, topics())) + 2
    lines = [f"  {topic:{width}}{title_of(path)}" for topic, path in topics().items()]
    return "\n".join(["Topics of privmax help TOPIC:", "", *lines])


def _echo(text: str) -> None:
    """Print text, page by page on a terminal."""
    if sys.stdout.isatty():
        click.echo_via_pager(text + "\n")
    else:
        click.echo(text)
