"""What the keeper has to say to its operator: lines in keeper.log."""

from __future__ import annotations

import sys
import time


def say(line: str) -> None:
    sys.stderr.write(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {line}\n")
    sys.stderr.flush()


def say_failure(where: str) -> None:
    """With the traceback of the exception that is being handled."""
    import traceback  # not before it is needed: every spare carries what the keeper has imported

    say(f"{where}: {traceback.format_exc()}")
