"""`privmax plan`."""

from __future__ import annotations

import json

import click

from privmax.cli.discreet import Discreet, Refused
from privmax.cli.options import mechanisms_option
from privmax.cli.picture import draw, plot_option, ready
from privmax.cli.progress import busy
from privmax.cli.reading import whole_number
from privmax.errors import PrivmaxError
from privmax.privacy import ADD_REMOVE, REPLACE


@click.command("plan", cls=Discreet)
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
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
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
    from privmax.plan import plan

    try:
        ready(plot)
        size = whole_number("universe", universe)
        with busy("Computing exact laws"):
            found = plan(
                epsilon=epsilon,
                delta=delta,
                universe=universe if size is None else size,
                near=near,
                success=success,
                neighbors=neighbors,
                growth=growth,
                mechanisms=mechanism or None,
            )
        if plot is not None:
            from privmax.plots import planning

            draw(planning(found), plot)
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
