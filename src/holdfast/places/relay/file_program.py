"""The program that reads and writes files in a place, for one copy. The daemon starts it there and moves the bytes.

It speaks the frames of `holdfast.wire` on stdin and stdout. `MARK` comes first on stdout, because a login shell may
write something before it. The first frame on stdin is the request: `{"op": "put" | "get", "path", "directory",
"format": "tar" | "file", "mode", "follow"}`; `directory` is what a relative path begins from.
For `put`, `B` frames follow, the last one empty: if stdin ends without it, the copy is given up and the target stays as
it was. For `get`, `B` frames are written. At the end there is `{"ok": {"path", "files", "bytes"}}` or `{"error"}`.
"""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Iterator
from typing import Any

from holdfast import file_trees
from holdfast.errors import BadValue, HoldfastError
from holdfast.wire.frames import FrameDecoder, FrameError, Message, encode, encode_bytes

MARK = b"\0holdfast files\0"


class StdinEnded(Exception):
    """The daemon is gone, or the copy was given up."""


class FrameInput:
    """The frames on stdin."""

    def __init__(self) -> None:
        self._decoder = FrameDecoder()
        self._frames: deque[Message | bytes] = deque()
        self._is_over = False

    def next_frame(self) -> Message | bytes:
        while not self._frames:
            data = os.read(0, file_trees.PIECE)
            if not data:
                raise StdinEnded
            self._frames.extend(self._decoder.feed(data))
        return self._frames.popleft()

    def next_piece(self) -> bytes:
        """Empty at the end, also when it is called again."""
        frame = b"" if self._is_over else self.next_frame()
        self._is_over = not frame
        return frame if isinstance(frame, bytes) else b""


def main() -> None:
    try:
        _write(MARK)
        source = FrameInput()
        reply = _reply(source, source.next_frame())
        _write(encode(reply))
    except (StdinEnded, BrokenPipeError, FrameError):
        sys.exit(1)


def _reply(source: FrameInput, request: Any) -> Message:
    try:
        return {"ok": _serve(source, request)._asdict()}
    except HoldfastError as failed:
        return {"error": failed.to_wire()}
    except BrokenPipeError:
        raise
    except OSError as failed:
        return {"error": file_trees.explained(failed, str(failed.filename or request["path"])).to_wire()}


def _serve(source: FrameInput, request: Message) -> file_trees.Copied:
    path = _full_path(request["path"], request["directory"])
    if request["op"] == "get":
        return _get(path, request)
    if request["format"] == "file":
        return file_trees.write_file(source.next_piece, path, request.get("mode"))
    return file_trees.unpack(source.next_piece, path)


def _get(path: str, request: Message) -> file_trees.Copied:
    pieces: Iterator[bytes]
    if request["format"] == "file":
        pieces, size = file_trees.read_file(path), None
    else:
        follow = bool(request.get("follow"))
        size = file_trees.measure(path, follow)
        pieces = file_trees.pack(path, follow)
    sent = 0
    for piece in pieces:
        _write(encode_bytes(piece))
        sent += len(piece)
    return file_trees.Copied(path, 1, sent) if size is None else file_trees.Copied(path, *size)


def _full_path(path: str, directory: str) -> str:
    """The path as it is meant in the place. What ends with `/` or `/.` stays so."""
    if path == "~" or path.startswith("~/"):
        path = os.path.expanduser(path)
    if not os.path.isabs(path):
        path = os.path.join(directory, path)
    if not os.path.isabs(path):
        raise BadValue(f"{path} is not absolute", next="write it from / on")
    return path


def _write(data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(1, view) :]
