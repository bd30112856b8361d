"""Mutation testing: does some test fail when the code is wrong?

    ./dev mutate                         all mutants of the modules in lab/mutants.py
    ./dev mutate noise profile           those of some modules
    ./dev mutate --sample 2000 --seed 1  a random sample, with one mutant of every function
    ./dev mutate --fresh 500 --round 3   a random sample of those that were never run
    ./dev mutate --survivors             once more those that survived the last time
    ./dev mutate --store                 write results/mutation.json from what is known

lab/mutants.py makes the mutants. The tests (TESTS) are collected once, in one process. Each test
file runs once under coverage, which says what tests run which line. Then each mutant gets a forked
process of its own, in which the tests that run its line are called, the quickest first, until one
fails: the mutant is killed. A test that fails for the first time is run again without a mutant, and
does not count if it fails then. A test that takes eight times as long as before, and a second
more, is stopped: killed by time.

What is known is kept in .mutation/ and not computed again until a function changes: runs can be
stopped and taken up again. tests/mutation/harmless.toml names the survivors that no test can or
need kill, each with the reason. tests/mutation/seen.txt lists what was run in any round:
a fresh sample has none of these.
"""

from __future__ import annotations

import argparse
import gc
import hashlib
import importlib
import json
import math
import os
import pickle
import platform
import random
import resource
import shutil
import signal
import sys
import tempfile
import textwrap
import time
import tomllib
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cache
from importlib import metadata
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from lab import mutants
from lab.mutants import Mutant

TESTS = {
    "noise": "unit/coins unit/samplers exact/walks exact/race exact/counts "
    "exact/repetition statistical/noise statistical/runs golden/public_numbers "
    "golden/inner_numbers docs/docstrings",
    "profile": "unit/profile property/profile docs/docstrings",
    "mechanisms": "exact/laws exact/naming exact/limited_domain exact/stable_maximum "
    "exact/gap_test exact/choosing exact/nested_margin exact/set_margin exact/above_threshold "
    "exact/propose_test_release exact/restricted_exponential exact/max_of_laplaces "
    "exact/joint_exponential exact/large_margin exact/large_margin_truncated exact/score_kinds "
    "exact/leads exact/expectations exact/audits exact/top_k exact/cells unit/mechanisms "
    "exact/contract exact/ranked_margin exact/stored_leads exact/rounding exact/every_rank "
    "unit/theory unit/plans unit/weights unit/typical golden/public_numbers golden/inner_numbers "
    "docs/docstrings",
    "composition": "exact/composition exact/top_k golden/public_numbers golden/inner_numbers "
    "docs/docstrings",
    "privacy": "unit/privacy docs/docstrings",
    "release": "unit/release unit/counts unit/select unit/maximization "
    "golden/releases golden/shown_releases docs/docstrings",
    "ledger": "ledger/ledger ledger/rules ledger/rho ledger/parts ledger/batch ledger/files "
    "ledger/forks ledger/records ledger/relation ledger/units ledger/strict ledger/failures "
    "ledger/forgeries ledger/select ledger/checks ledger/payment ledger/replay "
    "ledger/open_files ledger/stores ledger/group_commit ledger/history ledger/bad_days "
    "ledger/shapes ledger/learning "
    "golden/releases golden/ledger_states golden/ledger_forms "
    "golden/defaults docs/docstrings",
    "losses": "exact/losses exact/accounting ledger/rules golden/public_numbers "
    "golden/inner_numbers docs/docstrings",
    "repetition": "exact/repetition exact/search unit/search unit/search_settings "
    "unit/search_misuse unit/search_rows ledger/search cli/repetition golden/public_numbers "
    "golden/inner_numbers docs/docstrings",
    "counts": "exact/counts exact/shared_noise exact/ranked_margin unit/counts unit/release "
    "unit/keys cli/output golden/public_numbers golden/inner_numbers golden/releases "
    "docs/docstrings",
    "payload": "unit/release unit/select exact/groups ledger/failures ledger/select "
    "ledger/shapes golden/releases docs/docstrings",
    "groups": "unit/grouping unit/groups exact/groups exact/itemset_groups ledger/groups "
    "ledger/itemset_groups cli/groups golden/releases docs/docstrings",
    "keyset": "exact/keys unit/keys unit/key_plans ledger/keys cli/keys golden/public_numbers "
    "golden/inner_numbers golden/releases docs/docstrings",
    "learning": "exact/additive exact/classifier exact/regressor exact/peers_faults "
    "unit/additive unit/classifier unit/regressor unit/schema_learners ledger/additive "
    "ledger/classifier ledger/regressor ledger/schema_learners unit/model_card "
    "property/additive_groups statistical/additive_noise golden/inner_numbers golden/releases "
    "docs/docstrings",
}
"""The test files of each module, whose quick tests are used. Tests that look at the source and not
at what it does are not among them, nor are those that start processes, nor files that start threads
of polars when they are collected, which are missing in a forked process.
"""

EXAMPLES = 12
"""That Hypothesis tries of each property, always the same ones."""

SLOW = 2.0
"""Seconds, under coverage: tests that take longer are not used."""

GOLDEN = "tests/golden/"
"""Tests that compare stored values: each sees much at once."""

DEFAULTS = "tests/golden/test_defaults.py"
"""They are not lines that a test runs."""

KILLED, TIMED, SURVIVED = "killed", "timed out", "survived"

SEEN = mutants.ROOT / "tests" / "mutation" / "seen.txt"

IMPORT = "import"
"""In the place of a test: the module cannot be imported."""

Key = tuple[str, str, str, str, int]


@dataclass
class Outcome:
    """What became of a mutant.

    Attributes:
        ending: KILLED, TIMED or SURVIVED.
        test: Which killed it.
        source: A digest of the file of which this is known.
        budget: How many seconds of tests it survived.
        first: How it ended the first time, before tests were written because of it.
        round: In which round that was: tests are written between rounds.
    """

    ending: str
    test: str = ""
    source: str = ""
    budget: float = 0.0
    first: str = ""
    round: int = 1


@dataclass
class Traces:
    """Which tests run a line, and how long each takes.

    Attributes:
        digests: Of the source, and of each test file.
        seconds: By test.
        lines: Tests by file and line.
    """

    digests: dict[str, str] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    lines: dict[str, dict[int, set[str]]] = field(default_factory=dict)


def main() -> None:
    options = _options()
    known = read_outcomes()
    if not options.store:
        chosen = [one for module in options.modules for one in all_mutants(module)]
        if options.survivors:
            harmless = read_harmless()
            chosen = [
                one for one in chosen if _survived(known.get(one.key)) and one.key not in harmless
            ]
        else:
            if options.fresh:
                now = {key for key, outcome in known.items() if outcome.round == options.round}
                met = read_seen() | {digest_of(key) for key in {*known, *read_harmless()} - now}
                every = [one for module in mutants.MODULES for one in all_mutants(module)]
                chosen = random.Random(options.seed).sample(unseen(every, met), options.fresh)
                chosen = [one for one in chosen if one.module in options.modules]
            elif options.sample:  # those of all modules, so that runs of some add up
                every = [one for module in mutants.MODULES for one in all_mutants(module)]
                chosen = sample(every, options.sample, options.seed)
                chosen = [one for one in chosen if one.module in options.modules]
            else:
                chosen = sample(chosen, None, options.seed)
            chosen = [one for one in chosen if _unknown(one, known.get(one.key), options.budget)]
        if options.file:
            chosen = [one for one in chosen if one.file in options.file]
        print(f"{len(chosen)} mutants", flush=True)
        if chosen and not options.survivors:
            write_run(options.round)
        run(chosen, options.budget, options.minutes, options.round, slow=not options.no_slow)
        known = read_outcomes()
    rows = list(summary(options.modules, known, set(read_harmless())))
    for row in rows:
        print(json.dumps(row), flush=True)
    if options.store:
        store(rows, known)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument(
        "modules", nargs="*", metavar="MODULE", help=f"of {', '.join(mutants.MODULES)}"
    )
    parser.add_argument("--file", action="append", help="only of this file, as in noise/bulk.py")
    parser.add_argument("--sample", type=int, help="how many, at least one of every function")
    parser.add_argument("--fresh", type=int, help="how many that were never run, in any round")
    parser.add_argument("--seed", type=int, default=1, help="of the sample (default: 1)")
    parser.add_argument("--budget", type=float, default=4.0, help="seconds of tests for a mutant")
    parser.add_argument("--minutes", type=float, default=600.0, help="then stop")
    parser.add_argument("--round", type=int, default=1, help="counted by itself (default: 1)")
    parser.add_argument("--no-slow", action="store_true", help="without tests marked as slow")
    parser.add_argument("--survivors", action="store_true", help="those that survived, once more")
    parser.add_argument("--store", action="store_true", help="run nothing, store the results")
    options = parser.parse_args()
    options.modules = options.modules or list(mutants.MODULES)
    unknown = set(options.modules) - set(mutants.MODULES)
    if unknown:
        parser.error(f"no such module: {', '.join(sorted(unknown))}")
    return options


@cache
def all_mutants(module: str) -> list[Mutant]:
    """Every mutant of a key of mutants.MODULES, kept until the source changes."""
    files = [mutants.PACKAGE / file for file in mutants.files_of(module)]
    texts = [file.read_bytes() for file in [*files, Path(mutants.__file__)]]
    digest = hashlib.sha256(b"".join(texts)).hexdigest()[:12]
    kept = state() / f"mutants-{module}-{digest}.pickle"
    if kept.exists():
        known: list[Mutant] = pickle.loads(kept.read_bytes())
        return known
    found = [one for file in mutants.files_of(module) for one in mutants.mutants_of(file)]
    state().mkdir(exist_ok=True)
    kept.write_bytes(pickle.dumps(found))
    return found


def sample(among: Sequence[Mutant], size: int | None, seed: int) -> list[Mutant]:
    """All in random order, or so many of them: one of every function, then any."""
    order = random.Random(seed).sample(list(among), len(among))
    met: set[tuple[str, str]] = set()
    first: list[Mutant] = []
    for one in order:
        if (one.file, one.function) not in met:
            met.add((one.file, one.function))
            first.append(one)
    taken = set(first)
    rest = [one for one in order if one not in taken]
    return first + (rest if size is None else rest[: max(0, size - len(first))])


def unseen(among: Iterable[Mutant], seen: set[str]) -> list[Mutant]:
    """Those whose digest is not among those of earlier rounds."""
    return [one for one in among if digest_of(one.key) not in seen]


def wilson(hits: int, tries: int, z: float = 1.96) -> tuple[float, float]:
    """A 95 % interval for a rate (Wilson's).

    Examples:
        >>> [round(end, 3) for end in wilson(95, 100)]
        [0.888, 0.978]
    """
    rate, square = hits / tries, z * z / tries
    middle = (rate + square / 2) / (1 + square)
    half = z * math.sqrt(rate * (1 - rate) / tries + square / (4 * tries)) / (1 + square)
    return middle - half, 1.0 if hits == tries else middle + half  # which rounding may put below it


# What is known


def state() -> Path:
    """The folder of what is known; git ignores it."""
    return mutants.ROOT / ".mutation"


def read_outcomes() -> dict[Key, Outcome]:
    found: dict[Key, Outcome] = {}
    file = state() / "outcomes.jsonl"
    if file.exists():
        for line in file.read_text(encoding="utf-8").splitlines():
            key, outcome = json.loads(line)
            begin = found.get(tuple(key), Outcome(**{**outcome, "first": outcome["ending"]}))
            now = Outcome(**outcome)
            found[tuple(key)] = replace(now, first=begin.first, round=begin.round)
    return found


def write_outcome(mutant: Mutant, outcome: Outcome) -> None:
    with (state() / "outcomes.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps([mutant.key, vars(outcome)], ensure_ascii=False) + "\n")


def write_run(turn: int) -> None:
    """Note how the mutants of a round are run. A run that is taken up again is the same one."""
    words = " ".join(word for word in sys.argv[1:] if word != "--")
    facts = {
        "part": f"round {turn}",
        "command": f"./dev python -m lab.mutation {words}".strip(),
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "cpu": platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 2),
        "python": platform.python_version(),
        "versions": {
            name: metadata.version(name) for name in ("privmax", "pytest", "hypothesis", "coverage")
        },
        "source": hashlib.sha256(_sources()).hexdigest()[:12],
    }
    state().mkdir(exist_ok=True)
    with (state() / "runs.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(facts) + "\n")


def read_runs() -> dict[str, dict[str, Any]]:
    """The first run of each round."""
    file = state() / "runs.jsonl"
    runs: dict[str, dict[str, Any]] = {}
    for line in file.read_text(encoding="utf-8").splitlines() if file.exists() else ():
        facts = json.loads(line)
        runs.setdefault(facts["part"], facts)
    return runs


def digest_of(key: Key) -> str:
    """A short name for a mutant."""
    return hashlib.sha256(json.dumps(key).encode()).hexdigest()[:8]


def read_seen() -> set[str]:
    """The digests of all mutants of earlier rounds, whatever became of them."""
    return set(SEEN.read_text(encoding="utf-8").split()) if SEEN.exists() else set()


def read_harmless() -> dict[Key, str]:
    """The reason by mutant."""
    file = mutants.ROOT / "tests" / "mutation" / "harmless.toml"
    reasons: dict[Key, str] = {}
    listed = tomllib.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    for group in listed.get("harmless", []):
        for change in group["changes"]:
            was, now, number = (*change, 0)[:3]
            reasons[group["file"], group["function"], was, now, number] = group["reason"]
    return reasons


def _survived(outcome: Outcome | None) -> bool:
    return outcome is not None and outcome.ending == SURVIVED


def _unknown(mutant: Mutant, outcome: Outcome | None, budget: float) -> bool:
    if outcome is None or outcome.source != source_digest(mutant):
        return True
    return outcome.ending == SURVIVED and outcome.budget < budget


def source_digest(mutant: Mutant) -> str:
    """Of its file: what is known of a mutant holds until that changes."""
    text = (mutants.PACKAGE / mutant.file).read_text(encoding="utf-8")
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def summary(
    modules: Iterable[str], known: dict[Key, Outcome], harmless: set[Key]
) -> Iterator[dict[str, Any]]:
    """A row for each module, and one for all."""
    total: dict[str, Any] = {}
    for module in [*modules, "all"]:
        if module == "all":
            row = {"module": "all", **total}
        else:
            every = all_mutants(module)
            run = [(one, known[one.key]) for one in every if one.key in known]
            left = [one for one, outcome in run if outcome.ending == SURVIVED]
            accepted = sum(one.key in harmless for one in left)
            counts = {
                "mutants": len(every),
                "run": len(run),
                "killed": sum(outcome.ending == KILLED for _, outcome in run),
                "timed": sum(outcome.ending == TIMED for _, outcome in run),
                "harmless": accepted,
                "survived": len(left) - accepted,
                "first": sum(outcome.first != SURVIVED for _, outcome in run),
            }
            total = {name: total.get(name, 0) + count for name, count in counts.items()}
            row = {"module": module, **counts}
        tries = row["run"] - row["harmless"]
        if tries > 0:
            row["rate"] = (row["killed"] + row["timed"]) / tries
            row["before"] = row["first"] / tries
            row["low"], row["high"] = wilson(row["first"], tries)
        yield row


def store(rows: list[dict[str, Any]], known: dict[Key, Outcome]) -> None:
    """Write lab/benchmarks/results/mutation.json, with the rounds that it has from earlier."""
    run = [one for module in mutants.MODULES for one in all_mutants(module) if one.key in known]
    operators = []
    for name, changes in mutants.OPERATORS.items():
        of = [known[one.key].ending for one in run if one.operator == name]
        operators.append(
            {
                "operator": name,
                "changes": changes,
                "run": len(of),
                "killed": sum(ending != SURVIVED for ending in of),
            }
        )
    harmless = read_harmless()
    file = mutants.ROOT / "lab" / "benchmarks" / "results" / "mutation.json"
    stored = json.loads(file.read_text(encoding="utf-8"))
    rounds = {(row["round"], row["of"]): row for row in stored["rounds"]}
    for number in sorted({known[one.key].round for one in run}):
        for name in ("core", "new"):
            of_round = [
                one
                for one in run
                if known[one.key].round == number
                and (one.module in mutants.CORE) == (name == "core")
            ]
            counted = [
                known[one.key].first
                for one in of_round
                if known[one.key].ending != SURVIVED or one.key not in harmless
            ]
            if not counted:
                continue
            hits = sum(first != SURVIVED for first in counted)
            low, high = wilson(hits, len(counted))
            rounds[number, name] = {
                "round": number,
                "of": name,
                "run": len(of_round),
                "harmless": len(of_round) - len(counted),
                "killed": hits,
                "rate": hits / len(counted),
                "low": low,
                "high": high,
            }
    earlier, earlier_operators = stored.get("earlier", []), stored.get("earlier operators", [])
    if min(known[one.key].round for one in run) > max(row["round"] for row in stored["rounds"]):
        earlier, earlier_operators = stored["modules"], stored["operators"]
    rows = [_add(row, earlier, "module") for row in rows]
    operators = [_add(row, earlier_operators, "operator") for row in operators]
    result = {
        "benchmark": "mutation",
        "settings": {"tests": TESTS, "examples": EXAMPLES},
        "runs": list(({row["part"]: row for row in stored["runs"]} | read_runs()).values()),
        "modules": rows,
        "rounds": [rounds[key] for key in sorted(rounds)],
        "operators": operators,
        "reasons": [
            {"reason": reason, "mutants": count}
            for reason, count in sorted(
                Counter(harmless.values()).items(), key=lambda one: (-one[1], one[0])
            )
        ],
        "earlier": earlier,
        "earlier operators": earlier_operators,
    }
    seen = read_seen() | {digest_of(key) for key in {*known, *harmless}}
    SEEN.write_text(textwrap.fill(" ".join(sorted(seen)), 98) + "\n", encoding="utf-8")
    parts = []
    for key, value in result.items():
        if isinstance(value, list):  # one record a line, so that differences can be read
            lines = ",\n".join("    " + json.dumps(row, ensure_ascii=False) for row in value)
            parts.append(f'  "{key}": [\n{lines}\n  ]')
        else:
            parts.append(f'  "{key}": {json.dumps(value, ensure_ascii=False)}')
    file.write_text("{\n" + ",\n".join(parts) + "\n}\n", encoding="utf-8")


def _add(row: dict[str, Any], earlier: list[dict[str, Any]], name: str) -> dict[str, Any]:
    """Add what was counted in rounds that are stored, and of which single mutants are not known."""
    before = next((one for one in earlier if one[name] == row[name]), {})
    for count in ("run", "killed", "timed", "harmless", "survived", "first"):
        if count in row:
            row[count] += before.get(count, 0)
    if row.get("harmless", row["run"]) < row["run"]:
        tries = row["run"] - row["harmless"]
        row["rate"] = (row["killed"] + row["timed"]) / tries
        row["before"] = row["first"] / tries
        row["low"], row["high"] = wilson(row["first"], tries)
    return row


def _sources() -> bytes:
    """All that is mutated."""
    files = [file for module in mutants.MODULES for file in mutants.files_of(module)]
    return b"".join((mutants.PACKAGE / file).read_bytes() for file in files)


# Running


def run(
    chosen: Sequence[Mutant], budget: float, minutes: float, turn: int, *, slow: bool = True
) -> None:
    """Collect the tests in this process, and try each mutant in a fork of it."""
    state().mkdir(exist_ok=True)
    for name in (
        "OMP_NUM_THREADS",
        "OPENBLAS_NUM_THREADS",
        "NUMBA_NUM_THREADS",
        "POLARS_MAX_THREADS",
    ):
        os.environ[name] = "1"
    temporary = Path(tempfile.mkdtemp(prefix="mutation-"))
    arguments = ["-n", "0", "-q", "-s", "-p", "no:cacheprovider"]
    arguments += ["-m", "not engines" if slow else "not engines and not slow"]
    arguments += [f"--basetemp={temporary}/t"]
    arguments += [
        f"--rootdir={mutants.ROOT}",
        *test_files(dict.fromkeys(one.module for one in chosen)),
    ]
    runner = _Runner(chosen, budget, minutes, turn, temporary)
    try:
        pytest.main(arguments, plugins=[runner])
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def test_files(modules: Iterable[str]) -> list[str]:
    """The paths of TESTS."""
    names = [name.split("/") for module in modules for name in TESTS[module].split()]
    paths = [str(mutants.ROOT / "tests" / folder / f"test_{name}.py") for folder, name in names]
    return list(dict.fromkeys(paths))


class _Runner:
    """A plugin of pytest that runs mutants in the place of tests."""

    def __init__(
        self, chosen: Sequence[Mutant], budget: float, minutes: float, turn: int, temporary: Path
    ) -> None:
        self._chosen = chosen
        self._budget = budget
        self._end = time.monotonic() + 60 * minutes
        self._round = turn
        self._temporary = temporary
        self._steady: set[str] = set()
        self._unsteady: set[str] = set()
        self._killers: dict[str, list[str]] = {}
        self._tracing = False
        self._texts: dict[str, str] = {}

    def pytest_configure(self, config: pytest.Config) -> None:
        from hypothesis import HealthCheck, Phase, settings

        settings.register_profile(
            "mutation",
            max_examples=EXAMPLES,
            derandomize=True,
            database=None,
            deadline=None,
            phases=[Phase.explicit, Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        settings.load_profile("mutation")

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Of docstrings only those of the modules."""
        kept = tuple(
            f"[privmax.{file.removesuffix('.py').replace('/', '.')}]"
            for module in dict.fromkeys(one.module for one in self._chosen)
            for file in mutants.files_of(module)
        )
        items[:] = [
            item
            for item in items
            if item.path.name != "test_docstrings.py" or item.nodeid.endswith(kept)
        ]

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        self._items = {item.nodeid: item for item in session.items}
        for file in dict.fromkeys(one.file for one in self._chosen):
            name = file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
            importlib.import_module(f"privmax.{name}")
        mutants.index_functions()
        gc.disable()
        gc.freeze()
        self._traces = self._trace()
        begin = time.monotonic()
        for number, mutant in enumerate(self._chosen):
            if time.monotonic() > self._end:
                print(f"stopped after {number} mutants")
                break
            outcome = self._try(mutant)
            write_outcome(mutant, replace(outcome, round=self._round))
            if outcome.ending == SURVIVED or number % 100 == 0:
                print(
                    f"[{number} {time.monotonic() - begin:.0f}s] {outcome.ending} {mutant.file} "
                    f"{mutant.function}: {mutant.was} → {mutant.now}",
                    flush=True,
                )
        return True

    def _try(self, mutant: Mutant) -> Outcome:
        source = source_digest(mutant)
        place = f"{mutant.file} {mutant.function}"
        while True:
            tests = self._tests(mutant)
            if not tests:
                return Outcome(SURVIVED, "no test runs it", source, self._budget)
            ending, test = self._fork(tests, mutant.apply)
            if ending == SURVIVED:
                return Outcome(SURVIVED, "", source, self._budget)
            if test == IMPORT or test in self._steady or self._is_steady(test):
                killers = self._killers.setdefault(place, [])
                if test not in killers:
                    killers.insert(0, test)
                return Outcome(ending, test, source)

    def _is_steady(self, test: str) -> bool:
        """Whether a test that failed passes where nothing was changed."""
        ending, _ = self._fork([test], lambda: None)
        if ending == SURVIVED:
            self._steady.add(test)
            return True
        print(f"left out, as it fails without a mutant: {test}", flush=True)
        self._unsteady.add(test)
        return False

    def _tests(self, mutant: Mutant) -> list[str]:
        """Those that run its lines: what killed one of its function before, then those that compare
        stored values, then the quickest case of each other test, then the other cases.
        """
        found = self._covering(mutant) - self._unsteady
        seconds = self._traces.seconds
        killers = list(self._killers.get(f"{mutant.file} {mutant.function}", [])[:4])
        first = [test for test in killers if test in found]
        rest = sorted(found - set(first), key=lambda one: (seconds[one], one))
        stored = [test for test in rest if test.startswith(GOLDEN)]
        order = first + stored + _one_of_each([test for test in rest if test not in set(stored)])
        chosen: list[str] = []
        spent = 0.0
        for test in order:
            spent += seconds[test] + 0.003
            if chosen and spent > self._budget:
                break
            chosen.append(test)
        return chosen

    def _covering(self, mutant: Mutant) -> set[str]:
        lines = self._traces.lines.get(mutant.file, {})
        found: set[str] = set()
        for number in range(mutant.lines[0], mutant.lines[1] + 1):
            found |= lines.get(number, set())
        if found:
            return found
        users = {
            test
            for file, number in mutants.users_of(mutant)
            for test in self._traces.lines.get(file, {}).get(number, ())
        }
        names = mutants.names_of(mutant) | mutants.derived_from(mutant)
        return users | {
            test
            for test in self._traces.seconds
            if test in self._items
            and (test.startswith(DEFAULTS) or any(name in self._text(test) for name in names))
        }

    def _text(self, test: str) -> str:
        """Of the file of a test."""
        file = test.split("::", maxsplit=1)[0]
        if file not in self._texts:
            self._texts[file] = (mutants.ROOT / file).read_text(encoding="utf-8")
        return self._texts[file]

    def _fork(self, tests: Sequence[str], change: Callable[[], None]) -> tuple[str, str]:
        """Run tests in a child, after a change: how it ended, and in which test."""
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            code = 1
            try:
                os.close(reading)
                code = self._child(tests, change, writing)
            except BaseException as problem:  # whatever it is, the child ends here
                os.write(writing, f"! {type(problem).__name__}: {problem}\n".encode())
            finally:
                os._exit(code)
        os.close(writing)
        said = b""
        while part := os.read(reading, 65536):
            said += part
        os.close(reading)
        _, status = os.waitpid(child, 0)
        shutil.rmtree(self._temporary / "t", ignore_errors=True)
        (self._temporary / "t").mkdir()
        lines = said.decode(errors="replace").splitlines()
        last = lines[-1] if lines else ""
        if os.WIFEXITED(status) and os.WEXITSTATUS(status) == 0:
            return SURVIVED, ""
        if last.startswith("!"):
            if len(lines) == 1:  # what runs on import failed
                return KILLED, IMPORT
            last = next(line for line in reversed(lines) if not line.startswith("!"))
        if os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGPROF, signal.SIGALRM):
            return TIMED, last
        return KILLED, last

    def _child(self, tests: Sequence[str], change: Callable[[], None], writing: int) -> int:
        from _pytest.runner import runtestprotocol

        silence = os.open(os.devnull, os.O_RDWR)
        for standard in (0, 1, 2):
            os.dup2(silence, standard)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        here = 1024 * int(Path("/proc/self/statm").read_text().split()[0]) * 4
        resource.setrlimit(resource.RLIMIT_AS, (here + 2**31, here + 2**31))
        change()
        items = [self._items[test] for test in tests]
        for item, following in zip(items, [*items[1:], None], strict=True):
            os.write(writing, f"{item.nodeid}\n".encode())
            limit = 1 + 8 * self._traces.seconds.get(item.nodeid, 1.0)
            signal.setitimer(signal.ITIMER_PROF, limit)
            signal.setitimer(signal.ITIMER_REAL, 10 + 4 * limit)  # it may be waiting for ever
            reports = runtestprotocol(item, nextitem=following, log=False)
            if any(report.failed for report in reports):
                return 1
        return 0

    # Traces

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self) -> Generator[None, object, object]:
        """While tests are traced, those that take longer than SLOW are given up."""
        if self._tracing:
            signal.signal(signal.SIGPROF, _give_up)
            signal.setitimer(signal.ITIMER_PROF, SLOW, SLOW / 4)
        try:
            return (yield)
        except TimeoutError:  # a report of where it happened may fail
            pytest.skip("too slow")
        finally:
            if self._tracing:
                signal.setitimer(signal.ITIMER_PROF, 0)

    def _trace(self) -> Traces:
        """Which tests run which lines: known, or found now for the files that changed."""
        file = state() / "traces.pickle"
        traces = Traces()
        if file.exists():
            traces = pickle.loads(file.read_bytes())
        sources = [one for module in mutants.MODULES for one in mutants.files_of(module)]
        digest = hashlib.sha256(_sources()).hexdigest()
        if traces.digests.get("source") != digest:
            traces = Traces(digests={"source": digest})
        by_file: dict[str, list[str]] = {}
        for test in self._items:
            by_file.setdefault(test.split("::")[0], []).append(test)
        for name, tests in by_file.items():
            named = "\n".join(tests).encode(
                "utf-8", "backslashreplace"
            )  # without slow ones, or with
            digest = hashlib.sha256((mutants.ROOT / name).read_bytes() + named).hexdigest()
            if traces.digests.get(name) == digest:
                continue
            begin = time.monotonic()
            self._trace_file(traces, name, tests, sources)
            traces.digests[name] = digest
            file.write_bytes(pickle.dumps(traces))
            print(f"traced {name}: {len(tests)} tests, {time.monotonic() - begin:.1f}s", flush=True)
        gone = set(traces.seconds) - set(self._items)
        for lines in traces.lines.values():
            for tests_of in lines.values():
                tests_of.difference_update(gone)
        return traces

    def _trace_file(self, traces: Traces, name: str, tests: list[str], sources: list[str]) -> None:
        answer = self._temporary / "answer"
        problem = self._temporary / "problem"
        answer.unlink(missing_ok=True)
        child = os.fork()
        if not child:
            signal.alarm(900)  # a test may wait for a thread that this process does not have
            try:
                answer.write_bytes(pickle.dumps(self._follow(tests, sources)))
            except BaseException:  # its standard streams are closed
                problem.write_text(traceback.format_exc(), encoding="utf-8")
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        for lines in traces.lines.values():
            for found in lines.values():
                found.difference_update([test for test in found if test.startswith(f"{name}::")])
        if not answer.exists():
            why = problem.read_text(encoding="utf-8") if problem.exists() else "it does not end"
            print(f"{name} could not be traced: {why}", flush=True)
            return
        seconds, lines = pickle.loads(answer.read_bytes())
        traces.seconds.update(seconds)
        for source, found in lines.items():
            for line, tests_of in found.items():
                traces.lines.setdefault(source, {}).setdefault(line, set()).update(tests_of)

    def _follow(
        self, tests: list[str], sources: list[str]
    ) -> tuple[dict[str, float], dict[str, dict[int, set[str]]]]:
        """In a child: run tests under coverage."""
        import coverage
        from _pytest.runner import runtestprotocol

        silence = os.open(os.devnull, os.O_RDWR)
        for standard in (0, 1, 2):
            os.dup2(silence, standard)
        cover = coverage.Coverage(
            data_file=None,
            include=[str(mutants.PACKAGE / source) for source in sources],
            config_file=False,
        )
        self._tracing = True
        cover.start()
        seconds: dict[str, float] = {}
        items = [self._items[test] for test in tests]
        kept = [one for one in gc.get_objects() if _is_cache(one)]
        for item, following in zip(items, [*items[1:], None], strict=True):
            for one in kept:  # a line that filled a cache before counts for every test
                one.cache_clear()
            cover.switch_context(item.nodeid)
            begin = time.process_time()
            reports = runtestprotocol(item, nextitem=following, log=False)
            if all(report.passed for report in reports):
                seconds[item.nodeid] = time.process_time() - begin
        cover.stop()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # where no test of a file runs any of the modules
            data = cover.get_data()
        lines: dict[str, dict[int, set[str]]] = {}
        for source in sources:
            for line, found in data.contexts_by_lineno(str(mutants.PACKAGE / source)).items():
                lines.setdefault(source, {})[line] = {test for test in found if test in seconds}
        return seconds, lines


def _one_of_each(cases: Sequence[str]) -> list[str]:
    """The first case of each test, then the second of each, and so on."""
    met: dict[str, int] = {}
    turns = []
    for case in cases:
        test = case.split("[", maxsplit=1)[0]
        met[test] = met.get(test, 0) + 1
        turns.append(met[test])
    return [case for _, case in sorted(zip(turns, cases, strict=True), key=lambda one: one[0])]


def _is_cache(one: object) -> bool:
    """Whether it is a function of the package whose answers are kept."""
    is_kept = type(one).__name__ == "_lru_cache_wrapper"
    return is_kept and str(getattr(one, "__module__", "")).startswith("privmax")


def _give_up(_: int, frame: FrameType | None) -> None:
    while frame is not None:  # coverage holds a lock: the next alarm comes soon
        if "coverage" in Path(frame.f_code.co_filename).parts:
            return
        frame = frame.f_back
    raise TimeoutError("this test takes too long to be tried on mutants")


if __name__ == "__main__":
    main()
