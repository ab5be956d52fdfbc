"""Changes of the user's files by an integration: shown as a diff, written whole or not at all.

What a file had empty, or not at all, is noted below the instance's home, so that removal leaves the same bytes. There
is a note for each file: "" is the file itself, other keys are paths in it, and None says that it was missing. Without
a note, what is empty stays.
"""

from __future__ import annotations

import os
import stat

from holdfast import files, light_json
from holdfast.errors import HoldfastError
from holdfast.integrations import json_text
from holdfast.paths import find_paths, make_directories

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeAlias

    Note: TypeAlias = dict[str, str | None]
    #: The objects and arrays of a JSON text that an integration fills.
    Holders: TypeAlias = Sequence[tuple[str, ...]]

#: A configuration file is smaller than this.
_LARGEST_FILE = 64 << 20


class Edit:
    """One file: `add` makes the text with the integration in it, `remove` the one without.

    Both are given the text (empty where there is no file), do nothing twice, and raise ValueError for a text that
    they cannot read. `remove` leaves the `holders`, objects and arrays of a JSON text, where they become empty. A file
    that is `shared` is made for others to read.
    """

    __slots__ = ("path", "add", "remove", "is_shared", "holders")

    def __init__(
        self,
        path: str,
        add: Callable[[str], str],
        remove: Callable[[str], str],
        is_shared: bool = False,
        holders: Holders = (),
    ) -> None:
        self.path = path
        self.add = add
        self.remove = remove
        self.is_shared = is_shared
        self.holders = holders


class FileChange:
    """A file as it is, and as it is to be; None is no file. `note` is kept from then on, None removes it."""

    __slots__ = ("path", "before", "after", "is_shared", "note")

    def __init__(self, path: str, before: str | None, after: str | None, is_shared: bool, note: Note | None) -> None:
        self.path = path
        self.before = before
        self.after = after
        self.is_shared = is_shared
        self.note = note

    @property
    def diff(self) -> str:
        import difflib

        texts = (self.before, self.after)
        old, new = ("/dev/null" if text is None else self.path for text in texts)
        before, after = ((text or "").splitlines() for text in texts)
        lines = difflib.unified_diff(before, after, old, new, lineterm="")
        return "\n".join(lines)


def planned(edits: Sequence[Edit], is_removal: bool) -> list[FileChange]:
    """The changes that are needed. Raises HoldfastError, before anything is written."""
    return [change for edit in edits if (change := (_taken_out if is_removal else _put_in)(edit)) is not None]


def _put_in(edit: Edit) -> FileChange | None:
    before = read(edit.path)
    text = before or ""
    after = _made(edit, edit.add, text)
    if after == text:
        return None
    is_new = _made(edit, edit.remove, text) == text
    note = noted(before, edit.holders) if is_new else recall(edit.path)
    return FileChange(edit.path, before, after, edit.is_shared, note)


def _taken_out(edit: Edit) -> FileChange | None:
    before = read(edit.path)
    after = _made(edit, edit.remove, before or "")
    if before is None or after == before:
        return None
    return FileChange(edit.path, before, restored(after, edit.holders, recall(edit.path)), edit.is_shared, None)


def state_of(edits: Sequence[Edit]) -> str:
    """`on`; `off`; `outdated` where it is on in part or in another way; `unreadable`."""
    try:
        removable, addable = len(planned(edits, True)), len(planned(edits, False))
    except HoldfastError:
        return "unreadable"
    return "off" if not removable else "outdated" if addable else "on"


def write(changes: Sequence[FileChange]) -> None:
    """Each file is replaced in one step, by one of the same mode and owner. Raises HoldfastError.

    The note is written before the file, and removed after it.
    """
    for change in changes:
        if read(change.path) != change.before:
            raise HoldfastError(f"{change.path} was changed by another program meanwhile", next="try again")
        if change.note is not None:
            keep(change.path, change.note)
        try:
            if change.after is not None:
                _replace(os.path.realpath(change.path), change.after, 0o666 if change.is_shared else 0o600)
            else:
                os.unlink(os.path.realpath(change.path))
        except OSError as refused:
            raise HoldfastError(
                f"cannot write {change.path}: {refused.strerror}", next="look at its owner and mode"
            ) from None
        if change.note is None:
            forget(change.path)


def read(path: str) -> str | None:
    """None where there is no file. Raises HoldfastError."""
    try:
        # Opening a pipe without a writer would block.
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb", buffering=0) as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode):
                raise _left(path, "no regular file")
            if found.st_size > _LARGEST_FILE:
                raise _left(path, f"more than {_LARGEST_FILE >> 20} MiB")
            return file.readall().decode()
    except FileNotFoundError:
        return None
    except OSError as refused:
        raise HoldfastError(f"cannot read {path}: {refused.strerror}", next="look at its owner and mode") from None
    except UnicodeDecodeError:
        raise _left(path, "no UTF-8 text") from None


def _made(edit: Edit, make: Callable[[str], str], text: str) -> str:
    try:
        return make(text)
    except (ValueError, RecursionError) as broken:
        raise _left(edit.path, " ".join(str(broken).split())[:200] or "nested too deeply") from None


def _left(path: str, reason: str) -> HoldfastError:
    return HoldfastError(f"{path} is left as it is: {reason}", next="correct it, then try again")


def _replace(path: str, text: str, mode: int) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    try:
        old = os.stat(path)
    except FileNotFoundError:
        old = None

    def finish(fd: int) -> None:
        if old is not None:
            _make_like(fd, old)
        os.fsync(fd)

    files.replace(path, text.encode(), mode if old is None else 0o600, finish)


def _make_like(fd: int, old: os.stat_result) -> None:
    found = os.fstat(fd)
    if (found.st_uid, found.st_gid) != (old.st_uid, old.st_gid):
        os.fchown(fd, old.st_uid, old.st_gid)
    os.fchmod(fd, stat.S_IMODE(old.st_mode))


def noted(text: str | None, holders: Holders) -> Note:
    """The note for a file before it is filled; its text is None where there is none. Pure."""
    is_bare = text is None or json_text.is_bare(text)
    note: Note = {"": text} if is_bare else {}
    for holder in holders:
        was = None if text is None or is_bare else json_text.written_at(text, holder)
        if was is None or json_text.is_empty(was):
            note["/".join(holder)] = was
    return note


def restored(text: str, holders: Holders, note: Note) -> str | None:
    """The text after removal, with emptied places as they were. None for no file. Pure."""
    for holder in sorted(holders, key=len, reverse=True):
        key = "/".join(holder)
        found = json_text.written_at(text, holder) if key in note else None
        if found is not None and json_text.is_empty(found):
            text = json_text.put_back(text, holder, note[key])
    return note.get("", text) if json_text.is_bare(text) else text


def recall(path: str) -> Note:
    """The note of a file; empty where there is none."""
    try:
        with open(_note_path(path), "rb") as file:
            note = light_json.loads(file.read().decode())["was"]
        return {key: was for key, was in note.items() if was is None or isinstance(was, str)}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def keep(path: str, note: Note) -> None:
    """Raises HoldfastError."""
    make_directories(find_paths())
    note_path = _note_path(path)
    data = light_json.dumps({"path": path, "was": note}).encode(errors="replace")
    try:
        os.makedirs(os.path.dirname(note_path), mode=0o700, exist_ok=True)
        files.replace(note_path, data, 0o600, os.fsync)
    except OSError as refused:
        raise HoldfastError(f"cannot write {note_path}: {refused.strerror}", next="holdfast doctor") from None


def forget(path: str) -> None:
    """A note that stays by accident does no harm: the next one replaces it."""
    try:
        os.unlink(_note_path(path))
    except OSError:
        pass


def _note_path(path: str) -> str:
    import hashlib

    name = hashlib.sha256(os.fsencode(os.path.realpath(path))).hexdigest()[:32]
    return f"{find_paths().home}/integrated/{name}.json"
