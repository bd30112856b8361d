"""Plan: how clear the best must be, before any data is touched."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from privmax.errors import ParameterError, PrivmaxError
from privmax.explore import drawing
from privmax.explore.jobs import OTHERS
from privmax.explore.markup import (
    check,
    choice,
    copyable,
    field,
    notice,
    number,
    rows,
    working,
)
from privmax.explore.state import Explorer, fields, is_part, too_slow
from privmax.explore.work import SlowError
from privmax.planning.comparison import percent
from privmax.planning.plans import short
from privmax.privacy import ADD_REMOVE, REPLACE
from privmax.report.markup import paragraph, section, text
from privmax.universe import OPEN, read_whole

MOST = 1_000
"""The largest k that a page plans for."""

LONGEST = 320
"""Characters of a number: 2^1000 has 302 digits."""

DEFAULTS = {
    "epsilon": "1",
    "delta": "1e-6",
    "k": "1",
    "ranked": "",
    "universe": "",
    "near": "",
    "neighbors": ADD_REMOVE,
    "growth": "",
    "success": "0.95",
    "lead": "",
}
"""What the form holds at first. The empty text: not given."""

OFF_SCALE = '<span class="hint">beyond this scale</span>'

SLIDERS: dict[str, dict[str, object]] = {
    "epsilon": {"least": 0.05, "most": 10, "scale": "log"},
    "delta": {"least": 1e-12, "most": 1e-2, "scale": "log1"},
    "k": {"least": 1, "most": 100, "scale": "whole"},
    "universe": {"least": 10, "most": 10**12, "scale": "log1"},
    "near": {"least": 1, "most": 1000, "scale": "whole"},
    "growth": {"least": 1, "most": 1000, "scale": "whole"},
    "lead": {"least": 1, "most": 1000, "scale": "whole"},
}
"""What each slider spans. The field beside it takes every other number."""


@dataclass(frozen=True)
class Question:
    """What is planned for, as the form says it."""

    given: Mapping[str, str]

    @classmethod
    def of(cls, given: Mapping[str, str]) -> Question:
        """The question of a form; what it leaves out is as at first."""
        kept = {name: given.get(name, default)[:LONGEST] for name, default in DEFAULTS.items()}
        return cls(kept)

    @property
    def key(self) -> tuple[str, ...]:
        return tuple(self.given[name] for name in DEFAULTS)

    def address(self, page: str = "plan") -> str:
        """The page in this state; what is as at first is left out."""
        changed = {name: value for name, value in self.given.items() if value != DEFAULTS[name]}
        return f"/{page}" + (f"?{urlencode(changed)}" if changed else "")

    def options(self) -> dict[str, Any]:
        """What `privmax.plan` takes; raises ParameterError where a field is no number."""
        k = self._whole("k") or 1
        if k > MOST:
            raise ParameterError("k", k, f"pages plan for up to {MOST}", "Use the command.")
        options: dict[str, Any] = {
            "epsilon": self.given["epsilon"],
            "delta": self.given["delta"] or "0",
            "k": k,
            "ranked": bool(self.given["ranked"]) and k > 1,
            "universe": self._whole("universe") or OPEN,
            "near": self._whole("near"),
            "neighbors": self.given["neighbors"],
            "growth": self._whole("growth"),
            "success": self.given["success"],
        }
        return options

    @property
    def lead(self) -> int | None:
        return self._whole("lead")

    def _whole(self, name: str) -> int | None:
        value = self.given[name]
        if value in ("", OPEN):
            return None
        found = read_whole(name, value)
        if found is None or found < 1:
            raise ParameterError(name, value, "it must be a whole number above 0", "For example 1.")
        return found

    def changes(self) -> dict[str, Any]:
        """The options that differ from what `privmax.plan` takes by default."""
        usual = {
            "delta": "0", "k": 1, "ranked": False, "universe": OPEN, "near": None,
            "neighbors": ADD_REMOVE, "growth": None, "success": "0.95",
        }  # fmt: skip
        return {
            name: value
            for name, value in self.options().items()
            if name not in usual or value != usual[name]
        }

    def python(self) -> str:
        """The line of Python that gives this plan."""
        given = ", ".join(f"{name}={value!r}" for name, value in self.changes().items())
        return f"print(privmax.plan({given}))"

    def command(self) -> str:
        """The command that prints this plan."""
        words = ["privmax plan"]
        for name, value in self.changes().items():
            words.append(f"--{name}" if value is True else f"--{name} {shlex.quote(str(value))}")
        return " ".join(words)


async def show(explorer: Explorer, request: Request) -> Response:
    """The page, or only its result where the form has changed."""
    question = Question.of(fields(request))
    result = await _result(explorer, request, question)
    if is_part(request):
        return HTMLResponse(result, headers={"HX-Replace-Url": question.address()})
    return explorer.page(
        "plan",
        "Plan",
        paragraph(
            "How clear must the best be to be released? These are exact probabilities of the "
            "mechanisms: no data is read, and nothing is spent."
        ),
        f'<div class="split">{_form(question)}<div id="result-box">{working()}'
        f'<div id="result">{result}</div></div></div>',
    )


async def show_slow(explorer: Explorer, request: Request) -> Response:
    """The rows of the mechanisms that take a second or more."""
    question = Question.of(fields(request))
    try:
        found = await explorer.compute(
            request, "plan", question.options(), question.lead, is_slow=True,
            key=("slow", *question.key),
        )  # fmt: skip
    except SlowError:
        return HTMLResponse(
            '<tbody><tr><td colspan="7" class="hint">The mechanisms that compute longest are not '
            "shown: they take more than 20 seconds here. The command shows them.</td></tr></tbody>"
        )
    except PrivmaxError as error:
        return HTMLResponse(f'<tbody><tr><td colspan="7">{text(error)}</td></tr></tbody>')
    given = request.query_params.get("longest", "")[:9]
    longest = int(given) if given.isdecimal() else 1
    return HTMLResponse(f"<tbody>{_rows(found, max(longest, 1))}</tbody>")


async def _result(explorer: Explorer, request: Request, question: Question) -> str:
    try:
        options = question.options()
        found = await explorer.compute(request, "plan", options, question.lead, key=question.key)
    except SlowError:
        return too_slow()
    except PrivmaxError as error:
        return notice(text(explorer.describe(error)), "error")
    return _show(found, question, str(request.base_url).rstrip("/"))


def _show(found: Mapping[str, Any], question: Question, here: str) -> str:
    longest = max([row["lead"] or 0 for row in found["rows"]] + [1])
    link = here + question.address()
    several = question.options()["k"] > 1
    headings = [
        "mechanism", "#lead needed", "", f"#misses at a lead of {short(found['lead'])}",
        "#releases" if several else "#falls short by at most", "may abstain", "must know",
    ]  # fmt: skip
    slow = ""
    if found["later"]:
        asked = question.address("plan/slow")
        asked += f"{'&' if '?' in asked else '?'}longest={min(longest, 10**8)}"
        slow = (
            f'<tbody hx-get="{text(asked)}" '
            'hx-trigger="load delay:700ms" hx-swap="outerHTML"><tr><td colspan="7" class="hint">'
            f"Computing {text(', '.join(found['later']))} …</td></tr></tbody>"
        )
    table = rows(headings, [], f"{found['title']}, at {found['cost']}").replace(
        "<tbody></tbody>", f"<tbody>{_rows(found, longest)}</tbody>{slow}"
    )
    behind = "everybody else" if question.given["universe"] else f"{OTHERS:,} others"
    return (
        f'<p class="why" role="status"><strong>{text(found["chosen"])}</strong> is chosen: '
        f"{text(found['why'])}. No mechanism works with a lead below {short(found['limit'])}.</p>"
        f"{table}"
        f'<p class="hint">A lead is counted in records: by how many individuals '
        f"{text(found['winners'])} must lead all others to be released with probability "
        f"{text(question.given['success'])}. Misses: the share of the best that is not released, "
        f"on average, where {behind} stand right behind them; from exact laws.</p>"
        f"{_picture(found)}"
        f"{section('Take it with you', _lines(question, link))}"
    )


def _rows(found: Mapping[str, Any], longest: int) -> str:
    drawn = []
    for row in found["rows"]:
        lead = row["lead"]
        chosen = row["chosen"]
        bar = ""
        if lead is not None:
            bar = drawing.bar(lead / longest, is_marked=chosen) if lead <= longest else OFF_SCALE
        misses = "–" if row["misses"] is None else percent(row["misses"])
        kind = row["form"] if row["error"] is None else short(row["error"])
        abstains = "cannot serve" if row["lacks"] else "yes" if row["silent"] else "no"
        needs = row["lacks"] or row["needs"]
        name = f"{row['name']}{' (chosen)' if chosen else ''}"
        drawn.append(
            f'<tr{" class=marked" if chosen else ""}><th scope="row">{text(name)}</th>'
            f'{number("–" if lead is None else short(lead))}<td class="wide">{bar}</td>'
            f"{number(misses)}{number(kind)}<td>{abstains}</td><td>{text(needs)}</td></tr>"
        )
    return "".join(drawn)


def _picture(found: Mapping[str, Any]) -> str:
    if not found["curves"]:
        return ""
    curves = {
        name: [(float(lead), misses) for lead, misses in line]
        for name, line in found["curves"].items()
    }
    return drawing.lines(
        curves,
        title="Expected misses by lead",
        across="lead in records",
        up="share of the best that is missed, on average",
        marked=float(found["lead"]),
        heights=[(0, "0 %"), (0.25, "25 %"), (0.5, "50 %"), (0.75, "75 %"), (1, "100 %")],
    )


def _lines(question: Question, link: str) -> str:
    return (
        copyable(question.python(), "In Python")
        + copyable(question.command(), "On the command line")
        + copyable(link, "This page, as it is now")
        + f'<p><a class="button" href="{text(question.address("try"))}">Try it on public data</a> '
        f'<a class="button" href="{text(question.address("ask"))}">Ask with these terms</a></p>'
    )


def _form(question: Question) -> str:
    given = question.given
    parts = [
        field("epsilon", "ε, the privacy cost", given["epsilon"], slider=SLIDERS["epsilon"],
              hint="Smaller protects more. Decimals are exact.", inputmode="decimal"),
        field("delta", "δ, the chance that ε fails", given["delta"], slider=SLIDERS["delta"],
              hint="0 needs a closed universe.", inputmode="decimal"),
        field("k", "k, how many to release", given["k"], slider=SLIDERS["k"],
              inputmode="numeric"),
        check("ranked", "release their order, too", "yes", bool(given["ranked"])),
        field("universe", "candidates there could be", given["universe"],
              slider=SLIDERS["universe"], inputmode="numeric", placeholder="open",
              hint="Leave it empty if nobody can list them."),
        field("near", "near maximizers", given["near"], slider=SLIDERS["near"],
              inputmode="numeric", placeholder="k",
              hint="How many are tied at the top."),
        field("lead", "their lead, in records", given["lead"], slider=SLIDERS["lead"],
              inputmode="numeric", placeholder="what the chosen one needs",
              hint="Misses are computed for this lead."),
        choice("neighbors", "relation", {
            ADD_REMOVE: "add-remove: one individual added or left out",
            REPLACE: "replace: one exchanged for another",
        }, given["neighbors"]),
        field("growth", "growth", given["growth"], slider=SLIDERS["growth"], inputmode="numeric",
              placeholder="no bound", hint="The most candidates that one individual can affect."),
        field("success", "wanted probability", given["success"], inputmode="decimal"),
    ]  # fmt: skip
    return (
        '<form id="plan" class="panel" action="/plan" method="get" hx-get="/plan" '
        'hx-target="#result" hx-trigger="input delay:80ms, submit" '
        'hx-sync="this:replace" hx-indicator="#result-box" aria-label="What to plan for">'
        f'{"".join(parts)}<p class="buttons"><button type="submit">Update</button> '
        '<a class="button quiet" href="/plan">Start over</a></p></form>'
    )
