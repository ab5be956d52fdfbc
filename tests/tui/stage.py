"""The terminal UI in a test: run without a terminal, driven by keys, read as the text that it shows."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from textual.pilot import Pilot

from holdfast.tui.app import HoldfastApp

T = TypeVar("T")


class Stage:
    """A running app. `press` takes names of keys; `until` waits for a condition."""

    def __init__(self, app: HoldfastApp, pilot: Pilot[None]) -> None:
        self.app = app
        self.pilot = pilot

    @property
    def lines(self) -> list[str]:
        """What the screen shows, without trailing blanks."""
        return [strip.text.rstrip() for strip in self.app.screen._compositor.render_strips()]

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    def line(self, part: str) -> str:
        """The first line with this text; empty where none has it."""
        return next((line for line in self.lines if part in line), "")

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)

    async def type(self, text: str) -> None:
        """A text, key by key; every character is the name of its key, or has one."""
        for character in text:
            await self.pilot.press({" ": "space", "\n": "enter"}.get(character, character))

    async def sessions_show(self, session: str) -> None:
        """Bring a session into view."""
        await self.app.sessions.show(session)
        await self.until(lambda: self.app.sessions.active == [session] and self.app.focused is not None)

    async def until(self, condition: Callable[[], T | None], timeout: float = 30.0) -> T:
        end = time.monotonic() + timeout
        while not (value := condition()):
            assert time.monotonic() < end, f"still {value!r}; the screen:\n{self.text}"
            await asyncio.sleep(0.02)
        return value

    async def sees(self, *parts: str, timeout: float = 30.0) -> None:
        """Waits until the screen shows all of these."""
        await self.until(lambda: all(part in self.text for part in parts), timeout)

    async def never_sees(self, part: str, within: float = 1.0) -> None:
        end = time.monotonic() + within
        while time.monotonic() < end:
            assert part not in self.text, self.text
            await asyncio.sleep(0.05)


def on_stage(act: Callable[[Stage], Coroutine[Any, Any, None]], size: tuple[int, int] = (80, 24)) -> None:
    """Run the app, and `act` with it."""

    async def run() -> None:
        app = HoldfastApp()
        async with app.run_test(size=size) as pilot:
            await act(Stage(app, pilot))

    asyncio.run(run())
