"""A backend: one way to get places, such as containers of an engine, or hosts over SSH.

A backend has a name, which `--backend` takes, and options: those of its table in config.toml and of the start. Each
combination of backend, task and options is one place. A package outside of holdfast adds a kind of backend through the
entry point group `holdfast.backends`; the entry point is a subclass of `Backend`.
"""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar, Literal

from holdfast.model.process import HeldProcess
from holdfast.places.base import ExecutionPlace
from holdfast.places.keeper_link import Note
from holdfast.records import Struct
from holdfast_keeper.protocol import Message

Options = Mapping[str, Any]


class PlaceSpec(Struct, frozen=True):
    """What identifies a place. It is stored before the place is made, and never changes."""

    backend: str
    task: str
    """The task of its processes, or the session of those without a task; empty where a backend shares its places."""
    options: dict[str, Any]
    """Checked and complete, as `Backend.check_options` returned them."""
    kind: str
    """Of its backend, when the place was made: the configuration may give the name to another kind later."""

    @property
    def key(self) -> str:
        """A short name of the place: of its directory, and in the labels of its container."""
        text = json.dumps([self.backend, self.kind, self.task, self.options], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:12]


class Site(Struct, frozen=True):
    """What the daemon gives to a place."""

    directory: str
    """The directory of the place on this machine, with the bundles of its processes or copies of them."""
    cache: str
    """A directory for what places share, such as the interpreter that is carried to them."""
    instance: str
    """Identifies the instance: containers are labelled with it."""
    environ: Mapping[str, str]
    """A minimal environment, for programs of this machine such as `podman` and `ssh`."""
    hello: Message
    note: Note
    running: Callable[[], Iterable[HeldProcess]]
    """The running processes of the place."""


class BackendState(Struct, frozen=True):
    state: Literal["ready", "unusable"]
    detail: str
    """The version where it is ready; else what is missing, and what to do about it."""
    is_installed: bool = True
    """False where the program or package that it needs is not on this machine: `doctor` does not warn about that."""


class Sandbox(Struct, frozen=True):
    """A container or sandbox that carries the label of this instance."""

    key: str
    """Of its place."""
    name: str
    """As its engine knows it."""
    is_up: bool


class Backend(ABC):
    """`table` is its table in config.toml without `kind`; empty where it has none."""

    kind: ClassVar[str]
    is_per_task: ClassVar[bool] = True
    """Whether each task has places of its own. False where processes of all tasks share a place, as on a host."""

    def __init__(self, name: str, table: Options) -> None:
        self.name = name
        self.table = table

    @abstractmethod
    def check_options(self, given: Options) -> dict[str, Any]:
        """The options of a place: the table, with those of a start (`image`, `host`) over it.

        Raises BadValue for an option that it does not know, that is missing, or that has a wrong value.
        """

    @abstractmethod
    def open(self, spec: PlaceSpec, site: Site) -> ExecutionPlace:
        """The place. Nothing is made or reached before its `connect` is called."""

    @abstractmethod
    async def state(self, environ: Mapping[str, str]) -> BackendState:
        """Whether it can be used here, without making anything."""

    async def sandboxes(self, site_instance: str, environ: Mapping[str, str]) -> list[Sandbox]:
        """What exists for this instance, with a place or without. Raises OSError."""
        return []

    async def remove(self, sandbox: Sandbox, environ: Mapping[str, str]) -> None:
        """End it and everything in it. Raises OSError."""

    async def login(self, environ: Mapping[str, str], given: Options) -> list[str]:
        """The command that the user runs in a terminal to authenticate. Raises Unsupported where there is none."""
        from holdfast.errors import Unsupported

        raise Unsupported(f"{self.name} has no login", next="holdfast backends")
