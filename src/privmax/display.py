"""How values are shown: labels in words and in JSON, and small tables for notebooks.

A label is data, and may look like markup, like a formula or like a command to a terminal. Every
text that enters a table is escaped here. The tables set no colors, so that they are read on light
and dark pages alike.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, time
from html import escape
from math import isfinite
from unicodedata import category

UNSEEN = ("Cc", "Cf", "Cs", "Zl", "Zp")
"""Categories of characters that move the cursor, turn the direction of writing, or are not seen."""

BLANKS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
"""Letters, marks and symbols of other categories that show as nothing: two labels that differ in
one of them would look alike.
"""

MOST = 20
"""Lines that a cell of a table for notebooks has at most."""

LONGEST = 300
"""Characters that a line of such a cell has at most."""

_LEFT = "text-align:left;vertical-align:top"
_RIGHT = "text-align:right;vertical-align:top"


def portable(value: object) -> object:
    """Return what is left of a value in JSON, where that has no type for it.

    Dates become ISO text, bytes hexadecimal digits, and numbers of NumPy those of Python.

    Examples:
        >>> portable(date(2026, 11, 16)), portable(b"ab"), portable(12)
        ('2026-11-16', '6162', 12)
    """
    if type(value).__module__ == "numpy" and hasattr(value, "item"):
        return portable(value.item())
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, bytes):
        return value.hex()
    return value if isinstance(value, int | float | str | None) else str(value)


def in_words(item: object) -> str:
    r"""Return an item as people read it.

    What cannot be printed is spelled out: a label is data, and could forge a line. The empty text
    is two quotes.

    Examples:
        >>> in_words(("tea", 12)), in_words("a\nb"), in_words("")
        ('tea, 12', 'a\\nb', '""')
    """
    if isinstance(item, tuple):
        return ", ".join(map(in_words, item))
    text = str(portable(item))
    return spell_out(text) if text else '""'


def spell_out(text: str, *, keep: str = "") -> str:
    r"""Return a text in which nothing is unseen: the one rule for terminals and for pages.

    Escape sequences of a terminal, marks that turn the direction of writing (U+202E), characters
    without width, halves of characters and line breaks are written as Python writes them.

    Args:
        text: Any text, perhaps somebody else's.
        keep: Characters that are left as they are, such as a line break between lines of ours.

    Examples:
        >>> print(spell_out("a\x1b[31mb\u202ec"), spell_out("two\nlines", keep="\n"))
        a\x1b[31mb\u202ec two
        lines
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(ascii(c)[1:-1] if _is_unseen(c) and c not in keep else c for c in text)


def _is_unseen(character: str) -> bool:
    return category(character) in UNSEEN or character in BLANKS


def to_json(value: object) -> str:
    r"""Return a value as JSON on one line, in which nothing is unseen.

    Examples:
        >>> print(to_json({"item": "té\u200ba", "when": date(2026, 11, 16)}))
        {"item": "té\u200ba", "when": "2026-11-16"}
    """
    text = json.dumps(_finite(value), ensure_ascii=False, default=portable)
    return "".join(json.dumps(c)[1:-1] if _is_unseen(c) else c for c in text)


def _finite(value: object) -> object:
    """The same without infinities and NaN, which are text in JSON: it has no such numbers."""
    if isinstance(value, Mapping):
        return {name: _finite(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(one) for one in value]
    return str(value) if isinstance(value, float) and not isfinite(value) else value


def facts(title: str, rows: Mapping[str, str | Sequence[str]], *notes: str) -> str:
    """Return names and what stands beside them as HTML, for notebooks.

    Args:
        title: What stands above.
        rows: A text, or lines, by name. Empty ones are left out.
        notes: What stands below.

    Examples:
        >>> print(facts("Cost", {"epsilon": "<1"}))
        <div ...<b>Cost</b>...>epsilon</th><td ...><bdi>&lt;1</bdi></td>...</div>
    """
    body = "".join(
        f'<tr><th style="{_LEFT}">{_text(name)}</th><td style="{_LEFT}">{_lines(value)}</td></tr>'
        for name, value in rows.items()
        if value
    )
    return _frame(title, body, notes)


def table(
    title: str,
    headings: Sequence[str],
    rows: Iterable[Sequence[str]],
    *notes: str,
    numbers: Iterable[int] = (),
) -> str:
    """Return a table as HTML, for notebooks.

    Args:
        title: What stands above.
        headings: Of the columns.
        rows: As texts.
        notes: What stands below.
        numbers: Which columns stand at the right.

    Examples:
        >>> print(table("Two", ["a", "b"], [["1", "<i>"]], numbers=[0]))
        <div ...<b>Two</b>...<td style="text-align:right...><bdi>&lt;i&gt;</bdi></td></tr>...</div>
    """
    right = set(numbers)
    styles = [_RIGHT if place in right else _LEFT for place in range(len(headings))]

    def line(kind: str, cells: Sequence[str]) -> str:
        told = zip(styles, cells, strict=True)
        shown = (f'<{kind} style="{style}">{_lines(cell)}</{kind}>' for style, cell in told)
        return f"<tr>{''.join(shown)}</tr>"

    return _frame(title, line("th", headings) + "".join(line("td", row) for row in rows), notes)


def _frame(title: str, body: str, notes: Sequence[str]) -> str:
    # Notebooks set what stands between dollar signs as mathematics, unless these classes say no.
    below = "".join(f"<div>{_text(note)}</div>" for note in notes)
    return (
        f'<div class="privmax tex2jax_ignore mathjax_ignore"><b>{_text(title)}</b>'
        f"<table><tbody>{body}</tbody></table>{below}</div>"
    )


def _lines(value: str | Sequence[str]) -> str:
    if isinstance(value, str):
        return f"<bdi>{_text(value)}</bdi>"
    shown = [f"<bdi>{_text(line)}</bdi>" for line in value[:MOST]]
    more = len(value) - len(shown)
    return "<br>".join([*shown, f"… and {more:,} more"] if more else shown)


def _text(value: str) -> str:
    """Any text, as text: nothing in it is markup, and what cannot be seen is spelled out."""
    cut = value if len(value) <= LONGEST else f"{value[:LONGEST]}…"
    return escape(in_words(cut)) if cut else ""
