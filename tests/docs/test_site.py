"""The built site: every link leads somewhere on it, nothing outside is asked for, every public name
is described.
"""

from __future__ import annotations

import ast
import re
import sys
import zlib
from html import unescape
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import unquote, urldefrag, urlsplit

import pytest
from matplotlib.ft2font import FT2Font

import privmax
import privmax.itemsets
import privmax.learning
import privmax.ledger
import privmax.report
from privmax.mechanisms import __path__ as mechanism_folders
from privmax.mechanisms.registry import MECHANISMS

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tools"))

import docstrings  # noqa: E402  # the tools are scripts, not a package
import mechanisms  # noqa: E402
import website  # noqa: E402

pytestmark = pytest.mark.slow  # the site is built

CHECKED = [*mechanisms.selectors(), *mechanisms.blocks(), *mechanisms.methods()]
ASKED = re.compile(
    r"<(?:script|img|iframe|source|link|use|object)\b[^>]*?\b(?:src|href|data)=\"([^\"]*)\""
)
LED = re.compile(r"<a\b[^>]*?\bhref=\"([^\"]*)\"")
ANCHOR = re.compile(r"\s(?:id|name)=\"([^\"]*)\"")


def pages(site):
    """The text of every page, by its path from the root of the site; that of a missing page is used
    at any address.
    """
    found = {
        str(page.relative_to(site)): page.read_text(encoding="utf-8")
        for page in site.rglob("*.html")
    }
    del found["404.html"]
    assert len(found) > 100
    return found


def test_no_page_asks_for_anything_outside(site):
    texts = [
        *pages(site).values(),
        *(sheet.read_text(encoding="utf-8") for sheet in site.glob("stylesheets/*.css")),
    ]
    for text in texts:
        for address in [*ASKED.findall(text), *re.findall(r"url\(\"?([^\")]*)", text)]:
            assert not urlsplit(address).netloc, address


def test_every_link_leads_somewhere(site):
    texts = pages(site)
    anchors = {
        name: {unescape(anchor) for anchor in ANCHOR.findall(text)} for name, text in texts.items()
    }
    dead = set()
    for name, text in texts.items():
        for address in {unescape(address) for address in LED.findall(text)}:
            assert not urlsplit(address).scheme, f"{name} leads outside: {address}"
            path, anchor = map(unquote, urldefrag(address))
            target = (site / name).parent.joinpath(path).resolve() if path else site / name
            there = str(target.relative_to(site.resolve())) if path else name
            if target.is_dir():
                there = str(Path(there) / "index.html")
            if not (site / there).is_file() or (anchor and anchor not in anchors.get(there, ())):
                dead.add((name, address))
    assert not dead


def described(site):
    """The names in the inventory of the reference."""
    data = (site / "objects.inv").read_bytes().split(b"\n", 4)[4]
    return {line.split(" ", 1)[0] for line in zlib.decompress(data).decode().splitlines()}


PACKAGES = [privmax, privmax.itemsets, privmax.learning, privmax.ledger, privmax.report]


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.__name__)
def test_every_public_name_is_described(site, package):
    names = described(site)
    assert "privmax.selection.select" in names
    for name in package.__all__:
        value = getattr(package, name)
        home = getattr(value, "__module__", None)
        if isinstance(value, type) or callable(value):
            assert f"{home}.{name}" in names
        else:
            assert any(
                path.startswith("privmax.") and path.endswith(f".{name}") for path in names
            ), name


def test_the_table_of_mechanisms_is_complete():
    assert [row.made for row in mechanisms.selectors()] == [
        entry.load() for entry in MECHANISMS.values()
    ]
    assert [row.made for row in mechanisms.methods()] == [*privmax.itemsets.METHODS.values()]
    (folder,) = mechanism_folders
    without = {
        "__init__",
        "contract",
        "entries",
        "registry",
        "weights",
        "guards",
        "peeling",
        "arrivals",
        "cells",
        "sets",
        "stages",
        "stored_leads",
    }  # they hold no mechanism
    files = {path.stem for path in Path(folder).glob("*.py")} - without
    assert {Path(row.source).stem for row in CHECKED if "/mechanisms/" in row.source} == files
    assert {row.made.__name__ for row in CHECKED} == mechanisms.AUDITS.keys()


def test_the_table_of_mechanisms_is_fresh():
    text = (ROOT / "docs/reference/mechanisms.md").read_text(encoding="utf-8")
    assert text == mechanisms.page(), "./dev python tools/pages.py"


@pytest.mark.parametrize("row", CHECKED, ids=lambda row: row.made.__name__)
def test_proof_source_and_audit_of_a_mechanism_belong_to_it(row):
    proof = (ROOT / row.proof).read_text(encoding="utf-8")
    assert re.search(rf"^\| `{re.escape(row.path)}[.`]", proof, re.MULTILINE), (
        "the proof does not cover it"
    )
    assert f"`{row.audit}`" in proof.split("## Tests")[1]
    assert re.search(
        rf"^class {row.made.__name__}\b",
        (ROOT / row.source).read_text(encoding="utf-8"),
        re.MULTILINE,
    )
    file, name = row.audit.split("::")
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    assert row.made.__name__ in {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


@pytest.mark.parametrize("row", CHECKED, ids=lambda row: row.made.__name__)
def test_a_mechanism_links_its_entry_its_proof_its_source_and_its_audit(site, row):
    """In the table and in its own entry. That links lead somewhere is tested above."""
    file, name = row.audit.split("::")
    entry = f"{Path(row.page).stem}.html#{row.path}"
    proof = f"../proofs/{Path(row.proof).stem}.html"
    source, audit = f"../source/{row.source}.html", f"../source/{file}.html#{name}"
    table = (site / "reference/mechanisms.html").read_text(encoding="utf-8")
    (cells,) = [LED.findall(line) for line in table.split("</tr>") if f'href="{entry}"' in line]
    assert cells == [entry, proof, source, audit]
    text = (site / f"reference/{Path(row.page).stem}.html").read_text(encoding="utf-8")
    begin = text.index(f'id="{row.path}"')
    links = LED.findall(text[begin : text.index(audit, begin) + len(audit) + 2])
    assert links[-3:] == [proof, f"{source}#{row.made.__name__}", audit]


def test_source_stands_on_the_site_as_it_is(site):
    page = (site / "source/src/privmax/mechanisms/sharp_margin.py.html").read_text(encoding="utf-8")
    shown = re.search(
        r'<div class="source highlight"><pre><code>(.*?)</code></pre>', page, re.DOTALL
    )[1]
    lines = [
        unescape(re.sub(r"<[^>]+>", "", line)) for line in shown.split('<span class="line"')[1:]
    ]
    text = (ROOT / "src/privmax/mechanisms/sharp_margin.py").read_text(encoding="utf-8")
    assert [re.sub(r'^(?: id="[^"]*")?>', "", line) for line in lines] == text.splitlines()
    assert '<span class="line" id="SharpMargin.draw">' in page


def test_fonts_have_every_sign_that_pages_use():
    """Blocks of code and formulas are set in the fixed-width font, whose signs are all of one
    width.
    """
    files = [str(website.font_folder() / name) for name in (website.MONO, website.SANS)]
    mono, sans = (
        {*map(chr, FT2Font(file).get_charmap()), *website.LACKING, "\n"} for file in files
    )
    for path in (ROOT / "src").rglob("*.py"):
        assert set(path.read_text(encoding="utf-8")) <= mono, path
    for path in [*(ROOT / "docs").rglob("*.md"), *(ROOT / "lab").rglob("*.md")]:
        text = path.read_text(encoding="utf-8")
        assert set(text) <= sans | mono, path
        blocks = [
            *re.findall(r"^    .*$", text, re.MULTILINE),
            *(match[0] for match in website.FENCE.finditer(text)),
        ]
        assert set("".join(blocks)) <= mono, path


class Pages(dict):
    """Files of a site, as far as hooks ask for them."""

    def get_file_from_path(self, uri):
        return self.get(uri)


def led(text, uri="howto/x.md", **known):
    page = SimpleNamespace(file=SimpleNamespace(src_uri=uri), meta={})
    return website.on_page_markdown(text, page=page, config=None, files=Pages(known))


@pytest.mark.parametrize(
    ("uri", "link", "expected"),
    [
        ("howto/x.md", "../promises.md#timing", "../promises.md#timing"),
        ("README.md", "../lab/benchmarks/README.md", "lab/benchmarks.md"),
        ("lab/benchmarks.md", "../../docs/paper.md", "../paper.md"),
        ("reference/m.md", "../../src/privmax/profile.py", "../source/src/privmax/profile.py.md"),
    ],
)
def test_links_of_files_lead_to_pages(uri, link, expected, caplog):
    known = ("promises.md", "lab/benchmarks.md", "paper.md", "source/src/privmax/profile.py.md")
    there = {path: object() for path in known}
    assert led(f"[a]({link})\n", uri, **there) == f"[a]({expected})\n"
    assert not caplog.records


def test_a_dead_link_is_a_warning_and_so_a_failure_of_the_build(caplog):
    led("[a](../nowhere.md)")
    assert "which is not on the site" in caplog.text


def test_blocks_stay_as_they_are_but_for_what_tests_call_them():
    text = "```python postgres\nf(x)[0](y.md)  # a b\n```\n"
    assert led(text) == text.replace(" postgres", "")
    assert led("```\na b\n```\n") == "```\na b\n```\n"


def test_columns_of_a_docstring_become_definitions():
    text = (
        "Sum.\n\nleft    what a call\n        ends with\nright   see docs/paper.md\n\n    p_j "
        "   q_j"
    )
    text += "\n\nProof:  docs/proofs/race.md"
    assert docstrings.shown(text) == (
        "Sum.\n\n`left`\n:   what a call\n    ends with\n\n`right`\n:   see `docs/paper.md`\n\n    "
        "p_j    q_j\n\n"
        "Proof\n:   `docs/proofs/race.md`"
    )
