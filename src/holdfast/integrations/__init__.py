"""Other programs, joined with holdfast: what `holdfast integrate` switches on, and what then runs.

Every integration that is written into files has a module with NAME, SUMMARY, SCOPES, AFTERWARDS and `edits(scope)`.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: The module of each, by name.
NAMES = {"claude-code": "claude_code", "codex": "codex"}


def load(name: str) -> Any:
    """The module of the integration, which must be one of NAMES."""
    return __import__(f"holdfast.integrations.{NAMES[name]}", fromlist=["NAME"])
