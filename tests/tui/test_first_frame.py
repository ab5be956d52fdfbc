"""The first frame: real content, before the libraries of the UI are imported; what is typed meanwhile is not lost."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

import holdfast
from holdfast.client.process import Process
from holdfast.tui.first_frame import FirstFrame, frame
from tests.cli.calling import Terminal

_ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_DRAW = """
import sys, time
from holdfast.tui.first_frame import FirstFrame
first = FirstFrame("dark")
first.begin()
while not first._found:
    time.sleep(0.01)
costly = {"textual", "rich.console", "asyncio"} & set(sys.modules)
print("\\n", [one.name for one in first.end()], *sorted(costly), "that is all")
"""


def _process(number: int, **fields: object) -> Process:
    given = {"id": f"proc_{number}", "command": "true", "session": "s", "status": "running", "started_at": 1.0}
    return Process({**given, **fields})


def test_the_processes_are_drawn_before_any_library_of_the_ui_is_imported(home: Path) -> None:
    with holdfast.connect(session="one") as client:
        client.run("sleep 1000", name="sleeper")
    with Terminal(whole=[sys.executable, "-c", _DRAW]) as terminal:
        shown = terminal.see("that is all").decode()
    assert "1 running · holdfast" in shown and "● running" in shown and "enter open" in shown
    assert "['sleeper'] that is all" in shown


@pytest.mark.parametrize(("width", "height"), [(80, 24), (20, 5), (200, 60), (10, 1)])
@pytest.mark.parametrize("colours", ["truecolor", ""])
def test_it_fills_the_terminal_and_not_more(
    monkeypatch: pytest.MonkeyPatch, width: int, height: int, colours: str
) -> None:
    monkeypatch.setenv("COLORTERM", colours)
    monkeypatch.delenv("NO_COLOR", raising=False)
    many = [_process(n, name=f"name{n}", command="x" * 300) for n in range(100)]
    for found in ([], many):
        shown = frame(found, width, height, "light")
        assert ("\x1b[48;2;" in shown) == bool(colours)
        lines = _ESCAPE.sub("", shown).split("\r\n")
        assert len(lines) == height
        assert max(map(len, lines)) <= width


def test_names_cannot_draw_on_the_terminal() -> None:
    hostile = _process(
        1, name="a\x1b[2Jb\x07", command="x\n\x1b]0;title\x07y\u202e", session="s\x9b31m", needs_input={}
    )
    shown = frame([hostile, _process(2, needs_input={"prompt": "\x1b[2Jsure?"})], 80, 24, "dark")
    assert _ESCAPE.sub("", shown.replace("\x1b[?25l\x1b[H", "")).replace("\r\n", "").isprintable()
    assert "\x1b[2J" not in shown


def test_nothing_is_drawn_when_the_ui_draws_itself(home: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    first = FirstFrame("dark")
    assert first.end() is None
    first._run()
    assert capfdbinary.readouterr().out == b""


def test_keys_that_come_before_the_ui_are_kept_for_it_and_not_drawn(home: Path) -> None:
    with holdfast.connect(session="one") as client:
        client.run("sleep 1000", name="xylophone")
        client.run("sleep 1000", name="other")
    with Terminal("tui") as terminal:
        terminal.see("connecting")
        terminal.type(b"G\r")
        before = terminal.see("\x1b[?1000h", timeout=60.0)
        assert b"G" not in before
        terminal.see("following", timeout=60.0)
        terminal.type(b"\x11")
        assert terminal.process.wait(timeout=30) == 0
        assert terminal.is_as_before
