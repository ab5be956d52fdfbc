"""The real command in a real terminal: `holdfast tui` in tmux, killed and opened again."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import holdfast
from tests.agent.endpoint import Endpoint, Say, call
from tests.agent.stage import Conversation
from tests.support import eventually, never, run_cli

pytestmark = pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")

_ENDED = "failed (exit code 7)"


class Terminal:
    """A terminal of 80 by 24 in which the UI runs."""

    def __init__(self, directory: Path) -> None:
        self._socket = str(directory / "tmux")

    def _tmux(self, *words: str) -> str:
        done = subprocess.run(
            ["tmux", "-S", self._socket, "-f", "/dev/null", *words],
            capture_output=True,
            text=True,
            timeout=20,
            check=False,
        )
        return done.stdout

    def open(self, *options: str) -> int:
        """Starts the UI; its pid."""
        command = [sys.executable, "-m", "holdfast", "tui", *options]

        def opened() -> int:
            self._tmux("new-session", "-d", "-x", "80", "-y", "24", *command)
            return int(self._tmux("list-panes", "-F", "#{pane_pid}") or 0)

        return eventually(opened)  # a server that just ends takes no session

    def press(self, *keys: str) -> None:
        for key in keys:
            self._tmux("send-keys", key)

    def write(self, text: str) -> None:
        self._tmux("send-keys", "-l", text)

    @property
    def text(self) -> str:
        return self._tmux("capture-pane", "-p")

    def until(self, condition: Callable[[str], object], timeout: float = 60.0) -> None:
        try:
            eventually(lambda: condition(self.text), timeout=timeout, pause=0.1)
        except AssertionError:
            raise AssertionError(f"the screen:\n{self.text}") from None

    def sees(self, *parts: str, timeout: float = 60.0) -> None:
        self.until(lambda text: all(part in text for part in parts), timeout)

    def close(self) -> None:
        self._tmux("kill-server")


@pytest.fixture
def terminal(home: Path, tmp_path: Path) -> Iterator[Terminal]:
    terminal = Terminal(tmp_path)
    yield terminal
    terminal.close()


def test_a_notice_is_in_its_session_alone_also_when_the_ui_was_killed_before_the_end(
    home: Path, endpoint: Endpoint, terminal: Terminal, tmp_path: Path
) -> None:
    go = tmp_path / "go"
    job = f"until [ -e {go} ]; do sleep 0.05; done; exit 7"
    a, b = Conversation(home, "A"), Conversation(home, "B")
    b.set(model="b")
    endpoint.script(
        call("terminal", command=job, background=True, notify_on_complete=True),
        Say("it runs now"),
        Say("A saw the end"),
    )
    endpoint.script(Say("hello from B"), model="b")
    a.set(model="m")
    pid = terminal.open()
    terminal.sees(" A ", " B ")
    terminal.press("2")
    terminal.sees("A · m")
    terminal.write("start it")
    terminal.press("Enter")
    terminal.sees("it runs now")
    terminal.press("F3")
    terminal.sees("B · b")
    terminal.write("hi")
    terminal.press("Enter")
    terminal.sees("hello from B", "idle")
    os.kill(pid, signal.SIGKILL)
    go.touch()
    a.ended(2)
    terminal.open()
    terminal.sees(" A ", " B ")
    terminal.press("3")
    terminal.sees("> hi", "hello from B")
    assert _ENDED not in terminal.text
    terminal.press("F2")
    terminal.sees("> start it", _ENDED, "A saw the end")
    assert terminal.text.count(_ENDED) == 1
    never(lambda: len(a.of("notice")) != 1 or b.of("notice"), within=0.5)
    assert not any(_ENDED in str(body) for body in endpoint.asked_of("b"))


def test_a_shell_in_the_ui_in_a_terminal(home: Path, terminal: Terminal) -> None:
    with holdfast.connect() as client:
        client.run(["bash", "--norc"], name="shell", pty=True, env={"PS1": "$ "})
    terminal.open("--theme", "light")
    terminal.sees("● running", "shell")
    terminal.press("t")
    terminal.sees("you type into it")
    terminal.write("stty size; echo $((40+2))!")
    terminal.press("Enter")
    terminal.sees("21 80", "42!")
    terminal.write("vi -u NONE notes; clear") if shutil.which("vi") else terminal.write("clear")
    terminal.press("C-c", "C-]")
    terminal.sees("t types into it")
    terminal.press("Escape")
    terminal.sees("enter open")
    terminal.press("C-q")
    terminal.until(lambda text: "enter open" not in text)


def test_without_a_terminal_it_says_what_to_use(home: Path) -> None:
    done = run_cli("tui")
    assert done.returncode == 125
    assert b"not a terminal" in done.stderr and b"holdfast ps" in done.stderr


def test_without_textual_it_says_how_to_install_it(home: Path, terminal: Terminal, tmp_path: Path) -> None:
    out = tmp_path / "out"
    script = (
        "import sys, importlib.util as util; found = util.find_spec\n"
        "util.find_spec = lambda name, *more: None if name == 'textual' else found(name, *more)\n"
        "from holdfast.cli.entry import main; sys.argv = ['holdfast', 'tui']; main()"
    )
    terminal._tmux("new-session", "-d", f"{sys.executable} -c {_quoted(script)} 2> {out}; sleep 100")
    eventually(lambda: out.exists() and b"[tui]" in out.read_bytes())
    assert b"textual is not installed" in out.read_bytes()


def _quoted(text: str) -> str:
    import shlex

    return shlex.quote(text)
