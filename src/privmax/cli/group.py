"""The classes of all commands, and the group of them.

Their errors do not show the URL of a database, in which a password may stand; an option that takes
one value is refused if it is given twice; and Ctrl-C ends them as shells expect.
"""

from __future__ import annotations

import errno
import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from shlex import quote
from typing import TYPE_CHECKING, Any

import click

from privmax import __version__
from privmax.cli.passwords import without_urls
from privmax.display import spell_out
from privmax.errors import PrivmaxError

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

COMMANDS = {
    "demo": "Show the whole workflow on a small invented data set.",
    "select": "Release the best item, or the best k, of FILE.",
    "itemsets": "Release the most frequent itemset, or the k most frequent, of FILE.",
    "learn": "Release the rule that predicts a column of FILE best.",
    "plan": "Show how clear a winner must be for each mechanism, and the default choice.",
    "compare": "Show what each mechanism would release on scores like yours, and how likely.",
    "audit": "Search for two neighboring data sets that break the guarantee of MECHANISM.",
    "budget": "Create, show, raise and check a privacy budget.",
    "report": "Describe the releases of a ledger for those who publish and review them.",
    "explore": "Plan, try, ask and hand over in a browser, on this machine.",
}
"""What `privmax --help` lists. Each is `command` in the module of its name."""

REQUEST = "privmax.request"
"""In the context of a command: the id of what it has charged and not shown yet."""

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO}
"""Why the output may be lost. That nobody reads it any more is for click to handle."""

OUT_OF_MEMORY = (
    "This takes more memory than there is. Give less data at a time, or a smaller universe, k or "
    "class of rules; files that end in .parquet, and tables of a database, are counted outside of "
    "this process."
)
"""What is said where the machine, or a limit that somebody set, has no more memory."""

INTERRUPTED = 130
"""Exit code after Ctrl-C, as shells have it."""


class Refused(click.ClickException):
    """What was typed can be read and cannot be done. The answer is one line: how the command is
    called is no help.
    """

    exit_code = 2

    def __init__(self, message: str) -> None:
        super().__init__(spell_out(message, keep="\n"))


class RefusedNow(Refused):
    """The same, and it may be tried again as it stands: a server was not there, or busy."""

    exit_code = 4


def refusal(error: PrivmaxError, words: str) -> Refused:
    """What ends a command after an error of the library, told in these words."""
    return (RefusedNow if error.retry else Refused)(words)


class Command(click.Command):
    """A command that may be given a URL. What click itself says of its arguments quotes none."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        with _without_urls():
            refuse_repetition(self, ctx, args)
            return super().parse_args(ctx, args)


class Group(Command, click.Group):
    """A group of such commands: who forgets the command, and begins with a URL, does not see it
    quoted.
    """

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and not re.fullmatch(
            r"[\w-]+", args[0]
        ):  # no command has such a name; it may be a URL, in any form
            raise click.UsageError(
                f"No such command. The commands are {', '.join(self.list_commands(ctx))}.",
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
                else f"The commands are {', '.join(self.list_commands(ctx))}."
            )
            raise click.UsageError(f"No such command {args[0]!r}. {hint}", ctx)
        with _without_urls():
            return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            click.echo("Aborted!", err=True)
            raise click.exceptions.Exit(INTERRUPTED) from None
        except MemoryError:
            raise Refused(OUT_OF_MEMORY) from None
        except OSError as error:
            if error.errno not in _FULL:
                raise
            told = f"The output could not be written: {error.strerror}."
            if request := ctx.meta.get(REQUEST):
                told += (
                    f" The answer is charged and recorded: --request {quote(request)} returns "
                    "it again at no cost."
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
def _without_urls() -> Iterator[None]:
    try:
        yield
    except click.UsageError as error:
        told = spell_out(without_urls(error.format_message()), keep="\n")
        raise click.UsageError(told, ctx=error.ctx) from None


class LazyGroup(Group):
    """A group that lists its commands without loading them.

    lazy    what to say of each command, by its name, which is that of a module in `commands`
    """

    def __init__(self, *args: Any, lazy: Mapping[str, str], **options: Any) -> None:
        super().__init__(*args, **options)
        self.lazy = lazy

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.lazy)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.lazy:
            return None
        command: click.Command = import_module(f"privmax.cli.commands.{cmd_name}").command
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem[Any]]:
        from click.shell_completion import CompletionItem

        found = [
            CompletionItem(name, help=about)
            for name, about in self.lazy.items()
            if name.startswith(incomplete)
        ]
        return [*found, *click.Command.shell_complete(self, ctx, incomplete)]

    def main(self, *args: Any, **options: Any) -> Any:
        if any(name.endswith("_COMPLETE") for name in os.environ):
            from privmax.cli.completion import offer

            offer()
        try:
            return super().main(*args, **options)
        except OSError as error:  # of --help and --version, which answer before a command runs
            if error.errno not in _FULL:
                raise
            click.echo(f"Error: The output could not be written: {error.strerror}.", err=True)
            sys.exit(Refused.exit_code)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(self.lazy.items()))


@click.group(cls=LazyGroup, lazy=COMMANDS, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="privmax")
def main() -> None:
    """Pick the best item of a huge or unknown universe under differential privacy.

    \b
    Exit status
    0    released, or honestly nothing
    2    bad input, which the error names
    3    the budget does not allow it
    4    may be retried: no server, a timeout, or a lock that somebody holds
    130  Ctrl-C
    """
