"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypedDict

import click

from privmax.cli.environment import LEDGER, LEDGER_NAME
from privmax.errors import ParameterError
from privmax.mechanisms.registry import MECHANISMS, build, names_requiring
from privmax.privacy import ADD_REMOVE, DELTA_ADVICE, REPLACE
from privmax.sources.users import MISSING_USERS

if TYPE_CHECKING:
    from privmax.groups import Groups

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
    help=f"Probability that the guarantee fails: {DELTA_ADVICE}. 0 needs --universe.",
)
growth_option = click.option(
    "--growth", type=int, help="The most candidates that one individual can affect."
)
_RANKED = " or ".join(names_requiring("rank"))
rank_option = click.option(
    "--rank", type=int, help=f"For {_RANKED}: how many top candidates compete."
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
"""The options of laws: the cost, and the universe."""

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
            [name for name, entry in MECHANISMS.items() if "k" not in entry.requires]
        ),  # others are for lists
        multiple=True,
        help="Show only this one and the default choice; can be repeated.",
    ),
)
"""The options that choose the mechanisms whose laws are computed."""

json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
plot_option = click.option("--plot", metavar="FILE", help="Also draw a figure (.png or .svg).")
ranked_option = click.option(
    "--ranked",
    is_flag=True,
    help="With --k: also release the order, best first, and how far apart they are.",
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


missing_users_option = click.option(
    "--missing-users",
    type=click.Choice(MISSING_USERS),
    help="With --user: what to do with rows that have an item but no user.  [default: refuse]",
)
delimiter_option = click.option(
    "--delimiter",
    metavar="CHARACTER",
    help="Character between values in a CSV file; \\t is a tab. Default: the first line decides.",
)
input_options = _together(
    click.option(
        "--check",
        is_flag=True,
        help="Only check that FILE can be read and that columns and types fit; charges nothing.",
    ),
    click.option(
        "--encoding",
        metavar="NAME",
        help="Encoding of a CSV or JSON Lines file, such as cp1252.  [default: utf-8]",
    ),
    click.option(
        "--header-is-public",
        is_flag=True,
        help="Let errors name the columns of a CSV file, or with --check the keys of JSON Lines.",
    ),
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
        help="Folder for data that does not fit into memory; DuckDB makes a private folder in it "
        "(PRIVMAX_TEMPORARY).",
    ),
    click.option(
        "--pad-time",
        metavar="SECONDS",
        help="Answer after this many seconds, or 2, 4, 8, … times that, to hide how long the "
        "work took.",
    ),
)
"""The options of the data, and of how it is read."""


class ResourceOptions(TypedDict):
    """The options for DuckDB's resources, and for the time that the answer is to take."""

    memory: str | None
    temporary: str | None
    pad_time: str | None


class LedgerOptions(TypedDict):
    """The options of a ledger, as given."""

    unit: str | None
    ledger: str | None
    ledger_name: str | None
    request: str | None
    account: str | None
    dataset: str | None


def split_options(
    options: Mapping[str, Any],
) -> tuple[LedgerOptions, ResourceOptions, dict[str, Any]]:
    """Return the options of a ledger, those of resources, and all others."""
    charging, limits = (
        {name: options[name] for name in kind.__annotations__}
        for kind in (LedgerOptions, ResourceOptions)
    )
    others = {name: options[name] for name in options if name not in charging | limits}
    return LedgerOptions(**charging), ResourceOptions(**limits), others  # type: ignore[typeddict-item]


groups_options = _together(
    click.option(
        "--by",
        help="Column of groups: release the best of each group at the cost of one. Each individual "
        "counts in the group that most of its own rows name.",
    ),
    click.option(
        "--groups",
        help="With --by: a file with all groups (CSV, one per line, no header). Without it a part "
        "of the cost finds the groups that enough individuals have.",
    ),
    click.option(
        "--groups-per-user",
        type=int,
        help="With --by: in how many groups an individual counts; the cost is divided by it.  "
        "[default: 1]",
    ),
    click.option(
        "--groups-share",
        help="With --by and without --groups: the part of the cost that finds groups.  "
        "[default: 1/4]",
    ),
)
"""The options of groups, and of the groups in which an individual counts."""


def price_terms(
    mechanism: str,
    rank: int | None = None,
    ranked: bool = False,
    groups: Groups | None = None,
    **cost: Any,
) -> dict[str, Any]:
    """Return what `BestItems` takes of --mechanism and of the cost.

    That is the cost itself, or a mechanism made with it; with groups, with the part of a group.
    """
    if mechanism != "auto":
        given = build(mechanism, **cost, rank=rank, ranked=ranked or None)
        if groups is not None:
            given = build(mechanism, **groups.divide(cost), rank=rank, ranked=ranked or None)
        return {"given": given}
    if rank is not None:
        raise ParameterError(
            "rank", rank, f"only {_RANKED} takes it", f"Add --mechanism {_RANKED}."
        )
    return cost
