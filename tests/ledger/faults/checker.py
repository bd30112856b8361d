"""Judges histories of a ledger from outside: it knows what clients asked and were told, and what
`privmax budget show` and `verify` print at the end. It imports nothing of privmax.

A client writes a line when it asks and one when it is told, each with the time of one clock. What
it asked without being told may have happened, then or later, or never.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, NamedTuple


class Call(NamedTuple):
    """What one client asked, and what it was told; without that, it ended or was refused."""

    asked: float
    told: float | None
    ask: Mapping[str, Any]
    answer: Mapping[str, Any] | None

    @property
    def worked(self) -> bool:
        return self.answer is not None and "error" not in self.answer


class Look(NamedTuple):
    """A number that a client was told, and when it asked for it."""

    asked: float
    told: float
    value: Fraction


class Step(NamedTuple):
    """Something that adds one to a number: not before it was asked, and not after it was told."""

    asked: float
    told: float | None


@dataclass
class Rules:
    """What a ledger was made with.

    Attributes:
        epsilon: Cost of every release.
        budget: Epsilon that was granted at the beginning.
        grant: What every grant adds.
    """

    epsilon: Fraction
    budget: Fraction
    grant: Fraction
    accounts: Sequence[str] = field(default_factory=list)


END = float("inf")


def read_calls(lines: Sequence[Mapping[str, Any]]) -> list[Call]:
    """The calls of one client, from the lines that it wrote."""
    told = {line["n"]: line for line in lines if "told" in line}
    return [
        Call(
            line["at"],
            told[line["n"]]["at"] if line["n"] in told else None,
            line["ask"],
            told[line["n"]]["told"] if line["n"] in told else None,
        )
        for line in lines
        if "ask" in line
    ]


def check(
    clients: Sequence[Sequence[Mapping[str, Any]]],
    show: Mapping[str, Any],
    verify: Mapping[str, Any],
    rules: Rules,
) -> list[str]:
    """What no order of the calls explains."""
    calls = [call for lines in clients for call in read_calls(lines)]
    return [
        *[f"verify finds: {fault}" for fault in verify["faults"]],
        *_answers(calls),
        *_charges(calls, show, rules),
        *_budgets(calls, show, rules),
        *_events(calls, verify),
    ]


def _answers(calls: Sequence[Call]) -> Iterator[str]:
    """Each request has one answer."""
    answers: dict[str, set[str]] = defaultdict(set)
    for call in _of("release", calls):
        if call.worked and call.answer is not None:
            answers[call.ask["id"]].add(repr(call.answer["answer"]))
    yield from (f"several answers to {name}" for name, told in answers.items() if len(told) > 1)


def _charges(calls: Sequence[Call], show: Mapping[str, Any], rules: Rules) -> Iterator[str]:
    """Each request is charged once, and before it is answered: in all, and in each account."""
    releases = list(_of("release", calls))
    for account in [None, *rules.accounts]:
        steps = _first_of_each(
            call for call in releases if account is None or call.ask["account"] == account
        )
        part = show if account is None else show["accounts"][account]
        looks = [
            Look(call.asked, call.told, Fraction(call.answer["spent"][account or ""]))
            for call in _of("spent", calls)
            if call.worked and call.told is not None and call.answer is not None
        ]
        looks.append(Look(END, END, Fraction(part["spent"]["epsilon"])))
        whose = "the ledger" if account is None else account
        yield from (f"{why} is spent of {whose}" for why in _explain(steps, looks, rules.epsilon))


def _first_of_each(releases: Iterator[Call]) -> list[Step]:
    """When each request was asked first, and when it was answered first."""
    asked: dict[str, float] = {}
    told: dict[str, float] = {}
    for call in releases:
        name = call.ask["id"]
        asked[name] = min(call.asked, asked.get(name, END))
        if call.worked and call.told is not None:
            told[name] = min(call.told, told.get(name, END))
    return [Step(asked[name], told.get(name)) for name in asked]


def _budgets(calls: Sequence[Call], show: Mapping[str, Any], rules: Rules) -> Iterator[str]:
    """The budget grows by grants alone, no more is spent, and what would fit is not refused."""
    grants = [Step(call.asked, call.told if call.worked else None) for call in _of("grant", calls)]
    looks = [
        Look(call.asked, call.told, Fraction(call.answer["budget"]) - rules.budget)
        for call in _of("budget", calls)
        if call.worked and call.told is not None and call.answer is not None
    ]
    looks.append(Look(END, END, Fraction(show["budget"]["epsilon"]) - rules.budget))
    yield from (f"{why} was granted" for why in _explain(grants, looks, rules.grant))
    if Fraction(show["spent"]["epsilon"]) > Fraction(show["budget"]["epsilon"]):
        yield "more is spent than was granted"
    charges = _first_of_each(_of("release", calls))
    for call in _of("release", calls):
        if call.answer is None or call.told is None or "refused" not in call.answer:
            continue
        most = sum(one.asked < call.told for one in charges) * rules.epsilon
        least = sum(one.told is not None and one.told < call.asked for one in grants)
        if most <= rules.budget + least * rules.grant:
            yield "a request was refused that fits"


def _events(calls: Sequence[Call], verify: Mapping[str, Any]) -> Iterator[str]:
    """No event that was seen is another one later, or gone."""
    hashes: dict[int, set[str]] = defaultdict(set)
    hashes[verify["events"]].add(verify["hash"])
    looks = [Look(END, END, Fraction(verify["events"]))]
    for call in _of("events", calls):
        if not call.worked or call.told is None or call.answer is None:
            continue
        for number, digest in call.answer["events"]:
            hashes[number].add(digest)
        last = max(number for number, _ in call.answer["events"])
        looks.append(Look(call.asked, call.told, Fraction(last)))
    yield from (f"event {number} is another one" for number in hashes if len(hashes[number]) > 1)
    yield from (f"{why} is the number of events" for why in _never_falls(looks))


def _of(kind: str, calls: Sequence[Call]) -> Iterator[Call]:
    return (call for call in calls if call.ask["op"] == kind)


def _never_falls(looks: Sequence[Look]) -> Iterator[str]:
    for one in looks:
        for other in looks:
            if one.told < other.asked and one.value > other.value:
                yield f"first {one.value} and then {other.value}"


def _explain(steps: Sequence[Step], looks: Sequence[Look], unit: Fraction) -> Iterator[str]:
    """What was seen of a number that no order of steps and looks explains.

    Each look is at one instant between its question and its answer, each step at one between its
    own. Looks are in the order of what they saw, each as early as that allows; steps are taken in
    the order of their ends. If this fails, no other order does better: to look later or to take
    another step leaves no more to choose from.
    """
    if any(look.value % unit for look in looks):
        yield "a part of a cost"
        return
    yield from _never_falls(looks)
    asked = sorted(step.asked for step in steps)
    now = -END
    for look in sorted(looks, key=lambda one: (one.value, one.told)):
        number = int(look.value / unit)
        if number > len(asked):
            yield f"{number} times the cost of a step, of {len(asked)} that were asked for,"
            return
        now = max(now, look.asked, asked[number - 1] if number else -END)
        if now > look.told:
            yield f"{number} times the cost of a step, too early,"
            return
        done = sum(step.told is not None and step.told < now for step in steps)
        if done > number:
            yield f"{number} times the cost of a step, after {done} were answered,"
            return
