"""A process in the foreground: shows its output, and passes on input and signals."""

from __future__ import annotations

import os
import select
import time

from holdfast.cli import console
from holdfast.cli.outcomes import end_line, exit_status
from holdfast.cli.signals import SIGINT, SIGTERM, Signals
from holdfast.client.interactive import InteractiveReading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.client.link import Output
    from holdfast.client.process import Process
    from holdfast.client.sync import Client

#: A second ^C within this many seconds kills the process.
_KILL_WINDOW = 2.0
_INTERRUPTED = 130
_BROKEN_PIPE = 141
_FD = {"out": 1, "err": 2}


def show_output(piece: Output) -> None:
    console.write(_FD[piece.stream], piece.data)


def watch(client: Client, process: Process, forward_input: bool, show: Callable[[Output], None] = show_output) -> int:
    """Show a process that was just started until it has ended; returns the exit code."""
    streams = ("out", "err") if process.split else ("out",)
    with (
        InteractiveReading(client.open_link, process, dict.fromkeys(streams, 0), accepted=0, consumes=True) as live,
        Signals(SIGINT, SIGTERM) as signals,
    ):
        try:
            return _Foreground(live, signals, process, forward_input, show).run()
        except BrokenPipeError:
            console.say(f"stdout was closed; {process.id} still runs: holdfast kill {process.id}")
            return _BROKEN_PIPE


class _Foreground:
    def __init__(
        self,
        live: InteractiveReading,
        signals: Signals,
        process: Process,
        forward_input: bool,
        show: Callable[[Output], None],
    ) -> None:
        self._live = live
        self._signals = signals
        self._process = process
        self._reads_stdin = forward_input
        self._show = show
        self._interrupts: list[float] = []

    def run(self) -> int:
        while not self._live.is_over:
            ready = self._poll()
            for number in self._signals.take():
                if not self._pass_on(number):
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
