"""The terminal of one process, brought up to date from its log."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable
from dataclasses import dataclass, field

from holdfast.logs.reader import CHUNK, Log
from holdfast.screen import plain
from holdfast.screen.emulator import Emulator, Picture, Unusable
from holdfast.screen.sizes import Resize, next_cut, size_at

#: As much is fed in one go; then others get their turn.
SLICE = 1 << 20
#: Farther behind than this, the emulator does not follow byte by byte but goes on with the end of the log.
FARTHEST = 32 << 20
_TAIL = 4 << 20
#: After so much output the state is written down, so that a new emulator has little to catch up with.
_SNAPSHOT_EVERY = 256 << 10
#: More lines than a terminal has, and as many as it remembers.
_LINES = 2000
_DEFAULT = 120, 30
_LONGEST_MARGINS = 64
#: Aborts a sequence that was cut off.
_CANCEL = b"\x18"
_FORMAT = 1


@dataclass(frozen=True, slots=True)
class Wanted:
    """Where a terminal changed, and from where on its replies count."""

    resizes: list[Resize]
    handled: int = 0
    cuts: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Emulators:
    """How emulators come into being. `version` tells which snapshots they can read."""

    version: str
    new: Callable[[int, int], Emulator]
    restored: Callable[[bytes], Emulator]


class Screen:
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

    def advance(self, wanted: Wanted) -> bool:
        """Feed some of the output that is there; whether there is more."""
        first, end = self._log.extent()
        if 0 < end < self.at:  # another log than the one we know
            self._forget_all()
        if end - self.at > FARTHEST or first > self.at:
            self._leap(max(first, end - _TAIL if end - self.at > FARTHEST else first))
        upto = min(end, self.at + SLICE)
        self._feed(wanted, upto)
        if self.at - self._kept >= _SNAPSHOT_EVERY and not self._replies:  # replies are not given yet
            with contextlib.suppress(OSError):  # a full disk: then there is more to catch up with
                self.keep()
        return self.at < end

    def take_replies(self) -> list[tuple[int, bytes]]:
        """What the terminal answered, each with the byte that the question lies before."""
        replies, self._replies = self._replies, []
        return replies

    def picture(self, wanted: Wanted, ansi: bool) -> Picture:
        return self._sized(wanted).picture(ansi)

    def keep(self) -> None:
        """Write down how it stands."""
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

    def _feed(self, wanted: Wanted, upto: int) -> None:
        while self.at < upto:
            offsets = (resize.offset for resize in wanted.resizes)
            cut = next_cut(self.at, upto, offsets, wanted.cuts, [wanted.handled])
            chunk = self._log.read(self.at, min(CHUNK, cut - self.at))
            if not chunk.data:
                return
            if chunk.offset > self.at:  # dropped while we looked
                self._leap(chunk.offset)
                continue
            self._feed_piece(self._sized(wanted), chunk.data)
            self.at = chunk.end
            replies = self._sized(wanted).take_replies()
            if self.at > wanted.handled:
                self._replies += [(self.at, reply) for reply in replies]

    def _feed_piece(self, emulator: Emulator, data: bytes) -> None:
        if len(data) > _LINES and not self._has_margins and emulator.is_between_sequences and plain.is_plain(data):
            data = plain.shown_end(data, _LINES)
        elif not self._has_margins:
            self._has_margins = plain.may_set_margins(self._tail + data)
            self._tail = data[-_LONGEST_MARGINS:]
        emulator.feed(data)

    def _leap(self, offset: int) -> None:
        """Go on from there, at the start of a line, with what is on the screen now."""
        chunk = self._log.read(offset)
        line = chunk.data.find(b"\n") + 1
        self.at = self.gap = chunk.offset + line
        if self._emulator is not None:
            self._emulator.feed(_CANCEL)

    def _sized(self, wanted: Wanted) -> Emulator:
        size = size_at(wanted.resizes, self.at) or _DEFAULT
        if self._emulator is None:
            self._emulator = self._emulators.new(*size)
            self._size = size
        elif size != self._size:
            self._emulator.resize(*size)
            self._size = size
        return self._emulator

    def _restore(self) -> None:
        """Go on from the snapshot, where there is one that can be read."""
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
