"""Whether the processes of a project have a directory to run in."""

from __future__ import annotations

import os

from holdfast.project import order, source
from holdfast.project.spec import Project


def check_places(project: Project) -> None:
    """Raises BadValue for the first whose directory is not there, unless something that ends before may make it."""
    for name, member in project.members.items():
        if not os.path.isdir(member.cwd) and not _may_be_made(project, name):
            why = f"is {member.cwd}, which is no directory"
            raise source.read(project.file).error(("processes", name, "cwd"), why, "create it, or mend it")


def _may_be_made(project: Project, name: str) -> bool:
    before = order.closure(project.needs, project.members[name].needs)
    return any(project.members[other].oneshot for other in before)
