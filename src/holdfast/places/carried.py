"""The programs that are carried to a place: the entry of the runtime there, which has only the standard library."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

#: A file in each runtime. Each program that runs from there has it locked.
IN_USE = "in-use"
#: A runtime is not removed before it is so old: others may be about to use it.
_YOUNGEST = 3600.0
_locked: list[int] = []


def main(program: str, arguments: Sequence[str]) -> None:
    """Run `keeper LIMIT DIRECTORY [RELEASE]`, `relay DIRECTORY [KEEPER...]`, `wait DIRECTORY IDLE` or `files`.

    `text PROGRAM [ARGUMENT...]` runs a program where stdin and stdout carry only text.
    """
    if not _locked:
        _lock_runtime()
    if program == "keeper":
        _keeper(*arguments)
    elif program == "relay":
        from holdfast.places.relay import program as relay

        relay.main(arguments)
    elif program == "wait":
        _wait(*arguments)
    elif program == "files":
        from holdfast.places.relay import file_program

        file_program.main()
    elif program == "text":
        from holdfast.places.relay import text_stream

        with text_stream.over_text():
            main(arguments[0], arguments[1:])
    else:
        sys.exit(f"there is no program {program}")


def _lock_runtime() -> None:
    """As long as this process lives, and those that it forks."""
    import fcntl

    at = os.path.abspath(__file__)
    while (at := os.path.dirname(at)) != "/":
        try:
            fd = os.open(f"{at}/{IN_USE}", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            continue
        _locked.append(fd)
        try:
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:  # it is being removed; where that leaves nothing to run, it is copied again
            pass
        return


def remove_unused(directory: str, name: str) -> None:
    """Remove the runtimes in a directory from which nothing runs, but the one of this name, young ones, and others'."""
    import fcntl
    import shutil
    import time

    for other in os.listdir(directory):
        path = f"{directory}/{other}"
        if other == name or not other.startswith(("runtime-", "sources-")):
            continue
        try:
            fd = os.open(f"{path}/{IN_USE}", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:  # one of an earlier release: whether it is used is not known
            continue
        try:
            if time.time() - os.fstat(fd).st_mtime > _YOUNGEST:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                os.rename(path, f"{directory}/.{other}")  # at once for all others; the rest may be left by a crash
                shutil.rmtree(f"{directory}/.{other}", ignore_errors=True)
        except OSError:
            continue
        finally:
            os.close(fd)


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
