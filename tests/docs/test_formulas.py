"""Formulas: LaTeX in the source of pages, MathML on the site, and no formula left as plain text in
the statements of proofs.
"""

from __future__ import annotations

import re
import sys
from html import unescape
from io import BytesIO
from pathlib import Path

import markdown
import pytest
from fontTools.ttLib import TTFont

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tools"))

import formulas  # noqa: E402  # the tools are scripts, not a package

PAGES = sorted([*(ROOT / "docs").rglob("*.md"), *(ROOT / "lab").rglob("*.md")])
PROOFS = sorted((ROOT / "docs/proofs").glob("*.md"))
CODE = re.compile(r"^ *```.*?^ *```$|`[^`]*`", re.MULTILINE | re.DOTALL)
DISPLAY = re.compile(r"^\$\$\n(.*?)\n\$\$$", re.MULTILINE | re.DOTALL)
PLAIN = re.compile(r"[\u0370-\u03ff≤≥≠∈∉⊆∪∩∖√∞⌈⌉⌊⌋·−½ℓ⊥∝Σ\u0302-\u0304]|\w[_^][({\w]")
"""What mathematics looks like that was not typeset."""


def words(page: Path) -> str:
    """A page without its code."""
    return CODE.sub("", page.read_text(encoding="utf-8"))


def found(page: Path) -> list[tuple[str, str]]:
    """The formulas of a page, and how each is shown."""
    text = words(page)
    inline = re.findall(formulas.INLINE, DISPLAY.sub("", text))
    return [
        *((one, "block") for one in DISPLAY.findall(text)),
        *((one, "inline") for one in inline),
    ]


def test_most_proofs_have_formulas() -> None:
    counted = {page.stem: len(found(page)) for page in PROOFS}
    # The page on group commit is about transactions, not about numbers.
    assert {name for name, number in counted.items() if number < 5} <= {"group-commit"}
    assert sum(counted.values()) > 3000


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_formula_can_be_read(page: Path, caplog: pytest.LogCaptureFixture) -> None:
    for latex, display in found(page):
        written = formulas.mathml(latex, display)
        assert "<math" in written
        assert "\\" not in written, latex
        escaped = re.findall(r"\\[^A-Za-z]", latex) if display == "inline" else []
        assert not escaped, f"GitHub takes them for escapes: {latex}"
    assert not caplog.records
    left = re.sub(formulas.INLINE, "", DISPLAY.sub("", words(page)))
    assert "$" not in left, "a dollar sign that begins no formula"


@pytest.mark.parametrize("page", PROOFS, ids=lambda page: page.stem)
def test_no_formula_of_a_proof_is_plain_text(page: Path) -> None:
    text = words(page).partition("## Covers")[0]
    text = re.sub(formulas.INLINE, "", DISPLAY.sub("", text))
    text = re.sub(r"\]\([^)]*\)|^#.*$", "", text, flags=re.MULTILINE)
    assert not PLAIN.findall(text)
    assert not re.findall(r"\n\n {4}\S.*", page.read_text("utf-8")), "a formula as a block of code"


@pytest.mark.slow
def test_signs_of_formulas_are_in_the_font() -> None:
    has = set(TTFont(BytesIO(formulas.font())).getBestCmap())
    for page in PAGES:
        for latex, display in found(page):
            shown = unescape(re.sub("<[^>]+>", "", formulas.mathml(latex, display)))
            assert set(map(ord, shown)) - {0x0A} <= has, (page.name, latex)


def shown(text: str) -> str:
    return markdown.markdown(text, extensions=[formulas.Formulas(), "tables"])


def test_formulas_become_mathml() -> None:
    page = shown("Let $q_{(1)} \\ge q_i'$.\n\n$$\nP(i) \\le \\frac{1}{2}\n$$\n")
    assert page.count("<math ") == 2
    assert '<div class="formula"><math ' in page
    assert "<msubsup>" in page
    assert "<mfrac>" in page
    assert "$" not in page


def test_dollars_and_code_stay_as_they_are() -> None:
    text = "`$x$` costs $5 to $6, and \\$x\\$ too"
    assert "<math" not in shown(text)
    assert "$5 to $6" in shown(text)


def test_stars_and_underlines_of_formulas_are_no_emphasis() -> None:
    page = shown("$S^* \\ne a_i$ and *so* $S^* b_j$")
    assert page.count("<em>") == 1


def test_a_formula_that_cannot_be_read_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    formulas.mathml(r"\nonsense{x}", "inline")
    formulas.mathml(r"\frac{1}{", "inline")
    assert [record.levelname for record in caplog.records] == ["WARNING"] * 2


@pytest.mark.slow
def test_the_site_shows_mathml_and_no_latex(site: Path) -> None:
    for page in PROOFS:
        name = "index" if page.stem == "README" else page.stem
        text = (site / f"proofs/{name}.html").read_text(encoding="utf-8")
        number = len(found(page))
        assert text.count("<math ") == number
        assert "\\varepsilon" not in text
        assert "$$" not in text
