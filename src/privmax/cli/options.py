"""An option that `plan` and `compare` share."""

from __future__ import annotations

import click

from privmax.mechanisms.registry import MECHANISMS

mechanisms_option = click.option(
    "--mechanism",
    type=click.Choice(
        [name for name in MECHANISMS if name != "joint-exponential"]
    ),  # it is for lists
    multiple=True,
    help="Only this one, beside the one that would be chosen; can be repeated.",
)
