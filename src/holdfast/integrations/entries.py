"""The entries of holdfast in a JSON configuration: the server among `mcpServers`; `hooks` by event."""

from __future__ import annotations

from holdfast.integrations import command, json_text
from holdfast.integrations.edits import Edit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any, TypeAlias

    #: By event: the groups, as they are in the file but for the command.
    Groups: TypeAlias = Mapping[str, Mapping[str, Any]]

_SERVERS = "mcpServers"
_PATH = (_SERVERS, "holdfast")
#: The tools are in every prompt, and are not searched for.
_LOADED = {"alwaysLoad": True}


def server_edit(path: str, client: str, is_shared: bool) -> Edit:
    return Edit(path, lambda text: _with_server(text, client, is_shared), _without_server, is_shared, [(_SERVERS,)])


def _with_server(text: str, client: str, is_shared: bool) -> str:
    text = json_text.filled(text)
    found = _server(text)
    if found is None:
        env = {} if is_shared else command.named_home()  # a file that others read has no path of one user
        entry = {"type": "stdio", "command": command.executable(), "args": ["mcp", "--client", client]}
        return json_text.put(text, _PATH, {**entry, "env": env, **_LOADED})
    words = command.renewed(command.words_of(found), client)
    for key, value in (("command", words[0]), ("args", words[1:])):
        if found.get(key) != value:
            text = json_text.put(text, (*_PATH, key), value)
    return text


def _without_server(text: str) -> str:
    return text if json_text.is_bare(text) or _server(text) is None else json_text.drop(text, _PATH)


def _server(text: str) -> dict[str, Any] | None:
    """The entry of holdfast. Raises ValueError when the name is used by another program."""
    servers = json_text.load(text).get(_SERVERS, {})
    if not isinstance(servers, dict):
        raise ValueError(f"its {_SERVERS} is no object")
    entry = servers.get("holdfast")
    if entry is None:
        return None
    if not isinstance(entry, dict) or not command.is_ours(command.words_of(entry), "mcp"):
        raise ValueError("another server has the name holdfast there; give it another name")
    return entry


def hooks_edit(path: str, client: str, groups: Groups, is_shared: bool = False) -> Edit:
    """`groups` has, by event, what our group says besides its hooks, and `calls`: what each hook says besides its
    command, which is `holdfast hook CLIENT` and the `words`.
    """
    home = {} if is_shared else command.named_home()
    holders = [("hooks",), *(("hooks", event) for event in groups)]
    return Edit(
        path,
        lambda text: _with_hooks(text, client, groups, home),
        lambda text: _without_hooks(text, client),
        is_shared,
        holders,
    )


def _with_hooks(text: str, client: str, groups: Groups, home: dict[str, str]) -> str:
    text = json_text.filled(text)
    for event, spec in groups.items():
        group = _group(client, spec, home)
        ours = [place for place in _ours(text, client) if place[1] == event]
        lines = {command.arguments(hook["command"]): hook["command"] for hook in group["hooks"]}
        found = {command.arguments(_value_at(text, place)["command"]): place for place in ours}
        if found.keys() == lines.keys() and len(ours) == len(lines):
            for arguments, place in found.items():  # other changes of the user in them stay
                text = _renewed(text, (*place, "command"), lines[arguments])
            continue
        for place in reversed(ours):
            text = _drop(text, place)
        text = json_text.append(text, ("hooks", event), group)
    return text


def _renewed(text: str, place: tuple[str | int, ...], line: str) -> str:
    return text if _value_at(text, place) == line else json_text.put(text, place, line)


def _group(client: str, spec: Mapping[str, Any], home: dict[str, str]) -> dict[str, Any]:
    hooks = []
    for call in spec["calls"]:
        line = command.as_line("hook", client, *call.get("words", ()), home=home)
        hooks.append({"type": "command", "command": line, **{key: call[key] for key in call if key != "words"}})
    return {**{key: spec[key] for key in spec if key != "calls"}, "hooks": hooks}


def _without_hooks(text: str, client: str) -> str:
    if json_text.is_bare(text):
        return text
    for place in reversed(list(_ours(text, client))):
        text = _drop(text, place)
    return text


def _drop(text: str, place: tuple[str | int, ...]) -> str:
    """Without that hook; without its group where it was alone there."""
    text = json_text.drop(text, place)
    group = place[:-2]
    return text if _value_at(text, group)["hooks"] else json_text.drop(text, group)


def _value_at(text: str, place: tuple[str | int, ...]) -> Any:
    value = json_text.load(text)
    for key in place:
        value = value[key]
    return value


def _ours(text: str, client: str) -> Iterator[tuple[str | int, ...]]:
    """Where the hooks of holdfast are. Raises ValueError when hooks have another shape."""
    hooks = json_text.load(text).get("hooks", {})
    if not isinstance(hooks, dict):
        raise ValueError("its hooks are no object")
    for event, groups in hooks.items():
        if not isinstance(groups, list):
            raise ValueError(f"its hooks of {event} are no list")
        for number, group in enumerate(groups):
            inner = group.get("hooks") if isinstance(group, dict) else None
            for at, hook in enumerate(inner if isinstance(inner, list) else ()):
                if isinstance(hook, dict) and command.is_our_line(hook.get("command"), "hook", client):
                    yield ("hooks", event, number, "hooks", at)
