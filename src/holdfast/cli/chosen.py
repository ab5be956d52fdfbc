"""The process that is meant where a verb gets no ID: the only one that runs, else the last one that was started."""

from __future__ import annotations

import os

from holdfast.cli import console
from holdfast.cli.outcomes import title
from holdfast.errors import NotFound

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.cli.options import Given
    from holdfast.client.sync import Client


def one(client: Client, given: Given, pty: bool = False) -> str:
    """The ID that was given, else the chosen one; with `pty` of processes with a terminal. Raises NotFound."""
    if given.words:
        return given.only("ID")[0]
    session = os.environ.get("HOLDFAST_SESSION") or None
    known = [process for process in client.ps(all=True, session=session, used=False) if process.pty or not pty]
    running = [process for process in known if process.status != "ended"]
    if not known:
        what = f"no process{' with a terminal' if pty else ''}{' of this session' if session else ''} is known"
        raise NotFound(what, next="holdfast ps -a")
    if len(running) == 1:
        chosen, why = running[0], "the only one that runs"
    else:
        chosen, why = max(known, key=lambda process: process.started_at or 0.0), "the last one that was started"
    console.say(f"{title(chosen)}, {why}: {console.brief(chosen.command, 80)}")
    return chosen.id
