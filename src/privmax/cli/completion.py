"""Shell completion of options, included data sets and files.

It is click's own, and completes names of files wherever nothing else fits.
"""

from __future__ import annotations

from typing import Any

import click
from click.shell_completion import (
    BashComplete,
    CompletionItem,
    FishComplete,
    ShellComplete,
    ZshComplete,
    add_completion_class,
)

from privmax import samples
from privmax.cli.passwords import SAMPLE


def sources(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem[Any]]:
    """Return what FILE may be, the file first.

    Bash forgets what is before a file, and then shows data sets alone.
    """
    begun = bool(incomplete) and (SAMPLE.startswith(incomplete) or incomplete.startswith(SAMPLE))
    names = [CompletionItem(f"{SAMPLE}{name}", help=about) for name, about in samples.NAMES.items()]
    files: list[CompletionItem[Any]] = [CompletionItem(incomplete, type="file")]
    return [*files, *(item for item in names if begun and item.value.startswith(incomplete))]


class _OrFiles(ShellComplete):
    """Completion that offers files where there is nothing to choose from, as after --ledger."""

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem[Any]]:
        items = super().get_completions(args, incomplete)
        return (
            items
            if items or incomplete.startswith("-")
            else [CompletionItem(incomplete, type="file")]
        )


class _Bash(_OrFiles, BashComplete):
    """Bash takes sample:counts for three words, and puts what it gets in the place of the last."""

    def get_completion_args(self) -> tuple[list[str], str]:
        words, last = super().get_completion_args()
        if last == ":":
            words, last = [*words, ":"], ""
        if words[-2:] == [SAMPLE[:-1], ":"]:
            return words[:-2], f"{SAMPLE}{last}"
        return words, last

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem[Any]]:
        items = super().get_completions(args, incomplete)
        if incomplete.startswith(SAMPLE):
            return [
                CompletionItem(item.value.removeprefix(SAMPLE))
                for item in items
                if item.type == "plain"
            ]
        return items


class _Zsh(_OrFiles, ZshComplete):
    pass


class _Fish(_OrFiles, FishComplete):
    pass


def offer() -> None:
    """Have click use these."""
    for shell in (_Bash, _Zsh, _Fish):
        add_completion_class(shell)
