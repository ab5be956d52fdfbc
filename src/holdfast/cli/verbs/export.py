"""`holdfast export`."""

from __future__ import annotations

import os

from holdfast.cli import console
from holdfast.cli.options import Option, Verb
from holdfast.client.reading import Cursor, FollowedOutput, Reading
from holdfast.client.sync import connect
from holdfast.errors import BadValue

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from holdfast.cli.options import Given
    from holdfast.client.sync import Client

VERB = Verb(
    "export",
    synopsis=["export ID --cast [FILE] [--stream out|err]"],
    about="""
        Writes the output of a process with its times as a recording for asciinema (asciicast v2), which players show as
        the terminal was: to FILE, else to stdout. Of a running process it is the output up to now; of a terminal it
        also has the changes of its size. Times are exact to 100 ms.

        If the first output is no longer kept, the recording begins with what is kept, and a message on stderr says so.
    """,
    options=[
        Option("--cast", help="A recording for asciinema. Without FILE, or with -, it goes to stdout."),
        Option(
            "--stream",
            choices=("out", "err"),
            help="The stream of a process started with --split. Default: out. Without --split, out holds both.",
        ),
    ],
    exits=[("0", "Written.")],
    examples=[
        ("Record, and play it", "holdfast export build --cast build.cast && asciinema play build.cast"),
        ("Compressed", "holdfast export build --cast | gzip > build.cast.gz"),
    ],
)


def run(given: Given) -> int:
    if not given.cast or not 1 <= len(given.words) <= 2:
        raise BadValue("export needs an ID and --cast", next=given.usage)
    process, *files = given.words
    target = files[0] if files else "-"
    with connect() as client:
        pieces = _cast(client, process, given.stream or "out")
        first = next(pieces)  # an unknown process leaves the file as it is
        if target == "-":
            console.write(1, first)
            for piece in pieces:
                console.write(1, piece)
        else:
            _write(target, first, pieces)
    return 0


def _cast(client: Client, name: str, stream: str) -> Iterator[bytes]:
    """The recording in pieces. Raises what the daemon answers."""
    from holdfast.model.cast import CastWriter

    process = client.inspect(name, spec=True)
    page = client.logs(process.id, offset=0, bytes=0, raw=True, stream=stream)
    times = client.log_times(process.id, stream=stream)
    writer = CastWriter({**process.to_json(), "spec": process.spec}, times["times"], page.start)
    yield writer.header()
    if page.start:
        console.say(f"the first {page.start} bytes of the output are no longer kept: the recording begins behind them")
    cursor = Cursor(process.id, stream, from_=page.start, bytes=max(0, page.total - page.start))
    with Reading(client.open_link, FollowedOutput([cursor], to_exit=False)) as reading:
        for piece in reading:
            yield writer.feed(piece.offset, piece.data)
    yield writer.end()


def _write(path: str, first: bytes, pieces: Iterator[bytes]) -> None:
    """Into a file that is there when it is whole; into a device or a pipe as it comes."""
    is_file = not os.path.exists(path) or os.path.isfile(path)
    fresh = f"{path}.{os.urandom(4).hex()}" if is_file else path
    try:
        with open(fresh, "wb") as file:
            file.write(first)
            for piece in pieces:
                file.write(piece)
        if is_file:
            os.replace(fresh, path)
    except BaseException:
        if is_file and os.path.exists(fresh):
            os.unlink(fresh)
        raise
