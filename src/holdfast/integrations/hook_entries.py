"""Our hooks in a JSON configuration: `hooks`, by event, in groups with an optional matcher."""

from __future__ import annotations

from holdfast.integrations import calling, json_text
from holdfast.integrations.edits import Edit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any, TypeAlias

    #: By event: the groups, as they stand in the file but for the command.
    Groups: TypeAlias = Mapping[str, Mapping[str, Any]]


def edit(path: str, client: str, groups: Groups, is_shared: bool = False) -> Edit:
    """`groups` has, by event, what our group says besides its hooks, and `calls`: what each hook says besides its
    command, which is `holdfast hook CLIENT` and the `words`.
    """
    home = {} if is_shared else calling.named_home()
    holders = [("hooks",), *(("hooks", event) for event in groups)]
    return Edit(
        path, lambda text: _with(text, client, groups, home), lambda text: _without(text, client), is_shared, holders
    )


def _with(text: str, client: str, groups: Groups, home: dict[str, str]) -> str:
    text = json_text.filled(text)
    for event, wanted in groups.items():
        group = _group(client, wanted, home)
        ours = [place for place in _ours(text, client) if place[1] == event]
        lines = {calling.said(hook["command"]): hook["command"] for hook in group["hooks"]}
        found = {calling.said(_at(text, place)["command"]): place for place in ours}
        if found.keys() == lines.keys() and len(ours) == len(lines):
            for said, place in found.items():  # whatever else a person changed about them stays
                text = _renewed(text, (*place, "command"), lines[said])
            continue
        for place in reversed(ours):
            text = _drop(text, place)
        text = json_text.append(text, ("hooks", event), group)
    return text


def _renewed(text: str, place: tuple[str | int, ...], line: str) -> str:
    return text if _at(text, place) == line else json_text.put(text, place, line)


def _group(client: str, wanted: Mapping[str, Any], home: dict[str, str]) -> dict[str, Any]:
    hooks = []
    for call in wanted["calls"]:
        line = calling.as_line("hook", client, *call.get("words", ()), home=home)
        hooks.append({"type": "command", "command": line, **{key: call[key] for key in call if key != "words"}})
    return {**{key: wanted[key] for key in wanted if key != "calls"}, "hooks": hooks}


def _without(text: str, client: str) -> str:
    if json_text.is_bare(text):
        return text
    for place in reversed(list(_ours(text, client))):
        text = _drop(text, place)
    return text


def _drop(text: str, place: tuple[str | int, ...]) -> str:
    """Without that hook; without its group where it was alone there."""
    text = json_text.drop(text, place)
    group = place[:-2]
    return text if _at(text, group)["hooks"] else json_text.drop(text, group)


def _at(text: str, place: tuple[str | int, ...]) -> Any:
    value = json_text.load(text)
    for key in place:
        value = value[key]
    return value


def _ours(text: str, client: str) -> Iterator[tuple[str | int, ...]]:
    """Where our hooks are. Raises ValueError where hooks have another shape."""
    hooks = json_text.load(text).get("hooks", {})
    if not isinstance(hooks, dict):
        raise ValueError("its hooks are no object")
    for event, groups in hooks.items():
        if not isinstance(groups, list):
            raise ValueError(f"its hooks of {event} are no list")
        for number, group in enumerate(groups):
            inner = group.get("hooks") if isinstance(group, dict) else None
            for at, hook in enumerate(inner if isinstance(inner, list) else ()):
                if isinstance(hook, dict) and calling.is_our_line(hook.get("command"), "hook", client):
                    yield ("hooks", event, number, "hooks", at)
