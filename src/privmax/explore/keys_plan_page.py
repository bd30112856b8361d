"""Plan keys: how many individuals a key must have to be found, before any data is touched."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import log10
from typing import Any, ClassVar

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from privmax.errors import ParameterError, PrivmaxError
from privmax.explore import drawing
from privmax.explore.plan_page import SLIDERS, Question
from privmax.explore.state import Explorer, fields, is_part, render_part, too_slow
from privmax.explore.work import SlowError
from privmax.keyset.release import PER_USER

DEFAULTS = {"epsilon": "1", "delta": "1e-6", "per_user": str(PER_USER), "success": "0.95"}
"""The values of the form at first."""


@dataclass(frozen=True)
class KeysQuestion(Question):
    """The question of the form: what is planned for."""

    page: ClassVar[str] = "plan/keys"
    defaults: ClassVar[Mapping[str, str]] = DEFAULTS
    usual: ClassVar[Mapping[str, object]] = {"per_user": PER_USER, "success": "0.95"}
    function: ClassVar[str] = "plan_keys"
    typed: ClassVar[str] = "privmax plan --keys"

    def options(self) -> dict[str, Any]:
        """Return arguments of `privmax.plan_keys`. Raises ParameterError for an invalid field."""
        for name in ("epsilon", "delta", "success"):
            if not self.given[name]:
                raise ParameterError.required(name, "", f"For example {DEFAULTS[name]}.")
        return {
            "epsilon": self.given["epsilon"],
            "delta": self.given["delta"],
            "per_user": self._whole("per_user") or PER_USER,
            "success": self.given["success"],
        }


async def show(explorer: Explorer, request: Request) -> Response:
    """The page, or only its result where the form has changed."""
    question = KeysQuestion.of(fields(request))
    result = await _result(explorer, request, question)
    if is_part(request):
        part = render_part("keys_plan_result.html", **result)
        return HTMLResponse(part, headers={"HX-Replace-Url": question.address()})
    return explorer.page("keys_plan.html", "plan", "Plan keys", sliders=SLIDERS, **result)


async def _result(explorer: Explorer, request: Request, question: KeysQuestion) -> dict[str, Any]:
    """Return the plan, or a notice that explains why there is none."""
    try:
        planned = await explorer.compute(
            request, "plan keys", question.options(), key=("keys", *question.key)
        )
    except SlowError:
        return {"question": question, "problem": too_slow()}
    except PrivmaxError as error:
        return {"question": question, "problem": explorer.refusal(error)}
    return {
        "question": question,
        "problem": None,
        "plan": planned,
        "longest": max(row["several"] for row in planned["rows"]),
        "picture": _lay_out(planned),
        "ask_address": question.address("ask", kind="keys"),
        "here": str(request.base_url).rstrip("/"),
    }


def _lay_out(planned: Mapping[str, Any]) -> drawing.Picture:
    """Both axes grow by factors: ten individuals more matter at 20, and not at 4,000."""
    curves = {
        name: [(log10(number), log10(people)) for number, people in line]
        for name, line in planned["curves"].items()
    }
    points = [point for line in planned["curves"].values() for point in line]
    numbers, people = (_powers(max(place)) for place in zip(*points, strict=True))
    return drawing.lay_out(
        curves,
        title="How many individuals a key must have",
        across="keys of each individual",
        up="individuals that a key must have, growing by factors",
        marked=log10(planned["per_user"]),
        heights=people,
        ticks=numbers,
    )


def _powers(most: int) -> list[tuple[float, str]]:
    """Return the powers of ten up to a number: where they are, and how they are written."""
    return [(float(power), f"{10**power:,}") for power in range(len(str(most)))]
