"""Notebooks on the documentation site: a hook of MkDocs, named in mkdocs.yml.

Notebooks are stored without outputs. They are executed when the site is built, each in a folder of
its own, and become pages of the site, with a gallery of their pictures. A cell that fails is a
failure of the build.

    ./dev python tools/notebooks.py [FILE ...]    execute them, and show nothing
"""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from html import escape
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import nbformat
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from nbclient import NotebookClient
from traitlets.config import Config

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "notebooks"
GALLERY = "notebooks/README.md"
ORDER = ("selection", "itemsets", "learning", "paper")
SECONDS = 300
"""After how long a cell is taken to hang."""
WARNED = re.compile(r"^\S+:\d+: (\w+Warning: .*)$", re.MULTILINE)
"""A warning, without the file of the kernel that it names."""
QUIET: dict[str, Any] = {"extra_arguments": ["--log-level=ERROR"]}
"""A kernel warns that others on this machine could listen. There is nothing to hear."""


@dataclass
class Notebook:
    """An executed notebook, as a page and its pictures."""

    name: str
    text: str
    pictures: dict[str, str]

    @property
    def title(self) -> str:
        return self.text.split("\n", 1)[0].removeprefix("# ")

    @property
    def summary(self) -> str:
        """Its first paragraph."""
        return " ".join(self.text.split("\n\n")[1].split())


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add a page for each notebook, its pictures, and the gallery."""
    rendered = read(notebooks())
    for notebook in rendered:
        text = f"{notebook.text}\n\n{_download(notebook.name)}\n"
        files.append(File.generated(config, f"notebooks/{notebook.name}.md", content=text))
        for name, picture in notebook.pictures.items():
            files.append(File.generated(config, f"notebooks/{name}", content=picture))
    files.append(File.generated(config, GALLERY, content=gallery(rendered)))
    return files


def notebooks() -> list[Path]:
    """All notebooks, those in ORDER first."""
    found = {path.stem: path for path in sorted(FOLDER.glob("*.ipynb"))}
    return [found.pop(name) for name in ORDER] + [*found.values()]


def read(paths: Iterable[Path]) -> list[Notebook]:
    """Notebooks, executed side by side."""

    async def all_of_them() -> list[Notebook]:
        return await asyncio.gather(*map(execute, paths))

    return asyncio.run(all_of_them())


async def execute(path: Path) -> Notebook:
    """One notebook, with its outputs."""
    notebook = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    with TemporaryDirectory() as folder, TemporaryDirectory() as sockets:
        # Another process may take a port between its choice and its use.
        kernel = {"transport": "ipc", "ip": f"{sockets}/kernel"}
        client = NotebookClient(
            notebook,
            timeout=SECONDS,
            resources={"metadata": {"path": folder}},
            config=Config(KernelManager=kernel),
            **QUIET,
        )
        await client.async_execute()
    return render(path.stem, notebook)


def render(name: str, notebook: Any) -> Notebook:
    """An executed notebook as Markdown."""
    parts: list[str] = []
    pictures: dict[str, str] = {}
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            parts.append(cell.source)
            continue
        parts.append(f"```python\n{cell.source}\n```")
        for output in cell.outputs:
            alt = cell.metadata.get("alt", "")
            parts += _shown(output, alt, f"{name}-{len(pictures) + 1}.svg", pictures)
    return Notebook(name, "\n\n".join(parts), pictures)


def gallery(shown: list[Notebook]) -> str:
    """The page that leads to all of them."""
    cards = "\n".join(_card(notebook) for notebook in shown)
    return (
        "# Notebooks\n\nThree notebooks to read here, or to download and run. Their outputs are "
        f'made anew whenever this site is built.\n\n<div class="gallery">\n{cards}\n</div>\n'
    )


def _card(notebook: Notebook) -> str:
    picture = next(iter(notebook.pictures), None)
    image = f'<img src="{picture}" alt="" />' if picture else ""
    return (
        f'<a href="{notebook.name}.html">{image}<strong>{escape(notebook.title)}</strong>'
        f"<span>{escape(notebook.summary)}</span></a>"
    )


def _shown(output: Any, alt: str, name: str, pictures: dict[str, str]) -> Iterator[str]:
    """An output as Markdown. A picture is put aside under its name."""
    if output.output_type == "stream":
        said = WARNED.findall(output.text) if output.name == "stderr" else []
        yield "\n>\n".join(f"> {one}" for one in said) if said else _text(output.text)
        return
    data = output.data
    if "image/svg+xml" in data:
        assert alt, "say in the metadata of the cell, under alt, what the picture shows"
        pictures[name] = data["image/svg+xml"]
        yield f"![{alt}]({name})"
    elif "text/html" in data:
        html = re.sub(r"\n\s*\n", "\n", data["text/html"])
        yield f'<div class="output">\n{html}\n</div>'
    else:
        yield _text(data["text/plain"])


def _text(text: str) -> str:
    return f"```text\n{text.rstrip()}\n```"


def _download(name: str) -> str:
    return f'<p><a href="{name}.ipynb" download>Download this notebook</a></p>'


def main(arguments: list[str]) -> int:
    for notebook in read(map(Path, arguments or notebooks())):
        print(f"{notebook.name}: {len(notebook.pictures)} pictures")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
