"""The directory of one place: its lock, its sockets, and the settings that must outlive every process."""

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
    """Another anchor and keeper hold this directory."""


class KeeperDir:
    def __init__(self, directory: str, inherited: dict[str, int] | None = None) -> None:
        """Lock the directory, unless its lock and sockets were `inherited` (see `renew.py`).

        Raises DirectoryTaken when it is locked already, OSError when it cannot be used.
        """
        self.path = os.path.abspath(directory)
        if inherited is None:
            for name in (bundle.LIVE, bundle.DONE):
                os.makedirs(f"{self.path}/{name}", mode=0o700, exist_ok=True)
            self._lock = _lock(f"{self.path}/{LOCK}")
            self._fd = os.open(self.path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
            self.control = _listen(self.path, CONTROL, socket.SOCK_STREAM)
            self.fd_store = _listen(self.path, FD_STORE, socket.SOCK_SEQPACKET)
        else:
            self._lock, self._fd = inherited["lock"], inherited["directory"]
            self.control = socket.socket(fileno=inherited["control"])
            self.fd_store = socket.socket(fileno=inherited["fd_store"])
            for listener in (self.control, self.fd_store):
                listener.setblocking(False)
        self.file_limit = _raise_file_limit()
        #: The release of this program, as its daemon named it.
        self.release_name: str | None = None

    def descriptors(self) -> dict[str, int]:
        """Its open descriptors by name, for `inherited`."""
        listeners = {"control": self.control.fileno(), "fd_store": self.fd_store.fileno()}
        return {"lock": self._lock, "directory": self._fd, **listeners}

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
        except OSError as failed:  # they apply all the same, until the next keeper
            log.write(f"keeper: cannot write {SETTINGS}: {failed}")

    def exists(self) -> bool:
        """Whether the directory is still at its path. Another directory at that path does not count."""
        try:
            return os.path.samestat(os.fstat(self._fd), os.stat(self.path))
        except OSError:
            return False

    def release(self) -> None:
        """Remove the sockets and unlock the directory."""
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
    # Through a descriptor: the path of a socket has at most 107 bytes.
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
    """Raise the limit on open files: each command takes three or more. Returns the old one, which commands get."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return soft, hard
