"""The real programs, in pinned versions, and the commands that run them."""

from __future__ import annotations

import os

from tests import node

#: Newer releases are several hundred megabytes: they are tried where there is time for that.
IS_FULL = os.environ.get("HOLDFAST_FULL") == "1"
CLAUDE_CODE = ["2.1.112", *(["2.1.325"] if IS_FULL else [])]
CODEX = ["0.100.0", *(["0.166.0"] if IS_FULL else [])]


def claude_code(version: str) -> list[str]:
    place = node.package("@anthropic-ai/claude-code", version)
    for native in place.parent.glob("claude-code-*/claude"):
        return [str(native)]
    return node.program("@anthropic-ai/claude-code", version, "claude")


def codex(version: str) -> list[str]:
    return node.program("@openai/codex", version, "codex")
