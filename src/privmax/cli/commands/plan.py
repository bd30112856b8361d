"""`privmax plan`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from privmax.cli.group import Command, Refused
from privmax.cli.inputs import read_universe
from privmax.cli.messages import describe_error
from privmax.cli.options import json_option, laws_options, mechanisms_options, plot_option
from privmax.cli.output import busy, check_plot, draw_plot
from privmax.errors import ParameterError, PrivmaxError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from privmax.keyset.plans import KeyPlan
    from privmax.planning.plans import Plan


@click.command("plan", cls=Command)
@laws_options
@click.option("--k", type=int, default=1, show_default=True, help="How many items to release.")
@click.option(
    "--ranked", is_flag=True, help="With --k: also release the order; needs a clearer lead."
)
@click.option(
    "--keys", is_flag=True, help="Plan privmax keys: how many individuals a key must have."
)
@click.option(
    "--per-user",
    type=int,
    help="With --keys: how many keys of one individual count.  [default: 30]",
)
@click.option("--near", type=int, help="How many candidates are tied at the top.  [default: --k]")
@click.option(
    "--success",
    default="0.95",
    show_default=True,
    help="Wanted probability of releasing one of them, or --k of them.",
)
@mechanisms_options
@plot_option
@json_option
def command(
    k: int,
    near: int | None,
    universe: str,
    mechanisms: tuple[str, ...],
    plot: str | None,
    as_json: bool,
    keys: bool,
    per_user: int | None,
    **options: Any,
) -> None:
    """Show how clear a winner must be for each mechanism, and the default choice. Reads no data.

    With --k: how clear the best k must be. The figure then shows the lead for 1 to 1000 items.
    With --keys: how many individuals a key must have for privmax keys to find it. The figure then
    shows that for 1 to 200 keys of one individual.

    At an --epsilon of 0.1 or so the two large-margin mechanisms take a second or two, unless the
    costs are common ones; name others with --mechanism to leave them out.

    \b
    privmax plan --epsilon 1 --delta 1e-6 --plot plan.svg
    privmax plan --k 10 --epsilon 1 --delta 1e-6
    privmax plan --keys --per-user 20 --epsilon 1 --delta 1e-6
    """
    from privmax.planning.plans import plan

    try:
        check_plot(plot)
        if keys:
            _refuse_beside_keys()
            found_keys = _plan_keys(30 if per_user is None else per_user, plot, options)
            click.echo(json.dumps(_describe_keys(found_keys)) if as_json else found_keys)
            return
        if per_user is not None:
            raise ParameterError("per-user", per_user, "it needs --keys", "Add --keys.")
        options |= {
            "universe": read_universe(universe, 1),
            "mechanisms": mechanisms or None,
        }
        with busy("Computing exact probabilities"):
            planned = plan(k=k, near=near, **options)
        if plot is not None:
            with busy("Computing exact probabilities for the figure"):
                figure = _picture(planned, options)
            draw_plot(figure, plot)
    except PrivmaxError as error:
        raise Refused(describe_error(error)) from None
    if not as_json:
        click.echo(planned)
        return
    click.echo(json.dumps(_object(planned), ensure_ascii=False))


def _refuse_beside_keys() -> None:
    """Refuse options that mean nothing for keys."""
    context = click.get_current_context()
    for name in ("k", "ranked", "near", "universe", "neighbors", "growth", "mechanisms"):
        if context.get_parameter_source(name) is not click.core.ParameterSource.DEFAULT:
            raise ParameterError(
                name, context.params[name], "it has no meaning with --keys", "Leave it out."
            )


def _plan_keys(per_user: int, plot: str | None, options: dict[str, Any]) -> KeyPlan:
    """The plan for keys; its picture is drawn on the way."""
    from privmax.keyset.plans import STEPS, plan_keys, plan_keys_over

    given = {name: options[name] for name in ("epsilon", "delta", "success")}
    planned = plan_keys(per_user=per_user, **given)
    if plot is not None:
        from privmax.plots import keys_needed

        with busy("Computing thresholds for the figure"):
            plans = plan_keys_over(sorted({*STEPS, per_user}), **given)
        draw_plot(keys_needed(plans, marked=per_user), plot)
    return planned


def _describe_keys(keys: KeyPlan) -> dict[str, Any]:
    rows = [{"name": row.name, "single": row.single, "several": row.several} for row in keys.rows]
    return {"rows": rows, "per_user": keys.per_user}


def _picture(planned: Plan, options: dict[str, Any]) -> Figure:
    """Of a single winner: the leads as bars; of a list: the leads over its length."""
    from privmax.planning.plans import STEPS, plan_over
    from privmax.plots import leads, planning

    if planned.k == 1:
        return planning(planned)
    most = planned.universe or max(planned.k, *STEPS)
    numbers = sorted({k for k in (*STEPS, planned.k) if k <= most})
    return leads(plan_over(numbers, **options), marked=planned.k)


def _object(planned: Plan) -> dict[str, Any]:
    rows = [
        {
            "mechanism": row.name,
            "lead": row.lead,
            "error": row.error,
            "silent": row.silent,
            "needs": row.needs,
            "chosen": row.chosen,
            **({} if planned.k == 1 or row.mechanism is None else {"releases": row.form}),
        }
        for row in planned.rows
    ]
    extra: dict[str, Any] = {} if planned.k == 1 else {"k": planned.k, "near": planned.near}
    misses = planned.misses
    if misses is not None:
        extra["misses"] = misses
    return {"rows": rows, "limit": planned.limit, "why": planned.why, **extra}
