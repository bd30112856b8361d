"""Compiled code that an earlier process or another version has left beside its file."""

from __future__ import annotations

import importlib.util
import pickle
import sys

import pytest

pytest.importorskip("numba")

SOURCE = """
from typing import NamedTuple
from privmax.kernels import entry

class Limits(NamedTuple):
    most: int

@entry
def double(limits):
    return 2 * limits.most
"""


def load(file):
    """Import the file anew, as another process would: what is compiled comes from the disk."""
    spec = importlib.util.spec_from_file_location("kernels_of_a_test", file)
    sys.modules["kernels_of_a_test"] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def call(module):
    return module.double(module.Limits(21))


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setitem(sys.modules, "kernels_of_a_test", None)
    file = tmp_path / "kernels_of_a_test.py"
    file.write_text(SOURCE)
    assert call(load(file)) == 42
    return file


def left(file, ending):
    (one,) = (file.parent / "__pycache__").glob(f"*.{ending}")
    return one


def test_compiled_code_is_kept(file):
    module = load(file)
    assert call(module) == 42
    assert sum(module.double.stats.cache_hits.values()) == 1


def test_code_that_another_version_left_is_compiled_again(file):
    """It names a class that is called otherwise now."""
    file.write_text(SOURCE.replace("Limits", "WalkLimits"))
    module = load(file)
    assert module.double(module.WalkLimits(21)) == 42


@pytest.mark.parametrize("ending", ["nbi", "nbc"])
@pytest.mark.parametrize("damage", [b"", b"cno_such_module\nLimits\n.", b"\x80\x05garbage"])
def test_a_damaged_file_is_written_anew(file, ending, damage):
    kept = left(file, ending)
    known = pickle.dumps(pickle.loads(kept.read_bytes())) if ending == "nbi" else b""
    kept.write_bytes(known + damage)
    assert call(load(file)) == 42
    again = load(file)
    assert call(again) == 42
    assert sum(again.double.stats.cache_hits.values()) == 1, "it was not mended"
