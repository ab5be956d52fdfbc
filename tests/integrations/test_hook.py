"""`holdfast hook`: what it answers to each event, that it tells everything once, and that it never harms its host."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast.integrations import hosts
from tests.integrations.hosts import TOLD
from tests.support import eventually, run_cli

_CONVERSATION = "0b8b6a52-9c1e-4b52-9a1c-5e0f6a3b7d10"
_SESSION = f"claude-{_CONVERSATION}"


def _hook(event: str, *, session_id: object = _CONVERSATION, **said: object) -> dict[str, Any] | None:
    """What it answers; None for nothing."""
    message = {"session_id": session_id, "hook_event_name": event, "cwd": "/", **said}
    done = run_cli("hook", "claude-code", input=json.dumps(message).encode())
    assert (done.returncode, done.stderr) == (0, b"")
    return json.loads(done.stdout) if done.stdout else None


def _ended(session: str = _SESSION) -> str:
    """A process of the session that has ended, and is yet to be told."""
    with holdfast.connect(session) as hf:
        process = hf.run("echo finished well", notify="any")
        eventually(lambda: hf.inbox())
    return process.id


def _context(answer: dict[str, Any] | None, event: str) -> str:
    assert answer is not None
    assert answer["hookSpecificOutput"]["hookEventName"] == event
    return str(answer["hookSpecificOutput"]["additionalContext"])


def test_nothing_is_said_and_nothing_started_where_nothing_ever_ran(home: Path) -> None:
    for event in ("SessionStart", "UserPromptSubmit", "PostToolUse", "Stop", "SessionEnd"):
        assert _hook(event) is None
    assert not (home / "daemon.sock").exists()


@pytest.mark.parametrize("event", ["SessionStart", "UserPromptSubmit", "PostToolUse"])
def test_a_notice_is_put_into_the_conversation_once(instance: Path, event: str) -> None:
    process = _ended()
    text = _context(_hook(event), event)
    assert text.count(TOLD) == 1 and process in text and "finished well" in text
    for again in ("SessionStart", "UserPromptSubmit", "PostToolUse", "Stop"):
        assert _hook(again) is None


@pytest.mark.parametrize("event", ["SessionStart", "UserPromptSubmit"])
def test_what_does_not_fit_is_counted_and_where_it_is_is_said(instance: Path, event: str) -> None:
    with holdfast.connect(_SESSION) as hf:
        for count in range(7):
            hf.run(f": {count}", notify="any")
        eventually(lambda: len(hf.inbox()) == 7)
    text = _context(_hook(event), event)
    assert text.count(TOLD) == 5
    assert text.endswith(f"And 2 more notifications: holdfast inbox --session {_SESSION}")
    rest = _context(_hook(event), event)
    assert rest.count(TOLD) == 2 and "more notification" not in rest


def test_the_model_is_kept_from_stopping_once(instance: Path) -> None:
    process = _ended()
    assert _hook("Stop", stop_hook_active=True) is None
    answer = _hook("Stop", stop_hook_active=False)
    assert answer is not None and answer["decision"] == "block" and process in answer["reason"]
    assert _hook("Stop", stop_hook_active=False) is None


def test_other_conversations_get_no_notice(instance: Path) -> None:
    _ended()
    assert _hook("UserPromptSubmit", session_id="another") is None
    assert _hook("UserPromptSubmit") is not None


def test_a_conversation_that_begins_is_shown_what_still_runs(instance: Path) -> None:
    with holdfast.connect(_SESSION) as hf:
        process = hf.run("sleep 100")
        try:
            text = _context(_hook("SessionStart", source="resume"), "SessionStart")
            assert process.id in text and "sleep 100" in text
        finally:
            hf.kill(process.id)


def test_a_conversation_that_was_compacted_is_shown_what_ended_before(instance: Path) -> None:
    process = _ended()
    assert _hook("UserPromptSubmit") is not None
    text = _context(_hook("SessionStart", source="compact"), "SessionStart")
    assert process in text and "completed normally (exit code 0)" in text
    for source in ("resume", "clear"):
        assert _hook("SessionStart", source=source) is None


def test_a_cleared_conversation_takes_its_processes_along(instance: Path) -> None:
    _hook("SessionStart", session_id="before-clear")
    with holdfast.connect("claude-before-clear") as hf:
        process = hf.run("sleep 100", notify="any")
        _hook("SessionEnd", session_id="before-clear", reason="clear")
        text = _context(_hook("SessionStart", session_id="after-clear", source="clear"), "SessionStart")
        assert process.id in text
        assert hf.inspect(process.id).session == "claude-after-clear"
        hf.kill(process.id)


def test_processes_that_live_as_long_as_the_session_end_with_it(instance: Path) -> None:
    _hook("SessionStart", session_id="short")
    with holdfast.connect("claude-short") as hf:
        short, long = hf.run("sleep 100", lifetime="session"), hf.run("sleep 101")
        _hook("SessionEnd", session_id="short", reason="prompt_input_exit")
        assert hf.inspect(short.id).status == "ended" and hf.inspect(long.id).status == "running"
        hf.kill(long.id)


def test_a_notice_that_could_not_be_written_comes_again(instance: Path) -> None:
    _ended()
    message = json.dumps({"session_id": _CONVERSATION, "hook_event_name": "UserPromptSubmit"})
    with open("/dev/full", "wb") as full:
        command = [sys.executable, "-m", "holdfast", "hook", "claude-code"]
        done = subprocess.run(command, input=message.encode(), stdout=full, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 0 and done.stderr.count(b"\n") == 1
    assert TOLD in _context(_hook("UserPromptSubmit"), "UserPromptSubmit")


@pytest.mark.parametrize("closed", [">&-", "<&-", "2>&-", "<&- >&- 2>&-", "| true"])
def test_streams_that_are_closed_are_no_harm(instance: Path, closed: str) -> None:
    _ended()
    message = json.dumps({"session_id": _CONVERSATION, "hook_event_name": "UserPromptSubmit"})
    line = f"set -o pipefail; {sys.executable} -m holdfast hook claude-code {closed}"
    done = subprocess.run(["bash", "-c", line], input=message.encode(), capture_output=True, check=False)
    assert done.returncode == 0 and done.stderr.count(b"\n") <= 1
    assert b"NoneType" not in done.stderr
    if closed == "<&-":
        assert b"stdin is closed" in done.stderr
    if closed in (">&-", "<&-"):
        assert TOLD in _context(_hook("UserPromptSubmit"), "UserPromptSubmit")


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"\xff\0",
        b"[]",
        b"{}",
        b"[" * 100_000,
        b'{"session_id": 3}',
        b'{"session_id": "../../x", "hook_event_name": "Stop"}',
        b'{"session_id": "' + b"x" * 5000 + b'"}',
        b'{"session_id": "a\\u0000b", "hook_event_name": null}',
    ],
)
def test_the_host_goes_on_with_any_arguments(instance: Path, said: bytes) -> None:
    done = run_cli("hook", "claude-code", input=said)
    assert (done.returncode, done.stdout) == (0, b"")
    assert done.stderr.count(b"\n") <= 1 and b"Traceback" not in done.stderr


@pytest.mark.full
def test_a_daemon_that_hangs_does_not_hang_the_host(home: Path) -> None:
    with holdfast.connect() as hf:
        daemon = int(hf.status()["pid"])
    os.kill(daemon, 19)
    try:
        before = time.monotonic()
        done = run_cli("hook", "claude-code", input=b'{"session_id": "x", "hook_event_name": "Stop"}')
        assert done.returncode == 0 and b"in time" in done.stderr
        assert time.monotonic() - before < 10.0
    finally:
        os.kill(daemon, 18)


@pytest.mark.full
def test_a_daemon_that_is_slow_after_a_clear_loses_no_process(home: Path) -> None:
    _hook("SessionStart", session_id="slow-before")
    with holdfast.connect("claude-slow-before") as hf:
        process, daemon = hf.run("sleep 100"), int(hf.status()["pid"])
        os.kill(daemon, 19)
        try:
            message = b'{"session_id": "slow-after", "hook_event_name": "SessionStart", "source": "clear"}'
            assert b"in time" in run_cli("hook", "claude-code", input=message).stderr
        finally:
            os.kill(daemon, 18)
        _hook("UserPromptSubmit", session_id="slow-after")
        assert hf.inspect(process.id).session == "claude-slow-after"
        _hook("UserPromptSubmit", session_id="slow-other")
        assert hf.inspect(process.id).session == "claude-slow-after"


def test_the_server_of_the_same_host_finds_the_session(instance: Path) -> None:
    """This test is the host: the hook and the server are its children."""
    _hook("SessionStart", session_id="first")
    look = f"from holdfast.integrations import hosts; print(hosts.bound({str(instance)!r}))"
    through_shell = ["sh", "-c", f"{sys.executable} -c {shlex.quote(look)}; true"]
    for command in ([sys.executable, "-c", look], through_shell):
        assert subprocess.check_output(command, text=True).strip() == "claude-first"
    _hook("UserPromptSubmit", session_id="second")
    assert subprocess.check_output([sys.executable, "-c", look], text=True).strip() == "claude-second"


def test_bindings_of_hosts_that_are_gone_are_forgotten(instance: Path) -> None:
    child = subprocess.Popen(["true"])
    hosts.bind(str(instance), (child.pid, 1), "claude-gone")
    child.wait()
    _hook("SessionStart", session_id="one-that-opens")
    assert not list((instance / "hosts").glob(f"{child.pid}-*"))
    assert all(path.stat().st_mode & 0o077 == 0 for path in (instance / "hosts").iterdir())
