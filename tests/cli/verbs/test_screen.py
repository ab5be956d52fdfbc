"""`holdfast screen`: real programs on a PTY, as a person would see them, whoever crashes."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.cli.calling import Terminal, as_json, out, refusal, start
from tests.screen.judge import Tmux
from tests.support import eventually, is_alive, run_cli

ASK = """
import os, select, sys, termios, tty
tty.setraw(0)
for _ in range(int(sys.argv[1])):
    os.write(1, b"\\x1b[6n")
    heard = os.read(0, 100) if select.select([0], [], [], 10)[0] else b"nothing"
    os.write(1, b"\\r\\nheard %r\\r\\n" % heard)
    if select.select([0], [], [], 60)[0]:
        os.read(0, 100)
"""

MUCH = """
import os, time
for n in range(1600):
    os.write(1, b"%06d \\x1b[32mok\\x1b[0m some more of the same line\\n" % n * 1500)
os.write(1, b"THE END")
time.sleep(60)
"""


def shown(process_id: str) -> Any:
    return as_json("screen", "--json", process_id)


def text(process_id: str) -> str:
    return "\n".join(shown(process_id)["lines"])


def when(process_id: str, words: str) -> Any:
    """The screen once these words are on it."""
    eventually(lambda: words in text(process_id), timeout=20, pause=0.05)
    return shown(process_id)


def daemon_pids() -> dict[str, int]:
    status = as_json("daemon", "status", "--json")
    return {name: status[f"{name}pid"] for name in ("", "keeper_", "anchor_")}


@contextmanager
def judged(tmp_path: Path, process_id: str) -> Iterator[list[str]]:
    """What tmux makes of all that a process wrote."""
    size = as_json("inspect", "--json", process_id)
    data = run_cli("logs", "--raw", process_id).stdout
    tmux = Tmux(tmp_path, data, size["cols"], size["rows"])
    try:
        yield tmux.lines()
    finally:
        tmux.end()


def test_vim(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("".join(f"line {n} of the text\n" for n in range(1, 101)))
    process_id = start("-t", "--size", "80x24", "vim", "-u", "NONE", "-N", str(tmp_path / "text"))
    when(process_id, "line 20 of the text")
    out("send", "--no-enter", process_id, "50GOa new line with 中文\x1b:set number\r")
    picture = when(process_id, "50 a new line with 中文")
    assert picture["alternate"] is True
    assert picture["lines"][picture["cursor"]["row"]].startswith(" 50 a new line")
    with judged(tmp_path, process_id) as lines:
        assert picture["lines"] == lines
    out("send", "--no-enter", process_id, "\x1b:q!\r")
    assert run_cli("wait", process_id).returncode == 0
    assert shown(process_id)["alternate"] is False


def test_htop(tmp_path: Path) -> None:
    process_id = start("-t", "--size", "100x30", "htop", "-d", "100")
    picture = when(process_id, "F10Quit")
    assert "Mem" in text(process_id) and "PID" in text(process_id)
    assert len(picture["lines"]) == 30
    out("send", "--no-enter", process_id, "q")
    assert run_cli("wait", process_id).returncode == 0


def test_less_and_a_resize(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("".join(f"{n} lines\n" for n in range(1, 500)))
    process_id = start("-t", "--size", "60x10", "less", str(tmp_path / "text"))
    when(process_id, "9 lines")
    assert "10 lines" not in text(process_id)
    out("resize", process_id, "40x20")
    picture = when(process_id, "19 lines")
    assert (picture["cols"], picture["rows"], len(picture["lines"])) == (40, 20, 20)
    out("send", "--no-enter", process_id, "G")
    assert when(process_id, "(END)")["lines"][-2].endswith("499 lines")
    os.kill(daemon_pids()[""], signal.SIGKILL)
    again = shown(process_id)
    assert (again["cols"], again["rows"], again["gap"]) == (40, 20, None)
    assert again["lines"][-2].endswith("499 lines") and "(END)" in again["lines"][-1]


@pytest.mark.parametrize("victims", [[""], ["keeper_"], ["", "keeper_"], ["keeper_", "anchor_"]])
def test_a_python_session_that_survives_crashes(victims: list[str], tmp_path: Path) -> None:
    process_id = start("-t", sys.executable, "-q", "-i", "-c", "import sys; sys.ps1 = 'py> '")
    when(process_id, "py>")
    out("send", process_id, "6 * 7")
    when(process_id, "42")
    before = daemon_pids()
    for victim in victims:
        os.kill(before[victim], signal.SIGKILL)
    out("send", process_id, "print('\\033[31m' + 'after' * 2)")
    picture = when(process_id, "afterafter")
    assert picture["lines"][:2] == ["py> 6 * 7", "42"]
    assert picture["gap"] is None
    with judged(tmp_path, process_id) as lines:
        assert picture["lines"] == lines


def test_the_last_screen_of_an_ended_process_stays(tmp_path: Path) -> None:
    process_id = start("-t", "-c", "printf '\\033]2;the title\\007'; seq 1 100; printf 'no newline'")
    run_cli("wait", process_id)
    for _ in range(2):
        picture = shown(process_id)
        assert picture["lines"][-2:] == ["100", "no newline"]
        assert picture["title"] == "the title"
        assert picture["cursor"] == {"row": 29, "col": 10, "visible": True}
        os.kill(daemon_pids()[""], signal.SIGKILL)
    assert out("screen", process_id).endswith("100\nno newline\n")
    out("rm", process_id)
    home = Path(os.environ["HOLDFAST_HOME"])
    assert not [name for name in os.listdir(home / "screens") if name.startswith(process_id)]


def test_colours_are_shown_when_asked_for() -> None:
    process_id = start("-t", "-c", "printf '\\033[1;32mgreen\\033[0m plain'")
    run_cli("wait", process_id)
    assert out("screen", process_id) == "green plain\n"
    assert "\x1b[" in out("screen", "--ansi", process_id)


def test_after_the_head_was_dropped_it_is_still_right() -> None:
    process_id = start(
        "-t", "--log-cap", "256K", "-c", "printf '\\033[31m'; seq -f 'line %.0f of many' 1 200000; sleep 60"
    )
    picture = when(process_id, "line 200000 of many")
    assert picture["lines"][-2] == "line 200000 of many"
    assert as_json("inspect", "--json", process_id)["dropped_bytes"] > 0
    os.kill(daemon_pids()[""], signal.SIGKILL)
    assert shown(process_id)["lines"] == picture["lines"]


def test_much_output_is_no_reason_to_wait() -> None:
    process_id = start("-t", sys.executable, "-c", MUCH)
    eventually(lambda: "THE END" in text(process_id), timeout=100, pause=0.5)
    assert as_json("inspect", "--json", process_id)["output_bytes"] > 60 << 20
    import holdfast

    with holdfast.connect() as client:
        times = []
        for _ in range(5):
            began = time.monotonic()
            assert "THE END" in client.screen(process_id).text
            times.append(time.monotonic() - began)
        assert min(times) < 0.2
        os.kill(daemon_pids()[""], signal.SIGKILL)
        client.status()
        began = time.monotonic()
        assert "THE END" in client.screen(process_id).text
        assert time.monotonic() - began < 10.0


def test_a_query_for_the_cursor_is_answered() -> None:
    process_id = start("-t", sys.executable, "-c", ASK, "2")
    when(process_id, "heard b'\\x1b[1;1R'")
    out("send", "--no-enter", process_id, "x")
    when(process_id, "heard b'\\x1b[3;1R'")


def test_a_question_is_answered_by_the_next_daemon_and_only_once() -> None:
    process_id = start("-t", sys.executable, "-c", ASK, "3")
    when(process_id, "[1;1R")
    os.kill(daemon_pids()[""], signal.SIGKILL)
    out("send", "--no-enter", process_id, "x")
    when(process_id, "[3;1R")
    os.kill(daemon_pids()["keeper_"], signal.SIGKILL)
    out("send", "--no-enter", process_id, "x")
    when(process_id, "[5;1R")
    heard = run_cli("logs", process_id).stdout.decode()
    assert heard.count("heard") == 3 and "nothing" not in heard


def test_an_attached_terminal_answers_queries() -> None:
    process_id = start("-t", sys.executable, "-c", ASK, "3")
    when(process_id, "[1;1R")
    with Terminal("attach", process_id) as terminal:
        terminal.see("heard")
        terminal.type(b"x")
        terminal.see("\x1b[6n")
        terminal.type(b"\x1b[77;7R")
        terminal.see("[77;7R")
        os.kill(terminal.process.pid, signal.SIGKILL)
        terminal.end()
    out("send", "--no-enter", process_id, "x")
    when(process_id, "[5;1R")
    assert "[3;1R" not in run_cli("logs", process_id).stdout.decode()


def test_of_a_process_that_is_started_on_a_terminal_that_terminal_answers() -> None:
    with Terminal("run", "-t", "--", sys.executable, "-c", ASK, "1") as terminal:
        terminal.see("\x1b[6n")
        terminal.type(b"\x1b[66;6R")
        terminal.see("heard b'\\x1b[66;6R'")
        terminal.type(b"x")
        assert terminal.end() == 0


def test_the_process_that_draws_may_be_killed() -> None:
    process_id = start("-t", "-c", "echo here; sleep 60")
    when(process_id, "here")
    home = os.environ["HOLDFAST_HOME"]
    drawing = _find(lambda words: any(word == f"{home}/screens" for word in words))
    os.kill(drawing, signal.SIGKILL)
    eventually(lambda: not is_alive(drawing))
    assert "here" in text(process_id)
    assert _find(lambda words: any(word == f"{home}/screens" for word in words)) != drawing


def _find(fits: Callable[[list[str]], bool]) -> int:
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                words = Path(f"/proc/{name}/cmdline").read_text().split("\0")
            except (OSError, UnicodeDecodeError):
                continue
            if fits(words):
                return int(name)
    raise AssertionError("no such process")


def test_what_has_no_screen() -> None:
    assert "has no terminal" in refusal("screen", start("sleep", "60"))
    assert "no process" in refusal("screen", "nobody")
    assert "unexpected argument" in refusal("screen", "a", "b")
