"""What a file had empty, or not at all, before an integration was put in: so that taking it out leaves the same bytes.

There is a note for each file below the instance's home, of nothing but empty places: "" is the file itself, others are
paths of keys. None says that it was not there. Without a note, what is empty stays.
"""

from __future__ import annotations

import os

from holdfast.errors import HoldfastError
from holdfast.integrations import json_text
from holdfast.paths import find_paths, make_directories
from holdfast.wire import light_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TypeAlias

    Note: TypeAlias = dict[str, str | None]
    #: The objects and arrays of a JSON text that an integration fills.
    Holders: TypeAlias = Sequence[tuple[str, ...]]


def noted(text: str | None, holders: Holders) -> Note:
    """Of the text of a file (None where there is none) that is yet to be filled. Pure."""
    is_bare = text is None or json_text.is_bare(text)
    note: Note = {"": text} if is_bare else {}
    for holder in holders:
        was = None if text is None or is_bare else json_text.written_at(text, holder)
        if was is None or json_text.is_empty(was):
            note["/".join(holder)] = was
    return note


def restored(text: str, holders: Holders, note: Note) -> str | None:
    """What was taken out left places empty: they become what they were. None for no file. Pure."""
    for holder in sorted(holders, key=len, reverse=True):
        key = "/".join(holder)
        found = json_text.written_at(text, holder) if key in note else None
        if found is not None and json_text.is_empty(found):
            text = json_text.put_back(text, holder, note[key])
    return note.get("", text) if json_text.is_bare(text) else text


def recall(path: str) -> Note:
    """Empty where nothing is known."""
    try:
        with open(_place(path), "rb") as file:
            note = light_json.loads(file.read().decode())["was"]
    except (OSError, ValueError, KeyError, TypeError):
        return {}
    return {key: was for key, was in note.items() if was is None or isinstance(was, str)} if _is_table(note) else {}


def keep(path: str, note: Note) -> None:
    """Raises HoldfastError."""
    make_directories(find_paths())
    place = _place(path)
    fresh = f"{place}.{os.getpid()}"
    try:
        os.makedirs(os.path.dirname(place), mode=0o700, exist_ok=True)
        with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "wb") as file:
            file.write(light_json.dumps({"path": path, "was": note}).encode(errors="replace"))
            file.flush()
            os.fsync(file.fileno())
        os.rename(fresh, place)
    except OSError as refused:
        raise HoldfastError(f"cannot write {place}: {refused.strerror}", next="holdfast doctor") from None


def forget(path: str) -> None:
    """A note that stays by mishap is no harm: the next one takes its place."""
    try:
        os.unlink(_place(path))
    except OSError:
        pass


def _is_table(note: object) -> bool:
    return isinstance(note, dict)


def _place(path: str) -> str:
    import hashlib

    name = hashlib.sha256(os.fsencode(os.path.realpath(path))).hexdigest()[:32]
    return f"{find_paths().home}/integrated/{name}.json"
