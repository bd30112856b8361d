"""Each threat of lab/explore-threats.md, and what stops it."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, contextmanager, suppress
from html.parser import HTMLParser
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from click.testing import CliRunner
from starlette.testclient import TestClient

from privmax.cli import main
from privmax.errors import EngineError
from privmax.explore import security, state
from privmax.explore.datasets import Dataset
from privmax.explore.security import LONGEST_BODY, NOBODY, POLICY, REPORT_POLICY, TOKEN, owner
from privmax.explore.server import ROUTES, application, gate_for
from privmax.explore.state import Explorer
from privmax.explore.work import Worker
from privmax.ledger import Ledger

ROOT = Path(__file__).resolve().parents[2]
PORT = 8765  # as in conftest.py
HERE = f"http://127.0.0.1:{PORT}"
TERMS = {"epsilon": "1", "delta": "1e-6", "k": "1"}
EVIL = "<script>alert(1)</script>\"' onmouseover=x \u202eabc"
QUESTION = {"dataset": "log", "items": "drink", **TERMS}
PATIENCE = 120.0
"""Seconds after which a test gives up, however busy the machine is."""

REFUSED = (
    b"POST /ask/release HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 500\r\n"
    b"Content-Type: application/x-www-form-urlencoded\r\n\r\n"
)
"""A form that is refused before it has arrived."""

PAGES = [
    "/plan", "/plan/keys", "/try", "/try?draw=yes", "/ask", "/ask?kind=keys", "/history",
    "/handover", "/nothing/here",
]  # fmt: skip


def release(send, request="one", **changed):
    return send("/ask/release", request=request, **{**QUESTION, **changed})


def test_the_page_has_a_test_for_every_threat():
    page = (ROOT / "lab" / "explore-threats.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`(test_\w+)`", page))
    assert len(named) > 20
    here = set(re.findall(r"^def (test_\w+)", Path(__file__).read_text(), re.MULTILINE))
    assert named <= here
    assert here - named <= {"test_the_page_has_a_test_for_every_threat"}


# Other pages in the same browser


@pytest.mark.slow
@pytest.mark.parametrize(
    "origin",
    ["https://evil.example", f"http://127.0.0.1:{PORT + 1}", f"https://127.0.0.1:{PORT}", "null",
     f"http://127.0.0.1:{PORT}.evil.example", ""],
)  # fmt: skip
def test_a_form_of_another_page_is_refused(send, explorer, origin):
    answer = release(send, headers={"Origin": origin})
    assert answer.status_code == 403
    assert not explorer.ledger.spent.epsilon
    assert release(send).status_code == 303


def test_a_form_without_an_origin_is_refused(client, explorer):
    form = {TOKEN: explorer.gate.token, "request": "one", **QUESTION}
    assert client.post("/ask/release", data=form).status_code == 403
    assert not explorer.ledger.spent.epsilon


@pytest.mark.parametrize("token", [None, "", "wrong", ["", ""]])
def test_a_form_without_its_token_is_refused(send, explorer, token):
    assert release(send, **{TOKEN: token}).status_code == 403
    assert not explorer.ledger.spent.epsilon


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
@pytest.mark.parametrize("mode", ["no-cors", "cors", "navigate"])
def test_what_another_page_loads_from_here_is_refused(client, site, mode):
    about = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": mode, "Sec-Fetch-Dest": "image"}
    assert client.get("/history", headers=about).status_code == 403
    about["Sec-Fetch-Dest"] = "iframe"
    assert client.get("/history", headers=about).status_code == 403


def test_a_link_from_elsewhere_may_be_followed(client):
    about = {
        "Sec-Fetch-Site": "cross-site",
        "Sec-Fetch-Mode": "navigate",
        "Sec-Fetch-Dest": "document",
    }
    assert client.get("/plan", headers=about).status_code == 200


@pytest.mark.slow
def test_nothing_changes_by_reading(client, explorer):
    before = sum(1 for _ in explorer.ledger.history())
    for path, _, method in ROUTES:
        if method == "GET":
            client.get(path.replace("{request}", "x").replace("{file}", "registry.yaml"))
    assert sum(1 for _ in explorer.ledger.history()) == before
    assert {path for path, _, method in ROUTES if method == "POST"} == {"/ask/release"}


@pytest.mark.slow
@pytest.mark.parametrize(
    "host",
    ["evil.example", f"evil.example:{PORT}", "127.0.0.1", f"127.0.0.1:{PORT + 1}",
     f"127.0.0.1.evil.example:{PORT}", f"LOCALHOST.:{PORT}", ""],
)  # fmt: skip
def test_a_name_that_was_rebound_to_this_machine_is_refused(client, host):
    assert client.get("/plan", headers={"Host": host}).status_code == 421


def test_the_usual_names_of_this_machine_work(client):
    for name in ("127.0.0.1", "localhost", "[::1]"):
        assert client.get("/ask", headers={"Host": f"{name}:{PORT}"}).status_code == 200


def test_web_sockets_are_refused(client):
    with pytest.raises(Exception, match=r".*"), client.websocket_connect("/plan"):
        pass


@pytest.mark.parametrize("method", ["PUT", "DELETE", "OPTIONS", "PATCH", "TRACE"])
def test_other_methods_are_refused(client, method):
    assert client.request(method, "/plan").status_code == 405


# Other users of the same machine


def test_without_the_cookie_there_is_nothing_to_see(explorer):
    with TestClient(application(explorer), base_url=HERE) as stranger:
        for path, _, method in [*ROUTES, ("/assets/explore.css", None, "GET")]:
            answer = stranger.request(method, path, headers={"Origin": HERE})
            assert answer.status_code == 403, path
            assert "team" not in answer.text
        guess = {"Cookie": f"{explorer.gate.cookie}=guess"}
        assert stranger.get("/plan", headers=guess).status_code == 403


def test_the_key_of_an_earlier_start_is_refused(explorer, pool):
    other = gate_for("127.0.0.1", PORT)
    assert len({other.key, other.session, other.token, explorer.gate.key}) == 4
    with TestClient(application(explorer), base_url=HERE) as stranger:
        for key in (other.key, explorer.gate.session, explorer.gate.key[:-1], "", "ä"):
            answer = stranger.get("/", params={"key": key}, follow_redirects=False)
            assert answer.status_code == 403
            assert "set-cookie" not in answer.headers


def test_the_cookie_is_kept_from_scripts_and_other_sites(client, explorer):
    opened = client.get(f"/?key={explorer.gate.key}&epsilon=2", follow_redirects=False)
    cookie = opened.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert opened.headers["location"] == "/?epsilon=2"
    assert explorer.gate.key not in cookie


def test_the_secrets_stand_nowhere_else(client, explorer):
    gate = explorer.gate
    for page in PAGES:
        found = client.get(page).text
        assert gate.key not in found
        assert gate.session not in found
    for secret in (gate.key, gate.session, gate.token):
        assert secret not in repr(gate)


TABLE = """  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrns uid time inode
   0: 0100007F:223D 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 11 1
   1: 0100007F:9C40 0100007F:223D 01 00000000:00000000 00:00000000 00000000  1000        0 12 1
   2: 0100007F:9C41 0200007F:223D 01 00000000:00000000 00:00000000 00000000  1000        0 16 1
   3: 0100007F:9C41 0100007F:223D 01 00000000:00000000 00:00000000 00000000  1001        0 13 1
   4: 0200007F:9C41 0100007F:223D 01 00000000:00000000 00:00000000 00000000  1000        0 17 1
   5: 0100007F:9C42 0100007F:223D 06 00000000:00000000 00:00000000 00000000     0        0 0 1
   6: 0501A8C0:9C40 0100007F:223D 01 00000000:00000000 00:00000000 00000000  1001        0 14 1
"""


def test_linux_tells_whose_connection_it_is(tmp_path):
    (tmp_path / "tcp").write_text(TABLE)
    (tmp_path / "tcp6").write_text(TABLE.splitlines()[0] + "\n")
    here = "127.0.0.1", 0x223D
    for port, uid in ((40000, 1000), (40001, 1001), (40002, NOBODY), (40003, NOBODY)):
        assert owner(("127.0.0.1", port), here, tmp_path) == uid
    assert owner(("127.0.0.1", 40000), ("127.0.0.1", 80), tmp_path) == NOBODY
    assert owner(("127.0.0.1", 40000), here, tmp_path / "none") is None
    assert security._spellings("::1", 80) == ["00000000000000000000000001000000:0050"]


def test_a_port_that_is_used_with_another_address_does_not_help(tmp_path):
    """Both users have a connection from port 40001, and to port 8765, in either order."""
    here = "127.0.0.1", 0x223D
    lines = TABLE.splitlines()
    for order in (lines[1:], lines[:0:-1]):
        (tmp_path / "tcp").write_text("\n".join([lines[0], *order]))
        assert owner(("127.0.0.1", 40001), here, tmp_path) == 1001
        assert owner(("127.0.0.2", 40001), here, tmp_path) == 1000
        assert owner(("127.0.0.1", 40001), ("127.0.0.2", 0x223D), tmp_path) == 1000


def test_another_user_is_known_whatever_address_is_used(tmp_path, monkeypatch):
    (tmp_path / "tcp").write_text(TABLE)
    read = owner
    monkeypatch.setattr(security, "owner", lambda *ends: read(*ends, tmp_path))
    monkeypatch.setattr(os, "getuid", lambda: 1000)
    here = "127.0.0.1", 0x223D
    assert security.is_own_user(("127.0.0.1", 40000), here)
    assert not security.is_own_user(("192.168.1.5", 40000), here)  # of this machine, to loopback
    assert not security.is_own_user(("192.168.1.6", 40000), here)  # of none that is listed
    assert not security.is_own_user(None, here)


@contextmanager
def started(folder, *words, first=""):
    """A real server, after some lines of Python; gives its port and key."""
    code = f"{first}\nfrom privmax.cli import main\nmain(prog_name='privmax')"
    program = [sys.executable, "-c", code, "explore", *(words or ("--port", "0"))]
    with subprocess.Popen(program, stdout=subprocess.PIPE, text=True, cwd=folder) as server:
        found = re.search(r":(\d+)/\?key=(\S+)", server.stdout.readline())
        try:
            yield int(found[1]), found[2]
        finally:
            server.terminate()


@pytest.fixture
def address(tmp_path):
    with started(tmp_path) as found:
        yield found


FETCH = """
import os, socket, sys
port, key, uid, source, path = sys.argv[1:]
"localhost".encode("idna")  # loaded now: another user may not read where Python is
if uid != "-": os.setuid(int(uid))
if path:
    line = socket.socket(socket.AF_UNIX)
    line.connect(path)
else:
    line = socket.create_connection(("127.0.0.1", int(port)), source_address=(source, 0))
line.sendall(f"GET /?key={key} HTTP/1.1\\r\\nHost: 127.0.0.1:{port}\\r\\n\\r\\n".encode())
print(line.recv(4000).decode())
"""


@pytest.mark.slow
@pytest.mark.skipif(
    not sys.platform.startswith("linux") or os.getuid() != 0, reason="needs a second user"
)
@pytest.mark.parametrize("source", ["127.0.0.1", "127.0.0.2", "LAN"])
def test_another_user_is_refused_even_with_the_address(address, source):
    if source == "LAN":
        source = own_address()
    assert "303 See Other" in fetch(*address, "-", source).stdout
    refused = fetch(*address, "65534", source).stdout
    assert "403 Forbidden" in refused
    assert "set-cookie" not in refused


def fetch(port, key, uid, source="127.0.0.1", path=""):
    """What a process of a user gets who knows the key."""
    ask = [sys.executable, "-c", FETCH, str(port), key, uid, source, path]
    return subprocess.run(ask, capture_output=True, text=True, check=False, cwd="/")


def own_address():
    """An address of this machine that is not loopback."""
    table = Path("/proc/net/fib_trie").read_text(encoding="ascii")
    found = re.findall(r"\|-- (\S+)\n\s+/32 host LOCAL", table)
    others = [one for one in found if not security.is_loopback(one)]
    if not others:
        pytest.skip("this machine has no other address")
    return others[0]


@pytest.mark.slow
@pytest.mark.skipif(
    not sys.platform.startswith("linux") or os.getuid() != 0, reason="needs a second user"
)
def test_a_socket_is_for_its_user_alone(tmp_path):
    with TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        path = f"{folder}/own/explore.sock"
        with started(tmp_path, "--socket", path) as (port, key):
            assert port == PORT
            assert "303 See Other" in fetch(port, key, "-", path=path).stdout
            other = fetch(port, key, "65534", path=path)
            assert other.returncode
            assert "PermissionError" in other.stderr
            Path(path).parent.chmod(0o755)  # its own mode keeps others out, too
            assert "PermissionError" in fetch(port, key, "65534", path=path).stderr
        assert not Path(path).exists()


@pytest.mark.slow
def test_nobody_else_can_listen_on_the_same_port(address):
    port, _ = address
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if hasattr(socket, "SO_REUSEPORT"):
            other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        with pytest.raises(OSError, match="in use"):
            other.bind(("127.0.0.1", port))


# The network


def test_beyond_this_machine_only_with_a_reason():
    for host in ("0.0.0.0", "192.168.1.5", "::", "example.org"):
        answer = CliRunner().invoke(main, ["explore", "--host", host])
        assert answer.exit_code == 2
        assert "--reason" in answer.output
    assert gate_for("127.0.0.1", 1).own_user
    assert not gate_for("10.0.0.7", 1).own_user
    assert gate_for("10.0.0.7", 1).hosts == {"10.0.0.7:1"}


def test_pages_say_that_others_can_reach_them(explorer):
    explorer.reason = "<b>workshop</b>"
    with TestClient(application(explorer), base_url=HERE) as found:
        page = found.get(f"/?key={explorer.gate.key}").text
    assert "can be reached from other machines" in page
    assert "&lt;b&gt;workshop" in page


# What a page may do


class Inline(HTMLParser):
    """Everything of a page that would run, style or load from within or from elsewhere."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self._is_open: str | None = None

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        if tag == "style" or (tag == "script" and "src" not in given):
            self.found.append(tag)
        for name, value in attributes:
            if name.startswith("on") or name in ("style", "srcdoc", "hx-on", "hx-vals"):
                self.found.append(f"{tag} {name}")
            if name in ("src", "href", "action", "hx-get") and not re.match(r"[/#]|data:,$", value):
                self.found.append(f"{tag} {name}={value}")


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_pages_hold_no_script_and_load_nothing_from_elsewhere(client, send, page):
    release(send)
    answer = client.get(page)
    assert answer.headers["content-security-policy"] == POLICY
    inline = Inline()
    inline.feed(answer.text)
    assert not inline.found
    assert "unsafe" not in POLICY
    assert "default-src 'none'" in POLICY


@pytest.mark.slow
def test_every_answer_has_the_headers(client, send, explorer):
    release(send)
    answers = [client.get(page) for page in [*PAGES, "/answer?request=one", "/assets/explore.js"]]
    answers.append(client.get("/plan", headers={"Host": "evil"}))
    for answer in answers:
        for name, value in security.HEADERS.items():
            assert answer.headers[name] == value
        assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
    assert (
        client.get("/answer/report?request=one").headers["content-security-policy"] == REPORT_POLICY
    )


@pytest.mark.slow
def test_a_hostile_label_is_text_everywhere(explorer, tmp_path, send, client):
    file = tmp_path / "evil.csv"
    lines = "\n".join(f"{person},{quoted(EVIL)}" for person in range(300))
    file.write_text(f"person,drink\n{lines}\n", encoding="utf-8")
    given = {"file": str(file), "columns": ["drink"], "user": "person"}
    explorer.datasets["log"] = Dataset.of("log", given)
    assert release(send).status_code == 303
    for page in (
        "/answer?request=one",
        "/history",
        "/answer/report?request=one",
        "/handover?request=one",
    ):
        found = client.get(page)
        assert found.status_code == 200
        assert "<script>alert" not in found.text
        assert not re.search(r"<[^>]*\sonmouseover=", found.text)
    assert "&lt;script&gt;alert(1)" in client.get("/answer?request=one").text
    assert "\u202e" not in client.get("/answer?request=one").text
    saved = client.get("/answer/release.json?request=one")
    assert saved.headers["content-disposition"].startswith("attachment")


def quoted(label: str) -> str:
    return '"' + label.replace('"', '""') + '"'


@pytest.mark.slow
@pytest.mark.parametrize(
    "field", ["epsilon", "k", "universe", "where", "dataset", "items", "counts"]
)
def test_a_hostile_field_is_text_in_the_error(client, field):
    for page in ("/ask/preview", "/ask", "/plan", "/try"):
        given = {**QUESTION, "draw": "yes", field: EVIL}
        answer = client.get(page, params=given)
        assert answer.status_code in (200, 422), page
        assert "<script>alert" not in answer.text
        inline = Inline()
        inline.feed(answer.text)
        assert not inline.found


def test_a_hostile_request_id_is_text(client, send):
    assert "<script>alert" not in client.get("/answer", params={"request": EVIL}).text
    assert "<script>alert" not in client.get("/handover", params={"request": EVIL}).text
    assert release(send, request=EVIL.replace("\u202e", "")).status_code == 303
    assert "<script>alert" not in client.get("/history").text
    given = {"request": EVIL.replace("\u202e", "")}
    assert "tea" in client.get("/answer", params=given).text
    name = client.get("/answer/release.json", params=given).headers
    assert re.fullmatch(r'attachment; filename="[\w.-]+"', name["content-disposition"])


def test_files_outside_the_assets_are_not_served(client):
    for path in ("/assets/../security.py", "/assets/%2e%2e/security.py", "/assets/__init__.py"):
        assert client.get(path).status_code == 404


# Too much


def test_a_form_that_is_too_long_is_refused(send, explorer):
    assert release(send, where="x" * LONGEST_BODY).status_code == 413
    assert not explorer.ledger.spent.epsilon


def test_what_is_no_form_is_refused(client, explorer):
    head = {"Origin": HERE, "Content-Type": "multipart/form-data; boundary=x"}
    assert client.post("/ask/release", content=b"--x--", headers=head).status_code == 415
    head["Content-Type"] = "application/x-www-form-urlencoded"
    for body in (b"\xff\xfe=1", b"&".join([b"a=1"] * 300), b"no-sign"):
        assert client.post("/ask/release", content=body, headers=head).status_code == 400


def test_an_address_that_is_too_long_is_refused(client):
    assert client.get("/plan", params={"epsilon": "1" * 9000}).status_code == 414


@pytest.mark.slow
def test_half_sent_requests_do_not_keep_others_out(address):
    port, key = address
    half = f"GET /plan HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n".encode()
    with ExitStack() as stack:
        for _ in range(300):
            line = stack.enter_context(socket.create_connection(("127.0.0.1", port)))
            line.sendall(half)
        assert "303 See Other" in fetch(port, key, "-").stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    "part", [b"", b"GET /plan HTTP/1.1\r\nHost: ", REFUSED, REFUSED + b"token="]
)
def test_a_request_that_never_arrives_does_not_keep_its_place(tmp_path, part):
    """Also where bytes trickle in, and where the rest of what was refused never comes."""
    shorter = "from privmax.explore import connections as c; c.REQUEST_SECONDS = 0.5"
    with started(tmp_path, first=shorter) as (port, _), \
            socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as line:  # fmt: skip
        line.sendall(part)
        with suppress(ConnectionError):  # or it is closed in order
            if part:
                line.settimeout(0.05)
                deadline = time.monotonic() + PATIENCE
                while time.monotonic() < deadline:
                    line.sendall(b"a")
                    with suppress(TimeoutError):
                        if not line.recv(4000):
                            return
                pytest.fail("it is still open")
            assert not line.recv(4000)


@pytest.mark.slow
def test_a_form_that_never_arrives_does_not_keep_its_place(tmp_path):
    shorter = "from privmax.explore import security; security.BODY_SECONDS = 0.5"
    with started(tmp_path, first=shorter) as (port, key), \
            socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as line:  # fmt: skip
        line.sendall(f"GET /?key={key} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())
        cookie = re.search(rb"set-cookie: ([^;]*)", line.recv(4000))[1].decode()
        line.sendall(
            f"POST /ask/release HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nCookie: {cookie}\r\n"
            f"Origin: http://127.0.0.1:{port}\r\nContent-Length: 500\r\n"
            "Content-Type: application/x-www-form-urlencoded\r\n\r\ntoken=".encode()
        )
        assert b"408" in line.recv(4000)


class Limit(float):
    """Seconds that are over when a test says so, however fast the machine is."""

    def __init__(self) -> None:
        self.is_over, self.asked = False, threading.Event()

    def __lt__(self, passed: float) -> bool:
        self.asked.set()
        return self.is_over


@pytest.mark.slow
def test_a_plan_that_takes_long_is_stopped_and_holds_nobody_up(client, monkeypatch):
    limit = Limit()
    monkeypatch.setattr(state.Explorer.compute, "__kwdefaults__", {"key": None, "seconds": limit})
    slow = {"epsilon": "0.03", "delta": "1e-6"}  # minutes
    found = []
    thread = threading.Thread(
        target=lambda: found.append(client.get("/plan/slow", params=slow).text)
    )
    thread.start()
    while not limit.asked.wait(1):  # it computes
        assert thread.is_alive()
    assert client.get("/ask").status_code == 200
    assert thread.is_alive()  # who asked was not held up
    limit.is_over = True
    thread.join()
    assert "are not shown" in found[0]
    limit.is_over = False
    assert client.get("/plan").status_code == 200  # the worker that was stopped is replaced


def test_no_field_takes_long_to_read(client, explorer):
    start = time.process_time()  # of this process: it does not grow on a busy machine
    for scores in ("," * 1900, "a " * 950, "9" * 1900, "a" + " " * 1900 + "x"):
        assert "must be" in client.get("/try", params={"draw": "yes", "scores": scores}).text
    for field in ("epsilon", "delta", "universe", "where", "counts", "k"):
        for value in ("1e999999999", "9" * 1900, "(" * 1900, "not " * 470):
            client.get("/ask/preview", params={**QUESTION, field: value, "request": "one"})
            keys = {**QUESTION, "kind": "keys", "per_user": value, field: value, "request": "one"}
            refused = client.get("/ask/preview", params=keys).status_code
            assert refused in (414, 422)  # the address may be too long
    long = {**QUESTION, "k": "1000", "ranked": "yes", "request": "one"}
    assert client.get("/ask/preview", params=long).status_code == 422
    assert time.process_time() - start < 60


@pytest.mark.slow
@pytest.mark.parametrize(
    "given",
    [{"k": "1001"}, {"k": "-1"}, {"universe": "1" * 400}, {"near": "x"}, {"epsilon": "1e-9"},
     {"epsilon": "nan"}, {"delta": "2"}, {"epsilon": "9" * 300}, {"growth": "0"}, {"success": "1"}],
)  # fmt: skip
def test_numbers_out_of_bounds_are_answered_with_words(client, given):
    answer = client.get("/plan", params=given)
    assert answer.status_code == 200
    assert 'class="notice error" role="alert"' in answer.text


# What is private


@pytest.mark.slow
def test_nothing_is_read_before_it_is_paid_for(client, send, explorer, data, monkeypatch):
    opened = []
    monkeypatch.setattr(
        "privmax.explore.datasets.open_data",
        lambda *given: opened.append(explorer.ledger.spent.epsilon) or str(data),
    )
    for page in [*PAGES, "/ask?dataset=log"]:
        client.get(page)
    client.get("/ask/preview", params={**QUESTION, "request": "one"})
    assert not opened
    assert release(send).status_code == 303
    assert opened == [1]  # charged before it was opened
    client.get("/answer?request=one")
    assert opened == [1]


def test_previews_are_the_same_whatever_the_data(client, data):
    given = {**QUESTION, "request": "one"}
    before = client.get("/ask/preview", params=given).text
    form = client.get("/ask?dataset=log").text
    data.write_text("person,drink\n1,gin\n")
    assert client.get("/ask/preview", params=given).text == before
    data.unlink()
    assert client.get("/ask/preview", params=given).text == before
    hide = re.compile(r"explore-\d+-\w+")
    assert hide.sub("", client.get("/ask?dataset=log").text) == hide.sub("", form)


def test_bad_data_is_no_answer_and_does_not_say_why(client, send, data, explorer):
    data.write_text("person,other\n1,gin\n")
    assert release(send).status_code == 303
    page = client.get("/answer?request=one").text
    assert "No answer" in page
    assert "other" not in page.replace("another", "")
    assert explorer.ledger.spent.epsilon == 1


def test_a_ledger_that_is_not_strict_must_be_allowed(tmp_path, explorer, pool, data):
    with Ledger.create(tmp_path / "loose.db", epsilon=5, delta="1e-4") as ledger:
        loose = Explorer(explorer.gate, pool, ledger, explorer.datasets)
        with TestClient(application(loose), base_url=HERE) as found:
            found.get(f"/?key={loose.gate.key}")
            form = {TOKEN: loose.gate.token, "request": "one", **QUESTION}
            assert "is not strict" in found.get("/ask").text
            answer = found.post("/ask/release", data=form, headers={"Origin": HERE})
            assert answer.status_code == 409
            assert not ledger.spent.epsilon
            loose.lenient = True
            data.unlink()
            answer = found.post("/ask/release", data=form, headers={"Origin": HERE})
            assert answer.status_code == 422
            assert str(tmp_path) not in answer.text
            assert not ledger.spent.epsilon


def test_columns_that_are_not_allowed_are_refused(client, send, explorer):
    for changed in ({"items": "person"}, {"where": "person = '1'"}, {"dataset": "other"},
                    {"items": "country"}):  # fmt: skip
        assert release(send, **changed).status_code == 422
    assert release(send, where="country = 'DE'").status_code == 303
    assert explorer.ledger.spent.epsilon == 1


@pytest.mark.slow
def test_no_page_shows_a_path_of_this_machine(client, send, explorer, tmp_path):
    release(send)
    release(send, request="two", epsilon="100")
    pages = [
        client.get(page).text
        for page in [*PAGES, "/answer?request=one", "/answer/report?request=one"]
    ]
    pages.append(client.get("/handover/registry.yaml").text)
    for page in pages:
        assert str(tmp_path) not in page
        assert "private-log" not in page
        assert str(Path.home()) + "/" not in page
    words = explorer.describe(EngineError(f"It failed at {tmp_path}/private-log.csv and /etc/x/y."))
    assert "private-log" not in words
    assert "/etc" not in words


def test_an_error_nobody_expected_says_nothing(client, explorer, monkeypatch, capsys):
    def fail(*given):
        raise ValueError("insulin 17")

    monkeypatch.setattr("privmax.explore.ask_page._balance", fail)
    answer = client.get("/ask")
    assert answer.status_code == 500
    told = capsys.readouterr()
    assert "insulin" not in answer.text + told.err + told.out
    assert "ValueError at" in told.err


def test_the_password_of_the_ledger_stays_in_the_process(monkeypatch, explorer):
    secret = "postgres://ada:hunter2@db/budget"
    monkeypatch.setenv("PRIVMAX_LEDGER", secret)
    worker = Worker()
    try:
        if Path("/proc").exists():
            held = Path(f"/proc/{worker._process.pid}/environ").read_bytes()
            assert b"hunter2" not in held
    finally:
        worker.stop()
    assert "hunter2" not in explorer.describe(EngineError(f"No server at {secret} answered."))
    given = {"file": secret, "table": "log", "columns": ["drink"], "user": "person"}
    made = Dataset.of("log", given)
    assert "hunter2" not in repr(made)
    explorer.datasets["log"] = made
    assert "hunter2" not in repr(explorer.datasets)
