"""Fuzz privmax by coverage: each target of lab/fuzzing gets inputs that atheris makes.

    ./dev fuzz [TARGET...] [--runs N] [--seconds S] [--group parser|reader|engine] [--json FILE]
    ./dev fuzz --list

privmax is imported once, with every branch counted; then each target runs in a process of its own,
one after the other, with its time and memory bounded. A bug does not stop it: all that are found
are told at the end, with an input for each, and the exit status is 1.
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import io
import json
import os
import re
import resource
import shutil
import signal
import sys
import tempfile
import time
from importlib import import_module
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

MEMORY = 3 << 30
"""Bytes of address space that a target may take beside what the process has."""

HANG = 60
"""Seconds after which an input counts as one that does not end."""

STATS = re.compile(r"#(\d+)\s+\w+\s+cov: (\d+) ft: (\d+) corp: (\d+)/")


def main() -> None:
    options = read_options()
    atheris: Any = import_module("atheris")
    told = contextlib.redirect_stderr(io.StringIO())  # it names every module it instruments
    instrumented = atheris.instrument_imports(include=["privmax"], enable_loader_override=False)
    with told, instrumented:
        groups = [] if options.group is None else [[options.group]]
        found = import_module("lab.fuzzing.listing").targets(*groups)
        wanted = [
            one for one in found.values() if one.name in options.targets or not options.targets
        ]
        for name in {need for one in wanted for need in one.needs}:
            import_module(name)
    unknown = [name for name in options.targets if name not in found]
    if unknown:
        raise SystemExit(f"no such target: {', '.join(unknown)}; --list names them")
    if options.list:
        print("\n".join(f"{one.name:16} {one.group:8} {one.entry}" for one in wanted))
        return
    results = []
    for target in wanted:
        results.append(campaign(atheris, target, options))
        if options.json is not None:
            unfinished = options.json.with_name(f"{options.json.name}.unfinished")
            unfinished.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
            unfinished.replace(options.json)
    raise SystemExit(any(result["findings"] for result in results))


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("targets", nargs="*", metavar="TARGET", help="by default all")
    parser.add_argument("--list", action="store_true", help="list the targets")
    groups = ["parser", "reader", "engine"]
    parser.add_argument("--group", choices=groups, help="only targets of this group")
    parser.add_argument("--runs", type=int, help="executions of each target")
    parser.add_argument("--seconds", type=float, help="time of each target (default: 10)")
    parser.add_argument("--seed", type=int, default=1, help="of the fuzzer's own choices")
    parser.add_argument("--corpus", type=Path, help="keep inputs that reach something new here")
    parser.add_argument("--json", type=Path, help="write what was found here")
    options = parser.parse_args()
    if options.runs is None and options.seconds is None:
        options.seconds = 10.0
    return options


def campaign(atheris: Any, target: Any, options: argparse.Namespace) -> dict[str, Any]:
    """One target in a process of its own: what was run, and what was found."""
    shared = "/dev/shm"
    folder = Path(tempfile.mkdtemp(dir=shared if os.path.isdir(shared) else None))
    began, wall = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    try:
        child = os.fork()
        if child == 0:
            try:
                _fuzz(atheris, target, options, folder)
            finally:
                os._exit(70)  # not reached: the fuzzer ends the process itself
        _, status = os.waitpid(child, 0)
        log = (folder / "log").read_text(encoding="utf-8", errors="replace")
        findings = _findings(folder, target.name, status, log)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    stats = STATS.findall(log) or [("0", "0", "0", "0")]
    result = {
        "target": target.name,
        "group": target.group,
        "entry": target.entry,
        "executions": max(int(one[0]) for one in stats),
        "branches": int(stats[-1][1]),
        "features": int(stats[-1][2]),
        "corpus": int(stats[-1][3]),
        "seconds": round(time.monotonic() - wall, 1),
        "processor": round(ended.ru_utime + ended.ru_stime - began.ru_utime - began.ru_stime, 1),
        "findings": findings,
    }
    told = (
        "{target:16} {executions:9,} executions in {seconds:.0f} s ({processor:.0f} s of the "
        "processor), {features} features"
    )
    print(told.format(**result), flush=True)
    for finding in findings:
        print(
            f"  BUG {finding['error']} at {finding['place']}, {finding['times']} times: "
            f"{finding['told']}\n      input {finding['input']}",
            flush=True,
        )
    return result


def _fuzz(atheris: Any, target: Any, options: argparse.Namespace, folder: Path) -> None:
    """In the child: run until the fuzzer ends the process."""
    judging, drawing = import_module("lab.fuzzing.judging"), import_module("lab.fuzzing.drawing")
    files = folder / "files"
    files.mkdir()
    drawing.use(files)
    corpus = folder / "corpus" if options.corpus is None else options.corpus / target.name
    corpus.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(target.seeds):
        (corpus / f"seed-{number}").write_bytes(seed)
    log = os.open(folder / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(log, 1)
    os.dup2(log, 2)
    size = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    resource.setrlimit(resource.RLIMIT_AS, (size + MEMORY, size + MEMORY))
    seen: dict[Any, int] = {}
    told = folder / "findings"

    def one(data: bytes) -> None:
        finding = judging.judge(target, data)
        if finding is None:
            return
        seen[finding] = seen.get(finding, 0) + 1
        if seen[finding] == 1 or seen[finding] & (seen[finding] - 1) == 0:
            line = {
                "error": finding.error,
                "place": finding.place,
                "told": finding.told,
                "input": base64.b64encode(finding.data).decode(),
                "times": seen[finding],
            }
            with told.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")

    words = folder / "words"
    escaped = ("".join(f"\\x{byte:02x}" for byte in word) for word in target.words)
    words.write_text("".join(f'"{word}"\n' for word in escaped))
    flags = [
        "fuzz",
        f"-max_len={target.longest}",
        *([f"-dict={words}"] if target.words else []),
        f"-seed={options.seed}",
        f"-timeout={HANG}",
        f"-rss_limit_mb={MEMORY >> 20}",
        f"-artifact_prefix={folder}/stopped-",
        *([] if options.runs is None else [f"-runs={options.runs}"]),
        *([] if options.seconds is None else [f"-max_total_time={max(1, round(options.seconds))}"]),
        str(corpus),
    ]
    atheris.Setup(flags, one)
    atheris.Fuzz()


def _findings(folder: Path, name: str, status: int, log: str) -> list[dict[str, Any]]:
    """What the child wrote down, and how it was stopped if it was."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    told = folder / "findings"
    for line in told.read_text(encoding="utf-8").splitlines() if told.exists() else ():
        one = json.loads(line)
        first = found.setdefault((one["error"], one["place"]), one)
        first["times"] = max(first["times"], one["times"])
    # When it is done, threads of an engine may still stop the process on its way out.
    if status != 0 and not re.search(r"^Done \d+ runs", log, re.MULTILINE):
        stopped = sorted(folder.glob("stopped-*"))
        how = signal.Signals(os.WTERMSIG(status)).name if os.WIFSIGNALED(status) else ""
        how = how or f"exit {os.waitstatus_to_exitcode(status)}"
        data = stopped[0].read_bytes() if stopped else b""
        found["stopped", how] = {
            "error": stopped[0].name.split("-")[1] if stopped else "stopped",
            "place": how,
            "told": " | ".join(log.splitlines()[-4:])[-300:],
            "input": base64.b64encode(data).decode(),
            "times": 1,
        }
    return list(found.values())


if __name__ == "__main__":
    main()
