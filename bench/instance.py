"""A holdfast of our own, in a directory of its own; nothing of it runs when the block has ended.

Its directory stays: after the removal of a large one, a file system can be slow for those that come after it.
"""

from __future__ import annotations

import os
import socket
import tempfile
from collections.abc import Iterator
from types import TracebackType

import holdfast
from bench.procfs import children
from holdfast_keeper import protocol
from tests.support import end_instance


class Instance:
    """`client` is connected and warm; `pids` are the daemon, the keeper and the anchor."""

    def __init__(self, directory: str, config: str = "") -> None:
        self._directory = directory
        self._config = config

    def __enter__(self) -> Instance:
        self.home = tempfile.mkdtemp(prefix="home-", dir=self._directory)
        self._before = os.environ.get("HOLDFAST_HOME")
        os.environ["HOLDFAST_HOME"] = self.home
        if self._config:
            with open(f"{self.home}/config.toml", "w") as file:
                file.write(self._config)
        self.client = holdfast.connect(session="bench")
        for _ in range(5):
            self.finish(self.client.run("true").id)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.client.close()
        end_instance(self.home)
        if self._before is None:
            del os.environ["HOLDFAST_HOME"]
        else:
            os.environ["HOLDFAST_HOME"] = self._before

    @property
    def pids(self) -> tuple[int, int, int]:
        status = self.client.status()
        return status["pid"], status["keeper_pid"], status["anchor_pid"]

    @property
    def family(self) -> tuple[int, ...]:
        """The three, and the fork server."""
        daemon, keeper, anchor = self.pids
        return daemon, keeper, anchor, *children(keeper, "holdfast-fork")

    def follow(self, process: str) -> Iterator[bytes]:
        """The output, piece by piece, as it comes."""
        with self.client.follow(process) as reading:
            for piece in reading:
                yield piece.data

    def answered_for(self, *, other_than: int) -> int:
        """How many processes a keeper other than that one answers for; 0 while the daemon has no other."""
        if self.client.status()["keeper_pid"] in (None, other_than):
            return 0
        return int(keeper_usage(f"{self.home}/place")["live"])

    def finish(self, process: str) -> None:
        """Wait for a process and forget it, so that each round finds the same instance."""
        self.client.wait(process)
        self.client.remove(process)


def keeper_usage(place: str) -> protocol.Message:
    """What the keeper of a place answers to `usage`."""
    directory = os.open(place, os.O_PATH | os.O_DIRECTORY)
    decoder = protocol.Decoder()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
        sock.connect(f"/proc/self/fd/{directory}/keeper.sock")
        os.close(directory)
        sock.sendall(protocol.encode({"rid": 1, "op": "usage"}))
        while True:
            for message in decoder.feed(sock.recv(65536)):
                return message["ok"]  # type: ignore[no-any-return]
