"""A group whose commands are loaded when they are asked for."""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

from privmax.cli.discreet import DiscreetGroup

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


class LazyGroup(DiscreetGroup):
    """A group that lists its commands without loading them.

    lazy    what to say of each command, by its name, which is that of a module beside this one
    """

    def __init__(self, *args: Any, lazy: Mapping[str, str], **options: Any) -> None:
        super().__init__(*args, **options)
        self.lazy = lazy

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.lazy)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.lazy:
            return None
        command: click.Command = import_module(f"privmax.cli.{cmd_name}").command
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
        return super().main(*args, **options)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(self.lazy.items()))
