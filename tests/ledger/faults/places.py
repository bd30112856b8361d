"""Bad days of places: one file under several names, working folders, clocks and process numbers."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import crash

from faults.disks import may_mount
from faults.scene import NotTried, Scene, Trial, Yard
from privmax.errors import LedgerError
from privmax.ledger import Ledger

NAMESPACE = ("unshare", "--pid", "--fork", "--kill-child")
"""What starts a program in which processes are numbered from 1."""

YEAR = 365 * 86400

ROUND = 5
"""Requests that each worker makes before the places are made again."""


def other_places(yard: Yard, where: str, times: int) -> Trial:
    """Workers that find one file in different ways release at once, half of them for the same
    requests.

    They find it by its own name, by a relative one in its folder, by a link, below a folder that is
    mounted elsewhere, with a clock that is years off, and in two namespaces that give the same
    numbers to their processes. It cannot be used where the file itself is mounted elsewhere.
    """
    trial = Trial("one file in other places, clocks and process namespaces", where, 0)
    if not may_mount() or shutil.which("unshare") is None:
        raise NotTried("only root can mount a folder")
    scene = Scene(yard, yard.place(where))
    file = Path(scene.place)
    with ExitStack() as stack:
        elsewhere = stack.enter_context(_mounted(file.parent, yard.fresh()))
        alone = yard.fresh() / file.name
        alone.touch()
        stack.enter_context(_mounted(file, alone))
        link = yard.fresh() / "link.db"
        link.symlink_to(file)
        spaces = [stack.enter_context(crash.Nursery(within=NAMESPACE)) for _ in range(2)]
        ways: list[tuple[str, crash.Nursery, dict[str, Any]]] = [
            ("its own name", yard.nursery, {}),
            ("a relative name", yard.nursery, {"where": file.name, "folder": str(file.parent)}),
            ("a link", yard.nursery, {"where": str(link)}),
            ("a mounted folder", yard.nursery, {"where": str(elsewhere / file.name)}),
            ("another clock", yard.interposed, {"clock": random.choice([-20, 20]) * YEAR}),
            ("a process namespace", spaces[0], {}),
            ("another one", spaces[1], {}),
        ]
        for done in range(0, times // len(ways), ROUND):
            running = [
                (name, nursery, nursery.start("release", **_job(scene, worker, done, more)))
                for worker, (name, nursery, more) in enumerate(ways)
            ]
            numbers = [process for _, nursery, process in running if nursery in spaces]
            trial.seen["the same process number twice"] += len(set(numbers)) < len(numbers)
            for name, nursery, process in running:
                if status := nursery.wait(process):
                    raise NotTried(f"a worker at {name} ended with {status}: {scene.errors()[-1:]}")
                trial.seen[name] += ROUND
            trial.times += ROUND * len(ways)
            scene.glance()
            _refuse_mounted(trial, scene, alone)
        with Ledger(scene.place, scene.name) as ledger:
            years = [int(event.when[:4]) for event in ledger.history()]
        trial.seen["events dated years off"] = sum(abs(one - years[0]) > 1 for one in years)
        if not trial.seen["events dated years off"]:
            raise NotTried("no clock was off")
        scene.judge(trial)
    return trial


def _job(scene: Scene, worker: int, done: int, more: dict[str, Any]) -> dict[str, Any]:
    prefix = "same" if worker % 2 else None
    return {**scene.job(worker, prefix=prefix, until=done + ROUND), **more}


def _refuse_mounted(trial: Trial, scene: Scene, alone: Path) -> None:
    """The file cannot be used where nothing else of its folder is."""
    try:
        Ledger(alone, scene.name).close()
        trial.lost.append("the refusal of a file that is a mount point")
    except LedgerError as error:
        if "is a mount point" not in str(error):
            trial.lost.append("the reason, in the error")
        trial.seen["the file alone is mounted: refused"] += 1


@contextmanager
def _mounted(path: Path, at: Path) -> Iterator[Path]:
    subprocess.run(["mount", "--bind", str(path), str(at)], check=True)
    try:
        yield at
    finally:
        subprocess.run(["umount", "--lazy", str(at)], check=True)
        if at.is_dir():
            os.rmdir(at)
