"""What tests share: waiting for a condition, calling the command line, ending an instance."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

import pytest

T = TypeVar("T")

#: The kernel gives out ports from 32768 on.
_FIRST_PORT, _PORTS = 20_000, 12_000

#: Variables that say where an instance is.
_PLACES = (b"HOLDFAST_HOME", b"XDG_STATE_HOME", b"HOME")


def eventually(condition: Callable[[], T | None], timeout: float = 30.0, pause: float = 0.01) -> T:
    """The condition's first true value. AssertionError when there is none in time."""
    until = time.monotonic() + timeout
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > until:
            raise AssertionError(f"still {value!r} after {timeout} s: {getattr(condition, '__name__', condition)}")
        time.sleep(pause)


def never(condition: Callable[[], object], within: float = 1.0) -> None:
    """The condition stays false for this time: for what must not happen. AssertionError as soon as it is true."""
    until = time.monotonic() + within
    while time.monotonic() < until:
        value = condition()
        assert not value, f"{value!r} within {within} s: {getattr(condition, '__name__', condition)}"
        time.sleep(0.02)


def files_below(directory: Path) -> Iterator[Path]:
    """All there are, while others come and go: for that, pathlib's own walk is too easily startled."""
    for place, _, names in os.walk(directory):
        yield from (Path(place) / name for name in names)


def content_of(path: Path) -> bytes:
    """Nothing where it is gone by now, or is no file to be read."""
    try:
        return path.read_bytes() if path.is_file() else b""
    except (FileNotFoundError, ProcessLookupError):
        return b""


def run_cli(
    *arguments: str, input: bytes | None = None, env: Mapping[str, str] | None = None, timeout: float = 60.0
) -> subprocess.CompletedProcess[bytes]:
    """`holdfast ARGUMENTS…` as a user would call it. `env` comes on top of the test's environment."""
    return subprocess.run(
        [sys.executable, "-m", "holdfast", *arguments],
        input=input,
        stdin=subprocess.DEVNULL if input is None else None,
        capture_output=True,
        env={**os.environ, **(env or {})},
        timeout=timeout,
        check=False,
    )


def free_port() -> int:
    """One that nobody listens on, and that no other program gets meanwhile: it lies below those that the kernel gives
    to connections and to servers that let it choose.
    """
    while True:
        port = _FIRST_PORT + int.from_bytes(os.urandom(2)) % _PORTS
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port


def is_alive(pid: int) -> bool:
    """Whether a process runs; a zombie does not."""
    return bool(_read(pid, "stat")) and not _is_zombie(pid)


def processes_of(home: str) -> list[int]:
    """Every living process of an instance: ours by their arguments or environment, held ones by their environment."""
    spared = _ancestors(os.getpid())
    pids = (int(name) for name in os.listdir("/proc") if name.isdigit())
    return [pid for pid in pids if pid not in spared and _belongs(pid, os.fsencode(home))]


def daemons_below(*directories: str) -> dict[int, str]:
    """Daemons and keepers whose instance, state or home directory is one of these, or below it: pid -> arguments."""
    wanted = [os.fsencode(directory) for directory in directories]
    found = {}
    for pid in (int(name) for name in os.listdir("/proc") if name.isdigit()):
        arguments = _read(pid, "cmdline").replace(b"\0", b" ")
        if not any(mark in arguments for mark in (b"holdfast: ", b"holdfast.daemon", b"holdfast_keeper")):
            continue
        if any(_belongs(pid, directory) for directory in wanted):
            found[pid] = os.fsdecode(arguments)
    return found


def end_instance(home: str) -> None:
    """End everything of an instance, first by asking and then by force. AssertionError when something is left."""
    if not processes_of(home):
        return
    if os.path.exists(f"{home}/daemon.sock"):
        _ask_to_end(home)
    kill_instance(home)


def kill_instance(home: str) -> None:
    """End everything of an instance at once, as a crash would: nothing is recorded any more."""
    eventually(lambda: not _force(home), timeout=20.0)


def _ask_to_end(home: str) -> None:
    for arguments in (("kill", "--all", "--grace", "0.1"), ("daemon", "stop")):
        try:
            run_cli(*arguments, env={"HOLDFAST_HOME": home}, timeout=20.0)
        except subprocess.TimeoutExpired:
            return


def _force(home: str) -> list[int]:
    """One round: those found are stopped first, so that none of them starts another in place of a killed one."""
    found = processes_of(home)
    for number in (signal.SIGSTOP, signal.SIGKILL):
        for pid in found:
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                continue
    return found


def _belongs(pid: int, home: bytes) -> bool:
    if _is_zombie(pid):
        return False
    variables = (word.partition(b"=") for word in _read(pid, "environ").split(b"\0"))
    named = [value for name, _, value in variables if name in _PLACES]
    named += _read(pid, "cmdline").split(b"\0")
    return any(word == home or word.startswith(home + b"/") for word in named)


def _is_zombie(pid: int) -> bool:
    return _read(pid, "stat").rpartition(b")")[2].split()[:1] in ([b"Z"], [b"X"])


def _ancestors(pid: int) -> set[int]:
    found: set[int] = set()
    while pid:
        found.add(pid)
        fields = _read(pid, "stat").rpartition(b")")[2].split()
        pid = int(fields[1]) if fields else 0
    return found


def _read(pid: int, name: str) -> bytes:
    try:
        with open(f"/proc/{pid}/{name}", "rb") as file:
            return file.read()
    except OSError:  # it ended meanwhile, or belongs to somebody else
        return b""


@contextmanager
def read_only(directory: str) -> Iterator[None]:
    """The directory on a read-only file system meanwhile; files that are open stay writable. Needs root."""
    if os.geteuid() != 0:
        pytest.skip("only root can remount a directory read-only")
    with tempfile.TemporaryDirectory() as other:  # a copy of a read-only mount is read-only from the first moment on
        _mount("--bind", directory, other)
        _mount("-o", "remount,bind,ro", other)
        _mount("--bind", other, directory)
        subprocess.run(["umount", other], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", directory], check=True)


@contextmanager
def small_disk_at(directory: Path, size: str) -> Iterator[None]:
    """A file system of this size, such as `2m`, at the directory meanwhile. Needs root."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount a small disk")
    directory.mkdir(exist_ok=True)
    _mount("-t", "tmpfs", "-o", f"size={size},mode=700", "none", str(directory))
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(directory)], check=True)


def fill_disk(disk: Path) -> Path:
    """To the last byte; the file to be removed."""
    with open(disk / "ballast", "wb", buffering=0) as ballast:
        for size in (1 << 16, 1 << 12, 1):
            while True:
                try:
                    ballast.write(bytes(size))
                except OSError:
                    break
    return disk / "ballast"


def _mount(*arguments: str) -> None:
    subprocess.run(["mount", *arguments], check=True)
