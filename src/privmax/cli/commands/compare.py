"""`privmax compare`."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import click

from privmax.cli.completion import sources
from privmax.cli.group import Command, Refused
from privmax.cli.inputs import explain, find_file, name_columns, open_data, read_universe
from privmax.cli.options import json_option, mechanisms_option, plot_option, report_option
from privmax.cli.output import busy, check_plot, draw_plot
from privmax.cli.passwords import SAMPLE, hide_password, without_urls
from privmax.cli.report import check_report, report_comparison
from privmax.errors import DataError, ParameterError, PrivmaxError
from privmax.numbers import plain
from privmax.privacy import ADD_REMOVE, REPLACE
from privmax.writing import check_apart

if TYPE_CHECKING:
    from privmax.planning.comparison import Comparison


@click.command("compare", cls=Command)
@click.argument("file", shell_complete=sources, required=False)
@click.option("--scores", help="Invented scores, with commas between them, such as 900,850,12.")
@click.option(
    "--best",
    type=int,
    help="Or an invented shape: this is the highest score, and --near candidates have it.",
)
@click.option(
    "--next",
    "second",
    type=int,
    help="With --best: the score of those that come next. Else all others have 0.",
)
@click.option("--others", type=int, help="With --next: how many have that score; 1 if not given.")
@click.option(
    "--near",
    type=int,
    help="With --best: how many have it; 1 if not given. Otherwise what limited-domain is told: "
    "how many may stand "
    "near the top; as many as share the top score if not given.",
)
@click.option("--item", default="item", show_default=True, help="With FILE: column of items.")
@click.option("--score", help="With FILE: column of ready scores, one row per item.")
@click.option(
    "--user",
    help="With FILE: column of individuals; an item scores how many different ones it has.",
)
@click.option(
    "--public",
    is_flag=True,
    help="With FILE: anybody may see the data, and what is computed from it.",
)
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
    "--success",
    default="0.95",
    show_default=True,
    help="Chance of a release that the lead is told for.",
)
@click.option(
    "--neighbors", type=click.Choice([ADD_REMOVE, REPLACE]), default=ADD_REMOVE, show_default=True
)
@click.option(
    "--growth", type=int, help="How many candidates one individual's record touches at most."
)
@mechanisms_option
@plot_option
@report_option
@json_option
def command(
    file: str | None,
    scores: str | None,
    best: int | None,
    second: int | None,
    others: int | None,
    near: int | None,
    item: str,
    score: str | None,
    user: str | None,
    public: bool,
    epsilon: str,
    delta: str,
    universe: str,
    success: str,
    neighbors: str,
    growth: int | None,
    mechanism: tuple[str, ...],
    plot: str | None,
    report: str | None,
    as_json: bool,
) -> None:
    """Tell what each mechanism would release on scores like yours, and with what chance.

    The scores are invented (--scores, or --best and what goes with it), or those of a FILE that
    anybody may see: a comparison is computed without noise, and is as private as the data. The
    files that come with privmax are public.

    \b
    privmax compare --scores 900,850,12 --epsilon 1 --delta 1e-6
    privmax compare --best 60 --next 30 --others 1000 --universe 1e30 --epsilon 1 --delta 1e-6
    privmax compare sample:counts --item query --score people --epsilon 1 --delta 1e-6
    """
    shape = {"best": best, "next": second, "others": others}
    columns = {"score": score, "user": user, "public": public or None}
    try:
        check_apart(
            {"plot": plot, "report": report}, {"FILE": None if file is None else find_file(file)}
        )
        check_plot(plot)
        if report is not None:
            check_report(report)
        _one_kind(file, scores, shape, columns)
        options: dict[str, Any] = {
            "epsilon": epsilon,
            "delta": delta,
            "universe": read_universe(universe, 1),
            "success": success,
            "neighbors": neighbors,
            "growth": growth,
            "mechanisms": mechanism or None,
        }
        with ExitStack() as held, busy("Computing exact laws"):
            names = {"item": item, "score": score, "user": user}
            found = _compare(file, scores, shape, names, {**options, "near": near}, held)
        if plot is not None:
            from privmax.plots import comparison

            draw_plot(comparison(found), plot)
    except PrivmaxError as error:
        raise Refused(without_urls(explain(error, file or ""))) from None
    click.echo(json.dumps(_object(found), ensure_ascii=False) if as_json else found)
    about = {
        "data": None if file is None else hide_password(file),
        "scores": scores,
        **shape,
        "near": near,
    }
    about |= {} if file is None else {"item": item, "score": score, "user": user}
    about |= {
        "epsilon": epsilon,
        "delta": delta,
        "universe": universe,
        "success": success,
        "growth": growth,
    }
    asked = {**about, "neighbors": neighbors, "mechanism": mechanism or None}
    report_comparison(report, found, as_json, data=_origin(file, scores), asked=asked)


def _one_kind(
    file: str | None,
    scores: str | None,
    shape: dict[str, int | None],
    columns: Mapping[str, object],
) -> None:
    """Refuse anything but one kind of scores, and what belongs to another kind."""
    given = [
        name
        for name, value in {"FILE": file, "--scores": scores, "--best": shape["best"]}.items()
        if value is not None
    ]
    if len(given) != 1:
        told = f"{' and '.join(given)} are given" if given else "none is given"
        raise DataError(
            f"Give one of FILE, --scores and --best: {told}. For example --scores 900,850,12."
        )
    for name, value in {**shape, **columns}.items():
        home = "--best" if name in shape else "FILE"
        if value is not None and home not in given:
            raise DataError(
                f"--{name} belongs to {home}, and {given[0]} is given. Leave one of them out."
            )
    if file is not None and not columns["public"] and not file.startswith(SAMPLE):
        raise DataError(
            "FILE: a comparison is computed without noise, so it would tell what the data holds to "
            "whoever sees it. "
            "Compare on invented numbers (--scores or --best), or give --public if anybody may see "
            "the data."
        )


def _compare(
    file: str | None,
    scores: str | None,
    shape: dict[str, int | None],
    given: Mapping[str, Any],
    options: dict[str, Any],
    held: ExitStack,
) -> Comparison:
    from privmax.planning.comparison import compare
    from privmax.profile import Profile
    from privmax.universe import Universe

    if file is not None:
        origin = find_file(file)
        items, score = [given["item"]], given["score"]
        columns = name_columns(origin, None, items, score, {"user": given["user"]})
        data = open_data(origin, None, items, score, columns, held)
        return compare(data, **columns, **options)
    if scores is not None:
        return compare(_numbers(scores), **options)
    near = options.pop("near")
    levels = _levels(shape, 1 if near is None else near)
    size = Universe.of(options.pop("universe")).size
    return compare(Profile(levels, universe=size), **options)


def _origin(file: str | None, scores: str | None) -> str:
    """What was compared on, in words."""
    if file is not None:
        kind = (
            "invented data that comes with privmax"
            if file.startswith(SAMPLE)
            else "said to be public"
        )
        return f"{hide_password(file)}, {kind}"
    return (
        "an invented shape" if scores is None else f"invented scores, {scores.replace(',', ', ')}"
    )


def _numbers(text: str) -> list[int]:
    parts = [part.strip() for part in text.split(",")]
    if all(re.fullmatch("[+-]?[0-9]{1,4300}", part) for part in parts):
        return [int(part) for part in parts]
    raise ParameterError(
        "scores",
        text,
        "they must be whole numbers with commas between them",
        "For example 900,850,12.",
    )


def _levels(shape: dict[str, int | None], near: int) -> list[tuple[int, int]]:
    """The levels of an invented profile."""
    best, second, others = (shape[name] for name in ("best", "next", "others"))
    assert best is not None
    if others is not None and second is None:
        raise DataError(
            "--others belongs to --next, and there is none. Give the score that they have."
        )
    for name, value in (("near", near), ("others", 1 if others is None else others)):
        if value < 1:
            raise ParameterError(
                name, value, "it must be a whole number of at least 1", "For example 1."
            )
    if second is None:
        return [(best, near)]
    if second >= best:
        raise ParameterError(
            "next",
            second,
            f"it must be below --best, which is {best}",
            "Swap them, or raise --near.",
        )
    return [(best, near), (second, 1 if others is None else others)]


def _object(found: Comparison) -> dict[str, Any]:
    rows = [
        {
            "mechanism": row.name,
            "best": row.best,
            "nothing": row.nothing,
            "shortfall": row.shortfall,
            "lead": row.lead,
            "chosen": row.chosen,
            "ahead": row.ahead,
        }
        for row in found.rows
    ]
    return {
        "privacy": {"epsilon": plain(found.privacy.epsilon), "delta": plain(found.privacy.delta)},
        "neighbors": found.neighbors,
        "universe": found.universe,
        "near": found.near,
        "success": plain(found.success),
        "rows": rows,
        "unable": dict(found.unable),
        "why": found.why,
    }
