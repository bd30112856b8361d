"""Mathematics on the documentation site: a hook of MkDocs, named in mkdocs.yml.

LaTeX between dollar signs becomes MathML when the site is built, so that pages need no script. What
stands between two dollar signs on lines of their own is a formula of its own; `$x$` in running text
is part of its line. GitHub shows the same source in the same way.

The font comes from the package ziamath, which brings STIX Two Math; the site gets the signs that
formulas use. A formula that cannot be read is a warning, so `--strict` fails.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as etree
from functools import cache
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path

from fontTools.subset import Subsetter  # type: ignore[import-untyped]  # they ship no types
from fontTools.ttLib import TTFont  # type: ignore[import-untyped]
from latex2mathml.converter import convert
from markdown import Markdown
from markdown.blockprocessors import BlockProcessor
from markdown.extensions import Extension
from markdown.inlinepatterns import InlineProcessor
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.plugins import get_plugin_logger
from mkdocs.structure.files import File, Files

INLINE = r"(?<![\\\w$])\$(?![\s$])([^$]+?)(?<![\s\\])\$(?![\w$])"
"""A formula in running text. A price in dollars is none: a digit follows one sign, and a letter or
a blank stands before the next.
"""
DISPLAY = re.compile(r"\A\s*\$\$\s(.*?)\s\$\$\s*\Z", re.DOTALL)
SIGNS = (
    (0x20, 0x7F), (0xA0, 0x100), (0x300, 0x340), (0x391, 0x3D7), (0x2010, 0x2040), (0x20D0, 0x20F0),
    (0x2100, 0x2140), (0x2190, 0x21D5), (0x2200, 0x22F2), (0x2308, 0x230C), (0x25CF, 0x25D0),
    (0x1D434, 0x1D468), (0x1D6E2, 0x1D71C),
)  # fmt: skip
"""Ranges of signs that the site's font has. Browsers set a single letter as the slanted one of the
last two ranges.
"""

SPELLINGS = {
    "{aligned}": "{align*}",
    r"\lbrace": r"\{",
    r"\rbrace": r"\}",
    r"\Vert": r"\,\|\,",
}
"""LaTeX that the library does not know, or knows as something else. In running text GitHub takes a
backslash before a sign for an escape, so there braces have names.
"""
THIN = '<mspace width="0.167em" />'
BEFORE = r"\[|&#x0(?:0028|005B|007B|003D|2264|2265|003C|003E|002C|2208);"
"""What stands before a negative number."""
BRACKET = '<mo stretchy="false">(?:&#x00028;|&#x0007B;)'
REPAIRS = [
    (re.compile(pattern), repair)
    for pattern, repair in (
        # signs that the library takes for names of variables
        (r"<mi>(&#x0(?:2308|230A);)</mi>", r'<mo form="prefix" stretchy="false">\1</mo>'),
        (r"<mi>(&#x0(?:2309|230B);)</mi>", r'<mo form="postfix" stretchy="false">\1</mo>'),
        (r"<mi>(:|&#x000B1;)</mi>", r"<mo>\1</mo>"),
        (r"<mi>&#x0007E;</mi>", "<mo>&#x223C;</mo>"),
        # spaces as TeX sets them: none around a slash or a bar, nor after the minus of a negative
        # number, and a thin one beside the name of a function
        (r"<mo>&#x0002F;</mo>", '<mo lspace="0" rspace="0">/</mo>'),
        (r'(<mo stretchy="false")(>&#x0007C;)', r'\1 lspace="0" rspace="0"\2'),
        (rf"((?:{BEFORE})</mo>)<mo>(?=&#x02212;)", r'\1<mo form="prefix">'),
        (r"<mo>(max|min)</mo>", r"<mi>\1</mi>"),
        (r"(</m(?:i|n|frac)>)(?=<mi>(?:ln|exp|tanh|cos)</mi>)", rf"\1{THIN}"),
        (rf"(<mi>(?:ln|max|min)</mi>)(?!{BRACKET}|<mrow|</)", rf"\1{THIN}"),
    )
]
"""What is put right in the MathML that the library writes."""
LONG = 30
"""From how many characters on a formula in running text may be too wide for a phone."""

log = get_plugin_logger("formulas")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Let every page have formulas."""
    config.markdown_extensions.append(Formulas())  # type: ignore[arg-type]  # a name, or an extension itself
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the font that the stylesheet names."""
    files.append(File.generated(config, "fonts/mathematics.woff", content=font()))
    return files


class Formulas(Extension):
    """LaTeX between dollar signs, as MathML."""

    def extendMarkdown(self, md: Markdown) -> None:
        md.inlinePatterns.register(_Inline(INLINE, md), "formula", 185)  # after code, before \
        md.parser.blockprocessors.register(_Display(md.parser), "formulas", 95)  # before code


class _Inline(InlineProcessor):
    def handleMatch(  # type: ignore[override]  # the base class names no types
        self, m: re.Match[str], data: str
    ) -> tuple[str, int, int]:
        assert self.md is not None
        return self.md.htmlStash.store(mathml(m[1], "inline")), m.start(0), m.end(0)


class _Display(BlockProcessor):
    def test(self, parent: etree.Element, block: str) -> bool:
        return DISPLAY.match(block) is not None

    def run(self, parent: etree.Element, blocks: list[str]) -> None:
        match = DISPLAY.match(blocks.pop(0))
        assert match is not None
        shown = etree.SubElement(parent, "div", {"class": "formula"})
        shown.text = self.parser.md.htmlStash.store(mathml(match[1], "block"))


@cache
def mathml(latex: str, display: str) -> str:
    """A formula as MathML, or as it was written if it cannot be read."""
    known = " ".join(latex.split())
    for written_as, known_as in SPELLINGS.items():
        known = known.replace(written_as, known_as)
    try:
        written = str(convert(known, display=display))
    except Exception as error:  # whatever the library stumbles over, the page names the formula
        log.warning(f"cannot read the formula {latex}: {type(error).__name__}")
        return f"<code>{latex}</code>"
    if "\\" in written:
        log.warning(f"cannot read all of the formula {latex}")
    for pattern, repair in REPAIRS:
        written = pattern.sub(repair, written)
    if display == "inline" and len(latex) >= LONG:
        return f'<span class="long">{written}</span>'
    return written


def font() -> bytes:
    """STIX Two Math with the signs of SIGNS, and what makes brackets and roots grow."""
    package = find_spec("ziamath")  # not imported: only its font is of use
    assert package is not None
    assert package.origin is not None
    path = Path(package.origin).parent / "fonts" / "STIXTwoMath-Regular.ttf"
    whole = TTFont(path, recalcTimestamp=False)
    subset = Subsetter()
    subset.options.layout_features = ["ssty"]  # primes of their own
    subset.options.hinting = False
    subset.options.name_IDs = ["*"]  # the license stands there
    subset.populate(unicodes=[sign for start, end in SIGNS for sign in range(start, end)])
    subset.subset(whole)
    whole.flavor = "woff"
    written = BytesIO()
    whole.save(written)
    return written.getvalue()
