"""The commands of README and docs, and a shell on a terminal in a clean home that runs them as they are printed.

Comments before a block, which the reader does not see, say what cannot run here and what has to be there before:
`<!-- not run: pip (the network) -->`, where a mark is the beginning of a command, or `all`, and a reason, and several
are separated by semicolons; and `<!-- before: COMMAND -->`.
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
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from tests.cli.calling import until_waiting
from tests.support import end_instance, free_port

ROOT = Path(__file__).parents[2]
_BLOCK = re.compile(
    r"^(?P<comments>(?:<!-- (?:not run|before): .* -->\n)*)```(?P<kind>console|sh)\n(?P<text>(?s:.*?))^```", re.M
)
_COMMENT = re.compile(r"<!-- (not run|before): (.*) -->\n")
_MARK = re.compile(r"(.*) \((.*)\)")
#: What a page prints and a run prints differently: each is any text of the same kind.
_VARIABLE = re.compile(
    r"(?P<id>(?:proc|note|appr)_[0-9a-f]{12})|(?P<took>\b[\d.]+ ?(?:ms|s|min|h|d)\b|\b\d+m\d+s\b)"
    r"|(?P<time>\b\d\d:\d\d:\d\d\b)|(?P<number>\b\d{5,}(?:\.\d+)?\b)|(?P<any>…)|(?P<gap>  +)"
)
_AS_PATTERN = {
    "id": r"\w+_[0-9a-f]{12}",
    "took": r"[\d.]+ ?\w+",
    "time": r"[\d:]{8}",
    "number": r"[\d.]+",
    "any": ".*",
    "gap": " +",
}
#: What an interactive shell says of its jobs.
_JOB = re.compile(r"\[\d+\]")
_ESCAPE = re.compile(r"\r?\x1b\[K[^\r\n]*(?=\r\x1b\[K)|\x1b\[[0-9;?]*[A-Za-z]|\x1b[()>=].?|\a|\^[\]C]")
_PROMPT = re.compile(rb"\x02(\d+)\x03")
#: Commands that go on until a key is pressed: what is awaited before (None: that the terminal is raw), and the key.
KEYS = {
    r"holdfast attach": (None, b"\x1d"),
    r"holdfast (top|ps --watch) *(#|$)": (None, b"q"),
    r"holdfast up *(#|$)": ("started", b"\x03"),
    r"holdfast mcp": ("", b"\x04"),
    r"holdfast approvals --follow": ("waiting for requests", b"\x04"),
    r"holdfast (logs|events) -f": ("", b"\x03"),
    r"holdfast send .* --secret": ("not shown", b"word\r"),
}


#: The files of docs/projects.md; the second is shortened.
_PROJECT = """\
[processes.db]
command = "postgres -D data"
ready = { port = 5432 }

[processes.web]
command = "npm run dev"
depends_on = { db = "ready" }
"""
_SHOP = f"""\
[project]
name = "shop"

{_PROJECT}
[processes.worker]
command = "sleep 100"
depends_on = {{ db = "ready" }}
"""


class PageCommand(NamedTuple):
    text: str
    expected: list[str]
    """The lines that the page prints after it."""
    why_not: str | None
    """Why it cannot run in a test."""


def pages() -> list[Path]:
    return [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def commands_of(page: Path) -> list[PageCommand]:
    """The commands of the page, in order."""
    return [command for block in _BLOCK.finditer(page.read_text(encoding="utf-8")) for command in _commands(block)]


def _commands(block: re.Match[str]) -> Iterator[PageCommand]:
    comments = _COMMENT.findall(block["comments"])
    marks = [_MARK.fullmatch(mark.strip()) for kind, text in comments if kind == "not run" for mark in text.split(";")]
    assert all(marks), f"a mark has no reason: {comments}"
    yield from (PageCommand(text, [], None) for kind, text in comments if kind == "before")
    texts: list[tuple[str, list[str]]] = []
    for line in block["text"].splitlines():
        if block["kind"] == "sh" and line.strip():
            texts.append((line, []))
        elif line.startswith("$ "):
            texts.append((line[2:], []))
        elif line.strip() and texts:
            texts[-1][1].append(re.sub(r" {2,}# .*", "", line))
    for text, expected in texts:
        reasons = [mark[2] for mark in marks if mark is not None and (mark[1] == "all" or text.startswith(mark[1]))]
        yield PageCommand(text, expected, reasons[0] if reasons else None)


class PageShell:
    """One interactive bash for a page. Ids and ports of the page are replaced by those of this run."""

    def __init__(self, directory: Path, ports: dict[str, str]) -> None:
        self._replaced = dict(ports)
        self._ours, theirs = pty.openpty()
        modes = termios.tcgetattr(theirs)
        modes[3] &= ~termios.ECHO
        termios.tcsetattr(theirs, termios.TCSANOW, modes)
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 200, 0, 0))
        self._bash = subprocess.Popen(
            ["bash", "--norc", "--noprofile", "--noediting", "-i"],
            env=_environment(directory),
            cwd=directory / "project",
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        os.close(theirs)
        self._until_prompt(60.0)

    def close(self) -> None:
        self._bash.kill()
        self._bash.wait()
        os.close(self._ours)

    def check(self, command: PageCommand, tries: int = 50) -> None:
        """Run it, and compare what it prints with the page. AssertionError if it differs, or fails in silence."""
        text = self._in_this_run(command.text)
        os.write(self._ours, text.encode() + b"\n")
        interrupted: list[int] = []
        for beginning, (awaited, key) in KEYS.items():
            if re.match(beginning, text):
                self._press(awaited, key)
                interrupted += [130] if key == b"\x03" else []
        printed, code = self._until_prompt(60.0)
        plain = _ESCAPE.sub("", printed).replace("\r", "").split("\n")
        lines = [line.rstrip() for line in plain if line.strip() and not _JOB.match(line)]
        if not command.expected:
            assert code in (0, *interrupted), f"{text}: exit code {code}: {printed}"
            return
        expected = [self._in_this_run(line) for line in command.expected]
        found = re.fullmatch("\n".join(map(_pattern, expected)), "\n".join(lines), re.S)
        if not found and text.startswith("holdfast screen") and tries:
            time.sleep(0.2)  # the program has not drawn it yet
            self.check(command, tries - 1)
            return
        assert found, f"{text}\nprinted:\n" + "\n".join(lines) + "\nthe page says:\n" + "\n".join(expected)
        named = re.findall(r"(?:proc|note|appr)_[0-9a-f]{12}", "\n".join(command.expected))
        self._replaced.update(zip(named, re.findall(r"(?:proc|note|appr)_[0-9a-f]{12}", "\n".join(lines)), strict=True))

    def _in_this_run(self, text: str) -> str:
        for ours, theirs in self._replaced.items():
            text = text.replace(ours, theirs)
            short = ours[:9]
            text = re.sub(rf"{short}(?![0-9a-f])", theirs[:9], text) if "_" in ours else text
        return text

    def _press(self, awaited: str | None, key: bytes) -> None:
        until = time.monotonic() + 30.0
        self._seen = b""
        while time.monotonic() < until:
            if select.select([self._ours], [], [], 0.05)[0]:
                self._seen += os.read(self._ours, 65536)
            runs = os.tcgetpgrp(self._ours) != self._bash.pid
            is_raw = not termios.tcgetattr(self._ours)[3] & termios.ICANON
            if runs and (is_raw if awaited is None else awaited.encode() in self._seen):
                break
        else:
            raise AssertionError(f"{awaited or 'a raw terminal'} was awaited in vain: {self._seen[-2000:]!r}")
        if key == b"\x03" and not awaited:
            until_waiting(os.tcgetpgrp(self._ours))
        os.write(self._ours, key)

    def _until_prompt(self, timeout: float) -> tuple[str, int]:
        seen, self._seen = getattr(self, "_seen", b""), b""
        until = time.monotonic() + timeout
        while not (prompt := _PROMPT.search(seen)):
            left = until - time.monotonic()
            assert left > 0 and select.select([self._ours], [], [], left)[0], f"no prompt after {seen[-2000:]!r}"
            seen += os.read(self._ours, 65536)
        self._seen = seen[prompt.end() :]
        return seen[: prompt.start()].decode(errors="replace"), int(prompt[1])


def _pattern(line: str) -> str:
    """A regular expression for a printed line."""
    parts, at = [], 0
    for found in _VARIABLE.finditer(line.strip()):
        parts += [re.escape(line.strip()[at : found.start()]), _AS_PATTERN[str(found.lastgroup)]]
        at = found.end()
    return " *" + "".join(parts) + re.escape(line.strip()[at:])


def _environment(directory: Path) -> dict[str, str]:
    return {
        "HOME": str(directory),
        "PATH": f"{directory}/bin:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
        "TERM": "xterm",
        "NO_COLOR": "1",
        "LANG": "C.UTF-8",
        "SHELL": "/bin/bash",
        "PS1": "\x02$?\x03",
        "PS2": "",
        "USER": "reader",
    }


@contextmanager
def page_shell() -> Iterator[PageShell]:
    """A shell in a clean home, with the programs and the project that the pages speak of."""
    with TemporaryDirectory(prefix="reader-") as home:  # a short path: curl cannot open a socket with a long one
        yield from _page_shell(Path(home))


def _page_shell(directory: Path) -> Iterator[PageShell]:
    (directory / "bin").mkdir()
    for name, line in {
        "holdfast": f'exec {sys.executable} -m holdfast "$@"',
        "python3": f'exec {sys.executable} "$@"',
        "npm": 'echo "> $*"; exec ./server',
    }.items():
        _program(directory / "bin" / name, line)
    ports = {port: str(free_port()) for port in ("8000", "3000", "5432", "7333")}
    project = directory / "project"
    project.mkdir()
    (project / "Makefile").write_text("test:\n\t@echo testing; sleep 0.2; exit 1\n")
    (project / "holdfast.toml").write_text(_PROJECT.replace("5432", ports["5432"]))
    (project / "shop.toml").write_text(_SHOP.replace("5432", ports["5432"]))
    (project / "notes.txt").write_text("hello\nworld\n")
    _program(project / "server", f'echo "listening on :{ports["3000"]}"; exec python3 -m http.server {ports["3000"]}')
    _program(project / "build.sh", "echo built")
    _program(directory / "bin" / "postgres", f"exec python3 -m http.server {ports['5432']}")
    for words in (
        ["init", "-q", "--bare", str(directory / "remote")],
        ["init", "-q", "-b", "main", "."],
        ["-c", "user.name=reader", "-c", "user.email=reader@example.org", "commit", "-q", "--allow-empty", "-m", "x"],
        ["remote", "add", "origin", str(directory / "remote")],
        ["push", "-q", "-u", "origin", "main"],
    ):
        subprocess.run(["git", *words], cwd=project, env=_environment(directory), check=True)
    shell = PageShell(directory, ports)
    try:
        yield shell
    finally:
        shell.close()
        end_instance(str(directory / ".local/state/holdfast"))


def _program(path: Path, line: str) -> None:
    path.write_text(f"#!/bin/sh\n{line}\n")
    path.chmod(0o755)
