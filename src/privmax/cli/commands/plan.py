"""`privmax plan`."""

from __future__ import annotations

import json

import click

from privmax.cli.group import Command, Refused
from privmax.cli.inputs import read_universe
from privmax.cli.options import json_option, mechanisms_option, plot_option
from privmax.cli.output import busy, check_plot, draw_plot
from privmax.errors import PrivmaxError
from privmax.privacy import ADD_REMOVE, REPLACE


@click.command("plan", cls=Command)
@click.option("--epsilon", required=True, help="Price; decimals are taken exactly.")
@click.option(
    "--delta",
    default="0",
    show_default=True,
    help="Chance that the guarantee fails; 0 needs --universe.",
)
@click.option(
    "--universe",
    default="open",
    show_default=True,
    help="How many candidates there are in all, or open.",
)
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
@click.option(
    "--neighbors", type=click.Choice([ADD_REMOVE, REPLACE]), default=ADD_REMOVE, show_default=True
)
@click.option(
    "--growth", type=int, help="How many candidates one individual's record touches at most."
)
@mechanisms_option
@plot_option
@json_option
def command(
    epsilon: str,
    delta: str,
    universe: str,
    near: int,
    success: str,
    neighbors: str,
    growth: int | None,
    mechanism: tuple[str, ...],
    plot: str | None,
    as_json: bool,
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
            found = plan(
                epsilon=epsilon,
                delta=delta,
                universe=read_universe(universe, 1),
                near=near,
                success=success,
                neighbors=neighbors,
                growth=growth,
                mechanisms=mechanism or None,
            )
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
