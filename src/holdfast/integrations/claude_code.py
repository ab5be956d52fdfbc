"""Claude Code: the MCP server of holdfast, and hooks that put notices into the conversation."""

from __future__ import annotations

import os

from holdfast.integrations import entries

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.integrations.edits import Edit

NAME = "claude-code"
SUMMARY = "Claude Code: the tools by MCP; hooks report ends and what still runs"
SCOPES = ("user", "project")
AFTERWARDS = "start claude anew; /mcp and /hooks show it"

#: Seconds. Hooks that the user waits for are quick; the one that waits for notices lives as long as the conversation.
_QUICK, _LONG = 10, 7 * 24 * 3600
_HOOK: dict[str, Any] = {"timeout": _QUICK}
#: In the background after the turn: wakes the model when there are notices.
_WAIT: dict[str, Any] = {
    "words": ("--wait",),
    "asyncRewake": True,
    "rewakeMessage": "From holdfast, which holds your background processes:",
    "rewakeSummary": "A background process has a notification",
    "timeout": _LONG,
}

HOOKS: dict[str, Any] = {
    "SessionStart": {"calls": [_HOOK]},
    "UserPromptSubmit": {"calls": [_HOOK]},
    "PostToolUse": {"matcher": "^(?!mcp__holdfast__)", "calls": [_HOOK]},
    "Stop": {"calls": [_HOOK, _WAIT]},
    "SessionEnd": {"calls": [_HOOK]},
}


def edits(scope: str) -> list[Edit]:
    is_shared = scope == "project"
    servers, settings = _files(is_shared)
    return [
        entries.server_edit(servers, NAME, is_shared),
        entries.hooks_edit(settings, NAME, HOOKS, is_shared),
    ]


def _files(is_shared: bool) -> tuple[str, str]:
    if is_shared:
        here = os.getcwd()
        return f"{here}/.mcp.json", f"{here}/.claude/settings.json"
    home = os.path.expanduser("~")
    moved = os.environ.get("CLAUDE_CONFIG_DIR")
    directory = os.path.abspath(os.path.expanduser(moved)) if moved else None
    return f"{directory or home}/.claude.json", f"{directory or home + '/.claude'}/settings.json"
