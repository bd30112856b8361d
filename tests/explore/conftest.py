"""Pages without a browser: an explorer with a ledger and private data, and somebody who asks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from privmax.explore.datasets import Dataset
from privmax.explore.security import TOKEN
from privmax.explore.server import application, gate_for
from privmax.explore.state import Explorer
from privmax.explore.work import Pool
from privmax.ledger import Ledger

PORT = 8765
HERE = f"http://127.0.0.1:{PORT}"


@pytest.fixture(scope="session")
def pool() -> Iterator[Pool]:
    found = Pool()
    yield found
    found.close()


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages may compute for ten minutes: a busy machine takes its time."""
    monkeypatch.setattr(Explorer.compute, "__kwdefaults__", {"key": None, "seconds": 600.0})


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A log in which tea is far ahead."""
    file = tmp_path / "private-log.csv"
    lines = [f"{person},tea,DE" for person in range(300)] + ["1,ale,FR", "2,ale,FR"]
    file.write_text("person,drink,country\n" + "\n".join(lines) + "\n")
    return file


@pytest.fixture
def explorer(tmp_path: Path, data: Path, pool: Pool) -> Iterator[Explorer]:
    ledger = Ledger.create(tmp_path / "budget.db", "team", epsilon=5, delta="1e-4", strict=True)
    given = {"file": str(data), "columns": ["drink"], "where": ["country"], "user": "person"}
    sample = {"file": "sample:counts"}
    datasets = {"log": Dataset.of("log", given), "counts": Dataset.of("counts", sample)}
    gate = gate_for("127.0.0.1", PORT, own_user=False)  # there is no connection
    yield Explorer(gate, pool, ledger, datasets)
    ledger.close()


@pytest.fixture
def client(explorer: Explorer) -> Iterator[TestClient]:
    """A browser that has opened the printed address."""
    with TestClient(application(explorer), base_url=HERE, raise_server_exceptions=True) as found:
        opened = found.get(f"/?key={explorer.gate.key}", follow_redirects=False)
        assert opened.status_code == 303
        yield found


@pytest.fixture
def send(client: TestClient, explorer: Explorer) -> Callable[..., Any]:
    """Sends a form as its page would; what is given replaces fields and headers."""

    def act(path: str, headers: dict[str, str] | None = None, **fields: Any) -> Any:
        form = {TOKEN: explorer.gate.token, **fields}
        return client.post(
            path,
            data={key: value for key, value in form.items() if value is not None},
            headers={"Origin": HERE, **(headers or {})},
            follow_redirects=False,
        )

    return act
