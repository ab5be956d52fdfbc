"""`holdfast send`."""

from __future__ import annotations

import os
import time

from holdfast.cli import console
from holdfast.cli.options import JSON, Option, Verb
from holdfast.cli.outcomes import end_line
from holdfast.client.process import Process
from holdfast.client.sync import connect
from holdfast.errors import BadValue, StdinFull

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.cli.options import Given
    from holdfast.client.sync import Client
    from holdfast.wire.frames import Message

VERB = Verb(
    "send",
    synopsis=["send ID [TEXT] [--no-enter] [--eof] [--json]"],
    summary="write to the input of a process",
    about="""
        Writes TEXT to the process's stdin, or types it into its terminal, and presses Enter: a newline on a pipe, a
        carriage return on a terminal. Without TEXT it just presses Enter, or with --eof just ends the input. TEXT - is
        read from stdin, byte for byte; Enter is then only added to a last line without an end.

        The process must have been started with --stdin or -t. To one that has ended nothing is sent: that is said,
        with the end of its output, and is no error.
    """,
    options=[
        Option("--no-enter", help="Send TEXT as it is, without Enter."),
        Option("--eof", help="Afterwards end the input: the process reads end of file."),
        JSON,
    ],
    exits=[("0", "Sent, or the process had ended before.")],
    examples=[
        ("Answer a question", "holdfast send setup yes"),
        ("Give a process a file and let it finish", "holdfast send sorter - --eof < names.txt"),
    ],
)

_PIECE = 256 << 10
_PAUSE = 0.05
_TAIL_LINES = 10


def run(given: Given) -> int:
    process_id, text = _words(given)
    with connect() as client:
        if text == "-":
            answer = _send_stdin(client, process_id, given)
        else:
            enter = not given.no_enter and (text is not None or not given.eof)
            answer = client.send(process_id, os.fsencode(text or ""), enter=enter, eof=given.eof)
        ended = answer["status"] == "already_exited"
        tail = client.logs(process_id, lines=_TAIL_LINES).text if ended else None
    if given.json:
        console.out_json({**answer, "tail": tail} if ended else answer)
    elif ended:
        console.say(f"nothing was sent: {end_line(Process(answer['process']))}")
        console.out(tail.rstrip("\n")) if tail else None
    return 0


def _words(given: Given) -> tuple[str, str | None]:
    if len(given.words) == 2:
        return given.words[0], given.words[1]
    if len(given.words) > 2:
        raise BadValue("send: TEXT is one word", next="quote it: holdfast send ID 'two words'")
    return given.only("ID")[0], None


def _send_stdin(client: Client, process_id: str, given: Given) -> Message:
    """Piece by piece, waiting where the process is slow to read."""
    piece = os.read(0, _PIECE)
    while True:
        following = os.read(0, _PIECE) if piece else b""
        is_last = not following
        enter = is_last and not given.no_enter and bool(piece) and not piece.endswith(b"\n")
        answer = _send_patiently(client, process_id, piece, enter, given.eof and is_last)
        if is_last or answer["status"] != "sent":
            return answer
        piece = following


def _send_patiently(client: Client, process_id: str, data: bytes, enter: bool, eof: bool) -> Message:
    while True:
        try:
            return client.send(process_id, data, enter=enter, eof=eof)
        except StdinFull:
            time.sleep(_PAUSE)
