"""Output with its times as an asciinema recording (asciicast v2): a header, then a line for each piece of output."""

from __future__ import annotations

import codecs

from holdfast import light_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

MEDIA = "application/x-asciicast"
#: Of a process without a terminal.
_USUAL_SIZE = (80, 24)


class CastWriter:
    """Takes the bytes of a log in order, and gives lines of the recording. Needs no more memory than a piece.

    `process` is the process object with its `spec`; `times` is the reply of `log_times` for the same stream.
    """

    def __init__(self, process: Mapping[str, Any], times: Sequence[Mapping[str, Any]], start: int) -> None:
        self._process = process
        self._times = times
        self._is_terminal = bool(process["pty"])
        #: The entry that the next byte belongs to.
        self._entry = 0
        while self._entry + 1 < len(times) and times[self._entry + 1]["offset"] <= start:
            self._entry += 1
        self._base = float(times[self._entry]["time"]) if times else 0.0
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._ends_in_return = False

    def header(self) -> bytes:
        process, spec = self._process, self._process.get("spec") or {}
        sized = next((one for one in reversed(self._times[: self._entry + 1]) if one.get("cols")), None)
        cols, rows = (sized["cols"], sized["rows"]) if sized else spec.get("size") or _USUAL_SIZE
        head = {
            "version": 2,
            "width": cols,
            "height": rows,
            "timestamp": int(self._base),
            "title": process.get("name") or process["id"],
            "command": process["command"],
            "env": {"TERM": "xterm-256color"},
        }
        return f"{light_json.dumps(head)}\n".encode()

    def feed(self, offset: int, data: bytes) -> bytes:
        """The lines of these bytes."""
        lines = []
        while data:
            following = self._times[self._entry + 1] if self._entry + 1 < len(self._times) else None
            if following is not None and following["offset"] <= offset:
                self._entry += 1
                if following.get("cols"):
                    lines.append(self._line("r", f"{following['cols']}x{following['rows']}"))
                continue
            size = len(data) if following is None else min(len(data), following["offset"] - offset)
            if text := self._text(self._decoder.decode(data[:size])):
                lines.append(self._line("o", text))
            offset, data = offset + size, data[size:]
        return "".join(lines).encode()

    def end(self) -> bytes:
        """What the last bytes leave, and changes of size behind them."""
        rest = self._text(self._decoder.decode(b"", True))
        lines = [self._line("o", rest)] if rest else []
        for found in self._times[self._entry + 1 :]:
            self._entry += 1
            if found.get("cols"):
                lines.append(self._line("r", f"{found['cols']}x{found['rows']}"))
        return "".join(lines).encode()

    def _line(self, kind: str, text: str) -> str:
        time = max(0.0, self._times[self._entry]["time"] - self._base) if self._times else 0.0
        return f"{light_json.dumps([round(time, 6), kind, text])}\n"

    def _text(self, text: str) -> str:
        """A player shows it on a terminal: where there was none, a new line also begins at the left."""
        if self._is_terminal or not text:
            return text
        joined = text if not (self._ends_in_return and text.startswith("\n")) else text[1:]
        skipped = "" if joined is text else "\n"
        self._ends_in_return = text.endswith("\r")
        return skipped + joined.replace("\r\n", "\n").replace("\n", "\r\n")
