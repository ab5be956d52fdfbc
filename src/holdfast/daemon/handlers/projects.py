"""control_project: `holdfast up -d` and `holdfast down` of a project, as a process."""

from __future__ import annotations

import os
import sys

from holdfast.daemon.core.context import Call, DaemonContext, Message
from holdfast.daemon.handlers import start
from holdfast.errors import NotFound
from holdfast.model.process import HeldProcess, new_id
from holdfast.ops.projects import ControlProject
from holdfast.ops.start import Start

#: As `holdfast up` writes them.
_TASK = "project:{}"
_FILE = "project.file"


async def control(context: DaemonContext, call: Call, ask: ControlProject) -> Message:
    """The command runs. A second one for the same project is refused while the first does. Raises NotFound."""
    member = _newest(context, ask.project)
    file = member.meta.labels[_FILE]
    words = ["up", "-d", "-f", file] if ask.action == "up" else ["down"]
    directory = os.path.dirname(file)
    request = Start.read(
        {
            "id": new_id(),
            "name": f"{ask.project}-{ask.action}",
            "argv": [sys.executable, "-P", "-m", "holdfast", *words, "-p", ask.project],
            "session": member.meta.session,
            "cwd": directory if os.path.isdir(directory) else "/",
            "notify": "never",
        }
    )
    reply = await start.handle(context, call, request)
    return {"process": reply["process"]}


def _newest(context: DaemonContext, project: str) -> HeldProcess:
    """The process of the project that was started last: it names the file."""
    task = _TASK.format(project)
    found = [one for one in context.registry.shown() if one.meta.task == task and one.meta.labels.get(_FILE)]
    if not found:
        raise NotFound(f"no project {project} was started", next="holdfast up -d, in the directory of its file")
    return max(found, key=lambda one: one.meta.requested_at or 0.0)
