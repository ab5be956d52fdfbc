"""Connect this terminal to that of a process, detach again, and restore the terminal."""

from __future__ import annotations

import os
import re
import select
import termios
import time
import tty

from holdfast.cli import closed_terminals, console
from holdfast.cli.outcomes import end_line, exit_status
from holdfast.cli.terminal.signals import SIGHUP, SIGINT, SIGTERM, SIGWINCH, Signals
from holdfast.client.interactive import InteractiveReading
from holdfast.errors import BadValue, NoTerminal, NotNow, Unreachable
from holdfast.model.units import LARGEST_WINDOW

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Self

    from holdfast.client.process import Process
    from holdfast.client.sync import Client

DEFAULT_KEY = "ctrl-]"
#: A run that ends within this many seconds after ^C was ended by it.
_INTERRUPT_WINDOW = 2.0
_INTERRUPT_PAUSE_MS = 200
_CTRL_C = b"\x03"
#: Bytes of earlier output that are shown when a terminal attaches.
_REPLAY = 64 << 10

#: Queries to the terminal. Replayed, their answers would reach a process that no longer expects them.
_QUERIES = re.compile(
    rb"\x1b\[\??[56]n|\x1b\[[>=]?[0-9;]*c|\x1b\[\?[0-9;]+\$p|\x1b\[>[0-9]*q|\x1b\[(?:1[1-9]|2[01])t"
    rb"|\x1b\][0-9;]+;\?(?:\x07|\x1b\\)|\x1bP\+q[^\x1b]*\x1b\\|\x1bP\$q[^\x1b]*\x1b\\|\x05"
)
_MODE = re.compile(rb"\x1b\[\?([0-9;]+)([hl])")
_LONGEST_MODE = 64

_SCREENS = frozenset({b"47", b"1047", b"1049"})
#: Modes that are on by default: visible cursor, autowrap.
_ON_BY_DEFAULT = frozenset({b"25", b"7"})


def parse_key(text: str | None) -> bytes:
    """`ctrl-]` or `^]` -> the byte that the key sends; empty for `none`."""
    name = (text or DEFAULT_KEY).lower()
    if name == "none":
        return b""
    letter = name.removeprefix("ctrl-").removeprefix("^") if name.startswith(("ctrl-", "^")) else ""
    if len(letter) != 1 or not 0x40 <= ord(letter.upper()) < 0x60:
        raise BadValue(f"--detach-key cannot be {(text or '')[:80]!r}", next="write it as ctrl-], ctrl-a, … or none")
    return bytes([ord(letter.upper()) ^ 0x40])


def key_name(key: bytes) -> str:
    return f"ctrl-{chr(key[0] ^ 0x40).lower()}"


def check_terminal() -> None:
    if not (os.isatty(0) and os.isatty(1)):
        raise NoTerminal(
            "stdin and stdout are not a terminal", next="without one, use: holdfast logs -f ID, holdfast send ID"
        )


def check_process(process: Process) -> None:
    if process.status == "ended":
        raise NotNow(f"{process.id} has ended", next=f"holdfast logs {process.id}")
    if not process.pty:
        raise NoTerminal(
            f"{process.id} has no terminal", next=f"holdfast logs -f {process.id}, holdfast send {process.id}"
        )


def replay(client: Client, process: Process) -> tuple[bytes, int]:
    """The last output, from the start of a line, and its end offset."""
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
    """Until the process ends or the detach key is pressed; returns the exit code. The terminal is always restored.

    `consumes`: it is a foreground run: an owner session that sees the end here is not notified of it, and ^C that ends
    a run ends the process for good.
    """
    undo = Undo()
    console.say(
        f"{key_name(key)} detaches and leaves it running" if key else "no key detaches; it ends with its command"
    )
    interrupts = _Interrupts(client, process) if consumes and process.restart not in (None, "never") else None
    try:
        with (
            InteractiveReading(
                client.open_link, process, {"out": offset}, accepted, answers=True, consumes=consumes
            ) as live,
            Signals(SIGWINCH, SIGTERM, SIGHUP, SIGINT) as signals,
            RawTerminal(0, undo),
        ):
            left_by = _Attached(live, signals, key, undo, interrupts).run(shown)
    except Unreachable as failed:
        what = f"{failed.message}; detached, {process.id} is left running"
        raise Unreachable(what, next=f"holdfast attach {process.id}") from failed
    if live.ended is not None and live.is_over:
        console.say(end_line(live.ended))
        return exit_status(live.ended)
    if consumes and (left_by == SIGHUP or not os.isatty(0)):
        closed_terminals.record(client, process)
        return 128 + SIGHUP
    console.say(f"detached; {process.id} still runs: holdfast attach {process.id}")
    return 128 + left_by if left_by else 0


class _Interrupts:
    """Whether ^C has ended a run of a process that is restarted. The program may also go on: ^C is its own key."""

    def __init__(self, client: Client, process: Process) -> None:
        self._client = client
        self._id = process.id
        self._restarts: int | None = None
        self._until = 0.0

    def note(self) -> None:
        """^C was pressed."""
        self._restarts = self._client.inspect(self._id).restarts
        self._until = time.monotonic() + _INTERRUPT_WINDOW

    @property
    def is_pending(self) -> bool:
        return time.monotonic() < self._until

    def ended_a_run(self) -> bool:
        """Once for each ^C."""
        if not self.is_pending:
            return False
        now = self._client.inspect(self._id)
        if now.restart_at is None and now.restarts == self._restarts:
            return False
        self._until = 0.0
        return True


class _Attached:
    def __init__(
        self, live: InteractiveReading, signals: Signals, key: bytes, undo: Undo, interrupts: _Interrupts | None
    ) -> None:
        self._live = live
        self._signals = signals
        self._key = key
        self._undo = undo
        self._interrupts = interrupts
        self._is_leaving = False
        self._has_trouble = False

    def run(self, shown: bytes) -> int:
        """The signal that ended it, or 0."""
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
            if self._interrupts is not None and self._interrupts.ended_a_run():
                self._live.stop()
            self._live.push_input()
            if self._live.fileno() in ready:
                for piece in self._live.receive():
                    self._show(piece.data)
            self._say_trouble()
        return 0

    def _say_trouble(self) -> None:
        """Once for each time that the place does not answer. A size that was sent meanwhile is sent again."""
        trouble, had_trouble = self._live.input.trouble, self._has_trouble
        self._has_trouble = trouble is not None
        if trouble is not None and not had_trouble:
            console.write(1, b"\r\n")
            console.say(f"{trouble}; still attached, what you type from now on is sent when it answers")
            console.write(1, b"\r")
        elif had_trouble and trouble is None:
            self._resize()

    def _poll(self) -> list[int]:
        poll = select.poll()
        for fd in (self._live.fileno(), self._signals.fileno()):
            poll.register(fd, select.POLLIN)
        if self._live.input.can_take:
            poll.register(0, select.POLLIN)
        due = self._live.input.due_in(time.monotonic())
        timeout = None if due is None else due * 1000 + 1
        if self._interrupts is not None and self._interrupts.is_pending:
            timeout = min(timeout or _INTERRUPT_PAUSE_MS, _INTERRUPT_PAUSE_MS)
        return [fd for fd, _ in poll.poll(timeout)]

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
        if _CTRL_C in before and self._interrupts is not None:
            self._interrupts.note()

    def _resize(self, nudge: bool = False) -> None:
        """Send the size of this terminal. With `nudge`, a full-screen program draws itself again in any case."""
        try:
            cols, rows = os.get_terminal_size(1)
        except OSError:
            return
        if cols and rows:
            cols, rows = min(cols, LARGEST_WINDOW), min(rows, LARGEST_WINDOW)
            if nudge and rows > 1:
                self._live.resize(cols, rows - 1)
            self._live.resize(cols, rows)


def without_queries(data: bytes) -> bytes:
    return _QUERIES.sub(b"", data)


class Undo:
    """Records the terminal modes that a process changes, to restore them. No I/O."""

    def __init__(self) -> None:
        self._changed: set[bytes] = set()
        self._tail = b""

    @property
    def is_full_screen(self) -> bool:
        return bool(self._changed & _SCREENS)

    def feed(self, data: bytes) -> None:
        seen = self._tail + data
        self._tail = seen[-_LONGEST_MODE:]
        for modes, switch in _MODE.findall(seen):
            for mode in modes.split(b";"):
                if (switch == b"h") != (mode in _ON_BY_DEFAULT):
                    self._changed.add(mode)
                else:
                    self._changed.discard(mode)

    def bytes(self) -> bytes:
        """The bytes that restore the terminal: modes, colours, character set."""
        resets = [b"\x1b[?%s%s" % (mode, b"h" if mode in _ON_BY_DEFAULT else b"l") for mode in sorted(self._changed)]
        return b"".join(resets) + b"\x1b[0m\x1b(B\x1b>\r\n"


class RawTerminal:
    """The terminal in raw mode for as long as the block lasts."""

    def __init__(self, fd: int, undo: Undo) -> None:
        self._fd = fd
        self._undo = undo

    def __enter__(self) -> Self:
        self._before = termios.tcgetattr(self._fd)
        tty.setraw(self._fd, termios.TCSADRAIN)
        return self

    def __exit__(self, *_: object) -> None:
        if not os.isatty(self._fd):
            return  # it was closed
        try:
            console.write(1, self._undo.bytes())
        finally:
            termios.tcsetattr(self._fd, termios.TCSADRAIN, self._before)
