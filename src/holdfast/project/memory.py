"""What is remembered of a project besides its processes: when it was last brought down, and whose turn it is.

What completed before it was brought down has to be done again at the next `up`. Two small files per project in the
instance's home.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

from holdfast.client.sync import Client
from holdfast.project.spec import checked_name


@contextmanager
def turn(client: Client, project: str) -> Iterator[None]:
    """For one at a time: looking what runs and starting what does not. Whoever is killed in it lets go."""
    fd = os.open(_path(client, project, "lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


def note_down(client: Client, project: str) -> None:
    """Written before anything is ended. Nobody who saw the project before starts anything for it after this."""
    path = _path(client, project, "down")
    fresh = f"{path}.{os.getpid()}"
    with turn(client, project):
        with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "w") as file:
            file.write(f"{time.time()!r}\n")
        os.replace(fresh, path)


def down_at(client: Client, project: str) -> float:
    """In unix seconds; 0 when it never was."""
    try:
        with open(_path(client, project, "down")) as file:
            return float(file.read(64))
    except (FileNotFoundError, ValueError):
        return 0.0


def _path(client: Client, project: str, kind: str) -> str:
    directory = f"{client.paths.home}/projects"
    os.makedirs(directory, mode=0o700, exist_ok=True)
    return f"{directory}/{checked_name(project)}.{kind}"
