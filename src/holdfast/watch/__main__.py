"""The watch process: python -m holdfast.watch PLACE CURRENT [plain].

PLACE is where the logs are, CURRENT the descriptor in which it marks the request that it is at. `plain`: without the
optional faster engine.

It is a process of its own because it runs patterns of any user over the output of any command. A crash of it does not
affect the daemon.
"""

from __future__ import annotations

import contextlib
import ctypes
import resource
import sys

from holdfast.watch.serving import WatchServer
from holdfast.wire.worker import CurrentRequest, WorkerLink, lower_priority

_NICE = 2
_MEMORY = 2 << 30
#: mallopt: memory of up to this size is kept for the next block instead of being given back and cleared each time.
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
_KEPT = 16 << 20


def main(arguments: list[str]) -> None:
    place, current, *how = arguments
    link = WorkerLink()
    lower_priority("watch", place, nice=_NICE)
    resource.setrlimit(resource.RLIMIT_DATA, (_MEMORY, _MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    libc = ctypes.CDLL(None)
    for option in (_TRIM_THRESHOLD, _MMAP_THRESHOLD):
        libc.mallopt(option, _KEPT)
    server = WatchServer(place, CurrentRequest(int(current)), "plain" not in how)
    with contextlib.suppress(EOFError, BrokenPipeError):
        while True:
            for request in link.receive(wait=server.is_idle):
                server.add(request)
            if not server.is_idle and (reply := server.turn()) is not None:
                link.send(reply)


if __name__ == "__main__":
    main(sys.argv[1:])
