"""Every engine that privmax has a file for is tested, and every URL that leads to one is opened."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import ibis
import pytest
from ibis.backends import BaseBackend

import privmax
from privmax.sources.engines import all_engines, engine_of

Load = Callable[..., Any]

SCHEMES = {
    "duckdb": "duckdb",
    "sqlite": "sqlite",
    "postgres": "postgres",
    "postgresql": "postgres",
    "mysql": "mariadb",
    "mariadb": "mariadb",
}
"""The engine of the suite that the URLs of a scheme lead to here."""


def test_every_engine_is_in_the_suite(suite: dict[str, str]) -> None:
    assert set(suite.values()) == {engine.name for engine in all_engines()}


def test_every_scheme_is_opened_here() -> None:
    assert SCHEMES.keys() == {scheme for engine in all_engines() for scheme in engine.schemes}


def test_the_engine_of_a_table_is_the_one_that_ibis_names(
    connection: BaseBackend, load: Load
) -> None:
    engine = engine_of(load({"query": ["tea"]}))
    assert type(engine) in all_engines()
    assert engine.name == connection.name


@pytest.mark.parametrize(("scheme", "engine"), SCHEMES.items(), ids=list(SCHEMES), scope="session")
def test_a_url_leads_to_the_rows(
    scheme: str, engine: str, load: Load, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    rows = {"query": ["tea"] * 60 + ["ale"], "person": list(range(61))}
    if any(scheme in one.schemes and one.endings for one in all_engines()):
        url, table = f"{engine}://{tmp_path / 'shop.db'}", "searches"
        other = getattr(ibis, engine).connect(tmp_path / "shop.db")
        other.create_table(table, ibis.memtable(rows))
        other.disconnect()
    else:
        url = request.getfixturevalue(engine)
        table = load(rows).get_name()
    url = f"{scheme}://{url.partition('://')[2]}"
    release = privmax.select(
        privmax.Database(url, table), item="query", user="person", epsilon=4, delta="0.01"
    )
    assert release.item == "tea"
