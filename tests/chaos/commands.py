"""The commands of a storm: what each writes is known, and how it has to end."""

from __future__ import annotations

import random
import sys
from dataclasses import dataclass

#: Prints numbered lines at an even pace, some of them needles, and ends with a code of its own.
_WRITER = """
import sys, time
for number in range({lines}):
    sys.stdout.write('{needle} %08d\\n' % number if number in {needles} else '%015d\\n' % number)
    if number % 100 == 99:
        sys.stdout.flush()
        if {split}:
            sys.stderr.write('e%014d\\n' % number)
        time.sleep({pause})
sys.stdout.flush()
sys.exit({code})
"""

#: Copies what it reads until it has had so much.
_READER = """
import os, tty
if os.isatty(0):
    tty.setraw(0)
os.write(1, b'up')
left = {size}
while left:
    data = os.read(0, min(65536, left))
    if not data:
        os._exit(199)
    left -= len(data)
    while data:
        data = data[os.write(1, data):]
os._exit({code})
"""

NEEDLE = "needle"
KINDS = ("writer", "reader", "terminal writer", "terminal reader", "split writer", "watched writer", "sleeper")


@dataclass
class Child:
    """One command, what it must have written in the end, and how it must have ended."""

    number: int
    kind: str
    session: str
    argv: list[str]
    code: int | None
    expected: dict[str, bytes]
    needles: int = 0
    to_send: bytes = b""
    sent: int = 0
    process_id: str = ""
    #: Its owner was given its end in the reply to a wait; None: the wait failed, and may have.
    is_consumed: bool | None = False
    is_killed: bool = False

    @property
    def is_terminal(self) -> bool:
        return "terminal" in self.kind

    @property
    def is_watched(self) -> bool:
        return self.kind == "watched writer"

    @property
    def options(self) -> dict[str, object]:
        """Those of `run`."""
        chosen: dict[str, object] = {
            "pty": self.is_terminal,
            "stdin": bool(self.to_send),
            "split": "err" in self.expected,
            "labels": {"storm": str(self.number)},
        }
        return {**chosen, "watch": [NEEDLE], "notify": "failure"} if self.is_watched else chosen

    def fault_in(self, stream: str, output: bytes) -> str | None:
        """Where the output is not what was written; None when it is."""
        expected = self.expected[stream]
        if self.is_terminal:
            output = output.replace(b"\r\n", b"\n")
        if output == expected:
            return None
        pairs = enumerate(zip(output, expected, strict=False))
        same = next((at for at, (got, want) in pairs if got != want), min(len(output), len(expected)))
        return f"{self}: {stream} has {len(output)} of {len(expected)} bytes, the same up to {same}"

    def __str__(self) -> str:
        return f"{self.process_id or 'not started'} ({self.kind} {self.number} of {self.session})"


def make(number: int, kind: str, session: str, seconds: float, size: int, chance: random.Random) -> Child:
    """A command of that kind that writes or reads about `size` lines of 16 bytes, for about so many seconds."""
    code = number % 100 + 1
    if kind == "sleeper":
        return Child(number, kind, session, ["sleep", "100000"], None, {"out": b""})
    if "reader" in kind:
        data = bytes(chance.choices(b"abcdefghijklmnopqrstuvwxyz0123456789", k=16 * size))
        text = _READER.format(size=len(data), code=code)
        return Child(number, kind, session, _python(text), code, {"out": b"up" + data}, to_send=data)
    needles = sorted(chance.sample(range(size), 3)) if kind == "watched writer" else []
    split = kind == "split writer"
    pause = f"{seconds / max(1, size // 100):.4f}"
    text = _WRITER.format(lines=size, needle=NEEDLE, needles=needles, split=split, pause=pause, code=code)
    out = b"".join(b"needle %08d\n" % line if line in needles else b"%015d\n" % line for line in range(size))
    expected = {"out": out}
    if split:
        expected["err"] = b"".join(b"e%014d\n" % line for line in range(99, size, 100))
    return Child(number, kind, session, _python(text), code, expected, len(needles))


def _python(text: str) -> list[str]:
    return [sys.executable, "-I", "-S", "-c", text]
