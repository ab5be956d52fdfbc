"""Groups of processes from a file: started and ended together, in the order of their dependencies.

project = holdfast.project.load("holdfast.toml")
with holdfast.connect() as hf:
    report = holdfast.project.up(hf, project)
    …
    holdfast.project.down(hf, project)
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.project.ending import DownReport, down
    from holdfast.project.events import ProjectEvent
    from holdfast.project.loading import load
    from holdfast.project.spec import Member, Need, Project
    from holdfast.project.starting import UpReport, restart, up
    from holdfast.project.state import MemberStatus, status

__all__ = [
    "load", "up", "down", "restart", "status",
    "Project", "Member", "Need", "UpReport", "DownReport", "MemberStatus", "ProjectEvent",
]  # fmt: skip

_HOMES = {
    "load": "loading",
    "up": "starting",
    "UpReport": "starting",
    "down": "ending",
    "DownReport": "ending",
    "restart": "starting",
    "status": "state",
    "MemberStatus": "state",
    "ProjectEvent": "events",
    "Project": "spec",
    "Member": "spec",
    "Need": "spec",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'holdfast.project' has no attribute {name!r}")
    value: object = getattr(__import__(f"holdfast.project.{_HOMES[name]}", fromlist=[name]), name)
    globals()[name] = value
    return value
