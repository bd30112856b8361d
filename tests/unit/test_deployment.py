"""A deployment as facts: the fields of the registry, and the checklist."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from fractions import Fraction

import pytest
import yaml

import privmax
from privmax.errors import LedgerError
from privmax.ledger import Ledger
from privmax.ledger.events import EventRow, seal
from privmax.ledger.rows import COLUMNS
from privmax.privacy import Privacy
from privmax.report import checklist, registry
from privmax.report.deployment import Deployment

TEXT = str
SCHEMA = {
    "url_slug": (TEXT, 0),
    "basic/name": (TEXT, 1),
    "basic/data_curators": (list, 1),
    "basic/description": (TEXT, 1),
    "basic/intended_use": (TEXT, 1),
    "basic/data_product_type": (TEXT, 1),
    "basic/data_product_region": (TEXT, 1),
    "basic/data_product_sector": (TEXT, 1),
    "basic/publication_date": (TEXT, 1),
    "dp_variant/variant_name": (TEXT, 2),
    "dp_variant/data_domain": (TEXT, 3),
    "dp_variant/unprotected_quantities": (TEXT, 3),
    "privacy_loss/privacy_unit": (TEXT, 2),
    "privacy_loss/privacy_unit_details": (TEXT, 3),
    "privacy_loss/number_of_privacy_units": (int, 3),
    "privacy_loss/privacy_parameters/epsilon": (float, 2),
    "privacy_loss/privacy_parameters/delta": (float, 2),
    "privacy_loss/privacy_parameters_details": (TEXT, 3),
    "deployment_model/model_name": (TEXT, 2),
    "deployment_model/trust_assumptions": (TEXT, 3),
    "deployment_model/actors": (TEXT, 3),
    "deployment_model/release_type": (TEXT, 2),
    "deployment_model/release_type_details": (TEXT, 3),
    "deployment_model/data_source_type": (TEXT, 2),
    "deployment_model/access_type": (TEXT, 2),
    "deployment_model/access_type_details": (TEXT, 3),
    "implementation/preprocessing_and_hyperparameter_tuning": (TEXT, 3),
    "implementation/mechanisms": (TEXT, 3),
    "implementation/composition": (TEXT, 3),
    "implementation/post_processing": (TEXT, 3),
    "implementation/justification": (TEXT, 3),
    "implementation/utility": (TEXT, 3),
    "implementation/additional_information": (TEXT, 1),
    "administrative/status": (TEXT, 0),
    "administrative/registry_authors": (list, 0),
    "administrative/tier": (int, 0),
}
"""Fields of the registry's schema, in its order (opendp/deployments-registry-data at 057e5d8):
what they hold, and from which tier on they are asked for; 0: always."""

REQUIRED = {
    "name", "data_curators", "description", "intended_use", "data_product_type",
    "data_product_region", "publication_date",
}  # fmt: skip


@pytest.fixture
def ledger(tmp_path):
    with Ledger.create(tmp_path / "b.db", 'Shop: "#1"', epsilon=3, delta="1e-5") as found:
        for request in ("one", "two"):
            privmax.select(
                {"tea": 900}, epsilon="0.1", delta="1e-6",
                ledger=found.request(request, dataset="drinks"),
            )  # fmt: skip
        yield found


def leaves(tree, path=""):
    for name, value in tree.items():
        if isinstance(value, dict):
            yield from leaves(value, f"{path}{name}/")
        else:
            yield f"{path}{name}".removeprefix("deployment/"), value


@pytest.mark.parametrize("tier", [1, 2, 3])
def test_an_entry_has_the_fields_of_the_schema_tier_by_tier(ledger, tier):
    written = registry.to_yaml(registry.fields(Deployment.of(ledger), tier))
    found = dict(leaves(yaml.safe_load(written)))
    for path, value in found.items():
        kind, least = SCHEMA[path]
        assert isinstance(value, kind), path
        assert least <= tier
        name = path.rpartition("/")[2]
        if name in registry.VALUES:
            assert value in registry.VALUES[name]
    order = [path for path in SCHEMA if path in found]
    assert list(found) == order
    for path, (_, least) in SCHEMA.items():
        if least <= tier and path not in found:  # then it is a comment that says what to add
            assert f"# {path.rpartition('/')[2]}: add " in written
    assert {f"basic/{name}" for name in REQUIRED} <= set(found)
    assert found["administrative/tier"] == tier


def test_numbers_are_not_below_what_was_spent(ledger):
    found = dict(leaves(yaml.safe_load(registry.to_yaml(registry.fields(Deployment.of(ledger))))))
    assert found["privacy_loss/privacy_parameters/epsilon"] == 0.2
    assert found["privacy_loss/privacy_parameters/delta"] == 2e-06
    for number in (Fraction(1, 3), Fraction(2, 3), Fraction(1, 10), Fraction(10**17 + 1, 10**17)):
        assert Fraction(repr(registry._above(number))) >= number
    assert registry._above(Fraction(1, 10)) == 0.1


def test_one_release_has_its_own_entry(ledger):
    found = Deployment.of(ledger, "one")
    assert (found.releases, found.answered, found.cost) == (1, 1, Privacy("0.1", "1e-6"))
    assert Deployment.of(ledger).cost == Privacy("0.2", "2e-6")
    entry = {one.path: one.value for one in registry.fields(found)}
    assert entry["deployment/deployment_model/release_type"] == "One release"
    with pytest.raises(LedgerError, match="no request 'none'"):
        Deployment.of(ledger, "none")


def test_a_pure_ledger_and_one_without_releases(tmp_path):
    with Ledger.create(tmp_path / "p.db", epsilon=3) as ledger:
        empty = Deployment.of(ledger)
        written = registry.to_yaml(registry.fields(empty))
        assert "# publication_date: add the day" in written
        yaml.safe_load(written)
        checklist.to_markdown(empty)
        privmax.select(
            {"a": 5},
            epsilon=1,
            universe=["a", "b"],
            ledger=ledger,
            scores=privmax.Scores(neighbors="replace"),
        )
        found = Deployment.of(ledger)
    entry = {one.name: one.value for one in registry.fields(found)}
    assert entry["variant_name"] == "Pure DP"
    assert "delta" not in entry
    assert "exchanged" in entry["privacy_unit_details"]
    items = {item.topic: item for item in checklist.items(found)}
    assert "(the bounded definition)" in items["Neighboring data sets"].known
    assert items["Privacy parameter δ"].state == "known"


@pytest.mark.parametrize(
    "value", ["a: b # c", 'say "x"', "line\nbreak", "\u2028\x85\ufeff\x7f", "- x", "'", "{}", "é"]
)
def test_text_comes_back_from_yaml_as_it_was(value):
    assert yaml.safe_load(f"a: {registry._scalar(value)}") == {"a": value}


def test_the_checklist_says_what_is_known_and_what_a_person_must_add(ledger):
    found = Deployment.of(ledger)
    items = checklist.items(found)
    assert [item.level for item in items] == sorted(
        (item.level for item in items), key=["guarantee", "implementation", "surroundings"].index
    )
    assert {item.state for item in items} == {"known", "partly", "open"}
    assert all(item.known or item.add for item in items)
    written = checklist.to_markdown(found)
    assert "2 releases cost ε = 0.2 together; the budget is 3." in written
    assert written.count("- [x]") == sum(item.state == "known" for item in items)
    assert 'Shop: "\\#1"' in written


def test_nothing_is_called_pure_before_the_first_release_unless_it_will_be(tmp_path):
    with Ledger.create(tmp_path / "a.db", epsilon=3, delta="1e-5") as ledger:
        found = Deployment.of(ledger)
    items = {item.topic: item for item in checklist.items(found)}
    assert items["Privacy parameter δ"].known == "δ = 0; the budget is 1e-05."
    entry = {one.name: one.value for one in registry.fields(found)}
    assert entry["variant_name"] == "Approximate DP"


def test_a_weak_guarantee_is_called_weak(tmp_path):
    with Ledger.create(tmp_path / "w.db", epsilon=50) as ledger:
        privmax.select({"a": 5}, epsilon=20, universe=["a", "b"], ledger=ledger)
        items = {item.topic: item for item in checklist.items(Deployment.of(ledger))}
    assert "protects little" in items["Privacy parameter ε"].known


@pytest.mark.parametrize("moment", ["", "yesterday", "2026-01-01T00:00:00"])
def test_an_event_whose_time_was_forged_is_refused_and_found(tmp_path, moment):
    """The last has no zone: such times cannot be compared with those of other events."""
    file = tmp_path / "budget.db"
    with Ledger.create(file, epsilon=3) as ledger:
        privmax.select({"a": 9}, epsilon=1, universe=["a", "b"], ledger=ledger.request("r"))
        with closing(sqlite3.connect(file, isolation_level=None)) as connection:
            for (name,) in connection.execute(
                "SELECT name FROM sqlite_master WHERE type = 'trigger'"
            ).fetchall():
                connection.execute(f"DROP TRIGGER {name}")
            *_, before, last = (
                EventRow(*one)
                for one in connection.execute(f"SELECT {COLUMNS} FROM privmax_events ORDER BY seq")
            )
            forged = seal(before.hash, "default", last._replace(moment=moment))
            connection.execute(
                "UPDATE privmax_events SET moment = ?, hash = ? WHERE seq = ?",
                [moment, forged.hash, last.seq],
            )
            connection.execute("UPDATE privmax_ledgers SET hash = ?", [forged.hash])
    with Ledger(file) as again:
        assert [str(fault) for fault in again.verify()] == ["event 3: its time is invalid"]
        found = Deployment.of(again)
        assert (found.releases, found.answered, found.unread) == (1, 0, 1)
        assert "1 event of the ledger cannot be read" in checklist.to_markdown(found)
        with pytest.raises(LedgerError, match="Event 3"):
            privmax.select({"a": 9}, epsilon=1, universe=["a", "b"], ledger=again.request("r"))
