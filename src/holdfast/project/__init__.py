"""Groups of processes from a file.

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
    from holdfast.project.happening import Happening
    from holdfast.project.loading import load
    from holdfast.project.restarting import restart
    from holdfast.project.spec import Member, Need, Project
    from holdfast.project.standing import Standing, status
    from holdfast.project.starting import UpReport, up

__all__ = [
    "load", "up", "down", "restart", "status",
    "Project", "Member", "Need", "UpReport", "DownReport", "Standing", "Happening",
]  # fmt: skip

_HOMES = {
    "load": "loading",
    "up": "starting",
    "UpReport": "starting",
    "down": "ending",
    "DownReport": "ending",
    "restart": "restarting",
    "status": "standing",
    "Standing": "standing",
    "Happening": "happening",
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
