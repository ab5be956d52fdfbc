"""Copies of both clients: files of this machine to a place, and back. `file_trees` reads and writes them here."""

from __future__ import annotations

import os

from holdfast.client.link import Done, Failed, LinkCut, Output, Want
from holdfast.errors import BadValue

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any, BinaryIO, Protocol, TypeAlias

    from holdfast.client.link import Answer, Link
    from holdfast.client.process import Process
    from holdfast.wire.frames import Message

    Source: TypeAlias = str | os.PathLike[str] | BinaryIO
    Place: TypeAlias = str | Process

    class ByteWriter(Protocol):
        """A binary file that is written."""

        def write(self, data: Any, /) -> int: ...
        def flush(self) -> object: ...

    Target: TypeAlias = str | os.PathLike[str] | ByteWriter

_PIECE = 256 << 10
_CUT_NEXT = "copy it again: a file that was to be replaced is as it was"


def upload_request(place: Place, source: Source, path: str, follow: bool) -> tuple[Message, Iterator[bytes]]:
    """The fields of the request, and the bytes to send after it. Raises HoldfastError for what cannot be read."""
    from holdfast import file_trees

    fields = _fields(place, path)
    if isinstance(source, (str, os.PathLike)):
        local = os.fspath(source)
        file_trees.measure(local, follow)
        return fields, file_trees.pack(local, follow)
    return {**fields, "format": "file"}, _read(source)


def download_request(place: Place, path: str, target: Target, follow: bool) -> Message:
    is_path = isinstance(target, (str, os.PathLike))
    return {**_fields(place, path), "follow": follow, "format": "tar" if is_path else "file"}


def write(next_piece: Callable[[], bytes], target: Target) -> tuple[str | None, int, int]:
    """Write what a place sends: the path, and numbers of files and bytes. Raises HoldfastError."""
    from holdfast import file_trees

    if isinstance(target, (str, os.PathLike)):
        return file_trees.unpack(next_piece, os.fspath(target))
    size = 0
    while data := next_piece():
        view = memoryview(data)
        while view:  # a file without a buffer may take a part
            view = view[target.write(view) :]
        size += len(data)
    target.flush()
    return None, 1, size


def _fields(place: Place, path: str) -> Message:
    if not isinstance(path, (str, os.PathLike)):
        raise BadValue(f"path is a path in the place, not {path!r:.80}", next="give a text")
    named = place if isinstance(place, str) else place.id
    return {"place": named, "path": full_path(os.fspath(path)) if named == "local" else os.fspath(path)}


def full_path(path: str) -> str:
    """A path of this machine from / on. What ends with `/` or `/.` stays so; `~` is left to the place."""
    if path.startswith(("/", "~/")) or path in ("", "~"):  # the daemon refuses an empty one
        return path
    return os.path.join(os.getcwd(), path)


def slow_input(source: Source) -> int | None:
    """The descriptor of a source that is read without a buffer, such as a pipe; None for others."""
    import io

    return source.fileno() if isinstance(source, io.RawIOBase) else None


def _read(source: BinaryIO) -> Iterator[bytes]:
    read = getattr(source, "read1", source.read)  # a pipe gives what it has
    while data := read(_PIECE):
        yield data


def cut(failed: LinkCut) -> LinkCut:
    return LinkCut(failed.message, next=_CUT_NEXT)


class BlockingCopy:
    """One copy on a link of its own. `moved` counts the bytes of the stream."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._pieces: list[bytes] = []
        self._reply: Message | None = None
        self.moved = 0

    def send(
        self, fields: Message, pieces: Iterator[bytes], fd: int | None, on_moved: Callable[[int], None] | None
    ) -> Message:
        """`fd` is what the pieces are read from, where that may take long: a failed copy is noticed meanwhile."""
        rid = self._link.ask("put_file", fields)
        wanted, is_over = 0, False
        while self._reply is None:
            if wanted and not is_over and (fd is None or self._has_input(fd)):
                data = next(pieces, b"")
                try:
                    self._link.upload(rid, data)
                except LinkCut as failed:
                    raise cut(failed) from failed
                self._count(len(data), on_moved)
                wanted, is_over = wanted - 1, not data
            else:
                wanted += sum(answer.count for answer in self._receive(rid) if isinstance(answer, Want))
        return self._reply

    def _has_input(self, fd: int) -> bool:
        """False when the daemon has replied before there is more to send."""
        import select

        poll = select.poll()
        poll.register(fd, select.POLLIN)
        poll.register(self._link.fileno(), select.POLLIN)
        return self._link.fileno() not in dict(poll.poll())

    def receive(self, fields: Message, on_moved: Callable[[int], None] | None) -> Callable[[], bytes]:
        """Gives the bytes one piece after another; empty at the end."""
        rid = self._link.ask("get_file", fields)

        def next_piece() -> bytes:
            while not self._pieces and self._reply is None:
                self._pieces += [one.data for one in self._receive(rid) if isinstance(one, Output) and one.data]
            data = self._pieces.pop(0) if self._pieces else b""
            self._count(len(data), on_moved)
            return data

        return next_piece

    def _receive(self, rid: int) -> list[Answer]:
        try:
            answers = [answer for answer in self._link.receive() if answer.rid == rid]
        except LinkCut as failed:
            raise cut(failed) from failed
        for answer in answers:
            if isinstance(answer, Failed):
                raise answer.error
            if isinstance(answer, Done):
                self._reply = answer.value
        return answers

    def _count(self, size: int, on_moved: Callable[[int], None] | None) -> None:
        self.moved += size
        if on_moved is not None:
            on_moved(self.moved)
