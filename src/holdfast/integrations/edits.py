"""What an integration changes in a person's files: shown as a diff, written whole or not at all."""

from __future__ import annotations

import os
import stat

from holdfast import files
from holdfast.errors import HoldfastError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

#: A configuration is smaller than that.
_LARGEST = 64 << 20


class Edit:
    """One file: `add` makes the text with the integration in it, `remove` the one without.

    Both are given the text (empty where there is no file), do nothing twice, and raise ValueError for a text that
    they cannot read. A text without anything in it needs no file. One that is `shared` is made for others to read.
    """

    __slots__ = ("path", "add", "remove", "is_shared")

    def __init__(
        self, path: str, add: Callable[[str], str], remove: Callable[[str], str], is_shared: bool = False
    ) -> None:
        self.path = path
        self.add = add
        self.remove = remove
        self.is_shared = is_shared


class Change:
    """A file as it is, and as it is to be."""

    __slots__ = ("path", "before", "after", "is_shared")

    def __init__(self, path: str, before: str, after: str, is_shared: bool = False) -> None:
        self.path = path
        self.before = before
        self.after = after
        self.is_shared = is_shared

    @property
    def diff(self) -> str:
        import difflib

        old, new = (self.path if text else "/dev/null" for text in (self.before, self.after))
        lines = difflib.unified_diff(self.before.splitlines(), self.after.splitlines(), old, new, lineterm="")
        return "\n".join(lines)


def planned(edits: Sequence[Edit], is_removal: bool) -> list[Change]:
    """What is to be changed: nothing where all is as it shall be. Raises HoldfastError, before anything is written."""
    changes = []
    for edit in edits:
        before = read(edit.path)
        after = _made(edit, before, is_removal)
        if after != before:
            changes.append(Change(edit.path, before, after, edit.is_shared))
    return changes


def stands(edits: Sequence[Edit]) -> str:
    """`on`; `off`; `outdated` where it is on in part or in another way; `unreadable`."""
    try:
        removable, addable = len(planned(edits, True)), len(planned(edits, False))
    except HoldfastError:
        return "unreadable"
    return "off" if not removable else "outdated" if addable else "on"


def write(changes: Sequence[Change]) -> None:
    """Each file is replaced in one step, by one of the same mode and owner. Raises HoldfastError."""
    for change in changes:
        if read(change.path) != change.before:
            raise HoldfastError(f"{change.path} was changed by somebody else meanwhile", next="try again")
        try:
            if change.after:
                _replace(os.path.realpath(change.path), change.after, 0o666 if change.is_shared else 0o600)
            else:
                _unlink(change.path)
        except OSError as refused:
            raise HoldfastError(
                f"cannot write {change.path}: {refused.strerror}", next="look at its owner and mode"
            ) from None


def read(path: str) -> str:
    """Empty where there is none. Raises HoldfastError."""
    try:
        with open(path, "rb") as file:
            data = file.read(_LARGEST)
        return data.decode()
    except FileNotFoundError:
        return ""
    except OSError as refused:
        raise HoldfastError(f"cannot read {path}: {refused.strerror}", next="look at its owner and mode") from None
    except UnicodeDecodeError:
        raise HoldfastError(f"{path} is left as it is: no UTF-8 text", next="mend it, then try again") from None


def _made(edit: Edit, before: str, is_removal: bool) -> str:
    try:
        return edit.remove(before) if is_removal else edit.add(before)
    except (ValueError, RecursionError) as broken:
        reason = " ".join(str(broken).split())[:200] or "nested too deeply"
        raise HoldfastError(f"{edit.path} is left as it is: {reason}", next="mend it, then try again") from None


def _unlink(path: str) -> None:
    """The file, and a link to it that would lead nowhere."""
    for one in {os.path.realpath(path), path}:
        os.unlink(one)


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
