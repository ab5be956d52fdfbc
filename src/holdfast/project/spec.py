"""A project and its members, as the file has them, checked and complete."""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any, Literal, NamedTuple, TypeAlias

from holdfast.errors import BadValue
from holdfast.project import order

NeedKind: TypeAlias = Literal["started", "ready", "completed", "log"]
NEED_KINDS: tuple[NeedKind, ...] = ("started", "ready", "completed", "log")
#: Without dots: the part before the first dot of a process name is its project.
_NAME = re.compile(r"[A-Za-z0-9_-]{1,60}")
READY_KEYS = ("ready_log", "ready_port", "ready_http", "ready_uptime")


class Need(NamedTuple):
    """A condition on another member that must hold before this one starts."""

    kind: NeedKind
    #: With `log`: a regular expression that a line of its output must match.
    pattern: str | None = None
    #: With `log`: seconds to wait for that line; None for no limit.
    timeout: float | None = None

    def __str__(self) -> str:
        return f"has written /{self.pattern}/" if self.kind == "log" else f"is {self.kind}"


class Member(NamedTuple):
    """One process of a project."""

    name: str
    command: str | list[str]
    cwd: str
    env: dict[str, str]
    #: All other arguments of `Client.run`, by name.
    options: dict[str, Any]
    needs: dict[str, Need]
    profiles: tuple[str, ...] = ()
    #: It must end with success, and then counts as completed until the project is brought down.
    oneshot: bool = False

    @property
    def has_ready_rule(self) -> bool:
        return any(key in self.options for key in READY_KEYS)

    @property
    def fingerprint(self) -> str:
        """Of the specification. A process with the same fingerprint needs no restart."""
        spec = [self.command, self.cwd, self.env, self.options]
        return hashlib.sha256(json.dumps(spec, sort_keys=True).encode(errors="surrogatepass")).hexdigest()[:32]


class Project(NamedTuple):
    """A group of processes that are started and ended together."""

    name: str
    #: The file that it was read from.
    file: str
    members: dict[str, Member]

    @property
    def task(self) -> str:
        """The task key of all its processes: `holdfast ps --task project:NAME`."""
        return task_of(self.name)

    @property
    def needs(self) -> dict[str, list[str]]:
        return {name: list(member.needs) for name, member in self.members.items()}

    def process_name(self, member: str) -> str:
        return f"{self.name}.{member}"

    def chosen(self, names: tuple[str, ...] = (), profiles: tuple[str, ...] = ()) -> list[str]:
        """The named members, or else all without a profile or with one of `profiles`; with their dependencies."""
        selected = names or [name for name, m in self.members.items() if not m.profiles or {*m.profiles} & {*profiles}]
        return order.closure(self.needs, selected)


def task_of(name: str) -> str:
    """The task key of a project. Raises BadValue for an invalid project name."""
    return f"project:{checked_name(name)}"


def checked_name(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise BadValue(f"a project cannot be called {name[:80]!r}", next="use A-Z a-z 0-9 _ -")
    return name
