"""Projects for tests: a file in a directory of its own, and what happens to it."""

from __future__ import annotations

import textwrap
from pathlib import Path

import holdfast.project
from holdfast.project.events import ProjectEvent
from holdfast.project.spec import Project

FOREVER = "exec sleep 1000"


def write(directory: Path, text: str, name: str = "holdfast.toml") -> Path:
    file = directory / name
    file.write_text(textwrap.dedent(text))
    return file


def load(directory: Path, text: str, name: str | None = None) -> Project:
    return holdfast.project.load(write(directory, text), name=name)


class Events(list[ProjectEvent]):
    """An `on_event` that collects."""

    def __call__(self, event: ProjectEvent) -> None:
        self.append(event)

    def kinds(self, *kinds: str) -> list[tuple[str, str]]:
        """Kind and member of the events."""
        return [(e.kind, e.member) for e in self if not kinds or e.kind in kinds]

    def members(self, kind: str) -> list[str]:
        return [e.member for e in self if e.kind == kind]
