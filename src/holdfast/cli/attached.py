"""This terminal connected to that of a process: keys there, screen here, and the way back out."""

from __future__ import annotations

import os
import select
import time

from holdfast.cli import console
from holdfast.cli.outcomes import end_line, exit_status
from holdfast.cli.screen import RawTerminal, Undo, without_queries
from holdfast.cli.signals import SIGHUP, SIGINT, SIGTERM, SIGWINCH, Signals
from holdfast.client.interactive import InteractiveReading
from holdfast.errors import BadValue, NoTerminal, NotNow
from holdfast.model.units import LARGEST_WINDOW

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.client.process import Process
    from holdfast.client.sync import Client

DEFAULT_KEY = "ctrl-]"
#: How much of the output so far is shown when a terminal attaches.
_REPLAY = 64 << 10


def parse_key(text: str | None) -> bytes:
    """`ctrl-]` or `^]` -> the byte that the key sends; empty for `none`."""
    name = (text or DEFAULT_KEY).lower()
    if name == "none":
        return b""
    letter = name.removeprefix("ctrl-").removeprefix("^") if name.startswith(("ctrl-", "^")) else ""
    if len(letter) != 1 or not 0x40 <= ord(letter.upper()) < 0x60:
        raise BadValue(f"--detach-key cannot be {(text or '')[:80]!r}", next="write it as ctrl-], ctrl-a, … or none")
    return bytes([ord(letter.upper()) ^ 0x40])


def check_terminal() -> None:
    if not (os.isatty(0) and os.isatty(1)):
        raise NoTerminal(
            "stdin and stdout are no terminal", next="without one, use: holdfast logs -f ID, holdfast send ID"
        )


def check_process(process: Process) -> None:
    if process.status == "ended":
        raise NotNow(f"{process.id} has ended", next=f"holdfast logs {process.id}")
    if not process.pty:
        raise NoTerminal(
            f"{process.id} has no terminal", next=f"holdfast logs -f {process.id}, holdfast send {process.id}"
        )


def replay(client: Client, process: Process) -> tuple[bytes, int]:
    """The output of late, from the start of a line, and where it ends."""
    page = client.logs(process.id, bytes=_REPLAY)
    return without_queries(page.data), page.end


def attach(
    client: Client,
    process: Process,
    key: bytes,
    offset: int,
    accepted: int | None = None,
    shown: bytes = b"",
    consumes: bool = False,
) -> int:
    """Until the process ends or the key is pressed; the exit code for it. The terminal is as before afterwards.

    `consumes`: an owner session that sees the end here is not notified of it.
    """
    undo = Undo()
    with (
        InteractiveReading(
            client.open_link, process, {"out": offset}, accepted, answers=True, consumes=consumes
        ) as live,
        Signals(SIGWINCH, SIGTERM, SIGHUP, SIGINT) as signals,
        RawTerminal(0, undo),
    ):
        left_by = _Attached(live, signals, key, undo).run(shown)
    if live.ended is not None and live.is_over:
        console.say(end_line(live.ended))
        return exit_status(live.ended)
    console.say(f"detached; {process.id} goes on: holdfast attach {process.id}")
    return 128 + left_by if left_by else 0


class _Attached:
    def __init__(self, live: InteractiveReading, signals: Signals, key: bytes, undo: Undo) -> None:
        self._live = live
        self._signals = signals
        self._key = key
        self._undo = undo
        self._is_leaving = False

    def run(self, shown: bytes) -> int:
        """The signal that made us leave, or 0."""
        self._show(shown)
        self._resize(nudge=self._undo.is_full_screen)
        while not (self._live.is_over or self._is_leaving):
            ready = self._poll()
            for number in self._signals.take():
                if number != SIGWINCH:
                    return number
                self._resize()
            if 0 in ready:
                self._read_keys()
            self._live.push_input()
            if self._live.fileno() in ready:
                for piece in self._live.receive():
                    self._show(piece.data)
        return 0

    def _poll(self) -> list[int]:
        poll = select.poll()
        for fd in (self._live.fileno(), self._signals.fileno()):
            poll.register(fd, select.POLLIN)
        if self._live.input.can_take:
            poll.register(0, select.POLLIN)
        due = self._live.input.due_in(time.monotonic())
        return [fd for fd, _ in poll.poll(None if due is None else due * 1000 + 1)]

    def _show(self, data: bytes) -> None:
        if data:
            self._undo.feed(data)
            console.write(1, data)

    def _read_keys(self) -> None:
        try:
            keys = os.read(0, 4096)
        except OSError:  # the terminal is gone
            keys = b""
        before, found, _ = keys.partition(self._key) if self._key else (keys, b"", b"")
        self._is_leaving = bool(found) or not keys
        if before:
            self._live.input.add(before)

    def _resize(self, nudge: bool = False) -> None:
        """Send our size. With `nudge`, a full-screen program is made to draw itself anew even if that is the same."""
        try:
            cols, rows = os.get_terminal_size(1)
        except OSError:
            return
        if cols and rows:
            cols, rows = min(cols, LARGEST_WINDOW), min(rows, LARGEST_WINDOW)
            if nudge and rows > 1:
                self._live.resize(cols, rows - 1)
            self._live.resize(cols, rows)
