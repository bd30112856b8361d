"""Proof pages follow the code: a covered function may not change without its page being read
again.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import proofs  # noqa: E402  # the tools are scripts, not a package
from scopes import number_locals  # noqa: E402

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


def test_every_file_of_a_mechanism_names_a_page_that_covers_it():
    covered = {page.stem: proofs.covered(page) for page in proofs.pages()}
    files = [
        path
        for path in (ROOT / "src/privmax/mechanisms").glob("*.py")
        if path.stem not in ("__init__", "contract", "entries", "registry", "stored_leads")
    ]
    assert files
    for path in files:
        named = re.findall(r"docs/proofs/([\w-]+)\.md", path.read_text(encoding="utf-8"))
        module = f"privmax.mechanisms.{path.stem}."
        assert named, f"{path.name} names no proof page"
        assert set(named) <= covered.keys()
        assert any(name.startswith(module) for page in named for name in covered[page])


def test_a_row_that_was_never_read_is_stale_whatever_it_says(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("| `privmax.learning.rows.copy_all` | `0` |\n", encoding="utf-8")
    assert proofs.stale(page) == ["privmax.learning.rows.copy_all"]
    proofs.accept(page)
    assert proofs.stale(page) == []


def test_a_fingerprint_sees_code_and_not_words(tmp_path, monkeypatch):
    monkeypatch.setattr(proofs, "ROOT", tmp_path)
    module = tmp_path / "src" / "privmax" / "thing.py"
    module.parent.mkdir(parents=True)
    prints = []
    for body in ('"""Words."""\n    return 1', '"""Others."""\n\n    return 1  # why', "return 2"):
        module.write_text(f"def f():\n    {body}\n", encoding="utf-8")
        prints.append(proofs.fingerprint("privmax.thing.f"))
    assert prints[0] == prints[1] != prints[2]


CODE = """
class Thing:
    def draw(self, coins):
        return [self.draw(coin) for coin in coins]

def held(thing):
    return thing
"""


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A project with two files of code, committed, and a page that covers what is in one."""
    monkeypatch.setattr(proofs, "ROOT", tmp_path)
    monkeypatch.setattr(proofs, "PAGES", tmp_path / "docs" / "proofs")
    old = tmp_path / "src" / "privmax" / "old.py"
    old.parent.mkdir(parents=True)
    old.write_text(CODE, encoding="utf-8")
    proofs.PAGES.mkdir(parents=True)
    names = ("old.Thing", "old.Thing.draw", "old.held")
    rows = "".join(f"| `privmax.{name}` | `-` |\n" for name in names)
    (proofs.PAGES / "thing.md").write_text(f"# Thing\n\n{rows}", encoding="utf-8")
    proofs.accept(proofs.PAGES / "thing.md")
    for command in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "Begin"]):
        who = ["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
        subprocess.run(["git", "-C", str(tmp_path), *who, *command], check=True)
    return tmp_path


def write(project, **files):
    """Take the old file away and write others."""
    (project / "src" / "privmax" / "old.py").unlink()
    for name, code in files.items():
        (project / "src" / "privmax" / f"{name}.py").write_text(code, encoding="utf-8")


def rows():
    return proofs.covered(proofs.PAGES / "thing.md")


def test_rows_follow_a_module_that_moved_and_nothing_else(project):
    before = rows()
    other = proofs.PAGES / "other.md"
    other.write_text("| `privmax.older.f` | `0123456789ab` |\n", encoding="utf-8")
    write(project, new="# A word more.\n" + CODE)
    assert proofs.main(["move", "privmax.old", "privmax.new"]) == 0
    assert rows() == {
        name.replace("privmax.old.", "privmax.new."): print_ for name, print_ in before.items()
    }
    assert proofs.stale(proofs.PAGES / "thing.md") == []
    assert proofs.covered(other) == {"privmax.older.f": "0123456789ab"}


def test_rows_follow_a_definition_that_was_renamed(project):
    write(project, new=CODE.replace("held", "hold"))
    proofs.move("privmax.old.held", "privmax.new.hold")
    proofs.move("privmax.old.Thing", "privmax.new.Thing")
    assert list(rows()) == ["privmax.new.Thing", "privmax.new.Thing.draw", "privmax.new.hold"]
    assert proofs.stale(proofs.PAGES / "thing.md") == []


def test_rows_follow_an_identifier_that_is_said_to_be_renamed(project):
    write(project, old=CODE.replace("coin", "bit"))
    changed = ["--rename", "coins=bits", "--rename", "coin=bit"]
    assert proofs.main(["move", "privmax.old.Thing", "privmax.old.Thing", *changed]) == 0
    assert proofs.stale(proofs.PAGES / "thing.md") == []


LOCALS = """
def outer(rows, /, *, floor=0):
    import math
    total = 0

    def add(row):
        nonlocal total
        total += row

    for row in rows:
        add(row)
    return [math.floor(row) for row in rows if (last := row) > floor], lambda row: row + total, last
"""


@pytest.mark.parametrize(
    ("before", "after", "same"),
    [
        ("row in rows", "row in rows", True),
        ("rows", "records", True),
        ("total", "spent", True),
        ("last", "final", True),
        ("floor=0", "floor=1", False),
        ("row) for row", "rows) for row", False),
        ("lambda row: row", "lambda one: one", True),
        ("lambda row: row", "lambda one: rows", False),
        ("        total += row", "        total += total", False),
        ("        nonlocal total\n", "", False),
        ("math", "cmath", False),
        ("math.floor", "math.ceil", False),
    ],
)
def test_the_numbered_tree_depends_on_names_of_others_only(before, after, same):
    """Own variables may be renamed, each everywhere; any other change of the code shows."""
    assert before in LOCALS
    first, second = (
        ast.dump(number_locals(ast.parse(code))) for code in (LOCALS, LOCALS.replace(before, after))
    )
    assert (first == second) is same


def test_the_variables_of_two_scopes_are_not_exchanged():
    code = "def f(a):\n  b = a\n  def g():\n    nonlocal {}\n    {} = 0\n  return a, b, g"
    first, second = (ast.dump(number_locals(ast.parse(code.format(x, x)))) for x in "ab")
    assert first != second


def test_rows_follow_code_whose_variables_were_renamed_in_different_ways(project):
    code = CODE.replace("return thing", "return item").replace("held(thing)", "held(item)")
    write(project, old=code.replace("self.draw(coin) for coin in", "self.draw(bit) for bit in"))
    assert proofs.main(["move", "privmax.old", "privmax.old"]) == 1
    assert proofs.main(["move", "privmax.old", "privmax.old", "--locals"]) == 0
    assert proofs.stale(proofs.PAGES / "thing.md") == []


@pytest.mark.parametrize(
    ("code", "options"),
    [
        (CODE.replace("return thing", "return [thing]"), ["--locals"]),
        (CODE.replace("return thing", "return coins"), ["--locals"]),
        (CODE.replace("return thing", "return [thing]"), []),
        (CODE.replace("held", "hold"), []),
        (CODE.replace("coin", "bit"), ["--rename", "coins=bits"]),
        (CODE.replace("return thing", "return 'thing'"), []),
        (CODE.replace("coin", "self"), ["--rename", "coin=self", "--rename", "coins=selfs"]),
        (CODE.replace("coins", "coin"), ["--rename", "coins=coin"]),
    ],
    ids=[
        "locals",
        "other variable",
        "code",
        "own name",
        "identifier",
        "text",
        "collision",
        "merge",
    ],
)
def test_rows_do_not_follow_code_that_changed(project, capsys, code, options):
    before = rows()
    write(project, new=code)
    assert proofs.main(["move", "privmax.old", "privmax.new", *options]) == 1
    assert "privmax." in capsys.readouterr().out
    assert rows() == before


def test_a_row_that_was_stale_already_does_not_follow(project):
    page = proofs.PAGES / "thing.md"
    text = page.read_text(encoding="utf-8")
    page.write_text(re.sub("`[0-9a-f]{12}`", "`0123456789ab`", text), encoding="utf-8")
    write(project, new=CODE)
    with pytest.raises(ValueError, match=r"thing\.md: .* is not what the page was read at"):
        proofs.move("privmax.old", "privmax.new")


def test_what_no_page_covers_cannot_move(project):
    write(project, new=CODE)
    with pytest.raises(LookupError, match="no page covers it"):
        proofs.move("privmax.elsewhere", "privmax.new")
    with pytest.raises(LookupError, match="not found"):
        proofs.move("privmax.old.held", "privmax.new.hold")
