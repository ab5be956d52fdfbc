"""Where `holdfast` begins, before anything is imported: ^C at any moment is an exit code, never a traceback."""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import os

INTERRUPTED = 130


def _leave(_number: int, _frame: object) -> None:
    os._exit(INTERRUPTED)


# Where ^C is ignored for us (by a shell that started us in the background), it stays so.
_is_ours = _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler
if _is_ours:
    _signal.signal(_signal.SIGINT, _leave)


def main() -> int:
    """Never returns, unless what it calls does; `sys.argv` are its arguments."""
    try:
        from holdfast.cli.main import main

        if _is_ours:
            _signal.signal(_signal.SIGINT, _signal.default_int_handler)
        return main()
    except KeyboardInterrupt:
        os._exit(INTERRUPTED)
