"""The terminal UI on a pseudo-terminal, as a user has it: first frame, keys, switching, memory. And the session log."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
import threading
import time
from types import TracebackType

from bench.figure import Figure, ratio
from bench.instance import Instance
from bench.procfs import cpu_seconds, resident_bytes
from bench.run import Run
from bench.series import Sample, Series, interleave, quantile
from holdfast.session_log import SessionLog

_STREAMING, _MANY, _ENTRIES = 10, 20, 60
_ROWS, _COLUMNS = 40, 120
_STARTS = ("first paint", "first key")
#: Letters that no other text here has: each is typed, and looked for on the screen.
_LETTERS = "àáâãäåæçèéêëìíîïðñòóôõöøùúûüýþ"
_ESCAPE = re.compile(rb"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[()].|.)")
_STREAM = """
import sys, time, holdfast
with holdfast.connect() as client:
    for n in range(10**9):
        for session in sys.argv[1:]:
            fields = {"session": session, "entry": 1000, "text": f"word{n} and some more of the answer "}
            client.publish("tui.message.delta", fields, transient=True)
        time.sleep(0.1)
"""
_FLOOD = """
import os, time
line = b"%7d a line of the log of a process that writes a lot, and without a pause\\n"
piece = b"".join(line % n for n in range(13000))
begun, sent = time.monotonic(), 0
while True:
    os.write(1, piece)
    sent += len(piece)
    time.sleep(max(0.0, sent / 100e6 - (time.monotonic() - begun)))
"""


class TerminalUi:
    """`holdfast tui` on a terminal of its own. Its bytecode is kept below `cache`, as with an installed package."""

    def __init__(self, cache: str) -> None:
        self._env = {**os.environ, "TERM": "xterm-256color", "COLORTERM": "truecolor", "PYTHONPYCACHEPREFIX": cache}
        self._env.pop("PYTHONDONTWRITEBYTECODE", None)

    def __enter__(self) -> TerminalUi:
        self._main, other = pty.openpty()
        fcntl.ioctl(self._main, termios.TIOCSWINSZ, struct.pack("HHHH", _ROWS, _COLUMNS, 0, 0))
        self.process = subprocess.Popen(
            [sys.executable, "-m", "holdfast", "tui"],
            stdin=other,
            stdout=other,
            stderr=other,
            env=self._env,
            start_new_session=True,
        )
        os.close(other)
        self._shown = b""
        self._has_more = threading.Condition()
        threading.Thread(target=self._read, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        os.close(self._main)

    def _read(self) -> None:
        """All the time: a terminal that is not read holds up what draws on it."""
        while True:
            try:
                data = os.read(self._main, 1 << 16)
            except OSError:
                return
            with self._has_more:
                self._shown += data
                self._has_more.notify()

    def press(self, keys: str) -> None:
        with self._has_more:
            self._shown = b""
        os.write(self._main, keys.encode())

    def sees(self, text: str, timeout: float = 20.0) -> None:
        """Until it was drawn since the last key."""
        with self._has_more:
            is_there = self._has_more.wait_for(lambda: text.encode() in _ESCAPE.sub(b"", self._shown), timeout)
        assert is_there, f"not shown: {text!r}; {_ESCAPE.sub(b'', self._shown)[-2000:]!r}"

    def quiet(self, seconds: float = 0.3) -> None:
        """Until nothing was drawn for a while, or it is streamed without end."""
        end = time.monotonic() + 3.0
        with self._has_more:
            while time.monotonic() < end and self._has_more.wait(seconds):
                pass
            self._shown = b""

    def timed(self, keys: str, text: str) -> float:
        """Milliseconds from a key until a text is drawn."""
        begun = time.monotonic()
        self.press(keys)
        self.sees(text)
        return (time.monotonic() - begun) * 1000


def measure(run: Run) -> list[Figure]:
    with Instance(run.directory) as instance:
        for number in range(_MANY):
            _write_session(instance.home, number)
        cache = f"{run.directory}/bytecode"
        _starts(cache)  # compiles
        starts = [_starts(cache) for _ in range(max(2, run.scale.list_rounds // 3))]
        first, ready = (Series(name, values) for name, values in zip(_STARTS, zip(*starts, strict=True), strict=True))
        with TerminalUi(cache) as ui:
            ui.sees("s-00")
            switching, spent = _switching(ui, run.scale.rounds)
            memory = _memory(ui)
        streamed = _keys_beside_streams(cache, run)
        flooded = _keys_beside_a_log(cache, instance, run)
        appends = _appends(instance, run)
    ours, floor = appends.values()
    in_ms = Series(ours.name, tuple(value * 1000 for value in ours.values))
    return [
        Figure("terminal UI: start to first paint, p50", first.p50, "ms", 600.0, 400.0, (first,)),
        Figure("terminal UI: start to the effect of the first key, p50", ready.p50, "ms", series=(ready,)),
        Figure("terminal UI: to another session, p50", switching.p50, "ms", 50.0, 30.0, (switching,)),
        Figure("terminal UI: to another session, processor", spent, "ms", 50.0, 30.0),
        _p95(f"terminal UI: key to screen, {_STREAMING} sessions streaming, p95", streamed, 30.0),
        _p95("terminal UI: key to screen beside a followed log of 100 MB/s, p95", flooded, 30.0),
        Figure(f"terminal UI: memory with {_MANY} sessions open", memory, "MB", 120.0, 80.0),
        Figure("session log: append, p50", in_ms.p50, "ms", 2.0, 1.0, (in_ms,)),
        ratio("session log: append, to write + fdatasync", ours, floor, 1.5, 1.2),
    ]


def _p95(name: str, series: Series, must: float) -> Figure:
    return Figure(name, quantile(series.values, 0.95), "ms", must, must / 2, (series,))


def _write_session(home: str, number: int) -> None:
    with SessionLog(home, f"s-{number:02d}") as log:
        log.append("settings", model="bench", base_url="", toolset="default", chosen={}, system="", cwd="/", tools=[])
        for n in range(_ENTRIES):
            log.append("user", text=f"question {n}", input=f"in_{n}", seq=n)
            call = {"id": f"call_{n}", "name": "terminal", "arguments": '{"command": "make test"}'}
            log.append("assistant", text=f"Answer **{n}** with `code` and a list:\n\n- one\n- two\n", calls=[call])
            log.append("tool_result", call=f"call_{n}", name="terminal", status="ended", text="ok", is_error=False)
        log.append("assistant", text=f"The mark of this one is mark{number:02d}.", calls=[])
        log.append("end", reason="done")


def _starts(cache: str) -> tuple[float, float]:
    """Until the first frame; and until a key that was pressed then has had its effect."""
    begun = time.monotonic()
    with TerminalUi(cache) as ui:
        ui.sees("holdfast")
        first = time.monotonic()
        ui.press("?")
        ui.sees("first, last")
        return (first - begun) * 1000, (time.monotonic() - begun) * 1000


def _switching(ui: TerminalUi, rounds: int) -> tuple[Series, float]:
    """By F2 and F3 in turns; and the time of the processor for one."""
    keys = ((_function_key(2), "mark00"), (_function_key(3), "mark01"))
    for key, mark in keys:
        ui.press(key)
        ui.sees(mark)
    ui.quiet()
    before = cpu_seconds([ui.process.pid])
    taken = []
    for n in range(rounds):
        taken.append(ui.timed(*keys[n % 2]))
        ui.quiet(0.05)
    spent = (cpu_seconds([ui.process.pid]) - before) / rounds * 1000
    return Series("switching", tuple(taken)), spent


def _function_key(number: int) -> str:
    return {2: "\x1bOQ", 3: "\x1bOR"}[number]


def _memory(ui: TerminalUi) -> float:
    """After each session was in view once."""
    for number in range(_MANY):
        ui.press("\x0f")
        ui.sees("enter open")
        ui.quiet(0.1)
        ui.press("g" + "j" * number + "\r")
        ui.sees("mark")
        ui.quiet(0.1)
    return resident_bytes(ui.process.pid) / 1e6


def _keys_beside_streams(cache: str, run: Run) -> Series:
    sessions = [f"s-{number:02d}" for number in range(_STREAMING)]
    with TerminalUi(cache) as ui, subprocess.Popen([sys.executable, "-c", _STREAM, *sessions]) as stream:
        try:
            ui.sees("s-00")
            ui.press(_function_key(2))
            ui.sees("word")
            ui.quiet(0.05)
            return Series("key to screen", _typed(ui, 2 * run.scale.rounds))
        finally:
            stream.kill()


def _keys_beside_a_log(cache: str, instance: Instance, run: Run) -> Series:
    process = instance.client.run([sys.executable, "-c", _FLOOD], log_cap=1 << 28, name="flood")
    try:
        with TerminalUi(cache) as ui:
            ui.sees("flood")
            ui.quiet(0.2)
            ui.press("g\r")
            ui.sees("following")
            ui.press("/")
            ui.quiet(0.05)
            return Series("key to screen", _typed(ui, 2 * run.scale.rounds))
    finally:
        instance.client.kill(process.id)


def _typed(ui: TerminalUi, count: int) -> tuple[float, ...]:
    """Each letter is written, seen and removed."""
    taken = []
    for n in range(count):
        letter = _LETTERS[n % len(_LETTERS)]
        taken.append(ui.timed(letter, letter))
        ui.press("\x7f")
        time.sleep(0.05)
    return tuple(taken)


def _appends(instance: Instance, run: Run) -> dict[str, Series]:
    """Of an entry of usual size; beside it the same bytes with one write and one fdatasync on the same disk."""
    text = "x" * 300
    floor = os.open(f"{instance.home}/agent/sessions/floor", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    with SessionLog(instance.home, "appends") as log:

        def append() -> float:
            begun = time.monotonic()
            log.append("user", text=text, input="in_1", seq=1)
            return time.monotonic() - begun

        def write() -> float:
            data = f'{{"id":10,"parent":9,"time":1.0,"kind":"user","content":{{"text":"{text}"}}}}\n'.encode()
            begun = time.monotonic()
            os.write(floor, data)
            os.fdatasync(floor)
            return time.monotonic() - begun

        samples: dict[str, Sample] = {"append": append, "write + fdatasync": write}
        taken = interleave(2 * run.scale.rounds, samples)
    os.close(floor)
    return taken
