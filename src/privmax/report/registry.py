"""A deployment in the fields of the public registry of differential privacy deployments.

Names of fields, their tiers and their lists of values follow the schema in
github.com/opendp/deployments-registry-data (schemas/deployments-schema.yaml, commit 057e5d8). What
privmax does not know is a comment there that says what a person must add.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from privmax.report.deployment import Deployment

SOURCE = "github.com/opendp/deployments-registry-data, schemas/deployments-schema.yaml at 057e5d8"

VALUES = {
    "data_curator_type": ("Government", "Industry", "Nonprofit"),
    "data_product_type": (
        "Summary statistics", "Machine learning model", "Dataset", "Synthetic data",
        "Interactive API", "SQL queries",
    ),
    "data_product_sector": (
        "Technology", "Healthcare", "Education", "Government", "Energy", "Finance",
    ),
    "variant_name": (
        "Pure DP", "Approximate DP", "Zero-concentrated DP", "Renyi DP", "Custom",
    ),
    "model_name": ("Local", "Central", "Shuffle", "Federated", "Varies"),
    "release_type": ("One release", "Many releases"),
    "data_source_type": ("Static", "Dynamic"),
    "access_type": ("Interactive", "Non-interactive"),
    "status": ("Draft",),
}  # fmt: skip
"""Fields that take one of a few values. The registry lets these lists grow."""

_BREAKS = "\x7f\x85\u2028\u2029\ufeff"
"""Characters that JSON takes as they are, and YAML for the end of a line or not at all."""

Value = str | int | float | list[str] | None


@dataclass(frozen=True)
class Field:
    """One field of an entry.

    Args:
        path: Its name, with those of the parts it is in.
        tier: From which tier on the registry asks for it; 0: it is always there.
        value: What it holds; None: privmax does not know.
        add: What a person must add or check; empty: nothing.
    """

    path: str
    tier: int
    value: Value = None
    add: str = ""

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]


def fields(facts: Deployment, tier: int = 3) -> list[Field]:
    """Return the entry of a deployment, in the order of the schema.

    Args:
        facts: What the ledger tells.
        tier: 1, 2 or 3: how much the registry is told.
    """
    every = [
        Field("url_slug", 0, _slug(facts.name), "a stable name for the address of the entry"),
        *_basic(facts),
        *_variant(facts),
        *_loss(facts),
        *_model(facts),
        *_implementation(facts),
        Field("deployment/administrative/status", 0, "Draft"),
        Field("deployment/administrative/registry_authors", 0, [""], "who fills in this entry"),
        Field("deployment/administrative/tier", 0, tier),
    ]
    return [one for one in every if one.tier <= tier]


def _basic(facts: Deployment) -> list[Field]:
    at = "deployment/basic"
    about = ", ".join(f"{many} × {command}" for command, many in facts.commands)
    data = f" Data sets: {', '.join(facts.datasets)}." if facts.datasets else ""
    described = (
        f"Items released as the best of their kind under differential privacy ({about}).{data}"
        if facts.releases
        else ""
    )
    date = None if facts.first is None else facts.first.date().isoformat()
    return [
        Field(f"{at}/name", 1, facts.name, "the name of the data product"),
        Field(f"{at}/data_curators", 1, None, "who publishes it, and what kind of body that is"),
        Field(f"{at}/description", 1, described, "what the product is, for its readers"),
        Field(f"{at}/intended_use", 1, "", "what it is for"),
        Field(f"{at}/data_product_type", 1, "Summary statistics", "check it"),
        Field(f"{at}/data_product_region", 1, "", "which region it is about, or whose laws apply"),
        Field(f"{at}/data_product_sector", 1, None, "the sector"),
        Field(f"{at}/publication_date", 1, date,
              "" if date else "the day of the first publication"),
    ]  # fmt: skip


def _variant(facts: Deployment) -> list[Field]:
    at = "deployment/dp_variant"
    return [
        Field(f"{at}/variant_name", 2, "Pure DP" if facts.is_pure else "Approximate DP"),
        Field(f"{at}/data_domain", 3, "", "which data sets could have been the input"),
        Field(f"{at}/unprotected_quantities", 3, "None by privmax: everything that depends on the "
              "data is charged to the ledger.", "whatever else was published about the same data"),
    ]  # fmt: skip


def _loss(facts: Deployment) -> list[Field]:
    at = "deployment/privacy_loss"
    unit = f"{facts.unit} level" if facts.unit else ""
    part = "This release" if facts.request else f"{count(facts.releases, 'release')} together"
    details = (
        f"{part} cost ε = {_above(facts.cost.epsilon)}, δ = {_above(facts.cost.delta)}, rounded "
        f"up. A ledger refuses releases beyond ε = {_above(facts.budget.epsilon)}, "
        f"δ = {_above(facts.budget.delta)} in total."
    )
    rows = [
        Field(f"{at}/privacy_unit", 2, unit, "" if unit else "whom the cost protects"),
        Field(f"{at}/privacy_unit_details", 3, facts.adjacency, "what a record of it is"),
        Field(f"{at}/number_of_privacy_units", 3, None,
              "a public or approximate number; privmax does not count them for you"),
        Field(f"{at}/privacy_parameters/epsilon", 2, _above(facts.cost.epsilon)),
    ]  # fmt: skip
    if not facts.is_pure:
        rows.append(Field(f"{at}/privacy_parameters/delta", 2, _above(facts.cost.delta)))
    return [*rows, Field(f"{at}/privacy_parameters_details", 3, details)]


def _model(facts: Deployment) -> list[Field]:
    at = "deployment/deployment_model"
    many = facts.request is None and facts.releases != 1
    budget = (
        f"The budget of the ledger is fixed (ε = {_above(facts.budget.epsilon)}, "
        f"δ = {_above(facts.budget.delta)}) and does not renew itself; raising it is recorded."
    )
    people = (
        f"{count(facts.people, 'user')} charged one ledger; that they share what they learn is "
        "assumed."
    )
    return [
        Field(f"{at}/model_name", 2, "Central"),
        Field(f"{at}/trust_assumptions", 3,
              "The person who runs privmax sees the data as collected.",
              "who may access data and product, and what each is trusted with"),
        Field(f"{at}/actors", 3, "", "who may see the product or the data"),
        Field(f"{at}/release_type", 2, "Many releases" if many else "One release", "check it"),
        Field(f"{at}/release_type_details", 3, budget, "what is planned for the same data"),
        Field(f"{at}/data_source_type", 2, None, "whether new data comes in over time"),
        Field(f"{at}/access_type", 2, None, "whether people outside ask questions themselves"),
        Field(f"{at}/access_type_details", 3, people, "how the budget is shared among analysts"),
    ]  # fmt: skip


def _implementation(facts: Deployment) -> list[Field]:
    from privmax import __version__

    at = "deployment/implementation"
    ran = ", ".join(f"{name} ({many})" for name, many in facts.mechanisms) or "none yet"
    when = "before" if facts.strict else "after"
    how = (
        f"Mechanisms, and how often each ran: {ran}. Implemented by privmax {__version__}; proofs "
        "and exact audits are part of its documentation. No floating-point number decides an "
        "outcome: samplers are exact and use random bits of the operating system. Every release is "
        f"charged durably before it is drawn, {when} its data is read. "
        "Running time depends on the data unless releases are padded."
    )
    return [
        Field(f"{at}/preprocessing_and_hyperparameter_tuning", 3, "",
              "what was done to the data before, and how ε and δ were chosen"),
        Field(f"{at}/mechanisms", 3, how, "access control and security of the data itself"),
        Field(f"{at}/composition", 3, facts.composition),
        Field(f"{at}/post_processing", 3, "", "what is done to answers after their release"),
        Field(f"{at}/justification", 3, "", "why these choices were made, and who checked them"),
        Field(f"{at}/utility", 3, "", "how useful the product is; privmax plan shows leads"),
        Field(f"{at}/additional_information", 1, "", "links to papers, posts and the product"),
    ]  # fmt: skip


def to_yaml(entry: list[Field]) -> str:
    """Return an entry as YAML, with a comment wherever a person must add or check something."""
    return "\n".join(_lines(entry)) + "\n"


def _lines(entry: list[Field]) -> Iterator[str]:
    yield "# An entry for the registry of differential privacy deployments, written by privmax."
    yield f"# Fields: {SOURCE}."
    yield "# Lines with “add” or “check” are for a person."
    before: list[str] = []
    for one in entry:
        parts = one.path.split("/")
        shared = 0
        while shared < min(len(before), len(parts) - 1) and before[shared] == parts[shared]:
            shared += 1
        for depth in range(shared, len(parts) - 1):
            yield f"{'  ' * depth}{parts[depth]}:"
        before = parts[:-1]
        yield from _field(one, "  " * (len(parts) - 1))


def _field(one: Field, indent: str) -> Iterator[str]:
    if one.name == "data_curators":
        kinds = " | ".join(VALUES["data_curator_type"])
        yield f"{indent}data_curators: # add: {one.add}"
        yield f'{indent}  - data_curator_name: ""'
        yield f'{indent}    data_curator_type: "Industry" # check: {kinds}'
        return
    values = f" ({' | '.join(VALUES[one.name])})" if one.name in VALUES else ""
    if one.value is None:
        yield f"{indent}# {one.name}: add {one.add}{values}"
        return
    note = ""
    if one.add == "check it":
        note = f" # check{values}"
    elif one.add:
        note = f" # add: {one.add}"
    if isinstance(one.value, list):
        yield f"{indent}{one.name}:{note}"
        yield from (f"{indent}  - {_scalar(item)}" for item in one.value)
        return
    yield f"{indent}{one.name}: {_scalar(one.value)}{note}"


def _scalar(value: str | int | float) -> str:
    """Return a value that every reader of YAML takes as what it is: text in quotes, as in JSON."""
    if isinstance(value, str):
        return "".join(
            f"\\u{ord(c):04x}" if c in _BREAKS else c for c in json.dumps(value, ensure_ascii=False)
        )
    if isinstance(value, float):
        shown = repr(value)
        return shown if "." in shown else shown.replace("e", ".0e")  # YAML 1.1 wants the point
    return str(value)


def _above(number: Fraction) -> float:
    """Return a cost as a float that is not below it."""
    nearest = float(number)
    nearest = float(f"{nearest:.12g}") if Fraction(float(f"{nearest:.12g}")) >= number else nearest
    # The shortest decimal of a float may be the number itself, as 0.1 is meant to be one tenth.
    if Fraction(repr(nearest)) >= number:
        return nearest
    return math.nextafter(nearest, math.inf)


def count(number: int, what: str) -> str:
    """So many of something, in words.

    Examples:
        >>> count(1, "release"), count(2000, "release")
        ('1 release', '2,000 releases')
    """
    return f"{number:,} {what}" + ("" if number == 1 else "s")


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "deployment"
