"""Claude Code: our MCP server, and hooks that put news into the conversation."""

from __future__ import annotations

import os

from holdfast.integrations import hook_entries, mcp_entry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.integrations.edits import Edit

NAME = "claude-code"
SUMMARY = "Claude Code: the tools by MCP; ends and what still runs are told by hooks"
SCOPES = ("user", "project")
AFTERWARDS = "start claude anew; /mcp and /hooks show it"

#: Seconds. What a person waits for is quick; the one that waits for news is to live as long as the conversation.
_QUICK, _LONG = 10, 7 * 24 * 3600
_TELL: dict[str, Any] = {"timeout": _QUICK}
#: In the background after the turn: wakes the model when there is news.
_WAIT: dict[str, Any] = {
    "words": ("--wait",),
    "asyncRewake": True,
    "rewakeMessage": "From holdfast, which holds your background processes:",
    "rewakeSummary": "A background process has news",
    "timeout": _LONG,
}

HOOKS: dict[str, Any] = {
    "SessionStart": {"calls": [_TELL]},
    "UserPromptSubmit": {"calls": [_TELL]},
    "PostToolUse": {"matcher": "^(?!mcp__holdfast__)", "calls": [_TELL]},
    "Stop": {"calls": [_TELL, _WAIT]},
    "SessionEnd": {"calls": [_TELL]},
}


def edits(scope: str) -> list[Edit]:
    is_shared = scope == "project"
    servers, settings = _files(is_shared)
    return [
        mcp_entry.edit(servers, NAME, is_shared),
        hook_entries.edit(settings, NAME, HOOKS, is_shared),
    ]


def _files(is_shared: bool) -> tuple[str, str]:
    if is_shared:
        here = os.getcwd()
        return f"{here}/.mcp.json", f"{here}/.claude/settings.json"
    home = os.path.expanduser("~")
    moved = os.environ.get("CLAUDE_CONFIG_DIR")
    directory = os.path.abspath(os.path.expanduser(moved)) if moved else None
    return f"{directory or home}/.claude.json", f"{directory or home + '/.claude'}/settings.json"
