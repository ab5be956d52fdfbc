"""The entry point of `holdfast`. It imports nothing before ^C is handled: ^C never prints a traceback."""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import os

INTERRUPTED = 130


def _leave(_number: int, _frame: object) -> None:
    os._exit(INTERRUPTED)


# A shell that starts a command in the background makes it ignore ^C: that stays so.
_is_ours = _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler
if _is_ours:
    _signal.signal(_signal.SIGINT, _leave)


def main() -> int:
    """Run the command line with `sys.argv`. Does not return: the process exits."""
    try:
        from holdfast.cli.main import main

        if _is_ours:
            _signal.signal(_signal.SIGINT, _signal.default_int_handler)
        return main()
    except KeyboardInterrupt:
        os._exit(INTERRUPTED)
