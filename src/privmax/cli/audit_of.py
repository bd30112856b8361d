"""`privmax audit --of`: packages and functions are run, and what comes out is looked at.

Exit 0: no claim was broken. 1: one was. 2: bad input.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import click

from privmax.cli.exits import Exit
from privmax.cli.output import busy
from privmax.display import escape_text
from privmax.errors import ParameterError, PrivmaxError
from privmax.numbers import plain

if TYPE_CHECKING:
    from privmax.testers import Claim, Subject, Verdict

LARGEST_FILE = 10**7
"""Bytes of a file of pairs."""


def audit_named(
    names: Sequence[str],
    *,
    only: str | None,
    pairs: str | None,
    claim: dict[str, str | None],
    samples: int,
    confidence: str,
) -> Iterator[Verdict]:
    """Audit what was named, one subject after the other.

    Args:
        names: Packages, or functions as module:function.
        only: Subjects whose name holds this text.
        pairs: A file of pairs, for functions.
        claim: epsilon, delta and rho, for functions.
        samples: Runs for each subject at most.
        confidence: With which a violation that is reported is one.
    """
    from privmax.testers import audit_subject

    subjects = [subject for name in names for subject in _subjects(name, pairs, claim)]
    chosen = [subject for subject in subjects if not only or only.lower() in subject.name.lower()]
    if not chosen:
        raise ParameterError("only", only, "no subject has this in its name")
    for place, subject in enumerate(chosen, 1):
        with busy(escape_text(f"{subject.package} {subject.name} ({place} of {len(chosen)})")):
            try:
                verdict = audit_subject(subject, samples=samples, confidence=confidence)
            except PrivmaxError:
                raise
            except (Exception, SystemExit) as error:
                raise ParameterError(
                    "of",
                    subject.name,
                    f"it raised {type(error).__name__} when it was run",
                    "A function takes a data set and a seed. Run it by itself to see why.",
                ) from None
        yield verdict


def _subjects(name: str, pairs: str | None, claim: dict[str, str | None]) -> list[Subject]:
    from privmax.testers.claims import Claim
    from privmax.testers.subjects import Subject, load_function, subjects_of

    stated = {key: value for key, value in claim.items() if value is not None}
    if ":" in name:
        if pairs is None:
            raise ParameterError(
                "pairs", pairs, "a function is run on pairs of data sets",
                "Write them to a file of JSON, [[left, right], …].",
            )  # fmt: skip
        return [Subject("", name, Claim.of(**stated), _read_pairs(pairs), load_function(name))]
    for key, value in (*stated.items(), ("pairs", pairs)):
        if value is not None and (key, value) != ("delta", "0"):
            raise ParameterError(
                key, value, f"the claims and pairs of {name} are its own",
                "Leave it out, or name a function as module:function.",
            )  # fmt: skip
    return subjects_of(name)


def _read_pairs(file: str) -> list[tuple[Any, Any]]:
    try:
        with open(file, encoding="utf-8") as opened:
            text = opened.read(LARGEST_FILE + 1)
        pairs = json.loads(text) if len(text) <= LARGEST_FILE else None
        if not isinstance(pairs, list) or not all(isinstance(pair, list) for pair in pairs):
            raise TypeError
        return [(left, right) for left, right in pairs]
    except (OSError, ValueError, TypeError, RecursionError):
        raise ParameterError(
            "pairs", file, "it is not a JSON file with a list of pairs",
            "Write [[left, right], …].",
        ) from None  # fmt: skip


def describe_verdicts(verdicts: Sequence[Verdict], confidence: str) -> str:
    """Return what was found, for people: a line each, and what broke."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for name in ("package", "subject", "claim", "needs at least", "runs", "verdict"):
        table.add_column(name, justify="right" if name == "runs" else "left")
    for verdict in verdicts:
        table.add_row(*(Text(escape_text(cell)) for cell in _row(verdict)))
    console = Console(highlight=False, width=200)
    with console.capture() as captured:
        console.print(table)
    lines = [line.rstrip() for line in captured.get().splitlines()]
    for verdict in verdicts:
        if verdict.broken:
            lines += ["", *map(escape_text, _counterexample(verdict))]
    count = sum(verdict.broken for verdict in verdicts)
    summary = f"{count} of {len(verdicts)} claims broken" if count else "No claim was broken"
    return "\n".join(
        [*lines, "", f"{summary}. Confidence of each sampled verdict: {confidence}.",
         "No violation found is not a proof."]
    )  # fmt: skip


def _row(verdict: Verdict) -> list[str]:
    subject, finding, listed = verdict.subject, verdict.finding, verdict.enumeration
    if listed is not None and (listed.broken or finding is None):
        needs, runs = f"delta {float(listed.least):.3g}, exactly enumerated", ""
    else:
        assert finding is not None
        name = "epsilon" if subject.claim.rho is None else "rho"
        needs, runs = f"{name} {finding.least:.3g}", f"{finding.samples:,}"
    outcome = "BROKEN" if verdict.broken else "not broken"
    return [subject.package, subject.name, repr(subject.claim), needs, runs, outcome]


def _counterexample(verdict: Verdict) -> Iterator[str]:
    finding = verdict.finding
    yield f"{verdict.subject.name}: the claim is {verdict.subject.claim!r}"
    if finding is not None and finding.broken and finding.pair is not None:
        yield f"  on {finding.pair[0]}, at least {finding.chances[0]:.4g}"
        yield f"  on {finding.pair[1]}, at most {finding.chances[1]:.4g}"
        yield f"  of the event: {finding.event}"
    elif verdict.pair is not None:
        yield f"  on {verdict.pair[0]}"
        yield f"  and {verdict.pair[1]}"
    if verdict.subject.source:
        yield f"  known from: {verdict.subject.source}"


def dump_verdicts(verdicts: Sequence[Verdict], confidence: str) -> str:
    """Return what was found, as JSON."""
    fields = {
        "confidence": confidence,
        "broken": sum(verdict.broken for verdict in verdicts),
        "subjects": [_fields(verdict) for verdict in verdicts],
    }
    return json.dumps(fields, default=str)


def _fields(verdict: Verdict) -> dict[str, Any]:
    from privmax.testers.subjects import package_version

    subject, finding, listed = verdict.subject, verdict.finding, verdict.enumeration
    pair = (
        finding.pair if finding is not None and (finding.broken or listed is None) else verdict.pair
    )
    return {
        "package": subject.package,
        "version": package_version(subject.package) if subject.package else "",
        "subject": subject.name,
        "claim": _claim(subject.claim),
        "broken": verdict.broken,
        "pair": None if pair is None else [str(data) for data in pair],
        "enumerated": None
        if listed is None
        else {"least": float(listed.least), "most": float(listed.most)},
        "sampled": None
        if finding is None
        else {
            "samples": finding.samples,
            "needs": finding.least if finding.least < 1e308 else None,
            "excess": finding.excess,
            "tester": finding.tester,
            "event": finding.event,
            "chances": list(finding.chances),
        },
        "source": subject.source,
    }


def _claim(claim: Claim) -> dict[str, str | None]:
    return {
        "epsilon": None if claim.epsilon is None else plain(claim.epsilon),
        "delta": plain(claim.delta),
        "rho": None if claim.rho is None else plain(claim.rho),
    }


def report_verdicts(
    context: click.Context, verdicts: Sequence[Verdict], confidence: str, as_json: bool
) -> None:
    """Print what was found, and exit with 1 if a claim was broken."""
    show = dump_verdicts if as_json else describe_verdicts
    click.echo(show(verdicts, confidence))
    context.exit(Exit.BROKEN if any(verdict.broken for verdict in verdicts) else Exit.DONE)
