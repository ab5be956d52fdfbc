"""The requests of the screen process. Each is about the terminal of one process. A reply may be {error}.

follow   id, resizes: [[offset, cols, rows]], handled, cuts   -> at, more, replies: [[offset, base64]], gap
show     the same, ansi                                      -> as follow, and without `more` also picture
keep     id                                                  -> {}, once its state is on disk and out of memory
forget   id                                                  -> {}, once its files are gone
"""

from __future__ import annotations

import contextlib
import os
from binascii import b2a_base64
from collections import OrderedDict

from holdfast.screen.emulator import Unusable
from holdfast.screen.marks import ResizeMark
from holdfast.screen.screen import Emulators, ScreenRequest, TerminalScreen
from holdfast.wire.worker import Message

#: Terminals in memory. Others are on disk and can be restored within a millisecond.
_MOST_OPEN = 64


class ScreenServer:
    def __init__(self, emulators: Emulators, place: str, directory: str) -> None:
        self._emulators = emulators
        self._place = place
        self._directory = directory
        self._open: OrderedDict[str, TerminalScreen] = OrderedDict()

    def answer(self, ask: Message) -> Message:
        try:
            return self._answer(ask)
        except (OSError, Unusable) as failed:
            return {"error": str(failed)}

    def _answer(self, ask: Message) -> Message:
        match ask["op"]:
            case "follow":
                return self._follow(ask, is_shown=False)
            case "show":
                return self._follow(ask, is_shown=True)
            case "keep":
                self._put_away(ask["id"])
            case "forget":
                self._forget(ask["id"])
        return {}

    def close(self) -> None:
        for process_id in list(self._open):
            with contextlib.suppress(OSError):
                self._put_away(process_id)

    def _follow(self, ask: Message, is_shown: bool) -> Message:
        screen = self._find(ask["id"], ask.get("place", self._place))
        request = ScreenRequest([ResizeMark(*resize) for resize in ask["resizes"]], ask["handled"], ask["cuts"])
        more = screen.advance(request)
        replies = [[offset, b2a_base64(reply, newline=False).decode()] for offset, reply in screen.take_replies()]
        answer: Message = {"at": screen.at, "more": more, "replies": replies, "gap": screen.gap}
        if is_shown and not more:
            answer["picture"] = screen.picture(request, bool(ask.get("ansi"))).to_json()
        return answer

    def _find(self, process_id: str, place: str) -> TerminalScreen:
        screen = self._open.get(process_id)
        if screen is None:
            screen = TerminalScreen(self._emulators, place, process_id, f"{self._directory}/{process_id}.screen")
            self._open[process_id] = screen
            while len(self._open) > _MOST_OPEN:
                self._put_away(next(iter(self._open)))
        self._open.move_to_end(process_id)
        return screen

    def _put_away(self, process_id: str) -> None:
        screen = self._open.pop(process_id, None)
        if screen is not None:
            try:
                screen.keep()
            finally:
                screen.close()

    def _forget(self, process_id: str) -> None:
        screen = self._open.pop(process_id, None)
        if screen is not None:
            screen.close()
        for ending in ("screen", "screen.new", "marks", "marks.new"):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(f"{self._directory}/{process_id}.{ending}")
