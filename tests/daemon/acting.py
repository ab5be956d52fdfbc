"""What tests of the daemon do to it and its keeper."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

from holdfast.client.process import Process
from holdfast.client.sync import Client
from tests.support import eventually


def ask(hf: Client, op: str, **arguments: Any) -> Any:
    """What the daemon answers to exactly this question."""
    link = hf.open_link()
    try:
        return link.call(op, arguments)[0]
    finally:
        link.close()


def told(process: Process) -> dict[str, Any]:
    """The process object without what was measured on the spot: output and use."""
    measured = ("output_bytes", "ports", "cpu_seconds", "rss_bytes", "peak_rss_bytes")
    return {key: value for key, value in process.to_json().items() if key not in measured}


def is_alive(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(b")")[2].split()[0] not in (b"Z", b"X")


def kill_daemon(hf: Client) -> int:
    """SIGKILL the daemon; its pid."""
    pid = int(hf.status()["pid"])
    os.kill(pid, signal.SIGKILL)
    eventually(lambda: not is_alive(pid))
    return pid


def kill_keeper(hf: Client, *roles: str) -> None:
    """SIGKILL the keeper, the anchor, or both at once."""
    status = hf.status()
    for role in roles:
        os.kill(int(status[f"{role}_pid"]), signal.SIGKILL)


def log_text(home: Path) -> str:
    return (home / "daemon.log").read_text()
