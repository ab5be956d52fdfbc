"""What the carried interpreter runs in a place: `main(program, arguments)`."""

from __future__ import annotations

import os
import signal
import sys


def main(program: str, arguments: list[str]) -> None:
    if program == "keeper":
        _keep(*arguments)
    elif program == "wait":
        _wait()
    else:
        sys.exit(f"no program {program}")


def _keep(file_limit: str, *arguments: str) -> None:
    """Anchor and keeper, with a limit on open files that their commands inherit."""
    import resource

    from holdfast_keeper.__main__ import main as keep

    resource.setrlimit(resource.RLIMIT_NOFILE, (int(file_limit), resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    sys.argv = ["holdfast_keeper", *arguments]
    keep()


def _wait() -> None:
    """The main process of a container: it reaps orphans, and ends on SIGTERM."""
    expected = {signal.SIGCHLD, signal.SIGTERM, signal.SIGINT}
    signal.pthread_sigmask(signal.SIG_BLOCK, expected)
    while signal.sigwait(expected) == signal.SIGCHLD:
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            pass
