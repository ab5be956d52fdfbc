"""Foreground processes whose terminal was closed: recorded by that call, and shown once by the next on a terminal."""

from __future__ import annotations

import os

from holdfast.cli import console
from holdfast.client import launch
from holdfast.errors import HoldfastError
from holdfast.paths import find_paths

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.client.process import Process
    from holdfast.client.sync import Client

_MOST_SHOWN = 3


def way_back(process: Process) -> str:
    """The command that shows the process again."""
    return f"holdfast {'attach' if process.pty else 'logs -f'} {process.name or process.id}"


def record(client: Client, process: Process) -> None:
    """The terminal of this process was closed. What cannot be written is not shown later."""
    directory = client.paths.closed_terminals
    try:
        os.makedirs(directory, mode=0o700, exist_ok=True)
        with open(
            os.open(f"{directory}/{process.id}", os.O_WRONLY | os.O_CREAT, 0o600), "w", errors="surrogateescape"
        ) as file:
            file.write(process.session)
    except OSError:
        return


def report(words: Sequence[str]) -> None:
    """Say once of each such process of this session that it still runs, unless this call names it. Starts no daemon."""
    paths = find_paths()
    try:
        ids = os.listdir(paths.closed_terminals)
    except OSError:
        return
    if not ids:
        return
    from holdfast.client.link import Link
    from holdfast.client.process import Process

    try:
        session = launch.session_of(None)
        mine = [id_ for id_ in sorted(ids) if _read(f"{paths.closed_terminals}/{id_}") == session]
        sock = launch.find(paths) if mine else None
        if sock is None:
            return
        link = Link(sock, session)
        reply, _ = link.call("list", {"session": session}, 5.0)
        running = {fields["id"]: Process(fields) for fields in reply["processes"]}
    except (HoldfastError, OSError):
        return
    for id_ in mine:
        try:
            os.unlink(f"{paths.closed_terminals}/{id_}")
        except OSError:
            continue  # another call shows it
        process = running.get(id_)
        if process is not None and not {id_, process.name} & set(words):
            console.say(f"{process.name or id_} still runs since its terminal closed: {way_back(process)}")


def _read(path: str) -> str:
    with open(path, errors="surrogateescape") as file:
        return file.read(1024)
