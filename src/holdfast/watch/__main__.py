"""The watch process: python -m holdfast.watch PLACE BEAT [plain]; JSON, an object a line.

It ends when its input does. `plain`: without the optional faster engine.

A process of its own, because it runs patterns that anybody chose over what any command chose to write: whatever that
may bring about, the daemon goes on.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import resource
import select
import sys

from holdfast.watch.beat import Beat
from holdfast.watch.serving import Watches

_NICE = 2
#: When memory runs out, this process is missed less than others; and it may not take all of it.
_OOM_SCORE = "500"
_MEMORY = 2 << 30
#: mallopt: memory of up to this size is kept for the next block instead of being given back and cleared each time.
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
_KEPT = 16 << 20


def main(arguments: list[str]) -> None:
    place, beat, *how = arguments
    _stand_back()
    watches = Watches(place, Beat(int(beat)), "plain" not in how)
    pending = b""
    while True:
        if watches.is_idle or select.select([0], [], [], 0)[0]:
            data = os.read(0, 1 << 16)
            if not data:
                return
            *lines, pending = (pending + data).split(b"\n")
            for line in lines:
                watches.ask(json.loads(line))
        if not watches.is_idle and (answer := watches.turn()) is not None:
            _write(json.dumps(answer, ensure_ascii=False).encode(errors="replace") + b"\n")


def _write(data: bytes) -> None:
    while data:
        data = data[os.write(1, data) :]


def _stand_back() -> None:
    os.nice(_NICE)
    resource.setrlimit(resource.RLIMIT_DATA, (_MEMORY, _MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    libc = ctypes.CDLL(None)
    for option in (_TRIM_THRESHOLD, _MMAP_THRESHOLD):
        libc.mallopt(option, _KEPT)
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write(_OOM_SCORE)
    with contextlib.suppress(OSError), open("/proc/self/comm", "w") as file:
        file.write("holdfast-watch")


if __name__ == "__main__":
    with contextlib.suppress(BrokenPipeError):
        main(sys.argv[1:])
