"""Where the server listens: which places for a socket are refused, and what is sent at once."""

from __future__ import annotations

import asyncio
import os
import socket
import stat
import sys

import pytest
from click.testing import CliRunner

from privmax.cli import main
from privmax.errors import ParameterError
from privmax.explore.listening import listen, listen_at

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there are no Unix sockets")


def test_a_socket_has_its_modes_and_is_removed(tmp_path):
    path = tmp_path / "new" / "explore.sock"
    before = os.umask(0)
    try:
        with listen_at(str(path)):
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
            assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
            assert os.umask(0) == 0  # as it was
    finally:
        os.umask(before)
    assert not path.exists()


def test_the_socket_of_a_stopped_server_is_replaced(tmp_path):
    tmp_path.chmod(0o700)
    path = tmp_path / "explore.sock"
    with socket.socket(socket.AF_UNIX) as old:
        old.bind(str(path))
    with listen_at(str(path)):
        with pytest.raises(ParameterError, match="another server listens there"), \
                listen_at(str(path)):  # fmt: skip
            pass
        with socket.socket(socket.AF_UNIX) as line:
            line.connect(str(path))
    assert not path.exists()


def test_a_socket_that_somebody_else_put_there_is_not_removed(tmp_path):
    tmp_path.chmod(0o700)
    path = tmp_path / "explore.sock"
    with listen_at(str(path)):
        path.unlink()
        path.write_text("mine")
    assert path.read_text() == "mine"


@pytest.mark.parametrize("kind", ["file", "link", "dangling", "folder"])
def test_what_is_not_a_socket_stays_as_it_is(tmp_path, kind):
    tmp_path.chmod(0o700)
    path = tmp_path / "explore.sock"
    (tmp_path / "other").write_text("kept")
    if kind == "file":
        path.write_text("kept")
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to(tmp_path / ("other" if kind == "link" else "none"))
    before = os.lstat(path)
    with pytest.raises(ParameterError, match="not a socket"), listen_at(str(path)):
        pass
    assert os.path.samestat(os.lstat(path), before)
    assert (tmp_path / "other").read_text() == "kept"


@pytest.mark.parametrize("mode", [0o755, 0o750, 0o701, 0o777])
def test_a_folder_that_others_can_enter_is_refused(tmp_path, mode):
    tmp_path.chmod(mode)
    with pytest.raises(ParameterError, match=f"mode {mode:04o}"), listen_at(f"{tmp_path}/a.sock"):
        pass
    assert not (tmp_path / "a.sock").exists()
    tmp_path.chmod(0o700)


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="needs a second user")
def test_a_folder_of_another_user_is_refused(tmp_path):
    folder = tmp_path / "theirs"
    folder.mkdir(0o700)
    os.chown(folder, 65534, -1)
    with pytest.raises(ParameterError, match="another user"), listen_at(str(folder / "a.sock")):
        pass


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--socket", "none/none/a.sock"), "its folder cannot be made"),
        (("--socket", "own/" + "a" * 200), "it cannot be used"),
        (("--socket", "own/a.sock", "--port", "0"), "--port"),
        (("--socket", "own/a.sock", "--host", "0.0.0.0", "--reason", "x"), "--host"),
    ],
)
def test_a_socket_that_makes_no_sense_is_refused(tmp_path, monkeypatch, words, message):
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(main, ["explore", *words])
    assert done.exit_code == 2, done.output
    assert message in done.output
    assert "--socket" in done.output


def test_answers_are_sent_without_delay():
    """Otherwise each answer waits some 40 ms for the other side (Nagle's algorithm)."""
    seen = []

    class Look(asyncio.Protocol):
        def connection_made(self, transport):
            line = transport.get_extra_info("socket")
            seen.append(line.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            transport.close()

    async def connect() -> None:
        server = await asyncio.get_running_loop().create_server(Look, sock=listen("127.0.0.1", 0))
        async with server:
            reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
            await reader.read()
            writer.close()

    asyncio.run(connect())
    assert seen == [1]
