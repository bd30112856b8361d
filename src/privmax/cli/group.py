"""The classes of all commands, and the group of them.

Their errors do not show the URL of a database, in which a password may stand; an option that takes
one value is refused if it is given twice; and Ctrl-C ends them as shells expect.
"""

from __future__ import annotations

import atexit
import errno
import gc
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
from privmax.cli.exits import Exit, describe_exits
from privmax.cli.passwords import without_urls
from privmax.cli.sections import MANY, group_options
from privmax.cli.streams import discard_output, is_writable, repair_streams
from privmax.display import escape_text
from privmax.errors import PrivmaxError

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

COMMANDS = {
    "demo": "Show the whole workflow on a small invented data set.",
    "select": "Release the best item, or the best k, of FILE.",
    "keys": "Release every key of FILE that enough individuals have.",
    "itemsets": "Release the most frequent itemset, or the k most frequent, of FILE.",
    "learn": "Release a model that predicts a column of FILE.",
    "plan": "Show how clear a winner must be for each mechanism, and the default choice.",
    "compare": "Show what each mechanism would release on scores like yours, and how likely.",
    "audit": "Search for two neighboring data sets that break the guarantee of MECHANISM.",
    "budget": "Create, show, raise and check a privacy budget.",
    "report": "Describe the releases of a ledger for publishers and reviewers.",
    "explore": "Plan, ask and document releases in a browser, on this machine.",
    "help": "Print a page of the documentation, or list all of them.",
}
"""The commands of `privmax --help`. Each is `command` in the module of its name."""

REQUEST = "privmax.request"
"""In the context of a command: the id of what it has charged and not shown yet."""

MANY_OBJECTS = 50_000
"""Objects made before Python looks for unused cycles among them: most that a command makes stay."""

_LOST = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EPIPE}
"""Reasons why the output may be lost."""

CLOSED = (
    "Standard output is closed, so no answer could be shown. Nothing was done. Redirect it, for "
    "example to a file or to /dev/null."
)

OUT_OF_MEMORY = (
    "This needs more memory than is available. Give less data at a time, or a smaller universe, "
    "k or class of rules; files that end in .parquet, and tables of a database, are counted "
    "outside of this process."
)
"""The message where the machine, or a limit that someone set, has no more memory."""


class Refused(click.ClickException):
    """A command that can be parsed and cannot be done.

    The answer is one line: how the command is called is no help.
    """

    exit_code = Exit.REFUSED

    def __init__(self, message: str) -> None:
        super().__init__(escape_text(message, keep="\n"))


class RefusedNow(Refused):
    """The same, and it may be tried again as it stands: a server was not there, or busy."""

    exit_code = Exit.RETRY


class NoReader(Refused):
    """Nothing reads the output any more."""

    exit_code = Exit.NO_READER


def lost_output(error: OSError, request: str | None) -> Exception:
    """Return what ends a command whose output is lost.

    Args:
        request: The id of what was charged and not shown; None: nothing was.
    """
    message = f"The output could not be written: {error.strerror}."
    if request:
        message += (
            f" The answer is charged and recorded: --request {quote(request)} returns it again "
            "at no cost."
        )
    if error.errno != errno.EPIPE:
        return Refused(message)
    discard_output()
    # a reader that has seen enough, such as head, is not a mistake
    return NoReader(message) if request else click.exceptions.Exit(Exit.NO_READER)


def refusal(error: PrivmaxError, words: str) -> Refused:
    """Return what ends a command after an error of the library, told in these words."""
    return (RefusedNow if error.retry else Refused)(words)


class Command(click.Command):
    """A command that may be given a URL. What click itself says of its arguments quotes none."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        with _without_urls():
            refuse_repetition(self, ctx, args)
            return super().parse_args(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        every = [one for one in self.get_params(ctx) if isinstance(one, click.Option)]
        options = [(one, shown) for one in every if (shown := one.get_help_record(ctx))]
        if len(options) - 1 <= MANY:  # --help is one of them
            super().format_options(ctx, formatter)
            return
        for title, records in group_options(options).items():
            with formatter.section(f"{title} options"):
                formatter.write_dl(records)


class CommandGroup(Command, click.Group):
    """A group of such commands, which prints its help where none is named.

    A URL that is typed where the command belongs is not quoted.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args and not ctx.resilient_parsing:
            click.echo(ctx.get_help())
            ctx.exit()
        return super().parse_args(ctx, args)

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
            raise click.exceptions.Exit(Exit.INTERRUPTED) from None
        except MemoryError:
            raise Refused(OUT_OF_MEMORY) from None
        except OSError as error:
            if error.errno not in _LOST:
                raise
            raise lost_output(error, ctx.meta.get(REQUEST)) from None


def refuse_repetition(command: click.Command, ctx: click.Context, args: list[str]) -> None:
    """Refuse an option that is given twice, unless it is a list.

    click would take the last one: --epsilon 0.1 --epsilon 9 would spend 9. --help and --version
    answer in any case.
    """
    if ctx.resilient_parsing:  # completion, of a line that is not finished
        return
    _, _, order = command.make_parser(ctx).parse_args(args=list(args))
    options = [parameter for parameter in order if isinstance(parameter, click.Option)]
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
        message = escape_text(without_urls(error.format_message()), keep="\n")
        raise click.UsageError(message, ctx=error.ctx) from None


class LazyGroup(CommandGroup):
    """A group that lists its commands without loading them.

    Args:
        lazy: What to say of each command, by its name, which is that of a module in `commands`.
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

        items = [
            CompletionItem(name, help=about)
            for name, about in self.lazy.items()
            if name.startswith(incomplete)
        ]
        return [*items, *click.Command.shell_complete(self, ctx, incomplete)]

    def main(self, *args: Any, **options: Any) -> Any:
        if any(name.endswith("_COMPLETE") for name in os.environ):
            from privmax.cli.completion import offer

            offer()
        return super().main(*args, **options)

    def make_context(self, *args: Any, **options: Any) -> click.Context:
        try:
            return super().make_context(*args, **options)
        except OSError as error:  # of --help and --version, which answer before a command runs
            if error.errno not in _LOST:
                raise
            raise lost_output(error, None) from None

    def __call__(self, *args: Any, **options: Any) -> Any:
        """Run as the process `privmax`, which ends with one of the documented codes."""
        repair_streams()
        gc.set_threshold(MANY_OBJECTS)
        atexit.register(gc.freeze)  # at the end nothing is open any more
        try:
            if not is_writable():
                click.echo(f"Error: {CLOSED}", err=True)
                sys.exit(Exit.REFUSED)
            return self.main(*args, **options)
        except Exception:
            sys.excepthook(*sys.exc_info())
            sys.exit(Exit.BUG)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(self.lazy.items()))


_HELP = f"""Answer "which" questions about people's data with differential privacy.

\b
Exit status
{describe_exits()}
"""


@click.group(
    cls=LazyGroup,
    lazy=COMMANDS,
    help=_HELP,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, prog_name="privmax")
def main() -> None:
    """The command line."""
