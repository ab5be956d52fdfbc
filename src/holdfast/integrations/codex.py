"""Codex: the MCP server of holdfast; and hooks, for releases that have them."""

from __future__ import annotations

import os

from holdfast.integrations import command, entries, toml_text
from holdfast.integrations.edits import Edit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

NAME = "codex"
SUMMARY = "Codex: the tools by MCP; ends come with answers, and by hooks where it has them"
SCOPES = ("user", "project")
AFTERWARDS = "start codex anew; /mcp shows it, /hooks asks once whether you trust its hooks"

_PATH = ("mcp_servers", "holdfast")
#: Seconds. Codex waits a little longer than the calls of holdfast last; the first may have to start a daemon.
_CALL_LIMIT, _TOOL_TIMEOUT, _STARTUP_TIMEOUT = 180, 240, 30
_HOOK: dict[str, Any] = {"timeout": 10}

HOOKS: dict[str, Any] = {
    "SessionStart": {"calls": [_HOOK]},
    "UserPromptSubmit": {"calls": [_HOOK]},
    "Stop": {"calls": [_HOOK]},
}


def edits(scope: str) -> list[Edit]:
    is_shared = scope == "project"
    directory = _directory(is_shared)
    return [
        Edit(f"{directory}/config.toml", lambda text: _with(text, is_shared), _without, is_shared),
        entries.hooks_edit(f"{directory}/hooks.json", NAME, HOOKS, is_shared),
    ]


def _directory(is_shared: bool) -> str:
    if is_shared:
        return f"{os.getcwd()}/.codex"
    return os.path.abspath(os.path.expanduser(os.environ.get("CODEX_HOME") or "~/.codex"))


def _with(text: str, is_shared: bool) -> str:
    found = _found(text)
    new = [command.executable(), "mcp", "--client", NAME, "--call-limit", str(_CALL_LIMIT)]
    words = new if found is None else command.renewed(command.words_of(found), NAME)
    entry: dict[str, Any] = {"command": words[0], "args": words[1:]}
    if found is None:
        # It passes on little of its environment: without these the server would look for another instance.
        entry["env_vars"] = list(command.HOME_VARIABLES)
        # Without `required` it begins before the server is there, and the first turn has no tools.
        entry |= {"required": True, "startup_timeout_sec": _STARTUP_TIMEOUT, "tool_timeout_sec": _TOOL_TIMEOUT}
        home = {} if is_shared else command.named_home()
        entry |= {"env": home} if home else {}
    return toml_text.put(text, _PATH, entry)


def _without(text: str) -> str:
    return toml_text.drop(text, _PATH) if _found(text) is not None else text


def _found(text: str) -> dict[str, Any] | None:
    """The table of holdfast. Raises ValueError when the name is used by another program."""
    table = toml_text.find(text, _PATH)
    if table is None:
        return None
    if not command.is_ours(command.words_of(table), "mcp"):
        raise ValueError("another server has the name holdfast there; give it another name")
    return table
