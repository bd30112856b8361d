"""Try: a hundred draws on invented or shipped data, which is public."""

from __future__ import annotations

import re
from collections.abc import Mapping
from html import escape
from typing import Any

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from privmax.errors import ParameterError, PrivmaxError
from privmax.explore import drawing
from privmax.explore.jobs import SAMPLES
from privmax.explore.markup import check, choice, field, notice, number, rows, working
from privmax.explore.state import Explorer, fields, is_part, too_slow
from privmax.explore.work import SlowError
from privmax.planning.comparison import percent
from privmax.report.markup import name, paragraph, text
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
    asked = fields(request)
    given = {key: asked.get(key, default) for key, default in DEFAULTS.items()}
    if "scores" not in asked and given["data"] not in SAMPLES:
        given["data"] = INVENTED
    result = ""
    if "draw" in asked or is_part(request):
        result = await _result(explorer, request, given)
    if is_part(request):
        return HTMLResponse(result)
    return explorer.page(
        "try",
        "Try",
        paragraph(
            "A hundred draws at once on public data: what would come out, and how often nothing. "
            "It costs nothing, because the data is invented."
        ),
        f'<div class="split">{_form(given)}<div id="result-box">{working()}'
        f'<div id="result">{result}</div></div></div>',
    )


async def _result(explorer: Explorer, request: Request, given: Mapping[str, str]) -> str:
    try:
        data, options = _question(given)
        found = await explorer.compute(request, "try", data, options)
    except SlowError:
        return too_slow()
    except PrivmaxError as error:
        return notice(text(explorer.describe(error)), "error")
    return _show(found)


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
    found: dict[str, int] = {}
    lines = [line.strip() for line in written.splitlines() if line.strip()]
    if not lines or len(lines) > MOST_LINES:
        raise ParameterError("scores", f"{len(lines)} lines", f"give 1 to {MOST_LINES} lines", "")
    for place, line in enumerate(lines, 1):
        match = SCORE.search(line)
        before = "" if match is None else line[: match.start()]
        label = before.rstrip(" \t,;:=")
        if match is None or not label or label == before:
            raise ParameterError("scores", line, f"line {place} must be a name and a number", "")
        if label in found:
            raise ParameterError("scores", label, "it stands there twice", "")
        found[label] = int(match[0])
    return found


def _show(found: Mapping[str, Any]) -> str:
    draws, nothing = found["draws"], found["nothing"]
    headings = ["item", "#score", f"#drawn, of {draws}", "", "#exact chance"]
    lines = []
    for label, score, times, chance in found["rows"]:
        lines.append(
            [
                f'<th scope="row">{name(label)}</th>',
                number("–" if score is None else f"{score:,}"),
                number(str(times)),
                f'<td class="wide">{drawing.bar(times / draws)}</td>',
                number("–" if chance is None else percent(chance)),
            ]
        )
    if found["others"]:
        lines.append(['<th scope="row">all others</th>', number(""), number(str(found["others"])),
                      '<td class="wide"></td>', number("")])  # fmt: skip
    lines.append(
        [
            '<th scope="row"><em>no answer</em></th>',
            number(""),
            number(str(nothing)),
            f'<td class="wide">{drawing.bar(nothing / draws)}</td>',
            number("–" if found["none"] is None else percent(found["none"])),
        ]
    )
    sizes = ""
    if found["k"] > 1:
        listed = ", ".join(
            f"{size} items {many} times" for size, many in sorted(found["sizes"].items())
        )
        sizes = paragraph(f"How many came out: {text(listed)}.")
    silent = "never" if not nothing else f"{nothing} times"
    return (
        f'<p class="why" role="status">{draws} draws by <strong>{text(found["mechanism"])}</strong>'
        f" ({text(found['why'])}), each at ε {text(found['cost']['epsilon'])}, δ "
        f"{text(found['cost']['delta'])}. No answer: <strong>{silent}</strong>.</p>{sizes}"
        + rows(headings, lines, f"What came out of {found['candidates']:,} candidates")
    )


def _form(given: Mapping[str, str]) -> str:
    options = {INVENTED: "scores that I type below"} | {key: NAMES[key] for key in SAMPLES}
    written = (
        '<div class="field"><label for="scores">invented scores</label>'
        '<textarea id="scores" name="scores" rows="7" spellcheck="false" '
        f'aria-describedby="scores-hint">{escape(given["scores"])}'
        '</textarea><p class="hint" id="scores-hint">A name and a whole number on each line.</p>'
        "</div>"
    )
    slider = {"least": 0.05, "most": 10, "scale": "log"}
    parts = [
        choice("data", "data", options, given["data"]),
        written,
        field("epsilon", "ε", given["epsilon"], slider=slider, inputmode="decimal"),
        field("delta", "δ", given["delta"], inputmode="decimal"),
        field("k", "how many (k)", given["k"], inputmode="numeric"),
        check("ranked", "their order, too", "yes", bool(given["ranked"])),
        field("universe", "candidates there could be", given["universe"], placeholder="open",
              inputmode="numeric"),
    ]  # fmt: skip
    return (
        '<form class="panel" action="/try" method="get" hx-get="/try" hx-target="#result" '
        'hx-sync="this:replace" hx-indicator="#result-box" aria-label="What to try">'
        f'{"".join(parts)}<input type="hidden" name="draw" value="yes">'
        '<p class="buttons"><button type="submit">Draw a hundred times</button></p></form>'
    )
