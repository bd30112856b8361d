"""Keeps passwords in URLs of databases out of messages."""

from __future__ import annotations

import os
import re

SAMPLE = "sample:"
"""The prefix of FILE where it names a data set included in privmax."""


def without_urls(message: str) -> str:
    """Return the message with URLs left out, and what is too long to be read cut short."""
    return re.sub(
        r"(\S{100})\S{100,}", r"\1…", re.sub(r"://\S.*", "://…", message, flags=re.DOTALL)
    )


def without_passwords(message: str) -> str:
    """Return the message without what is before the host of a URL, and behind its path."""
    return re.sub(r"(://[^\s?]*)\?\S*", r"\1", re.sub(r"://\S*@", "://…@", message))


def hide_password(place: str) -> str:
    """Return where data is, as it may be shown.

    Of a URL neither user and password nor what follows its path are shown.
    """
    if place == "-":
        return "standard input"
    scheme, slashes, rest = place.partition("://")
    if not slashes:
        return place
    cut = min((rest.index(c) for c in "?#;" if c in rest), default=len(rest))
    if (
        "@" in rest[cut:]
    ):  # a password may hold such a sign: nobody can tell which part of this it is
        return f"{scheme}://…"
    return f"{scheme}://{rest[:cut].rpartition('@')[2]}"


def locate(file: str, table: str | None = None) -> str | None:
    """Return where data is, for a ledger: an absolute path, or a database and its table.

    None for data without a place, such as standard input.
    """
    from privmax.ledger.payment import shorten_place
    from privmax.sources.engines import file_engines

    if file == "-":
        return None
    if file.startswith(SAMPLE):
        return shorten_place(file)
    scheme, slashes, rest = file.partition("://")
    if not slashes:
        return shorten_place(" ".join(filter(None, (os.path.abspath(file), table))))
    is_file = any(scheme in engine.schemes for engine in file_engines())
    where = f"{scheme}://{os.path.abspath(rest)}" if is_file else file
    parts = hide_password(where), table and hide_password(table)
    return shorten_place(" ".join(filter(None, parts)))
