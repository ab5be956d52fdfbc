"""Calling the command line: with a result, with JSON, and on a terminal."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.support import eventually, run_cli


def out(*arguments: str, input: bytes | None = None) -> str:
    """What a call that must succeed prints."""
    done = run_cli(*arguments, input=input)
    assert done.returncode == 0, done
    return done.stdout.decode()


def as_json(*arguments: str, code: int = 0) -> Any:
    """The document that a call prints."""
    done = run_cli(*arguments)
    assert done.returncode == code, done
    return json.loads(done.stdout)


def start(*arguments: str) -> str:
    """The id of a process started in the background."""
    return out("run", "-d", *arguments).strip()


def refusal(*arguments: str, code: int = 125) -> str:
    """The line that a call which must fail says; nothing else, and no traceback."""
    done = run_cli(*arguments)
    said = done.stderr.decode()
    assert done.returncode == code, done
    assert said.startswith("holdfast: "), said
    assert said.count("\n") == 1, said
    assert "Traceback" not in said
    assert ". Next: " in said or "? Next: " in said
    return said


def until_output(process_id: str) -> None:
    """Until a process has written something."""
    eventually(lambda: as_json("inspect", "--json", process_id)["output_bytes"])


def until_waiting(pid: int) -> None:
    """Until a call waits for the daemon: it has a socket and no signal to handle, and sleeps on undisturbed."""
    seen: list[str | None] = []

    def is_restarting() -> bool:
        seen.append(waits_since(pid))
        return len(seen) >= 5 and seen[-1] is not None and len(set(seen[-5:])) == 1

    eventually(is_restarting, timeout=30.0, pause=0.02)


def waits_since(pid: int) -> str | None:
    """A number that changes whenever it was awake; None while it does not wait."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        names = [os.readlink(entry) for entry in Path(f"/proc/{pid}/fd").iterdir()]
    except OSError:
        return None
    fields = dict(line.split(":\t", 1) for line in lines if ":\t" in line)
    has_signals = int(fields["SigPnd"], 16) or int(fields["ShdPnd"], 16)
    if has_signals or not fields["State"].startswith("S") or not any(name.startswith("socket:") for name in names):
        return None
    return fields["voluntary_ctxt_switches"]


def _control_terminal() -> None:
    """Make stdin the controlling terminal, as in a shell: ^C is SIGINT, and closing it is SIGHUP."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


class Terminal:
    """`holdfast ARGUMENTS…` on a terminal of its own, with someone to type and to read."""

    def __init__(
        self, *arguments: str, cols: int = 100, rows: int = 30, whole: list[str] | None = None, env: Any = None
    ) -> None:
        """`whole`: another command, instead; `env`: another environment."""
        self._ours, self._theirs = pty.openpty()
        self._set_size(cols, rows)
        self._before = termios.tcgetattr(self._theirs)
        self.process = subprocess.Popen(
            whole or [sys.executable, "-m", "holdfast", *arguments],
            env={"TERM": "xterm-256color", **(os.environ if env is None else env)},
            stdin=self._theirs,
            stdout=self._theirs,
            stderr=self._theirs,
            start_new_session=True,
            preexec_fn=_control_terminal,
        )
        self._seen = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self._ours)
        os.close(self._theirs)

    @property
    def is_as_before(self) -> bool:
        """Whether the settings of the terminal are those it was given with."""
        return termios.tcgetattr(self._theirs) == self._before

    @property
    def is_raw(self) -> bool:
        return not termios.tcgetattr(self._theirs)[3] & termios.ICANON

    def see(self, text: str, timeout: float = 60.0) -> bytes:
        """Wait until `text` is on the screen; all up to it."""
        wanted = text.encode()
        until = time.monotonic() + timeout
        while wanted not in self._seen:
            left = max(0.0, until - time.monotonic())
            assert select.select([self._ours], [], [], left)[0], f"no {text!r} in {self._seen[-500:]!r}"
            self._seen += os.read(self._ours, 65536)
        upto, self._seen = self._seen.split(wanted, 1)
        return upto + wanted

    def rest(self, timeout: float = 15.0) -> str:
        """All that it still shows until it ends."""
        until = time.monotonic() + timeout
        while True:
            is_over = self.process.poll() is not None
            if select.select([self._ours], [], [], 0.0 if is_over else 0.05)[0]:
                self._seen += os.read(self._ours, 65536)
            elif is_over:
                break
            assert time.monotonic() < until, f"still running: {self._seen[-500:]!r}"
        shown, self._seen = self._seen, b""
        return shown.decode()

    def type(self, keys: bytes) -> None:
        os.write(self._ours, keys)

    def resize(self, cols: int, rows: int) -> None:
        self._set_size(cols, rows)
        self.process.send_signal(signal.SIGWINCH)

    def end(self, timeout: float = 15.0) -> int:
        return self.process.wait(timeout)

    def close(self) -> None:
        """Close the terminal, as its window does."""
        os.close(self._theirs)
        os.close(self._ours)
        self._theirs, self._ours = pty.openpty()

    def _set_size(self, cols: int, rows: int) -> None:
        fcntl.ioctl(self._theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))
