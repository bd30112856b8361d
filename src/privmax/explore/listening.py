"""The place where the server listens: a port, or a Unix socket that only one user can reach."""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from privmax.errors import ParameterError

WAITING = 50
"""Connections that may wait to be accepted."""


def listen(host: str, port: int) -> socket.socket:
    """A socket that no one else listens on."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio sends without delay (TCP_NODELAY) where the protocol is named.
    opened = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        if hasattr(socket, "SO_EXCLUSIVEADDRUSE"):  # Windows lets others share a port otherwise
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_EXCLUSIVEADDRUSE, 1)
        else:
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        opened.bind((host, port))
        opened.listen(WAITING)
    except socket.gaierror:
        opened.close()
        raise ParameterError(
            "host", host, "this machine has no such address", "Leave it out to serve loopback."
        ) from None
    except OSError as error:
        opened.close()
        raise ParameterError(
            "port", port, f"it cannot be used ({error.strerror})", "Choose another, or --port 0."
        ) from None
    return opened


@contextmanager
def listen_at(path: str) -> Iterator[socket.socket]:
    """A Unix socket of mode 0600 in a folder of mode 0700; it is removed at the end.

    The folder is made if it is missing. A socket that a stopped server left there is replaced;
    every other file is refused.
    """
    if not hasattr(socket, "AF_UNIX"):
        raise ParameterError("socket", path, "this system has no Unix sockets", "Use --port.")
    _prepare_folder(path)
    _remove_stale(path)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        mask = os.umask(0o177)  # the file has its mode from the start
        try:
            listener.bind(path)
        except OSError as error:
            raise _refusal(path, f"it cannot be used ({error.strerror or error})") from None
        finally:
            os.umask(mask)
        made = os.lstat(path)
        listener.listen(WAITING)
        try:
            yield listener
        finally:
            with suppress(FileNotFoundError):
                if os.path.samestat(os.lstat(path), made):
                    os.unlink(path)
    finally:
        listener.close()


def _prepare_folder(path: str) -> None:
    """Make the folder of a socket, or see that no one else can enter it."""
    folder = os.path.dirname(os.path.abspath(path))
    try:
        with suppress(FileExistsError):
            os.mkdir(folder, 0o700)
        facts = os.stat(folder)
    except OSError as error:
        raise _refusal(path, f"its folder cannot be made ({error.strerror})") from None
    if not stat.S_ISDIR(facts.st_mode):
        raise _refusal(path, "its folder is a file")
    if facts.st_uid != os.getuid():
        raise _refusal(path, "its folder belongs to another user")
    if facts.st_mode & 0o077:
        mode = stat.S_IMODE(facts.st_mode)
        raise _refusal(path, f"others can enter its folder (mode {mode:04o}, not 0700)")


def _remove_stale(path: str) -> None:
    """Remove a socket that no one listens at any more."""
    try:
        mode = os.lstat(path).st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        raise _refusal(path, "there is a file, which is not a socket")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as line:
        try:
            line.connect(path)
        except ConnectionRefusedError:
            os.unlink(path)
        except OSError as error:
            raise _refusal(path, f"it cannot be used ({error.strerror or error})") from None
        else:
            raise _refusal(path, "another server listens there")


def _refusal(path: str, why: str) -> ParameterError:
    remedy = "Name a socket in a new folder, which is then made, or in one of mode 0700."
    return ParameterError("socket", path, why, remedy)
