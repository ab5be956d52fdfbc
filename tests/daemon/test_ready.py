"""Readiness of real processes: by output, port, HTTP and uptime, over crashes and against strangers."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from holdfast import aconnect
from holdfast.client.process import Process
from holdfast.client.sync import Client
from holdfast.errors import BadValue, HoldfastError, NotNow
from tests.daemon.acting import ask, kill_daemon, kill_keeper, log_text
from tests.support import eventually, free_port

#: Listens on a port after a while, in a grandchild that left its session.
LATE = """
import os, socket, sys, time
if os.fork() == 0:
    os.setsid()
    time.sleep(0.3)
    server = socket.create_server(("127.0.0.1", int(sys.argv[1])))
    open(sys.argv[2], "w").write(repr(time.time()))
    time.sleep(60)
time.sleep(60)
"""

#: Answers with the status that a file holds, 503 while there is none.
STATUS = """
import http.server, os, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        found = os.path.exists(sys.argv[2])
        self.send_response(int(open(sys.argv[2]).read()) if found else 503)
        self.end_headers()
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""


@pytest.fixture
def port() -> int:
    """One that nobody listens on."""
    return free_port()


@contextmanager
def stranger(port: int) -> Iterator[int]:
    """A server on the port that is none of ours: its pid."""
    call = [sys.executable, "-m", "http.server", str(port), "--bind", "127.0.0.1"]
    with subprocess.Popen(call, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        eventually(lambda: _answers(port))
        yield process.pid
        process.kill()


def _answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


def ready(hf: Client, process: Process, timeout: float = 20.0) -> Process:
    return hf.wait(process.id, until="ready", timeout=timeout)


def test_a_real_server_by_its_port(hf: Client, port: int) -> None:
    process = hf.run([sys.executable, "-m", "http.server", str(port), "--bind", "127.0.0.1"], ready_port=port)
    assert process.ready is None
    assert ready(hf, process).ready is True
    assert _answers(port)
    (killed,) = hf.kill(process.id)
    assert killed.status == "ended"
    over = hf.inspect(process.id)
    assert over.ready is False
    assert over.ready_at is not None


def test_a_real_server_by_its_answer(hf: Client, port: int) -> None:
    process = hf.run([sys.executable, "-m", "http.server", str(port)], ready_http=f"http://localhost:{port}/")
    found = ready(hf, process)
    assert (found.ready, found.ready_trouble) == (True, None)


def test_a_grandchild_that_listens_late_is_seen_at_once(hf: Client, port: int, tmp_path: Path) -> None:
    process = hf.run([sys.executable, "-c", LATE, str(port), str(tmp_path / "since")], ready_port=port)
    found = ready(hf, process)
    eventually(lambda: (tmp_path / "since").exists() and (tmp_path / "since").read_text())
    since = float((tmp_path / "since").read_text())
    assert found.ready_at is not None
    assert found.ready_at - since < 2.0, "50 ms on a machine that has nothing else to do"


def test_a_stranger_on_the_port_does_not_make_it_ready(hf: Client, port: int) -> None:
    with stranger(port) as pid:
        for sign in ({"ready_port": port}, {"ready_http": f"http://127.0.0.1:{port}/"}):
            process = hf.run("sleep 60", **sign)
            text = f"port {port} is held by pid {pid} of another program"
            eventually(lambda id=process.id, text=text: hf.inspect(id).ready_trouble == text)  # type: ignore[misc]
            assert ready(hf, process, timeout=0.2).ready is None


def test_it_is_ready_once_the_stranger_has_left(hf: Client, port: int) -> None:
    serve = f"{sys.executable} -m http.server {port} --bind 127.0.0.1"
    with stranger(port):
        process = hf.run(f"until {serve}; do sleep 0.1; done", ready_port=port)
        eventually(lambda: hf.inspect(process.id).ready_trouble)
    found = ready(hf, process)
    assert (found.ready, found.ready_trouble) == (True, None)


def test_only_a_good_answer_counts(hf: Client, port: int, tmp_path: Path) -> None:
    path = tmp_path / "status"
    process = hf.run([sys.executable, "-c", STATUS, str(port), str(path)], ready_http=f"http://127.0.0.1:{port}/x?y=1")
    eventually(lambda: hf.inspect(process.id).ready_trouble == "answered 503")
    path.write_text("302")
    assert ready(hf, process).ready is True


def test_what_does_not_speak_http_is_not_ready(hf: Client, port: int) -> None:
    echo = (
        f"import socket; s = socket.create_server(('127.0.0.1', {port}))\nwhile 1: s.accept()[0].sendall(b'x\\n' * 9)"
    )
    process = hf.run([sys.executable, "-c", echo], ready_http=f"http://127.0.0.1:{port}")
    eventually(lambda: "HTTP" in (hf.inspect(process.id).ready_trouble or ""))


def test_a_pattern_that_comes_in_pieces(hf: Client) -> None:
    write = "; sleep 0.05; ".join(
        f"printf '{piece}'" for piece in ["\\033[1mlist", "en", "\\033[0ming on ", "80", "80\\n"]
    )
    process = hf.run(f"{write}; sleep 60", ready_log="^listening on 8080$")
    assert ready(hf, process).ready is True


def test_a_pattern_on_stderr_kept_apart_and_on_a_terminal(hf: Client) -> None:
    apart = hf.run("echo ready >&2; sleep 60", split=True, ready_log="^ready$")
    terminal = hf.run("echo ready; sleep 60", pty=True, ready_log="^ready$")
    assert [process.ready for process in hf.wait([apart, terminal], until="ready", timeout=20)] == [True, True]


def test_a_pattern_behind_megabytes(hf: Client) -> None:
    process = hf.run("seq 1 1000000; echo; echo ready; sleep 60", ready_log="^ready")
    assert ready(hf, process).ready is True


def test_a_long_search_goes_on_where_it_stood(hf: Client, tmp_path: Path) -> None:
    noise = "yes 'nothing to be seen here' | head -c 30000000"
    process = hf.run(
        f"{noise}; until [ -e {tmp_path}/go ]; do sleep 0.01; done; echo ready; sleep 60", ready_log="^ready"
    )
    eventually(lambda: _searched(hf, process) > 16_000_000)
    kill_daemon(hf)
    assert _searched(hf, process) > 16_000_000
    (tmp_path / "go").touch()
    assert ready(hf, process).ready is True


def _searched(hf: Client, process: Process) -> int:
    """How far the row says that the output was searched."""
    with closing(sqlite3.connect(f"file:{hf.paths.store}?mode=ro", uri=True)) as store:
        (marks,) = store.execute("SELECT marks FROM processes WHERE id = ?", (process.id,)).fetchone() or ("{}",)
    return int(((json.loads(marks).get("readiness") or {}).get("searched") or {}).get("out", 0))


def test_the_async_client_waits_as_well(hf: Client) -> None:
    async def wait() -> Process:
        async with await aconnect("tests") as other:
            return await other.wait((await other.run("sleep 60", ready_uptime=0)).id, until="ready", timeout=20)

    assert asyncio.run(wait()).ready is True


def test_uptime(hf: Client) -> None:
    process = hf.run("sleep 60", ready_uptime=0.3)
    found = ready(hf, process)
    assert found.ready_at is not None and found.started_at is not None
    assert 0.3 <= found.ready_at - found.started_at < 20
    assert ready(hf, hf.run("sleep 60", ready_uptime=0)).ready is True


def test_a_wait_returns_at_once_with_an_end(hf: Client, port: int) -> None:
    for sign in ({"ready_port": port}, {"ready_log": "never"}, {"ready_uptime": 60.0}):
        process = hf.run("sleep 0.2; exit 4", **sign)
        began = time.monotonic()
        found = ready(hf, process)
        assert (found.ready, found.status, found.exit_code) == (False, "ended", 4)
        assert time.monotonic() - began < 30


def test_too_late_is_said_and_ends_nothing(hf: Client, port: int, home: Path) -> None:
    process = hf.run("sleep 60", ready_port=port, ready_timeout=0.3)
    found = ready(hf, process)
    assert (found.ready, found.status) == (False, "running")
    assert found.ready_trouble == f"not ready within 0.3 s: nothing of it listens on port {port}"
    eventually(lambda: f"not-ready process={process.id}" in log_text(home))
    kill_daemon(hf)
    assert hf.inspect(process.id).ready is False


def test_a_wait_that_runs_out(hf: Client) -> None:
    waited = hf.wait_for([hf.run("sleep 60", ready_log="never").id], until="ready", timeout=0.2)
    assert (waited.timed_out, waited.done, waited.processes[0].ready) == (True, [], None)


def test_any_and_all(hf: Client) -> None:
    slow, quick = hf.run("sleep 60", ready_log="never"), hf.run("sleep 60", ready_uptime=0)
    waited = hf.wait_for([slow, quick], until="ready", any=True, timeout=20)
    assert (waited.timed_out, waited.done) == (False, [quick.id])
    assert hf.wait_for([slow, quick], until="ready", timeout=0.2).done == [quick.id]


def test_what_has_nothing_to_be_ready_by_is_not_waited_for(hf: Client) -> None:
    with pytest.raises(NotNow, match="nothing to be ready by"):
        ready(hf, hf.run("sleep 60"))


def test_probing_goes_on_over_a_crash_of_the_daemon(hf: Client, port: int, tmp_path: Path) -> None:
    by_log = hf.run(f"until [ -e {tmp_path}/go ]; do sleep 0.01; done; echo ready; sleep 60", ready_log="^ready$")
    serve = f"exec {sys.executable} -m http.server {port} --bind 127.0.0.1"
    by_port = hf.run(f"until [ -e {tmp_path}/go ]; do sleep 0.01; done; {serve}", ready_port=port)
    pid = hf.status()["pid"]
    os.kill(pid, signal.SIGSTOP)  # a stopped one is not revived: it is dead to the world for as long as we like
    (tmp_path / "go").touch()
    eventually(lambda: _answers(port))
    os.kill(pid, signal.SIGKILL)
    assert [process.ready for process in hf.wait([by_log, by_port], until="ready", timeout=20)] == [True, True]


def test_who_waits_does_not_notice_a_crash(hf: Client, tmp_path: Path) -> None:
    process = hf.run(f"until [ -e {tmp_path}/go ]; do sleep 0.01; done; echo ready; sleep 60", ready_log="^ready$")
    found: list[Process] = []
    waiting = threading.Thread(target=lambda: found.append(ready(hf, process)))
    waiting.start()
    kill_daemon(hf)
    kill_keeper(hf, "keeper")
    (tmp_path / "go").touch()
    waiting.join(20)
    assert found[0].ready is True


def test_what_was_ready_stays_so_over_a_crash(hf: Client) -> None:
    before = ready(hf, hf.run("echo ready; sleep 60", ready_log="^ready$"))
    kill_daemon(hf)
    after = hf.inspect(before.id)
    assert (after.ready, after.ready_at) == (True, before.ready_at)


@pytest.mark.parametrize(
    "signs",
    [
        {"ready_log": "("},
        {"ready_log": r"(a)\1"},
        {"ready_log": ""},
        {"ready_log": "x" * 5000},
        {"ready_log": 5},
        {"ready_port": 0},
        {"ready_port": 65536},
        {"ready_port": "80"},
        {"ready_port": True},
        {"ready_http": "ftp://localhost/"},
        {"ready_http": "localhost:80"},
        {"ready_http": "http://"},
        {"ready_http": "http://x:99999/"},
        {"ready_http": "http://u:p@localhost/"},
        {"ready_http": "http://localhost/\r\nX: y"},
        {"ready_http": "http://[::1/"},
        {"ready_uptime": -1},
        {"ready_uptime": float("inf")},
        {"ready_timeout": 5},
        {"ready_log": "x", "ready_timeout": 0},
        {"ready_log": "x", "ready_port": 80},
        {"stall": 0},
        {"stall": 0.001},
        {"stall": "5"},
    ],
)
def test_signs_that_cannot_be_meant(instance_of_all: Client, signs: dict[str, object]) -> None:
    with pytest.raises(BadValue):
        ask(instance_of_all, "start", id="proc_0123456789ab", command="true", cwd="/", **signs)
    with pytest.raises(HoldfastError):
        instance_of_all.inspect("proc_0123456789ab")


@pytest.fixture(scope="module")
def instance_of_all(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """An instance for all that only needs one to refuse things."""
    from tests.support import end_instance

    home = tmp_path_factory.mktemp("instance") / "home"
    with Client("tests", home=home) as client:
        yield client
    end_instance(str(home))
