"""`holdfast top`."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

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

        assert max(eventually(history, timeout=15.0)) > 20
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
