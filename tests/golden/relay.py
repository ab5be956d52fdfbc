"""A relay between a client and a daemon that records the names in every message, and none of the values."""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from holdfast.wire.frames import FrameDecoder

#: Sent by the connection itself, at a time that no call decides.
_OF_THE_CONNECTION = ("hello", "got")
_ID = re.compile(r"^(proc|note|appr)_\w+$")


class Record:
    """`requests`: operation and argument names by client call. `replies`: names in the answers by operation."""

    def __init__(self) -> None:
        self.requests: dict[str, set[tuple[str, ...]]] = {}
        self.replies: dict[str, set[str]] = {}
        self.call = "connection"
        self._lock = threading.Lock()

    def note_request(self, frame: dict[str, Any]) -> None:
        op = frame["op"]
        if op == "cancel":
            return  # sent where a caller stops reading before the daemon has sent all: not every time
        with self._lock:
            names = sorted(frame.keys() - {"op", "rid", "had"})  # `had` depends on what was answered before
            self.requests.setdefault("connection" if op in _OF_THE_CONNECTION else self.call, set()).add((op, *names))

    def note_reply(self, op: str, frame: dict[str, Any]) -> None:
        with self._lock:
            for part in frame.keys() & {"ok", "data", "error"}:
                for name in names_in(frame[part], part):
                    shared = name.partition(".")[0]
                    self.replies.setdefault(shared if shared in ("process", "error") else op, set()).add(name)


def names_in(value: object, path: str) -> Iterator[str]:
    """Every name in a document, with the path to it. Names that are ids count as one, and so do process objects."""
    if isinstance(value, list):
        for inner in value:
            yield from names_in(inner, f"{path}[]")
    elif isinstance(value, dict) and {"argv", "exit_offset"} <= value.keys():
        yield f"{path}: a process with {len(value)} fields"
        yield from _names_below({**value, "labels": None}, "process")
    elif isinstance(value, dict) and "customCSS" in value:
        return  # a theme: its author chooses the names
    elif isinstance(value, dict):
        yield from _names_below(value, path)


def _names_below(document: dict[str, Any], path: str) -> Iterator[str]:
    for name, value in document.items():
        below = f"{path}.{'<id>' if _ID.match(name) else name}"
        yield below
        yield from names_in(value, below)


@contextmanager
def relaying(home: Path, target: Path, record: Record) -> Iterator[None]:
    """While this holds, clients of `home` speak with the daemon of `target`."""
    home.mkdir(mode=0o700)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(home / "daemon.sock"))
    listener.listen()
    threads = [threading.Thread(target=lambda: _accept(listener, target, record, threads))]
    threads[0].start()
    try:
        yield
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        for thread in threads:  # clients have hung up by now
            thread.join(10)
        listener.close()


def _accept(listener: socket.socket, target: Path, record: Record, threads: list[threading.Thread]) -> None:
    while True:
        try:
            client, _ = listener.accept()
        except OSError:
            return
        threads.append(threading.Thread(target=_relay, args=(client, target, record)))
        threads[-1].start()


def _relay(client: socket.socket, target: Path, record: Record) -> None:
    asked: dict[int, str] = {}

    def note_request(frame: dict[str, Any]) -> None:
        asked.setdefault(frame["rid"], frame["op"])
        record.note_request(frame)

    def note_reply(frame: dict[str, Any]) -> None:
        record.note_reply(asked[frame["rid"]], frame)

    with client, socket.socket(socket.AF_UNIX) as daemon:
        daemon.connect(str(target / "daemon.sock"))
        back = threading.Thread(target=_move, args=(daemon, client, note_reply))
        back.start()
        _move(client, daemon, note_request)
        back.join()


def _move(source: socket.socket, sink: socket.socket, note: Callable[[dict[str, Any]], None]) -> None:
    """Record, then pass on: what a caller has seen the effect of is in the record."""
    decoder = FrameDecoder()
    try:
        while data := source.recv(1 << 16):
            for frame in decoder.feed(data):
                if not isinstance(frame, bytes):
                    note(frame)
            sink.sendall(data)
    except OSError:
        pass
    for one in (source, sink):
        try:
            one.shutdown(socket.SHUT_RDWR)
        except OSError:
            continue
