"""Shell completion, by the protocol that the shells speak, and in bash itself. The page on it says
what works.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from privmax import samples
from privmax.cli import COMMANDS
from privmax.mechanisms.registry import MECHANISMS

PAGE = Path(__file__).resolve().parents[2] / "docs/howto/completion.md"
SHELLS = ("bash", "zsh", "fish")


def asked(shell: str, instruction: str, **variables: str) -> str:
    """What privmax answers a shell."""
    program = "import sys; from privmax.cli import main; sys.exit(main(prog_name='privmax'))"
    environment = {**os.environ, "_PRIVMAX_COMPLETE": f"{shell}_{instruction}", **variables}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    return done.stdout


def completed(shell: str, *words: str) -> list[tuple[str, str]]:
    """Types and values for the last word."""
    place = words[-1] if shell == "fish" else str(len(words))
    lines = (
        asked(shell, "complete", COMP_WORDS=" ".join(["privmax", *words]), COMP_CWORD=place)
        .strip()
        .splitlines()
    )
    if shell == "zsh":
        return [
            (kind, value.replace("\\:", ":"))
            for kind, value in zip(lines[::3], lines[1::3], strict=True)
        ]
    pairs = [line.partition("\t")[0].split(",", 1) for line in lines]
    return [(kind, value) for kind, value in pairs]


def values(shell: str, *words: str) -> list[str]:
    return [value for kind, value in completed(shell, *words) if kind == "plain"]


@pytest.mark.slow
@pytest.mark.parametrize("shell", SHELLS)
def test_commands_options_and_mechanisms(shell):
    assert values(shell, "") == list(COMMANDS)
    assert values(shell, "se") == ["select"]
    assert values(shell, "budget", "ve") == ["verify"]
    assert values(shell, "select", "--mech") == ["--mechanism"]
    assert values(shell, "select", "--mechanism", "") == ["auto", *MECHANISMS]
    assert values(shell, "compare", "--neighbors", "re") == ["replace"]


@pytest.mark.slow
@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("command", ["select", "keys", "itemsets", "learn", "compare"])
def test_shipped_data_sets_are_offered_beside_files(shell, command):
    assert completed(shell, command, "sam") == [
        ("file", "sam"),
        *(("plain", f"sample:{name}") for name in samples.NAMES),
    ]
    assert completed(shell, command, "other") == [("file", "other")]


@pytest.mark.slow
@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("words", [("plan", "--plot"), ("select", "--ledger"), ("budget", "show")])
def test_files_are_offered_where_there_is_nothing_to_choose_from(shell, words):
    assert completed(shell, *words, "x") == [("file", "x")]
    assert completed(shell, words[0], "--no-such") == []


@pytest.mark.slow
@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_a_data_set_is_completed_in_one_word(shell):
    assert values(shell, "select", "sample:c") == ["sample:counts"]


@pytest.mark.slow
def test_bash_takes_a_colon_for_a_word():
    assert values("bash", "select", "sample", ":") == list(samples.NAMES)
    assert completed("bash", "select", "sample", ":", "c") == [("plain", "counts")]
    assert values("bash", "select", "sample", ":", "counts", "--eps") == ["--epsilon"]


@pytest.mark.slow
@pytest.mark.parametrize("shell", SHELLS)
def test_the_page_has_the_line_for_each_shell(shell):
    lines = re.findall(
        rf"`([^`]*_PRIVMAX_COMPLETE={shell}_source privmax[^`]*)`", PAGE.read_text(encoding="utf-8")
    )
    assert lines
    script = asked(shell, "source")
    assert "privmax" in script
    assert f"_PRIVMAX_COMPLETE={shell}_complete" in script


@pytest.mark.slow
def test_bash_completes_what_the_page_says(tmp_path):
    """The script is read by a real bash, and its function asked as bash asks it."""
    rows = re.findall(
        r"^\| `(privmax [^`]*)` \| `(privmax [^`]*)` \|$",
        PAGE.read_text(encoding="utf-8"),
        re.MULTILINE,
    )
    assert len(rows) == 3
    script = tmp_path / "script"
    script.write_text(asked("bash", "source"), encoding="utf-8")
    program = tmp_path / "privmax"
    program.write_text(
        f'#!/bin/sh\nexec "{sys.executable}" -m privmax.cli "$@"\n', encoding="utf-8"
    )
    program.chmod(0o755)
    for typed, whole in rows:
        words = " ".join(f"'{word}'" for word in re.findall(r":|[^\s:]+", typed))
        lines = [f". {script}", f"COMP_WORDS=({words})", "COMP_CWORD=$((${#COMP_WORDS[@]} - 1))"]
        lines += ["COMPREPLY=(); _privmax_completion privmax", 'echo "${COMPREPLY[@]}"']
        environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
        done = subprocess.run(
            ["bash", "--norc", "-c", "\n".join(lines)],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        assert whole == typed + done.stdout.strip()[len(re.split(r"[\s:]", typed)[-1]) :]
        assert done.stdout.strip()
