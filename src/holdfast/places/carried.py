"""The programs that are carried to a place: the entry of the runtime there, which has only the standard library."""

from __future__ import annotations

import sys
from collections.abc import Sequence


def main(program: str, arguments: Sequence[str]) -> None:
    """Run `keeper LIMIT DIRECTORY [RELEASE]`, `relay DIRECTORY [KEEPER...]`, `wait DIRECTORY IDLE` or `files`.

    `text PROGRAM [ARGUMENT...]` runs a program where stdin and stdout carry only text.
    """
    if program == "keeper":
        _keeper(*arguments)
    elif program == "relay":
        from holdfast.places import relay

        relay.main(arguments)
    elif program == "wait":
        _wait(*arguments)
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


def _wait(directory: str, idle: str) -> None:
    """The main process of a container: it reaps orphans, and ends on SIGTERM.

    It also ends when the place in this directory was not used for `idle` seconds: a container that no daemon knows any
    more does not stay for ever.
    """
    import os
    import signal

    from holdfast.title import set_title

    set_title("main")
    limit = float(idle)
    expected = {signal.SIGCHLD, signal.SIGTERM, signal.SIGINT}
    signal.pthread_sigmask(signal.SIG_BLOCK, expected)
    while True:
        caught = signal.sigtimedwait(expected, min(limit / 4, 60.0))
        if caught is None:
            if _unused_for(directory) > limit:
                return
        elif caught.si_signo != signal.SIGCHLD:
            return
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            pass


def _unused_for(directory: str) -> float:
    """Seconds since a process was started or ended there, or a daemon came; 0 while there is a process or a relay."""
    import os
    import time

    from holdfast_keeper.bundle import DONE, LIVE

    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/comm") as file:
                if file.read() == "holdfast-relay\n":
                    return 0.0
        except OSError:
            continue
    newest = os.stat(directory).st_mtime
    for name in (LIVE, DONE):
        try:
            newest = max(newest, os.stat(f"{directory}/{name}").st_mtime)
        except FileNotFoundError:
            continue
        if name == LIVE and os.listdir(f"{directory}/{name}"):
            return 0.0
    return time.time() - newest
