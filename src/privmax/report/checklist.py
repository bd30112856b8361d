"""A checklist in the terms of NIST SP 800-226, filled from a ledger.

NIST SP 800-226, “Guidelines for Evaluating Differential Privacy Guarantees”, March 2025,
doi:10.6028/NIST.SP.800-226. It names what a guarantee rests on, from the strength of the claim down
to how data is collected. The words here are ours.
"""

from __future__ import annotations

from dataclasses import dataclass

from privmax.numbers import round_up
from privmax.privacy import REPLACE, WEAK
from privmax.report.deployment import Deployment
from privmax.report.registry import count

TITLE = "Checklist in the terms of NIST SP 800-226"
SOURCE = (
    "NIST SP 800-226, Guidelines for Evaluating Differential Privacy Guarantees, March 2025, "
    "doi:10.6028/NIST.SP.800-226"
)


@dataclass(frozen=True)
class Item:
    """One thing to check.

    Args:
        level: Where it stands: "guarantee", "implementation" or "surroundings".
        topic: What it is about.
        known: What privmax knows of it; empty: nothing.
        add: What a person must add; empty: nothing.
    """

    level: str
    topic: str
    known: str
    add: str = ""

    @property
    def state(self) -> str:
        """ "known", "partly" or "open"."""
        return ("partly" if self.add else "known") if self.known else "open"


def items(facts: Deployment) -> list[Item]:
    """Return what a reviewer asks, with what is known.

    Args:
        facts: What the ledger tells.
    """
    return [*_guarantee(facts), *_implementation(facts), *_surroundings(facts)]


def _guarantee(facts: Deployment) -> list[Item]:
    level = "guarantee"
    epsilon, delta = round_up(facts.cost.epsilon), round_up(facts.cost.delta)
    part = "This release" if facts.request else count(facts.releases, "release")
    weak = ""
    if facts.cost.epsilon >= WEAK.epsilon:
        weak = f" {round_up(WEAK.epsilon)} or more protects little: say why it is justified."
    unit = facts.unit
    bounded = "bounded" if facts.neighbors == REPLACE else "unbounded"
    return [
        Item(level, "Privacy parameter ε", f"{part} cost ε = {epsilon} together; the budget is "
             f"{round_up(facts.budget.epsilon)}.{weak}", "why this ε is right for these people"),
        Item(level, "Privacy parameter δ", f"δ = {delta}; the budget is "
             f"{round_up(facts.budget.delta)}." if not facts.is_pure else "0: pure differential "
             "privacy.", "" if facts.is_pure else "that it is far below 1 / number of people"),
        Item(level, "Unit of privacy", f"One {unit}." if unit else "",
             "that everything of one person is within one unit"),
        Item(level, "Neighboring data sets",
             f"{facts.adjacency} (the {bounded} definition)" if facts.neighbors else "",
             "" if facts.neighbors else "the definition"),
        Item(level, "Composition", f"{facts.composition} Every release is in the ledger, also "
             "those without an answer.", "releases about the same people that are not in it"),
    ]  # fmt: skip


def _implementation(facts: Deployment) -> list[Item]:
    level = "implementation"
    ran = ", ".join(name for name, _ in facts.mechanisms)
    return [
        Item(level, "Algorithm", f"Selection of the best items: {ran}." if ran else "",
             "" if ran else "what will run"),
        Item(level, "Correctness", "Each mechanism has a written proof that is tied to its code, "
             "and an exact audit over all small neighboring data sets.",
             "that this version of privmax was not changed"),
        Item(level, "Floating point", "No floating-point number decides an outcome; costs are "
             "exact, and rounded against the claim."),
        Item(level, "Randomness", "Random bits of the operating system; a seed exists for tests "
             "only.", "that the machine's source of random bits is sound"),
        Item(level, "Data-dependent choices", "Mechanism, columns and universe follow from public "
             "facts.", "that ε, columns and conditions were chosen without looking at the data"),
        Item(level, "Errors", "The ledger is strict: it is charged before data is read, and bad "
             "data gives no answer." if facts.strict else "Errors about the data come before the "
             "charge and reveal something about it.",
             "" if facts.strict else "that everyone who asks may see the data, or use a strict "
             "ledger"),
        Item(level, "Side channels", "Running time depends on the data unless releases are padded "
             "(--pad-time), which the ledger does not record.",
             "that only trusted people can time a release, or that all are padded"),
        Item(level, "Utility", "How clear a winner must be is known before: privmax plan. "
             f"{facts.answered} of {facts.releases} releases have a recorded answer.",
             "how answers are used, and what a wrong one costs"),
        Item(level, "Bias", "", "whether small groups are never released, and what that does: "
             "systemic, human and statistical bias"),
    ]  # fmt: skip


def _surroundings(facts: Deployment) -> list[Item]:
    level = "surroundings"
    return [
        Item(level, "Trust model", "Central: the person who runs privmax sees the data.",
             "who that is, and why people may trust them"),
        Item(level, "Access control", f"{count(facts.people, 'user')} charged the ledger; each "
             "charge names its user.", "who can read the data, the ledger and the machine"),
        *([Item(level, "Unread events", f"{count(facts.unread, 'event')} of the ledger cannot be "
                "read and are not counted here.", "what `privmax budget verify` says of them")]
          if facts.unread else []),
        Item(level, "Data security", "", "encryption, backups, query logs of engines, disposal"),
        Item(level, "Data collection exposure", "", "what was collected, from whom, with what "
             "consent, and what of it was not needed"),
        Item(level, "Other releases", "", "what else was published about the same people, by "
             "anyone"),
    ]  # fmt: skip


def to_markdown(facts: Deployment) -> str:
    """Return the checklist as Markdown. A box is ticked where nothing is left to add."""
    lines = [f"# {TITLE}", "", f"Ledger: {_plain(facts.name)}. Source of the terms: {SOURCE}.", ""]
    level = ""
    for item in items(facts):
        if item.level != level:
            level = item.level
            lines += [f"## {level.capitalize()}", ""]
        tick = "x" if item.state == "known" else " "
        lines.append(f"- [{tick}] **{item.topic}.** {_plain(item.known)}".rstrip())
        if item.add:
            lines.append(f"  - A person must add: {item.add}.")
    return "\n".join([*lines, ""])


def _plain(words: str) -> str:
    """Escape text so that Markdown does not take it for markup: names are data."""
    return "".join(f"\\{c}" if c in "\\`*_[]<>#|" else c for c in words)
