"""`privmax compare`."""

from __future__ import annotations

import json
import re
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from privmax.cli.completion import sources
from privmax.cli.group import Command, refusal
from privmax.cli.inputs import Input, explain, find_file, name_columns, open_data, read_universe
from privmax.cli.options import (
    json_option,
    laws_options,
    mechanisms_options,
    plot_option,
    report_option,
)
from privmax.cli.output import busy, check_plot, draw_plot
from privmax.cli.passwords import SAMPLE, hide_password, without_urls
from privmax.cli.report import check_report, report_comparison
from privmax.errors import DataError, ParameterError, PrivmaxError
from privmax.numbers import plain
from privmax.writing import check_apart

if TYPE_CHECKING:
    from privmax.planning.comparison import Comparison, Contender


@click.command("compare", cls=Command)
@click.argument("file", shell_complete=sources, required=False)
@click.option("--scores", help="Invented scores, separated by commas: 900,850,12.")
@click.option(
    "--best",
    type=int,
    help="Or an invented shape: the highest score, which --near candidates have.",
)
@click.option(
    "--next",
    "second",
    type=int,
    help="With --best: the second highest score; otherwise all others have 0.",
)
@click.option(
    "--others", type=int, help="With --next: how many candidates have that score.  [default: 1]"
)
@click.option(
    "--near",
    type=int,
    help="With --best: how many candidates have it (default 1). Otherwise, for limited-domain: how "
    "many may be near the top (default: those that share the top score).",
)
@click.option("--item", default="item", show_default=True, help="With FILE: column of items.")
@click.option("--score", help="With FILE: column of precomputed scores, one row per item.")
@click.option(
    "--user",
    help="With FILE: column of individuals; the score of an item is its number of distinct users.",
)
@click.option(
    "--public",
    is_flag=True,
    help="With FILE: confirm that the data is public.",
)
@click.option(
    "--k",
    type=int,
    default=1,
    show_default=True,
    help="How many items to release; above 1, the table shows how many of the best k are missed.",
)
@click.option(
    "--ranked", is_flag=True, help="With --k: also release the order; needs a clearer lead."
)
@laws_options
@click.option(
    "--success",
    default="0.95",
    show_default=True,
    help="Probability of a release for which the lead is given.",
)
@mechanisms_options
@plot_option
@report_option
@json_option
def command(plot: str | None, report: str | None, as_json: bool, **options: Any) -> None:
    """Show what each mechanism would release on scores like yours, and how likely.

    The scores are invented (--scores, or --best and its options), or come from a public FILE. A
    comparison has no noise, so it is as private as the data. The data sets included in privmax are
    public.

    \b
    privmax compare --scores 900,850,12 --epsilon 1 --delta 1e-6
    privmax compare --best 60 --next 30 --others 1000 --universe 1e30 --epsilon 1 --delta 1e-6
    privmax compare sample:counts --item query --score people --epsilon 1 --delta 1e-6
    privmax compare --scores 90,85,84,80,12,9 --k 4 --epsilon 1 --delta 1e-6
    """
    settings = CompareOptions(**options)
    try:
        origin = None if settings.file is None else find_file(settings.file)
        check_apart({"plot": plot, "report": report}, {"FILE": origin})
        check_plot(plot)
        if report is not None:
            check_report(report)
        settings.check()
        with ExitStack() as stack, busy("Computing exact probabilities"):
            by_k = settings.compare(stack, is_drawn=plot is not None)
        result = by_k[settings.k]
        if plot is not None:
            from privmax.plots import comparison, misses

            draw_plot(
                comparison(result) if settings.k == 1 else misses(by_k, marked=settings.k), plot
            )
    except PrivmaxError as error:
        raise refusal(error, without_urls(explain(error, settings.file or ""))) from None
    click.echo(json.dumps(_object(result), ensure_ascii=False) if as_json else result)
    data = _origin(settings.file, settings.scores)
    report_comparison(report, result, as_json, data=data, asked=settings.about())


@dataclass(frozen=True)
class CompareOptions:
    """The typed options, by name; `second` is --next."""

    file: str | None
    scores: str | None
    best: int | None
    second: int | None
    others: int | None
    near: int | None
    item: str
    score: str | None
    user: str | None
    public: bool
    k: int
    ranked: bool
    epsilon: str
    delta: str
    universe: str
    success: str
    neighbors: str
    growth: int | None
    mechanisms: tuple[str, ...]

    def check(self) -> None:
        """Refuse anything but one kind of scores, and what belongs to another kind."""
        kinds = {"FILE": self.file, "--scores": self.scores, "--best": self.best}
        used = [name for name, value in kinds.items() if value is not None]
        if len(used) != 1:
            named = f", not {' and '.join(used)}" if used else ""
            raise DataError(
                f"Give one of FILE, --scores and --best{named}. For example --scores 900,850,12."
            )
        columns = {"score": self.score, "user": self.user, "public": self.public or None}
        for home, belongings in (("--best", self._shape()), ("FILE", columns)):
            for name, value in belongings.items():
                if value is not None and home not in used:
                    raise DataError(
                        f"--{name}: it works only with {home}, not with {used[0]}. Leave one of "
                        "them out."
                    )
        if self.file is not None and not self.public and not self.file.startswith(SAMPLE):
            raise DataError(
                "FILE: a comparison has no noise, so it would reveal the data to everyone who "
                "sees it. Compare on invented numbers (--scores or --best), or add --public if the "
                "data is public."
            )

    def compare(self, stack: ExitStack, *, is_drawn: bool) -> dict[int, Comparison]:
        """Comparisons by k; `stack` closes what is opened for them."""
        from privmax.profile import Profile
        from privmax.sources.scale import Scores

        options: dict[str, Any] = {
            "epsilon": self.epsilon,
            "delta": self.delta,
            "ranked": self.ranked,
            "success": self.success,
            "scores": Scores(neighbors=self.neighbors, growth=self.growth),
            "mechanisms": self.mechanisms or None,
        }
        everything = read_universe(self.universe, 1)
        data: object
        if self.best is not None:
            data = Profile(self._levels(self.best), universe=everything.size)
        else:
            options |= {"universe": everything, "near": self.near}
            if self.scores is not None:
                data = _numbers(self.scores)
            else:
                assert self.file is not None
                origin, items = find_file(self.file), [self.item]
                source = Input(origin)
                columns = name_columns(source, items, self.score, {"user": self.user})
                data = open_data(source, items, self.score, columns, stack)
                options |= columns
        return _compare(data, self.k, options, is_drawn=is_drawn)

    def about(self) -> dict[str, Any]:
        """Return what a page about the comparison is to say that was asked."""
        columns = {"item": self.item, "score": self.score, "user": self.user}
        return {
            "data": None if self.file is None else hide_password(self.file),
            "scores": self.scores,
            **self._shape(),
            "near": self.near,
            **({} if self.file is None else columns),
            "epsilon": self.epsilon,
            "delta": self.delta,
            "universe": self.universe,
            "success": self.success,
            "growth": self.growth,
            "neighbors": self.neighbors,
            "mechanism": self.mechanisms or None,
            "k": None if self.k == 1 else self.k,
            "ranked": self.ranked or None,
        }

    def _shape(self) -> dict[str, int | None]:
        return {"best": self.best, "next": self.second, "others": self.others}

    def _levels(self, best: int) -> list[tuple[int, int]]:
        """Return the levels of an invented profile."""
        second, others = self.second, self.others
        if others is not None and second is None:
            raise DataError("--others: it needs --next, the score that they have. Add --next.")
        near, more = 1 if self.near is None else self.near, 1 if others is None else others
        for name, value in (("near", near), ("others", more)):
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
        return [(best, near), (second, more)]


def _compare(
    data: object, k: int, options: dict[str, Any], *, is_drawn: bool
) -> dict[int, Comparison]:
    """Comparisons by k: of the one that was asked for, and of those that the picture shows."""
    from privmax.planning.comparison import compare, compare_over
    from privmax.planning.plans import STEPS, check_near

    if k == 1 or not is_drawn:
        return {k: compare(data, k=k, **options)}
    check_near(k, options.get("near"), None)
    numbers = {step for step in STEPS if step <= 10 * k} | {k}
    by_k = compare_over(data, sorted(numbers), **options)
    if k not in by_k:
        raise ParameterError(
            "k", k, "it must not exceed the size of the universe", "Ask for fewer."
        )
    return by_k


def _origin(file: str | None, scores: str | None) -> str:
    """Return what was compared on, in words."""
    if file is not None:
        kind = "invented data included in privmax" if file.startswith(SAMPLE) else "declared public"
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
        "it must be whole numbers separated by commas",
        "For example 900,850,12.",
    )


def _object(comparison: Comparison) -> dict[str, Any]:
    rows = [
        {
            "mechanism": row.name,
            "best": row.best,
            "nothing": row.nothing,
            "shortfall": row.shortfall,
            "lead": row.lead,
            "chosen": row.chosen,
            "ahead": row.ahead,
            **({} if comparison.k == 1 else _list_object(row)),
        }
        for row in comparison.rows
    ]
    extra = {} if comparison.k == 1 else {"k": comparison.k}
    return {
        "privacy": {
            "epsilon": plain(comparison.privacy.epsilon),
            "delta": plain(comparison.privacy.delta),
        },
        "neighbors": comparison.neighbors,
        "universe": comparison.universe,
        "near": comparison.near,
        "success": plain(comparison.success),
        "rows": rows,
        "unable": dict(comparison.unable),
        "why": comparison.why,
        **extra,
    }


def _list_object(row: Contender) -> dict[str, Any]:
    return {
        "misses": row.misses,
        "error": row.error,
        "size": row.size,
        "releases": "order" if row.mechanism.ranked else "set",
    }
