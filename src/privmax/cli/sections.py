"""The parts of `--help` where a command has many options: everyday, privacy, advanced."""

from __future__ import annotations

from collections.abc import Iterable

import click

MANY = 12
"""Options of a command that are listed in one part at most."""

_LISTED = {
    # what is read, asked and written; then of plan, compare and audit; then of explore
    "Everyday": "item user per-user score weight table where basket size form label labels "
    "features schema hypotheses low high cells by k ranked counts other supports rules "
    "epsilon delta check output report json plot save apply help "
    "scores best next others near public of only pairs candidates highest keys "
    "data datasets columns port",
    "Privacy": "universe items neighbors unit bound sensitivity growth missing-users ledger "
    "groups groups-per-user groups-share ledger-name request account dataset pad-time "
    "header-is-public claim-epsilon claim-delta rho "
    "lenient",
    "Advanced": "mechanism rank resolution longest floor calibration literals cap delimiter "
    "header encoding memory temporary samples confidence success socket host reason",
}

SECTIONS = {title: frozenset(names.split()) for title, names in _LISTED.items()}
"""The section of the help for each option, by name: the same for all commands."""


def long_name(option: click.Parameter) -> str:
    """Return the name of an option without its dashes: the first that is not a single letter."""
    return next((one.lstrip("-") for one in option.opts if one.startswith("--")), str(option.name))


def group_options(
    options: Iterable[tuple[click.Parameter, tuple[str, str]]],
) -> dict[str, list[tuple[str, str]]]:
    """Return what help shows of options, by the part in which it does."""
    sections: dict[str, list[tuple[str, str]]] = {title: [] for title in SECTIONS}
    for option, record in options:
        name = long_name(option)
        sections[next((title for title in SECTIONS if name in SECTIONS[title]), "Advanced")].append(
            record
        )
    return sections
