"""The screens process: python -m holdfast.screen LIBRARY VERSION PLACE DIRECTORY; JSON, an object a line.

A process of its own, because it reads what any command chose to write, with a library that is not Python: whatever
that may bring about, the daemon goes on.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys

from holdfast.screen.emulator import Unusable
from holdfast.screen.ghostty import Ghostty, Library
from holdfast.screen.screen import Emulators
from holdfast.screen.serving import Message, Screens

_NICE = 5
#: When memory runs out, this process is missed less than others.
_OOM_SCORE = "500"


def main(arguments: list[str]) -> None:
    path, version, place, directory = arguments
    _stand_back()
    library = Library(path)
    emulators = Emulators(
        version, lambda cols, rows: Ghostty(library, cols, rows), lambda data: Ghostty.restored(library, data)
    )
    screens = Screens(emulators, place, directory)
    for line in sys.stdin.buffer:
        try:
            answer: Message = {"ok": screens.answer(json.loads(line))}
        except (OSError, Unusable) as failed:
            answer = {"error": str(failed)}
        sys.stdout.buffer.write(json.dumps(answer).encode() + b"\n")
        sys.stdout.buffer.flush()
    screens.close()


def _stand_back() -> None:
    os.nice(_NICE)
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write(_OOM_SCORE)
    with contextlib.suppress(OSError), open("/proc/self/comm", "w") as file:
        file.write("holdfast-screen")


if __name__ == "__main__":
    main(sys.argv[1:])
