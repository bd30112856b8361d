"""`privmax plan`."""

from __future__ import annotations

import json
from typing import Any

import click

from privmax.cli.group import Command, Refused
from privmax.cli.inputs import read_universe
from privmax.cli.options import json_option, laws_options, mechanisms_options, plot_option
from privmax.cli.output import busy, check_plot, draw_plot
from privmax.errors import PrivmaxError


@click.command("plan", cls=Command)
@laws_options
@click.option(
    "--near",
    type=int,
    default=1,
    show_default=True,
    help="How many candidates are tied at the top.",
)
@click.option(
    "--success",
    default="0.95",
    show_default=True,
    help="Chance with which one of them is to be released.",
)
@mechanisms_options
@plot_option
@json_option
def command(
    universe: str, mechanisms: tuple[str, ...], plot: str | None, as_json: bool, **options: Any
) -> None:
    """Tell how clear a winner must be for each mechanism, and which one would be chosen. Looks at
    no data.

    At --epsilon 0.1 the two large-margin mechanisms take a minute; name others with --mechanism to
    leave them out.

    Example: privmax plan --epsilon 1 --delta 1e-6 --plot plan.svg
    """
    from privmax.planning.plans import plan

    try:
        check_plot(plot)
        with busy("Computing exact laws"):
            everything = read_universe(universe, 1)
            found = plan(universe=everything, mechanisms=mechanisms or None, **options)
        if plot is not None:
            from privmax.plots import planning

            draw_plot(planning(found), plot)
    except PrivmaxError as error:
        raise Refused(str(error)) from None
    if not as_json:
        click.echo(found)
        return
    rows = [
        {
            "mechanism": row.name,
            "lead": row.lead,
            "error": row.error,
            "silent": row.silent,
            "needs": row.needs,
            "chosen": row.chosen,
        }
        for row in found.rows
    ]
    click.echo(
        json.dumps({"rows": rows, "limit": found.limit, "why": found.why}, ensure_ascii=False)
    )
