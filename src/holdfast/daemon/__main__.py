"""`python -m holdfast.daemon [--ready-fd N]`: the daemon of the instance that HOLDFAST_HOME names.

With --ready-fd a line is written to that descriptor: `ready`, or the error as JSON. When another daemon already
serves the instance, this one says ready and ends; under a service manager (NOTIFY_SOCKET) it stands by instead.
The keeper uses --revived to start a daemon again after a crash.

It drops all variables of its environment that it does not need: every command could read them.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from typing import TYPE_CHECKING

from holdfast.daemon.core import instance, log, service_manager
from holdfast.errors import HoldfastError
from holdfast.paths import find_paths, make_directories
from holdfast.secrets.environment import for_backends, minimal
from holdfast.title import set_title

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

_INTERRUPTED = 130


def main() -> None:
    ready_fd, revived = _options()
    _drop_environment()
    gc.disable()  # the modules make a hundred thousand objects, and no garbage; `run` enables it again
    import sqlite3

    try:
        _leave_on_interrupt()
        _serve(ready_fd, revived)
        os._exit(0)  # nothing is left to write; to take the interpreter apart takes longer
    except KeyboardInterrupt:
        os._exit(_INTERRUPTED)
    except HoldfastError as error:
        _fail(ready_fd, error)
    except (OSError, sqlite3.Error) as error:
        _fail(ready_fd, HoldfastError(f"the daemon cannot work here: {error}"))


#: Needed to reach the service manager, and to find Python and this package again.
_ALSO_KEPT = ("NOTIFY_SOCKET", "PYTHONPATH", "PYTHONHOME", "LD_LIBRARY_PATH")


def _drop_environment() -> None:
    """Execute this program again with the variables that it needs: others can read the first environment in /proc."""
    given = _first_environment()
    env = {**minimal(given), **for_backends(given), **{name: given[name] for name in _ALSO_KEPT if name in given}}
    if env.keys() != given.keys():
        sys.stdout.flush()
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], env)


def _leave_on_interrupt() -> None:
    """^C ends the daemon without a traceback, also before it serves. It was held back while the modules were loaded."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, lambda number, frame: os._exit(_INTERRUPTED))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


def _first_environment() -> dict[str, str]:
    """The environment at the start, which is the one in /proc."""
    with open("/proc/self/environ", "rb") as file:
        entries = (os.fsdecode(entry).partition("=") for entry in file.read().split(b"\0"))
    return {name: value for name, equals, value in entries if equals}


def _serve(ready_fd: int | None, revived: bool) -> None:
    paths = find_paths()
    os.umask(0o077)
    make_directories(paths)
    if revived:
        log.open_log(paths.log)
    log.bound(paths.log)
    from holdfast.settings import read_settings

    settings = read_settings(paths.config)
    lock = instance.take(paths, revived)
    if lock is None and service_manager.is_managed():
        lock = service_manager.take_over(paths)
    if lock is None:
        _say(ready_fd, "ready")
        return
    import asyncio

    from holdfast.daemon.run import run

    os.chdir("/")
    set_title("daemon", paths.home)

    def ready() -> None:
        _say(ready_fd, "ready")
        service_manager.send_state("READY=1", f"STATUS=Serving {paths.home}")

    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        runner.run(run(paths, settings, ready))
    instance.give_back(lock)


def _loop_factory() -> type[AbstractEventLoop] | None:
    """uvloop where it is installed."""
    try:
        import uvloop
    except ImportError:
        return None
    factory: type[AbstractEventLoop] = uvloop.Loop
    return factory


def _say(fd: int | None, line: str) -> None:
    if fd is not None:
        try:
            os.write(fd, f"{line}\n".encode())
            os.close(fd)
        except OSError:
            return  # the client that started the daemon has gone


def _fail(ready_fd: int | None, error: HoldfastError) -> None:
    import json

    log.note("daemon-failed", why=error.message)
    _say(ready_fd, json.dumps(error.to_wire()))
    sys.exit(1)


def _options() -> tuple[int | None, bool]:
    """The descriptor of --ready-fd, and whether --revived is given. Only holdfast itself passes options."""
    words, ready_fd, revived = sys.argv[1:], None, False
    while words:
        match words:
            case ["--ready-fd", number, *words] if number.isdecimal():
                ready_fd = int(number)
            case ["--revived", *words]:
                revived = True
            case _:
                sys.exit("usage: python -m holdfast.daemon [--ready-fd N] [--revived]")
    return ready_fd, revived


if __name__ == "__main__":
    main()
