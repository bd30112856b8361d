"""The tracer counts what it says, on a package whose every call is known; it runs on selections."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

import pytest

FILE = Path(__file__).resolve().parents[2] / "tools" / "trace.py"
_spec = importlib.util.spec_from_file_location("privmax_trace", FILE)  # "trace" is Python's own
trace = importlib.util.module_from_spec(_spec)
sys.modules[_spec.name] = trace
_spec.loader.exec_module(trace)

FRONT = """
import sqlite3
import threading
from contextlib import contextmanager

def pick(store, again=False):
    from tinytrace.mechanisms.first import First
    if again:
        pick(store)
    auto()
    with taken(store):
        pass
    thread = threading.Thread(target=beside)
    thread.start()
    thread.join()
    class Local:
        '''Its body is no function.'''
    return sum([unit() for _ in range(3)]) + First().draw()

def auto():
    return auto.__name__

@contextmanager
def taken(store):
    store.execute("BEGIN")
    yield
    store.execute("COMMIT")

def unit():
    return 1

def beside():
    pass

def never():
    pass
"""
MECHANISM = """
def prepare():
    return 0

READY = prepare()  # while the module is imported: does not count

class Part:
    def draw(self):
        return READY

class First:
    def draw(self):
        return Part().draw() + (lambda: 1)()
"""
CROSSED = {
    "front.py": ["auto", "beside", "pick", "taken", "unit"],
    "mechanisms/first.py": ["First.draw", "First.draw.<locals>.<lambda>", "Part.draw"],
}


@pytest.fixture
def front(tmp_path, monkeypatch):
    """A package of two files."""
    folder = tmp_path / "tinytrace"
    (folder / "mechanisms").mkdir(parents=True)
    (folder / "__init__.py").write_text("")
    (folder / "front.py").write_text(FRONT)
    (folder / "mechanisms" / "__init__.py").write_text("")
    (folder / "mechanisms" / "first.py").write_text(MECHANISM)
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in [name for name in sys.modules if name.startswith("tinytrace")]:
        monkeypatch.delitem(sys.modules, name)
    yield importlib.import_module("tinytrace.front")
    for name in [name for name in sys.modules if name.startswith("tinytrace")]:
        del sys.modules[name]


def counted(front, **options):
    with trace.Trace(Path(front.__file__).parent, "pick") as found:
        connection = front.sqlite3.connect(":memory:", isolation_level=None)
        connection.execute("BEGIN")  # before: does not count
        connection.execute("COMMIT")
        found.run(lambda: front.pick(connection, **options))
    connection.close()
    return found


def test_a_package_whose_every_call_is_known(front):
    found = counted(front)
    assert found.crossed() == CROSSED
    assert found.counts() == {
        "functions": 8,
        "files": 2,
        "switches": 1,  # into First.draw
        "depth": 3,  # pick, First.draw, and Part.draw or the lambda
        "entries": 1,
        "auto": 1,
        "draws": 1,
        "transactions": 1,
    }


def test_what_happens_twice_is_counted_twice(front):
    found = counted(front, again=True)
    assert found.crossed() == CROSSED
    assert found.counts() == {
        "functions": 8,
        "files": 2,
        "switches": 2,
        "depth": 4,
        "entries": 2,
        "auto": 2,
        "draws": 2,
        "transactions": 2,
    }


def test_nothing_counts_after_an_error(front):
    connect = front.sqlite3.connect
    with trace.Trace(Path(front.__file__).parent, "pick") as found:
        with pytest.raises(AttributeError):
            found.run(lambda: front.pick(None))
        front.unit()
    assert "unit" not in found.crossed()["front.py"]
    assert sys.getprofile() is None
    assert front.sqlite3.connect is connect


@pytest.mark.slow
def test_a_selection_from_memory(capsys):
    """It releases nothing but numbers about the code."""
    name = "select({…})"
    trace.main(["--json", "--only", name])
    told = json.loads(capsys.readouterr().out)[name]
    assert (told["entries"], told["draws"], told["transactions"]) == (1, 1, 0)
    assert told["functions"] == sum(map(len, told["crossed"].values())) > 20
    assert told["files"] == len(told["crossed"]) > 5
    assert told["depth"] > 5
    assert any("select" in names for names in told["crossed"].values())


MOST = {
    "select({…})": (122, 27, 219),
    "select({…}, ledger=L)": (262,),
    "privmax select FILE.parquet --ledger L": (494,),
    "privmax itemsets FILE.csv --ledger L": (484, 73, 755),
    "PrivateGAM(…).fit(X, y)": (197, 36, 6_840),
}
"""Functions, files and switches that these may cross. Before there was one pipeline the first three
crossed 114, 224 and 328 functions; since then came sets, counts, patterns, databases, checks, the
note that an answer was drawn, one codec for ledgers and JSON, refusals by name, a ledger in parts,
orders, groups, commits that threads share, and numbers and flags of NumPy. The last two switch
between files no more often than they did then (188 functions, and 381 in 52 files).
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", trace.SELECTIONS)
def test_all_selections_run(name):
    found = trace.trace(name)
    counts = found.counts()
    if name == next(iter(trace.SELECTIONS)):
        assert counts == trace.trace(name).counts(), "the same numbers again"
    chosen = (0, 20) if "GAM" in name else (1, 1)  # rounds of a fit that choose a column each
    assert (found.entries, found.auto, found.draws) == (1, *chosen)
    # asked, charged, and recorded: the note that an answer was drawn is a commit of its own, within
    # the lock of the one that records it
    assert found.transactions == (5 if "ledger" in name else 0)
    crossed = (counts["functions"], counts["files"], counts["switches"])
    assert all(one <= most for one, most in zip(crossed, MOST.get(name, ()), strict=False))


def test_the_table_has_a_line_for_each(front):
    lines = trace.table({"a": counted(front), "a longer one": counted(front)}).splitlines()
    assert lines[0].split() == list(trace.COLUMNS)
    assert lines[1].split() == ["a", "8", "2", "1", "3", "1", "1", "1", "1"]
    assert lines[2].split()[3:] == ["8", "2", "1", "3", "1", "1", "1", "1"]
    assert len({len(line) for line in lines}) == 1
