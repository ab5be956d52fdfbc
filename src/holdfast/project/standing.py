"""How the members of a project stand."""

from __future__ import annotations

from typing import Any, NamedTuple

from holdfast.client.process import Process
from holdfast.client.sync import Client
from holdfast.project import roll
from holdfast.project.spec import Project


class Standing(NamedTuple):
    """One member. `process` is the one that runs, or else the last that did; None when there was none."""

    member: str
    process: Process | None
    #: False for what runs but is not in the file any more.
    is_in_file: bool = True
    #: Whether it runs otherwise than the file has it now.
    is_changed: bool = False

    def to_json(self) -> dict[str, Any]:
        return {
            "member": self.member,
            "in_file": self.is_in_file,
            "changed": self.is_changed,
            "process": self.process.to_json() if self.process is not None else None,
        }


def status(client: Client, project: Project) -> list[Standing]:
    """All of the file in its order, then what runs besides."""
    found = roll.call(client, project.name)
    listed = []
    for name, member in project.members.items():
        running = found.running.get(name)
        is_changed = running is not None and not roll.is_as(running, member)
        listed.append(Standing(name, found.get(name), is_changed=is_changed))
    orphans = [name for name in found.running if name not in project.members]
    return listed + [Standing(name, found.running[name], is_in_file=False) for name in orphans]
