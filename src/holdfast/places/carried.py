"""The programs that are carried to a place: the entry of the runtime there, which has only the standard library."""

from __future__ import annotations

import sys
from collections.abc import Sequence


def main(program: str, arguments: Sequence[str]) -> None:
    """Run `keeper LIMIT DIRECTORY [RELEASE]`, `relay DIRECTORY [KEEPER...]`, `wait` or `files`.

    `text PROGRAM [ARGUMENT...]` runs a program where stdin and stdout carry only text.
    """
    if program == "keeper":
        _keeper(*arguments)
    elif program == "relay":
        from holdfast.places import relay

        relay.main(arguments)
    elif program == "wait":
        _wait()
    elif program == "files":
        from holdfast.places import file_program

        file_program.main()
    elif program == "text":
        from holdfast.places import text_stream

        with text_stream.over_text():
            main(arguments[0], arguments[1:])
    else:
        sys.exit(f"there is no program {program}")


def _keeper(limit: str, *arguments: str) -> None:
    """The limit on open files is that of commands, which inherit it."""
    import resource

    from holdfast_keeper.__main__ import main as keep

    resource.setrlimit(resource.RLIMIT_NOFILE, (int(limit), resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    sys.argv[1:] = arguments
    keep()


def _wait() -> None:
    """The main process of a container: it reaps orphans, and ends on SIGTERM."""
    import os
    import signal

    from holdfast.title import set_title

    set_title("main")
    expected = {signal.SIGCHLD, signal.SIGTERM, signal.SIGINT}
    signal.pthread_sigmask(signal.SIG_BLOCK, expected)
    while signal.sigwait(expected) == signal.SIGCHLD:
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            pass
