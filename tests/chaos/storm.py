"""A storm: commands that write and read known bytes while processes of holdfast are killed at random."""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import holdfast
from tests.support import eventually

ROLES = ("daemon", "keeper", "anchor")

#: Prints numbered lines at an even pace and ends with a code of its own.
_WRITER = """
import sys, time
for number in range({lines}):
    sys.stdout.write('%015d\\n' % number)
    if number % 100 == 99:
        sys.stdout.flush()
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


@dataclass
class Child:
    """One command, what it must have written in the end, and how it must have ended."""

    process_id: str
    is_terminal: bool
    code: int
    expected: bytes
    to_send: bytes = b""
    sent: int = 0

    def fault_in(self, output: bytes) -> str | None:
        """Where the output is not what was written; None when it is."""
        if self.is_terminal:
            output = output.replace(b"\r\n", b"\n")
        if output == self.expected:
            return None
        kind = ("reader" if self.to_send else "writer") + (" on a terminal" if self.is_terminal else "")
        pairs = enumerate(zip(output, self.expected, strict=False))
        same = next((at for at, (got, want) in pairs if got != want), min(len(output), len(self.expected)))
        return f"{self.process_id} ({kind}): {len(output)} of {len(self.expected)} bytes, the same up to {same}"


class Verdict(NamedTuple):
    kills: int
    doubles: int
    children: int
    inexact: list[str]
    """Children whose output is not what they wrote."""
    wrong: list[str]
    """Children whose exit code is not their own."""

    def __str__(self) -> str:
        return (
            f"{self.kills} kills, {self.doubles} of them in pairs at once; {self.children} commands:"
            f" {len(self.inexact)} not byte-exact, {len(self.wrong)} with a wrong exit code"
        )


@dataclass
class Storm:
    home: str
    seed: int
    children: int = 24
    #: How many kill rounds; each takes one process of ours, or two at once.
    rounds: int = 20
    roles: tuple[str, ...] = ROLES
    say: Callable[[str], None] = field(default=lambda line: None)

    def run(self) -> Verdict:
        chance = random.Random(self.seed)
        kills = doubles = 0
        with holdfast.connect(session="storm", home=self.home) as client:
            children = [self._start(client, number, chance) for number in range(self.children)]
            for number in range(self.rounds):
                self._feed(client, children, (number + 1) / self.rounds)
                self._until_whole(client)
                time.sleep(chance.uniform(0, 0.02))  # the instant of the kill is what is random here
                victims = chance.sample(self.roles, chance.choice((1, 1, 2)))
                kills += self._kill(victims)
                doubles += len(victims) == 2
                self.say(f"round {number + 1} of {self.rounds}: killed {' and '.join(victims)}")
            self._feed(client, children, 1.0)
            return self._judge(client, children, kills, doubles)

    def _start(self, client: holdfast.Client, number: int, chance: random.Random) -> Child:
        reads, terminal, code = bool(number & 1), bool(number & 2), number % 100 + 1
        if reads:
            data = bytes(chance.choices(b"abcdefghijklmnopqrstuvwxyz0123456789", k=40_000 + number))
            text, expected = _READER.format(size=len(data), code=code), b"up" + data
        else:
            lines, data = 6000 + number, b""
            pause = self.rounds * 0.15 / (lines / 100)
            text = _WRITER.format(lines=lines, pause=f"{pause:.4f}", code=code)
            expected = b"".join(b"%015d\n" % line for line in range(lines))
        process = client.run([sys.executable, "-I", "-S", "-c", text], pty=terminal, stdin=reads)
        return Child(process.id, terminal, code, expected, data)

    def _feed(self, client: holdfast.Client, children: list[Child], share: float) -> None:
        for child in children:
            end = int(len(child.to_send) * share)
            if end > child.sent:
                if not child.sent and child.is_terminal:  # a line discipline that is not raw yet would eat some of it
                    eventually(lambda child=child: client.inspect(child.process_id).output_bytes >= 2, timeout=30)  # type: ignore[misc]
                client.send(child.process_id, child.to_send[child.sent : end], enter=False)
                child.sent = end

    def _until_whole(self, client: holdfast.Client) -> None:
        """Everything promised holds for one death or two; a third has to wait until the family is whole again."""

        def is_whole() -> bool:
            status = client.status()
            return bool(status["keeper_pid"]) and status["held"] == status["processes"]

        eventually(is_whole, timeout=30)

    def _kill(self, victims: list[str]) -> int:
        return sum(_kill(pid) for pid in [pid for role in victims for pid in find(self.home, role)])

    def _judge(self, client: holdfast.Client, children: list[Child], kills: int, doubles: int) -> Verdict:
        ended = {process.id: process for process in client.wait([child.process_id for child in children], timeout=120)}
        faults = (child.fault_in(self._output(client, child)) for child in children)
        inexact = [fault for fault in faults if fault is not None]
        wrong = [child.process_id for child in children if ended[child.process_id].exit_code != child.code]
        return Verdict(kills, doubles, len(children), inexact, wrong)

    def _output(self, client: holdfast.Client, child: Child) -> bytes:
        return b"".join(chunk.data for chunk in client.follow(child.process_id))


def find(home: str, role: str) -> list[int]:
    """The processes that play this role in an instance, as /proc has them."""
    return [int(name) for name in os.listdir("/proc") if name.isdigit() and _plays(int(name), home, role)]


def _kill(pid: int) -> bool:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def _plays(pid: int, home: str, role: str) -> bool:
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            words = os.fsdecode(file.read()).split("\0")
        with open(f"/proc/{pid}/comm") as file:
            name = file.read().strip()
        if role != "daemon" or "holdfast.daemon" not in words:
            return name == f"holdfast-{role}" and f"{home}/place" in words
        with open(f"/proc/{pid}/environ", "rb") as file:
            environ = file.read().split(b"\0")
        return os.fsencode(f"HOLDFAST_HOME={home}") in environ
    except (FileNotFoundError, ProcessLookupError):
        return False
