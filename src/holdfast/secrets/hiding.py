"""Keeps secrets of a program out of /proc/PID/environ, which every process of the same user can read."""

from __future__ import annotations

import os
import sys

#: The descriptor with the variables that were removed from the environment.
_HIDDEN = "HOLDFAST_HIDDEN_FD"


def hide_secrets() -> None:
    """Execute this command again without secrets in its environment, so that they are in memory only."""
    from holdfast.secrets.environment import secret_names

    if (fd := os.environ.pop(_HIDDEN, None)) is not None:
        _restore(fd)
    elif names := secret_names(os.environ):
        _execute_again({name: os.environ[name] for name in names})


def _execute_again(hidden: dict[str, str]) -> None:
    import json

    fd = os.memfd_create("holdfast", 0)
    with open(fd, "wb", closefd=False) as file:
        file.write(json.dumps(hidden).encode())
    shown = {name: value for name, value in os.environ.items() if name not in hidden}
    os.execve(sys.executable, sys.orig_argv, {**shown, _HIDDEN: str(fd)})


def _restore(fd: str) -> None:
    """Read the variables. A descriptor that cannot be read is of another program."""
    import json

    try:
        with open(int(fd), "rb") as file:
            file.seek(0)
            hidden = json.loads(file.read())
    except (OSError, ValueError):
        return
    if isinstance(hidden, dict):
        os.environ.update({name: value for name, value in hidden.items() if isinstance(value, str)})
