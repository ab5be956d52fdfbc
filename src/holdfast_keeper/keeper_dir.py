"""The directory of one place: its lock, its sockets, and the few settings that must outlive every process."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import resource
import socket
from typing import Any

from holdfast_keeper import bundle, log

CONTROL = "keeper.sock"
FD_STORE = "depot.sock"
LOCK = "keeper.lock"
SETTINGS = "place.json"


class DirectoryTaken(Exception):
    """Another family holds this place."""


class KeeperDir:
    def __init__(self, directory: str) -> None:
        """Take the place. Raises Taken when somebody has it, OSError when it cannot be used."""
        self.path = os.path.abspath(directory)
        for room in (bundle.LIVE, bundle.DONE):
            os.makedirs(f"{self.path}/{room}", mode=0o700, exist_ok=True)
        self._lock = _lock(f"{self.path}/{LOCK}")
        self._fd = os.open(self.path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        self.control = _listen(self.path, CONTROL, socket.SOCK_STREAM)
        self.fd_store = _listen(self.path, FD_STORE, socket.SOCK_SEQPACKET)
        self.file_limit = _raise_file_limit()

    def live(self, process_id: str) -> str:
        return f"{self.path}/{bundle.LIVE}/{process_id}"

    def done(self, process_id: str) -> str:
        return f"{self.path}/{bundle.DONE}/{process_id}"

    def read_settings(self) -> dict[str, Any]:
        try:
            with open(f"{self.path}/{SETTINGS}", "rb") as file:
                return dict(json.load(file))
        except (FileNotFoundError, ValueError):
            return {}

    def write_settings(self, settings: dict[str, Any]) -> None:
        path = f"{self.path}/{SETTINGS}"
        if settings == self.read_settings():
            return
        try:
            with open(f"{path}.new", "w") as file:
                json.dump(settings, file)
            os.replace(f"{path}.new", path)
        except OSError as failed:  # they are in force all the same, until we are replaced
            log.write(f"keeper: {SETTINGS} could not be written: {failed}")

    def exists(self) -> bool:
        """Whether the directory is still where it was; another one in its place is not ours."""
        try:
            return os.path.samestat(os.fstat(self._fd), os.stat(self.path))
        except OSError:
            return False

    def release(self) -> None:
        """Nobody is held any more: leave no socket behind that nobody answers."""
        for name in (CONTROL, FD_STORE) if self.exists() else ():
            bundle.unlink(f"{self.path}/{name}")
        os.close(self._fd)
        os.close(self._lock)


def _lock(path: str) -> int:
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        raise DirectoryTaken from None
    return fd


def _listen(directory: str, name: str, kind: socket.SocketKind) -> socket.socket:
    bundle.unlink(f"{directory}/{name}")
    listener = socket.socket(socket.AF_UNIX, kind)
    # Through a descriptor, because the path of a socket has 107 bytes at most.
    fd = os.open(directory, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        listener.bind(f"/proc/self/fd/{fd}/{name}")
    finally:
        os.close(fd)
    os.chmod(f"{directory}/{name}", 0o600)
    listener.listen(128)
    listener.setblocking(False)
    return listener


def _raise_file_limit() -> tuple[int, int]:
    """Three descriptors a command add up; commands themselves get the limit that we were started with."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return soft, hard
