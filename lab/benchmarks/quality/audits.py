"""How many runs it takes to find known mistakes, and what is found in packages as they are.

    ./dev compare python -m lab.benchmarks.quality.audits    ten minutes

The baseline is the idea of Google's DP-Auditorium (Kong, Medina, Ribero & Syed, 2023), written
anew: pairs of data sets are tried at random, a small neural network learns on one half of the
outcomes to tell from which data set they come, and its accuracy on the other half, less Hoeffding's
bound, is a lower bound on the hockey-stick divergence.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import warnings
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from lab.benchmarks.harness import Benchmark, Row, Rows, note
from privmax.testers import Subject, audit_subject, subjects_of
from privmax.testers.events import plain_outcome
from privmax.testers.subjects import package_version
from privmax.testing import SeededCoins

MOST = 100_000
"""Runs after which a tester gives up."""


class Setting(NamedTuple):
    """How the baseline goes about it.

    Attributes:
        first: Runs in the first attempt; each attempt makes twice as many as the one before.
        trials: Pairs of data sets that it tries in each attempt.
        passes: Of the network over the outcomes that it learns from.
    """

    first: int
    trials: int
    passes: int


PLAIN = Setting(4_000, 4, 2)
"""The baseline as it comes."""

TUNED = (PLAIN, Setting(4_000, 1, 20), Setting(MOST, 1, 20))
"""The baseline with hindsight: that of these which is best for each mistake."""

CONFIDENCE = 0.99
OPEN_ISSUE = "/2922"
"""Subjects with this issue of their package are run up to MOST times."""

OLDER = ("laplace_threshold", "noisy_max, zCDP")
KEYS = ("package", "version", "subject")
PACKAGES = ("opendp", "diffprivlib")


def detection(options: argparse.Namespace) -> Iterator[Rows]:
    """Runs until each known mistake is found."""
    for subject in subjects_of("known-wrong"):
        if options.quick and "upside" not in subject.name:
            continue
        note(f"audits: {subject.name}")
        found = audit_subject(
            subject, samples=MOST, enumerated=False, coins=SeededCoins(subject.name)
        ).finding
        assert found is not None
        listed = subject.enumerate is not None
        ours = found.samples if found.broken else None
        compared = subject.claim.epsilon is not None
        rivals = [baseline(subject, setting) for setting in TUNED] if compared else [None]
        row: Row = {"subject": subject.name, "claim": repr(subject.claim), "enumerated": listed}
        row |= {"ours": ours, "baseline": rivals[0], "most": MOST, "source": subject.source}
        row["tuned"] = min((runs for runs in rivals if runs is not None), default=None)
        row["compared"] = compared
        yield {"detection": [row]}


def baseline(subject: Subject, setting: Setting) -> int | None:
    """Runs until a classifier has told a pair apart; None: it has not within MOST."""
    coins = SeededCoins("rival")
    spent, size, attempt = 0, setting.first, 1
    while spent + size <= MOST:
        failure = (1 - CONFIDENCE) / (attempt * (attempt + 1)) / setting.trials
        for _ in range(setting.trials):
            pair = subject.pairs[coins.bits(16) % len(subject.pairs)]
            each = size // setting.trials // 2
            here, there = (
                [plain_outcome(subject.run(data, coins.bits(62))) for _ in range(each)]
                for data in pair[:: 1 if coins.bits(1) else -1]
            )
            spent += 2 * each
            found = _divergence(here, there, subject, failure, setting.passes)
            if found > float(subject.claim.delta):
                return spent
        size, attempt = 2 * size, attempt + 1
    return None


def _divergence(
    left: Sequence[Any], right: Sequence[Any], subject: Subject, failure: float, passes: int
) -> float:
    """A lower bound on the hockey-stick divergence, by the accuracy of a classifier."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.neural_network import MLPClassifier

    assert subject.claim.epsilon is not None
    growth = math.exp(subject.claim.epsilon)
    features = _Features([*left, *right])
    cut = int(len(left) / (1 + growth))  # so many of the first, and e^ε times as many of the other
    half = len(left) // 2
    parts = []
    for start in (0, half):
        few = left[start : start + cut // 2]
        many = right[start : start + half - cut // 2]
        labels = np.r_[np.ones(len(few)), np.zeros(len(many))]
        parts.append((features.of([*few, *many]), labels))
    (seen, truth), (fresh, answers) = parts
    model = MLPClassifier(
        (12, 12, 12), learning_rate_init=1e-2, batch_size=100, max_iter=passes, random_state=1
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(seen, truth)
    accuracy = float(np.mean(model.predict(fresh) == answers))
    accuracy -= math.sqrt(math.log(1 / failure) / 2 / len(answers))
    return accuracy * (1 + growth) - growth


class _Features:
    """Outcomes as vectors: numbers as they are, everything else as indicators, place by place."""

    def __init__(self, outcomes: Sequence[Any]) -> None:
        parts = {part for outcome in outcomes for part in self._parts(outcome)}
        self._places = {part: place for place, part in enumerate(sorted(parts, key=repr))}

    def of(self, outcomes: Sequence[Any]) -> np.ndarray[Any, Any]:
        table = np.zeros((len(outcomes), len(self._places)))
        for line, outcome in enumerate(outcomes):
            for part, value in self._parts(outcome).items():
                table[line, self._places[part]] = value
        return table

    def _parts(self, outcome: Any) -> dict[tuple[int, Any], float]:
        listed = outcome if isinstance(outcome, tuple) else (outcome,)
        return {
            (place, "number" if isinstance(part, float) else part): part
            if isinstance(part, float)
            else 1.0
            for place, part in enumerate(listed)
        }


def packages(options: argparse.Namespace) -> Iterator[Rows]:
    """What is found in the packages that are installed here."""
    for name in PACKAGES:
        for subject in subjects_of(name):
            if options.quick and "Binary" not in subject.name:
                continue
            note(f"audits: {name} {subject.name}")
            samples = MOST if OPEN_ISSUE in subject.source else options.samples
            verdict = audit_subject(subject, samples=samples)
            found, listed = verdict.finding, verdict.enumeration
            row: Row = {"package": name, "version": package_version(name)}
            row |= {"subject": subject.name, "claim": repr(subject.claim)}
            row["verdict"] = "broken" if verdict.broken else "not broken"
            row["needs"] = None if found is None else found.least
            row["runs"] = None if found is None else found.samples
            row["exactly"] = None if listed is None else [float(listed.least), float(listed.most)]
            row["source"] = subject.source
            yield {"packages": [row]}


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--samples", type=int, default=6_000, help="runs of each subject of a package"
    )
    parser.add_argument(
        "--python", action="append", help="one that has privmax and an older OpenDP; for versions"
    )


def versions(options: argparse.Namespace) -> Iterator[Rows]:
    """What is found by other Pythons, which have privmax and another version of a package."""
    for python in options.python or ():
        line = [python, "-m", "privmax", "audit", "--of", "opendp", "--json", "--only"]
        for only in OLDER:
            note(f"audits: {only}")
            done = subprocess.run([*line, only], capture_output=True, text=True, check=False)
            for found in json.loads(done.stdout)["subjects"]:
                sampled = found["sampled"]
                row: Row = {key: found[key] for key in ("package", "version", "subject", "source")}
                name = "epsilon" if found["claim"]["rho"] is None else "rho"
                row["claim"] = f"{name} {found['claim'][name]}, delta {found['claim']['delta']}"
                row["verdict"] = "broken" if found["broken"] else "not broken"
                row |= {"needs": sampled["needs"], "runs": sampled["samples"], "exactly": None}
                yield {"versions": [row]}


if __name__ == "__main__":
    Benchmark(
        "audits",
        "quality.audits",
        {"detection": detection, "packages": packages, "versions": versions},
        packages=("privmax", "opendp", "diffprivlib", "scikit-learn"),
        settings={"most": MOST, "confidence": CONFIDENCE, "baseline": [list(one) for one in TUNED]},
        keys={"detection": ("subject",), "packages": KEYS, "versions": KEYS},
        compare=True,
        arguments=arguments,
    ).main()
