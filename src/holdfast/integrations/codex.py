"""Codex: our MCP server; and hooks, which it obeys where it has them."""

from __future__ import annotations

import os

from holdfast.integrations import calling, hook_entries, toml_text
from holdfast.integrations.edits import Edit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

NAME = "codex"
SUMMARY = "Codex: the tools by MCP; ends are told with answers, and by hooks where it has them"
SCOPES = ("user", "project")
AFTERWARDS = "start codex anew; /mcp shows it, /hooks asks once whether you trust its hooks"

_PATH = ("mcp_servers", "holdfast")
#: Seconds. A call may last as long as we are told that it may, and a little; the first may have to start a daemon.
_CALL_LIMIT, _TOOL_TIMEOUT, _STARTUP_TIMEOUT = 180, 240, 30
_TELL: dict[str, Any] = {"timeout": 10}

HOOKS: dict[str, Any] = {
    "SessionStart": {"calls": [_TELL]},
    "UserPromptSubmit": {"calls": [_TELL]},
    "Stop": {"calls": [_TELL]},
}


def edits(scope: str) -> list[Edit]:
    is_shared = scope == "project"
    directory = _directory(is_shared)
    return [
        Edit(f"{directory}/config.toml", lambda text: _with(text, is_shared), _without, is_shared),
        hook_entries.edit(f"{directory}/hooks.json", NAME, HOOKS, is_shared),
    ]


def _directory(is_shared: bool) -> str:
    if is_shared:
        return f"{os.getcwd()}/.codex"
    return os.path.abspath(os.path.expanduser(os.environ.get("CODEX_HOME") or "~/.codex"))


def _with(text: str, is_shared: bool) -> str:
    found = _found(text)
    new = [calling.executable(), "mcp", "--client", NAME, "--call-limit", str(_CALL_LIMIT)]
    words = new if found is None else calling.renewed(_words(found), NAME)
    wanted: dict[str, Any] = {"command": words[0], "args": words[1:]}
    if found is None:
        # It passes on little of its environment: without these the server would look for another instance.
        wanted["env_vars"] = list(calling.PLACES)
        # Without `required` it begins before the server is there, and the first turn has no tools.
        wanted |= {"required": True, "startup_timeout_sec": _STARTUP_TIMEOUT, "tool_timeout_sec": _TOOL_TIMEOUT}
        home = {} if is_shared else calling.named_home()
        wanted |= {"env": home} if home else {}
    return toml_text.put(text, _PATH, wanted)


def _without(text: str) -> str:
    return toml_text.drop(text, _PATH) if _found(text) is not None else text


def _found(text: str) -> dict[str, Any] | None:
    """Our table. Raises ValueError where another's has its name."""
    table = toml_text.find(text, _PATH)
    if table is None:
        return None
    if not calling.is_ours(_words(table), "mcp"):
        raise ValueError("another server has the name holdfast there; give it another name")
    return table


def _words(table: dict[str, Any]) -> list[str]:
    args = table.get("args")
    return [str(table.get("command", "")), *map(str, args if isinstance(args, list) else ())]
