"""`python -m bench.pictures [DIRECTORY]`: draw the pictures of docs/listing.md again, as SVG files.

With a directory it draws more of them there: other widths, terminals without colours, and dumb ones. It starts an
instance of its own with made-up programs, calls the command line on terminals of several sizes, and draws what they
show. The ports 5173 and 4000 have to be free.
"""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import tempfile
import termios
import time
import unicodedata
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import TypeAlias

import holdfast

_Picture: TypeAlias = tuple[str, int, int, str, dict[str, str]]

_PROGRAMS = {
    "npm": "print('VITE ready in 312 ms', flush=True); serve(5173)",
    "api": "print('listening on :4000', flush=True); x = bytearray(60 << 20); serve(4000, busy=True)",
    "vite": "print('Error: listen EADDRINUSE: address already in use 127.0.0.1:5173'); sys.exit(1)",
    "worker": "print('connected to the queue', flush=True); time.sleep(600)",
    "migrate": "print('applying 0042_orders.sql', flush=True); sys.exit(input('Drop table old_orders? [y/N] '))",
    "import-data": "time.sleep(600)",
    "report": "print('FATAL: queue not reachable: connection refused'); sys.exit(2)",
}
_BEGIN = """\
#!{python}
import socket, sys, time
def serve(port, busy=False):
    s = socket.create_server(("127.0.0.1", port))
    while True:
        until = time.time() + (0.3 if busy else 0)
        while time.time() < until: pass
        time.sleep(0.7)
"""
_STARTS = (
    "--name web --session shop --ready-port 5173 -- npm run dev",
    "--name api --session shop --ready-port 4000 --memory 512M --restart always -- api --port 4000",
    "--name worker --session shop -- worker --queue orders --concurrency 4",
    "--name migrate -t -- migrate up",
    "--name nightly --stall 1 -- import-data --from backup-2026-11-17.tar --verbose --batch-size 500",
    "--name preview -- vite preview --port 5173",
    "--name report --restart on-failure --restart-limit 2 --restart-delay 0.1 -- report --daily",
    "-- echo build finished",
)
#: File, columns, rows, arguments, variables on top.
_PICTURES: tuple[_Picture, ...] = (
    ("ps-40", 40, 0, "ps -a", {}),
    ("ps-80", 80, 0, "ps -a", {}),
    ("ps-200", 200, 0, "ps -a", {}),
    ("ps-plain", 80, 0, "ps -a", {"TERM": "dumb"}),
    ("ps-no-color", 80, 0, "ps -a", {"NO_COLOR": "1"}),
    ("top-40", 40, 14, "top", {}),
    ("top-80", 80, 14, "top", {}),
    ("top-200", 200, 14, "top", {}),
    ("top-no-color", 80, 14, "top", {"NO_COLOR": "1"}),
    ("top-plain", 80, 0, "top", {"TERM": "dumb"}),
    ("inspect-40", 40, 0, "inspect api", {}),
    ("inspect-80", 80, 0, "inspect api", {}),
    ("inspect-200", 200, 0, "inspect report", {}),
    ("inspect-plain", 80, 0, "inspect migrate", {"TERM": "dumb"}),
    ("why-40", 40, 0, "why preview", {}),
    ("why-80", 80, 0, "why preview", {}),
    ("why-200", 200, 0, "why report", {}),
    ("why-plain", 80, 0, "why migrate", {"TERM": "dumb"}),
)
_MANY: tuple[_Picture, ...] = (
    ("top-1000", 80, 24, "top", {}),
    ("ps-1000", 80, 0, "ps -n 20", {}),
    ("watch-1000", 80, 24, "ps --watch", {}),
)
#: Those that docs/listing.md shows.
_OF_DOCS = frozenset(
    {"ps-40", "ps-80", "ps-200", "ps-no-color", "top-40", "top-80", "top-1000", "inspect-80", "why-80"}
)
#: Seconds that a program which updates its screen is given.
_WATCHED = 6.0

_WIDTH, _HEIGHT, _MARGIN = 8.4, 18, 12
_COLOURS = {"31": "#c0392b", "32": "#1e8449", "33": "#b9770e", "2": "#808b96"}
_STYLE = 'font-family="DejaVu Sans Mono, Menlo, Consolas, monospace" font-size="14" fill="#1b2631" xml:space="preserve"'
_ESCAPE = re.compile(r"\x1b\[([0-9;]*)m|\x1b\]8;;([^\x1b]*)\x1b\\|\x1b\[[0-9;?]*[A-Za-z]")


def main() -> int:
    docs = Path(__file__).parent.parent / "docs" / "pictures"
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else docs
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        env = _environment(Path(scratch))
        try:
            for words in _STARTS:
                _call(env, "run", "-d", *words.split())
            _call(env, "wait", "--until", "ready", "web", "api")
            _call(env, "wait", "report")
            _call(env, "restart", "api")
            time.sleep(3)  # until one of them counts as stalled
            for name, cols, rows, words, more in _PICTURES:
                if target == docs and name not in _OF_DOCS:
                    continue
                _draw(target / f"{name}.svg", cols, _shown({**env, **more}, words, cols, rows))
            with holdfast.connect(home=env["HOLDFAST_HOME"]) as client:
                for number in range(1000):
                    client.run(["sleep", "600"], name=f"job-{number:03d}")
            for name, cols, rows, words, more in _MANY:
                if target == docs and name not in _OF_DOCS:
                    continue
                _draw(target / f"{name}.svg", cols, _shown({**env, **more}, words, cols, rows))
        finally:
            _call(env, "kill", "--all", "--grace", "0.2")
            _call(env, "daemon", "stop")
    return 0


def _environment(scratch: Path) -> dict[str, str]:
    """Of an instance with the made-up programs."""
    for name, text in _PROGRAMS.items():
        (scratch / "bin").mkdir(exist_ok=True)
        (scratch / "bin" / name).write_text(_BEGIN.format(python=sys.executable) + text + "\n")
        (scratch / "bin" / name).chmod(0o755)
    switches = ("NO_COLOR", "FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "HOLDFAST_SESSION")
    kept = {name: value for name, value in os.environ.items() if name not in switches}
    path = f"{scratch}/bin:{os.environ['PATH']}"
    return {**kept, "HOLDFAST_HOME": f"{scratch}/home", "PATH": path, "TERM": "xterm-256color"}


def _call(env: dict[str, str], *words: str) -> None:
    subprocess.run([sys.executable, "-m", "holdfast", *words], env=env, cwd="/srv", capture_output=True, check=False)


def _shown(env: dict[str, str], words: str, cols: int, rows: int) -> list[str]:
    """The lines that a call shows on a terminal of that size; with `rows` its last screen before it is ended."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows or 50, cols, 0, 0))
    call = [sys.executable, "-m", "holdfast", *words.split()]
    with subprocess.Popen(call, env=env, cwd="/srv", stdin=theirs, stdout=theirs, stderr=theirs) as running:
        seen, frame, until = b"", b"", time.monotonic() + _WATCHED
        while True:
            is_over = running.poll() is not None
            if select.select([ours], [], [], 0.0 if is_over else 0.1)[0]:
                seen += os.read(ours, 65536)
            elif is_over:
                break
            if rows and time.monotonic() > until:
                frame = seen.split(b"\x1b[H")[-2 if not seen.endswith(b"\x1b[?7h") else -1]
                os.write(ours, b"q")
                rows = 0
    os.close(ours)
    os.close(theirs)
    return [f"$ holdfast {words}", *(frame or seen).decode().rstrip("\r\n").split("\r\n")]


def _draw(path: Path, cols: int, lines: list[str]) -> None:
    width, height = round(cols * _WIDTH + 2 * _MARGIN), len(lines) * _HEIGHT + 2 * _MARGIN
    size = f'width="{width}" height="{height}"'
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" {size} {_STYLE}>', f'<rect {size} rx="6" fill="#f8f9f9"/>']
    for number, line in enumerate(lines):
        base = _MARGIN + number * _HEIGHT + 14
        for column, text, codes, is_link in _pieces(line):
            parts.append(_piece(_MARGIN + column * _WIDTH, base, text, codes, is_link))
    path.write_text("\n".join([*parts, "</svg>", ""]), encoding="utf-8")


def _piece(x: float, base: int, text: str, codes: set[str], is_link: bool) -> str:
    length = _columns(text) * _WIDTH
    fill, before = next((_COLOURS[code] for code in codes if code in _COLOURS), ""), ""
    if "7" in codes:
        before = f'<rect x="{x:.1f}" y="{base - 14}" width="{length:.1f}" height="{_HEIGHT}" fill="#2e4053"/>'
        fill = "#f8f9f9"
    style = f' fill="{fill}"' if fill else ""
    style += ' font-weight="bold"' if "1" in codes else ""
    style += ' text-decoration="underline"' if is_link else ""
    return f'{before}<text x="{x:.1f}" y="{base}" textLength="{length:.1f}"{style}>{escape(text)}</text>'


def _pieces(line: str) -> Iterator[tuple[int, str, set[str], bool]]:
    """Column, text, codes of its style, and whether it is a link, of each part of a line that looks alike."""
    column, at, codes, is_link = 0, 0, set[str](), False
    for found in [*_ESCAPE.finditer(line), None]:
        text = line[at : found.start() if found is not None else len(line)]
        if text.strip() or (text and "7" in codes):
            yield column, text, codes, is_link
        column += _columns(text)
        if found is None:
            return
        at = found.end()
        if found[1] is not None:
            codes = set(found[1].split(";")) - {"", "0"}
        elif found[2] is not None:
            is_link = bool(found[2])


def _columns(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


if __name__ == "__main__":
    sys.exit(main())
