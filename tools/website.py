"""What the documentation site has beside docs/: hooks of MkDocs, named in mkdocs.yml.

* Pages of the project that lie elsewhere (PROJECT) become pages of the site. Every module, and
  every script that a page names, becomes a page of source code: there is no address of a repository
  to link to.
* Links of files lead to the same files on the site. One that leads to nothing on it is a warning,
  so `--strict` fails.
* Names of files, tests, functions and classes in running text become links.
* The fonts that the stylesheet names are copied from matplotlib. What the fixed-width one lacks
  gets a font of its own.
"""

from __future__ import annotations

import ast
import posixpath
import re
from functools import cache
from html import escape, unescape
from io import BytesIO
from pathlib import Path

import matplotlib
from fontTools.subset import Subsetter  # type: ignore[import-untyped]  # neither fontTools nor Pygments ships types
from fontTools.ttLib import TTFont  # type: ignore[import-untyped]
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.plugins import get_plugin_logger
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page
from pygments import highlight  # type: ignore[import-untyped]
from pygments.formatters import HtmlFormatter  # type: ignore[import-untyped]
from pygments.lexers import PythonLexer  # type: ignore[import-untyped]

ROOT = Path(__file__).resolve().parent.parent
PROJECT = {
    "CHANGELOG.md": "project/changes.md",
    "src/ARCHITECTURE.md": "project/architecture.md",
    "src/README.md": "project/package.md",
    "tests/ledger/faults/README.md": "project/ledger-faults.md",
    "tests/README.md": "project/tests.md",
    "lab/benchmarks/README.md": "lab/benchmarks.md",
    **{f"lab/{page.name}": f"lab/{page.name}" for page in sorted((ROOT / "lab").glob("*.md"))},
}
"""Pages outside docs/, and where they are on the site."""

HIDDEN = {"README.md": ["navigation"], "reference/mechanisms.md": ["toc"]}
"""Columns beside a page that has no use for them."""

MONO, SANS = "DejaVuSansMono.ttf", "DejaVuSans.ttf"
FONTS = (MONO, "DejaVuSansMono-Bold.ttf", SANS)
LACKING = "ℓ"
"""Signs of formulas that MONO does not have and SANS does."""

FENCE = re.compile(r"^ *(```|~~~)[^\n]*\n.*?^ *\1 *$", re.MULTILINE | re.DOTALL)
SECOND_WORD = re.compile(r"\A( *(?:```|~~~)\w+) .*")
LINK = re.compile(r"(?<=\]\()(?![a-z]+:|#)([^)\s#]+)(#[^)\s]*)?(?=\))")
ENTRY = re.compile(r"^::: (privmax[\w.]*)$", re.MULTILINE)
SCRIPT = r"(?:src|tests|lab|tools)/[\w/-]+\.py"
NAMED = re.compile(rf"`({SCRIPT})(?:::\w+)?`|\]\((?:\.\./)*({SCRIPT})\)")
SPAN = re.compile(r"<(a|pre|h[1-6]|script)\b.*?</\1>|<code>([^<]+)</code>", re.DOTALL)
SOURCE = "source/"

log = get_plugin_logger("website")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages, pictures and fonts that are not in docs/."""
    for path, uri in PROJECT.items():
        files.append(File.generated(config, uri, content=(ROOT / path).read_text(encoding="utf-8")))
    for file in sorted([*(ROOT / "lab/pictures").iterdir(), *(ROOT / "lab/notes").glob("*.tex")]):
        uri = file.relative_to(ROOT).as_posix()
        files.append(File.generated(config, uri, abs_src_path=str(file)))
    for path in sorted(_scripts(files)):
        text = f"---\nsearch: {{exclude: true}}\nhide: [toc]\n---\n\n# {path}\n"
        files.append(
            File.generated(
                config, _source_page(path), content=text, inclusion=InclusionLevel.NOT_IN_NAV
            )
        )
    fonts = font_folder()
    for name in FONTS:
        files.append(File.generated(config, f"fonts/{name}", abs_src_path=str(fonts / name)))
    files.append(
        File.generated(config, "fonts/LICENSE.txt", abs_src_path=str(fonts / "LICENSE_DEJAVU"))
    )
    files.append(File.generated(config, "fonts/lacking.ttf", content=_lacking(fonts)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Let links lead to where files are on the site. The second word of a block's kind is for the
    tests only.
    """
    here = _origin(page.file.src_uri)
    page.meta["hide"] = [*page.meta.get("hide", []), *HIDDEN.get(page.file.src_uri, [])]

    def led(link: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(here), link[1]))
        uri = _uri(target)
        if files.get_file_from_path(uri) is None:
            log.warning(f"{here} links to {link[1]}, which is not on the site")
        return posixpath.relpath(uri, posixpath.dirname(page.file.src_uri) or ".") + (link[2] or "")

    parts, end = [], 0
    for fence in FENCE.finditer(markdown):
        parts += [LINK.sub(led, markdown[end : fence.start()]), SECOND_WORD.sub(r"\1", fence[0])]
        end = fence.end()
    return "".join([*parts, LINK.sub(led, markdown[end:])])


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Show source code on its page; elsewhere turn what is named in running text into links."""
    here = page.file.src_uri
    if here.startswith(SOURCE):
        return html + _listing(here.removeprefix(SOURCE).removesuffix(".md"))
    entries = _entries(files)
    seen = set()

    def linked(span: re.Match[str]) -> str:
        if span[2] is None:
            return span[0]
        text = unescape(span[2])
        target = _written(text) or ("" if text in seen else entries.get(text, ""))
        uri, _, anchor = target.partition("#")
        file = files.get_file_from_path(uri) if uri and uri != here else None
        if file is None:
            return span[0]
        seen.add(text)
        place = f"{file.url_relative_to(page.file)}{'#' if anchor else ''}{anchor}"
        return f'<a href="{place}">{span[0]}</a>'

    return SPAN.sub(linked, html)


def font_folder() -> Path:
    """Where matplotlib keeps the fonts it brings."""
    return Path(matplotlib.get_data_path()) / "fonts" / "ttf"


def _lacking(fonts: Path) -> bytes:
    """A font of the signs that MONO lacks, each in the middle of a place as wide as all of its
    signs are.
    """
    mono, font = TTFont(fonts / MONO), TTFont(fonts / SANS, recalcTimestamp=False)
    assert mono["head"].unitsPerEm == font["head"].unitsPerEm
    subset = Subsetter()
    subset.options.layout_features = []
    subset.options.hinting = False
    subset.options.drop_tables += ["FFTM"]  # notes of the program that drew the font
    subset.populate(text=LACKING)
    subset.subset(font)
    wide = mono["hmtx"]["zero"][0]
    for name in map(font.getBestCmap().get, map(ord, LACKING)):
        glyph = font["glyf"][name]
        left = (wide - (glyph.xMax - glyph.xMin)) // 2
        glyph.coordinates.translate((left - glyph.xMin, 0))
        glyph.recalcBounds(font["glyf"])
        font["hmtx"][name] = (wide, left)
    written = BytesIO()
    font.save(written)
    return written.getvalue()


def _origin(uri: str) -> str:
    """The file of the project that a page of the site is."""
    return {there: path for path, there in PROJECT.items()}.get(uri, f"docs/{uri}")


def _uri(path: str) -> str:
    """The page of the site that a file of the project is."""
    if path.endswith(".py"):
        return _source_page(path)
    if path.endswith(".ipynb"):
        path = f"{path.removesuffix('.ipynb')}.md"  # tools/notebooks.py makes it
    return PROJECT.get(path, path.removeprefix("docs/") if path.startswith("docs/") else path)


def _source_page(path: str) -> str:
    return f"{SOURCE}{path}.md"


def _scripts(files: Files) -> set[str]:
    """Every module, and every script that a page names."""
    modules = {path.relative_to(ROOT).as_posix() for path in (ROOT / "src").rglob("*.py")}
    texts = [file.content_string for file in files.documentation_pages()]
    named = {match[1] or match[2] for text in texts for match in NAMED.finditer(text)}
    return modules | {path for path in named if (ROOT / path).is_file()}


def _entries(files: Files) -> dict[str, str]:
    """Where each class and function of the reference is described, by the names it has in running
    text.
    """
    return _found_entries(
        tuple((file.src_uri, file.content_string) for file in files if _is_reference(file))
    )


def _is_reference(file: File) -> bool:
    return file.src_uri.startswith("reference/") and file.src_uri.endswith(".md")


@cache
def _found_entries(pages: tuple[tuple[str, str], ...]) -> dict[str, str]:
    found = {}
    for uri, text in pages:
        for path in ENTRY.findall(text):
            module, _, name = path.rpartition(".")
            package = ".".join(
                part
                for part in module.split(".")[:2]
                if part in ("privmax", "itemsets", "learning")
            )
            found[path] = found[f"{package}.{name}"] = f"{uri}#{path}"
            if name[:1].isupper():
                found[name] = f"{uri}#{path}"
    return found


def _written(text: str) -> str:
    """The page and anchor of what is written as a file, a test (file::name) or a dotted name of the
    source; or "".
    """
    path, _, name = text.partition("::")
    if re.fullmatch(SCRIPT, path):
        return f"{_source_page(path)}#{name}" if name else _source_page(path)
    if path in PROJECT or re.fullmatch(r"docs/[\w/-]+\.md", path):
        return _uri(path)
    parts = text.split(".")
    if parts[0] != "privmax":
        return ""
    for length in range(len(parts) - 1, 1, -1):
        module = f"src/{'/'.join(parts[:length])}.py"
        if (ROOT / module).is_file():
            name = ".".join(parts[length:])
            return f"{_source_page(module)}#{name}" if name in _definitions(module) else ""
    return ""


@cache
def _definitions(path: str) -> dict[str, int]:
    """The line that each function, method and class of a script begins at."""
    found = {}

    def look(node: ast.AST, before: str) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                found[before + child.name] = min(
                    [child.lineno, *(mark.lineno for mark in child.decorator_list)]
                )
                look(child, f"{before}{child.name}.")

    look(ast.parse((ROOT / path).read_text(encoding="utf-8")), "")
    return found


def _listing(path: str) -> str:
    """A script in colours, each definition with its name as anchor."""
    text = (ROOT / path).read_text(encoding="utf-8")
    formatted = highlight(text, PythonLexer(stripnl=False), HtmlFormatter(nowrap=True))
    names = {line: name for name, line in reversed(_definitions(path).items())}
    lines = []
    for number, line in enumerate(formatted.splitlines(), 1):
        anchor = f' id="{escape(names[number])}"' if number in names else ""
        lines.append(f'<span class="line"{anchor}>{line}</span>')
    return f'<div class="source highlight"><pre><code>{"".join(lines)}</code></pre></div>'
