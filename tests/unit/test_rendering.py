"""Templates: whatever they show is text, none of them opens a way around that, and no Python file
builds HTML.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest
from jinja2 import UndefinedError, nodes

import privmax
from privmax.rendering import environment, render

PACKAGE = Path(privmax.__file__).parent
TEMPLATES = sorted(one.relative_to(PACKAGE).as_posix() for one in PACKAGE.rglob("templates/*.html"))

HOSTILE = [
    "<script>alert(1)</script>",
    "\"' onmouseover=alert(1) x='",
    "</textarea></title></style><img src=x onerror=alert(1)>",
    "{{ 7*7 }}",
    "{% raw %}{# {% endraw %}",
    "\u202eright to left\u2066",
    "a\x00b\x1b[2J\nc\ud800",
    "&lt;b&gt;&amp;",
]

ALLOWED = {
    ("report/templates/pieces.html", "safe"): "SVG of `privmax.plots.svg`, which escapes its words",
    ("explore/templates/handover.html", "lines"): "YAML has lines; it is escaped",
    ("explore/templates/try.html", "verbatim"): "a form sends it back as typed; it is escaped",
}
"""Where a template uses a filter that returns markup, and why."""

BUILDERS = {"plots.py"}
"""Files that write markup: matplotlib draws a picture, and its title is put into it, escaped."""

CHOSEN = ("few", "many", "medium", "long", "good", "warning", "error", "htmx-request")
CHOSEN += ("s0", "s1", "s2", "s3", "s4")
"""Classes that Python or htmx chooses."""

DANGEROUS = {"safe", "escape", "e", "forceescape", "xmlattr", "tojson", "urlize", "striptags"}
DANGEROUS |= {"lines", "verbatim"}
"""Filters that return markup, and so pass by what spells out unseen characters."""

TAG = re.compile(
    r"</?(?:a|b|bdi|br|button|code|dd|div|dl|dt|em|figure|form|h[1-6]|html|i|img|input|label|li|ol|"
    r"option|p|pre|script|section|select|span|strong|style|su[bp]|svg|table|tbody|td|th|thead|tr|"
    r"ul|var)(?:\s[^<>]*)?/?>|&(?:nbsp|lt|gt|amp|quot|#\w+);"
)


def source(name: str) -> str:
    return (PACKAGE / name).read_text(encoding="utf-8")


class Shape(HTMLParser):
    """Elements, their attributes, and the text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, list[str]]] = []
        self.values: list[str] = []
        self.text = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, [name for name, _ in attrs]))
        self.values += [value or "" for _, value in attrs]

    def handle_data(self, data):
        self.text += data


# what is shown


@pytest.mark.parametrize("label", HOSTILE)
def test_a_value_is_text_between_tags_and_in_attributes(label):
    template = '<p title="{{ it }}">{{ it }}<i>{{ [it, it]|join(", ") }}</i>{{ "a " ~ it }}</p>'
    found = Shape(environment().from_string(template).render(it=label))
    assert found.tags == [("p", ["title"]), ("i", [])]
    shown = "".join(ascii(c)[1:-1] if c in "\x00\x1b\n\u202e\u2066\ud800" else c for c in label)
    assert found.values == [shown]
    assert found.text == f"{shown}{shown}, {shown}a {shown}"


@pytest.mark.parametrize("label", HOSTILE)
def test_lines_and_forms_keep_what_they_must_and_no_more(label):
    show = environment().from_string("<pre>{{ it|lines }}</pre><i title='{{ it|verbatim }}'></i>")
    found = Shape(show.render(it=label))
    assert [tag for tag, _ in found.tags] == ["pre", "i"]
    assert found.values == [label]
    assert "\x1b" not in found.text
    assert found.text.count("\n") == label.count("\n")


def test_a_value_that_is_missing_is_an_error():
    with pytest.raises(UndefinedError, match="title"):
        render("templates/notebook.html", rows=[], notes=[])


def test_the_style_of_a_report_is_the_file():
    """It is included as a template: nothing in it may look like one."""
    style = source("report/templates/page.css")
    assert environment().get_template("report/templates/page.css").render() == style.rstrip("\n")


@pytest.mark.parametrize(
    ("style", "folder"),
    [("report/templates/page.css", "report"), ("explore/assets/explore.css", "explore")],
)
def test_every_class_of_a_style_is_on_a_page(style, folder):
    """A class that a template loses would leave its rule behind."""
    rules = re.sub(r"/\*.*?\*/|\{[^{}]*\}", "", source(style), flags=re.DOTALL)
    pages = [source(name) for name in TEMPLATES if name.startswith((folder, "report/templates/pi"))]
    words = set(
        re.findall(r"[\w-]+", " ".join([*pages, *CHOSEN, source("explore/assets/explore.js")]))
    )
    classes = set(re.findall(r"\.([a-zA-Z][\w-]*)", rules))
    assert len(classes) > 10
    assert classes <= words


# what templates may do


def faults(name: str, written: str) -> Iterator[str]:
    """How a template could let a value be more than text."""
    tree = environment().parse(written)
    for one in tree.find_all(nodes.Filter):
        if one.name in DANGEROUS and (name, one.name) not in ALLOWED:
            yield f"filter {one.name}"
    for kind in (nodes.EvalContextModifier, nodes.MarkSafe, nodes.MarkSafeIfAutoescape):
        yield from (f"{kind.__name__}" for _ in tree.find_all(kind))
    if "Markup" in written:
        yield "Markup"
    for found in re.findall(r"(?<=\s)[\w-]+=\{\{", written):
        yield f"attribute without quotes: {found}"
    for tag in ("script", "style"):
        for body in re.findall(rf"<{tag}\b[^>]*>(.*?)</{tag}>", written, re.DOTALL):
            if "{{" in body:
                yield f"value within {tag}"
    for value in re.findall(r'\b(?:href|src|action|hx-get|hx-post)="([^"]*\{\{[^"]*)', written):
        if not value.startswith("/") and not re.match(r"\{\{ [\w.]*address\b", value):
            yield f"address that is not of these pages: {value}"
    for found in re.findall(r"\bon\w+=|\bstyle=\"[^\"]*\{\{(?! cell\.align)", written):
        yield f"attribute that runs or styles: {found}"


@pytest.mark.parametrize("name", TEMPLATES)
def test_no_template_opens_a_way_around(name):
    assert list(faults(name, source(name))) == []


def test_all_templates_are_looked_at():
    assert {"report/templates/release.html", "explore/templates/ask.html"} <= set(TEMPLATES)
    assert "templates/notebook.html" in TEMPLATES
    for name, filter_ in ALLOWED:  # the list is not longer than it must be
        assert source(name).count(f"|{filter_}") == 1


@pytest.mark.parametrize(
    "planted",
    [
        "{{ label|safe }}",
        "{{ label|e }}",
        "{% autoescape false %}{{ label }}{% endautoescape %}",
        "<p class={{ label }}>",
        "<script>const label = '{{ label }}'</script>",
        '<a href="{{ label }}">',
        '<p onclick="x()">',
        '<p style="{{ label }}">',
        "{{ Markup(label) }}",
    ],
)
def test_a_way_around_would_be_found(planted):
    assert list(faults("explore/templates/ask.html", planted))


# no HTML in Python


def markup_in(written: str) -> list[str]:
    """Strings of a Python file that hold markup, without docstrings."""
    tree = ast.parse(written)
    documentation = {
        id(node.value) for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }  # fmt: skip
    texts = [
        node.value for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        and id(node) not in documentation
    ]  # fmt: skip
    return [text for text in texts if TAG.search(text)]


def test_no_python_file_builds_html():
    files = [file for file in PACKAGE.rglob("*.py") if file.name not in BUILDERS]
    assert len(files) > 200
    assert {
        file.name: found for file in files if (found := markup_in(file.read_text("utf-8")))
    } == {}


@pytest.mark.parametrize(
    "planted",
    [
        'page = f"<p>{label}</p>"',
        "page = '<td class=\"number\">' + label",
        'page = "{}</div>".format(label)',
        'page = f"ε&nbsp;=&nbsp;{epsilon}"',
    ],
)
def test_html_in_python_would_be_found(planted):
    assert markup_in(planted)
    assert not markup_in(
        f"def f():\n    {planted.partition(' = ')[2].lstrip('f')!r}"
    )  # documentation
