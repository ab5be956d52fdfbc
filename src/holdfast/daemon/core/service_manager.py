"""Reports the state of the daemon to a service manager, as sd_notify(3) does. Without one, nothing happens."""

from __future__ import annotations

import os
import socket

_VARIABLE = "NOTIFY_SOCKET"


def is_managed() -> bool:
    """Whether a service manager started the daemon and expects its state."""
    return bool(os.environ.get(_VARIABLE))


def send_state(*lines: str) -> None:
    """`READY=1`, `STOPPING=1`, `STATUS=…`. A manager that does not listen is ignored."""
    address = os.environ.get(_VARIABLE, "")
    if not address.startswith(("/", "@")):
        return
    if address.startswith("@"):  # an abstract socket
        address = f"\0{address[1:]}"
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
            sock.setblocking(False)
            sock.sendto("\n".join(lines).encode(), address)
    except OSError:
        return
