"""The protocol of the keeper's control stream.

A frame is a length (4 bytes, big-endian) and that many bytes of JSON. Where the highest bit of the length is set, it is
raw bytes that belong to the next message. The daemon sends requests
`{"rid": n, "op": ..., ...}` and gets answers `{"rid": n, "ok": {...}}` or
`{"rid": n, "error": {"code": ..., "message": ...}}`, not always in the same order. Facts come without a request, as
`{"fact": ..., "id": ..., ...}`. A fact may be lost: after a reconnect the answer to `hello` has the same from disk.

Requests
    hello         version; log_total (bytes or null), revive (argv or null); reader: true for a peer that is not the
                  daemon: it gets no facts, and the settings stay
                  -> version, release (of the program, or null), pid, anchor_pid, cgroup (path or null), fork_server (bool), offers: [optional field],
                     live: [bundle report]
    start         id, spec (see SPEC_FIELDS, OPTIONAL_FIELDS) -> bundle report. Where the keeper offers `raw`, the spec has
                                                                the fields of LAUNCH_FIELDS only, and two raw parts follow: the
                                                                whole spec as JSON, which the keeper stores, and arguments and
                                                                variables, each ended by a zero byte; argc, words: how many
    rerun         id, run, streak, cols, rows, despite_stop  -> bundle report; runs it again as run `run` (the first was 0), which
                                                                must be the next; the same run again answers the same. After
                                                                a late stop it is refused (`stopped`), unless despite_stop
    report        id                                         -> bundle report
    stop          id, by, reason, signal, grace, quiet, late -> forced, survivors, report; answered when the tree is gone.
                                                                quiet: seconds before the first signal; late: recorded also
                                                                when the command has ended, so that it is not run again
    signal        id, signal                                 -> sent: number of processes that it was sent to
    write         id, data (base64), at (offset or null)     -> accepted: offset after the data, so a retry is harmless
    close_stdin   id                                         -> {}
    resize        id, cols, rows                             -> {}
    wait_output   id, stream, after                          -> end, closed; answered when end > after or the stream closed
    tree          id                                         -> pids of the living members
    forget        id                                         -> {}; the bundle of an ended process is removed
    limits        -                                          -> memory, cpus, pids: {version, directory}, null where it cannot be limited
    usage         -                                          -> log_bytes, log_total, live, troubled: {id: why}
    leave         -                                          -> {}; the daemon stops on purpose and is not started again; once no
                                                                command is left, keeper and anchor exit, too
    renew         argv                                       -> {}; anchor and keeper execute this newer release and hold the same
                                                                commands. Only where `offers` has it

Facts
    adopted       id, report      a holder has offered the descriptors that it lacked
    ended         id, report      the exit is on disk and the output up to it in the log
    closed        id, report      nothing can write to the output any more; not sent where `ended` said so of every stream
    trimmed       id, stream, first      the head of the log was dropped up to `first`
    disk_full     id, stream      the disk is full or read-only: output waits in the pipe
    disk_free     id, stream      output is written again
    quarantined   id, message     the keeper failed on this bundle, and tries again after a pause that grows
    recovered     id              an attempt succeeded

Bundle report
    id, born, stop, exit (slots of bundle.py, null where blank), streams: {name: {first, end, closed}},
    stdin: {open, accepted, consumed} or null, trouble ("disk_full", "quarantined" or null). `born` has the number of the
    `run` and, for a rerun, its `streak`; `stop` has `late` where it came after the exit.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Sequence
from typing import Any

VERSION = 1

#: Longer than any command with its environment, short enough that a stray byte stream is refused.
MAX_FRAME = 16 << 20

Message = dict[str, Any]

#: The reason of a stop after which the command is run again, unless it is stopped for good meanwhile.
RESTART = "restart"

#: The spec of `start`: everything that the keeper needs to run the command, also again, and `meta`, which it only
#: stores.
SPEC_FIELDS = (
    "argv",  # list of str, already with the shell in front where there is one
    "cwd",  # absolute directory
    "env",  # the whole environment, dict of str
    "umask",  # int
    "pty",  # bool
    "cols",
    "rows",
    "stdin",  # bool: open for writing; otherwise /dev/null (a PTY is always open)
    "split",  # bool: stderr in a log of its own
    "log_cap",  # bytes kept per process
    "meta",  # dict, opaque
)
#: A keeper lists those that it supports in `offers`: an older one would ignore them.
OPTIONAL_FIELDS = (
    "limits",  # dict of memory (bytes), cpus, pids, each of them or none
    "nice",  # int, -20 to 19
    "sandbox",  # list of str: bubblewrap and its arguments, without a command. Only with the fork server
)

#: What the keeper itself needs of a spec.
LAUNCH_FIELDS = ("cwd", "umask", "pty", "cols", "rows", "stdin", "split", "log_cap", *OPTIONAL_FIELDS)
#: In `offers`: the keeper takes raw parts.
RAW = "raw"

_LENGTH = struct.Struct("!I")
RAW_BIT = 1 << 31
_MOST_RAW = 2


class ProtocolError(Exception):
    """The peer does not speak this protocol: close the connection."""


_dumps = json.JSONEncoder(separators=(",", ":")).encode


def encode(message: Message, raw: Sequence[bytes] = (), dumps: Callable[[Message], bytes] | None = None) -> bytes:
    """A message behind its raw parts. `dumps` is a faster way to JSON than that of the standard library."""
    body = _dumps(message).encode() if dumps is None else dumps(message)
    size = len(body) + sum(map(len, raw))
    if size > MAX_FRAME:
        raise ProtocolError(f"a frame holds {MAX_FRAME} bytes, this needs {size}")
    parts = [part for each in raw for part in (_LENGTH.pack(len(each) | RAW_BIT), each)]
    return b"".join([*parts, _LENGTH.pack(len(body)), body])


class Decoder:
    """Splits a byte stream into messages. The raw parts of a message are its `raw`."""

    def __init__(self, loads: Callable[[bytes], Any] = json.loads) -> None:
        self._buffer = bytearray()
        self._raw: list[bytes] = []
        self._loads = loads

    def feed(self, data: bytes) -> list[Message]:
        buffer = self._buffer
        buffer += data
        messages: list[Message] = []
        at = 0
        while len(buffer) - at >= 4:
            (head,) = _LENGTH.unpack_from(buffer, at)
            length = head & ~RAW_BIT
            if length > MAX_FRAME:
                raise ProtocolError(f"a frame of {length} bytes announced")
            if len(buffer) - at - 4 < length:
                break
            body = bytes(buffer[at + 4 : at + 4 + length])
            at += 4 + length
            if head & RAW_BIT:
                self._raw.append(body)
                if len(self._raw) > _MOST_RAW:
                    raise ProtocolError("too many raw parts")
                continue
            message = self._parse(body)
            if self._raw:
                message["raw"], self._raw = self._raw, []
            messages.append(message)
        del buffer[:at]
        return messages

    def _parse(self, body: bytes) -> Message:
        try:
            message = self._loads(body)
        except ValueError as broken:
            raise ProtocolError("a frame that is not JSON") from broken
        if not isinstance(message, dict):
            raise ProtocolError("a frame that is not an object")
        return message
