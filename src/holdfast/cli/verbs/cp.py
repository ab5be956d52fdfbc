"""`holdfast cp`."""

from __future__ import annotations

import os

from holdfast.cli import console
from holdfast.cli.options import JSON, Option, Verb
from holdfast.client.sync import connect
from holdfast.errors import BadValue

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import BinaryIO

    from holdfast.cli.options import Given

VERB = Verb(
    "cp",
    synopsis=["cp [-L] SRC PLACE:PATH [--json]", "cp [-L] PLACE:PATH DST [--json]"],
    about="""
        Copies a file or a directory to or from the place where a process runs. PLACE is a process (id, name or prefix),
        task/T for the newest process of task T, a backend such as podman or ssh for the newest process of the session
        there (holdfast backends), or local for this machine. A relative PATH begins in the directory of the process; if
        PLACE is not a process, in the default directory there, and for local in the current one. ~ is the home
        directory. If SRC or DST is - it is stdin or stdout, byte for byte, for one file.

        If the target is a directory, the copy is put into it. Else the target is the name of the copy, and its parent
        directory must exist; with a slash at its end it must be a directory. DIR/. as source copies what is in DIR, and
        not DIR itself. Files that are already in a directory stay there.

        Permission bits and times of modification are kept; setuid and setgid bits and owners are not. Symbolic links
        are copied as links. Devices, FIFOs and sockets are refused.

        A file is replaced at once: if the copy fails or is killed, the old file is unchanged. A new directory appears
        when it is complete; in one that exists, files are replaced one by one. Files called .NAME.holdfast-cp-* are
        from copies that were killed. The next copy into that directory removes them.

        A local path with a colon is written with a slash before it: ./a:b.
    """,
    options=[
        Option("-L", "--follow-link", help="If the source itself is a symbolic link, copy what it points to."),
        JSON,
    ],
    exits=[("0", "Copied.")],
    examples=[
        ("Copy a file into the directory of a process", "holdfast cp config.json web:"),
        ("Copy a directory from there", "holdfast cp web:dist ./out"),
        ("Print a file", "holdfast cp web:/etc/hosts -"),
        ("Write a file from a pipe", "date | holdfast cp - web:stamp.txt"),
    ],
)


def run(given: Given) -> int:
    source, target = given.only("SRC", "DST")
    here, there = _place(source), _place(target)
    if (here is None) == (there is None):
        what = "one of SRC and DST must be PLACE:PATH" + (", not both" if here else "")
        raise BadValue(f"cp: {what}", next="cp copies within this machine" if here is None else given.usage)
    if given.json and target == "-":
        raise BadValue("cp: with - as DST, stdout has the file and no JSON", next="leave out --json")
    progress = CopyProgress()
    from holdfast.cli.terminal.waiting_line import WaitingLine

    with connect() as client, WaitingLine(progress.text, not given.json and target != "-"):
        if there is not None:
            side = _stdin() if source == "-" else source
            progress.begin(source, given.follow_link)
            copied = client.copy_to(there[0], side, there[1], follow=given.follow_link, on_moved=progress.moved)
        else:
            assert here is not None
            sink = Stdout() if target == "-" else target
            copied = client.copy_from(*here, sink, follow=given.follow_link, on_moved=progress.moved)
    if given.json:
        console.out_json(copied)
    return 0


def _place(word: str) -> tuple[str, str] | None:
    """The place and the path in it; None for a local path. A slash before the colon is part of a path."""
    place, colon, path = word.partition(":")
    if not colon or not place or ("/" in place.removeprefix("task/")):
        return None
    return place, path or "."


def _stdin() -> BinaryIO:
    """Without a buffer, so that a pipe is read as it comes."""
    try:
        stream: BinaryIO = open(0, "rb", buffering=0, closefd=False)
    except OSError:
        raise BadValue("cp: stdin is closed", next="redirect it: < FILE") from None
    return stream


class Stdout:
    """Takes the bytes of a file, also where stdout does not block."""

    def write(self, data: bytes) -> int:
        console.write(1, data)
        return len(data)

    def flush(self) -> None:
        """There is no buffer."""


class CopyProgress:
    """How much was copied, for the terminal."""

    def __init__(self) -> None:
        self._moved = 0
        self._total: int | None = None

    def begin(self, source: str, follow: bool) -> None:
        """The size of what is sent is known for one file."""
        try:
            self._total = os.path.getsize(source) if os.path.isfile(source) else None
        except OSError:
            self._total = None

    def moved(self, count: int) -> None:
        self._moved = count

    def text(self) -> str:
        from holdfast.model.units import size_text

        of = f" of {size_text(self._total)}" if self._total else ""
        return f"the copy: {size_text(self._moved)}{of}"
