"""Stored leads are those that laws give. As a script, it writes them.

./dev python tests/exact/test_stored_leads.py
"""

from __future__ import annotations

import re
from fractions import Fraction
from pathlib import Path

import pytest

from privmax import LargeMargin, LargeMarginTruncated
from privmax.mechanisms import large_margin, stored_leads
from privmax.mechanisms.stored_leads import DELTAS, LEADS, SUCCESS, find_lead

KINDS = (LargeMargin, LargeMarginTruncated)
EPSILONS = tuple(map(Fraction, ("1/10", "1/5", "1/4", "1/2", 1, 2, 3, 4, 5, 8, 10)))
COSTS = {LargeMargin: EPSILONS, LargeMarginTruncated: EPSILONS[1:]}
"""The law of the second takes too many steps at the first."""


def computed(kind, epsilon, delta):
    """The lead from laws, whatever is stored."""
    mechanism = kind(epsilon=epsilon, delta=delta)
    return large_margin._search_lead(mechanism, None, 1, SUCCESS)


def test_all_costs_are_stored():
    for kind in KINDS:
        assert list(map(Fraction, LEADS[kind.__name__])) == list(COSTS[kind])
        assert all(len(row) == len(DELTAS) for row in LEADS[kind.__name__].values())


@pytest.mark.slow
@pytest.mark.parametrize("delta", DELTAS, ids=lambda delta: f"{float(delta):g}")
@pytest.mark.parametrize(
    ("kind", "epsilon"),
    [(kind, epsilon) for kind in KINDS for epsilon in COSTS[kind]],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_a_stored_lead_is_that_of_the_laws(kind, epsilon, delta):
    assert find_lead(kind.__name__, epsilon, delta) == computed(kind, epsilon, delta)


@pytest.mark.parametrize("kind", KINDS)
def test_a_stored_lead_is_used_where_it_was_computed_and_nowhere_else(kind, monkeypatch):
    monkeypatch.setattr(large_margin, "find_lead", lambda name, *_: -1 if name in LEADS else None)
    mechanism = kind(epsilon=8, delta="1e-6")
    assert mechanism.lead(candidates=None) == -1
    assert kind(epsilon=8, delta="1e-6", neighbors="replace").lead(candidates=None) == -1
    for others in ({"candidates": 10**6}, {"near": 2}, {"success": "0.9"}):
        assert mechanism.lead(**{"candidates": None, **others}) > 0
    for others in ({"constants": "corrected"}, {"cap": 1 << 20}):
        assert kind(epsilon=8, delta="1e-6", **others).lead(candidates=None) > 0

    class Other(kind):
        pass

    assert Other(epsilon=8, delta="1e-6").lead(candidates=None) > 0


@pytest.mark.parametrize("kind", KINDS)
def test_the_neighbor_relation_does_not_change_a_lead(kind):
    leads = {
        large_margin._search_lead(
            kind(epsilon=8, delta="1e-6", neighbors=neighbors), None, 1, SUCCESS
        )
        for neighbors in ("add-remove", "replace")
    }
    assert len(leads) == 1


def write():
    """Compute all leads and write them into the module."""
    lines = []
    for kind in KINDS:
        lines.append(f'    "{kind.__name__}": {{\n')
        for epsilon in COSTS[kind]:
            row = [computed(kind, epsilon, delta) for delta in DELTAS]
            lines.append(f'        "{epsilon}": ({", ".join(map(str, row))}),\n')
            print(kind.__name__, epsilon, row)
        lines.append("    },\n")
    file = Path(stored_leads.__file__)
    table = "".join(lines)
    text = re.sub(
        r"(?<=tuple\[int, \.\.\.\]\]\] = \{\n).*?(?=\}  # fmt)",
        table,
        file.read_text(encoding="utf-8"),
        flags=re.DOTALL,
    )
    file.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write()
