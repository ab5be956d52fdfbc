"""What is said about a process that ended: from its state and its output."""

from __future__ import annotations

import pytest

from holdfast.model import diagnosis
from holdfast.model.diagnosis import PortHolder
from holdfast.model.lifecycle import Ended, Exited, Lost, NeverRan, Outcome, Signaled, StopRequest
from holdfast.model.process import HeldProcess, Meta, ProcessId


def ended(outcome: Outcome, *, stop: StopRequest | None = None, oom: bool = False, **options: object) -> HeldProcess:
    meta = Meta(ProcessId("proc_000000000001"), "make", ("make",), "/", "s", 0.0, **options)  # type: ignore[arg-type]
    return HeldProcess(meta, Ended(outcome, 10.0, 7, 0.0, 10.0, stop, oom))


@pytest.mark.parametrize(
    ("process", "said"),
    [
        (ended(Exited(0)), "It succeeded: exit code 0, after 10s, 1m ago."),
        (ended(Exited(3), success_codes=(0, 3)), "It succeeded: exit code 3, after 10s, 1m ago."),
        (ended(Exited(126)), "cannot be executed"),
        (ended(Exited(127)), "a program was not found"),
        (ended(Exited(137)), "exit code 137, which often means that SIGKILL ended a program in it"),
        (ended(Exited(77)), "It failed: exit code 77, after"),
        (ended(Signaled(11)), "It failed: SIGSEGV (it accessed invalid memory"),
        (ended(Signaled(9)), "not by holdfast"),
        (ended(Signaled(64)), "It failed: SIGRTMAX,"),
        (ended(Signaled(9), oom=True, memory=50 << 20), "more memory than its limit of 50M"),
        (ended(Signaled(9), oom=True), "The machine ran out of memory"),
        (ended(Signaled(15), stop=StopRequest("chat", "killed", 9.0)), "on request of session chat (SIGTERM)"),
        (ended(Signaled(9), stop=StopRequest(None, "killed", 9.0, True)), "and SIGKILL was needed (SIGKILL)"),
        (ended(Signaled(15), stop=StopRequest(None, "session_end", 9.0)), "with its session"),
        (ended(Signaled(15), stop=StopRequest(None, "daemon_stop", 9.0)), "the daemon was stopped"),
        (ended(Signaled(15), stop=StopRequest(None, "deadline", 9.0), deadline=90.0), "its deadline of 1m30s"),
        (ended(Lost()), "How it ended is not known"),
        (ended(NeverRan()), "It could not be started"),
    ],
)
def test_how_it_ended(process: HeldProcess, said: str) -> None:
    assert said in diagnosis.summary(process, 70.0)


@pytest.mark.parametrize(
    ("text", "port"),
    [
        ("Error: listen EADDRINUSE: address already in use :::5173", 5173),
        ("Error: listen EADDRINUSE: address already in use 127.0.0.1:80", 80),
        ("listen tcp :8080: bind: address already in use", 8080),
        ("listen tcp 0.0.0.0:8080: bind: address already in use", 8080),
        ("[Errno 98] error while attempting to bind on address ('127.0.0.1', 8000): address already in use", 8000),
        ("[Errno 98] error while attempting to bind on address ('::1', 8000, 0, 0): address already in use", 8000),
        ("10:31:22 main.go:42: listen tcp :8080: bind: address already in use", 8080),
        ("10:31:22 address already in use", None),
        ("nginx: [emerg] bind() to 0.0.0.0:80 failed (98: Address already in use)", 80),
        ("Address already in use\nPort 5000 is in use by another program.", 5000),
        ("Something is already running on port 3000.\nerror: port 3000 is already in use", 3000),
        ("Error: bind: Address already in use\n  errno: -98,\n  syscall: 'listen',\n  port: 4173\n}", 4173),
        ("Bind for 0.0.0.0:5432 failed: port is already allocated", 5432),
        ("OSError: [Errno 98] Address already in use", None),
        ("Error: Address already in use (os error 98)", None),
        ("serving on port 8000", None),
        ("error: address already in use: port 99999", None),
    ],
)
def test_the_port_that_is_in_use(text: str, port: int | None) -> None:
    assert diagnosis.port_in_use(text) == port
    assert diagnosis.is_port_in_use(text) == ("in use" in text or "allocated" in text)


def test_ports_that_a_command_may_mean() -> None:
    meta = Meta(ProcessId("proc_000000000001"), "serve --port 8001 -w 4 v1.8080 /srv/9000x", (), "/", "s", 0.0)
    assert diagnosis.ports_named(HeldProcess(meta)) == [8001]


def test_lines_that_look_like_errors_else_the_last_ones() -> None:
    lines = ["start", "every thing is fine", "0 errors", "ValueError: x", "ok", "npm ERR! code ELIFECYCLE", "done"]
    assert diagnosis.error_lines("\n".join(lines)) == (["ValueError: x", "npm ERR! code ELIFECYCLE"], True)
    assert diagnosis.error_lines("a\n\nb\n") == (["a", "b"], False)
    assert diagnosis.error_lines("") == ([], False)
    many, is_error = diagnosis.error_lines("\n".join(f"error {n}" for n in range(100)))
    assert many[-1] == "error 99" and len(many) == 8 and is_error


def test_who_holds_a_port() -> None:
    assert PortHolder(5173, True, "proc_1", "web", 7, "node").text() == "Port 5173 is held by `web` (proc_1)"
    assert PortHolder(5173, True, pid=7, program="nginx").text() == "Port 5173 is held by another program: nginx, pid 7"
    assert PortHolder(80, True).text() == "Port 80 is held by another program"
    assert PortHolder(80, False).text() == "Port 80 was in use; no process listens on it now"
