"""URLs of PostgreSQL databases, without their secrets."""

from __future__ import annotations

import re

_SECRET = re.compile("password|secret|scram")
"""In the names of libpq's options whose values are secrets."""


def show_url(url: str) -> str:
    """Host, port and database of a URL; nothing if the password cannot be found in it."""
    from psycopg import Error
    from psycopg.conninfo import conninfo_to_dict

    try:
        parts = {name: str(value) for name, value in conninfo_to_dict(url).items()}
    except (Error, UnicodeError):
        parts = {"dbname": "@"}
    host, port, database = parts.get("host", ""), parts.get("port", ""), parts.get("dbname", "")
    if "@" in host + database or port.strip(
        "0123456789,"
    ):  # a password with a slash looks like that
        return "postgresql://…"
    return f"postgresql://{host}{':' if port else ''}{port}/{database}"


def public_url(url: str) -> str:
    """Return a URL of the same database without the secrets in it.

    If it is not known which those are, it has none of the URL at all.
    """
    from urllib.parse import urlencode

    from psycopg import Error
    from psycopg.conninfo import conninfo_to_dict

    try:
        parts = conninfo_to_dict(url)
    except (Error, UnicodeError):
        return "postgresql://"
    public = {name: str(parts[name]) for name in parts if not _SECRET.search(name)}
    return f"postgresql://?{urlencode(public)}"


def describe_place(url: str) -> str:
    """Return which tables a URL leads to, for any user: host, port, database, and settings."""
    from urllib.parse import parse_qsl, urlencode

    public = parse_qsl(public_url(url).partition("?")[2])
    settings = [(name, value) for name, value in public if name in ("options", "service")]
    return show_url(url) + (f"?{urlencode(settings)}" if settings else "")
