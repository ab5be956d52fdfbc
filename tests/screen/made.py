"""Emulators and screens for tests."""

from __future__ import annotations

from pathlib import Path

from holdfast.daemon.workers.screen import find_library
from holdfast.screen.ghostty import Ghostty, Library
from holdfast.screen.marks import ResizeMark
from holdfast.screen.screen import Emulators, ScreenRequest, TerminalScreen
from tests.logs.written import ID

found = find_library()
assert found is not None, "pyghostty is not installed"
LIBRARY = Library(found)


def emulators(version: str = "1") -> Emulators:
    return Emulators(
        version, lambda cols, rows: Ghostty(LIBRARY, cols, rows), lambda data: Ghostty.restored(LIBRARY, data)
    )


def screen(place: Path, version: str = "1") -> TerminalScreen:
    return TerminalScreen(emulators(version), str(place), ID, str(place / "screen"))


def sized(cols: int = 80, rows: int = 24, *more: tuple[int, int, int], handled: int = 0) -> ScreenRequest:
    return ScreenRequest([ResizeMark(0, cols, rows), *(ResizeMark(*size) for size in more)], handled)


def caught_up(screen: TerminalScreen, request: ScreenRequest) -> TerminalScreen:
    while screen.advance(request):
        pass
    return screen
