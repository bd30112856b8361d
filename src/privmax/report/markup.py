"""The pieces of a page. Every text that enters is escaped here: labels are data, and may look like
markup.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from fractions import Fraction
from html import escape
from importlib.metadata import version
from importlib.resources import files
from string import Template

from privmax.display import spell_out
from privmax.numbers import round_down, round_up
from privmax.privacy import REPLACE, Privacy

_FINEST = 6
"""Places behind the point that e^ε is shown with at most."""


def text(value: object) -> str:
    """Any text, as text: nothing in it is markup, and what cannot be printed is spelled out."""
    return escape(spell_out(str(value)))


def name(value: object) -> str:
    """A name or a label, set apart: one that runs from right to left does not turn what stands
    around it.
    """
    return f"<bdi>{text(value)}</bdi>"


def code(value: object) -> str:
    return f"<code>{text(value)}</code>"


def paragraph(*parts: str) -> str:
    return f"<p>{' '.join(part for part in parts if part)}</p>"


def section(title: str, *parts: str, kind: str = "") -> str:
    return f'<section class="{kind}"><h2>{text(title)}</h2>{"".join(parts)}</section>'


def facts(rows: Mapping[str, str]) -> str:
    """Names and what stands beside them, which is markup."""
    listed = "".join(
        f"<div><dt>{text(key)}</dt><dd>{value}</dd></div>" for key, value in rows.items()
    )
    return f'<dl class="facts">{listed}</dl>'


def request_section(given: Mapping[str, object], *notes: str, **more: str) -> str:
    """The section with what was asked, by name; what is None was not. `notes` below it and `more`
    are markup.
    """
    rows = {key: name(_join(value)) for key, value in given.items() if value is not None} | more
    return section("What was asked", facts(rows) if rows else "", *notes) if rows or notes else ""


def _join(value: object) -> str:
    many = isinstance(value, Sequence) and not isinstance(value, str)
    return ", ".join(map(str, value)) if many else str(value)  # type: ignore[call-overload]


def top(kind: str, question: str, heading: str, answer: str, *parts: str) -> str:
    """The first screen. It is for everybody. `answer` and what follows is markup."""
    return (
        f'<header class="top"><p class="kicker">{text(kind)}</p><h1>{text(question)}</h1>'
        f'<div class="answer"><p '
        f'class="what">{text(heading)}</p>{answer}</div>{"".join(parts)}</header>'
    )


def cards(rows: Mapping[str, str]) -> str:
    """A few facts side by side; their values are markup."""
    shown = "".join(
        f"<div><dt>{text(key)}</dt><dd>{value}</dd></div>" for key, value in rows.items()
    )
    return f'<dl class="cards">{shown}</dl>'


def bullets(rows: Iterable[str]) -> str:
    return f"<ul>{''.join(f'<li>{row}</li>' for row in rows)}</ul>"


def command(words: str) -> str:
    """What to type."""
    return f"<pre><code>{text(words)}</code></pre>"


def table(headings: Sequence[str], rows: Iterable[Sequence[str]], marked: int | None = None) -> str:
    """A table of texts; numbers stand to the right. `marked`: which row stands out."""
    head = "".join(f'<th scope="col">{text(heading)}</th>' for heading in headings)
    body = "".join(
        f"<tr{' class=marked' if number == marked else ''}>{''.join(map(_cell, row))}</tr>"
        for number, row in enumerate(rows)
    )
    return (
        f'<div class="scroll"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def _cell(value: str) -> str:
    numeric = value.lstrip("<>")[:1].isdecimal() or value in ("–", "")
    return f"<td{' class=number' if numeric else ''}>{text(value)}</td>"


def picture(svg: str) -> str:
    """A picture as `privmax.plots.svg` gives it: that escapes what it draws, and says what the
    picture shows.
    """
    return f'<figure><div class="scroll">{svg}</div></figure>'


def price(privacy: Privacy, *, left: bool = False) -> str:
    """Epsilon and delta; rounded up, what is left down."""
    rounded = round_down if left else round_up
    return (
        f"ε&nbsp;=&nbsp;{number(rounded(privacy.epsilon))}, "
        f"δ&nbsp;=&nbsp;{number(rounded(privacy.delta))}"
    )


def number(shown: str) -> str:
    """A number as people write it: 1e-06 is 10⁻⁶."""
    mantissa, e, power = shown.partition("e")
    if not e:
        return text(shown)
    factor = "" if mantissa == "1" else f"{text(mantissa)}&nbsp;·&nbsp;"
    return f"{factor}10<sup>{str(int(power)).replace('-', '−')}</sup>"


def change_words(neighbors: str) -> str:
    """What neighbors have done with one individual."""
    return "exchanged for another" if neighbors == REPLACE else "left out"


def times(epsilon: Fraction) -> str:
    """e^ε in few digits, rounded up."""
    if epsilon > 15:
        return f"10<sup>{math.ceil(min(epsilon, Fraction(10**9)) / Fraction(math.log(10)))}</sup>"
    return _few_digits(math.exp(epsilon))


def raised_chance(epsilon: Fraction, delta: Fraction) -> str | None:
    """To how many in 100 a chance of 1 in 100 may rise: 100 · (e^ε / 100 + δ), in few digits,
    rounded up.

    None: to all of them, or nearly.
    """
    most = math.exp(min(epsilon, Fraction(10))) + 100 * float(delta)
    return _few_digits(most) if most < 99 else None


def _few_digits(factor: float) -> str:
    """A factor above 1, rounded up."""
    above = factor - 1 if factor < 1.1 else factor / 10
    places = min(max(0, 1 - math.floor(math.log10(max(above, 1e-9)))), _FINEST)
    steps = max(
        math.ceil(factor * 10**places), 10**places + 1
    )  # it is above 1, also where a float is not
    return f"{steps / 10**places:,.{places}f}"


def chance(delta: Fraction) -> str:
    """A probability above 0 as one chance in so many, rounded up."""
    many = int(1 / delta)
    digits = len(str(many)) - 1
    words = {6: "a million", 9: "a billion", 12: "a trillion"}
    if many == 10**digits and digits in words:
        return f"one chance in {words[digits]}"
    return f"one chance in {many:,}" if digits < 10 else f"one chance in 10<sup>{digits}</sup>"


def page(title: str, *parts: str, written: datetime | None, note: str) -> str:
    """The whole page. Nothing in it may run, and nothing may be fetched, whatever stands in
    `parts`.

    written    when; None: now
    note       what it tells of the data
    """
    when = (datetime.now(UTC) if written is None else written.astimezone(UTC)).replace(
        microsecond=0
    )
    template = Template(_read_asset("page.html"))
    return template.substitute(
        title=text(title),
        style=_read_asset("page.css"),
        body="".join(parts),
        note=text(note),
        version=text(version("privmax")),
        stamp=when.isoformat(),
        written=f"{when:%Y-%m-%d %H:%M:%S} UTC",
    )


def _read_asset(file: str) -> str:
    return files(__package__).joinpath(file).read_text(encoding="utf-8")
