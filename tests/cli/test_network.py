"""privmax needs no network: commands run where only this machine can be reached.

All tests run so as far as Python's own sockets go (`tests/conftest.py`). Here commands run in
processes of their own, whose children are watched, too, and native code such as DuckDB's under
strace.
"""

from __future__ import annotations

import re
import shutil
import socket
import subprocess
import sys
from urllib.request import HTTPCookieProcessor, build_opener, urlopen

import offline
import pytest

SELECT = "select sample:searches --item query --user person --epsilon 1 --delta 1e-6"
COMMANDS = [
    "demo --folder demo",
    SELECT,
    "select searches.parquet --item query --user person --epsilon 1 --delta 1e-6 --report out.html",
    "select searches.jsonl --item query --user person --epsilon 1 --delta 1e-6",
    "keys sample:searches --item query --user person --epsilon 1 --delta 1e-6 --counts 0.5",
    "itemsets sample:receipts --basket receipt --item article --user member --epsilon 1 "
    "--delta 1e-6",
    "learn sample:members --label card --labels 0,1 --low 0 --high 100 --epsilon 1 "
    "--hypotheses stumps",
    "plan --epsilon 1 --delta 1e-6",
    "audit permute-and-flip --epsilon 1 --highest 2",
]
FILES = """
import csv, json
from importlib.resources import files
import pyarrow.csv, pyarrow.parquet
with (files("privmax") / "samples/searches.csv").open("rb") as file:
    table = pyarrow.csv.read_csv(file)
pyarrow.parquet.write_table(table, "searches.parquet")
with open("searches.jsonl", "w") as lines:
    lines.writelines(json.dumps(row) + "\\n" for row in table.to_pylist())
"""
RUN = (
    FILES
    + """
import shlex, sys
from privmax.cli import main
for command in sys.argv[1:]:
    main(shlex.split(command), standalone_mode=False)
"""
)
OUTSIDE = re.compile(
    r"(?:connect|sendto|sendmsg)\(.*(?:inet_addr\(\"(?!127\.)|inet_pton\(AF_INET6, \"(?!::1\"))"
)
"""A line of strace that names another machine. Nothing else that is sent has an address."""


@pytest.fixture
def quiet(tmp_path):
    """The environment in which Python reaches no other machine."""
    folder = tmp_path / "watch"
    folder.mkdir()
    return offline.watch(folder)


@pytest.mark.parametrize("host", ["192.0.2.1", "privmax.example", "2001:db8::1"])
def test_no_test_reaches_another_machine(host):
    with pytest.raises(offline.Connection, match=host):
        socket.create_connection((host, 80), timeout=0.01)
    with pytest.raises(offline.Connection, match=host):
        urlopen(f"http://{f'[{host}]' if ':' in host else host}/")


def test_no_test_sends_a_datagram_to_another_machine():
    datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    with datagrams, pytest.raises(offline.Connection, match="another machine"):
        datagrams.sendto(b"", ("192.0.2.1", 53))


def test_this_machine_is_reached():
    with socket.create_server(("127.0.0.1", 0)) as server:
        socket.create_connection(server.getsockname()).close()


def trace(tmp_path, program, **options):
    """Run a program, under strace where that works. Gives what it printed, and the lines of
    strace that name another machine, or None.
    """
    log = tmp_path / "strace"
    calls = "trace=connect,sendto,sendmsg"
    strace = ["strace", "-f", "--seccomp-bpf", "-qq", "-e", calls, "-o", str(log)]
    works = shutil.which("strace") and not subprocess.run([*strace, "true"], check=False).returncode
    command = [*strace, *program] if works else program
    done = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    assert done.returncode == 0, done.stderr
    if not works:
        return done.stdout, None
    lines = log.read_text(errors="replace").splitlines()
    return done.stdout, [line for line in lines if OUTSIDE.search(line)]


@pytest.mark.slow
def test_commands_reach_no_other_machine(quiet, tmp_path):
    program = [sys.executable, "-c", RUN, *COMMANDS]
    printed, outside = trace(tmp_path, program, cwd=tmp_path, env=quiet)
    for word in ("rain boots", "butter + sourdough bread", "card = 1 if", "PermuteAndFlip"):
        assert word in printed
    assert (tmp_path / "out.html").is_file()
    assert not outside


REACH = """
import ctypes, socket, struct
library = ctypes.CDLL(None)
line = library.socket(socket.AF_INET, socket.SOCK_DGRAM, 0)
address = struct.pack("=HHII8x", socket.AF_INET, socket.htons(9), int.from_bytes([{}], "little"), 0)
library.connect(line, address[:16], 16)
"""


@pytest.mark.parametrize(("host", "found"), [("127, 0, 0, 1", 0), ("192, 0, 2, 1", 1)])
def test_native_code_that_reaches_another_machine_is_seen(host, found, tmp_path):
    _, outside = trace(tmp_path, [sys.executable, "-c", REACH.format(host)])
    if outside is None:
        pytest.skip("strace does not work here")
    assert len(outside) == found


@pytest.mark.slow
def test_explore_reaches_no_other_machine(quiet, tmp_path):
    program = [sys.executable, "-m", "privmax", "explore", "--port", "0"]
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(program, cwd=tmp_path, env=quiet, **options) as server:
        try:
            [page] = re.findall(r"http://127\.0\.0\.1:\S+", server.stdout.readline())
            with build_opener(HTTPCookieProcessor()).open(page) as answer:
                assert b"<title>" in answer.read()
        finally:
            server.terminate()
        assert "another machine" not in server.stderr.read()


def test_children_are_watched(quiet):
    code = "import socket; socket.create_connection(('192.0.2.1', 80))"
    done = subprocess.run(
        [sys.executable, "-c", code], env=quiet, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "reaches for another machine: 192.0.2.1" in done.stderr
