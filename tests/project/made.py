"""Projects for tests: a file in a directory of its own, and what happens to it."""

from __future__ import annotations

import textwrap
from pathlib import Path

import holdfast.project
from holdfast.project.happening import Happening
from holdfast.project.spec import Project

FOREVER = "exec sleep 1000"


def write(directory: Path, text: str, name: str = "holdfast.toml") -> Path:
    file = directory / name
    file.write_text(textwrap.dedent(text))
    return file


def load(directory: Path, text: str, name: str | None = None) -> Project:
    return holdfast.project.load(write(directory, text), name=name)


class Heard(list[Happening]):
    """What was told, in order."""

    def __call__(self, happening: Happening) -> None:
        self.append(happening)

    def kinds(self, *kinds: str) -> list[tuple[str, str]]:
        """Kind and member of those happenings."""
        return [(h.kind, h.member) for h in self if not kinds or h.kind in kinds]

    def members(self, kind: str) -> list[str]:
        return [h.member for h in self if h.kind == kind]
