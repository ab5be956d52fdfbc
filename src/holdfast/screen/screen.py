"""The terminal of one process, kept up to date from its log."""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Callable

from holdfast.logs.reader import CHUNK, Log
from holdfast.records import Struct, field
from holdfast.screen.emulator import Emulator, Picture, Unusable
from holdfast.screen.marks import ResizeMark, next_cut, size_at

#: As much is fed at a time; then other terminals get their turn.
SLICE = 1 << 20
#: An emulator that is farther behind skips output, and goes on near the end of the log.
FARTHEST = 32 << 20
_TAIL = 4 << 20
#: After so much output the state is saved, so that a new emulator has little to catch up with.
_SNAPSHOT_EVERY = 256 << 10
#: More lines than a terminal has, and as many as it remembers.
_LINES = 2000
_DEFAULT = 120, 30
_LONGEST_MARGINS = 64
#: Aborts an escape sequence that was cut off.
_CANCEL = b"\x18"
_FORMAT = 1
#: What makes bytes more than printable text and line ends: C0 but tab, newline and carriage return, DEL, and the lead
#: byte of C1 in UTF-8.
_SPECIAL = bytes(n for n in range(32) if n not in (9, 10, 13)) + b"\x7f\xc2"
#: What may set margins: with them lines do not simply scroll out at the top.
_MARGINS = re.compile(rb"\x1b\[[0-9;]*[rs]|\x1b\[\?[0-9;]*69|\xc2\x9b")


class ScreenRequest(Struct, frozen=True):
    """Where the terminal changed, and from where on its replies count."""

    resizes: list[ResizeMark]
    handled: int = 0
    cuts: list[int] = field(default_factory=list)


class Emulators(Struct, frozen=True):
    """How emulators are created. They can read snapshots of the same `version`."""

    version: str
    new: Callable[[int, int], Emulator]
    restored: Callable[[bytes], Emulator]


class TerminalScreen:
    def __init__(self, emulators: Emulators, place: str, process_id: str, path: str) -> None:
        self._emulators = emulators
        self._log = Log(place, process_id, "out")
        self._path = path
        self._emulator: Emulator | None = None
        self._size: tuple[int, int] | None = None
        self._has_margins = False
        self._tail = b""
        self._kept = 0
        #: How far the output has been fed.
        self.at = 0
        #: Output before this byte was left out; None when none was.
        self.gap: int | None = None
        self._replies: list[tuple[int, bytes]] = []
        self._restore()

    def advance(self, request: ScreenRequest) -> bool:
        """Feed some of the output that is there; whether there is more."""
        first, end = self._log.extent()
        if 0 < end < self.at:  # another log than before
            self._forget_all()
        if end - self.at > FARTHEST or first > self.at:
            self._leap(max(first, end - _TAIL if end - self.at > FARTHEST else first))
        upto = min(end, self.at + SLICE)
        self._feed(request, upto)
        if (
            self.at - self._kept >= _SNAPSHOT_EVERY and not self._replies
        ):  # replies that were not taken yet would be lost
            with contextlib.suppress(OSError):  # a full disk: there is more to catch up with later
                self.keep()
        return self.at < end

    def take_replies(self) -> list[tuple[int, bytes]]:
        """The terminal's replies, each with the byte that its query lies before."""
        replies, self._replies = self._replies, []
        return replies

    def picture(self, request: ScreenRequest, ansi: bool) -> Picture:
        return self._sized(request).picture(ansi)

    def keep(self) -> None:
        """Save its state."""
        if self._emulator is None or self._kept == self.at:
            return
        head = {
            "format": _FORMAT,
            "version": self._emulators.version,
            "at": self.at,
            "gap": self.gap,
            "margins": self._has_margins,
        }
        temporary = f"{self._path}.new"
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with open(fd, "wb") as file:
            file.write(json.dumps(head).encode() + b"\n" + self._emulator.snapshot())
        os.rename(temporary, self._path)
        self._kept = self.at

    def close(self) -> None:
        self._log.close()
        self._drop_emulator()

    def _feed(self, request: ScreenRequest, upto: int) -> None:
        while self.at < upto:
            offsets = (resize.offset for resize in request.resizes)
            cut = next_cut(self.at, upto, offsets, request.cuts, [request.handled])
            chunk = self._log.read(self.at, min(CHUNK, cut - self.at))
            if not chunk.data:
                return
            if chunk.offset > self.at:  # dropped meanwhile
                self._leap(chunk.offset)
                continue
            self._feed_piece(self._sized(request), chunk.data)
            self.at = chunk.end
            replies = self._sized(request).take_replies()
            if self.at > request.handled:
                self._replies += [(self.at, reply) for reply in replies]

    def _feed_piece(self, emulator: Emulator, data: bytes) -> None:
        if len(data) > _LINES and not self._has_margins and emulator.is_between_sequences and is_plain(data):
            data = shown_end(data, _LINES)
        elif not self._has_margins:
            self._has_margins = may_set_margins(self._tail + data)
            self._tail = data[-_LONGEST_MARGINS:]
        emulator.feed(data)

    def _leap(self, offset: int) -> None:
        """Skip to this byte, or the next start of a line, with what is on the screen now."""
        chunk = self._log.read(offset)
        line = chunk.data.find(b"\n") + 1
        self.at = self.gap = chunk.offset + line
        if self._emulator is not None:
            self._emulator.feed(_CANCEL)

    def _sized(self, request: ScreenRequest) -> Emulator:
        size = size_at(request.resizes, self.at) or _DEFAULT
        if self._emulator is None:
            self._emulator = self._emulators.new(*size)
            self._size = size
        elif size != self._size:
            self._emulator.resize(*size)
            self._size = size
        return self._emulator

    def _restore(self) -> None:
        """Start from the snapshot, if there is one that can be read."""
        try:
            with open(self._path, "rb") as file:
                head = json.loads(file.readline())
                body = file.read()
        except (OSError, ValueError):
            return
        with contextlib.suppress(Unusable, KeyError, TypeError):
            if head["format"] != _FORMAT or head["version"] != self._emulators.version:
                return
            self._emulator, self._size = self._emulators.restored(body), None
            self.at, self.gap, self._has_margins = int(head["at"]), head["gap"], bool(head["margins"])
            self._kept = self.at

    def _forget_all(self) -> None:
        self._drop_emulator()
        self.at = self._kept = 0
        self.gap, self._has_margins = None, False

    def _drop_emulator(self) -> None:
        emulator, self._emulator = self._emulator, None
        if emulator is not None:
            emulator.close()


def may_set_margins(data: bytes) -> bool:
    return b"\x1b" in data and _MARGINS.search(data) is not None


def is_plain(data: bytes) -> bool:
    return len(data.translate(None, _SPECIAL)) == len(data)


def shown_end(data: bytes, lines: int) -> bytes:
    """The end of plain text, from the start of a line, that leaves a terminal of at most `lines` lines as all of it.

    All of it where there is no such place. Only for a terminal without margins, between two sequences.
    """
    at = len(data)
    for _ in range(lines):
        at = data.rfind(b"\n", 0, at)
        if at < 0:
            return data
    cut = data.rfind(b"\r\n", 0, at)
    return data[cut + 2 :] if cut >= 0 else data
