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
    synopsis=[
        "send ID [TEXT] [--no-enter] [--eof] [--json]",
        "send ID --secret [--even-if-echoed] [--no-enter] [--json]",
    ],
    about="""
        Writes TEXT to stdin of a process, or types it into its terminal, and presses Enter: a newline on a pipe, a
        carriage return on a terminal. Without TEXT it only presses Enter, or with --eof only closes stdin. If TEXT is -
        it is read from stdin, byte for byte; Enter is added only if the last line has no newline.

        The process must have been started with --stdin or -t. If it has ended, nothing is sent: a message and the end
        of its output are printed, and the exit code is 0.

        With --secret it prompts for the text without echo; if stdin is not a terminal, it reads the first line of it.
        The text is in no log, event or notification of holdfast, and no model sees it. It waits up to two seconds until
        the terminal of the process does not echo, and refuses otherwise, unless --even-if-echoed is given.
    """,
    options=[
        Option("--no-enter", help="Send TEXT as it is, without Enter."),
        Option("--eof", help="Close stdin afterwards: the process reads end of file."),
        Option("--secret", help="Prompt for TEXT without echo, and type it only while the terminal does not echo."),
        Option("--even-if-echoed", help="With --secret: type it also while the terminal echoes."),
        JSON,
    ],
    exits=[("0", "Sent, or the process had ended.")],
    examples=[
        ("Answer a question", "holdfast send setup yes"),
        ("Type a password", "holdfast send deploy --secret"),
        ("Send a file and close stdin", "holdfast send sorter - --eof < names.txt"),
    ],
)

_PIECE = 256 << 10
_PAUSE = 0.05
_TAIL_LINES = 10


def run(given: Given) -> int:
    process_id, text = _words(given)
    if given.even_if_echoed and not given.secret:
        raise BadValue("send: --even-if-echoed needs --secret", next=given.usage)
    if given.secret and (text is not None or given.eof):
        raise BadValue("send: --secret prompts for TEXT, and takes no --eof", next="holdfast send ID --secret")
    with connect() as client:
        if given.secret:
            answer = _send_secret(client, process_id, given)
        elif text == "-":
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
        raise BadValue("send: TEXT must be one argument", next="quote it: holdfast send ID 'two words'")
    return given.only("ID")[0], None


def _send_secret(client: Client, process_id: str, given: Given) -> Message:
    asked = client.inspect(process_id)
    data = _asked(asked) if os.isatty(0) else _first_line()
    enter = not given.no_enter
    return client.send(asked.id, data, enter=enter, secret=True, even_if_echoed=given.even_if_echoed)


def _asked(process: Process) -> bytes:
    from getpass import getpass

    question = (process.needs_input or {}).get("prompt") or "input"
    try:
        return os.fsencode(getpass(console.visible(f"for {process.id} ({question}), not shown: ")))
    except EOFError:
        raise BadValue("send: nothing was typed", next="holdfast send ID --secret") from None


def _first_line() -> bytes:
    line = bytearray()
    while not line.endswith(b"\n") and (piece := os.read(0, _PIECE)):
        line += piece
        if len(line) > _PIECE:
            raise BadValue("send: the line is too long for a secret", next="send ID - for a file")
    if not line:
        raise BadValue("send: stdin is empty", next="holdfast send ID --secret, on a terminal")
    return bytes(line).partition(b"\n")[0]


def _send_stdin(client: Client, process_id: str, given: Given) -> Message:
    """Piece by piece; waits while the process does not read."""
    piece = os.read(0, _PIECE)
    while True:
        following = os.read(0, _PIECE) if piece else b""
        is_last = not following
        enter = is_last and not given.no_enter and bool(piece) and not piece.endswith(b"\n")
        answer = _send_piece(client, process_id, piece, enter, given.eof and is_last)
        if is_last or answer["status"] != "sent":
            return answer
        piece = following


def _send_piece(client: Client, process_id: str, data: bytes, enter: bool, eof: bool) -> Message:
    while True:
        try:
            return client.send(process_id, data, enter=enter, eof=eof)
        except StdinFull:
            time.sleep(_PAUSE)
