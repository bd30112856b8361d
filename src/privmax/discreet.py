"""Commands whose errors do not show the URL of a database, in which a password may stand."""

from __future__ import annotations

import re

import click


class Discreet(click.Command):
    """A command that may be given a URL. What click itself says of its arguments quotes none."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            raise click.UsageError(without_urls(error.format_message()), ctx=error.ctx) from None


def without_urls(message: str) -> str:
    return re.sub(r"://\S.*", "://…", message, flags=re.DOTALL)


def without_passwords(message: str) -> str:
    """The message with what stands before the host of a URL, and behind its path, left out."""
    return re.sub(r"(://[^\s?]*)\?\S*", r"\1", re.sub(r"://\S*@", "://…@", message))
