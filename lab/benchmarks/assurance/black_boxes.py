"""Entry points as black boxes: from data on both sides to what is released, without a law of ours.

    ./dev python -m lab.benchmarks.assurance.black_boxes
    ./dev python -m lab.benchmarks.assurance.black_boxes --part boxes --only keys
    ./dev python -m lab.benchmarks.assurance.black_boxes --part retries

A search climbs to a pair of neighbors and the tester tests it on fresh samples: once as the code
is, and with a planted fault, an entry point that runs with a fifth more epsilon than it states. The
test of the fault is repeated to measure how often it is caught. Where an entry point needs less on
every pair than it states, so that such a fault breaks no claim, it is held to what it was measured
to need. Requests to a ledger are made to fail once and repeated; what comes in the end is tested
against equal chances by a chi-square test. Each test raises a false alarm with probability ALPHA.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from statistics import median

from lab.assurance.boxes import Box, Pair, audit, measured_claim, search
from lab.assurance.draws import p_value
from lab.assurance.entry_points import BOXES
from lab.assurance.retries import (
    FAULTS,
    LABELS,
    NOTHING,
    UNANSWERED,
    Fault,
    drawn_again,
    final_answers,
    refused_sometimes,
)
from lab.benchmarks.harness import Benchmark, Row, note
from privmax.testers import Claim, Finding
from privmax.testers.bounds import least_chance

SEED = 39
ALPHA = 0.001
"""The probability of a false alarm of each test."""

FAULT = Fraction(6, 5)
"""A planted fault: this times the stated epsilon."""

REQUESTS = 500
"""Requests that meet each fault of a ledger."""

PLANTED = 6000
"""Requests to a ledger with a planted fault."""


def audit_box(box: Box, repeats: int) -> Row:
    """Search and test an entry point, as it is and with the planted fault; measure the power."""
    began = time.process_time()
    pair, _ = search(box, Fraction(1), f"{SEED}")
    claim = box.claim if box.tight else measured_claim(box, pair, f"{SEED}")
    worse = search(box, FAULT, f"{SEED} fault")[0] if box.tight else pair
    right = audit_right(box, list(dict.fromkeys((pair, worse))), claim)
    wrong = [
        audit(box, worse, FAULT, claim, ALPHA, f"{SEED} fault {turn}") for turn in range(repeats)
    ]
    caught = [one for one in wrong if one.broken]
    row: Row = {
        "box": box.name,
        "epsilon": box.epsilon,
        "delta": box.delta,
        "held": str(float(claim.epsilon or 0)),
        "tight": box.tight,
        "samples": box.samples,
        "alpha": ALPHA,
        "kinds": [str(kind) for kind in box.kinds],
        "pair": [list(data) for data in right.pair or pair],
        "event": right.event,
        "least": right.least,
        "broken": right.broken,
        "worse": [list(data) for data in worse],
        "fault": float(FAULT),
        "needed": median(one.least for one in wrong),
        "repeats": repeats,
        "caught": len(caught),
        "power": least_chance(len(caught), repeats, 0.05),
        "until": median(one.samples for one in caught) if caught else None,
        "seed": SEED,
        "seconds": round(time.process_time() - began, 1),
    }
    note(str(row))
    return row


def audit_right(box: Box, pairs: Sequence[Pair], claim: Claim) -> Finding:
    """Test an entry point as it is on the pairs that were found; return the worst finding."""
    found = [
        audit(box, pair, Fraction(1), claim, ALPHA / len(pairs), f"{SEED} right") for pair in pairs
    ]
    return max(found, key=lambda one: (one.broken, one.least))


def measure_boxes(options: argparse.Namespace) -> Iterator[dict[str, list[Row]]]:
    """A row for each entry point, stored as soon as it is there."""
    for box in BOXES:
        if not options.only or box.name in options.only:
            yield {"boxes": [audit_box(box, 1 if options.quick else box.repeats)]}


def measure_retries(options: argparse.Namespace) -> dict[str, list[Row]]:
    """A row for each fault of a ledger, and for each that is planted."""
    number = 40 if options.quick else REQUESTS
    rows = [_retry(fault, number) for fault in FAULTS]
    planted = Fault("record", True, KeyboardInterrupt)
    chosen = next(fault for fault in FAULTS if fault.chosen)
    with drawn_again():
        rows.append(_retry(chosen, number, "what failed is drawn again"))
    with refused_sometimes(Fraction(1, 5), f"{SEED}"):
        rows.append(_retry(planted, number if options.quick else PLANTED, REFUSED))
    return {"retries": rows}


REFUSED = f"in a fifth of the cases in which {LABELS[0]} was drawn it is drawn again"


def _retry(fault: Fault, number: int, planted: str = "") -> Row:
    """Make requests that meet a fault, and test what comes in the end."""
    began = time.process_time()
    with tempfile.TemporaryDirectory(dir=_memory()) as folder:
        seen = final_answers(Path(folder), fault, number, f"{SEED}")
    row: Row = {
        "fault": fault.name,
        "planted": planted,
        "requests": number,
        "seen": _listed(seen),
        "alpha": ALPHA,
        "p": p_value(seen, fault.law),
        "seed": SEED,
        "seconds": round(time.process_time() - began, 1),
    }
    row["rejected"] = row["p"] <= row["alpha"]
    note(str(row))
    return row


def _listed(seen: Counter[str]) -> list[int]:
    return [seen[answer] for answer in (*LABELS, NOTHING, UNANSWERED)]


def _memory() -> str | None:
    """A folder in memory, if there is one: no fault here is about disks."""
    return "/dev/shm" if Path("/dev/shm").is_dir() else None


def add_options(parser: argparse.ArgumentParser) -> None:
    names = [box.name for box in BOXES]
    parser.add_argument("--only", action="append", choices=names, help="this entry point")


if __name__ == "__main__":
    Benchmark(
        "assurance-black-boxes",
        "assurance.black_boxes",
        {"boxes": measure_boxes, "retries": measure_retries},
        settings={"seed": SEED, "alpha": ALPHA, "fault": float(FAULT)},
        packages=("privmax", "python-flint", "numpy", "scikit-learn", "duckdb"),
        keys={"boxes": ("box",)},
        arguments=add_options,
    ).main()
