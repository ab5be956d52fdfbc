"""Our server among the `mcpServers` of a JSON configuration."""

from __future__ import annotations

from holdfast.integrations import calling, json_text
from holdfast.integrations.edits import Edit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_SERVERS = "mcpServers"
_PATH = (_SERVERS, "holdfast")
#: The tools are there from the first turn on, and need not be searched for.
_PROMPT = {"alwaysLoad": True}


def edit(path: str, client: str, is_shared: bool) -> Edit:
    return Edit(path, lambda text: _with(text, client, is_shared), _without, is_shared, [(_SERVERS,)])


def _with(text: str, client: str, is_shared: bool) -> str:
    text = json_text.filled(text)
    found = _found(text)
    if found is None:
        return json_text.put(text, _PATH, {"type": "stdio", **_new(client), "env": _env(is_shared), **_PROMPT})
    for key, value in _call(calling.renewed(_words(found), client)).items():
        if found.get(key) != value:
            text = json_text.put(text, (*_PATH, key), value)
    return text


def _call(words: list[str]) -> dict[str, Any]:
    return {"command": words[0], "args": words[1:]}


def _new(client: str) -> dict[str, Any]:
    return _call([calling.executable(), "mcp", "--client", client])


def _env(is_shared: bool) -> dict[str, str]:
    """What others read names no place of one person's."""
    return {} if is_shared else calling.named_home()


def _without(text: str) -> str:
    return text if json_text.is_bare(text) or _found(text) is None else json_text.drop(text, _PATH)


def _found(text: str) -> dict[str, Any] | None:
    """Our entry. Raises ValueError where another's has its name."""
    servers = json_text.load(text).get(_SERVERS, {})
    if not isinstance(servers, dict):
        raise ValueError(f"its {_SERVERS} is no object")
    entry = servers.get("holdfast")
    if entry is None:
        return None
    if not isinstance(entry, dict) or not calling.is_ours(_words(entry), "mcp"):
        raise ValueError("another server has the name holdfast there; give it another name")
    return entry


def _words(entry: dict[str, Any]) -> list[str]:
    args = entry.get("args")
    return [str(entry.get("command", "")), *map(str, args if isinstance(args, list) else ())]
