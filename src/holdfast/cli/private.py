"""A command of ours that lasts shows no secret in /proc/PID/environ, which every process of the same user can read."""

from __future__ import annotations

import json
import os
import sys

from holdfast.secrets.environment import secret_names

#: Tells the second self where to read what the first one hid.
_HIDDEN = "HOLDFAST_HIDDEN_FD"


def hide_secrets() -> None:
    """Begin again with an environment that has no secrets; the new self has them in its memory alone."""
    if (fd := os.environ.pop(_HIDDEN, None)) is not None:
        _restore(fd)
    elif names := secret_names(os.environ):
        _begin_again({name: os.environ[name] for name in names})


def _begin_again(hidden: dict[str, str]) -> None:
    fd = os.memfd_create("holdfast", 0)
    with open(fd, "wb", closefd=False) as file:
        file.write(json.dumps(hidden).encode())
    shown = {name: value for name, value in os.environ.items() if name not in hidden}
    os.execve(sys.executable, sys.orig_argv, {**shown, _HIDDEN: str(fd)})


def _restore(fd: str) -> None:
    """What cannot be read was not hidden by us."""
    try:
        with open(int(fd), "rb") as file:
            file.seek(0)
            hidden = json.loads(file.read())
    except (OSError, ValueError):
        return
    if isinstance(hidden, dict):
        os.environ.update({name: value for name, value in hidden.items() if isinstance(value, str)})
