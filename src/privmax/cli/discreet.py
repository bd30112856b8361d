"""The classes of all commands. Their errors do not show the URL of a database, in which a password
may stand; an option that takes one value is refused if it is given twice; and Ctrl-C ends them as
shells expect.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator
from contextlib import contextmanager
from shlex import quote
from typing import Any

import click

REQUEST = "privmax.request"
"""In the context of a command: the id of what it has paid for and not shown yet."""

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO}
"""Why the output may be lost. That nobody reads it any more is for click to handle."""

INTERRUPTED = 130
"""Exit code after Ctrl-C, as shells have it."""


class Refused(click.ClickException):
    """What was typed can be read and cannot be done. The answer is one line: how the command is
    called is no help.
    """

    exit_code = 2


class Discreet(click.Command):
    """A command that may be given a URL. What click itself says of its arguments quotes none."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        with _discreetly():
            refuse_repetition(self, ctx, args)
            return super().parse_args(ctx, args)


class DiscreetGroup(click.Group):
    """A group of such commands: who forgets the command, and begins with a URL, does not see it
    quoted.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        with _discreetly():
            refuse_repetition(self, ctx, args)
            return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and not re.fullmatch(
            r"[\w-]+", args[0]
        ):  # no command has such a name; it may be a URL, in any form
            raise click.UsageError(
                f"No such command. One of these comes first: {', '.join(self.list_commands(ctx))}.",
                ctx,
            )
        if (
            args
            and not ctx.resilient_parsing
            and args[0] not in self.list_commands(ctx)
            and args[0][0] != "-"
        ):
            from difflib import get_close_matches

            close = get_close_matches(args[0], self.list_commands(ctx), n=1)
            hint = (
                f"Did you mean {close[0]}?"
                if close
                else f"There are {', '.join(self.list_commands(ctx))}."
            )
            raise click.UsageError(f"No such command {args[0]!r}. {hint}", ctx)
        with _discreetly():
            return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            click.echo("Aborted!", err=True)
            raise click.exceptions.Exit(INTERRUPTED) from None
        except OSError as error:
            if error.errno not in _FULL:
                raise
            told = f"The output could not be written: {error.strerror}."
            if request := ctx.meta.get(REQUEST):
                told += (
                    f" The answer is paid for and recorded: --request {quote(request)} gives "
                    "it again, at no cost."
                )
            raise Refused(told) from None


def refuse_repetition(command: click.Command, ctx: click.Context, args: list[str]) -> None:
    """Refuse an option that is given twice, unless it is a list.

    click would take the last one: --epsilon 0.1 --epsilon 9 would spend 9. --help and --version
    answer in any case.
    """
    if ctx.resilient_parsing:  # completion, of a line that is not finished
        return
    _, _, order = command.make_parser(ctx).parse_args(args=list(args))
    options = [given for given in order if isinstance(given, click.Option)]
    if any(option.is_eager for option in options):
        return
    for place, option in enumerate(options):
        if option in options[:place] and not (option.multiple or option.count):
            name = " / ".join(option.opts)
            raise click.UsageError(f"Option {name} is given more than once. Give it once.", ctx)


@contextmanager
def _discreetly() -> Iterator[None]:
    try:
        yield
    except click.UsageError as error:
        raise click.UsageError(without_urls(error.format_message()), ctx=error.ctx) from None


def without_urls(message: str) -> str:
    """The message with URLs left out, and what is too long to be read cut short."""
    return re.sub(
        r"(\S{100})\S{100,}", r"\1…", re.sub(r"://\S.*", "://…", message, flags=re.DOTALL)
    )


def without_passwords(message: str) -> str:
    """The message with what stands before the host of a URL, and behind its path, left out."""
    return re.sub(r"(://[^\s?]*)\?\S*", r"\1", re.sub(r"://\S*@", "://…@", message))
