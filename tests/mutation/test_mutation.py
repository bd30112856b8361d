"""Mutation testing itself: it sees a planted kill and a planted survivor, it can put every kind of
mutant into a process, and the list of harmless mutants names code that is there.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from lab import mutants, mutation

ROOT = Path(__file__).resolve().parents[2]

SOURCE = '''
LIMIT = 10

class Box:
    size: int = 3

    def fits(self, number, most=LIMIT):
        """A docstring with 1 < 2."""
        if number < 0:
            raise ValueError(f"{number} < 0, and not {1 + 1}")
        return number + self.size <= most
'''


def of(source):
    return {(one.was, one.now) for one in mutants.mutants_of("box.py", source)}


# What is changed, and what is not


def test_every_kind_of_change_is_made():
    found = of(SOURCE)
    assert ("if number < 0:", "if number <= 0:") in found
    assert ("if number < 0:", "if number >= 0:") in found
    assert ("if number < 0:", "if number < 1:") in found
    assert ("return number + self.size <= most", "return number - self.size <= most") in found
    assert ("return number + self.size <= most", "return number + self.size > most") in found
    assert ("return number + self.size <= most", "return None") in found
    assert ("LIMIT = 10", "LIMIT = 9") in found
    assert ("size: int = 3", "size: int = 4") in found
    assert {now for was, now in found if was.startswith("raise")} == {"pass"}


def test_texts_are_left_alone():
    changed = {was for was, _ in of(SOURCE)}
    assert not [was for was in changed if "docstring" in was]
    assert of('def f(x):\n    return f"{x + 1}"') == {("return f'{x + 1}'", "return None")}
    assert of("class Box:\n    def __repr__(self):\n        return 1 + 1") == set()
    assert of('__all__ = ["x"]\nN: int = TypeVar("N", bound=1)') == set()


@pytest.mark.parametrize(
    ("source", "changed"),
    [
        ("min(a, b)", "max(a, b)"),
        ("math.floor(x)", "math.ceil(x)"),
        ("x.upper()", "x.lower()"),
        ("not x", "x"),
        ("-x", "x"),
        ("a and b", "a or b"),
        ("x << 2", "x >> 2"),
        ("a is None", "a is not None"),
        ("0.5", "1.0"),
        ("True", "False"),
        ("a if b else c", "a if not b else c"),
        ("[x for x in y if x < 3]", "[x for x in y if x <= 3]"),
    ],
)
def test_a_change(source, changed):
    assert (f"return {source}", f"return {changed}") in of(f"def f():\n    return {source}")


def test_statements_are_left_out():
    source = "def f(x):\n    x.a = 1\n    x += 1\n    g(x)\n    for y in x:\n        break"
    found = of(source)
    assert {("x.a = 1", "pass"), ("x += 1", "pass"), ("g(x)", "pass")} <= found
    assert ("break", "continue") in found


def test_mutants_of_the_same_text_are_told_apart():
    source = "def f(x):\n    g(1)\n    g(1)"
    keys = [one.key for one in mutants.mutants_of("twice.py", source)]
    assert len(keys) == len(set(keys))
    assert {key[-1] for key in keys} == {0, 1}


# The list of the harmless


def test_what_is_listed_as_harmless_is_there():
    functions: dict[str, set[str]] = {}
    listed = mutation.read_harmless()
    assert listed
    for file, function, *_ in listed:
        functions.setdefault(file, set()).add(function)
    there = {
        one.key
        for file, within in functions.items()
        for one in mutants.mutants_of(file, within=frozenset(within))
    }
    assert [key for key in listed if key not in there] == []
    assert all(len(reason) > 20 for reason in listed.values())


def test_what_is_listed_is_listed_once():
    import tomllib

    file = ROOT / "tests/mutation/harmless.toml"
    groups = tomllib.loads(file.read_text(encoding="utf-8"))["harmless"]
    listed = Counter(
        (group["file"], group["function"], *change)
        for group in groups
        for change in map(tuple, group["changes"])
    )
    assert [one for one, times in listed.items() if times > 1] == []


def test_the_stored_rate_is_that_of_its_counts():
    stored = json.loads((ROOT / "lab/benchmarks/results/mutation.json").read_text(encoding="utf-8"))
    rows = {row["module"]: row for row in stored["modules"]}
    assert set(rows) == {*mutants.MODULES, "all"}
    for row in rows.values():
        killed = row["killed"] + row["timed"]
        assert killed + row["harmless"] + row["survived"] == row["run"] <= row["mutants"]
        if row["run"] > row["harmless"]:
            assert row["rate"] == pytest.approx(killed / (row["run"] - row["harmless"]))
            assert row["low"] < row["before"] <= row["high"]
            assert row["before"] <= row["rate"]
    assert rows["all"]["survived"] == 0


# The driver


def test_an_interval_holds_the_rate_and_shrinks():
    low, high = mutation.wilson(90, 100)
    assert low < 0.9 < high
    narrow = mutation.wilson(900, 1000)
    assert low < narrow[0] < 0.9 < narrow[1] < high


def test_a_sample_has_one_of_every_function():
    every = mutants.mutants_of("privacy.py")
    functions = {one.function for one in every}
    drawn = mutation.sample(every, len(functions) + 3, 1)
    assert len(drawn) == len(set(drawn)) == len(functions) + 3
    assert {one.function for one in drawn} == functions
    assert drawn == mutation.sample(every, len(functions) + 3, 1)
    assert drawn != mutation.sample(every, len(functions) + 3, 2)


def test_a_fresh_sample_has_none_that_was_seen():
    every = mutants.mutants_of("privacy.py")
    names = [mutation.digest_of(one.key) for one in every]
    assert len(set(names)) == len(names)
    drawn = mutation.unseen(every, set(names[:20]))
    assert drawn == list(every[20:])


def test_every_harmless_mutant_is_one_that_was_seen():
    seen = mutation.read_seen()
    assert [key for key in mutation.read_harmless() if mutation.digest_of(key) not in seen] == []


def test_every_module_has_files_and_tests():
    assert set(mutation.TESTS) == set(mutants.MODULES) >= set(mutants.CORE)
    for module in mutants.MODULES:
        files = mutants.files_of(module)
        assert files
        assert {mutants.module_of(file) for file in files} == {module}
    for file in mutation.test_files(mutants.MODULES):
        assert Path(file).is_file()


PLANTED = """
LEAST = 3
TWICE = 2 * LEAST

class Gate:
    least: int = 3

    def __init__(self, most=9):
        self.most = most

    def opens(self, number):
        return number < self.most

    def counts(self, number):
        return [one for one in range(number) if one >= self.least]

class Door(Gate):
    def __init__(self):
        super().__init__()
        self.is_open = False

def wait(number):
    while number > 0:
        number -= 1
    return number
"""

TESTS = '''
from privmax.planted import TWICE, Door, Gate, wait

def test_gate():
    assert Gate().opens(1)
    assert not Gate().opens(20)
    assert Gate().counts(5) == [3, 4]
    assert TWICE == 6

def test_door():
    assert Door().opens(1)
    assert Door().is_open is False

def test_wait():
    assert wait(3) == 0

def test_that_fails_anyway():
    """It is not counted: it fails where nothing was changed."""
    wait(1)
    assert False
'''

DRIVE = """
import sys, pathlib
sys.path.insert(0, {lab!r})
from lab import mutants, mutation
mutants.ROOT = pathlib.Path({root!r})
mutants.PACKAGE = mutants.ROOT / "src" / "privmax"
mutants.MODULES = {{"planted": "planted.py"}}
mutation.TESTS = {{"planted": "unit/planted"}}
sys.argv = ["mutation"]
mutation.main()
"""


@pytest.mark.slow
def test_it_sees_what_is_killed_and_what_survives(tmp_path):
    """`number < most` is not tried at 9: `<=` survives. All else is killed, `number += 1` by
    time.
    """
    files = {"src/privmax/planted.py": PLANTED, "tests/unit/test_planted.py": TESTS}
    for name, text in files.items():
        file = tmp_path / name
        file.parent.mkdir(parents=True)
        file.write_text(text, encoding="utf-8")
    (tmp_path / "src/privmax/__init__.py").touch()
    (tmp_path / "pytest.ini").write_text(
        "[pytest]\naddopts = --import-mode=importlib\nmarkers =\n    slow\n    engines\n",
        encoding="utf-8",
    )
    script = DRIVE.format(lab=str(ROOT), root=str(tmp_path))
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "src")}
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    lines = (tmp_path / ".mutation/outcomes.jsonl").read_text(encoding="utf-8").splitlines()
    endings = {(key[2], key[3]): told["ending"] for key, told in map(json.loads, lines)}
    survived = {changed for changed, ending in endings.items() if ending == mutation.SURVIVED}
    assert survived >= {("return number < self.most", "return number <= self.most")}
    assert survived <= {
        ("return number < self.most", "return number <= self.most"),
        ("def __init__(self, most=9):", "def __init__(self, most=10):"),
        ("def __init__(self, most=9):", "def __init__(self, most=8):"),
    }
    assert endings["return number < self.most", "return number >= self.most"] == mutation.KILLED
    assert endings["LEAST = 3", "LEAST = 4"] == mutation.KILLED
    assert endings["least: int = 3", "least: int = 4"] == mutation.KILLED
    assert endings["number -= 1", "number += 1"] == mutation.TIMED
    assert endings["self.most = most", "pass"] == mutation.KILLED
    assert endings["super().__init__()", "pass"] == mutation.KILLED
