"""Members of a project again: ended in the reverse order of their needs, then started in that order."""

from __future__ import annotations

from collections.abc import Collection

from holdfast.client.sync import Client
from holdfast.errors import NotNow
from holdfast.project import ending, roll
from holdfast.project.happening import Tell, tell_nobody
from holdfast.project.spec import Project
from holdfast.project.starting import UpReport, up


def restart(
    client: Client,
    project: Project,
    names: Collection[str] = (),
    *,
    grace: float | None = None,
    wait: bool = True,
    tell: Tell = tell_nobody,
) -> UpReport:
    """Restart those named, or all that run, as the file has them now. What they need is started if it does not run.

    Raises NotNow when something does not die: then nothing is started.
    """
    found = roll.call(client, project.name)
    chosen = list(names) or [name for name in project.members if name in found.running]
    report = ending.end(client, project.name, chosen, grace, tell) if chosen else ending.DownReport({}, {})
    if not report.ok:
        raise NotNow(f"does not die: {', '.join(report.survived)}", next=f"holdfast ps --task {project.task}")
    return up(client, project, chosen, fresh=chosen, wait=wait, grace=grace, tell=tell)
