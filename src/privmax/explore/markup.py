"""The frame of all pages, and the pieces of forms. Every text that enters is escaped here or in
`privmax.report.markup`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib.resources import files

from privmax.report.markup import text

TABS = {
    "plan": "Plan",
    "try": "Try",
    "ask": "Ask",
    "history": "History",
    "handover": "Hand over",
}
"""The pages, in the order in which they are used."""

HTMX = (
    '{"allowEval":false,"allowScriptTags":false,"includeIndicatorStyles":false,'
    '"selfRequestsOnly":true,"historyCacheSize":0,"timeout":60000}'
)
"""How htmx is set up: nothing is evaluated, no style is added, nothing is asked of others, and no
page is kept in the browser."""

ASSETS = {
    "explore.css": "text/css",
    "explore.js": "text/javascript",
    "htmx-2.0.11.min.js": "text/javascript",
}
"""What pages load, by name."""


def asset(name: str) -> bytes:
    return files(__package__).joinpath("assets", name).read_bytes()


def frame(tab: str, title: str, *parts: str, banner: str = "", foot: str = "") -> str:
    """A whole page. `parts`, `banner` and `foot` are markup."""
    links = "".join(
        f'<li><a href="/{name}"{" aria-current=page" if name == tab else ""}>{words}</a></li>'
        for name, words in TABS.items()
    )
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="htmx-config" content="{escape(HTMX)}">
<title>{text(title)} · privmax explore</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="/assets/explore.css">
<script src="/assets/htmx-2.0.11.min.js" defer></script>
<script src="/assets/explore.js" defer></script>
</head>
<body>
<a class="skip" href="#main">Skip to the page</a>
<header class="bar"><span class="brand">privmax <b>explore</b></span>
<nav aria-label="Pages"><ul>{links}</ul></nav></header>
{banner}
<main id="main" tabindex="-1">
<h1>{text(title)}</h1>
{"".join(parts)}
</main>
<footer>{foot}</footer>
</body>
</html>
"""


def hidden(**values: object) -> str:
    return "".join(
        f'<input type="hidden" name="{text(name)}" value="{text(value)}">'
        for name, value in values.items()
    )


def field(
    name: str,
    label: str,
    value: object,
    *,
    hint: str = "",
    slider: Mapping[str, object] | None = None,
    **attributes: object,
) -> str:
    """A field for a number or a word; with `slider`, a slider above it that sets it.

    Args:
        name: Of the field.
        label: What stands above it.
        value: What it holds.
        hint: What stands below it.
        slider: `least` and `most`, and `scale`: "log" or "linear".
        attributes: More attributes of the field.
    """
    about = f' aria-describedby="{name}-hint"' if hint else ""
    more = "".join(f' {key.rstrip("_")}="{text(one)}"' for key, one in attributes.items())
    shown = "" if value is None else text(value)
    drag = ""
    if slider is not None:
        drag = (
            f'<input type="range" min="0" max="200" step="1" data-for="{name}" '
            f'data-least="{text(slider["least"])}" data-most="{text(slider["most"])}" '
            f'data-scale="{text(slider["scale"])}" aria-label="{text(label)}, slider">'
        )
    below = f'<p class="hint" id="{name}-hint">{hint}</p>' if hint else ""
    return (
        f'<div class="field"><label for="{name}">{text(label)}</label>{drag}'
        f'<input id="{name}" name="{name}" value="{shown}" autocomplete="off"{about}{more}>'
        f"{below}</div>"
    )


def choice(
    name: str,
    label: str,
    options: Mapping[str, str],
    chosen: str,
    *,
    hint: str = "",
) -> str:
    """A list to choose one of."""
    listed = "".join(
        f'<option value="{text(value)}"{" selected" if value == chosen else ""}>{text(words)}'
        "</option>"
        for value, words in options.items()
    )
    about = f' aria-describedby="{name}-hint"' if hint else ""
    below = f'<p class="hint" id="{name}-hint">{hint}</p>' if hint else ""
    return (
        f'<div class="field"><label for="{name}">{text(label)}</label>'
        f'<select id="{name}" name="{name}"{about}>{listed}</select>{below}</div>'
    )


def check(name: str, label: str, value: str, is_on: bool) -> str:
    """A box to tick."""
    place = text(f"{name}-{value}")
    return (
        f'<div class="check"><input type="checkbox" id="{place}" name="{text(name)}" '
        f'value="{text(value)}"{" checked" if is_on else ""}>'
        f'<label for="{place}">{text(label)}</label></div>'
    )


def boxes(legend: str, *parts: str) -> str:
    """Boxes to tick that belong together."""
    return f'<fieldset class="boxes"><legend>{text(legend)}</legend>{"".join(parts)}</fieldset>'


def copyable(words: str, label: str) -> str:
    """Something to copy, with a button that does."""
    return (
        f'<div class="copy"><h3>{text(label)}</h3><pre tabindex="0"><code>{text(words)}</code>'
        f'</pre><button type="button" class="quiet" data-copy aria-label="Copy: {text(label)}">Copy'
        "</button></div>"
    )


def notice(words: str, kind: str = "note") -> str:
    """A box with something to know; `words` is markup. An error is read out at once."""
    role = "alert" if kind == "error" else "note"
    return f'<div class="notice {kind}" role="{role}">{words}</div>'


def working() -> str:
    """What is seen while a page computes, from 200 ms on."""
    return '<p class="working" role="status"><span>Working …</span></p>'


def rows(headings: Sequence[str], cells: Iterable[Sequence[str]], caption: str) -> str:
    """A table whose cells are markup. A heading that begins with “#” stands above numbers."""
    head = "".join(
        f'<th scope="col" class="number">{text(one[1:])}</th>'
        if one.startswith("#")
        else f'<th scope="col">{text(one)}</th>'
        for one in headings
    )
    body = "".join(
        "<tr>"
        + "".join(one if one.startswith("<t") else f"<td>{one}</td>" for one in line)
        + "</tr>"
        for line in cells
    )
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{text(caption)}"><table>'
        f"<caption>{text(caption)}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody>"
        "</table></div>"
    )


def number(shown: str) -> str:
    """A cell with a number."""
    return f'<td class="number">{text(shown)}</td>'
