"""`privmax budget create`, `grant`, `account` and `split`: the commands that change a budget."""

from __future__ import annotations

import click

from privmax.cli.commands.budget.places import open_ledger, refusing, typed_place
from privmax.cli.commands.budget.showing import print_standing
from privmax.cli.group import Command
from privmax.cli.options import json_option
from privmax.errors import ParameterError
from privmax.ledger import RULES, Ledger
from privmax.privacy import Privacy


@click.command("create", cls=Command)
@typed_place
@click.option(
    "--epsilon", required=True, help="Total epsilon that may be spent; decimals are exact."
)
@click.option("--delta", default="0", show_default=True, help="Total delta that may be spent.")
@click.option(
    "--rule",
    type=click.Choice(list(RULES)),
    default="basic",
    show_default=True,
    help="Composition rule; cannot be changed later.",
)
@click.option(
    "--strict",
    is_flag=True,
    help="Charge before the data is read, so that bad data gives no answer; cannot be changed "
    "later.",
)
@json_option
def create_command(
    where: str, name: str, epsilon: str, delta: str, rule: str, strict: bool, as_json: bool
) -> None:
    """Create a ledger with a budget. A name that exists is refused.

    A new file has mode 600. In PostgreSQL the first ledger also creates the tables.

    Example: privmax budget create budget.db --epsilon 3 --delta 1e-5
    """
    with refusing(where, name):
        granted = Privacy(epsilon, delta)
        if granted == Privacy(0):
            raise ParameterError(
                "epsilon",
                0,
                "a budget needs an epsilon or a delta above 0",
                "For example --epsilon 1.",
            )
        with Ledger.create(where, name, budget=granted, rule=rule, strict=strict) as ledger:
            print_standing(ledger, as_json)


@click.command("grant", cls=Command)
@typed_place
@click.option(
    "--epsilon", default="0", show_default=True, help="Epsilon to add; decimals are exact."
)
@click.option("--delta", default="0", show_default=True, help="Delta to add.")
@click.option("--why", required=True, help="The reason; the history keeps it with your name.")
@click.option("--account", help="Raise the budget of this account, not of the ledger.")
@json_option
def grant_command(
    where: str, name: str, epsilon: str, delta: str, why: str, account: str | None, as_json: bool
) -> None:
    """Raise the budget of the ledger or of an account. A budget cannot be lowered.

    Prints the same as show.

    Example: privmax budget grant budget.db --epsilon 1 --why "second quarter, decided by the board
    on 3 April"
    """
    with open_ledger(where, name) as ledger:
        more = Privacy(epsilon, delta)
        if more == Privacy(0):
            raise ParameterError(
                "epsilon",
                0,
                "a grant needs an epsilon or a delta above 0",
                "For example --epsilon 1.",
            )
        ledger.grant(more, why=why, account=account)
        print_standing(ledger, as_json)


@click.command("account", cls=Command)
@typed_place
@click.argument("account")
@click.option(
    "--epsilon", required=True, help="Epsilon that the account may spend; decimals are exact."
)
@click.option("--delta", default="0", show_default=True, help="Delta that it may spend.")
@click.option("--why", default="", help="Its purpose; the history keeps it.")
@json_option
def account_command(
    where: str, account: str, name: str, epsilon: str, delta: str, why: str, as_json: bool
) -> None:
    """Open an account: a sub-budget for an analyst or a purpose.

    A charge must fit the budget of the account and of the ledger. Accounts reserve nothing: their
    budgets may add up to more than the ledger has, and then it is first come, first served. Prints
    the same as show.

    Example: privmax budget account budget.db ada --epsilon 1 --delta 1e-6
    """
    with open_ledger(where, name) as ledger:
        ledger.open_account(account, Privacy(epsilon, delta), why=why)
        print_standing(ledger, as_json)


@click.command("split", cls=Command)
@typed_place
@click.argument("part")
@click.option(
    "--epsilon", required=True, help="Epsilon that the part may spend; decimals are exact."
)
@click.option("--delta", default="0", show_default=True, help="Delta that it may spend.")
@click.option(
    "--unit", help="What one individual is, such as user; needed before the first charge."
)
@click.option(
    "--at",
    "place",
    metavar="FILE",
    help="Another file or database for the part.  [default: FILE]",
)
@json_option
def split_command(
    where: str,
    part: str,
    name: str,
    epsilon: str,
    delta: str,
    unit: str | None,
    place: str | None,
    as_json: bool,
) -> None:
    """Split off a part of the budget as its own ledger, which waits for no other.

    The whole part is charged to the ledger now and stays spent there, whatever the part spends.
    The part has the rule basic and cannot be raised. Repeating the command charges nothing. Prints
    the same as show does for the part.

    Example: privmax budget split budget.db web --epsilon 1 --delta 1e-6 --unit user
    """
    with open_ledger(where, name) as ledger:
        made = ledger.split(part, Privacy(epsilon, delta), where=place, unit=unit)
        with made:
            print_standing(made, as_json)
