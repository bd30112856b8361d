"""Files are written all or nothing, and never in place of what must not be lost."""

from __future__ import annotations

import os
import stat

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


@pytest.mark.skipif(os.name != "posix", reason="modes are of POSIX")
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664, 0o400])
def test_a_file_that_is_replaced_keeps_its_mode(tmp_path, mode):
    file = tmp_path / "a.txt"
    file.touch()
    file.chmod(mode)
    before = file.stat()
    write("new", file, "output")
    after = file.stat()
    assert file.read_text(encoding="utf-8") == "new"
    assert (stat.S_IMODE(after.st_mode), after.st_uid) == (mode, before.st_uid)
    assert after.st_ino != before.st_ino


@pytest.mark.skipif(os.name != "posix", reason="modes are of POSIX")
def test_what_replaces_a_file_is_never_open_to_more_people_than_it_was(tmp_path, monkeypatch):
    file = tmp_path / "a.txt"
    file.touch(mode=0o600)
    seen = []
    sync = os.fsync

    def looking(number):
        seen.extend(stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir())
        sync(number)

    monkeypatch.setattr(os, "fsync", looking)
    write("new", file, "output")
    assert seen == [0o600, 0o600]


@pytest.mark.skipif(os.name != "posix", reason="modes are of POSIX")
def test_a_new_file_has_the_mode_that_the_system_gives(tmp_path):
    (tmp_path / "touched").touch()
    write("new", tmp_path / "written", "output")
    modes = {path.stat().st_mode for path in tmp_path.iterdir()}
    assert len(modes) == 1
