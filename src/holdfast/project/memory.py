"""When a project was last brought down. What completed before that has to be done again at the next `up`.

One small file per project in the instance's home, written before anything is ended.
"""

from __future__ import annotations

import os
import time

from holdfast.client.sync import Client


def note_down(client: Client, project: str) -> None:
    path = _path(client, project)
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    fresh = f"{path}.{os.getpid()}"
    with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "w") as file:
        file.write(f"{time.time()!r}\n")
    os.replace(fresh, path)


def down_at(client: Client, project: str) -> float:
    """In unix seconds; 0 when it never was."""
    try:
        with open(_path(client, project)) as file:
            return float(file.read(64))
    except (FileNotFoundError, ValueError):
        return 0.0


def _path(client: Client, project: str) -> str:
    return f"{client.paths.home}/projects/{project}.down"
