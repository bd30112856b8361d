"""Plan: how clear the best must be, before any data is touched."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from privmax.errors import ParameterError, PrivmaxError
from privmax.explore import drawing
from privmax.explore.jobs import OTHERS
from privmax.explore.state import Explorer, Notice, fields, is_part, render_part, too_slow
from privmax.explore.work import SlowError
from privmax.planning.comparison import percent
from privmax.planning.plans import short
from privmax.privacy import ADD_REMOVE, REPLACE
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
"""The values of the form at first. The empty text: not given."""

RELATIONS = {
    ADD_REMOVE: "add-remove: one individual added or left out",
    REPLACE: "replace: one exchanged for another",
}

SPELLED = {"short": short, "percent": percent}
"""The functions by which templates write leads and shares."""

SLIDERS: dict[str, dict[str, object]] = {
    "epsilon": {"least": 0.05, "most": 10, "scale": "log"},
    "delta": {"least": 1e-12, "most": 1e-2, "scale": "log1"},
    "k": {"least": 1, "most": 100, "scale": "whole"},
    "universe": {"least": 10, "most": 10**12, "scale": "log1"},
    "near": {"least": 1, "most": 1000, "scale": "whole"},
    "growth": {"least": 1, "most": 1000, "scale": "whole"},
    "per_user": {"least": 1, "most": 1000, "scale": "whole"},
    "lead": {"least": 1, "most": 1000, "scale": "whole"},
}
"""The range of each slider. The field beside it takes every other number."""


@dataclass(frozen=True)
class Question:
    """The question of the form: what is planned for.

    Args:
        given: What the form holds.
        page: Where the page is.
        defaults: What its form holds at first.
        usual: What the function takes by default.
        function: The function of privmax that gives the plan.
        typed: The command that prints it, without its options.
    """

    given: Mapping[str, str]

    page: ClassVar[str] = "plan"
    defaults: ClassVar[Mapping[str, str]] = DEFAULTS
    usual: ClassVar[Mapping[str, object]] = {
        "delta": "0", "k": 1, "ranked": False, "universe": OPEN, "near": None,
        "neighbors": ADD_REMOVE, "growth": None, "success": "0.95",
    }  # fmt: skip
    function: ClassVar[str] = "plan"
    typed: ClassVar[str] = "privmax plan"

    @classmethod
    def of(cls, given: Mapping[str, str]) -> Self:
        """The question of a form; what it leaves out is as at first."""
        kept = {name: given.get(name, default)[:LONGEST] for name, default in cls.defaults.items()}
        return cls(kept)

    @property
    def key(self) -> tuple[str, ...]:
        return tuple(self.given[name] for name in self.defaults)

    def address(self, page: str | None = None, **more: object) -> str:
        """The page in this state, and `more` of it; what is as at first is left out."""
        changed = {
            name: value for name, value in self.given.items() if value != self.defaults[name]
        }
        query = urlencode({**changed, **more})
        return f"/{self.page if page is None else page}" + (f"?{query}" if query else "")

    def options(self) -> dict[str, Any]:
        """Return arguments of `privmax.plan`. Raises ParameterError for an invalid field."""
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
        number = read_whole(name, value)
        if number is None or number < 1:
            raise ParameterError(name, value, "it must be a whole number above 0", "For example 1.")
        return number

    def changes(self) -> dict[str, Any]:
        """The options that differ from what the function takes by default."""
        return {
            name: value
            for name, value in self.options().items()
            if name not in self.usual or value != self.usual[name]
        }

    def python(self) -> str:
        """The line of Python that gives this plan."""
        given = ", ".join(f"{name}={value!r}" for name, value in self.changes().items())
        return f"print(privmax.{self.function}({given}))"

    def command(self) -> str:
        """The command that prints this plan."""
        words = [self.typed]
        for name, value in self.changes().items():
            option = f"--{name.replace('_', '-')}"
            words.append(option if value is True else f"{option} {shlex.quote(str(value))}")
        return " ".join(words)


async def show(explorer: Explorer, request: Request) -> Response:
    """The page, or only its result where the form has changed."""
    question = Question.of(fields(request))
    result = await _result(explorer, request, question)
    if is_part(request):
        part = render_part("plan_result.html", **result)
        return HTMLResponse(part, headers={"HX-Replace-Url": question.address()})
    return explorer.page(
        "plan.html", "plan", "Plan", sliders=SLIDERS, relations=RELATIONS, **result
    )


async def show_slow(explorer: Explorer, request: Request) -> Response:
    """The rows of the mechanisms that take a second or more, for htmx."""
    given = request.query_params.get("longest", "")[:9]
    longest = max(int(given), 1) if given.isdecimal() else 1
    slow = await _slow_rows(explorer, request, Question.of(fields(request)))
    return HTMLResponse(render_part("plan_rows.html", longest=longest, **SPELLED, **slow))


async def _slow_rows(explorer: Explorer, request: Request, question: Question) -> dict[str, Any]:
    try:
        planned = await explorer.compute(
            request, "plan", question.options(), question.lead, is_slow=True,
            key=("slow", *question.key),
        )  # fmt: skip
    except SlowError:
        words = (
            "The mechanisms that compute longest are not shown: they take more than 20 seconds "
            "here. The command shows them."
        )
        return {"plan": None, "problem": Notice(words, "warning")}
    except PrivmaxError as error:
        return {"plan": None, "problem": Notice(str(error), "error")}
    return {"plan": planned, "problem": None}


async def _result(explorer: Explorer, request: Request, question: Question) -> dict[str, Any]:
    """Return the plan, or a notice that explains why there is none."""
    try:
        options = question.options()
        planned = await explorer.compute(request, "plan", options, question.lead, key=question.key)
    except SlowError:
        return {"question": question, "problem": too_slow()}
    except PrivmaxError as error:
        return {"question": question, "problem": explorer.refusal(error)}
    longest = max([row["lead"] or 0 for row in planned["rows"]] + [1])
    slow = None
    if planned["later"] and "slow" in request.query_params:
        slow = await _slow_rows(explorer, request, question)
    return {
        "question": question,
        "problem": None,
        "plan": planned,
        "slow": slow,
        "slow_address": question.address("plan/slow", longest=min(longest, 10**8)),
        "longest": longest,
        "headings": [
            "mechanism", "#lead needed", "", f"#misses at a lead of {short(planned['lead'])}",
            "#releases" if options["k"] > 1 else "#falls short by at most", "may abstain",
            "must know",
        ],
        "behind": "everybody else" if question.given["universe"] else f"{OTHERS:,} others",
        "picture": _lay_out(planned) if planned["curves"] else None,
        "here": str(request.base_url).rstrip("/"),
        **SPELLED,
    }  # fmt: skip


def _lay_out(planned: Mapping[str, Any]) -> drawing.Picture:
    curves = {
        name: [(float(lead), misses) for lead, misses in line]
        for name, line in planned["curves"].items()
    }
    return drawing.lay_out(
        curves,
        title="Expected misses by lead",
        across="lead in records",
        up="share of the best that is missed, on average",
        marked=float(planned["lead"]),
        heights=[(0, "0 %"), (0.25, "25 %"), (0.5, "50 %"), (0.75, "75 %"), (1, "100 %")],
    )
