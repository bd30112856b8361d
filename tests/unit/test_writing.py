"""Files are written all or nothing, and never in place of what must not be lost."""

from __future__ import annotations

import os

import pytest

from privmax import Ledger, Privacy
from privmax.errors import ParameterError
from privmax.writing import check_apart, check_file, write


def test_text_and_bytes_replace_what_was_there(tmp_path):
    place = tmp_path / "page.html"
    write("é one", place, "report", (".html",))
    assert place.read_bytes() == "é one".encode()
    write(b"\x00two", place, "report")
    assert place.read_bytes() == b"\x00two"
    assert os.listdir(tmp_path) == ["page.html"]


def test_a_ledger_is_never_replaced(tmp_path):
    place = tmp_path / "budget.html"
    Ledger.create(place, budget=Privacy(1)).close()
    before = place.read_bytes()
    for act in (lambda: check_file(place, "report"), lambda: write("page", place, "report")):
        with pytest.raises(
            ParameterError, match=r"^report=.* is an existing database, perhaps a ledger"
        ):
            act()
    assert place.read_bytes() == before


def test_a_failure_leaves_what_was_there_and_nothing_else(tmp_path, monkeypatch):
    place = tmp_path / "page.html"
    place.write_text("old", encoding="utf-8")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(ParameterError, match="No space left on device"):
        write("new", place, "report")
    assert (place.read_text(encoding="utf-8"), os.listdir(tmp_path)) == ("old", ["page.html"])


def test_what_is_read_is_not_written_to_under_any_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data = tmp_path / "data.html"
    data.write_text("data", encoding="utf-8")
    (tmp_path / "link.html").symlink_to(data)
    os.link(data, tmp_path / "twin.html")
    for name in ("data.html", str(data), "./data.html", "link.html", "twin.html"):
        with pytest.raises(ParameterError, match="it is the same file as FILE"):
            check_apart({"report": name}, {"FILE": str(data), "--ledger": None})
    check_apart({"report": "other.html", "save": None}, {"FILE": str(data)})


def test_two_outputs_do_not_share_a_file(tmp_path):
    place = str(tmp_path / "out.html")
    with pytest.raises(ParameterError, match="it is the same file as --save"):
        check_apart({"save": place, "report": place}, {})
