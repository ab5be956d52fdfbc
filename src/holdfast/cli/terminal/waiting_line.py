"""A line on the terminal while a call waits: for how long, and for what; and a bell at the end of a long wait."""

from __future__ import annotations

import os
import time
from _thread import allocate_lock, start_new_thread

from holdfast.cli import console
from holdfast.cli.watcher import Watcher
from holdfast.errors import HoldfastError
from holdfast.model.units import age_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Self

    from holdfast.client.process import Process
    from holdfast.client.sync import Client

#: Seconds between two draws; a shorter wait shows nothing.
_PAUSE = 1.0
#: A wait of more seconds ends with a bell. HOLDFAST_BELL overrides it; 0 or another text is no bell.
_BELL_AFTER = 10.0
_CLEAR = b"\r\x1b[K"
_NAMED = 3


class WaitingLine:
    """Drawn on stderr every second while the block lasts, and cleared at its end. `describe` says what is awaited.

    Only on a terminal that can draw, and never with --json (`is_wanted`). A failure of `describe` shows nothing.
    """

    def __init__(self, describe: Callable[[], str], is_wanted: bool) -> None:
        self._describe = describe
        self._is_on = is_wanted and os.isatty(2) and os.environ.get("TERM", "dumb") not in ("", "dumb")
        self._lock = allocate_lock()
        self._is_over = False
        self._is_drawn = False

    def __enter__(self) -> Self:
        self._began = time.monotonic()
        if self._is_on:
            start_new_thread(self._draw, ())
        return self

    def __exit__(self, failed: object, *_: object) -> None:
        with self._lock:
            self._is_over = True
            if self._is_drawn:
                self._write(_CLEAR)
        if self._is_on and failed is None and 0 < _bell_after() <= time.monotonic() - self._began:
            self._write(b"\a")

    def _draw(self) -> None:
        while True:
            time.sleep(_PAUSE)
            try:
                what = self._describe()
            except (HoldfastError, OSError):
                what = ""
            with self._lock:
                if self._is_over:
                    return
                if not _is_in_foreground():
                    continue  # a job in the background leaves the line to the shell
                waited = age_text(time.monotonic() - self._began)
                line = console.visible(f"holdfast: {waited}, waiting for {what}" if what else f"holdfast: {waited}")
                self._is_drawn = True
                self._write(_CLEAR + console.shortened(line, _columns() - 1).encode(errors="backslashreplace"))

    def _write(self, data: bytes) -> None:
        try:
            console.write(2, data)
        except OSError:
            self._is_on = False


def awaited(client: Client, names: Sequence[str], until: str) -> str:
    """Those that are still awaited, and the last line of the output of the first of them."""
    with Watcher(client.session) as watcher:
        left = [process for process in map(watcher.inspect, names) if _is_awaited(process, until)]
        if not left:
            return ""
        lines = watcher.logs(left[0].id, lines=1).text.strip().split("\n")
    shown = ", ".join(process.name or process.id for process in left[:_NAMED])
    more = f" and {len(left) - _NAMED} others" if len(left) > _NAMED else ""
    of = f" ({len(names) - len(left)} of {len(names)} done)" if len(names) > 1 else ""
    return f"{shown}{more}{of}" + (f": {lines[-1]}" if lines[-1] else "")


def _is_awaited(process: Process, until: str) -> bool:
    return process.status != "ended" and not (until == "ready" and process.ready)


def _is_in_foreground() -> bool:
    try:
        return os.tcgetpgrp(2) == os.getpgrp()
    except OSError:  # it is not the terminal of this session
        return True


def _columns() -> int:
    try:
        return os.get_terminal_size(2).columns or 80
    except OSError:
        return 80


def _bell_after() -> float:
    try:
        return float(os.environ.get("HOLDFAST_BELL", _BELL_AFTER))
    except ValueError:
        return 0.0
