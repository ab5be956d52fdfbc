"""Bundles with logs as a keeper leaves them."""

from __future__ import annotations

import os
from pathlib import Path

from holdfast.logs.reader import Log
from holdfast_keeper import bundle

ID = "proc_0123456789ab"


class Written:
    """A log in segments of a chosen size, which can grow, lose its head and be moved."""

    def __init__(self, place: Path, size: int) -> None:
        self.place = place
        self.size = size
        self.context = bundle.LIVE
        self.content = b""
        self.first = 0
        for context in (bundle.LIVE, bundle.DONE):
            (place / context).mkdir()
        self.directory.mkdir()

    @property
    def directory(self) -> Path:
        return self.place / self.context / ID

    def append(self, data: bytes) -> None:
        """Fill segment after segment, like a keeper."""
        while data:
            start = len(self.content) // self.size * self.size
            piece = data[: start + self.size - len(self.content)]
            with open(bundle.segment_path(str(self.directory), "out", start), "ab") as file:
                file.write(piece)
            self.content += piece
            data = data[len(piece) :]

    def drop_head(self, segments: int) -> None:
        for found in bundle.segments(str(self.directory), "out")[:segments]:
            os.unlink(found.path)
            self.first = found.start + found.size

    def finish(self) -> None:
        os.rename(self.directory, self.place / bundle.DONE / ID)
        self.context = bundle.DONE

    def log(self) -> Log:
        return Log(str(self.place), ID, "out")


def read_all(log: Log, offset: int = 0) -> bytes:
    parts = []
    while (chunk := log.read(offset)).data:
        parts.append(chunk.data)
        offset = chunk.end
    return b"".join(parts)
