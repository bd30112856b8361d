"""Try: a hundred draws on invented or shipped data, which is public."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from privmax.errors import ParameterError, PrivmaxError
from privmax.explore.jobs import SAMPLES
from privmax.explore.state import Explorer, fields, is_part, render_part, too_slow
from privmax.explore.work import SlowError
from privmax.planning.comparison import percent
from privmax.samples import NAMES
from privmax.universe import OPEN, read_whole

INVENTED = "invented"
EXAMPLE = "tea 140\ncoffee 128\nwater 96\njuice 40\nale 12\ncider 7"
MOST_LINES, LONGEST = 500, 20_000
MOST_RANKED = 20
MOST = 100
"""The largest k that is drawn a hundred times."""

SCORE = re.compile(r"[0-9]{1,15}$")

DEFAULTS = {
    "data": INVENTED, "scores": EXAMPLE, "epsilon": "0.2", "delta": "1e-6", "k": "1", "ranked": "",
    "universe": "", "growth": "", "neighbors": "add-remove",
}  # fmt: skip


async def show(explorer: Explorer, request: Request) -> Response:
    """The form, and what came out where it was sent."""
    sent = fields(request)
    given = {key: sent.get(key, default) for key, default in DEFAULTS.items()}
    if "scores" not in sent and given["data"] not in SAMPLES:
        given["data"] = INVENTED
    result: dict[str, Any] = {"problem": None, "found": None, "percent": percent}
    if "draw" in sent or is_part(request):
        result |= await _result(explorer, request, given)
    if is_part(request):
        return HTMLResponse(render_part("try_result.html", **result))
    choices = {INVENTED: "scores that I type below"} | {key: NAMES[key] for key in SAMPLES}
    return explorer.page("try.html", "try", "Try", given=given, choices=choices, **result)


async def _result(explorer: Explorer, request: Request, given: Mapping[str, str]) -> dict[str, Any]:
    """Return the result, or a notice that explains why there is none."""
    try:
        data, options = _question(given)
        return {"found": await explorer.compute(request, "try", data, options)}
    except SlowError:
        return {"problem": too_slow()}
    except PrivmaxError as error:
        return {"problem": explorer.refusal(error)}


def _question(given: Mapping[str, str]) -> tuple[dict[str, int] | str, dict[str, Any]]:
    def whole(entry: str) -> int | None:
        return read_whole(entry, given[entry]) if given[entry] not in ("", OPEN) else None

    k = whole("k") or 1
    if given["ranked"] and k > MOST_RANKED:
        raise ParameterError("k", k, f"pages draw up to {MOST_RANKED} in order", "")
    if not 1 <= k <= MOST:
        raise ParameterError("k", k, f"pages draw up to {MOST}", "")
    options: dict[str, Any] = {
        "epsilon": given["epsilon"],
        "delta": given["delta"] or "0",
        "k": k,
        "ranked": bool(given["ranked"]) and k > 1,
        "universe": whole("universe") or OPEN,
        "growth": whole("growth"),
        "neighbors": given["neighbors"],
    }
    if given["data"] != INVENTED:
        if given["data"] not in SAMPLES:
            raise ParameterError("data", given["data"], f"there are {', '.join(SAMPLES)}", "")
        return given["data"], options
    return _scores(given["scores"]), options


def _scores(written: str) -> dict[str, int]:
    """Scores by label, a line each: `tea 140`."""
    if len(written) > LONGEST:
        raise ParameterError("scores", "…", f"it may have {LONGEST:,} characters", "")
    scores: dict[str, int] = {}
    lines = [line.strip() for line in written.splitlines() if line.strip()]
    if not lines or len(lines) > MOST_LINES:
        raise ParameterError("scores", f"{len(lines)} lines", f"give 1 to {MOST_LINES} lines", "")
    for place, line in enumerate(lines, 1):
        match = SCORE.search(line)
        before = "" if match is None else line[: match.start()]
        label = before.rstrip(" \t,;:=")
        if match is None or not label or label == before:
            raise ParameterError("scores", line, f"line {place} must be a name and a number", "")
        if label in scores:
            raise ParameterError("scores", label, "it is listed twice", "")
        scores[label] = int(match[0])
    return scores
