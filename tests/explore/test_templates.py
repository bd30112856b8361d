"""Every template of these pages: hostile names leave a page built as with plain ones, and what
forms, styles and scripts hold on to is as listed.

`python tests/explore/test_templates.py` lists that anew, in tests/explore/hooks.txt.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlencode

import pytest
from starlette.testclient import TestClient

from privmax import rendering, select
from privmax.display import escape_text
from privmax.explore import state
from privmax.explore.datasets import Dataset
from privmax.explore.item_question import Asked
from privmax.explore.security import TOKEN
from privmax.explore.server import application, gate_for
from privmax.explore.state import Explorer
from privmax.explore.work import Pool
from privmax.ledger import Ledger
from privmax.privacy import Privacy

HERE = "http://127.0.0.1:8765"  # as in conftest.py
HOSTILE = "</td>\"'><script>alert(1)</script>{{ 7*7 }}{% raw %}\u202e"
MARK = "{{ 7*7 }}"
PLAIN = "plain name"
TEMPLATES = {path.name for path in Path(state.__file__).with_name("templates").glob("*.html")}
LISTED = Path(__file__).with_name("hooks.txt")
NAMED = ("class", "id", "name", "type", "for", "role", "scope", "action", "method", "hx-target")
"""Attributes whose values pages, styles and scripts rely on."""


class Shape(HTMLParser):
    """The elements of a page with their attributes, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.hooks: set[str] = set()
        self.text = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        kept = {key: (value or "").replace(escape_text(HOSTILE), PLAIN) for key, value in attrs}
        told = [f'{key}="{value}"' if key in NAMED else key for key, value in kept.items()]
        self.tags.append(" ".join([tag, *told]))
        classes = [f".{one}" for one in kept.get("class", "").split()]
        self.hooks |= {*classes, *(f"{tag}[{one}]" for one in told if not one.startswith("class"))}

    def handle_data(self, data):
        self.text += data


def printable(label: str) -> str:
    """The label as ledgers take it for a name."""
    return label.removesuffix("\u202e")


def make_explorer(folder: Path, pool: Pool, label: str) -> Explorer:
    """An explorer in which every name that somebody can choose is the label."""
    file = folder / "log.csv"
    quoted = '"' + label.replace('"', '""') + '"'
    rows = "".join(f"{person},{quoted}\n" for person in range(900))
    file.write_text(f"person,{quoted}\n{rows}", encoding="utf-8")
    name = printable(label)
    ledger = Ledger.create(folder / "b.db", name, epsilon=9, delta="1e-4", strict=True)
    ledger.open_account(name, Privacy(1, "1e-5"))
    given = {"file": str(file), "columns": [label], "user": "person", "about": label}
    datasets = {
        "log": Dataset.of("log", given),
        "none": Dataset.of("none", {"file": "sample:counts"}),
    }
    gate = gate_for("127.0.0.1", 8765, own_user=False)
    return Explorer(gate, pool, ledger, datasets, reason=label)


def visit(explorer: Explorer, label: str) -> Iterator[tuple[str, str]]:
    """Every page, by a name that does not hold the label."""
    client = TestClient(application(explorer), base_url=HERE)
    yield "refusal", client.get("/plan").text
    client.get(f"/?key={explorer.gate.key}", follow_redirects=False)

    def get(path: str, **fields: str) -> str:
        return client.get(f"{path}?{urlencode(fields)}").text

    def send(**fields: str) -> str:
        form = {TOKEN: explorer.gate.token, **fields}
        return client.post("/ask/release", data=form, headers={"Origin": HERE}).text

    asked = {"dataset": "log", "items": label, "epsilon": "1", "delta": "1e-6"}
    name = printable(label)
    ident = f"one {name}"
    ledger = explorer.ledger
    yield "ask", get("/ask", **asked, account=name, where=label, universe=label)
    yield "preview", get("/ask/preview", **asked, request=ident)
    yield "answer", send(**asked, request=ident)
    yield "list", send(**asked, request="list", k="3")
    keys = {**asked, "kind": "keys", "counts": "1", "other": "yes", "per_user": "2"}
    yield "ask keys", get("/ask", **keys, account=name, where=label)
    yield "preview keys", get("/ask/preview", **keys, request=f"keys {name}")
    yield "keys", send(**keys, request=f"keys {name}")
    yield "charged", get("/ask/preview", **asked, request=ident)
    yield "too much", send(**{**asked, "epsilon": "99"}, request="big")
    yield "wrong", send(**{**asked, "epsilon": label}, request=ident)
    yield "wrong preview", get("/ask/preview", **{**asked, "dataset": label})
    select({label: 900}, epsilon="0.1", delta="1e-6", ledger=ledger.request(f"cli {name}"))
    yield "foreign", get("/answer", request=f"cli {name}")
    prepared = Asked("log", (label,), "0.1", "1e-7").prepare(explorer.datasets["log"])

    def stop(stack: object) -> None:
        raise KeyboardInterrupt

    with contextlib.suppress(KeyboardInterrupt):
        prepared.answer(ledger.request(f"lost {name}", dataset="log"), stop)
    yield "unanswered", get("/answer", request=f"lost {name}")
    yield "no request", get("/answer", request=f"no {label}")
    yield "history", get("/history")
    yield "verified", get("/history/verify")
    yield "handover", get("/handover", request=ident)
    yield "plan", get("/plan", epsilon="1")
    yield "wrong plan", get("/plan", epsilon=label)
    yield "plan keys", get("/plan/keys", epsilon="1")
    yield "wrong plan keys", get("/plan/keys", per_user=label)
    yield "slow rows", get("/plan/slow", epsilon=label)
    yield "try", get("/try", scores=f"{label} 900\nb 1", draw="yes", epsilon="1")
    explorer.datasets = {}
    yield "missing", get("/ask")


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Iterator[set[str]]:
    """The templates that were used."""
    names: set[str] = set()
    read: Callable[[str], str] = rendering._read

    def note(name: str) -> str:
        names.add(name.rpartition("/")[2])
        return read(name)

    monkeypatch.setattr(rendering, "_read", note)
    rendering.environment.cache_clear()
    yield names
    rendering.environment.cache_clear()


def look(folder: Path, pool: Pool, label: str) -> dict[str, Shape]:
    """All pages, by name."""

    async def fail(*given: object) -> None:
        raise RuntimeError

    folder.mkdir()
    explorer = make_explorer(folder, pool, label)
    with explorer.ledger as ledger:
        pages = {name: Shape(page) for name, page in visit(explorer, label)}
        explorer.ledger, explorer.in_thread = ledger, fail
        client = TestClient(application(explorer), base_url=HERE)
        client.get(f"/?key={explorer.gate.key}", follow_redirects=False)
        return pages | {"unexpected": Shape(client.get("/history").text)}


def list_hooks(pages: dict[str, Shape]) -> str:
    """What forms, styles and scripts hold on to, a line for each page."""
    whole = [page.hooks for name, page in pages.items() if name not in ("refusal", "slow rows")]
    frame = set.intersection(*whole)
    listed = {"every page": frame} | {name: page.hooks - frame for name, page in pages.items()}
    return "".join(f"{name}: {' '.join(sorted(hooks))}\n" for name, hooks in listed.items())


@pytest.mark.slow
def test_hostile_names_change_no_page(tmp_path, pool, opened):
    plain = look(tmp_path / "plain", pool, PLAIN)
    hostile = look(tmp_path / "hostile", pool, HOSTILE)
    assert opened >= TEMPLATES
    assert list_hooks(plain) == LISTED.read_text(encoding="utf-8"), "see the top of this file"
    for name, page in hostile.items():
        assert page.tags == plain[name].tags, name
        assert page.text.count(MARK) == plain[name].text.count(PLAIN), name
        if name != "try":  # whose form holds what was typed
            assert "\u202e" not in page.text, name
    assert sum(page.text.count(MARK) for page in hostile.values()) > 50


if __name__ == "__main__":
    workers = Pool()
    with TemporaryDirectory() as place:
        LISTED.write_text(list_hooks(look(Path(place, "x"), workers, PLAIN)), encoding="utf-8")
    workers.close()
