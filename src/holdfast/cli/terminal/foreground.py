"""A process in the foreground: shows its output, and passes on input and signals."""

from __future__ import annotations

import os
import select
import time

from holdfast.cli import closed_terminals, console
from holdfast.cli.closed_terminals import way_back
from holdfast.cli.outcomes import end_line, exit_status
from holdfast.cli.terminal.signals import SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, Signals, is_default
from holdfast.client.interactive import InteractiveReading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

    from holdfast.client.link import Output
    from holdfast.client.process import Process
    from holdfast.client.sync import Client

#: A second ^C within this many seconds kills the process.
_KILL_WINDOW = 2.0
_INTERRUPTED = 130
_HUNG_UP = 129
_BROKEN_PIPE = 141
_EIO = 5
_FD = {"out": 1, "err": 2}


def show_output(piece: Output) -> None:
    console.write(_FD[piece.stream], piece.data)


def watch(
    client: Client,
    process: Process,
    forward_input: bool,
    show: Callable[[Output], None] = show_output,
    detach_key: bytes = b"",
) -> int:
    """Show a process that was just started until it has ended; returns the exit code.

    It is left running when the detach key is pressed (empty: no key), and when the terminal is closed.
    """
    streams = ("out", "err") if process.split else ("out",)
    caught = [SIGINT, SIGTERM, *((SIGHUP,) if is_default(SIGHUP) else ()), *((SIGQUIT, SIGCONT) if detach_key else ())]
    with (
        InteractiveReading(client.open_link, process, dict.fromkeys(streams, 0), accepted=0, consumes=True) as live,
        Signals(*caught) as signals,
        DetachKey(detach_key) as key,
    ):
        try:
            return _Foreground(live, signals, process, forward_input, _WithGaps(show), key).run()
        except BrokenPipeError:
            console.say(f"stdout was closed; {process.id} still runs: holdfast kill {process.id}")
            return _BROKEN_PIPE
        except TerminalClosed:
            closed_terminals.record(client, process)
            return _HUNG_UP
        except OSError as failed:
            if failed.errno != _EIO or live.is_over:
                raise
            closed_terminals.record(client, process)
            return _HUNG_UP


class _WithGaps:
    """Shows output from the first byte on, and says where some was dropped before it was read."""

    def __init__(self, show: Callable[[Output], None]) -> None:
        self._show = show
        self._ends: dict[str, int] = {}

    def __call__(self, piece: Output) -> None:
        start = self._ends.get(piece.stream, 0)
        self._ends[piece.stream] = piece.end
        if piece.offset > start:
            console.say_dropped(start, piece.offset, piece.offset)
        self._show(piece)


class TerminalClosed(Exception):
    """The terminal of this call is gone; the process goes on."""


class DetachKey:
    """In this block the key sends SIGQUIT, as ctrl-\\ does otherwise. ^C, editing and typing ahead stay as they are.

    The terminal of a job in the background is left alone: changing it would stop the job.
    """

    def __init__(self, key: bytes) -> None:
        self._key = key
        #: The special characters of the terminal before.
        self._before: list[bytes] | None = None

    def __enter__(self) -> Self:
        self.set()
        return self

    def __exit__(self, *_: object) -> None:
        if self._before is not None:
            self._change(self._before)

    def set(self) -> None:
        """Also after the job was stopped and continued: the shell has restored the terminal."""
        if self._key:
            self._before = self._change(None) or self._before

    def _change(self, to: list[bytes] | None) -> list[bytes] | None:
        """Set these special characters, or the key. Returns those before; None if nothing was changed."""
        import termios

        try:
            modes = termios.tcgetattr(0)
            before: list[bytes] = modes[6]
            is_set = before[termios.VQUIT] == self._key
            if os.tcgetpgrp(0) != os.getpgrp() or is_set != (to is not None):
                return None
            if to is None:
                to = [b"\0" if value == self._key else value for value in before]  # the key has one meaning
                to[termios.VMIN], to[termios.VTIME] = before[termios.VMIN], before[termios.VTIME]
                to[termios.VQUIT] = self._key
            modes[6] = to
            termios.tcsetattr(0, termios.TCSANOW, modes)
        except (OSError, termios.error):
            return None
        return before


class _Foreground:
    def __init__(
        self,
        live: InteractiveReading,
        signals: Signals,
        process: Process,
        forward_input: bool,
        show: Callable[[Output], None],
        key: DetachKey,
    ) -> None:
        self._live = live
        self._signals = signals
        self._process = process
        self._reads_stdin = forward_input
        self._show = show
        self._key = key
        self._is_terminal = os.isatty(0)
        self._interrupts: list[float] = []

    def run(self) -> int:
        while not self._live.is_over:
            ready = self._poll()
            for number in self._signals.take():
                if number == SIGCONT:
                    self._key.set()
                elif number == SIGHUP:
                    raise TerminalClosed
                elif number == SIGQUIT:
                    console.write(2, b"\n")
                    console.say(f"detached; {self._process.id} still runs: {way_back(self._process)}")
                    return 0
                elif not self._pass_on(number):
                    return _INTERRUPTED
            if 0 in ready:
                self._read_stdin()
            self._live.push_input()
            if self._live.fileno() in ready:
                for piece in self._live.receive():
                    self._show(piece)
        assert self._live.ended is not None
        if self._live.ended.reason == "deadline":
            console.say(f"ended at its deadline: {end_line(self._live.ended)}")
        if self._live.ended.reason == "oom":
            console.say(f"ended because its memory limit was reached: {end_line(self._live.ended)}")
        return exit_status(self._live.ended)

    def _poll(self) -> list[int]:
        poll = select.poll()
        poll.register(self._live.fileno(), select.POLLIN)
        poll.register(self._signals.fileno(), select.POLLIN)
        if self._reads_stdin and self._live.input.can_take:
            poll.register(0, select.POLLIN)
        due = self._live.input.due_in(time.monotonic())
        return [fd for fd, _ in poll.poll(None if due is None else due * 1000 + 1)]

    def _read_stdin(self) -> None:
        try:
            data = os.read(0, 64 << 10)
        except BlockingIOError:
            return
        except OSError:  # the terminal was closed, or this is a background job
            data = b""
        if data:
            self._live.input.add(data)
        elif self._is_terminal and not os.isatty(0):
            raise TerminalClosed  # this is no ^D
        else:
            self._reads_stdin = False
            self._live.input.add_eof()

    def _pass_on(self, number: int) -> bool:
        """Pass a signal on to the process. A second ^C kills it; False after a third: do not wait for the end.

        A process that would be restarted is ended for good instead.
        """
        restarts = self._process.restart not in (None, "never")
        if number != SIGINT:
            self._live.stop() if restarts else self._live.signal(number)
            return True
        now = time.monotonic()
        self._interrupts = [at for at in self._interrupts if now - at < _KILL_WINDOW] + [now]
        if len(self._interrupts) == 1 and not restarts:
            self._live.signal(number)
        elif len(self._interrupts) == 1:
            self._live.stop()
        elif len(self._interrupts) == 2:
            self._live.force()
        else:
            console.say(f"{self._process.id} is being ended; no longer waiting: holdfast wait {self._process.id}")
            return False
        return True
