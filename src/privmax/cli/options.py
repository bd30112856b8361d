"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypedDict

import click

from privmax.cli.environment import LEDGER, LEDGER_NAME
from privmax.errors import ParameterError
from privmax.mechanisms.registry import MECHANISMS, build
from privmax.privacy import ADD_REMOVE, REPLACE

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


def _together(*options: Decorator) -> Decorator:
    """Several options, in their order."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


delta_option = click.option(
    "--delta",
    default="0",
    show_default=True,
    help="Probability that the guarantee fails; 0 needs --universe.",
)
growth_option = click.option(
    "--growth", type=int, help="The most candidates that one individual can affect."
)
laws_options = _together(
    click.option("--epsilon", required=True, help="Privacy cost; decimals are exact."),
    delta_option,
    click.option(
        "--universe",
        default="open",
        show_default=True,
        help="Total number of candidates, or open.",
    ),
)
"""What laws are computed for: the cost, and the universe."""

mechanisms_options = _together(
    click.option(
        "--neighbors",
        type=click.Choice([ADD_REMOVE, REPLACE]),
        default=ADD_REMOVE,
        show_default=True,
    ),
    growth_option,
    click.option(
        "--mechanism",
        "mechanisms",
        type=click.Choice(
            [name for name in MECHANISMS if name != "joint-exponential"]
        ),  # it is for lists
        multiple=True,
        help="Show only this one and the default choice; can be repeated.",
    ),
)
"""Which mechanisms they are laws of."""

json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
plot_option = click.option("--plot", metavar="FILE", help="Also draw a figure (.png or .svg).")
ranked_option = click.option(
    "--ranked",
    is_flag=True,
    help="With --k: also release the order, best first; needs a much clearer lead.",
)
COUNTS_HELP = (
    "Privacy cost (epsilon) of noisy {}, with error bars, on top of --epsilon. If Gaussian noise "
    "is smallest, --delta is charged twice."
)
report_option = click.option(
    "--report",
    metavar="FILE",
    help="Also write a report (.html): question, answer, guarantee and privacy cost.",
)
output_option = click.option(
    "--output",
    metavar="FILE",
    help="Also write the release to a file: a table (.csv, .parquet) or JSON (.json).",
)
ledger_options = _together(
    click.option(
        "--unit",
        metavar="NAME",
        help="What one individual is in the data: user, row or basket.",
    ),
    click.option(
        "--ledger",
        metavar="FILE",
        envvar=LEDGER,
        show_envvar=True,
        help="Charge this ledger: a file or a PostgreSQL URL (see privmax budget create).",
    ),
    click.option(
        "--ledger-name",
        metavar="NAME",
        envvar=LEDGER_NAME,
        show_envvar=True,
        help="Name of the ledger in --ledger.  [default: default]",
    ),
    click.option(
        "--request",
        metavar="ID",
        help="Request id. Repeating it returns the recorded answer at no extra cost.",
    ),
    click.option("--account", metavar="NAME", help="Also charge this account of the ledger."),
    click.option(
        "--dataset", metavar="NAME", help="Name of the data in the history of the ledger."
    ),
)


input_options = _together(
    click.option(
        "--table",
        metavar="NAME",
        help="Table to read, or SCHEMA.TABLE, where FILE is a database.",
    ),
    click.option(
        "--where",
        metavar="CONDITION",
        help="Only rows for which it is true, such as \"country = 'DE' and age >= 18\".",
    ),
    click.option(
        "--memory", metavar="SIZE", help="Memory that DuckDB may use, such as 4GB (PRIVMAX_MEMORY)."
    ),
    click.option(
        "--temporary",
        metavar="FOLDER",
        help="Where DuckDB puts what does not fit into memory, in a private folder "
        "(PRIVMAX_TEMPORARY).",
    ),
    click.option(
        "--pad-time",
        metavar="SECONDS",
        help="Answer after so many seconds, or 2, 4, 8, … times that, whatever the data.",
    ),
)
"""What is read, and with what."""


class Limits(TypedDict):
    """What was given for what DuckDB may use, and for how long the answer is to take."""

    memory: str | None
    temporary: str | None
    pad_time: str | None


class LedgerOptions(TypedDict):
    """What was given for the options of a ledger."""

    unit: str | None
    ledger: str | None
    ledger_name: str | None
    request: str | None
    account: str | None
    dataset: str | None


def split_ledger(options: dict[str, Any]) -> tuple[LedgerOptions, dict[str, Any]]:
    """The options of a ledger, and all others."""
    charging = {name: options[name] for name in LedgerOptions.__annotations__}
    others = {name: value for name, value in options.items() if name not in charging}
    return LedgerOptions(**charging), others  # type: ignore[typeddict-item]


def price_terms(mechanism: str, rank: int | None = None, **price: Any) -> dict[str, Any]:
    """What `Terms` takes of --mechanism and what it is to cost: either that, or a mechanism made
    with it.
    """
    if mechanism != "auto":
        return {"given": build(mechanism, **price, rank=rank)}
    if rank is not None:
        raise ParameterError(
            "rank", rank, "only limited-domain takes it", "Add --mechanism limited-domain."
        )
    return price
