"""What is shown to people."""

from __future__ import annotations

import time

import pytest

from holdfast.cli import console
from holdfast.cli.outcomes import exit_status
from holdfast.cli.terminal.attached import Undo, parse_key, without_queries
from holdfast.client.process import Process, outcome
from holdfast.errors import BadValue
from holdfast.model.units import (
    age_text,
    duration_text,
    moment_text,
    parse_moment,
    parse_seconds,
    parse_size,
    parse_window,
    size_text,
)


def test_nothing_that_a_terminal_obeys_is_shown_raw() -> None:
    assert console.visible("a\x1b[31mb\nc\u202ed\udcff\x9b") == r"a\x1b[31mb\nc\u202ed\udcff\x9b"
    assert console.visible("größe 日本") == "größe 日本"


def test_tables_are_aligned_also_with_wide_characters() -> None:
    text = console.table(("A", "BB"), [("日本", "x"), ("é", "y")])
    assert text.split("\n") == ["A     BB", "日本  x", "é     y"]


def test_the_last_column_is_cut_to_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(console, "terminal_size", lambda: (20, 24))
    assert console.table(("ID", "COMMAND"), [("1", "x" * 50)]).split("\n")[1] == "1   " + "x" * 15 + "…"
    assert console.table(("ID", "C"), [("1", "日" * 50)]).split("\n")[1] == "1   " + "日" * 7 + "…"


@pytest.mark.parametrize(
    ("fields", "code", "shown"),
    [
        ({"status": "running"}, 124, "running"),
        ({"status": "unreachable"}, 124, "unreachable"),
        ({"status": "ended", "reason": "exited", "exit_code": 3}, 3, "exit 3"),
        ({"status": "ended", "reason": "signaled", "signal": 9}, 137, "SIGKILL"),
        ({"status": "ended", "reason": "killed", "signal": 15}, 143, "killed, SIGTERM"),
        ({"status": "ended", "reason": "killed", "exit_code": 42}, 42, "killed, exit 42"),
        ({"status": "ended", "reason": "lost"}, 120, "lost"),
        ({"status": "ended", "reason": "signaled", "signal": 99}, 227, "signal 99"),
    ],
)
def test_outcomes(fields: dict[str, object], code: int, shown: str) -> None:
    process = Process({"id": "p", **fields})
    assert (exit_status(process), outcome(process)) == (code, shown)


def test_sizes_and_times_as_people_write_them() -> None:
    assert [size_text(n) for n in (0, 1023, 1536, 10 << 10, 1 << 20, 5 << 40, 20_000 << 40)] == [
        "0", "1023", "1.5K", "10K", "1.0M", "5.0T", "20000T",
    ]  # fmt: skip
    assert [age_text(n) for n in (-5, 0, 59, 60, 61, 3600, 3725, 90000)] == [
        "0s", "0s", "59s", "1m", "1m01s", "1h", "1h02m", "1d01h",
    ]  # fmt: skip
    assert [duration_text(n) for n in (0.04, 2.5, 9.96, 75)] == ["0.0s", "2.5s", "9s", "1m15s"]
    assert [parse_size(n) for n in ("0", "5", "10M", "1.5k", "2GiB", " 3 MB ")] == [
        0,
        5,
        10 << 20,
        1536,
        2 << 30,
        3 << 20,
    ]
    assert [parse_seconds(n) for n in ("5", "1.5", "500ms", "2m", "1h", "1d")] == [5, 1.5, 0.5, 120, 3600, 86400]
    assert parse_window("120x30") == (120, 30)


@pytest.mark.parametrize("text", ["", "x", "-1", "nan", "inf", "1e400", "10Q", "M", "9" * 40, "1 2", "\0"])
def test_what_is_no_size_or_time_is_refused(text: str) -> None:
    with pytest.raises(BadValue):
        parse_size(text)
    with pytest.raises(BadValue):
        parse_seconds(text)
    with pytest.raises(BadValue):
        parse_window(text)


@pytest.mark.parametrize("text", ["0x0", "80x", "x24", "80x24x1", "-1x5", "99999x5", "8٠x24", "80 x 24"])
def test_what_is_no_window_is_refused(text: str) -> None:
    with pytest.raises(BadValue):
        parse_window(text)


def test_detach_keys() -> None:
    assert [parse_key(key) for key in (None, "ctrl-]", "^a", "CTRL-Z", "ctrl-\\", "none")] == [
        b"\x1d", b"\x1d", b"\x01", b"\x1a", b"\x1c", b"",
    ]  # fmt: skip
    for text in ("", "x", "ctrl-", "ctrl-ab", "alt-x", "ctrl-é", "\x1d", "ctrl-1"):
        with pytest.raises(BadValue):
            parse_key(text or "?")


def test_what_a_program_did_to_the_terminal_is_undone() -> None:
    undo = Undo()
    undo.feed(b"\x1b[?1049h\x1b[?25l\x1b[?2004h\x1b[?10")
    undo.feed(b"00;1006h")
    assert undo.is_full_screen
    for reset in (b"\x1b[?1049l", b"\x1b[?25h", b"\x1b[?2004l", b"\x1b[?1000l", b"\x1b[?1006l"):
        assert reset in undo.bytes()
    undo.feed(b"\x1b[?1049l\x1b[?25h\x1b[?2004l\x1b[?1000;1006l")
    assert b"?" not in undo.bytes()


def test_old_questions_are_not_asked_again() -> None:
    asked = b"a\x1b[6nb\x1b[cc\x1b]11;?\x07d\x1b[?2026$pe\x1bP+q544e\x1b\\f\x1b[31mg"
    assert without_queries(asked) == b"abcdef\x1b[31mg"


def test_times_as_users_write_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    now = 1_794_909_600.0  # 2026-11-17T10:00
    assert parse_moment("10m", now) == now - 600
    assert parse_moment("90", now) == now - 90
    assert parse_moment("1794909600.5", now) == now + 0.5
    for text in ("2026-11-17T10:00", "2026-11-17 10:00:00", "2026-11-17T11:00:00+01:00", "2026-11-17T10:00:00.000Z"):
        assert parse_moment(text, 0.0) == now
    assert moment_text(now + 0.2509) == "2026-11-17T10:00:00.250"


@pytest.mark.parametrize("text", ["", "x", "-5", "nan", "inf", "2026-13-01", "10:00", "9" * 400, "1e12", "0001-01-01"])
def test_what_is_no_time(text: str) -> None:
    with pytest.raises(BadValue, match="is not a time"):
        parse_moment(text, 1_794_909_600.0)
