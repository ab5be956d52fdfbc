"""Reading a tar archive as a stream: in any of its formats, one entry after another, each checked before it is used."""

from __future__ import annotations

import stat
import tarfile
from collections.abc import Callable, Generator

from holdfast.errors import BadValue

BLOCK = 512
ENCODING = ("utf-8", "surrogateescape")
COPIED = "only files, directories and symbolic links are copied"
#: A longer extended header is no name and no time.
_LONGEST_HEADER = 1 << 20

NextPiece = Callable[[], bytes]
"""The next bytes of a stream; empty at its end."""


class TarMember:
    """One entry of a stream. The content of a file is read with `next_piece`, before the next member."""

    def __init__(self, reader: TarReader, info: tarfile.TarInfo, pax: dict[str, str]) -> None:
        name, link = pax.get("path", info.name), pax.get("linkpath", info.linkname)
        self.parts = _parts(name)
        self.is_directory = info.type == tarfile.DIRTYPE
        #: What a symbolic link points to; None for other members.
        self.link = link if info.type == tarfile.SYMTYPE else None
        self.mode = stat.S_IMODE(info.mode) & 0o777
        try:
            self.size = int(pax.get("size", info.size)) if info.type in tarfile.REGULAR_TYPES else 0
            self.mtime_ns = _nanoseconds(pax.get("mtime", str(info.mtime)))
        except ValueError:
            raise _broken() from None
        if info.type not in (*tarfile.REGULAR_TYPES, tarfile.DIRTYPE, tarfile.SYMTYPE) or any(
            key.startswith("GNU.sparse") for key in pax
        ):
            kinds = {tarfile.LNKTYPE: "a hard link", tarfile.FIFOTYPE: "a FIFO"}
            raise BadValue(f"{name} is {kinds.get(info.type, 'of another kind')}: {COPIED}", next="leave it out")
        if self.size < 0 or (not self.parts and not self.is_directory) or "\0" in (self.link or ""):
            raise _broken()
        self._reader = reader
        self._left = self.size

    def next_piece(self) -> bytes:
        data = self._reader.some(self._left) if self._left else b""
        self._left -= len(data)
        return data

    def skip(self) -> None:
        """Read what is left of it, and what fills its last block."""
        while self.next_piece():
            pass
        self._reader.exactly(-self.size % BLOCK)


class TarReader:
    """Reads a tar in any of its formats. Raises BadValue where it is none, or ends before its end."""

    def __init__(self, next_piece: NextPiece) -> None:
        self._next_piece = next_piece
        self._buffer = b""
        self._at = 0

    def members(self) -> Generator[TarMember, None, None]:
        pax: dict[str, str] = {}
        while any(block := self.exactly(BLOCK)):
            try:
                info = tarfile.TarInfo.frombuf(block, *ENCODING)
            except tarfile.HeaderError:
                raise _broken() from None
            if info.type in (tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE):
                records = _records(self._extended(info))
                pax |= {} if info.type == tarfile.XGLTYPE else records
            elif info.type in (tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK):
                key = "path" if info.type == tarfile.GNUTYPE_LONGNAME else "linkpath"
                pax[key] = self._extended(info).rstrip(b"\0").decode(*ENCODING)
            else:
                member, pax = TarMember(self, info, pax), {}
                yield member
                member.skip()
        while self._next_piece():  # the rest is padding
            pass

    def some(self, most: int) -> bytes:
        """At least one byte, and as many as are there."""
        if self._at == len(self._buffer):
            self._buffer, self._at = self._next_piece(), 0
            if not self._buffer:
                raise BadValue("the archive is cut off", next="copy it again")
        found = self._buffer[self._at : self._at + most]
        self._at += len(found)
        return found

    def exactly(self, size: int) -> bytes:
        found = b""
        while len(found) < size:
            found += self.some(size - len(found))
        return found

    def _extended(self, info: tarfile.TarInfo) -> bytes:
        if not 0 <= info.size <= _LONGEST_HEADER:
            raise _broken()
        return self.exactly(info.size + -info.size % BLOCK)[: info.size]


def _records(data: bytes) -> dict[str, str]:
    """`LENGTH KEY=VALUE` and a newline, again and again."""
    found: dict[str, str] = {}
    while data:
        length, _, _ = data.partition(b" ")
        if not length.isdigit() or len(length) > 8 or not len(length) + 3 <= int(length) <= len(data):
            raise _broken()
        record, data = data[len(length) + 1 : int(length)], data[int(length) :]
        key, equals, value = record.partition(b"=")
        if not equals or not value.endswith(b"\n"):
            raise _broken()
        found[key.decode(*ENCODING)] = value[:-1].decode(*ENCODING)
    return found


def _parts(name: str) -> tuple[str, ...]:
    """The names on the way to a member; none for `.`. Raises BadValue for one that would lead out of the target."""
    parts = tuple(part for part in name.split("/") if part not in ("", "."))
    if name.startswith("/") or ".." in parts or "\0" in name:
        raise BadValue(f"the archive has an entry {name[:200]!r}, which leads out of it", next="pack it without")
    return parts


def _nanoseconds(text: str) -> int | None:
    seconds, _, fraction = text.partition(".")
    value = int(seconds) * 10**9 + int(f"{fraction:0<9}"[:9])
    return value if 0 <= value < 1 << 62 else None


def _broken() -> BadValue:
    return BadValue("this is no tar archive, or it is damaged", next="pack it with: tar -c -C DIR .")
