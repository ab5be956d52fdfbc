"""`holdfast top`."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from holdfast.ops.records import TOP_FIELDS
from tests.cli.calling import Terminal, as_json, out, refusal, start, until_output
from tests.support import eventually

SPIN = [sys.executable, "-c", "while True: pass"]
LISTEN = (
    "import socket, time; s = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen(); x = bytearray(100 << 20);"
    " print(s.getsockname()[1]); time.sleep(600)"
)


def settled() -> Any:
    """What top tells once the one that only listens has done what it had to do first."""
    seen = as_json("top", "--once", "--json")
    rows = seen["processes"]
    is_known = all(row["ports"] is not None for row in rows)
    return seen if is_known and min(row["cpu_percent"] for row in rows) < 5 else None


def test_one_document_with_true_figures() -> None:
    spinning = start("--name", "spinning", "--", *SPIN)
    listening = start("--name", "listening", "--", sys.executable, "-c", LISTEN)
    until_output(listening)
    seen = eventually(settled)
    assert seen["total"] == 2
    first, second = seen["processes"]
    assert list(first) == list(TOP_FIELDS)
    assert [first["id"], second["id"]] == [spinning, listening]
    assert first["cpu_percent"] > 10 > second["cpu_percent"]
    assert 100 << 20 < second["rss_bytes"] <= second["peak_rss_bytes"] < 160 << 20
    assert second["ports"] == [int(out("logs", listening))]
    assert first["ports"] == []
    (largest, _) = as_json("top", "--once", "--json", "--sort", "memory")["processes"]
    assert largest["id"] == listening


def test_a_table_once() -> None:
    process_id = start("--name", "idle", "--session", "s", "-c", "sleep 600 # \x1b[2J")
    start("--session", "other", "sleep", "600")
    sums, empty, head, row = out("top", "--once", "--session", "s").strip("\n").split("\n")
    assert sums.startswith("1 process, ")
    assert empty == ""
    assert head.split()[:6] == ["ID", "NAME", "STATUS", "CPU%", "RSS", "PEAK"]
    assert row.split()[:3] == [process_id, "idle", "running"]
    assert "\x1b" not in row and "\\x1b[2J" in row
    assert out("top").startswith("2 processes, ")  # no terminal: once


def test_an_object_a_line_and_a_history() -> None:
    start("--", *SPIN)
    words = [sys.executable, "-m", "holdfast", "top", "--json", "--interval", "0.2"]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as looking:
        assert looking.stdout is not None

        def history() -> list[float]:
            assert looking.stdout is not None
            samples: list[float] = json.loads(looking.stdout.readline())["processes"][0]["history"]["cpu_percent"]
            return samples

        eventually(lambda: max(history(), default=0.0) > 20)  # a busy machine gives it less at times
        looking.kill()


def test_live_on_a_terminal() -> None:
    start("--name", "seen-live", "sleep", "600")
    with Terminal("top", "--interval", "0.2", cols=100, rows=12) as terminal:
        terminal.see("\x1b[?1049h")
        terminal.see("seen-live")
        start("--name", "came-later", "sleep", "600")
        terminal.see("came-later")
        terminal.resize(60, 8)
        terminal.type(b"m")
        terminal.see("seen-live")
        terminal.type(b"q")
        terminal.see("\x1b[?1049l")
        assert terminal.end() == 0
        assert terminal.is_as_before


def test_interrupted_it_leaves_the_terminal_as_it_was() -> None:
    with Terminal("top") as terminal:
        terminal.see("0 processes")
        terminal.type(b"\x03")
        assert terminal.end() == 0
        assert terminal.is_as_before


def test_bad_values() -> None:
    refusal("top", "extra")
    refusal("top", "--sort", "name")
    refusal("top", "--interval", "0")
    refusal("top", "--interval", "never")
    refusal("top", "--session", "\x1b")


def test_a_dumb_terminal_gets_it_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    start("--name", "seen-once", "sleep", "600")
    with Terminal("top", cols=80) as terminal:
        shown = terminal.rest()
        assert terminal.end() == 0
    assert "seen-once" in shown and "\x1b" not in shown


@pytest.mark.parametrize("cols", [1, 20, 40, 80, 200])
def test_once_no_line_is_wider_than_the_terminal(cols: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    start("--name", "a-rather-long-name", "-c", f"sleep 600; : {'x' * 300}")
    with Terminal("top", "--once", cols=cols) as terminal:
        sums, _, *table = terminal.rest().rstrip("\r\n").split("\r\n")
        assert terminal.end() == 0
    assert sums.startswith("1 process, ") and len(table) == 2
    assert max(map(len, table)) <= cols


@pytest.fixture
def plain_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal without colours: the selected row is then marked by `>` alone."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")


@pytest.mark.usefixtures("plain_terminal")
def test_scrolled_filtered_and_sorted_by_keys() -> None:
    for number in range(12):
        start("--name", f"row-{number:02d}", "sleep", "600")
    with Terminal("top", "--sort", "started", "--interval", "60", cols=100, rows=9) as terminal:
        terminal.see("1-5 of 12 shown")
        terminal.see("> ")
        terminal.see("row-00")
        terminal.see("x kill")
        terminal.type(b"\x1b[B\x1b[B")
        terminal.see("row-04")
        terminal.type(b"\x1b[6~")
        terminal.see("4-8 of 12 shown")
        terminal.type(b"G")
        terminal.see("8-12 of 12 shown")
        terminal.see("> proc_")
        terminal.see("row-11")
        terminal.type(b"g")
        terminal.see("1-5 of 12 shown")
        terminal.type(b"/ROW-07")
        terminal.see("filter: ROW-07, 1 found")
        terminal.type(b"\r")
        terminal.see("x kill")
        terminal.type(b"\x1b")
        terminal.see("4-8 of 12 shown")  # the same process is still selected
        terminal.type(b"m")
        terminal.see("by memory")
        terminal.type(b"q")
        assert terminal.end() == 0
        assert terminal.is_as_before


@pytest.mark.usefixtures("plain_terminal")
def test_the_output_of_a_row_and_back() -> None:
    start("--name", "talking", "-c", "echo said-by-it; sleep 600")
    top = [sys.executable, "-m", "holdfast", "top", "--interval", "0.5"]
    with Terminal(whole=["setsid", "--ctty", "--wait", *top], cols=100, rows=12) as terminal:  # ^C becomes a signal
        terminal.see("> proc_")
        terminal.type(b"\r")
        terminal.see("\x1b[?1049l")
        terminal.see("said-by-it")
        assert not terminal.is_raw
        terminal.type(b"\x03")
        terminal.see("\x1b[?1049h")
        terminal.see("talking")
        terminal.type(b"q")
        assert terminal.end() == 0
        assert terminal.is_as_before


@pytest.mark.usefixtures("plain_terminal")
def test_attached_to_a_row_and_back() -> None:
    start("--name", "shell", "-t", "-c", "cat")
    with Terminal("top", "--interval", "0.5", cols=100, rows=12) as terminal:
        terminal.see("> proc_")
        terminal.type(b"a")
        terminal.see("\x1b[?1049l")
        until_attached("shell")
        terminal.type(b"typed here\r")
        terminal.see("typed here")
        terminal.type(b"\x1d")
        terminal.see("\x1b[?1049h")
        terminal.see("shell")
        terminal.type(b"q")
        assert terminal.end() == 0
        assert terminal.is_as_before


def until_attached(name: str) -> None:
    """Until its terminal has the size of ours."""
    eventually(lambda: as_json("inspect", "--json", name)["cols"] == 100)


@pytest.mark.usefixtures("plain_terminal")
def test_ended_from_a_row_after_a_question() -> None:
    process_id = start("--name", "victim", "sleep", "600")
    with Terminal("top", "--interval", "0.5", cols=100, rows=12) as terminal:
        terminal.see("> proc_")
        terminal.type(b"x")
        terminal.see(f"End victim ({process_id}) and all its children?")
        terminal.type(b"n")
        terminal.see("not ended")
        assert as_json("inspect", "--json", process_id)["status"] == "running"
        terminal.type(b"x")
        terminal.see("and all its children?")
        terminal.type(b"y")
        terminal.see(f"victim ({process_id}): ended")
        terminal.see("0 processes")
        terminal.type(b"xa\r")  # nothing is selected
        terminal.type(b"q")
        assert terminal.end() == 0
    assert as_json("inspect", "--json", process_id)["reason"] == "killed"


@pytest.mark.usefixtures("plain_terminal")
def test_what_cannot_be_done_is_said_at_the_bottom() -> None:
    start("--name", "no-terminal", "sleep", "600")
    with Terminal("top", "--interval", "60", cols=100, rows=12) as terminal:
        terminal.see("> proc_")
        terminal.type(b"a")
        terminal.see("has no terminal. Next: ")
        terminal.type(b"\x1b[99;99Xq")
        assert terminal.end() == 0
        assert terminal.is_as_before
