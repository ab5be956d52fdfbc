"""A daemon that was stopped on purpose: clients that only wait do not start it again, new requests do."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast.client.link import Link
from holdfast.errors import Unreachable
from tests.support import daemons_below, eventually, never, run_cli
from tests.tools.model import Model


@contextmanager
def background(*arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """`holdfast ARGUMENTS…`, which runs until the test ends it."""
    command = [sys.executable, "-m", "holdfast", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0) as process:
        try:
            yield process
        finally:
            process.kill()


def _stop(home: Path) -> None:
    assert run_cli("daemon", "stop").returncode == 0
    assert not _daemons(home)


def _daemons(home: Path) -> list[str]:
    """Those that are being started, which have no title yet, and those that run."""
    marks = ("holdfast.daemon", "holdfast: daemon")
    return [arguments for arguments in daemons_below(str(home)).values() if any(mark in arguments for mark in marks)]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The operations that clients in this program have sent requests for."""
    sent: list[str] = []
    ask = Link.ask

    def recorded(link: Link, op: str, arguments: dict[str, Any]) -> int:
        number = ask(link, op, arguments)
        sent.append(op)
        return number

    monkeypatch.setattr(Link, "ask", recorded)
    return sent


def _publish_until_seen(follower: subprocess.Popen[bytes]) -> None:
    """Publish until the follower, whose first question takes a while, shows an event."""
    assert follower.stdout is not None
    os.set_blocking(follower.stdout.fileno(), False)

    def is_seen() -> bool:
        assert follower.stdout is not None
        run_cli("publish", "test.event")
        return b"test.event" in (follower.stdout.read() or b"")

    eventually(is_seen, timeout=30)


def test_events_that_are_followed_do_not_start_it_and_go_on_after_its_next_start(home: Path) -> None:
    with background("events", "test.*", "-f") as follower:
        _publish_until_seen(follower)
        _stop(home)
        never(lambda: _daemons(home), within=1.5)
        _publish_until_seen(follower)


def test_an_idle_tools_host_does_not_start_it_and_its_next_call_does(home: Path, tmp_path: Path) -> None:
    with Model("idle", str(tmp_path)) as model:
        process_id = model.background("sleep 300")
        model.process("wait", process_id, timeout=0.1)  # from now on it listens to interrupts
        _stop(home)
        never(lambda: _daemons(home), within=1.5)
        assert model.process("kill", process_id)["status"] == "ended"


@pytest.mark.parametrize("words", ["ps --watch", "ps --watch --json", "top --json --interval 0.2"])
def test_a_list_that_is_updated_does_not_start_it_and_goes_on_after_its_next_start(home: Path, words: str) -> None:
    assert run_cli("run", "-d", "--name", "before", "--lifetime", "detached", "sleep", "300").returncode == 0
    with background(*words.split()) as updated:
        _wait_for(updated, b"before")
        _stop(home)
        never(lambda: _daemons(home), within=2.5)
        assert run_cli("run", "-d", "--name", "afterwards", "sleep", "300").returncode == 0
        _wait_for(updated, b"afterwards")


def _wait_for(program: subprocess.Popen[bytes], text: bytes) -> None:
    assert program.stdout is not None
    output = program.stdout
    os.set_blocking(output.fileno(), False)
    eventually(lambda: text in (output.read() or b""), timeout=30)


def test_a_tool_call_under_way_does_not_start_it_and_goes_on_after_its_next_start(home: Path, tmp_path: Path) -> None:
    go = tmp_path / "go"
    with Model("busy", str(tmp_path)) as model, ThreadPoolExecutor(1) as threads:
        answer = threads.submit(model.terminal, f"until [ -e '{go}' ]; do sleep 0.05; done; echo over", timeout=60)
        with holdfast.connect() as hf:
            eventually(lambda: hf.ps(session="busy"))
        never(answer.done, within=1.2)
        _stop(home)
        never(lambda: _daemons(home), within=1.5)
        go.touch()
        assert run_cli("daemon", "start").returncode == 0
        assert answer.result(30)["output"] == "over\n"


def test_a_crashed_daemon_is_started_again_by_a_follower_alone(home: Path) -> None:
    with background("events", "test.*", "-f") as follower:
        _publish_until_seen(follower)
        with holdfast.connect() as hf:
            status = hf.status()
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for role in ("pid", "keeper_pid", "anchor_pid"):
                os.kill(status[role], number)
        eventually(lambda: _daemons(home), timeout=20)
        _publish_until_seen(follower)


def test_requests_that_wait_do_not_start_it_and_go_on_after_its_next_start(
    home: Path, tmp_path: Path, asked: list[str]
) -> None:
    go = tmp_path / "go"
    with holdfast.connect("waiting") as hf, ThreadPoolExecutor(4) as threads:
        command = f"until [ -e '{go}' ]; do sleep 0.05; done; echo over"
        process, notified = hf.run(command, notify="never"), hf.run(command, notify="any")
        ended = threads.submit(hf.wait, process.id)
        page = threads.submit(hf.logs, process.id, offset=0, wait=60)
        notices = threads.submit(hf.inbox, wait=60)
        eventually(lambda: {"wait", "logs", "inbox"} <= set(asked))
        _stop(home)
        never(lambda: _daemons(home) or ended.done() or page.done() or notices.done(), within=1.5)
        go.touch()
        assert run_cli("daemon", "start").returncode == 0
        assert ended.result(30).exit_code == 0
        assert page.result(30).text == "over\n"
        assert [notice.process for notice in notices.result(30)] == [notified.id]


def test_a_wait_whose_time_runs_out_says_that_the_daemon_was_stopped(home: Path, asked: list[str]) -> None:
    with holdfast.connect() as hf, ThreadPoolExecutor(1) as threads:
        process = hf.run("sleep 300")
        ended = threads.submit(hf.wait, process.id, timeout=6)
        eventually(lambda: "wait" in asked)
        _stop(home)
        with pytest.raises(Unreachable, match="was stopped"):
            ended.result(30)
        assert not _daemons(home)
