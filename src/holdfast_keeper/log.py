"""Lines in keeper.log, for the operator."""

from __future__ import annotations

import os
import sys
import time

_LARGEST = 1 << 20


def write(line: str) -> None:
    """Never fails: a full disk must not end the keeper."""
    try:
        if os.fstat(2).st_size > _LARGEST:
            os.ftruncate(2, 0)
        sys.stderr.write(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {line}\n")
        sys.stderr.flush()
    except (OSError, ValueError):
        return


def write_traceback(where: str) -> None:
    """The traceback of the exception that is being handled; at the limit of open files, the exception alone."""
    handled = sys.exception()
    try:
        import traceback  # only when needed: it takes memory
    except OSError:
        write(f"{where}: {handled!r}")
    else:
        write(f"{where}: {''.join(traceback.format_exception(handled))}")
