"""Hostile values to every operation: a typed error, nothing registered, and the daemon goes on."""

from __future__ import annotations

import json
import os
import socket
import struct
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast.client.link import Failed, Link
from holdfast.client.sync import Client
from holdfast.ops.catalog import OPERATIONS
from tests.daemon.acting import ask, log_text
from tests.support import eventually

GOOD: dict[str, Any] = {"id": "proc_0123456789ab", "command": "true", "cwd": "/", "session": "s"}


def each(key: str, *values: Any, **also: Any) -> list[dict[str, Any]]:
    return [{key: value, **also} for value in values]


STARTS: list[dict[str, Any]] = [
    *each("id", None, "", 7, "proc_", "proc_0123456789AB", "../../x", "proc_0123456789ab\n", []),
    *each("command", 7, "a\0b", "\ud800", "x" * (129 << 10), ["true"], {"a": 1}),
    *each("argv", None, [], [""], "true", [7], ["a\0"], [None], ["\udc7f"], command=None),
    {"argv": ["true"]},
    *each("cwd", "", "relative", 7, "/a\0b", "/\ud800", "/" + "x" * 5000),
    *each("session", "", "x" * 257, "a\nb", 7, "\ud800"),
    *each("task", "", 7, "a\0"),
    *each("name", "", "a b", "x" * 65, "proc_x", 7, "ä", "a\n"),
    *each("pty", "yes", 1, []),
    *each("cols", 0, -1, 1001, 70000, "80", 1.5, True, pty=True),
    {"pty": True, "split": True},
    *each("log_cap", 0, -1, 1, 65535, 1 << 60, "10M", float("inf")),
    *each("deadline", 0, -1, float("nan"), float("inf"), "5", 1e300, True),
    *each("deadline_action", "explode", 7),
    *each("lifetime", "for ever", 7),
    *each("if_running", "dance", 7),
    *each("umask", -1, 0o1000, "022"),
    *each("env", [], {"": "x"}, {"a=b": "x"}, {"a": 7}, {"a": "b\0"}, {"a\0": "b"}, {"a": None}, {"a": "\ud800"}),
    *each("grant", "x", {"a": ["b"]}),
    *each("shell", 7, "a\0"),
    *each("gate", "yes", 1, []),
    *each("asker", "yes", 1, gate=True),
    *each("approval_wait", -1, "x", float("nan"), gate=True),
]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    return tmp_path_factory.mktemp("hostile") / "home"


@pytest.fixture(scope="module")
def hf(home: Path) -> Any:
    from tests.support import end_instance

    with holdfast.connect("tests", home=home) as client:
        yield client
    end_instance(str(home))


@pytest.mark.parametrize("bad", STARTS, ids=lambda bad: json.dumps(bad)[:40])
def test_a_start_that_cannot_be_meant_is_refused(hf: Client, bad: dict[str, Any]) -> None:
    with pytest.raises(holdfast.BadValue):
        ask(hf, "start", **{**GOOD, **bad})
    assert hf.ps(all=True) == []


def test_a_start_too_long_for_the_keeper_is_refused_and_leaves_nothing(hf: Client) -> None:
    with pytest.raises(holdfast.BadValue, match="too long"):
        ask(hf, "start", **{**GOOD, "command": None, "argv": ["true", *["x" * 100_000] * 60]})
    assert hf.ps(all=True) == []
    assert ask(hf, "status")["keeper_pid"] is not None


ANYTHING: list[Any] = [None, "", "x", "\0", "\ud800", -1, 0, 1 << 80, 1.5, True, [], [[]], {}, {"a": []}, ["x"], [None]]
WORDS = ["process", "processes", "session", "task", "all", "signal", "grace", "timeout", "mode", "until", "after"]
WORDS += ["from", "line", "lines", "bytes", "follow", "stream", "data", "enter", "eof", "at", "cols", "rows"]


#: Of these, one that is to go on goes on: there is nothing wrong with it.
_ENDLESS = (
    "events",
    "approvals",
)


#: Of these, every one does.
_FOR_EVER = ("notices",)


def code_of(link: Link, op: str, arguments: dict[str, Any]) -> str | None:
    if op in _FOR_EVER:
        return _first_word(link, op, arguments)
    try:
        link.call(op, arguments)
    except holdfast.HoldfastError as refused:
        return refused.code
    return None


def _first_word(link: Link, op: str, arguments: dict[str, Any]) -> str | None:
    """As code_of, of one that would go on."""
    rid = link.ask(op, arguments)
    while not (heard := link.receive()):
        continue
    if isinstance(heard[0], Failed):
        return heard[0].error.code
    link.cancel(rid)
    while not any(isinstance(answer, Failed) for answer in link.receive()):
        continue
    return None


@pytest.mark.parametrize("op", sorted(set(OPERATIONS) - {"stop"}))
def test_no_arguments_make_an_operation_fail_otherwise_than_with_a_typed_error(hf: Client, op: str) -> None:
    link = hf.open_link()
    for word in WORDS:
        # A name that the operation does not know is ignored, with any value.
        for value in ANYTHING if word in OPERATIONS[op].FIELDS else ["x"] if word == WORDS[0] else []:
            if op in _ENDLESS and word == "follow" and value is True:
                continue
            code = code_of(link, op, {word: value, "timeout": 0.0} if op == "wait" else {word: value})
            typed = (
                ("denied",) if op == "askpass" else (None, "bad_value", "not_found", "not_now")
            )  # that takes no words
            assert code in typed, (word, value)
    link.close()
    hf.kill(all=True, grace=0.1)  # some of them may be meant: an agent of session x was started
    hf.remove(all=True)


def test_an_unknown_operation_is_refused(hf: Client) -> None:
    with pytest.raises(holdfast.Unsupported):
        ask(hf, "dance")


def raw(home: Path) -> socket.socket:
    sock = socket.socket(socket.AF_UNIX)
    sock.connect(str(home / "daemon.sock"))
    sock.settimeout(10)
    return sock


@pytest.mark.parametrize(
    "sent",
    [
        b"\xff" * 100,
        struct.pack("!IB", 1 << 31, ord("J")),
        struct.pack("!IB", 2, ord("Z")) + b"{}",
        struct.pack("!IB", 2, ord("J")) + b"{]",
        struct.pack("!IB", 2, ord("J")) + b"[]",
        struct.pack("!IB", 2, ord("B")) + b"ab",
        struct.pack("!IB", 12, ord("J")) + b'{"op": "ps"}',
        struct.pack("!IB", 100_000, ord("J")) + b"[" * 100_000,
    ],
    ids=lambda sent: repr(sent[:12]),
)
def test_a_connection_with_invalid_data_is_closed(hf: Client, home: Path, sent: bytes) -> None:
    with raw(home) as sock:
        sock.sendall(sent)
        told = b""
        while piece := sock.recv(4096):
            told += piece
    # What begins with anything but 0 is taken for an attempt at HTTP.
    assert told.startswith(b"HTTP/1.1 400 ") if sent[0] else told == b""
    assert hf.ps() == []


def test_nothing_is_answered_before_a_hello(hf: Client, home: Path) -> None:
    body = b'{"rid": 1, "op": "list"}'
    with raw(home) as sock:
        sock.sendall(struct.pack("!IB", len(body), ord("J")) + body)
        assert b"hello" in sock.recv(4096)


def test_half_a_message_before_a_close_changes_nothing_else(hf: Client, home: Path) -> None:
    for _ in range(200):
        with raw(home) as sock:
            sock.sendall(struct.pack("!IB", 1000, ord("J")) + b"{")
    assert hf.ps() == []


def test_many_requests_at_once_are_all_answered(hf: Client) -> None:
    link = hf.open_link()
    rids = [link.ask("list", {}) for _ in range(500)]
    answered: list[int] = []
    while len(answered) < len(rids):
        answered += [answer.rid for answer in link.receive(20)]
    assert sorted(answered) == rids
    link.close()


def test_a_request_that_goes_on_keeps_its_number_until_it_is_answered(hf: Client, home: Path) -> None:
    def frame(**message: Any) -> bytes:
        body = json.dumps(message).encode()
        return struct.pack("!IB", len(body), ord("J")) + body

    kill = frame(rid=2, op="kill", all=True)
    with raw(home) as sock:
        sock.sendall(frame(rid=1, op="hello", version=1) + kill + kill)
        eventually(lambda: b"request 2 is still under way" in sock.recv(4096))


def ask_for_ever(link: Link) -> None:
    for _ in range(1_000_000):
        link.ask("doctor", {})


def test_a_client_that_reads_no_reply_delays_no_other(hf: Client) -> None:
    deaf = hf.open_link()
    os.set_blocking(deaf.fileno(), False)
    with pytest.raises(holdfast.Unreachable):
        ask_for_ever(deaf)
    assert hf.ps() == []
    deaf.close()


def test_the_daemon_took_none_of_it_amiss(hf: Client, home: Path) -> None:
    eventually(lambda: hf.status()["processes"] == 0)
    assert "Traceback" not in log_text(home)
    assert (home / "daemon.sock").stat().st_mode & 0o777 == 0o600
    assert home.stat().st_mode & 0o777 == 0o700
