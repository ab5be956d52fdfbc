"""Which processes of an instance are a project's, and how each stands to the file."""

from __future__ import annotations

from typing import NamedTuple

from holdfast.client.process import Process
from holdfast.client.sync import Client
from holdfast.project.spec import Member, Project, task_of

_MEMBER = "project.member"
_SPEC = "project.spec"
_FILE = "project.file"
_NEEDS = "project.needs"


class Roll(NamedTuple):
    """A project's processes by the names they have in the file; of several, the one that runs or else the newest."""

    running: dict[str, Process]
    ended: dict[str, Process]

    def get(self, member: str) -> Process | None:
        return self.running.get(member) or self.ended.get(member)


def call(client: Client, project: str) -> Roll:
    """As things stand now."""
    processes = sorted(client.ps(all=True, task=task_of(project)), key=lambda process: process.started_at or 0.0)
    running = {member_of(process, project): process for process in processes if lives(process)}
    ended = {member_of(process, project): process for process in processes if not lives(process)}
    return Roll(running, ended)


def all_of(client: Client, project: str) -> list[Process]:
    """Every process of the project of which something is alive."""
    processes = client.ps(all=True, task=task_of(project))
    return [process for process in processes if lives(process) or process.leftover_pids]


def labels(project: Project, member: Member) -> dict[str, str]:
    return {
        _MEMBER: member.name,
        _SPEC: member.fingerprint,
        _FILE: project.file[:4000],
        _NEEDS: " ".join(member.needs)[:4000],
    }


def member_of(process: Process, project: str) -> str:
    """Its name in the file; of one that somebody else put among them, its own."""
    labelled = (process.labels or {}).get(_MEMBER)
    return labelled or (process.name or process.id).removeprefix(f"{project}.")


def is_as(process: Process, member: Member) -> bool:
    """Whether it was started as the file has it now."""
    return (process.labels or {}).get(_SPEC) == member.fingerprint


def file_of(process: Process) -> str | None:
    return (process.labels or {}).get(_FILE)


def needs_of(process: Process) -> list[str]:
    """What it needed when it was started."""
    return (process.labels or {}).get(_NEEDS, "").split()


def has_succeeded(process: Process, member: Member) -> bool:
    return process.status == "ended" and process.exit_code in (member.options.get("success_codes") or [0])


def lives(process: Process) -> bool:
    """Whether it runs, or has ended for now and is to be started again."""
    return process.status != "ended" or process.to_json().get("restart_at") is not None
