"""Proof pages follow the code: a covered function may not change without its page being read
again.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import proofs  # noqa: E402  # the tools are scripts, not a package

assert proofs.pages()


@pytest.mark.slow
@pytest.mark.parametrize("page", proofs.pages(), ids=lambda page: page.stem)
def test_the_page_was_read_against_the_present_code(page):
    changed = proofs.stale(page)
    assert not changed, (
        f"read docs/proofs/{page.name} again, then: ./dev python tools/proofs.py accept {page.stem}"
    )
    assert proofs.covered(page)


@pytest.mark.parametrize("page", proofs.pages(), ids=lambda page: page.stem)
def test_the_tests_a_page_names_exist(page):
    section = page.read_text(encoding="utf-8").split("## Tests")[1]
    named = re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", section)
    assert named
    for path, name in named:
        source = (ROOT / path).read_text(encoding="utf-8")
        assert not name or f"def {name}(" in source, f"{path} has no {name}"


def test_every_mechanism_has_a_page_that_covers_it():
    covered = {name for page in proofs.pages() for name in proofs.covered(page)}
    files = [
        path
        for path in (ROOT / "src/privmax/mechanisms").glob("*.py")
        if path.stem not in ("__init__", "base")
    ]
    assert files
    for path in files:
        page = proofs.PAGES / f"{path.stem.replace('_', '-')}.md"
        assert page.is_file()
        assert f"docs/proofs/{page.name}" in path.read_text(encoding="utf-8")
        assert any(name.startswith(f"privmax.mechanisms.{path.stem}.") for name in covered)


def test_a_fingerprint_sees_code_and_not_words(tmp_path, monkeypatch):
    monkeypatch.setattr(proofs, "ROOT", tmp_path)
    module = tmp_path / "src" / "privmax" / "thing.py"
    module.parent.mkdir(parents=True)
    prints = []
    for body in ('"""Words."""\n    return 1', '"""Others."""\n\n    return 1  # why', "return 2"):
        module.write_text(f"def f():\n    {body}\n", encoding="utf-8")
        prints.append(proofs.fingerprint("privmax.thing.f"))
    assert prints[0] == prints[1] != prints[2]
