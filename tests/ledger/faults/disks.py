"""Bad days of the disk below a ledger: it is full, or may only be read."""

from __future__ import annotations

import os
import random
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import crash
import servers

from faults.scene import NotTried, Scene, Trial, Yard

NOBODY = 65534


def full_files(yard: Yard, where: str, times: int) -> Trial:
    """The system lets files grow no further, at some byte of some commit; then there is room
    again.
    """
    trial = Trial("a file may not grow (RLIMIT_FSIZE)", where, times)
    scene = Scene(yard, yard.place(where))
    for _ in range(times):
        size = (
            Path(scene.place).stat().st_size
        )  # a commit writes a journal of some 10 KiB, and then a little more
        _refused(
            yard,
            scene,
            trial,
            room=random.choice([random.randrange(20_000), size + random.randrange(20_000)]),
        )
        scene.glance()
    scene.finish()
    return scene.judge(trial)


def full_disks(yard: Yard, where: str, times: int) -> Trial:
    """A small disk is full; then it becomes a little larger, until it is full again."""
    trial = Trial("the disk is full", where, times)
    with small_disk(yard.fresh(), "256k") as disk:
        scene = Scene(yard, str(disk / "budget.db"))
        size = 256
        for _ in range(times):
            _refused(yard, scene, trial)
            size += random.randrange(4, 60, 4)
            _mount("remount", disk, f"{size}k")
            scene.glance()
        _mount("remount", disk, f"{size + 4000}k")
        scene.finish()
        return scene.judge(trial)


def full_servers(yard: Yard, where: str, times: int) -> Trial:
    """The disk of the server is full, and is cleared again."""
    trial = Trial("the disk of the server is full", where, times)
    with small_disk(yard.fresh(), "160m") as disk, servers.Postgres(disk) as server:
        scene = Scene(yard, server.url)
        for _ in range(times):
            _fill(disk / "filler")
            _refused(yard, scene, trial)
            (disk / "filler").unlink()
            server.start()  # if it gave up
            scene.glance()
            yard.nursery.wait(scene.start(0, until=len(scene.told(0)) + 20, patient=True))
        scene.finish()
        return scene.judge(trial)


def _refused(yard: Yard, scene: Scene, trial: Trial, **job: Any) -> None:
    """Let a worker go on until it is refused."""
    status = yard.nursery.wait(scene.start(0, **job))
    if status != crash.REFUSED:
        raise NotTried(f"a worker ended with {status} and was not refused")
    trial.seen[_kind(scene.errors()[-1])] += 1


def _kind(error: str) -> str:
    for told in (
        "disk is full",
        "disk of the server is full",
        "read-only",
        "cannot be opened",
        "at the commit",
    ):
        if told in error:
            return f"told: {told}"
    code = re.search(r"\(([\w ]+)\)", error)
    return f"told: {code[1] if code else 'something else'}"


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[Path]:
    """A file system of that size in a folder. NotTried where only an administrator may have one."""
    if not may_mount():
        raise NotTried("only root can mount a small disk")
    _mount("mode=755", folder, size)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def may_mount() -> bool:
    return os.geteuid() == 0 and shutil.which("mount") is not None


def _mount(option: str, folder: Path, size: str) -> None:
    subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"{option},size={size}", "privmax-ledger", str(folder)],
        check=True,
    )


def _fill(path: Path) -> None:
    with path.open("wb", buffering=0) as file:
        for piece in (1 << 20, 1 << 12):
            try:
                while True:
                    file.write(b"\0" * piece)
            except OSError:  # full
                continue


def read_only(yard: Yard, where: str, times: int) -> Trial:
    """The file, or the file and its folder, may only be read; then they may be written again."""
    trial = Trial("the file or its folder is read-only", where, times)
    scene = Scene(yard, yard.place(where))
    file = Path(scene.place)
    folder = file.parent
    for number in range(times):
        before = file.read_bytes()
        file.chmod(0o444)
        folder.chmod(0o555 if number % 2 else 0o777)
        _refused(yard, scene, trial, user=NOBODY)
        folder.chmod(0o755)
        for left in folder.glob("budget.db-*"):
            left.unlink()  # made by the other user, for whom the folder was open
        file.chmod(0o600)
        if file.read_bytes() != before:
            trial.lost.append("what stood in the file")
        scene.finish()
    return scene.judge(trial)
