"""Files and directory trees as a stream of tar, and back: what a copy reads on one side and writes on the other.

Runs in clients and in places, with the standard library alone. Nothing is held in memory as a whole. A file is replaced
at once: it is written under a temporary name beside its target, flushed to disk and renamed. A new directory is renamed
as a whole, without the flush. No name or symbolic link in a stream leads to a write outside of the target.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import stat
import tarfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple, TypeVar

from holdfast.errors import BadValue, Denied, DiskFull, HoldfastError, NotFound, NotNow
from holdfast.tar_reader import BLOCK, COPIED, ENCODING, NextPiece, TarMember, TarReader

T = TypeVar("T")

#: Bytes of a file that are read at once.
PIECE = 256 << 10
#: The most that is read of a file whose size the kernel does not know, as in /proc.
_MOST_UNSIZED = 16 << 20

#: Temporary names say whose they are. Each is locked while it is in use, so that leftovers can be recognised.
_MARK = ".holdfast-cp-"
_TEMPORARY = re.compile(r"^\..*\.holdfast-cp-[0-9a-f]{8}$", re.DOTALL)
_LONGEST_STEM = 200

_KINDS = {
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFBLK: "a device",
    stat.S_IFCHR: "a device",
    stat.S_IFDIR: "a directory",
}


class Copied(NamedTuple):
    path: str
    """What was written: the file or directory itself, also where it was copied into a directory."""
    files: int
    """Files and symbolic links."""
    bytes: int


class CopySize(NamedTuple):
    files: int
    bytes: int


# Reading.


def name_of(path: str) -> str:
    """The name of a source in its stream; `.` where its content is copied and not the directory itself."""
    if path in (".", "/") or path.endswith("/."):
        return "."
    name = os.path.basename(path.rstrip("/"))
    return os.path.basename(os.path.realpath(path)) or "." if name == ".." else name


def measure(path: str, follow: bool = False) -> CopySize:
    """What is to be copied. Raises HoldfastError for what cannot be: it is better known before the first byte is sent.

    `follow`: if the path itself is a symbolic link, what it points to is meant.
    """
    files = size = 0
    for inner, found, _ in _walk(path, follow):
        if stat.S_ISREG(found.st_mode):
            if not os.access(inner, os.R_OK):
                raise explained(PermissionError(errno.EACCES, ""), inner)
            size += found.st_size
        files += not stat.S_ISDIR(found.st_mode)
    return CopySize(files, size)


def pack(path: str, follow: bool = False) -> Iterator[bytes]:
    """The stream of a file, a symbolic link or a directory with all that is in it. Raises HoldfastError."""
    root = name_of(path)
    for inner, found, below in _walk(path, follow):
        info = tarfile.TarInfo("/".join((root, *below)))
        info.mode = stat.S_IMODE(found.st_mode)
        seconds, fraction = divmod(found.st_mtime_ns, 10**9)
        info.mtime = seconds
        info.pax_headers = {"mtime": f"{seconds}.{fraction:09}"} if fraction and seconds >= 0 else {}
        if stat.S_ISDIR(found.st_mode):
            info.type = tarfile.DIRTYPE
            yield _header(info)
        elif stat.S_ISLNK(found.st_mode):
            info.type = tarfile.SYMTYPE
            info.linkname = _on(os.readlink, inner)
            yield _header(info)
        else:
            yield from _file(info, inner, follow and not below)
    yield bytes(2 * BLOCK)


def read_file(path: str) -> Iterator[bytes]:
    """The bytes of one file. Raises HoldfastError."""
    fd, _ = _open_file(path, True)
    try:
        while data := _on(lambda _: os.read(fd, PIECE), path):
            yield data
    finally:
        os.close(fd)


def _walk(path: str, follow: bool) -> Iterator[tuple[str, os.stat_result, tuple[str, ...]]]:
    """The path itself, then what is in it: paths, what they are, and names below the first."""
    is_meant = follow or path.endswith(("/", "/."))
    found = _on(lambda one: os.stat(one, follow_symlinks=is_meant), path)
    left: list[tuple[str, os.stat_result, tuple[str, ...]]] = [(path, found, ())]
    if path.endswith(("/", "/.")) and not stat.S_ISDIR(found.st_mode):
        raise explained(NotADirectoryError(errno.ENOTDIR, ""), path)
    while left:
        inner, found, below = left.pop()
        kind = stat.S_IFMT(found.st_mode)
        if kind not in (stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK):
            raise _other_kind(inner, kind)
        yield inner, found, below
        if kind == stat.S_IFDIR:
            names = sorted(_on(os.listdir, inner), reverse=True)
            paths = [os.path.join(inner, name) for name in names]
            left += [(one, _on(os.lstat, one), (*below, os.path.basename(one))) for one in paths]


def _file(info: tarfile.TarInfo, path: str, follow: bool) -> Iterator[bytes]:
    fd, found = _open_file(path, follow)
    try:
        data = _on(lambda _: os.read(fd, PIECE), path)
        if found.st_size == 0 and data:
            while len(data) < _MOST_UNSIZED and (more := _on(lambda _: os.read(fd, PIECE), path)):
                data += more
        info.size = left = found.st_size or len(data)
        yield _header(info)
        while left:
            if not data:
                raise NotNow(f"{path} became shorter while it was read", next="copy it again")
            yield data[:left]
            left -= min(left, len(data))
            data = _on(lambda _: os.read(fd, PIECE), path) if left else b""
        if info.size % BLOCK:
            yield bytes(BLOCK - info.size % BLOCK)
    finally:
        os.close(fd)


def _open_file(path: str, follow: bool) -> tuple[int, os.stat_result]:
    """A descriptor of a file, and what it is. A FIFO is refused, and not waited for."""
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY | (0 if follow else os.O_NOFOLLOW)
    fd = _on(lambda one: os.open(one, flags), path)
    found = os.fstat(fd)
    if not stat.S_ISREG(found.st_mode):
        os.close(fd)
        raise _other_kind(path, stat.S_IFMT(found.st_mode))
    return fd, found


def _header(info: tarfile.TarInfo) -> bytes:
    return info.tobuf(tarfile.PAX_FORMAT, *ENCODING)


# Writing.


def unpack(next_piece: NextPiece, path: str) -> Copied:
    """Write a stream of `pack`, or another tar with one file or directory at its top, to a path. Raises HoldfastError.

    If the path is a directory, it is copied into it; if its name in the stream is `.`, its content is. Else the path is
    that of the copy itself, and its parent directory must exist. A directory that is new appears when it is complete.
    """
    members = TarReader(next_piece).members()
    first = next(members, None)
    if first is None or len(first.parts) > 1:
        raise BadValue("the archive must begin with its one file or directory", next="pack it with: tar -c -C DIR .")
    target = _target(path, first)
    if not first.is_directory:
        parent, name = os.path.split(target)
        with _directory(parent or ".", target) as fd:
            _remove_leftovers(fd)
            _write_member(fd, name, target, first, complete=lambda: _check_end(members))
            _flush(fd)
        return Copied(target, 1, first.size)
    if os.path.isdir(target):
        with _directory(target, target) as root:
            return _Tree(root, target, first, False).write(members)
    parent, name = os.path.split(target.rstrip("/"))
    with _directory(parent or ".", target) as fd:
        _remove_leftovers(fd)
        with _temporary_directory(fd, name, target) as (root, fresh):
            copied = _Tree(root, target.rstrip("/"), first, True).write(members)
            _on(lambda _: os.rename(fresh, name, src_dir_fd=fd, dst_dir_fd=fd), target)
            _flush(fd)
        return copied


def write_file(next_piece: NextPiece, path: str, mode: int | None = None) -> Copied:
    """Write the bytes of a stream to one file. Raises HoldfastError.

    Without a mode, a file that exists keeps its own, and a new one has 0644.
    """
    if path.endswith("/") or os.path.isdir(path):
        raise BadValue(f"{path} is a directory", next="name the file in it")
    target = os.path.realpath(path) if os.path.islink(path) else path
    parent, name = os.path.split(target)
    with _directory(parent or ".", target) as fd:
        _remove_leftovers(fd)
        if mode is None:
            mode = stat.S_IMODE(os.stat(target).st_mode) & 0o777 if os.path.isfile(target) else 0o644
        size = _write(fd, name, target, next_piece, mode, None)
        _flush(fd)
    return Copied(target, 1, size)


def _target(path: str, first: TarMember) -> str:
    """Where the top of a stream is written."""
    name = first.parts[0] if first.parts else "."
    if os.path.isdir(path):
        target = path if name == "." else os.path.join(path.removesuffix("."), name)
        if target != path and first.is_directory and os.path.lexists(target) and not _is_real_directory(target):
            raise BadValue(f"{target} is not a directory", next="remove it first, or choose another target")
        return target
    if first.is_directory:
        if os.path.lexists(path):
            raise BadValue(f"{path} is not a directory", next="remove it first, or choose another target")
        return path
    if path.endswith("/"):
        raise NotFound(f"{path}: there is no such directory", next="create it first")
    return os.path.realpath(path) if os.path.islink(path) else path


def _check_end(members: Iterator[TarMember]) -> None:
    for _ in members:
        raise _two_tops()


def _is_real_directory(path: str) -> bool:
    return os.path.isdir(path) and not os.path.islink(path)


class _Tree:
    """Writes the members of a directory. No symbolic link is followed: each step opens the next directory itself."""

    def __init__(self, root: int, path: str, first: TarMember, is_new: bool) -> None:
        self._root = root
        self._path = path
        self._first = first
        #: In a directory that has a temporary name, files need none. They are not flushed to disk one by one: thousands
        #: of small files would take minutes.
        self._is_new = is_new
        self._cleaned: set[tuple[str, ...]] = set()
        #: Modes and times of directories are set at the end: what is written into them changes them.
        self._directories: dict[tuple[str, ...], TarMember] = {}
        if is_new or first.parts:
            self._directories[()] = first

    def write(self, members: Iterator[TarMember]) -> Copied:
        files = size = 0
        last: tuple[str, ...] | None = None
        fd = self._root
        try:
            for member in members:
                below = self._below(member)
                if member.is_directory:
                    os.close(self._open(below, makes=True))
                    self._directories[below] = member
                    continue
                if below[:-1] != last:
                    fd = self._change(fd, below[:-1])
                    last = below[:-1]
                shown = os.path.join(self._path, *below)
                _write_member(fd, below[-1], shown, member, self._is_new)
                files, size = files + 1, size + member.size
        finally:
            if fd != self._root:
                os.close(fd)
        for below, member in sorted(self._directories.items(), reverse=True):
            self._finish(below, member)
        return Copied(self._path, files, size)

    def _below(self, member: TarMember) -> tuple[str, ...]:
        top = self._first.parts
        if member.parts[: len(top)] != top or member.parts == top:
            raise _two_tops()
        return member.parts[len(top) :]

    def _change(self, fd: int, below: tuple[str, ...]) -> int:
        fresh = self._open(below, makes=True) if below else self._root
        if fd != self._root:
            os.close(fd)
        if not self._is_new and below not in self._cleaned:
            self._cleaned.add(below)
            _remove_leftovers(fresh)
        return fresh

    def _open(self, below: tuple[str, ...], makes: bool) -> int:
        fd = os.dup(self._root)
        for at, name in enumerate(below):
            shown = os.path.join(self._path, *below[: at + 1])
            try:
                deeper = _step(fd, name, shown, makes)
            finally:
                os.close(fd)
            fd = deeper
        return fd

    def _finish(self, below: tuple[str, ...], member: TarMember) -> None:
        fd = self._open(below, makes=False)
        try:
            shown = os.path.join(self._path, *below)
            _on(lambda _: os.fchmod(fd, member.mode), shown)
            if member.mtime_ns is not None:
                times = (member.mtime_ns, member.mtime_ns)
                _on(lambda _: os.utime(fd, ns=times), shown)
            if not self._is_new:
                _flush(fd)
        finally:
            os.close(fd)


def _step(fd: int, name: str, shown: str, makes: bool) -> int:
    """The directory with this name in another; it is made where there is none."""
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        if makes:
            with suppress(FileExistsError):
                os.mkdir(name, 0o700, dir_fd=fd)
        return os.open(name, flags, dir_fd=fd)
    except OSError as failed:
        if failed.errno in (errno.ELOOP, errno.ENOTDIR):
            what = f"{shown} is not a directory: nothing is written through it"
            raise BadValue(what, next="remove it first, or choose another target") from None
        raise explained(failed, shown) from failed


def _write_member(
    fd: int,
    name: str,
    shown: str,
    member: TarMember,
    is_new: bool = False,
    complete: Callable[[], None] = lambda: None,
) -> None:
    """`complete` is called before the target is replaced: it raises where that must not be."""
    if member.link is None:
        _write(fd, name, shown, member.next_piece, member.mode, member.mtime_ns, is_new, complete)
        return
    complete()
    _check_replaceable(fd, name, shown)
    fresh = name if is_new else _fresh_name(name)
    _on(lambda _: os.symlink(member.link or "", fresh, dir_fd=fd), shown)
    try:
        if member.mtime_ns is not None:
            os.utime(fresh, ns=(member.mtime_ns, member.mtime_ns), dir_fd=fd, follow_symlinks=False)
        if not is_new:
            _on(lambda _: os.rename(fresh, name, src_dir_fd=fd, dst_dir_fd=fd), shown)
    except BaseException:
        with suppress(OSError):
            os.unlink(fresh, dir_fd=fd)
        raise


def _write(
    fd: int,
    name: str,
    shown: str,
    next_piece: NextPiece,
    mode: int,
    mtime_ns: int | None,
    is_new: bool = False,
    complete: Callable[[], None] = lambda: None,
) -> int:
    """Write a file whole or not at all; its size."""
    _check_replaceable(fd, name, shown)
    with _temporary_file(fd, name, shown, is_new) as (file, fresh):
        size = 0
        while data := next_piece():
            size += len(data)
            view = memoryview(data)
            while view:
                view = view[_on(lambda _, rest=view: os.write(file, rest), shown) :]  # type: ignore[misc]
        complete()
        _on(lambda _: os.fchmod(file, mode), shown)
        if mtime_ns is not None:
            _on(lambda _: os.utime(file, ns=(mtime_ns, mtime_ns)), shown)
        if not is_new:
            _on(lambda _: os.fsync(file), shown)
            _on(lambda _: os.rename(fresh, name, src_dir_fd=fd, dst_dir_fd=fd), shown)
    return size


def _check_replaceable(fd: int, name: str, shown: str) -> None:
    """Raises BadValue where something is there that is neither a file nor a symbolic link."""
    try:
        kind = stat.S_IFMT(os.stat(name, dir_fd=fd, follow_symlinks=False).st_mode)
    except FileNotFoundError:
        return
    except OSError as failed:
        raise explained(failed, shown) from failed
    if kind not in (stat.S_IFREG, stat.S_IFLNK):
        what = f"{shown} is {_KINDS.get(kind, 'another kind of file')}, and is not replaced by a file"
        raise BadValue(what, next="remove it first, or choose another target")


# Temporary names.


def _fresh_name(name: str) -> str:
    return f".{os.fsdecode(os.fsencode(name)[:_LONGEST_STEM])}{_MARK}{os.urandom(4).hex()}"


@contextmanager
def _temporary_file(fd: int, name: str, shown: str, is_new: bool) -> Iterator[tuple[int, str]]:
    """A new file and its name. It is removed if it was not renamed."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
    while True:
        fresh = name if is_new else _fresh_name(name)
        file = _on(lambda _, made=fresh: os.open(made, flags, 0o600, dir_fd=fd), shown)  # type: ignore[misc]
        if is_new or _lock(fd, fresh, file):
            break
        os.close(file)
    try:
        yield file, fresh
    except BaseException:
        with suppress(OSError):
            os.unlink(fresh, dir_fd=fd)
        raise
    finally:
        os.close(file)


@contextmanager
def _temporary_directory(fd: int, name: str, shown: str) -> Iterator[tuple[int, str]]:
    """A new directory and its name. It is removed if it was not renamed."""
    while True:
        fresh = _fresh_name(name)
        _on(lambda _, made=fresh: os.mkdir(made, 0o700, dir_fd=fd), shown)  # type: ignore[misc]
        root = _step(fd, fresh, shown, makes=False)
        if _lock(fd, fresh, root):
            break
        os.close(root)
    try:
        yield root, fresh
    except BaseException:
        _remove_tree(fresh, fd)
        raise
    finally:
        os.close(root)


def _lock(fd: int, name: str, made: int) -> bool:
    """False where another copy has just taken it for a leftover."""
    try:
        fcntl.flock(made, fcntl.LOCK_EX)
    except OSError:  # a file system without locks: there a leftover is not recognised, and stays
        return True
    try:
        return os.path.samestat(os.stat(name, dir_fd=fd, follow_symlinks=False), os.fstat(made))
    except FileNotFoundError:
        return False


def _remove_leftovers(fd: int) -> None:
    """Remove what copies left in a directory that were killed: temporary names that no process has locked."""
    with suppress(OSError):
        for name in filter(_TEMPORARY.match, os.listdir(fd)):
            with suppress(OSError):
                _remove_leftover(fd, name)


def _remove_leftover(fd: int, name: str) -> None:
    found = os.stat(name, dir_fd=fd, follow_symlinks=False)
    if stat.S_ISLNK(found.st_mode):
        os.unlink(name, dir_fd=fd)  # it has this name for a moment only; its copy then fails
        return
    if not (stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode)):
        return
    leftover = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=fd)
    try:
        fcntl.flock(leftover, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _remove_tree(name, fd) if stat.S_ISDIR(found.st_mode) else os.unlink(name, dir_fd=fd)
    finally:
        os.close(leftover)


def _remove_tree(name: str, fd: int) -> None:
    import shutil

    shutil.rmtree(name, ignore_errors=True, dir_fd=fd)


@contextmanager
def _directory(path: str, shown: str) -> Iterator[int]:
    flags = os.O_DIRECTORY | os.O_CLOEXEC
    try:
        fd = os.open(path, os.O_RDONLY | flags)
    except PermissionError:  # one that may be written and not listed
        fd = _on(lambda _: os.open(path, os.O_PATH | flags), shown)
    except OSError as failed:
        if failed.errno in (errno.ENOENT, errno.ENOTDIR):
            raise NotFound(f"{path}: there is no such directory", next="create it first") from None
        raise explained(failed, path) from failed
    try:
        yield fd
    finally:
        os.close(fd)


def _flush(fd: int) -> None:
    """New names are on disk; not where a directory cannot be opened for that."""
    with suppress(OSError):
        os.fsync(fd)


def _two_tops() -> BadValue:
    what = "the archive has more than one file or directory at its top"
    return BadValue(what, next="pack the directory that holds them: tar -c -C DIR .")


# Errors.


def explained(failed: OSError, path: str) -> HoldfastError:
    """The error of a copy for an error of the system."""
    match failed.errno:
        case errno.ENOENT:
            return NotFound(f"{path}: there is no such file or directory", next="check the path")
        case errno.EACCES | errno.EPERM:
            return Denied(f"{path}: permission denied", next="choose another path, or change its permissions")
        case errno.ENOSPC | errno.EDQUOT:
            return DiskFull(f"{path}: the disk is full", next="free some space there: the old file is unchanged")
        case errno.EROFS:
            return DiskFull(f"{path}: the file system is read-only", next="choose another path")
        case errno.EEXIST:
            return BadValue(f"{path} is in the archive twice", next="pack it again")
        case errno.ENAMETOOLONG:
            return BadValue(f"{path[:80]}…: the name is too long", next="choose a shorter one")
        case errno.ELOOP:
            return BadValue(f"{path}: a symbolic link that leads nowhere, or was put there just now", next="check it")
        case errno.ENOTDIR:
            return BadValue(f"{path}: not a directory", next="check the path")
    return NotNow(f"{path}: {os.strerror(failed.errno or 0)}", next="check the path and its disk")


def _other_kind(path: str, kind: int) -> BadValue:
    return BadValue(f"{path} is {_KINDS.get(kind, 'of another kind')}: {COPIED}", next="copy what is beside it")


def _on(work: Callable[[str], T], path: str) -> T:
    """Do something with a path. Raises HoldfastError for an OSError."""
    try:
        return work(path)
    except OSError as failed:
        raise explained(failed, path) from failed
