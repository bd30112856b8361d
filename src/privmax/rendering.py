"""Pages from templates: one environment, in which every value is escaped.

A label is data, and may look like markup, like a template or like a command to a terminal. Whatever
a template shows is text: what cannot be seen is spelled out, and then markup is escaped. Templates
are filled in once, so that what a value has is never taken for a template.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from privmax.display import escape_text
from privmax.numbers import round_down, round_up

if TYPE_CHECKING:
    from jinja2 import Environment


def render(name: str, /, **values: object) -> str:
    """Return a template of the package with its values filled in.

    Args:
        name: Its path in the package, such as "report/templates/release.html".
        values: What it shows, by name. One that it needs and does not get is an error.

    Examples:
        >>> print(render("templates/notebook.html", title="<b>", rows=[], notes=[]))
        <div ...><b>&lt;b&gt;</b>...</div>
    """
    return environment().get_template(name).render(values)


@cache
def environment() -> Environment:
    """Return the environment of all templates. It is made when the first page is."""
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    made = Environment(
        loader=FunctionLoader(_read),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_finalize,
        auto_reload=False,
    )
    escape = made.filters["escape"]
    made.filters.update(
        round_up=round_up,
        round_down=round_down,
        thousands="{:,}".format,
        lines=lambda text: escape(escape_text(text, keep="\n")),
        verbatim=escape,  # what a form sends back must be what was typed
    )
    return made


def _read(name: str) -> str:
    from importlib.resources import files

    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _finalize(value: object) -> object:
    """Spell out what cannot be seen in a value, unless it is escaped markup already."""
    return value if hasattr(value, "__html__") else escape_text(str(value))
