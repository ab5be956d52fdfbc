"""A project in an instance: its processes, the status of its members, its lock, and when it was last brought down.

Labels on each process say which member it is and what it was started from. Two small files per project in the home
directory of the instance hold the rest: a lock, and the time of the last `down`. What completed before that time runs
again at the next `up`.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from holdfast import files
from holdfast.client.process import Process
from holdfast.client.sync import Client
from holdfast.project.spec import Member, Project, checked_name, task_of

_MEMBER = "project.member"
_SPEC = "project.spec"
_FILE = "project.file"
_NEEDS = "project.needs"


class ProjectProcesses(NamedTuple):
    """A project's processes by member name. Of several with one name: the one that runs, or else the newest."""

    running: dict[str, Process]
    ended: dict[str, Process]

    def get(self, member: str) -> Process | None:
        return self.running.get(member) or self.ended.get(member)


class MemberStatus(NamedTuple):
    """One member. `process` is the one that runs, or else the last that did; None when there was none."""

    member: str
    process: Process | None
    #: False for a process that runs but is not in the file any more.
    is_in_file: bool = True
    #: Whether it runs with another specification than the file has now.
    is_changed: bool = False

    def to_json(self) -> dict[str, Any]:
        return {
            "member": self.member,
            "in_file": self.is_in_file,
            "changed": self.is_changed,
            "process": self.process.to_json() if self.process is not None else None,
        }


def status(client: Client, project: Project) -> list[MemberStatus]:
    """All members in the order of the file, then orphans."""
    found = processes_of(client, project.name)
    listed = []
    for name, member in project.members.items():
        running = found.running.get(name)
        is_changed = running is not None and not is_unchanged(running, member)
        listed.append(MemberStatus(name, found.get(name), is_changed=is_changed))
    orphans = [name for name in found.running if name not in project.members]
    return listed + [MemberStatus(name, found.running[name], is_in_file=False) for name in orphans]


def processes_of(client: Client, project: str) -> ProjectProcesses:
    processes = sorted(client.ps(all=True, task=task_of(project)), key=lambda process: process.started_at or 0.0)
    running = {member_of(process, project): process for process in processes if is_active(process)}
    ended = {member_of(process, project): process for process in processes if not is_active(process)}
    return ProjectProcesses(running, ended)


def alive(client: Client, project: str) -> list[Process]:
    """Every process of the project that is active or has left processes behind."""
    processes = client.ps(all=True, task=task_of(project))
    return [process for process in processes if is_active(process) or process.leftover_pids]


def labels(project: Project, member: Member) -> dict[str, str]:
    return {
        _MEMBER: member.name,
        _SPEC: member.fingerprint,
        _FILE: project.file[:4000],
        _NEEDS: " ".join(member.needs)[:4000],
    }


def member_of(process: Process, project: str) -> str:
    """Its name in the file, from its label; without a label, its own name without the project's."""
    labelled = (process.labels or {}).get(_MEMBER)
    return labelled or (process.name or process.id).removeprefix(f"{project}.")


def is_unchanged(process: Process, member: Member) -> bool:
    """Whether it was started as the file has it now."""
    return (process.labels or {}).get(_SPEC) == member.fingerprint


def file_of(process: Process) -> str | None:
    return (process.labels or {}).get(_FILE)


def needs_of(process: Process) -> list[str]:
    """The names that it depended on when it was started."""
    return (process.labels or {}).get(_NEEDS, "").split()


def has_succeeded(process: Process, member: Member) -> bool:
    return process.status == "ended" and process.exit_code in (member.options.get("success_codes") or [0])


def is_active(process: Process) -> bool:
    """Whether it runs, or has ended and will be restarted by its policy."""
    return process.status != "ended" or process.to_json().get("restart_at") is not None


@contextmanager
def lock(client: Client, project: str) -> Iterator[None]:
    """Held while checking what runs and starting what does not. The kernel releases it when its holder is killed."""
    fd = os.open(_path(client, project, "lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


def record_down(client: Client, project: str) -> None:
    """Written before anything is ended: an `up` that began earlier starts nothing after this."""
    with lock(client, project):
        files.replace(_path(client, project, "down"), f"{time.time()!r}\n".encode())


def down_at(client: Client, project: str) -> float:
    """When it was last brought down, in unix seconds; 0 when it never was."""
    try:
        with open(_path(client, project, "down")) as file:
            return float(file.read(64))
    except (FileNotFoundError, ValueError):
        return 0.0


def _path(client: Client, project: str, kind: str) -> str:
    directory = f"{client.paths.home}/projects"
    os.makedirs(directory, mode=0o700, exist_ok=True)
    return f"{directory}/{checked_name(project)}.{kind}"
