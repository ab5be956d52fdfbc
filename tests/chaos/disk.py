"""A small file system of a storm's own, which can be full or read-only for a while. Needs root."""

from __future__ import annotations

import contextlib
import os
import subprocess

_SIZE = "96m"


class SmallDisk:
    """A tmpfs at `path`, with the instance in `home`."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.home = f"{path}/home"
        self._ballast = f"{path}/ballast"
        os.makedirs(path, exist_ok=True)
        _run("mount", "-t", "tmpfs", "-o", f"size={_SIZE},mode=700", "tmpfs", path)
        os.makedirs(self.home, mode=0o700)

    def fill(self) -> None:
        fd = os.open(self._ballast, os.O_WRONLY | os.O_CREAT, 0o600)
        try:
            for piece in (bytes(1 << 20), bytes(4096)):
                with contextlib.suppress(OSError):  # until it is full
                    while os.write(fd, piece):
                        pass
        finally:
            os.close(fd)

    def free(self) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._ballast)

    def set_read_only(self) -> None:
        """Every path in the home is read-only. What is open already can still be written: the kernel refuses a
        remount as long as there is such a file.
        """
        side = f"{self.path}/side"
        os.makedirs(side, exist_ok=True)
        _run("mount", "--bind", self.home, side)
        _run("mount", "-o", "remount,bind,ro", side)
        _run("mount", "--bind", side, self.home)  # a copy of a read-only mount is read-only from the first moment on
        _run("umount", side)

    def set_writable(self) -> None:
        _run("umount", "--lazy", self.home)

    def close(self) -> None:
        subprocess.run(["umount", "--lazy", self.path], check=False, capture_output=True)


def _run(*command: str) -> None:
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        raise OSError(f"{' '.join(command)}: {done.stderr.strip()}")
