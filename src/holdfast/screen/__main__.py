"""The screen process: python -m holdfast.screen LIBRARY VERSION PLACE DIRECTORY.

It is a process of its own because it reads the output of any command with a library that is not Python. A crash of it
does not affect the daemon.
"""

from __future__ import annotations

import sys

from holdfast.screen.ghostty import Ghostty, Library
from holdfast.screen.screen import Emulators
from holdfast.screen.serving import ScreenServer
from holdfast.wire.worker import WorkerLink, lower_priority


def main(arguments: list[str]) -> None:
    path, version, place, directory = arguments
    link = WorkerLink()
    lower_priority("screen", *arguments)
    library = Library(path)
    emulators = Emulators(
        version, lambda cols, rows: Ghostty(library, cols, rows), lambda data: Ghostty.restored(library, data)
    )
    server = ScreenServer(emulators, place, directory)
    link.serve(server.answer)
    server.close()


if __name__ == "__main__":
    main(sys.argv[1:])
